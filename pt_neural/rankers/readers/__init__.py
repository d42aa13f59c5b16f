"""Readers turn texts into the tensors of a network; each learns from texts, saves and loads."""

from importlib import import_module
from typing import Any

_FILES = {
    "EmbeddedWords": "embedded_words",
    "HashedNgrams": "hashed_ngrams",
    "Histograms": "histograms",
    "Reader": "reader",
    "WordIds": "word_ids",
    "WordPairs": "word_pairs",
}

__all__ = sorted(_FILES)


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
