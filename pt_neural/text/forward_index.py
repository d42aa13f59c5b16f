"""The term sequences of a whole collection, by docno."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import cached_property, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
import pyterrier as pt

from pt_neural._artifacts import (
    METADATA,
    atomic_directory,
    opened_lazily,
    read_metadata,
    require_unchanged,
    write_metadata,
)
from pt_neural._files import ArtifactError, GrowingArray, is_count, load_array, within
from pt_neural.cluster.building import build_by_shards, require_shards_for
from pt_neural.cluster.workers import Workers
from pt_neural.datasets.corpus_shards import CorpusShards
from pt_neural.datasets.docnos import DocnoTable, DocnoWriter, docno_table, refuse_unknown
from pt_neural.datasets.documents import read_documents, with_bar
from pt_neural.text.packed import PackedSequences
from pt_neural.text.term_spool import TermSpool, load_sequences
from pt_neural.text.tokens import FIELD_END, TEXT_FIELDS, join_fields, tokenise
from pt_neural.text.vocabulary import Vocabulary

_BLOCK = 65_536  # documents whose ends of fields are written or read at a time


class ForwardIndex(pt.Artifact):
    """The tokenised documents of a collection, memory-mapped, so that re-ranking by docno needs no text.

    Opening one reads a small file; documents, docnos and vocabulary are read on first use. It pickles as its path.

    Args:
        path: A directory that :meth:`build` wrote, or that :meth:`index` is to create.
        verify: Compare all files with the digests that were written with them, which reads them all. By default, only
            what ``from_url`` and ``from_hf`` have downloaded.

    Raises:
        ArtifactError: If the directory is damaged or holds something else.
        FileNotFoundError: On first use, if there is no such directory.

    Example::

        >>> index = ForwardIndex.build("docs.forward", [{"docno": "d1", "text": "A river, a city."}])
        >>> index.sequences(["d1"]).lengths
        array([4])
    """

    ARTIFACT_TYPE = "forward_index"
    ARTIFACT_FORMAT = "pt_neural"

    def __init__(self, path: str | os.PathLike, *, verify: bool | None = None):
        super().__init__(Path(path).expanduser().absolute())
        self._verify = verify
        with suppress(FileNotFoundError):  # it may be about to be built
            _ = self._metadata

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        kind = {"type": self.ARTIFACT_TYPE, "format": self.ARTIFACT_FORMAT}
        metadata = read_metadata(self.path, **kind, verify=self._verify)
        number, fields = metadata.get("num_documents"), metadata.get("fields", [])
        if not is_count(number) or not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
            raise ArtifactError(f"{self.path / METADATA} is damaged: it does not say num_documents and fields")
        return metadata

    def built(self) -> bool:
        """Whether there is an index at the path."""
        with suppress(FileNotFoundError):
            return bool(self._metadata)
        return False

    def index(self, iter: Iterable[Mapping[str, Any]], **options: Any) -> "ForwardIndex":
        """Build this index, as other artifacts of PyTerrier are built: ``ForwardIndex(path).index(corpus)``.

        Args:
            iter: Documents, as dicts or as a frame.
            **options: See :meth:`build`, which raises the same errors.
        """
        self.__dict__ = type(self).build(self.path, iter, **options).__dict__
        return self

    @classmethod
    def build(
        cls,
        path: str | os.PathLike,
        corpus_iter: Iterable[Mapping[str, Any]],
        *,
        fields: Sequence[str] = TEXT_FIELDS,
        overwrite: bool = False,
        verbose: bool = True,
        workers: int | Workers | None = None,
    ) -> "ForwardIndex":
        """Tokenise a collection, with only its vocabulary and 16 bytes a document in memory.

        Args:
            path: The directory to create; it appears only once it is complete.
            corpus_iter: Documents with ``docno`` and at least one of the fields; read once. If they are
                :class:`~pt_neural.CorpusShards`, an interrupted run is taken up by the next one.
            fields: The fields to tokenise, joined in this order.
            overwrite: Replace an index that is already at ``path``.
            verbose: Show a progress bar.
            workers: Processes of Ray that tokenise corpus shards; the index is the same.

        Raises:
            FileExistsError: If something is at ``path`` and ``overwrite`` is false.
            TypeError: If the corpus is not an iterable of dicts.
            ValueError: If there are no documents, if one has no docno or no field, or if a docno occurs twice.
        """
        path, kind = Path(path).expanduser(), {"type": cls.ARTIFACT_TYPE, "format": cls.ARTIFACT_FORMAT}
        require_shards_for(workers, corpus_iter)
        if isinstance(corpus_iter, CorpusShards):
            return build_by_shards(
                path,
                corpus_iter,
                partial(cls.build, fields=fields, verbose=False),
                partial(cls.merge, path, overwrite=overwrite),
                plan={"fields": list(fields)},
                kind=kind,
                overwrite=overwrite,
                workers=workers,
                verbose=verbose,
            )
        with atomic_directory(path, overwrite=overwrite, **kind) as directory:
            documents = with_bar(read_documents(corpus_iter), corpus_iter, desc="ForwardIndex", verbose=verbose)
            with TermSpool(directory) as spool, DocnoWriter(directory) as docnos, _FieldEnds(directory, fields) as ends:
                for docno, document in documents:
                    docnos.add(docno)
                    texts = join_fields(document, fields, mark_ends=True).split(FIELD_END)
                    tokens = list(map(tokenise, texts))
                    ends.add(list(accumulate(map(len, tokens))))
                    spool.append(list(chain.from_iterable(tokens)))
                spool.finish().save(directory / "vocabulary")
            write_metadata(directory, **kind, num_documents=len(spool), fields=list(fields))
        return cls(path)

    @classmethod
    def merge(
        cls, path: str | os.PathLike, parts: Sequence["ForwardIndex | str | os.PathLike"], *, overwrite: bool = False
    ) -> "ForwardIndex":
        """Join the forward indexes of the parts of a collection; its files are those of an index of the whole.

        Args:
            path: The directory to create; it appears only once it is complete.
            parts: Indexes of the same fields, or their paths, in the order of the collection.
            overwrite: Replace an index that is already at ``path``.

        Raises:
            FileExistsError: If something is at ``path`` and ``overwrite`` is false.
            ValueError: If there are no parts, if their fields differ, or if a docno occurs twice.
        """
        path, kind = Path(path).expanduser(), {"type": cls.ARTIFACT_TYPE, "format": cls.ARTIFACT_FORMAT}
        places = [Path(getattr(part, "path", part)) for part in parts]
        opened = [cls(place) for place in places]
        if len({index.fields for index in opened}) != 1:
            raise ValueError(f"indexes of the same fields can be joined, not {[index.fields for index in opened]}")
        vocabulary = Vocabulary.union(
            cls(place).vocabulary for place in places
        )  # each is read again, and never two at a time
        with atomic_directory(path, overwrite=overwrite, **kind) as directory:
            vocabulary.save(directory / "vocabulary")
            fields = list(opened[0].fields)
            with DocnoWriter(directory) as docnos, _Arrays(directory, len(fields)) as arrays:
                for place in places:
                    index = cls(place)
                    docnos.extend(index.docnos)
                    arrays.add(index.all(), index.vocabulary.mapping_to(vocabulary))
            for index in opened:
                require_unchanged(index.path, index._metadata)
            write_metadata(directory, **kind, num_documents=vocabulary.num_documents, fields=fields)
        return cls(path)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that were tokenised."""
        return tuple(self._metadata.get("fields", ()))

    @opened_lazily
    def docnos(self) -> DocnoTable:
        """The docnos on disk, in the order of the collection; a list of them is ``list(index.docnos)``."""
        return docno_table(self.path, len(self))

    @opened_lazily
    def vocabulary(self) -> Vocabulary:
        """All terms, with their collection and document frequencies."""
        vocabulary = Vocabulary.load(self.path / "vocabulary")
        if vocabulary.collection_frequency is None or vocabulary.document_frequency is None:
            raise ArtifactError(f"{self.path / 'vocabulary' / 'counts.json'} is damaged: no frequencies")
        return vocabulary

    @opened_lazily
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
        if ends.shape != (len(self), len(self.fields)) or not _fit(ends, sequences.offsets):
            raise ArtifactError(f"{self.path / 'field_ends.npy'} does not fit the other files")
        return PackedSequences(sequences.terms, sequences.offsets, ends)

    def all(self) -> PackedSequences:
        """The term sequences of all documents, memory-mapped, in the order of :attr:`docnos`."""
        return self._all

    @cached_property
    def _all(self) -> PackedSequences:
        return self._known(self._sequences)

    def _known(self, sequences: PackedSequences) -> PackedSequences:
        """Sequences as they are; ArtifactError if the vocabulary does not have their terms.

        They are checked when they are read: whoever needs a few documents of a huge collection does not wait for all.
        """
        if not within(sequences.terms, len(self.vocabulary)):
            raise ArtifactError(
                f"{self.path / 'terms.npy'} is damaged: it holds terms that the vocabulary does not have"
            )
        return sequences

    def rows(self, docnos: Iterable[str]) -> np.ndarray:
        """The rows of documents, int64, with -1 for unknown docnos; takes a list, an array or a column of a frame."""
        return self.docnos.rows(docnos)

    def known_rows(self, docnos: Sequence[str]) -> np.ndarray:
        """The rows of documents, int64; ValueError if a docno is not in the index."""
        rows = self.rows(docnos)
        if (rows < 0).any():
            advice = (
                "build the index over the collection that was retrieved from: "
                "ForwardIndex.build(path, corpus_iter, overwrite=True)"
            )
            refuse_unknown(np.asarray(docnos, dtype=object)[rows < 0], repr(self), advice)
        return rows

    def sequences(self, docnos: Sequence[str]) -> PackedSequences:
        """The term sequences of documents, in the order of the docnos.

        Args:
            docnos: A list, an array or a column of a frame; repeated docnos are fine.

        Raises:
            ValueError: If a docno is not in the index.
        """
        return self._known(self._sequences.take(self.known_rows(docnos)))

    def __len__(self) -> int:
        return self._metadata["num_documents"]

    def __bool__(self) -> bool:
        return True  # even if it is not built yet

    def __reduce__(self) -> tuple:
        return partial(ForwardIndex, verify=False), (str(self.path),)

    def __repr__(self) -> str:
        size = f"{len(self):,} documents" if self.built() else "not built"
        return f"ForwardIndex({Path(self.path).name!r}, {size})"


