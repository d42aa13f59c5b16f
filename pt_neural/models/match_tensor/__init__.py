"""Match-Tensor, SSM and their hybrids (Jaech, Kamisetty, Ringger and Clarke, 2017)."""
