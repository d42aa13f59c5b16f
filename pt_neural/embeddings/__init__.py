"""Word embeddings with both of their matrices, IN and OUT."""

from pt_neural.embeddings.spaces import EmbeddingSpaces, Space

__all__ = ["EmbeddingSpaces", "Space"]
