"""The docnos of a collection on disk: memory-mapped, found by number or by name, in no memory to speak of."""

import mmap
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pt_neural._files import ArtifactError, GrowingArray, load_array, map_bytes, write_array
from pt_neural._frames import tie_order

BLOCK = 8192  # docnos hashed, written or read at a time
LONG = 64  # bytes of a docno
NAMES, OFFSETS, HASHES, ROWS = "docnos.txt", "docnos.offsets.npy", "docnos.hashes.npy", "docnos.rows.npy"


class DocnoTable:
    """The docno of each document by its number, and the number by its docno; pickles as its directory.

    A docno is found by a 64-bit hash: hashes lie on disk in ascending order, each with the number of its document, and
    what is found is compared letter by letter.

    Args:
        directory: Where a :class:`DocnoWriter` has written.

    Raises:
        ArtifactError: If a file is missing or damaged.

    Example::

        >>> with DocnoWriter(".") as docnos:
        ...     docnos.extend(["d1", "d2"])
        >>> DocnoTable(".").rows(["d2", "d3"])
        array([ 1, -1])
    """

    def __init__(self, directory: str | Path):
        self.directory = Path(directory)
        self._names: mmap.mmap | bytes = map_bytes(self.directory / NAMES)
        self._letters = np.frombuffer(self._names, dtype=np.uint8)
        self._offsets = np.asarray(load_array(self.directory / OFFSETS, dtype=np.int64))
        self._hashes = np.asarray(load_array(self.directory / HASHES, dtype=np.uint64))
        self._rows = np.asarray(load_array(self.directory / ROWS, dtype=np.int64))
        if not len(self._hashes) == len(self._rows) == len(self._offsets) - 1:
            raise ArtifactError(f"{self.directory} is damaged: its files {OFFSETS}, {HASHES} and {ROWS} do not fit")
        if self._offsets[-1] != len(self._names):
            raise ArtifactError(f"{self.directory / NAMES} is damaged: it does not end where {OFFSETS} says")
        if len(self) and self.rows(self[:1])[0] != 0:
            raise ArtifactError(f"{self.directory / HASHES} is damaged: it does not fit {NAMES}")

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK):
            yield from self[start : start + BLOCK]

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return self._read(np.arange(*place.indices(len(self))))
        if not -len(self) <= place < len(self):
            raise IndexError(f"document {place}, but there are {len(self)}")
        return self._read(np.array([place % len(self)]))[0]

    def __contains__(self, docno: object) -> bool:
        return bool(self.rows([docno])[0] >= 0)

    def take(self, rows: np.ndarray) -> pd.api.extensions.ExtensionArray:
        """The docnos of documents, as frames hold them; ``rows`` are their numbers, int64, in any order."""
        distinct, places = np.unique(rows, return_inverse=True)
        return pd.array(self._read(distinct), dtype="str").take(places)

    def rows(self, docnos: Iterable[Any]) -> np.ndarray:
        """The numbers of documents, int64, with -1 for unknown docnos; takes a list, an array or a column."""
        names = np.empty(len(docnos := list(docnos)), dtype=object)
        names[:] = docnos
        result = np.full(len(names), -1, dtype=np.int64)
        hashes = hash_docnos(names)
        places, open_ones = np.searchsorted(self._hashes, hashes), np.arange(len(names))
        while len(open_ones):  # once, unless two docnos have the same hash
            open_ones = open_ones[places[open_ones] < len(self)]
            open_ones = open_ones[self._hashes[places[open_ones]] == hashes[open_ones]]
            rows = self._rows[places[open_ones]]
            self._check(rows)
            equal = np.array([a == b for a, b in zip(self._read(rows), names[open_ones], strict=True)], dtype=bool)
            result[open_ones[equal]] = rows[equal]
            open_ones = open_ones[~equal]
            places[open_ones] += 1
        return result

    def tie_order(self, rows: np.ndarray) -> np.ndarray:
        """The place of each of these documents among equal scores, int64: in descending order of docno."""
        distinct, places = np.unique(rows, return_inverse=True)
        starts, ends = self._places(distinct)
        width = int((ends - starts).max(initial=1))
        if width > LONG:
            return tie_order(np.array(self._read(distinct), dtype=object))[places]
        letters = np.zeros((len(distinct), width), dtype=np.uint8)
        for place in range(0, len(distinct), BLOCK):
            block = slice(place, place + BLOCK)
            columns = starts[block, None] + np.arange(width)  # (documents, width)
            inside = columns < ends[block, None]
            letters[block][inside] = self._letters[columns[inside]]
        return tie_order(letters.view(f"S{width}").ravel())[places]  # UTF-8 sorts as the text does

    def _check(self, rows: np.ndarray) -> None:
        if ((rows < 0) | (rows >= len(self))).any():
            raise ArtifactError(f"{self.directory / ROWS} is damaged: it names documents that do not exist")

    def _places(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where docnos start and end, without their line breaks."""
        starts, ends = self._offsets[rows], self._offsets[rows + 1] - 1
        if ((starts < 0) | (starts > ends) | (ends >= len(self._names))).any():
            raise ArtifactError(f"{self.directory / OFFSETS} is damaged: its numbers do not rise")
        return starts, ends

    def _read(self, rows: np.ndarray) -> list[str]:
        starts, ends = self._places(rows)
        names = self._names
        try:
            return [names[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        except UnicodeDecodeError as error:
            raise ArtifactError(f"{self.directory / NAMES} is damaged: {error}") from None

    def __reduce__(self) -> tuple:
        return DocnoTable, (self.directory,)

    def __repr__(self) -> str:
        return f"DocnoTable({self.directory.name!r}, {len(self):,} docnos)"


def docno_table(directory: str | Path, number: int) -> DocnoTable:
    """A table of so many docnos; ArtifactError if there is another number of them."""
    table = DocnoTable(directory)
    if len(table) != number:
        raise ArtifactError(f"{table.directory / NAMES} is damaged: {len(table)} docnos, {number} documents")
    return table


class DocnoWriter:
    """A context that writes a :class:`DocnoTable` to an existing directory; docnos hold no line break.

    On leaving it, 16 bytes a document are in memory. ValueError if a docno occurs twice; with ``unique=False``, it
    stands for the first of these documents.
    """

    def __init__(self, directory: str | Path, *, unique: bool = True):
        self.directory = Path(directory)
        self.unique = unique
        self._pending: list[str] = []

    def __enter__(self) -> "DocnoWriter":
        self._names = (self.directory / NAMES).open("wb")
        self._offsets = GrowingArray(self.directory / OFFSETS, np.int64)
        self._offsets.append(np.zeros(1))
        self._hashes = GrowingArray(self.directory / ROWS, np.uint64)  # until rows take the place of hashes
        return self

    def add(self, docno: str) -> None:
        """Add the docno of the next document."""
        self._pending.append(docno)
        if len(self._pending) == BLOCK:
            self._flush()

    def extend(self, docnos: Iterable[str]) -> None:
        """Add the docnos of the next documents."""
        for docno in docnos:
            self.add(docno)

    def __exit__(self, kind: type | None, *_: Any) -> None:
        with ExitStack() as closing:  # all of them, even if the disk is full
            for file in (self._names, self._offsets, self._hashes):
                closing.callback(file.close)
            if kind is None:
                self._flush()
        if kind is None:
            self._sort()

    def _flush(self) -> None:
        lines = [f"{docno}\n".encode() for docno in self._pending]
        ends = np.cumsum([len(line) for line in lines], dtype=np.int64)
        self._offsets.append(self._names.tell() + ends)
        self._names.write(b"".join(lines))
        self._hashes.append(hash_docnos(np.array(self._pending, dtype=object)))
        self._pending.clear()

    def _sort(self) -> None:
        hashes = load_array(self.directory / ROWS, dtype=np.uint64, memory_map=False)
        rows = np.argsort(hashes, kind="stable")
        sorted_hashes = GrowingArray(self.directory / HASHES, np.uint64)
        for start in range(0, len(rows), BLOCK):
            sorted_hashes.append(hashes[rows[start : start + BLOCK]])
        sorted_hashes.close()
        del hashes
        write_array(self.directory / ROWS, rows)
        del rows
        if self.unique:
            self._refuse_duplicates()

    def _refuse_duplicates(self) -> None:
        table = DocnoTable(self.directory)
        for start in range(0, len(table), 64 * BLOCK):
            stop = min(start + 64 * BLOCK + 1, len(table))
            for place in start + np.flatnonzero(np.diff(table._hashes[start:stop]) == 0):
                first, second = (table[int(row)] for row in table._rows[place : place + 2])
                if first == second:
                    raise ValueError(f"docno {first!r} occurs twice; docnos must be unique")


class DistinctDocnos:
    """Finds docnos that occur twice while documents pass, in 8 bytes a document (16 while it sorts).

    Docnos are compared by a 64-bit hash. The chance that two different ones are ever taken for the same is one in
    400,000 for ten million documents.
    """

    def __init__(self):
        self._pending: list[str] = []
        self._runs: list[np.ndarray] = []  # sorted hashes, each run at least twice as long as the next
        self._num_docnos = 0

    def add(self, docno: str) -> None:
        """Add a docno; ValueError if this one or one of those shortly before it has occurred already."""
        self._pending.append(docno)
        if len(self._pending) == BLOCK:
            self.check()

    def check(self) -> None:
        """Raise ValueError if any docno so far has occurred twice."""
        hashes = hash_docnos(np.array(self._pending, dtype=object))
        order = np.argsort(hashes, kind="stable")
        run = hashes[order]
        repeated = np.r_[False, run[1:] == run[:-1]][: len(run)]
        for earlier in self._runs:
            places = np.minimum(np.searchsorted(earlier, run), len(earlier) - 1)
            repeated |= earlier[places] == run
        if repeated.any():
            place = int(order[repeated].min())
            raise ValueError(
                f"docno {self._pending[place]!r} occurs twice, the second time in document "
                f"{self._num_docnos + place} (from 0); docnos must be unique"
            )
        self._num_docnos += len(self._pending)
        self._pending.clear()
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
            run.sort(kind="stable")  # which merges sorted parts
        if len(run):
            self._runs.append(run)


def hash_docnos(docnos: np.ndarray) -> np.ndarray:
    """A hash of each docno, uint64, the same on all machines; ``docnos`` is an array of objects."""
    try:
        return pd.util.hash_array(docnos, categorize=False)
    except UnicodeEncodeError:  # half a character, which no docno of a collection holds
        whole = [str(docno).encode(errors="replace").decode() for docno in docnos]
        return pd.util.hash_array(np.array(whole, dtype=object), categorize=False)


def refuse_unknown(docnos: Iterable[Any], where: object, advice: str) -> None:
    """Raise ValueError if there are any of these docnos, all of which were looked for somewhere and not found.

    Args:
        docnos: The docnos, as often as they were looked for.
        where: What they are not in.
        advice: What to do, unless they are numbers.
    """
    unknown = pd.unique(pd.Series(list(docnos), dtype=object)).tolist()
    if not unknown:
        return
    if any(isinstance(docno, Real) and not pd.isna(docno) for docno in unknown):
        # They are not converted: frames with them could not be joined with others, and 007 may have been read as 7.
        advice = (
            "docnos are strings, not numbers: read them as such, pd.read_csv(..., dtype={'docno': str}), or convert "
            "the column with astype(str)"
        )
    if len(unknown) == 1:
        raise ValueError(f"docno {unknown[0]!r} is not in {where}; {advice}")
    examples = ", ".join(map(repr, unknown[:5])) + (", .." if len(unknown) > 5 else "")
    raise ValueError(f"{len(unknown):,} docnos are not in {where}, such as {examples}; {advice}")
