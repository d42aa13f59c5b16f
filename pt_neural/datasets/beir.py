"""Collections in the BEIR folder layout, read as a stream: documents, queries, judgements."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

BROKEN_GZIP = (EOFError, gzip.BadGzipFile, zlib.error)
_LONGEST_LINK = 200


@dataclass(frozen=True)
class BeirFolder:
    """The files of a test collection; JSON Lines files may be gzipped. Errors name file and line.

    Args:
        path: Folder with ``queries.jsonl`` and ``qrels/SPLIT.tsv``.
        corpus_path: Folder with ``corpus.jsonl``; None if it is ``path``.
    """

    path: Path
    corpus_path: Path | None = None

    @property
    def corpus_file(self) -> Path:
        """The file of documents, plain or gzipped."""
        return _find(self.corpus_path or self.path, "corpus")

    def documents(self) -> Iterator[dict[str, str]]:
        """The documents, as dicts of ``docno``, ``title``, ``text`` and other fields that are strings."""
        for _, record in _read_records(self.corpus_file):
            document = {"docno": str(record.pop("_id"))}
            document |= {name: str(record.pop(name, None) or "") for name in ("title", "text")}
            others = {name: value for name, value in record.items() if isinstance(value, str)}
            yield document | others | document  # whose docno is that of the judgements

    def queries(self) -> pd.DataFrame:
        """The queries of all splits, as a frame of ``qid`` and ``query``."""
        path, found = _find(self.path, "queries"), {}
        for number, record in _read_records(path):
            qid = str(record["_id"])
            if qid in found:
                raise ValueError(f"{path}, line {number}: query {qid!r} is already on line {found[qid][0]}")
            found[qid] = number, str(record.get("text") or "")
        texts = [text for _, text in found.values()]
        return pd.DataFrame({"qid": pd.Series(list(found), dtype=str), "query": pd.Series(texts, dtype=str)})

    def splits(self) -> list[str]:
        """Names of the splits that have judgements."""
        return sorted(file.stem for file in (self.path / "qrels").glob("[!.]*.tsv"))

    def qrels(self, split: str) -> pd.DataFrame:
        """The judgements of a split, as a frame of ``qid``, ``docno`` and ``label`` (int64)."""
        path, rows = self._qrels_file(split), []
        for number, (qid, docno, label) in _read_rows(path, "query-id", 3):
            try:
                rows.append((qid, docno, int(label)))
            except ValueError:
                raise ValueError(f"{path}, line {number}: the score {label!r} is not an integer") from None
        frame = pd.DataFrame(rows, columns=["qid", "docno", "label"])
        return frame.astype({"qid": str, "docno": str, "label": "int64"})

    def folds(self) -> pd.DataFrame:
        """The cross-validation folds in ``folds.tsv``, as a frame of ``qid`` and ``fold`` (a string)."""
        path = self.path / "folds.tsv"
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: this collection has no folds")
        rows = [row for _, row in _read_rows(path, "query-id", 2)]
        return pd.DataFrame(rows, columns=["qid", "fold"], dtype=str)

    def _qrels_file(self, split: str) -> Path:
        path, splits = self.path / "qrels" / f"{split}.tsv", self.splits()
        if not splits:
            raise FileNotFoundError(f"{path} is missing: {self.path} has no judgements (qrels/SPLIT.tsv)")
        if split not in splits:
            raise ValueError(f"{self.path} has no split {split!r}; it has: {', '.join(splits)}")
        return path


def _find(folder: Path, name: str) -> Path:
    for extension in (".jsonl", ".jsonl.gz"):
        if (folder / (name + extension)).exists():
            return _followed(folder / (name + extension))
    raise FileNotFoundError(f"{folder} has neither {name}.jsonl nor {name}.jsonl.gz")


def _followed(path: Path) -> Path:
    """Follow a symbolic link that Git wrote as a text file, as it does on systems without links."""
    if path.stat().st_size < _LONGEST_LINK:
        target = path.parent / path.read_bytes().decode("utf-8", "ignore").strip().replace("\0", "")
        if target.is_file():
            return target
    return path


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a plain or gzipped file that are not blank, with their numbers from 1."""
    number = 0
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        try:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, line
        except BROKEN_GZIP as error:
            raise broken_gzip(f"{path}, after line {number}", error) from None


def broken_gzip(place: str, error: Exception) -> ValueError:
    """What to raise where a gzipped file cannot be read any further; ``error`` is one of ``BROKEN_GZIP``."""
    return ValueError(f"{place}: broken gzip ({error}); copy or download the file again")


def _read_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file with their line numbers; each must have an ``_id``."""
    for number, line in lines(path):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: not valid JSON ({error})") from None
        if not isinstance(record, dict) or record.get("_id") in (None, ""):
            raise ValueError(f'{path}, line {number}: expected a JSON object with an "_id"')
        yield number, record


def _read_rows(path: Path, header: str, width: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of a TSV file of ``width`` fields with their line numbers, without the header line if there is one."""
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
