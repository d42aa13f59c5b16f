"""Documents checked and brought into shape before they reach Lucene, where errors say little."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pt_neural.lucene.batch import clean
from pt_neural.text.corpus import read_documents
from pt_neural.text.fields import join_fields

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

    A field that is missing or no string counts as empty; a document without
    any words is kept, and never found.

    Raises:
        TypeError, ValueError: As :func:`~pt_neural.text.corpus.read_documents`, or if a document has none of the
            fields. The message names the document.
    """
    for docno, document in read_documents(documents):
        contents = clean(join_fields(document, fields))
        record = {"id": docno, "contents": contents if contents.strip(BLANKS) else NO_WORDS}
        record |= {name: text for name in separate_fields if (text := _text(document, name)).strip(BLANKS)}
        yield PreparedDocument(docno, json.dumps(record), [_text(document, name) for name in kept_fields])


def check_field_names(separate_fields: Sequence[str]) -> None:
    """Refuse names that Anserini keeps for itself."""
    for name in separate_fields:
        if name in RESERVED:
            raise ValueError(f"separate_fields has {name!r}, a name that Anserini keeps for itself; rename the field")


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    return clean(value) if isinstance(value, str) else ""
