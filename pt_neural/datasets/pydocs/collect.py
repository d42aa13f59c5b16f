"""The documents of one installed package: every public name with a docstring worth reading."""

from collections import defaultdict
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pt_neural.datasets.pydocs.compiled import compiled_docs
from pt_neural.datasets.pydocs.docstrings import parse_docstring
from pt_neural.datasets.pydocs.names import Package
from pt_neural.datasets.pydocs.sources import Definition

#: Documents with fewer words, once the summary is taken out, are left out.
MIN_WORDS = 10


@dataclass(frozen=True)
class Document:
    """One docstring under its public name.

    Attributes:
        name: Shortest public dotted name; docno and title.
        package: Distribution that it comes from.
        summary: Its first sentence, plain.
        text: The rest of it, as written.
        related: Names in its "See Also" section, as written.
        aliases: All names that lead to it, the name of its definition included.
    """

    name: str
    package: str
    summary: str
    text: str
    related: tuple[str, ...]
    aliases: frozenset[str]

    @property
    def leaf(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


def collect(module: str, distribution: str) -> list[Document]:
    """All documents of a package, in the order of their names.

    Args:
        module: Import name of the package.
        distribution: Name of the distribution that holds it.
    """
    documents: dict[str, Document] = {}
    for definition, names in _named_definitions(module).items():
        parts = parse_docstring(definition.doc)
        free = names - documents.keys()
        if free and len(parts.text.split()) >= MIN_WORDS:
            name = min(free, key=lambda name: _preference(name, definition.home))
            aliases = frozenset(names | {definition.home})
            documents[name] = Document(name, distribution, parts.summary, parts.text, parts.related, aliases)
    return [documents[name] for name in sorted(documents)]


def _named_definitions(module: str) -> dict[Definition, set[str]]:
    """Each documented definition with all its public names."""
    spec = find_spec(module)
    package = Package(module, Path(spec.origin).parent)
    names: dict[Definition, set[str]] = defaultdict(set)
    for public in package.public_modules():
        for name, definition in package.public_names(public):
            if definition.doc:
                names[definition].add(name)
    by_name = {name: definition for definition, found in names.items() for name in found}
    for name, definition in compiled_docs(module):
        if name not in by_name and definition.doc:
            names[by_name.setdefault(definition.home, definition)].add(name)
    return names


def _preference(name: str, home: str) -> tuple[int, bool, bool, int, str]:
    """Fewest parts, then as it is called where it is defined, then in the class that defines it, then shortest."""
    leaf, owner = (".".join(home.split(".")[-parts:]) for parts in (1, 2))
    return name.count("."), not name.endswith(f".{leaf}"), not name.endswith(f".{owner}"), len(name), name
