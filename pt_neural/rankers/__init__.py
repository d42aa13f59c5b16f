"""What all rankers share: two kinds of ranker, their bases, and what they read, keep and retrieve."""

from pt_neural._lazy import lazy

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
