"""One file a model family: the formula or the network, and its transformer."""

from importlib import import_module
from typing import Any

# Loaded on first use: importing a network imports torch, which DESM, LSA and TFIDF do without.
_FILES = {
    "BLTM": "bltm",
    "CDSSM": "clsm",
    "CLSM": "clsm",
    "DESM": "desm",
    "DRMM": "drmm",
    "DSSM": "dssm",
    "Duet": "duet",
    "DuetDistributed": "duet",
    "DuetLocal": "duet",
    "LDA": "lda",
    "LSA": "lsa",
    "MatchTensor": "match_tensor",
    "MatchTensorSSM": "match_tensor",
    "PhraseTranslation": "phrase_translation",
    "PLSA": "plsa",
    "Rocchio": "ssi.rocchio",
    "SSI": "ssi.ssi",
    "SSM": "ssm",
    "TFIDF": "ssi.tf_idf",
    "TopicCosine": "topic_cosine",
    "WordTranslation": "word_translation",
}

__all__ = sorted(_FILES)


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
    globals()[name] = value
    return value
