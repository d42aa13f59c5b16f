"""The Duet paper (Mitra et al., 2017)."""
