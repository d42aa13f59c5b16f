"""Word embeddings with both of their matrices, IN and OUT; phrases treated as words."""

from pt_neural.embeddings.phrases import PhraseJoiner
from pt_neural.embeddings.spaces import EmbeddingSpaces, Space

__all__ = ["EmbeddingSpaces", "PhraseJoiner", "Space"]
