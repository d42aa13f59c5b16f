"""The documents of the collection: docstrings, taken apart, without near-duplicates."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil

import numpy as np

from pt_neural.datasets.pydocs.packages import documented_names

#: Documents with fewer words, not counting the summary, are left out.
MIN_WORDS = 10

_SIGNATURE = re.compile(r"[\w.]+\(.*\)\s*(->.*)?(\n--)?|--", re.DOTALL)
_RULE = re.compile(r"^[ \t]*([=~*#^-])\1{2,}[ \t]*\n?", re.MULTILINE)
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]")
_SECTION = re.compile(r"^[ \t]*see also:?[ \t]*\n[ \t]*[-=]{3,}[ \t]*(?:\n|\Z)", re.IGNORECASE | re.MULTILINE)
_NEXT_SECTION = re.compile(r"^\S[^\n]*\n[ \t]*[-=]{3,}[ \t]*$", re.MULTILINE)
_INDENTED = re.compile(
    r"^([ \t]*)(?:\.\. seealso::|see also:(?=[ \t]*$))(.*(?:\n(?:\1[ \t]+\S.*|[ \t]*))*)", re.IGNORECASE | re.MULTILINE
)
_ROLE = re.compile(r":[\w:+-]+:`~?([^`]*)`")
_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]*>`_{0,2}")
_NAME = re.compile(r"~?\.?([A-Za-z_][\w.]*)(?:\(\))?")
_SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!vs)(?<!cf)(?<!etc)(?<!al)(?<!resp)[.!?](?=\s+[A-Z`*:\[(]|\s*$)")


@dataclass(frozen=True)
class Document:
    """A docstring under its public name."""

    name: str  # its shortest public dotted name, which is docno and title
    package: str  # the distribution that it comes from
    summary: str  # its first sentence, without markup
    text: str  # the rest of it, as written
    related: tuple[str, ...]  # the names in its "See Also" section, as written
    aliases: frozenset[str]  # all names for it, including where it is defined

    @property
    def leaf(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


def collect(module: str, distribution: str) -> list[Document]:
    """All documents of a package, given by import name and distribution, sorted by name."""
    documents: dict[str, Document] = {}
    for definition, names in documented_names(module).items():
        parts = parse_docstring(definition.doc)
        free = names - documents.keys()
        if free and len(parts.text.split()) >= MIN_WORDS:
            name = min(free, key=lambda name: _preference(name, definition.home))
            aliases = frozenset(names | {definition.home})
            documents[name] = Document(name, distribution, parts.summary, parts.text, parts.related, aliases)
    return [documents[name] for name in sorted(documents)]


def _preference(name: str, home: str) -> tuple[int, bool, bool, int, str]:
    """Prefer few parts, then the name used where it is defined, then the class that defines it, then the shortest."""
    leaf, owner = (".".join(home.split(".")[-parts:]) for parts in (1, 2))
    return name.count("."), not name.endswith(f".{leaf}"), not name.endswith(f".{owner}"), len(name), name


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring."""

    summary: str  # the first sentence without markup; may be empty
    text: str  # the rest as written, without the "See Also" section
    related: tuple[str, ...]  # the names in the "See Also" section, as written


def parse_docstring(doc: str) -> Docstring:
    r"""Take a dedented docstring apart.

    Example:
        >>> parse_docstring("norm(x)\n\nLength of a vector. Fast.\n\nSee Also\n--------\ndot : Product.")
        Docstring(summary='Length of a vector.', text='Fast.', related=('dot',))
    """
    doc = _PLACEHOLDER.sub("", doc.replace("\r\n", "\n").expandtabs())
    doc, related = _without_related(doc)
    head, rest = _first_paragraph(doc)
    head = _RULE.sub("", head).strip()
    end = _SENTENCE_END.search(head)
    summary, remainder = (head[: end.end()], head[end.end() :].strip()) if end else (head, "")
    text = "\n\n".join(part for part in (remainder, rest.strip()) if part)
    return Docstring(plain(summary), re.sub(r"\n\s*\n+", "\n\n", text), related)


def plain(text: str) -> str:
    """Text without reStructuredText markup, on one line."""
    text = _LINK.sub(r"\1", _ROLE.sub(r"\1", text))
    text = re.sub(r"\|(\w+)\|", r"\1", text).replace("`", "").replace("\\", "")
    text = re.sub(r"\*\*?(\w[^*\n]*?)\*\*?", r"\1", text)
    return " ".join(text.split())


def tokens(text: str) -> list[str]:
    """Lower-case runs of letters and digits."""
    return re.findall(r"[^\W_]+", text.lower())


def _first_paragraph(doc: str) -> tuple[str, str]:
    """The first paragraph of prose and all that follows it; signatures and directives before it are dropped."""
    rest = doc.strip("\n")
    while rest:
        head, _, rest = rest.partition("\n\n")
        head, rest = head.strip("\n"), rest.lstrip("\n")
        lines = [] if _SIGNATURE.fullmatch(head.strip()) else head.split("\n")
        while lines and _SIGNATURE.fullmatch(lines[0].strip()):
            lines.pop(0)
        if lines and not lines[0].lstrip().startswith(".. "):
            return "\n".join(lines), rest
    return "", ""


