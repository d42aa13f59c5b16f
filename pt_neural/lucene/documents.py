"""Documents checked and brought into shape before they reach Lucene, where errors say little."""

import json
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pt_neural.lucene.batch import clean
from pt_neural.text.fields import join_fields

LONGEST_DOCNO = 32_766  # bytes; Lucene's limit for one term
RESERVED = ("id", "contents", "raw")
BLANKS = "".join(map(chr, range(33)))  # what Java trims
NO_WORDS = "\N{NO-BREAK SPACE}"  # Anserini drops an empty document; this one has no terms, and stays


class PreparedDocument(NamedTuple):
    """A document for Lucene and for the text store.

    Attributes:
        docno: Its identifier.
        json: What Anserini's JsonCollection reads.
        texts: One string a field that is kept.
    """

    docno: str
    json: str
    texts: list[str]


def prepare(
    documents: Iterable[Mapping[str, Any]],
    fields: Sequence[str],
    separate_fields: Sequence[str],
    kept_fields: Sequence[str],
) -> Iterator[PreparedDocument]:
    """Check documents one by one.

    An integer docno becomes a string. A field that is missing or no string counts as empty; a document without
    any words is kept, and never found.

    Raises:
        ValueError: If a docno is missing, used before, too long or not text, or if a document has none of the
            fields. The message names the document.
    """
    positions: dict[str, int] = {}
    for position, document in enumerate(documents):
        docno = check_docno(document, position)
        if docno in positions:
            raise ValueError(
                f"docno {docno!r} occurs twice, in documents {positions[docno]} and {position} (from 0); docnos must "
                "be unique"
            )
        positions[docno] = position
        contents = clean(join_fields(document, fields))
        record = {"id": docno, "contents": contents if contents.strip(BLANKS) else NO_WORDS}
        record |= {name: text for name in separate_fields if (text := _text(document, name)).strip(BLANKS)}
        yield PreparedDocument(docno, json.dumps(record), [_text(document, name) for name in kept_fields])


def check_docno(document: Mapping[str, Any], position: int) -> str:
    """The docno of a document as a string, or a ValueError that says what is wrong with it."""
    where = f"document {position} (from 0)"
    docno = document.get("docno")
    if isinstance(docno, numbers.Integral) and not isinstance(docno, bool):
        docno = str(docno)
    if not isinstance(docno, str) or not docno:
        raise ValueError(f"{where} has docno {docno!r}; a docno is a string or an integer, and not empty")
    if clean(docno) != docno or "\0" in docno:
        raise ValueError(f"{where} has docno {docno!r}, which holds a NUL or half a character")
    if len(docno.encode("utf-8")) > LONGEST_DOCNO:
        raise ValueError(f"{where} has a docno of more than {LONGEST_DOCNO} bytes, beginning with {docno[:40]!r}")
    return docno


def check_field_names(separate_fields: Sequence[str]) -> None:
    """Refuse names that Anserini keeps for itself."""
    for name in separate_fields:
        if name in RESERVED:
            raise ValueError(f"separate_fields has {name!r}, a name that Anserini keeps for itself; rename the field")


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    return clean(value) if isinstance(value, str) else ""
