"""The CLSM paper (Shen et al., 2014)."""
