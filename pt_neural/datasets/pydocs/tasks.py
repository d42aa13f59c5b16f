"""Queries and judgements of the two tasks, made from the documents."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pt_neural.datasets.pydocs.collect import Document
from pt_neural.datasets.pydocs.docstrings import plain

SPLITS = ("train", "dev", "test")
#: A summary that more documents share says nothing about any of them.
MAX_RELEVANT = 5
_WORDS_IN_QUERY = range(3, 41)
_WORDS_IN_LINK_QUERY = 100
_CLOSE = 0.5
_BOILERPLATE = re.compile(
    r"(alias|synonym|same as|see|refer to|deprecated|this \w+ is deprecated|\.\.|>>>|[-*] )\b", re.I
)
_NICKNAMES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "nx": "networkx", "sm": "statsmodels.api"}


@dataclass(frozen=True)
class Query:
    """A query with its judgements.

    Attributes:
        qid: Stable identifier.
        text: What the user asks.
        split: ``"train"``, ``"dev"`` or ``"test"``.
        labels: Grade of each judged document, by docno.
    """

    qid: str
    text: str
    split: str
    labels: dict[str, int]


def split_of(key: str) -> str:
    """The split of a key: 70 % train, 10 % dev, 20 % test, the same on every machine."""
    share = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
    return "train" if share < 0.7 else "dev" if share < 0.8 else "test"


def tokens(text: str) -> list[str]:
    """Lower-case runs of letters and digits."""
    return re.findall(r"[^\W_]+", text.lower())


def summary_queries(documents: Iterable[Document]) -> list[Query]:
    """Summary sentence -> the documents that it stands for (grade 2) and their namesakes (grade 1).

    A namesake has the same last part of its name (``norm`` in ``numpy.linalg.norm`` and ``scipy.linalg.norm``)
    and a summary that shares at least half of the distinct words. Queries that differ only in the order of
    their words are in one split.
    """
    documents = list(documents)
    by_summary: dict[str, list[Document]] = defaultdict(list)
    by_leaf: dict[str, list[tuple[Document, set[str]]]] = defaultdict(list)
    for document in documents:
        words = tokens(document.summary)
        by_summary[" ".join(words)].append(document)
        by_leaf[document.leaf].append((document, set(words)))
    queries = []
    for key, owners in sorted(by_summary.items()):
        if _is_query(owners[0].summary, key) and len(owners) <= MAX_RELEVANT:
            labels = _namesakes(owners, set(key.split()), by_leaf) | {owner.name: 2 for owner in owners}
            qid = "s" + hashlib.sha256(key.encode()).hexdigest()[:10]
            split = split_of(" ".join(sorted(set(key.split()))))
            queries.append(Query(qid, owners[0].summary, split, dict(sorted(labels.items()))))
    return queries


def link_queries(documents: Iterable[Document], kept: dict[str, str]) -> list[Query]:
    """Document -> the documents that its "See Also" section names (grade 1).

    Args:
        documents: The documents of the collection.
        kept: The document that each name, aliases and folded documents included, stands for.
    """
    documents = list(documents)
    endings = _unique_endings(kept)
    queries = []
    for document in documents:
        found = {_resolve(name, document, kept, endings) for name in document.related} - {None, document.name}
        if found:
            text = " ".join(plain(f"{document.name} {document.text}").split()[:_WORDS_IN_LINK_QUERY])
            labels = dict.fromkeys(sorted(found), 1)
            queries.append(Query(document.name, text, split_of(document.name), labels))
    return queries


def _is_query(summary: str, key: str) -> bool:
    return len(key.split()) in _WORDS_IN_QUERY and not _BOILERPLATE.match(summary)


def _namesakes(owners: list[Document], words: set[str], by_leaf: dict) -> dict[str, int]:
    return {
        other.name: 1
        for leaf in {owner.leaf for owner in owners}
        for other, theirs in by_leaf[leaf]
        if len(words & theirs) >= _CLOSE * len(words | theirs)
    }


def _unique_endings(kept: dict[str, str]) -> dict[tuple[str, str], str | None]:
    """(package, last one or two parts of a name) -> the one document so called, None where there are several."""
    endings: dict[tuple[str, str], str | None] = {}
    for name, docno in kept.items():
        parts = name.split(".")
        for length in (1, 2):
            key = parts[0], ".".join(parts[-length:])
            endings[key] = docno if endings.get(key, docno) == docno else None
    return endings


def _resolve(name: str, source: Document, kept: dict[str, str], endings: dict) -> str | None:
    """The docno that a name in a "See Also" section means: as seen from the source outwards, then by its ending."""
    head, _, rest = name.partition(".")
    if rest and head in _NICKNAMES:
        name = f"{_NICKNAMES[head]}.{rest}"
    for alias in (source.name, *sorted(source.aliases)):
        parts = alias.split(".")[:-1]
        for length in range(len(parts), 0, -1):
            if found := kept.get(".".join([*parts[:length], name])):
                return found
    package = source.name.partition(".")[0]
    return kept.get(name) or endings.get((package, ".".join(name.split(".")[-2:])))
