"""Document vectors on disk: written once, read by docno as rows of a memory-mapped matrix."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pt_neural._artifacts import METADATA, atomic_directory, read_json, write_json
from pt_neural.text import ForwardIndex, read_documents

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

    from pt_neural.rankers.two_tower import TwoTower

Records = Iterator[dict[str, Any]]
FINGERPRINT = "model_fingerprint"  # in the metadata of vector indexes


class VectorTable:
    """The vectors of a ``pyterrier_dr.FlexIndex``, looked up by docno.

    Args:
        index: The index, or the path of its directory. Only the path is kept and pickled.
    """

    def __init__(self, index: "FlexIndex | str | os.PathLike"):
        path = getattr(index, "index_path", index)
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"vectors are what model.index(path, corpus) gave, or the path of it, not {index!r:.80}")
        self.path = os.path.abspath(os.path.expanduser(path))

    @cached_property
    def _content(self) -> tuple[list[str], np.ndarray]:
        docnos, matrix, _ = open_vectors(self.path).payload()
        return list(docnos), matrix

    @property
    def matrix(self) -> np.ndarray:
        """All vectors, memory-mapped, float32 of shape (documents, dimensions)."""
        return self._content[1]

    @cached_property
    def _fingerprint(self) -> str | None:
        return read_json(Path(self.path) / METADATA).get(FINGERPRINT)

    def require_made_by(self, model: "TwoTower") -> None:
        """Raise ValueError if these are the vectors of another model, as far as they and the model tell."""
        if not os.path.exists(self.path) or model.fingerprint() is None:
            return  # there is nothing yet to compare
        if self._fingerprint not in (None, model.fingerprint()):
            raise ValueError(
                f"the vectors in {self.path} were made by another model than this {model!r}, or by this one before it "
                f"was fitted anew; index the collection again: model.index({self.path!r}, corpus, overwrite=True)"
            )

    @cached_property
    def docnos(self) -> pd.api.extensions.ExtensionArray:
        """The docno of each row."""
        return pd.array(self._content[0], dtype="str")

    @cached_property
    def order(self) -> np.ndarray:
        """The place of each row when sorted by docno, int64."""
        return np.argsort(np.argsort(np.array(self._content[0], dtype=object), kind="stable"))

    @cached_property
    def empty(self) -> np.ndarray:
        """Rows whose vector is zero, int64."""
        return np.flatnonzero(~self.matrix.any(axis=1))

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {docno: row for row, docno in enumerate(self._content[0])}

    def rows(self, docnos: Sequence[str]) -> np.ndarray:
        """Row numbers of documents, int64 of shape ``(len(docnos),)``.

        Raises:
            ValueError: If a document has no vector.
        """
        rows = np.fromiter(map(self._rows.get, docnos, repeat(-1)), np.int64, len(docnos))
        if (rows < 0).any():
            unknown = sorted({str(docnos[i]) for i in np.flatnonzero(rows < 0)[:1000]})
            raise ValueError(
                f"{self.path} has no vectors for {', '.join(unknown[:3])}{' and others' if len(unknown) > 3 else ''}; "
                "index the collection that the candidates come from"
            )
        return rows

    def __reduce__(self) -> tuple:
        return VectorTable, (self.path,)


def open_vectors(path: str | os.PathLike) -> "FlexIndex":
    """Open a vector index; importing pyterrier_dr takes seconds, so it happens here and nowhere else."""
    from pyterrier_dr import FlexIndex

    return FlexIndex(os.fspath(path), verbose=False)


def require_same_dimensions(queries: np.ndarray, documents: np.ndarray) -> None:
    """Raise ValueError if query and document vectors cannot belong to one model."""
    if queries.shape[1] != documents.shape[1]:
        raise ValueError(
            f"query vectors have {queries.shape[1]} dimensions, document vectors {documents.shape[1]}; "
            "the vectors were made by another model"
        )


def write_vectors(
    path: str | os.PathLike, records: Records, *, fingerprint: str | None, overwrite: bool
) -> "FlexIndex":
    """Write ``{"docno": str, "doc_vec": float32 array}`` records to a new vector index, atomically.

    Args:
        path: Directory to create.
        records: The documents.
        fingerprint: That of the model that made them.
        overwrite: Replace a vector index that is there.

    Raises:
        FileExistsError: If there is something at ``path`` and ``overwrite`` is false, or no vector index.
        ValueError: If there is only one record, which FlexIndex cannot hold.
    """
    from pyterrier_dr import FlexIndex

    path = os.path.expanduser(path)
    kind = {"type": FlexIndex.ARTIFACT_TYPE, "format": FlexIndex.ARTIFACT_FORMAT}
    with atomic_directory(path, overwrite=overwrite, **kind) as temporary:
        FlexIndex(os.fspath(temporary), verbose=False).indexer(mode="overwrite").index(_several(iter(records)))
        write_json(temporary / METADATA, {**read_json(temporary / METADATA), FINGERPRINT: fingerprint})
    return open_vectors(path)


def _several(records: Records) -> Records:
    first, second = next(records), next(records, None)
    if second is None:
        raise ValueError("a vector index needs at least two documents; re-rank a single one by its text")
    yield from chain([first, second], records)


def corpus_vectors(
    corpus: Iterable[Mapping[str, Any]] | pd.DataFrame,
    read: Callable[[Mapping[str, Any]], str],
    encode: Callable[[list[str]], np.ndarray],
    batch_size: int,
) -> Records:
    """Encode a corpus batch by batch; ``read`` gives the text of a document."""
    documents = read_documents(corpus)
    while batch := list(islice(documents, batch_size)):
        vectors = encode([read(document) for _, document in batch])
        for (docno, _), vector in zip(batch, vectors, strict=True):
            yield {"docno": docno, "doc_vec": vector}


def forward_index_vectors(documents: ForwardIndex, encode: Callable[..., np.ndarray], batch_size: int) -> Records:
    """Encode the term sequences of a forward index batch by batch."""
    docnos, sequences = documents.docnos, documents.all()
    for start in range(0, len(docnos), batch_size):
        rows = np.arange(start, min(start + batch_size, len(docnos)))
        vectors = encode(sequences.take(rows), documents.vocabulary)
        for row, vector in zip(rows, vectors, strict=True):
            yield {"docno": docnos[row], "doc_vec": vector}
