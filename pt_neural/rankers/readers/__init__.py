"""Readers turn texts into the tensors of a network; each learns from texts, saves and loads."""

from pt_neural._lazy import lazy

_FILES = {
    "EmbeddedWords": "embedded_words",
    "HashedNgrams": "hashed_ngrams",
    "Histograms": "histograms",
    "Reader": "reader",
    "WordIds": "word_ids",
    "WordPairs": "word_pairs",
    "WordSequences": "word_sequences",
}

__all__ = sorted(_FILES)

__getattr__ = lazy(__name__, _FILES)
