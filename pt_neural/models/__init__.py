"""One file a model family: the formula or the network, and its transformer."""

from importlib import import_module
from typing import Any

# Loaded on first use: importing a network imports torch, which DESM, LSA and TFIDF do without.
_FILES = {
    "BLTM": "topics.bltm",
    "CDSSM": "clsm",
    "CLSM": "clsm",
    "DESM": "desm",
    "DRMM": "drmm",
    "DSSM": "dssm",
    "Duet": "duet",
    "DuetDistributed": "duet",
    "DuetLocal": "duet",
    "LDA": "topics.lda",
    "LSA": "lsa",
    "MatchTensor": "match_tensor",
    "MatchTensorSSM": "match_tensor",
    "PhraseTranslation": "translation.phrases",
    "PLSA": "topics.plsa",
    "Rocchio": "rocchio",
    "SSI": "ssi",
    "SSM": "ssm",
    "TFIDF": "tf_idf",
    "TopicCosine": "topics.topic_model",
    "WordTranslation": "translation.words",
}

__all__ = sorted(_FILES)


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
    globals()[name] = value
    return value
