"""Rankers over word embeddings that are trained before and stay as they are."""

from pathlib import Path
from typing import Any

import numpy as np

from pt_neural._arguments import checked_choice
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers.fingerprint import fingerprint

SPACES = "spaces"  # folder of a saved model


class WithSpaces:
    """Mix-in of trained rankers that read word embeddings; it stands before the other bases.

    Args:
        spaces: The word embeddings.
        space: Which of their two vectors a word has.

    Raises:
        TypeError: If they are no embeddings.
        ValueError: If there is no such space.
    """

    def __init__(self, spaces: EmbeddingSpaces, space: Space, **options: Any):
        if not isinstance(spaces, EmbeddingSpaces):
            raise TypeError(f"spaces must be pn.EmbeddingSpaces, not {spaces!r:.80}")
        super().__init__(**options)
        self._spaces = spaces
        self.space = checked_choice("space", space, ("in", "out"))

    @property
    def spaces(self) -> EmbeddingSpaces:
        """The word embeddings, which are part of the model: they cannot be set."""
        return self._spaces

    @classmethod
    def _arguments(cls, config: Any, directory: Path) -> dict[str, Any]:
        return {**super()._arguments(config, directory), "spaces": EmbeddingSpaces(directory / SPACES)}

    def _preparation_identity(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        words = "\n".join(self.spaces.vocabulary.terms).encode(errors="surrogatepass")
        return {"vectors of words": self.spaces.vectors(self.space)}, [words]

    def _origin(self) -> list[Any]:
        arrays, words = WithSpaces._preparation_identity(self)
        return [*super()._origin(), fingerprint(self.space, arrays, *words)]

    def _save_preparation(self, directory: Path) -> None:
        self.spaces.save(directory / SPACES)
