"""The directory of a Lucene index: its reader, how its text is analysed, and checks of what it holds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pt_neural._artifacts import recover
from pt_neural.datasets.docnos import DocnoTable
from pt_neural.lucene.index.analysis import Analysis
from pt_neural.lucene.index.opened import LatestOpened
from pt_neural.lucene.index.reader import DOCNOS_FOLDER, FieldOptions, Reader, open_reader

CONTENTS = "contents"  # Anserini's field of all text


class IndexDirectory:
    """An index as transformers use it: what it holds, and how text becomes its terms.

    It may be replaced by another index at any time; what needs more than one answer of the same index asks
    :meth:`opened`.

    Args:
        path: The directory, which need not exist yet.
        stemmer: The stemmer of queries. Default: the one that the index was built with.
        stopwords: The stop words of queries, with the same default.
    """

    path: Path

    def __init__(self, path: str | Path, *, stemmer: str | None = None, stopwords: str | None = None):
        self.path = Path(path).expanduser().absolute()  # Java does not follow changes of the working directory
        self.stemmer = stemmer
        self.stopwords = stopwords

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.name

    @property
    def parts(self) -> list[Path]:
        """The folders of the Lucene indexes that this one consists of; their documents are numbered in this order."""
        return [self.path]

    def built(self) -> bool:
        """Whether there is a complete Lucene index at the path."""
        recover(self.path)
        return any(self.path.glob("segments_*"))

    @property
    def reader(self) -> Reader:
        """The opened index; all objects with the same path share it."""
        return open_reader(self.path, lambda: self.parts)

    def opened(self) -> "OpenedIndex":
        """The index as it is now."""
        return OpenedIndex(self, self.reader)

    @property
    def docno_table(self) -> DocnoTable:
        """The docnos by Lucene's document number; needs no Java if this package has built the index."""
        if (self.path / DOCNOS_FOLDER).is_dir():
            return _docno_tables.open(self.path, lambda: self.parts)
        return self.reader.docnos

    @property
    def analysis(self) -> Analysis:
        """How queries to this index become terms."""
        return Analysis.of_index(self.parts[0]).replaced_by(stemmer=self.stemmer, stopwords=self.stopwords)

    def __len__(self) -> int:
        return len(self.reader)

    def __bool__(self) -> bool:
        return True  # even if it is empty, or not built yet

    def docnos(self) -> np.ndarray:
        """All docnos in Lucene's order, an object array of strings of shape ``(len(index),)``."""
        return np.array(list(self.docno_table), dtype=object)

    @property
    def field_options(self) -> Mapping[str, FieldOptions]:
        """What the index stores for each field that can be searched."""
        return self.reader.fields

    def fields(self) -> list[str]:
        """Names of the fields that can be searched."""
        return sorted(self.field_options)

    def document_frequencies(self, terms: Sequence[str], field: str = CONTENTS) -> np.ndarray:
        """The number of documents with each term, int64; terms as :attr:`analysis` makes them."""
        return self.reader.document_frequencies(terms, field)

    def require_field(self, field: str) -> None:
        """Raise ValueError if the index cannot search ``field``."""
        if field not in self.field_options:
            raise ValueError(
                f"{self.path} has no field {field!r}; it has {', '.join(self.fields())}. To search a field by itself, "
                f"index it so: index.indexer(separate_fields=[{field!r}])"
            )

    def require_positions(self, field: str) -> None:
        """Raise ValueError if the index has no positions of ``field``, which windows need."""
        self._require(field, "positions", "positions, which SDM needs")

    def require_vectors(self, field: str) -> None:
        """Raise ValueError if the index has no term vectors of ``field``, which feedback needs."""
        self._require(field, "vectors", "term vectors, which RM3 and LatentConceptExpansion need")

    def _require(self, field: str, option: str, what: str) -> None:
        if not getattr(self.field_options[field], option):
            remedy = f"build it again with index.indexer({option}=True, overwrite=True)"
            raise ValueError(f"{self.path} was built without {what}; {remedy}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexDirectory) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Path, str | None, str | None]:
        return (self.path, self.stemmer, self.stopwords)


def open_docnos(path: Path, parts: Sequence[Path]) -> DocnoTable:
    """The docnos kept with an index; see :class:`LatestOpened`."""
    return DocnoTable(path / DOCNOS_FOLDER)


_docno_tables = LatestOpened(open_docnos)


class OpenedIndex(IndexDirectory):
    """An index as it was when it was opened, whatever becomes of its directory; made by :meth:`IndexDirectory.opened`.

    Args:
        index: The index.
        reader: What has been opened.
    """

    def __init__(self, index: IndexDirectory, reader: Reader):
        super().__init__(index.path, stemmer=index.stemmer, stopwords=index.stopwords)
        self._reader = reader

    @property
    def reader(self) -> Reader:
        """What has been opened."""
        return self._reader

    @property
    def docno_table(self) -> DocnoTable:
        """The docnos by Lucene's document number."""
        return self._reader.docnos

    @property
    def analysis(self) -> Analysis:
        """How queries to this index become terms."""
        return self._reader.analysis.replaced_by(stemmer=self.stemmer, stopwords=self.stopwords)

    def opened(self) -> "OpenedIndex":
        """Itself."""
        return self
