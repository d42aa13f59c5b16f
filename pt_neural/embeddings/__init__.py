"""Word embeddings of which both matrices are kept: IN and OUT."""

from pt_neural.embeddings.spaces import EmbeddingSpaces, Space

__all__ = ["EmbeddingSpaces", "Space"]
