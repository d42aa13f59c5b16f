"""What all rankers share: two kinds of ranker, their bases, and what they read, keep and retrieve.

The package itself can be called: ``pn.rankers()`` is :func:`pt_neural.catalogue.rankers`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from pt_neural._lazy import lazy

if TYPE_CHECKING:
    import pandas as pd

# Loaded on first use: networks import torch, which DESM, LSA and TFIDF do without.
_FILES = {
    "DocumentRepresentations": "kept.document_representations",
    "InteractionRanker": "interaction",
    "KeptInteractionOptions": "options",
    "LearnedOptions": "options",
    "LanguageModelRanker": "language_model",
    "Mixture": "mixture",
    "Ranker": "ranker",
    "RankerOptions": "options",
    "RepresentationOptions": "options",
    "RepresentationRanker": "representation",
    "Retriever": "retriever",
    "TermVectors": "kept.term_vectors",
    "TowerOptions": "options",
    "TowerRanker": "towers",
    "Trained": "trained",
    "TrainedOptions": "options",
    "Vectors": "vectors",
    "load_ranker": "registry",
    "register": "registry",
}

__all__ = sorted(_FILES)

__getattr__ = lazy(__name__, _FILES)


class _CallableModule(ModuleType):
    """Lets ``pt_neural.rankers`` be both the package and the function of that name."""

    def __call__(self) -> "pd.DataFrame":
        return import_module("pt_neural.catalogue").rankers()


sys.modules[__name__].__class__ = _CallableModule
