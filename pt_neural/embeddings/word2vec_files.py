"""The file formats of word2vec: text and binary, gzipped or plain, and the published DESM embeddings."""

import gzip
import sys
import zlib
from array import array
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyterrier as pt

_CHUNK = 1 << 20
_PRINTED = bytes(range(32, 127)) + b"\t\r"
_NO_CONTROL = bytes(range(32, 127)) + bytes(range(128, 256)) + b"\t\r\n"


class Record(NamedTuple):
    """A word of a file with its vector, not yet parsed."""

    place: str  # for error messages
    word: str
    payload: bytes


class VectorFile:
    """Streams the words of a file; their vectors are parsed on demand. ValueError if the file is empty or broken.

    The format is detected: gzipped or plain; text separated by spaces or tabs, with or without a first line ``count
    dim``; or binary, which always has that line.
    """

    def __init__(self, path: str | Path, *, verbose: bool = False):
        self.path = Path(path)
        self.verbose = verbose
        with self._open() as file:
            first, rest = file.readline(), file.read(4096)
        self.count, self.dim = _header(first)
        self.has_header = self.dim is not None
        self.is_binary = self.has_header and _looks_binary(rest)
        if not self.has_header:
            self.dim = len(_split(first)[1].split())
        if self.dim == 0:
            raise ValueError(f"{self.path}, line 1: a word must be followed by its vector")

    def __iter__(self) -> Iterator[Record]:
        with self._open() as file:
            if self.has_header:
                file.readline()
            records = self._binary_records(file) if self.is_binary else self._text_records(file)
            bar = pt.tqdm(records, desc=self.path.name, unit="word", total=self.count, disable=not self.verbose)
            number = 0
            for number, record in enumerate(bar, 1):  # noqa: B007
                yield record
            if self.count is not None and number < self.count:
                raise ValueError(f"{self.path} is cut off: it holds {number:,} of {self.count:,} words")

    def parse(self, record: Record) -> array:
        """Parse the vector of a record, float32."""
        if self.is_binary:
            vector = array("f", record.payload)
            if sys.byteorder == "big":
                vector.byteswap()
        else:
            vector = self._parse_text(record)
        if not np.isfinite(np.frombuffer(vector, dtype=np.float32)).all():
            raise ValueError(f"{record.place}: the vector of {record.word!r} has a value that is not finite")
        return vector

    def _parse_text(self, record: Record) -> array:
        values = record.payload.split()
        if len(values) != self.dim:
            raise ValueError(f"{record.place}: {len(values)} values after {record.word!r}, not {self.dim}")
        try:
            return array("f", map(float, values))
        except ValueError as error:
            raise ValueError(f"{record.place}: {error}") from None

    def _text_records(self, file: BinaryIO) -> Iterator[Record]:
        for number, line in enumerate(file, 2 if self.has_header else 1):
            if line.strip():
                word, payload = _split(line)
                yield Record(f"{self.path}, line {number}", _decode(word), payload)

    def _binary_records(self, file: BinaryIO) -> Iterator[Record]:
        size = 4 * self.dim
        buffer, start = b"", 0
        for number in range(1, self.count + 1):
            place = f"{self.path}, word {number}"
            while (end := buffer.find(b" ", start)) < 0 or len(buffer) <= end + size:
                more = file.read(_CHUNK)
                if not more:
                    raise ValueError(f"{place} is cut off: the file holds fewer than {self.count:,} words")
                buffer, start = buffer[start:] + more, 0
            word = buffer[start:end].lstrip(b"\n")
            start = end + 1 + size
            yield Record(place, _decode(word), buffer[end + 1 : start])

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        with self.path.open("rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            try:
                yield gzip.GzipFile(fileobj=plain) if zipped else plain
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(f"{self.path} is not a whole gzip file: {error}") from None


def read_pair(
    in_path: str | Path, out_path: str | Path, *, vocabulary: Collection[str] | None, verbose: bool
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Read the vectors of the words in both files and in the vocabulary, if given, in the order of the first file.

    Returns the words and two float32 matrices (words, dim). ValueError if a file is broken, the dimensions differ, or
    no word remains.
    """
    in_file, out_file = VectorFile(in_path, verbose=verbose), VectorFile(out_path, verbose=verbose)
    if in_file.dim != out_file.dim:
        raise ValueError(f"{in_path} has {in_file.dim} dimensions, {out_path} has {out_file.dim}")
    in_rows, in_vectors = _read_wanted(in_file, vocabulary)
    out_rows, out_vectors = _read_wanted(out_file, in_rows)
    words = [word for word in in_rows if word in out_rows]
    if not words:
        wanted = "" if vocabulary is None else f" and in the vocabulary of {len(vocabulary):,} words"
        raise ValueError(f"no word is in {in_path} and in {out_path}{wanted}")
    return words, in_vectors[[in_rows[word] for word in words]], out_vectors[[out_rows[word] for word in words]]


def _read_wanted(file: VectorFile, vocabulary: Collection[str] | None) -> tuple[dict[str, int], np.ndarray]:
    """The row of each word, and the matrix; if a word is repeated, its first vector counts."""
    rows: dict[str, int] = {}
    values = array("f")
    for record in file:
        if (vocabulary is None or record.word in vocabulary) and record.word not in rows:
            values.extend(file.parse(record))
            rows[record.word] = len(rows)
    return rows, np.frombuffer(values, dtype=np.float32).reshape(-1, file.dim)


def _header(line: bytes) -> tuple[int, int] | tuple[None, None]:
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[0]), int(fields[1])
    return None, None


def _looks_binary(start: bytes) -> bool:
    """Tell binary from text by what follows the header: text has printed numbers and no control bytes."""
    values = _split(start.partition(b"\n")[0])[1]
    return bool(start.translate(None, _NO_CONTROL)) or not values or bool(values.translate(None, _PRINTED))


def _split(line: bytes) -> tuple[bytes, bytes]:
    """Cut a line after its word; words in tab-separated files may contain spaces."""
    word, _, values = line.partition(b"\t" if b"\t" in line else b" ")
    return word, values


def _decode(word: bytes) -> str:
    return word.decode("utf-8", errors="surrogateescape")