def _without_related(doc: str) -> tuple[str, tuple[str, ...]]:
    """The docstring without its "See Also" sections and blocks, and the names found in them."""
    names: list[str] = []
    while found := _SECTION.search(doc):
        following = _NEXT_SECTION.search(doc, found.end())
        end = following.start() if following else len(doc)
        names += _listed_names(doc[found.end() : end])
        doc = doc[: found.start()] + doc[end:]
    for found in _INDENTED.finditer(doc):
        names += [name.lstrip(".") for name in _ROLE.findall(found[2])] or _listed_names(found[2])
    return _INDENTED.sub("", doc), tuple(dict.fromkeys(names))


def _listed_names(section: str) -> list[str]:
    """The names in a numpydoc list, ``name, name : description``; descriptions may be indented below."""
    lines = [line for line in section.split("\n") if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    names = []
    for line in lines:
        if len(line) - len(line.lstrip()) == indent:
            listed = re.split(r"\s*:(?:\s|$)", _ROLE.sub(r"\1", line).replace("`", ""))[0]
            found = [_NAME.fullmatch(name.strip()) for name in listed.split(",") if name.strip()]
            names += [match[1] for match in found if match]
    return names


def fold_documents(documents: Iterable[Document]) -> tuple[list[Document], dict[str, str]]:
    """Keep one of each set of near-identical documents: the one with the shortest name.

    Returns those documents, sorted by name, and for every name the name of the document that stands for it.
    """
    documents = sorted(documents, key=lambda document: (document.name.count("."), len(document.name), document.name))
    twins = fold([tokens(document.text) for document in documents])
    kept = {}
    for document, twin in zip(documents, twins, strict=True):
        for name in (document.name, *document.aliases):
            kept.setdefault(name, documents[twin].name)
    originals = [document for position, document in enumerate(documents) if twins[position] == position]
    return sorted(originals, key=lambda document: document.name), kept


def fold(texts: Sequence[Sequence[str]], threshold: float = 0.8, width: int = 5) -> list[int]:
    """For each text, the position of the first kept text that is nearly the same; a text without one is kept.

    Two texts are nearly the same if the Jaccard similarity of their sets of ``width``-word shingles is at least
    ``threshold``. The search is exact: with shingles sorted from rare to frequent, two such sets share one of the
    first ``n - ceil(threshold * n) + 1`` shingles of each (prefix filtering, Chaudhuri et al., ICDE 2006), so only
    texts that share a rare shingle are compared. Preferred texts come first; short texts are padded.

    Example:
        >>> fold([["a", "b"], ["c"], ["a", "b"]])
        [0, 1, 0]
    """
    shingles, first_shared = _shingles(texts, width)
    kept_with: dict[int, list[int]] = defaultdict(list)
    result = []
    for position, numbers in enumerate(shingles):
        prefix = numbers[: len(numbers) - ceil(threshold * len(numbers)) + 1]
        prefix = prefix[prefix >= first_shared].tolist()
        candidates = sorted({kept for shingle in prefix for kept in kept_with[shingle]})
        twin = next((kept for kept in candidates if _jaccard(numbers, shingles[kept]) >= threshold), position)
        result.append(twin)
        if twin == position:
            for shingle in prefix:
                kept_with[shingle].append(position)
    return result


def _shingles(texts: Sequence[Sequence[str]], width: int) -> tuple[list[np.ndarray], int]:
    """Each text's distinct shingles, numbered from rare to frequent, and the first number that two texts share."""
    vocabulary: dict[str, int] = defaultdict(count(1).__next__)
    distinct = []
    for text in texts:
        ids = [vocabulary[token] for token in text]
        padded = np.array(ids + [0] * (width - len(ids)), dtype=np.uint64)
        distinct.append(np.unique(_hashes(np.lib.stride_tricks.sliding_window_view(padded, width))))
    if not distinct:
        return [], 0
    _, numbers, counts = np.unique(np.concatenate(distinct), return_inverse=True, return_counts=True)
    rarity = np.empty(len(counts), dtype=np.int64)
    rarity[np.argsort(counts, kind="stable")] = np.arange(len(counts))
    ends = np.cumsum(list(map(len, distinct)))[:-1]
    return [np.sort(ranks) for ranks in np.split(rarity[numbers], ends)], int((counts == 1).sum())


def _hashes(windows: np.ndarray) -> np.ndarray:
    """One 64-bit number per row, by polynomial hashing modulo 2**64; shape ``(len(windows),)``."""
    powers = np.array([pow(0x9E3779B97F4A7C15, power, 2**64) for power in range(windows.shape[1])], dtype=np.uint64)
    mixed = (windows * powers).sum(axis=1, dtype=np.uint64)
    return mixed ^ (mixed >> np.uint64(29))


def _jaccard(a: np.ndarray, b: np.ndarray) -> float:
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)
