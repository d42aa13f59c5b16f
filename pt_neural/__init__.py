"""Classic neural rankers, and the Lucene retrieval that they re-rank, as PyTerrier transformers.

Every public name is loaded on first use, so that ``import pt_neural`` costs nothing: no torch, no Java.
"""

from importlib import import_module
from typing import Any

from pt_neural import _forks  # noqa: F401 (which notices forks from now on)
from pt_neural.rankers.registry import RANKERS

__version__ = "0.1.0"

_HOMES = {
    **{row.name: row.module for row in RANKERS},
    "CDSSM": "pt_neural.models.clsm.clsm",  # what later papers call CLSM
    "CorpusShards": "pt_neural.datasets.corpus_shards",
    "EmbeddingSpaces": "pt_neural.embeddings",
    "ForwardIndex": "pt_neural.text",
    "LatentConceptExpansion": "pt_neural.lucene",
    "LuceneIndex": "pt_neural.lucene",
    "LuceneShards": "pt_neural.lucene",
    "Mixture": "pt_neural.rankers",
    "PhraseJoiner": "pt_neural.embeddings",
    "Training": "pt_neural.training",
    "explain": "pt_neural.explain",
    "on_ray": "pt_neural.cluster",
    "pseudo_queries": "pt_neural.training.pseudo_queries",
    "rankers": "pt_neural.catalogue",
    "tune_alpha": "pt_neural.experiment",
    "verify": "pt_neural.verification",
}

_ROOMS = ("cluster", "experiment")  # public as a whole: pn.experiment.pca

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
