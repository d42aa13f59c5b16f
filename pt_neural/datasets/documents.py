"""Documents as they come, checked one by one."""

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

import pandas as pd
import pyterrier as pt

from pt_neural.datasets.docnos import DistinctDocnos

LONGEST_DOCNO = 32_766  # bytes; Lucene's limit for one term


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
    """Iterate over what is read from a corpus, with a progress bar unless the corpus shows its own, as PyTerrier's may.

    Example::

        documents = with_bar(read_documents(corpus), corpus, desc="reading", verbose=True)
    """
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
