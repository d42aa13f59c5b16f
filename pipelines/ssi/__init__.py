"""The SSI paper (Bai et al., 2010)."""
