"""Documents as they come: one rule for all that is built from a collection."""

import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

LONGEST_DOCNO = 32_766  # bytes; Lucene's limit for one term


def read_documents(corpus: Iterable[Mapping[str, Any]] | pd.DataFrame) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Check documents one by one.

    Args:
        corpus: Documents as dicts with ``docno`` and text, or a frame with a row for each.

    Yields:
        The docno, an integer made a string, and the document.

    Raises:
        TypeError: If the corpus is no iterable of dicts.
        ValueError: If a docno is missing, used before, too long or not one line of text, or if there are no documents.
    """
    positions: dict[str, int] = {}
    for position, document in enumerate(_documents(corpus)):
        if not isinstance(document, Mapping):
            raise TypeError(f"a document is a dict with docno and text, not {document!r:.80}")
        docno = check_docno(document, position)
        if positions.setdefault(docno, position) != position:
            raise ValueError(
                f"docno {docno!r} occurs twice, in documents {positions[docno]} and {position} (from 0); docnos must "
                "be unique"
            )
        yield docno, document
    if not positions:
        raise ValueError("there were no documents to index; has the iterator been used before?")


def check_docno(document: Mapping[str, Any], position: int) -> str:
    """The docno of a document as a string, or a ValueError that says what is wrong with it."""
    where = f"document {position} (from 0)"
    docno = document.get("docno")
    if isinstance(docno, numbers.Integral) and not isinstance(docno, bool):
        docno = str(docno)
    if not isinstance(docno, str) or not docno:
        raise ValueError(f"{where} has docno {docno!r}; a docno is a string or an integer, and not empty")
    encoded = docno.encode("utf-8", errors="surrogatepass")
    if encoded.decode("utf-8", errors="replace") != docno or "\0" in docno or "\n" in docno:
        raise ValueError(f"{where} has docno {docno!r}, which holds a NUL, a line break or half a character")
    if len(encoded) > LONGEST_DOCNO:
        raise ValueError(f"{where} has a docno of more than {LONGEST_DOCNO} bytes, beginning with {docno[:40]!r}")
    return docno


def _documents(corpus: Any) -> Iterable[Any]:
    if isinstance(corpus, pd.DataFrame):
        return corpus.to_dict("records")
    if isinstance(corpus, (str, bytes, Mapping)) or not isinstance(corpus, Iterable):
        raise TypeError(f"a corpus is an iterable of dicts or a frame, not {corpus!r:.80}")
    return corpus
