"""Moved to :mod:`pt_neural.text.vocabulary`."""

from pt_neural.text.vocabulary import LastVocabulary, OwnIds

__all__ = ["LastVocabulary", "OwnIds"]
