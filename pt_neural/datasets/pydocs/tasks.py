"""Queries and judgements of the two tasks, made from the documents."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from pt_neural.datasets.pydocs.documents import Document, plain, tokens

SPLITS = ("train", "dev", "test")
#: A summary that fits more documents is too vague to be a query.
MAX_JUDGED = 10
#: If no more documents share the last part of a name, all of them are namesakes, whatever their summaries say.
MAX_RARE = 4
_WORDS_IN_QUERY = range(3, 41)
_WORDS_IN_LINK_QUERY = 100
_CLOSE = 2 / 3
_FUNCTION_WORDS = re.compile(r"an?|and|are|as|at|be|by|for|from|in|is|its?|of|on|or|that|the|this|to|with")
_BOILERPLATE = re.compile(
    r"(alias|synonym|same as|see|refer to|(this \w+ is )?deprecated)\b|\.\.|>>>|[-*] "
    r"|(note|warning|args?|arguments|parameters|returns?|raises)\s*:|parameters\s[\w*, ]+ :",
    re.I,
)
_NICKNAMES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "nx": "networkx", "sm": "statsmodels.api"}


@dataclass(frozen=True)
class Query:
    """A query with its judgements in one split."""

    qid: str  # stable between builds; a query of several splits has the same one in each
    text: str
    split: str  # "train", "dev" or "test"
    labels: dict[str, int]  # the grade of each judged document, by docno


def split_of(key: str) -> str:
    """The split of a key: 70 % train, 10 % dev, 20 % test, the same on every machine."""
    share = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
    return "train" if share < 0.7 else "dev" if share < 0.8 else "test"


def summary_queries(documents: Iterable[Document]) -> list[Query]:
    """Queries for the documents that a summary sentence was taken from (grade 2) and their namesakes (grade 1).

    A namesake is a document whose name ends in the same part (``norm`` in ``numpy.linalg.norm`` and
    ``scipy.linalg.norm``). If more than ``MAX_RARE`` documents share that part (``fit``), its summary must be similar
    as well: of the distinct words in the two, not counting function words, two thirds are shared. A summary that is
    repeated in the text of a document of grade 2 is not a query. Queries that differ only in the order of their words
    are in the same split.
    """
    by_summary: dict[str, list[Document]] = defaultdict(list)
    by_leaf: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        by_summary[" ".join(tokens(document.summary))].append(document)
        by_leaf[document.leaf].append(document)
    queries = []
    for key, owners in sorted(by_summary.items()):
        labels = _namesakes(owners, by_leaf) | {owner.name: 2 for owner in owners}
        if _is_query(owners[0].summary) and len(labels) <= MAX_JUDGED and not _given_away(key, owners):
            qid = "s" + hashlib.sha256(key.encode()).hexdigest()[:10]
            split = split_of(" ".join(sorted(set(key.split()))))
            queries.append(Query(qid, owners[0].summary, split, dict(sorted(labels.items()))))
    return queries


def link_queries(documents: Iterable[Document], kept: dict[str, str]) -> list[Query]:
    """Documents with a "See Also" section as queries, for which the documents that it names are relevant (grade 1).

    A link and its reverse are in the same split, so that none is learned from the other. The links of one document may
    be in several splits; the query is then in each of them. ``kept`` has the docno that every name stands for, including aliases and the names of near-duplicates.
    """
    documents = list(documents)
    endings = _unique_endings(kept)
    queries = []
    for document in documents:
        found = {_resolve(name, document, kept, endings) for name in document.related} - {None, document.name}
        if found:
            text = " ".join(plain(f"{document.name} {document.text}").split()[:_WORDS_IN_LINK_QUERY])
            by_split: dict[str, dict[str, int]] = defaultdict(dict)
            for name in sorted(found):
                by_split[split_of(" ".join(sorted([document.name, name])))][name] = 1
            queries += [Query(document.name, text, split, labels) for split, labels in by_split.items()]
    return queries


def _is_query(summary: str) -> bool:
    return len(summary.split()) in _WORDS_IN_QUERY and not _BOILERPLATE.match(summary)


def _namesakes(owners: list[Document], by_leaf: dict[str, list[Document]]) -> dict[str, int]:
    words = _content_words(owners[0].summary)
    found = {}
    for leaf in {owner.leaf for owner in owners}:
        rare = len(by_leaf[leaf]) <= MAX_RARE
        found |= {other.name: 1 for other in by_leaf[leaf] if rare or _close(words, _content_words(other.summary))}
    return found


def _given_away(key: str, owners: list[Document]) -> bool:
    """Whether the summary (its tokens, joined by spaces) occurs word for word in the text of an owner."""
    return any(f" {key} " in f" {' '.join(tokens(plain(owner.text)))} " for owner in owners)


@cache
def _content_words(summary: str) -> frozenset[str]:
    return frozenset(token for token in tokens(summary) if not _FUNCTION_WORDS.fullmatch(token))


def _close(a: frozenset[str], b: frozenset[str]) -> bool:
    return len(a & b) >= _CLOSE * len(a | b)


def _unique_endings(kept: dict[str, str]) -> dict[tuple[str, str], str | None]:
    """(package, last one or two parts of a name) -> the only document with that name; None if there are several."""
    endings: dict[tuple[str, str], str | None] = {}
    for name, docno in kept.items():
        parts = name.split(".")
        for length in (1, 2):
            key = parts[0], ".".join(parts[-length:])
            endings[key] = docno if endings.get(key, docno) == docno else None
    return endings


def _resolve(name: str, source: Document, kept: dict[str, str], endings: dict) -> str | None:
    """The docno that a name in a "See Also" section means: looked up from the source outwards, then by its ending."""
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
