"""The lines of JSON and TSV files, gzipped or plain; what is wrong with them is named by file and line."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number, from 1, and bytes of every line that is not blank, one at a time.

    Raises:
        ValueError: If the file is a broken gzip.
    """
    number = 0
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        try:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            message = f"{path}, after line {number}: broken gzip ({error}); copy or download the file again"
            raise ValueError(message) from None


def read_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line of a JSON Lines file in which each object has an ``_id``.

    Raises:
        ValueError: If a line is no JSON object or has no ``_id``.
    """
    for number, line in lines(path):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: not valid JSON ({error})") from None
        if not isinstance(record, dict) or record.get("_id") in (None, ""):
            raise ValueError(f'{path}, line {number}: expected a JSON object with an "_id"')
        yield number, record


def read_rows(path: Path, header: str, width: int) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every row of a TSV file.

    Args:
        path: The file.
        header: First field of the header line; such a line is passed over, and may be missing.
        width: How many fields a row has.

    Raises:
        ValueError: If a row is not UTF-8 or has more or fewer fields.
    """
    for number, line in lines(path):
        try:
            row = line.decode("utf-8-sig").rstrip("\r\n").split("\t")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 ({error})") from None
        if number == 1 and row[0] == header:
            continue
        if len(row) != width:
            raise ValueError(f"{path}, line {number}: expected {width} fields separated by tabs, found {len(row)}")
        yield number, row
