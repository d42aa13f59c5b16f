"""The command line: ``pt-neural``, or ``python -m pt_neural``."""
