"""The term sequences of a whole collection, by docno."""

import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyterrier as pt

from pt_neural._artifacts import METADATA, ArtifactError, atomic_directory, load_array, read_metadata, write_metadata
from pt_neural.text.corpus import TermSpool, load_sequences, read_documents
from pt_neural.text.packed import PackedSequences
from pt_neural.text.tokens import FIELD_END, TEXT_FIELDS, join_fields, tokenise
from pt_neural.text.vocabulary import Vocabulary, read_lines, write_lines


class ForwardIndex(pt.Artifact):
    """The tokenised documents of a collection, memory-mapped, so that re-ranking by docno needs no text.

    Opening one reads a small file; documents, docnos and vocabulary are read on first use. It pickles as its path.

    Args:
        path: A directory that :meth:`build` wrote.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory is damaged or holds something else.

    Example::

        >>> index = ForwardIndex.build("docs.forward", [{"docno": "d1", "text": "A river, a city."}])
        >>> index.sequences(["d1"]).lengths
        array([4])
    """

    ARTIFACT_TYPE = "forward_index"
    ARTIFACT_FORMAT = "pt_neural"

    def __init__(self, path: str | os.PathLike):
        super().__init__(Path(path).expanduser().absolute())
        self._metadata = read_metadata(self.path, type=self.ARTIFACT_TYPE, format=self.ARTIFACT_FORMAT)
        if not isinstance(self._metadata.get("num_documents"), int):
            raise ArtifactError(f"{self.path / METADATA} is damaged: it does not say num_documents")

    @classmethod
    def build(
        cls,
        path: str | os.PathLike,
        corpus_iter: Iterable[Mapping[str, Any]],
        *,
        fields: Sequence[str] = TEXT_FIELDS,
        overwrite: bool = False,
        verbose: bool = True,
    ) -> "ForwardIndex":
        """Tokenise a collection, with only its vocabulary and docnos in memory.

        Args:
            path: The directory to create; it appears only once it is complete.
            corpus_iter: Documents with ``docno`` and at least one of the fields; read once.
            fields: The fields to tokenise, joined in this order.
            overwrite: Replace an index that is already at ``path``.
            verbose: Show a progress bar.

        Raises:
            FileExistsError: If something is at ``path`` and ``overwrite`` is false.
            TypeError: If the corpus is not an iterable of dicts.
            ValueError: If there are no documents, if one has no docno or no field, or if a docno occurs twice.
        """
        path, kind = Path(path).expanduser(), {"type": cls.ARTIFACT_TYPE, "format": cls.ARTIFACT_FORMAT}
        with atomic_directory(path, overwrite=overwrite, **kind) as directory:
            documents = pt.tqdm(read_documents(corpus_iter), desc="ForwardIndex", unit="doc", disable=not verbose)
            docnos: list[str] = []
            ends = array("i")
            with TermSpool(directory) as spool:
                for docno, document in documents:
                    docnos.append(docno)
                    texts = join_fields(document, fields, mark_ends=True).split(FIELD_END)
                    tokens = list(map(tokenise, texts))
                    ends.extend(accumulate(map(len, tokens)))
                    spool.append(list(chain.from_iterable(tokens)))
                spool.finish().save(directory / "vocabulary")
            np.save(directory / "field_ends.npy", np.array(ends, dtype=np.int32).reshape(-1, len(fields)))
            write_lines(directory / "docnos.txt", docnos)
            write_metadata(directory, **kind, num_documents=len(docnos), fields=list(fields))
        return cls(path)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that were tokenised."""
        return tuple(self._metadata.get("fields", ()))

    @cached_property
    def docnos(self) -> list[str]:
        """The docnos, in the order of the collection."""
        docnos = read_lines(self.path / "docnos.txt")
        if len(docnos) != len(self):
            raise ArtifactError(f"{self.path / 'docnos.txt'} is damaged: {len(docnos)} docnos, {len(self)} documents")
        return docnos

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """All terms, with their collection and document frequencies."""
        return Vocabulary.load(self.path / "vocabulary")

    @cached_property
    def _sequences(self) -> PackedSequences:
        try:
            sequences = load_sequences(self.path)
        except ArtifactError:
            raise
        except ValueError as error:
            raise ArtifactError(f"{self.path / 'offsets.npy'} does not fit terms.npy: {error}") from None
        if len(sequences) != len(self):
            raise ArtifactError(f"{self.path / 'offsets.npy'} is damaged: {len(sequences)} of {len(self)} documents")
        if not (self.path / "field_ends.npy").exists():
            raise ArtifactError(
                f"{self.path / 'field_ends.npy'} is missing: the index is damaged or from an earlier pt_neural; "
                "build it again: ForwardIndex.build(path, corpus, overwrite=True)"
            )
        ends = load_array(self.path / "field_ends.npy", dtype=np.int32, ndim=2)
        if ends.shape != (len(self), len(self.fields)) or (ends[:, -1] != sequences.lengths).any():
            raise ArtifactError(f"{self.path / 'field_ends.npy'} does not fit the other files")
        return PackedSequences(sequences.terms, sequences.offsets, ends)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {docno: row for row, docno in enumerate(self.docnos)}

    def all(self) -> PackedSequences:
        """The term sequences of all documents, memory-mapped, in the order of :attr:`docnos`."""
        return self._sequences

    def rows(self, docnos: Iterable[str]) -> np.ndarray:
        """The rows of documents, int64, with -1 for unknown docnos; takes a list, an array or a column of a frame."""
        docnos = docnos.tolist() if hasattr(docnos, "tolist") else docnos
        return np.fromiter(map(self._rows.get, docnos, repeat(-1)), dtype=np.int64)

    def known_rows(self, docnos: Sequence[str]) -> np.ndarray:
        """The rows of documents, int64; ValueError if a docno is not in the index."""
        rows = self.rows(docnos)
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            names = np.asarray(docnos, dtype=object)[unknown]
            examples = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
            raise ValueError(
                f"{len(names)} of the docnos are not in {self!r}: {examples}. Build the index over the collection that "
                "was retrieved from: ForwardIndex.build(path, corpus_iter, overwrite=True)"
            )
        return rows

    def sequences(self, docnos: Sequence[str]) -> PackedSequences:
        """The term sequences of documents, in the order of the docnos.

        Args:
            docnos: A list, an array or a column of a frame; repeated docnos are fine.

        Raises:
            ValueError: If a docno is not in the index.
        """
        return self._sequences.take(self.known_rows(docnos))

    def __len__(self) -> int:
        return self._metadata["num_documents"]

    def __reduce__(self) -> tuple:
        return ForwardIndex, (str(self.path),)

    def __repr__(self) -> str:
        return f"ForwardIndex({Path(self.path).name!r}, {len(self):,} documents)"
