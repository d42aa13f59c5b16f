"""Convolutions over interactions or texts: MatchPyramid, PACRR, ARC-I and ARC-II."""
