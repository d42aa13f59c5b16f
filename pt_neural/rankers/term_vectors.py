"""The documents of a collection as a bilinear ranker multiplies them, kept on disk."""

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural._artifacts import METADATA, ArtifactError, atomic_directory, read_metadata, write_metadata
from pt_neural.rankers.kept_table import FINGERPRINT, KeptTable
from pt_neural.rankers.postings import write_postings
from pt_neural.rankers.term_vectors_writer import write_documents
from pt_neural.rankers.vectors import VectorTable, open_vectors
from pt_neural.rankers.weighed import Weighed
from pt_neural.text.arrays import load_array
from pt_neural.text.vocabulary import read_lines

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

COUNTS = ("documents", "terms", "weights")


class TermVectors(pt.Artifact, KeptTable):
    """The documents of a collection as a model weighs them, memory-mapped; pickles as its path.

    The weights of each document's terms are kept twice, by document and by term, and latent vectors, where the model
    has them, as a ``pyterrier_dr.FlexIndex``. Nothing is read before it is used.

    Args:
        path: A directory that the ``index`` of a ranker wrote.

    Raises:
        FileNotFoundError: On first use, if there is no such directory.
        ArtifactError: On first use, if the directory is damaged or holds something else.

    Example::

        vectors = tfidf.index("pydocs.terms", docs.get_corpus_iter())
        tfidf.retriever(vectors).search("pairwise distance")
        vectors.terms  # documents by terms, a csr matrix
    """

    ARTIFACT_TYPE = "term_vectors"
    ARTIFACT_FORMAT = "pt_neural"

    def __init__(self, path: str | os.PathLike):
        super().__init__(Path(path).expanduser().absolute())

    @classmethod
    def of(cls, vectors: "TermVectors | str | os.PathLike") -> "TermVectors":
        """Kept vectors, given as such or by their path.

        Raises:
            TypeError: If they are something else.
        """
        if isinstance(vectors, cls):
            return vectors
        if not isinstance(vectors, str | os.PathLike):
            raise TypeError(f"vectors are what model.index(path, corpus) gave, or the path of it, not {vectors!r:.80}")
        return cls(vectors)

    @classmethod
    def build(
        cls,
        path: str | os.PathLike,
        batches: Iterable[tuple[list[str], Weighed]],
        *,
        fingerprint: str | None,
        overwrite: bool,
    ) -> "TermVectors":
        """Write the vectors of a collection; a batch of documents at a time is in memory.

        Args:
            path: Directory to create; it appears when it is whole.
            batches: Docnos and weights of some documents at a time. All have latent vectors, or none.
            fingerprint: That of the model that made them.
            overwrite: Replace kept vectors that are there.

        Raises:
            FileExistsError: If something else is at ``path``, or if ``overwrite`` is false.
            ValueError: If there is only one document, and it has a latent vector.
        """
        path, kind = Path(path).expanduser(), {"type": cls.ARTIFACT_TYPE, "format": cls.ARTIFACT_FORMAT}
        with atomic_directory(path, overwrite=overwrite, **kind) as directory:
            counts = write_documents(directory, batches, fingerprint)
            write_metadata(directory, **kind, **counts, **{FINGERPRINT: fingerprint})
            write_postings(directory, cls(directory).terms)
        return cls(path)

    @cached_property
    def _metadata(self) -> dict:
        metadata = read_metadata(self.path, type=self.ARTIFACT_TYPE, format=self.ARTIFACT_FORMAT)
        if not all(isinstance(metadata.get(name), int) for name in COUNTS) or "latent" not in metadata:
            raise ArtifactError(f"{self.path / METADATA} is damaged: it does not say {', '.join(COUNTS)} or latent")
        return metadata

    @cached_property
    def docno_list(self) -> list[str]:
        """The docno of each document."""
        number, docnos = len(self), read_lines(self.path / "docnos.txt")
        if len(docnos) != number:
            raise ArtifactError(f"{self.path / 'docnos.txt'} is damaged: {len(docnos)} docnos, {number} documents")
        return docnos

    @cached_property
    def terms(self) -> csr_array:
        """Weights of each document's terms, float32 of shape ``(documents, terms)``."""
        return self._matrix("rows", len(self), self._metadata["terms"])

    @cached_property
    def postings(self) -> csr_array:
        """The same by term, float32 of shape ``(terms, documents)``."""
        return self._matrix("postings", self._metadata["terms"], len(self))

    @cached_property
    def dense(self) -> "FlexIndex | None":
        """The latent vectors; None if the model has none."""
        return open_vectors(self.path / "latent") if self._metadata["latent"] else None

    @cached_property
    def weighed(self) -> Weighed:
        """All documents, memory-mapped."""
        return Weighed(self._latent() if self._metadata["latent"] else None, self.terms)

    @cached_property
    def unknown(self) -> np.ndarray:
        """Numbers of the documents without any word that the model knows, int64."""
        wordless = np.flatnonzero(np.diff(self.terms.indptr) == 0)
        return wordless[~self.weighed.take(wordless).known()]

    def _latent(self) -> np.ndarray:
        path = self.path / "latent"
        try:
            matrix = VectorTable(path).matrix
        except (OSError, ValueError, KeyError) as error:  # as pyterrier_dr has them
            raise ArtifactError(f"{path} is damaged: {error}") from None
        if len(matrix) != len(self):
            raise ArtifactError(f"{path} is damaged: it holds {len(matrix)} vectors, not {len(self)}")
        return matrix

    def _matrix(self, name: str, rows: int, columns: int) -> csr_array:
        lengths = {"weights": self._metadata["weights"], "indices": self._metadata["weights"], "offsets": rows + 1}
        kinds = {"weights": np.float32, "indices": np.int32, "offsets": np.int64}
        parts = {}
        for part, length in lengths.items():
            path = self.path / f"{name}_{part}.npy"
            parts[part] = np.asarray(load_array(path, dtype=kinds[part]))
            if len(parts[part]) != length:
                raise ArtifactError(f"{path} is damaged: it holds {len(parts[part])} numbers, not {length}")
        offsets = parts["offsets"]
        if offsets[0] != 0 or offsets[-1] != lengths["weights"] or (np.diff(offsets) < 0).any():
            raise ArtifactError(f"{self.path / f'{name}_offsets.npy'} is damaged: its numbers do not rise from 0")
        return csr_array((parts["weights"], parts["indices"], offsets), shape=(rows, columns))

    def __len__(self) -> int:
        return self._metadata["documents"]

    def __reduce__(self) -> tuple:
        return TermVectors, (str(self.path),)

    def __repr__(self) -> str:
        return f"TermVectors({Path(self.path).name!r})"
