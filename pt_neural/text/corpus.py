"""Documents as they come: checked one by one, and spooled to disk as term ids."""

import numbers
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pt_neural._files import GrowingArray, load_array
from pt_neural.text.docnos import DistinctDocnos
from pt_neural.text.packed import PackedSequences
from pt_neural.text.vocabulary import Vocabulary, rank_terms

LONGEST_DOCNO = 32_766  # bytes; Lucene's limit for one term
_BLOCK = 1 << 20  # terms held in memory


def read_documents(corpus: Iterable[Mapping[str, Any]] | pd.DataFrame) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Check documents one by one: dicts with ``docno`` and text, or a frame with one row per document.

    Yields the docno, as a string even if it was an integer, and the document.

    Raises:
        TypeError: If the corpus is not an iterable of dicts.
        ValueError: If a docno is missing, repeated, too long or not one line of text, or if there are no documents.
    """
    position, distinct = -1, DistinctDocnos()
    for position, document in enumerate(documents_of(corpus)):
        if not isinstance(document, Mapping):
            raise TypeError(f"a document is a dict with docno and text, not {document!r:.80}")
        docno = _checked_docno(document, position)
        distinct.add(docno)
        yield docno, document
    distinct.check()
    if position < 0:
        raise ValueError("there were no documents to index; has the iterator been used before?")


def with_bar(documents: Iterable[Any], corpus: Any, *, desc: str, verbose: bool) -> Iterable[Any]:
    """Pass on what is read of a corpus, with a progress bar unless the corpus has one, as those of PyTerrier may.

    Example::

        documents = with_bar(read_documents(corpus), corpus, desc="reading", verbose=True)
    """
    import pyterrier as pt

    total = len(corpus) if isinstance(corpus, Sized) else None
    waiting = [bar for bar in list(pt.tqdm._instances) if not bar.n and "documents" in str(bar.desc)]
    has_one = any(bar.total == total for bar in waiting)
    return pt.tqdm(documents, desc=desc, total=total, unit="doc", disable=has_one or not verbose)


def _checked_docno(document: Mapping[str, Any], position: int) -> str:
    where = f"document {position} (from 0)"
    docno = document.get("docno")
    if isinstance(docno, numbers.Integral) and not isinstance(docno, bool):
        docno = str(docno)
    if not isinstance(docno, str) or not docno:
        raise ValueError(f"{where} has docno {docno!r}; a docno is an integer or a string that is not empty")
    encoded = docno.encode("utf-8", errors="surrogatepass")
    if encoded.decode("utf-8", errors="replace") != docno or "\0" in docno or "\n" in docno:
        raise ValueError(f"{where} has docno {docno!r}, which holds a NUL, a line break or half a character")
    if len(encoded) > LONGEST_DOCNO:
        raise ValueError(f"{where} has a docno of more than {LONGEST_DOCNO} bytes, beginning with {docno[:40]!r}")
    return docno


def documents_of(corpus: Any) -> Iterable[Any]:
    """The documents of an iterable of dicts, or the rows of a frame as dicts; TypeError for anything else."""
    if isinstance(corpus, pd.DataFrame):
        return corpus.to_dict("records")
    if isinstance(corpus, (str, bytes, Mapping)) or not isinstance(corpus, Iterable):
        raise TypeError(f"a corpus is an iterable of dicts or a frame, not {corpus!r:.80}")
    return corpus


class TermSpool:
    """Writes token lists to ``terms.npy`` and ``offsets.npy`` in an existing directory, counting terms as it goes.

    Memory does not grow with the collection. A term's final id is known only once all terms are counted, so each term
    gets a provisional number when it first appears, and :meth:`finish` renumbers the file.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._raw = directory / "terms.raw"
        self._file = self._raw.open("wb")
        self._pending = array("i")
        self._pending_lengths = array("q")
        self._num_terms = 0
        self._offsets = GrowingArray(directory / "offsets.npy", np.int64)
        self._offsets.append(np.zeros(1))
        self._collection_frequency = np.zeros(0, dtype=np.int64)
        self._document_frequency = np.zeros(0, dtype=np.int64)

    def __enter__(self) -> "TermSpool":
        return self

    def __exit__(self, *exception: object) -> None:
        with ExitStack() as closing:  # all of them, even if the disk is full
            closing.callback(self._raw.unlink, missing_ok=True)
            closing.callback(self._file.close)
            closing.callback(self._offsets.close)

    def __len__(self) -> int:
        return len(self._offsets) - 1 + len(self._pending_lengths)

    def append(self, tokens: Sequence[str]) -> None:
        """Add the tokens of one document."""
        self._pending.extend(map(self._numbers.__getitem__, tokens))
        self._pending_lengths.append(len(tokens))
        if len(self._pending) >= _BLOCK:
            self._flush()

    def finish(self, *, min_count: int = 1, max_terms: int | None = None) -> Vocabulary:
        """Write the arrays and return the vocabulary; terms left out of it are -1 in the arrays."""
        self._flush()
        self._file.close()
        self._offsets.close()
        terms = list(self._numbers)
        kept = rank_terms(terms, self._collection_frequency, min_count=min_count, max_terms=max_terms)
        self._write_renumbered(kept)
        return Vocabulary(
            [terms[i] for i in kept], self._collection_frequency[kept], self._document_frequency[kept], len(self)
        )

    def _flush(self) -> None:
        numbers = np.array(self._pending, dtype=np.int32)
        lengths = np.array(self._pending_lengths, dtype=np.int64)
        documents = np.repeat(np.arange(len(lengths)), lengths)
        pairs = np.unique(documents * len(self._numbers) + numbers)
        self._collection_frequency = self._count(numbers, self._collection_frequency)
        self._document_frequency = self._count(pairs % max(len(self._numbers), 1), self._document_frequency)
        self._file.write(numbers.tobytes())
        self._offsets.append(self._num_terms + np.cumsum(lengths))
        self._num_terms += len(numbers)
        del self._pending[:], self._pending_lengths[:]

    def _count(self, numbers: np.ndarray, counts_so_far: np.ndarray) -> np.ndarray:
        total = np.bincount(numbers, minlength=len(self._numbers)).astype(np.int64)
        total[: len(counts_so_far)] += counts_so_far
        return total

    def _write_renumbered(self, kept: np.ndarray) -> None:
        ids = np.full(len(self._numbers), -1, dtype=np.int32)
        ids[kept] = np.arange(len(kept), dtype=np.int32)
        size = self._raw.stat().st_size // ids.itemsize
        terms = GrowingArray(self.directory / "terms.npy", np.int32)
        with self._raw.open("rb") as raw:
            for _ in range(0, size, _BLOCK):
                terms.append(ids[np.fromfile(raw, dtype=np.int32, count=_BLOCK)])
        terms.close()


def load_sequences(directory: Path) -> PackedSequences:
    """Memory-map the sequences that a :class:`TermSpool` wrote; ValueError if the two files do not fit together."""
    terms = load_array(directory / "terms.npy", dtype=np.int32)
    return PackedSequences(terms, load_array(directory / "offsets.npy", dtype=np.int64))
