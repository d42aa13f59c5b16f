"""The Match-Tensor paper (Jaech et al., 2017)."""