class _FieldEnds:
    """Writes where the fields of each document end."""

    def __init__(self, directory: Path, fields: Sequence[str]):
        self._file = GrowingArray(directory / "field_ends.npy", np.int32, columns=len(fields))
        self._pending: list[list[int]] = []

    def __enter__(self) -> "_FieldEnds":
        return self

    def add(self, ends: list[int]) -> None:
        self._pending.append(ends)
        if len(self._pending) == _BLOCK:
            self._flush()

    def __exit__(self, kind: type | None, *_: Any) -> None:
        with closing(self._file):
            if kind is None:
                self._flush()

    def _flush(self) -> None:
        self._file.append(np.array(self._pending, dtype=np.int32))
        self._pending.clear()


class _Arrays:
    """Writes the arrays of a forward index, sequences after sequences."""

    def __init__(self, directory: Path, num_fields: int):
        self._terms = GrowingArray(directory / "terms.npy", np.int32)
        self._offsets = GrowingArray(directory / "offsets.npy", np.int64)
        self._offsets.append(np.zeros(1))
        self._ends = GrowingArray(directory / "field_ends.npy", np.int32, columns=num_fields)

    def __enter__(self) -> "_Arrays":
        return self

    def add(self, sequences: PackedSequences, ids: np.ndarray) -> None:
        """Write sequences whose term ``i`` is the term ``ids[i]`` of the index."""
        for start in range(0, len(sequences), _BLOCK):
            offsets = sequences.offsets[start : start + _BLOCK + 1]
            self._offsets.append(len(self._terms) + offsets[1:] - offsets[0])
            self._terms.append(ids[sequences.terms[offsets[0] : offsets[-1]]])
            self._ends.append(sequences.field_ends[start : start + _BLOCK])

    def __exit__(self, *exception: object) -> None:
        with ExitStack() as files:  # all of them are closed, even if the disk is full
            for array in (self._terms, self._offsets, self._ends):
                files.callback(array.close)


def _fit(ends: np.ndarray, offsets: np.ndarray) -> bool:
    """Whether fields end one after the other, and the last one of each document where the next document starts."""
    blocks = (slice(start, start + _BLOCK) for start in range(0, len(ends), _BLOCK))
    return all(
        (ends[block, -1] == offsets[1:][block] - offsets[:-1][block]).all()
        and (ends[block, 0] >= 0).all()
        and (ends[block, 1:] >= ends[block, :-1]).all()
        for block in blocks
    )
