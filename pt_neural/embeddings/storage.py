"""Embedding spaces as files: words as plain text, both matrices as ``.npy``."""

from pathlib import Path
from typing import Any

import numpy as np

from pt_neural._artifacts import ArtifactError, read_json, read_metadata, write_json
from pt_neural.text import Vocabulary
from pt_neural.text.arrays import load_array


def write_spaces(
    directory: Path, vocabulary: Vocabulary, in_vectors: np.ndarray, out_vectors: np.ndarray, settings: dict[str, Any]
) -> None:
    """Write ``vocabulary/``, ``in.npy``, ``out.npy`` and ``config.json``, the settings."""
    vocabulary.save(directory / "vocabulary")
    np.save(directory / "in.npy", in_vectors, allow_pickle=False)
    np.save(directory / "out.npy", out_vectors, allow_pickle=False)
    write_json(directory / "config.json", settings)


def read_spaces(
    directory: Path, *, type: str, format: str
) -> tuple[Vocabulary, np.ndarray, np.ndarray, dict[str, Any]]:
    """Read what :func:`write_spaces` wrote, the matrices memory-mapped.

    Args:
        directory: The artifact's directory.
        type: The type that its metadata must name.
        format: The format that its metadata must name.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If a file is missing, damaged or does not fit the others; it is named.
    """
    read_metadata(directory, type=type, format=format)
    vocabulary = Vocabulary.load(directory / "vocabulary")
    in_vectors, out_vectors = (load_array(directory / name, dtype=np.float32, ndim=2) for name in ("in.npy", "out.npy"))
    try:
        check_shapes(vocabulary, in_vectors, out_vectors)
    except ValueError as error:
        raise ArtifactError(f"{directory / 'in.npy'}, out.npy and vocabulary do not fit: {error}") from None
    return vocabulary, in_vectors, out_vectors, read_json(directory / "config.json")


def check_shapes(vocabulary: Vocabulary, in_vectors: np.ndarray, out_vectors: np.ndarray) -> None:
    """Raise ValueError unless both matrices have one row a word and one number of dimensions."""
    if in_vectors.ndim != 2 or in_vectors.shape != out_vectors.shape or len(in_vectors) != len(vocabulary):
        raise ValueError(f"{len(vocabulary)} words, IN {in_vectors.shape}, OUT {out_vectors.shape}")
