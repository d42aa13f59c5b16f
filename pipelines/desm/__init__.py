"""The DESM paper (Mitra et al., 2016)."""
