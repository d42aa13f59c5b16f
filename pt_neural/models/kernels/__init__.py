"""Kernel pooling: KNRM, ConvKNRM and TK."""
