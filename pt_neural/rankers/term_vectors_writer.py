"""Writes the weights of documents, batch by batch, as they come."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from pt_neural.rankers.growing_array import GrowingArray
from pt_neural.rankers.vectors import vector_records, write_vectors
from pt_neural.rankers.weighed import Weighed
from pt_neural.text.packed import offsets_of
from pt_neural.text.vocabulary import write_lines

Batches = Iterable[tuple[list[str], Weighed]]


def write_documents(directory: Path, batches: Batches, fingerprint: str | None) -> dict[str, int | bool]:
    """Write docnos, weights of terms by document, and latent vectors if there are any.

    Args:
        directory: An existing directory.
        batches: Docnos and weights of some documents at a time.
        fingerprint: That of the model that made them.

    Returns:
        The numbers of ``documents``, ``terms`` and ``weights``, and whether there are ``latent`` vectors.
    """
    batches = iter(batches)
    first = next(batches)
    with _Rows(directory, first[1].terms) as rows:
        written = rows.write(chain([first], batches))
        if first[1].latent is None:
            for _ in written:
                pass
        else:
            write_vectors(directory / "latent", vector_records(written), fingerprint=fingerprint, overwrite=False)
    return {**rows.counts(), "latent": first[1].latent is not None}


class _Rows:
    """Writes the lexical part of batches while they pass."""

    def __init__(self, directory: Path, terms: csr_array | None):
        self._directory = directory
        self._terms = 0 if terms is None else terms.shape[1]
        self._docnos: list[str] = []
        self._lengths: list[np.ndarray] = []
        self._weights = GrowingArray(directory / "rows_weights.npy", "float32")
        self._indices = GrowingArray(directory / "rows_indices.npy", "int32")

    def write(self, batches: Batches) -> Iterator[tuple[list[str], np.ndarray | None]]:
        """Write what passes, and hand on docnos and latent vectors."""
        for docnos, weighed in batches:
            self._docnos += docnos
            terms = csr_array((len(docnos), 0)) if weighed.terms is None else weighed.terms
            self._lengths.append(np.diff(terms.indptr))
            self._weights.append(terms.data)
            self._indices.append(terms.indices)
            yield docnos, weighed.latent

    def counts(self) -> dict[str, int]:
        weights = int(sum(lengths.sum() for lengths in self._lengths))
        return {"documents": len(self._docnos), "terms": self._terms, "weights": weights}

    def __enter__(self) -> "_Rows":
        return self

    def __exit__(self, *exception: object) -> None:
        self._weights.close()
        self._indices.close()
        if exception[0] is None:
            np.save(self._directory / "rows_offsets.npy", offsets_of(np.concatenate(self._lengths)))
            write_lines(self._directory / "docnos.txt", self._docnos)
