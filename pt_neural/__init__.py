"""Classic neural rankers, and the Lucene retrieval that they re-rank, as PyTerrier transformers.

Every public name is loaded on first use, so that ``import pt_neural`` costs nothing: no torch, no Java.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "LuceneIndex": "pt_neural.lucene",
    "LatentConceptExpansion": "pt_neural.lucene",
    "ForwardIndex": "pt_neural.text",
    "EmbeddingSpaces": "pt_neural.embeddings",
    "DESM": "pt_neural.models",
    "BLTM": "pt_neural.models",
    "LSA": "pt_neural.models",
    "LDA": "pt_neural.models",
    "PLSA": "pt_neural.models",
    "TFIDF": "pt_neural.models",
    "TopicCosine": "pt_neural.models",
    "WordTranslation": "pt_neural.models",
    "PhraseTranslation": "pt_neural.models",
    "Rocchio": "pt_neural.models",
    "DSSM": "pt_neural.models",
    "CLSM": "pt_neural.models",
    "CDSSM": "pt_neural.models",
    "DRMM": "pt_neural.models",
    "Duet": "pt_neural.models",
    "DuetDistributed": "pt_neural.models",
    "DuetLocal": "pt_neural.models",
    "MatchTensor": "pt_neural.models",
    "MatchTensorSSM": "pt_neural.models",
    "SSI": "pt_neural.models",
    "SSM": "pt_neural.models",
    "Training": "pt_neural.training",
    "Mixture": "pt_neural.rankers",
    "tune_alpha": "pt_neural.experiment",
    "explain": "pt_neural.explain",
}

_ROOMS = ("experiment",)  # public as a whole: pn.experiment.pca

__all__ = sorted({*_HOMES, *_ROOMS})


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
