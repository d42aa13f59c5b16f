"""The Duet (Mitra et al., 2017) and DRMM (Guo et al., 2016)."""
