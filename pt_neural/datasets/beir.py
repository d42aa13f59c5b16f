"""The BEIR folder layout, read as a stream: documents, queries, judgements."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pt_neural.datasets._files import read_records, read_rows

_LONGEST_LINK = 200


@dataclass(frozen=True)
class BeirFolder:
    """Where the files of one test collection are, and what is in them.

    Args:
        path: Folder of ``queries.jsonl`` and ``qrels/SPLIT.tsv``.
        corpus_path: Folder of ``corpus.jsonl``; ``path`` itself where it is None. Each file of JSON Lines may
            be gzipped (``.jsonl.gz``).

    Example::

        folder = BeirFolder(Path("collections/cacm"))
        document = next(folder.documents())
        folder.qrels("test").columns.tolist()  # ['qid', 'docno', 'label']
    """

    path: Path
    corpus_path: Path | None = None

    @property
    def corpus_file(self) -> Path:
        """The file of documents, whichever of plain and gzip there is."""
        return _one_of(self.corpus_path or self.path, "corpus")

    def documents(self) -> Iterator[dict[str, str]]:
        """Every document, as a dict of ``docno``, ``title``, ``text`` and its further fields that are strings."""
        for _, record in read_records(self.corpus_file):
            document = {"docno": str(record.pop("_id"))}
            document |= {name: str(record.pop(name, None) or "") for name in ("title", "text")}
            yield document | {name: value for name, value in record.items() if isinstance(value, str)}

    def queries(self) -> pd.DataFrame:
        """All queries of all splits, as a frame of ``qid`` and ``query``."""
        path, found = _one_of(self.path, "queries"), {}
        for number, record in read_records(path):
            qid = str(record["_id"])
            if qid in found:
                raise ValueError(f"{path}, line {number}: query {qid!r} is already on line {found[qid][0]}")
            found[qid] = number, str(record.get("text") or "")
        texts = [text for _, text in found.values()]
        return pd.DataFrame({"qid": pd.Series(list(found), dtype=str), "query": pd.Series(texts, dtype=str)})

    def splits(self) -> list[str]:
        """Names of the splits that have judgements."""
        return sorted(file.stem for file in (self.path / "qrels").glob("*.tsv"))

    def qrels(self, split: str) -> pd.DataFrame:
        """The judgements of a split, as a frame of ``qid``, ``docno`` and ``label`` (int64)."""
        path, rows = self._qrels_file(split), []
        for number, (qid, docno, label) in read_rows(path, "query-id", 3):
            try:
                rows.append((qid, docno, int(label)))
            except ValueError:
                raise ValueError(f"{path}, line {number}: the score {label!r} is not an integer") from None
        frame = pd.DataFrame(rows, columns=["qid", "docno", "label"])
        return frame.astype({"qid": str, "docno": str, "label": "int64"})

    def folds(self) -> pd.DataFrame:
        """The folds of ``folds.tsv`` for cross-validation, as a frame of ``qid`` and ``fold`` (as written)."""
        path = self.path / "folds.tsv"
        if not path.exists():
            raise FileNotFoundError(f"{path} is missing: this collection has no folds")
        rows = [row for _, row in read_rows(path, "query-id", 2)]
        return pd.DataFrame(rows, columns=["qid", "fold"], dtype=str)

    def _qrels_file(self, split: str) -> Path:
        path, splits = self.path / "qrels" / f"{split}.tsv", self.splits()
        if not splits:
            raise FileNotFoundError(f"{path} is missing: {self.path} has no judgements (qrels/SPLIT.tsv)")
        if split not in splits:
            raise ValueError(f"{self.path} has no split {split!r}; it has: {', '.join(splits)}")
        return path


def _one_of(folder: Path, name: str) -> Path:
    for extension in (".jsonl", ".jsonl.gz"):
        if (folder / (name + extension)).exists():
            return _followed(folder / (name + extension))
    raise FileNotFoundError(f"{folder} has neither {name}.jsonl nor {name}.jsonl.gz")


def _followed(path: Path) -> Path:
    """The file that a symbolic link means where Git, on systems without links, has written its target as text."""
    if path.stat().st_size < _LONGEST_LINK:
        target = path.parent / path.read_bytes().decode("utf-8", "ignore").strip().replace("\0", "")
        if target.is_file():
            return target
    return path
