"""A collection of documents cut into shards by count, to be read a shard at a time on any machine."""

import gzip
import hashlib
import json
import os
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural._artifacts import atomic_directory, write_metadata
from pt_neural.datasets.beir import BROKEN_GZIP, broken_gzip, lines
from pt_neural.datasets.documents import read_documents, with_bar

KIND = {"type": "corpus_shards", "format": "pt_neural"}
DOCNO_NAMES = ("docno", "_id", "id")  # the first of them that a record has names its document
_STEP = 4096  # lines between two offsets that are kept of a file


class CorpusShards:
    """Documents in files or in an ``ir_datasets`` collection, cut into shards of equal size, with nothing copied.

    It is a corpus as well: iterating gives all documents, for anything that takes ``get_corpus_iter()``. What is built
    from it a shard at a time, on one machine or several, takes up where it was interrupted. Pickles small.

    Args:
        source: One of

            - JSON Lines files, plain or gzipped, as a path, a list of paths, or a pattern such as ``"corpus/*.jsonl"``:
              a line is a document with a ``docno`` (or ``_id``, or ``id``) and text fields, as in BEIR;
            - a folder: all its files ``*.jsonl`` and ``*.jsonl.gz``, or only ``corpus.jsonl[.gz]`` in BEIR's layout;
            - files in TREC's SGML, with ``format="trec"``, also in folders of a folder;
            - ``"irds:NAME"``, a collection of ``ir_datasets``.
        documents_per_shard: The most documents of a shard. Default: a million.
        shards: The number of shards, in place of their size.
        format: How files are written.

    Raises:
        FileNotFoundError: If there are no such files.
        ValueError: If there are no documents, or fewer than shards; when it is read, if a line is not a document.

    Example::

        shards = pn.CorpusShards("msmarco/*.jsonl.gz", documents_per_shard=500_000)
        vectors = dssm.index("dssm.vectors", shards, workers=8)
    """

    def __init__(
        self,
        source: str | os.PathLike | Sequence[str | os.PathLike],
        *,
        documents_per_shard: int = 1_000_000,
        shards: int | None = None,
        format: Literal["jsonl", "trec"] = "jsonl",
    ):
        size = checked_number("documents_per_shard", documents_per_shard, int, least=1)
        if isinstance(source, str) and source.startswith("irds:"):
            self._sources: list[Any] = [_Collection(source)]
        elif format == "trec":
            self._sources = [_TrecFile(path) for path in _files(source, ("**/*",))]
        elif format == "jsonl":
            self._sources = [_LinesFile(path) for path in _files(source, ("*.jsonl", "*.jsonl.gz"))]
        else:
            raise ValueError(f"format={format!r}, but files are read as 'jsonl' or 'trec'")
        if not self.num_documents:
            raise ValueError(f"there are no documents in {source!r:.80}")
        self._number = (
            -(-self.num_documents // size) if shards is None else checked_number("shards", shards, int, least=1)
        )
        if self._number > self.num_documents:
            raise ValueError(f"shards={shards}, but there are only {self.num_documents} documents")

    @classmethod
    def spool(
        cls,
        directory: str | os.PathLike,
        corpus: Iterable[Mapping[str, Any]],
        *,
        documents_per_shard: int = 1_000_000,
        overwrite: bool = False,
        verbose: bool = True,
    ) -> "CorpusShards":
        """Write any documents to JSON Lines files in a new folder, atomically, so that they can be read in shards.

        Args:
            directory: The folder to create.
            corpus: Documents with ``docno``; read once. Values that are not strings become empty.
            documents_per_shard: The most documents of a shard, and of a file.
            overwrite: Replace documents that were spooled to this folder.
            verbose: Show a progress bar.

        Raises:
            FileExistsError: If the folder exists and ``overwrite`` is false, or if it holds something else.
            ValueError: If a docno is missing or occurs twice, or if there are no documents.
        """
        size = checked_number("documents_per_shard", documents_per_shard, int, least=1)
        directory = Path(directory).expanduser()
        documents = with_bar(read_documents(corpus), corpus, desc=f"spooling {directory.name}", verbose=verbose)
        records = ({**_as_strings(document), "docno": docno} for docno, document in documents)
        with atomic_directory(directory, overwrite=overwrite, **KIND) as temporary:
            for number, first in enumerate(records):
                with (temporary / f"{number:05}.jsonl").open("w", encoding="utf-8") as file:
                    for record in chain([first], islice(records, size - 1)):
                        file.write(json.dumps(record) + "\n")
            write_metadata(temporary, **KIND)
        return cls(directory, documents_per_shard=size)

    @cached_property
    def num_documents(self) -> int:
        """How many documents there are; counted when the shards are made."""
        return sum(len(source) for source in self._sources)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(len(source) for source in self._sources))

    def __len__(self) -> int:
        return self._number

    def shard(self, number: int) -> Iterator[dict[str, str]]:
        """The documents of a shard: dicts of strings, ``docno`` among them."""
        if not 0 <= number < len(self):
            raise IndexError(f"shard {number}, but there are {len(self)}")
        start, stop = (self.num_documents * place // len(self) for place in (number, number + 1))
        source = bisect_right(self._ends, start)
        while start < stop:
            first = self._ends[source] - len(self._sources[source])
            end = min(stop, self._ends[source])
            yield from self._sources[source].documents(start - first, end - start)
            start, source = end, source + 1

    def __iter__(self) -> Iterator[dict[str, str]]:
        for number in range(len(self)):
            yield from self.shard(number)

    def identity(self) -> dict[str, Any]:
        """What the shards are cut from and how, as JSON holds it: equal for the same files on another machine."""
        return {"sources": [source.identity() for source in self._sources], "shards": len(self)}

    def __repr__(self) -> str:
        return f"CorpusShards({self.num_documents:,} documents, {len(self)} shards)"


class _Collection:
    """A collection of ir_datasets."""

    def __init__(self, name: str):
        self.name = name
        collection = pt.get_dataset(name).irds_ref()
        counted = collection.docs_count()  # None if ir_datasets has neither its metadata nor its documents at hand
        self._count = sum(1 for _ in collection.docs_iter()) if counted is None else counted

    def __len__(self) -> int:
        return self._count

    def documents(self, start: int, count: int) -> Iterator[dict[str, str]]:
        for document in pt.get_dataset(self.name).get_corpus_iter(verbose=False, start=start, count=count):
            yield {name: value for name, value in document.items() if isinstance(value, str)}

    def identity(self) -> list[Any]:
        return [self.name, self._count]


class _File:
    """A file of documents."""

    def __init__(self, path: Path):
        self.path = path
        self._size = path.stat().st_size

    def identity(self) -> list[Any]:
        return [self.path.name, self._size]

    def _require_unchanged(self) -> None:
        if self.path.stat().st_size != self._size:
            raise ValueError(f"{self.path} has changed since it was cut into shards; make the shards anew")

    def _open(self) -> Any:
        self._require_unchanged()
        return gzip.open(self.path) if self.path.suffix == ".gz" else self.path.open("rb")


class _LinesFile(_File):
    """A JSON Lines file; of a plain one, every 4096th line can be found without reading those before it."""

    def __init__(self, path: Path):
        super().__init__(path)
        self._offsets = array("q")
        self._count = self._checksum = 0
        position = 0
        for line in self._read():
            if line.strip():
                if self._count % _STEP == 0:
                    self._offsets.append(position)
                self._count += 1
            position += len(line)
            self._checksum = zlib.crc32(line, self._checksum)

    def identity(self) -> list[Any]:
        return [*super().identity(), self._checksum]

    def __len__(self) -> int:
        return self._count

    def documents(self, start: int, count: int) -> Iterator[dict[str, str]]:
        skip, position = start, 0
        if self.path.suffix != ".gz":
            skip, position = start % _STEP, self._offsets[start // _STEP]
        lines = islice(filter(bytes.strip, self._read(position)), skip, skip + count)
        for number, line in enumerate(lines, start + 1):
            yield _document(line, f"{self.path}, document {number}")

    def _read(self, position: int = 0) -> Iterator[bytes]:
        """The lines of a plain file from a position on, or all of a gzipped one that are not blank."""
        self._require_unchanged()
        if self.path.suffix == ".gz":
            yield from (line for _, line in lines(self.path))
            return
        with self.path.open("rb") as file:
            file.seek(position)
            yield from file


class _TrecFile(_File):
    """A file in TREC's SGML, as ir_datasets parses it."""

    def __init__(self, path: Path):
        super().__init__(path)
        self._count = sum(1 for _ in self._parse())
        with path.open("rb") as file:
            self._checksum = hashlib.file_digest(file, "sha256").hexdigest()

    def identity(self) -> list[Any]:
        return [*super().identity(), self._checksum]

    def __len__(self) -> int:
        return self._count

    def documents(self, start: int, count: int) -> Iterator[dict[str, str]]:
        for document in islice(self._parse(), start, start + count):
            yield {"docno": document.doc_id, "text": document.text}

    def _parse(self) -> Iterator[Any]:
        from ir_datasets.formats import TrecDocs

        try:
            yield from TrecDocs(SimpleNamespace(stream=self._open, path=lambda force=True: self.path)).docs_iter()
        except BROKEN_GZIP as error:
            raise broken_gzip(str(self.path), error) from None


def _files(source: str | os.PathLike | Sequence[str | os.PathLike], patterns: Sequence[str]) -> list[Path]:
    """The files that a path, a pattern, a folder or a list of them names; the same order everywhere."""
    if not isinstance(source, str | os.PathLike):
        return list(chain.from_iterable(_files(one, patterns) for one in source))
    path = Path(source).expanduser()
    places = [path] if path.exists() else sorted(path.parent.glob(path.name))
    found = list(chain.from_iterable(_files_at(place, patterns) for place in places))
    if not found:
        raise FileNotFoundError(f"no file of documents at {source!r:.200}")
    return [file.absolute() for file in found]


def _files_at(path: Path, patterns: Sequence[str]) -> list[Path]:
    """A file, or the files of a folder."""
    if not path.is_dir():
        return [path]
    whole = [path / name for name in ("corpus.jsonl", "corpus.jsonl.gz") if (path / name).exists()]
    matches = chain.from_iterable(path.glob(pattern) for pattern in patterns)
    return whole[:1] or sorted({match for match in matches if match.is_file()})


def _document(line: bytes, where: str) -> dict[str, str]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where}: not valid JSON ({error})") from None
    named = [name for name in DOCNO_NAMES if isinstance(record, dict) and record.get(name) not in (None, "")]
    if not named:
        raise ValueError(f"{where}: expected a JSON object with {' or '.join(map(repr, DOCNO_NAMES))}")
    docno = str(record.pop(named[0]))
    return {"docno": docno, **_strings(record)}


def _as_strings(document: Mapping[str, Any]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else "" for name, value in document.items()}


def _strings(record: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in record.items() if isinstance(value, str)}
