"""A docstring taken apart: its summary sentence, its "See Also" names, and the text that is left."""

import re
from dataclasses import dataclass

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
class Docstring:
    """The parts of a docstring.

    Attributes:
        summary: The first sentence as plain text, or empty.
        text: The rest as it was written, without the summary and the "See Also" section.
        related: The names in the "See Also" section, as written.
    """

    summary: str
    text: str
    related: tuple[str, ...]


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


def _first_paragraph(doc: str) -> tuple[str, str]:
    """The first paragraph that is prose, and what follows it; signatures and directives before it are dropped."""
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
    """The docstring without what it has of "See Also", section or indented block, and the names found there."""
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
    """Names in numpydoc's list: ``name, name : description``, descriptions being indented or after the colon."""
    lines = [line for line in section.split("\n") if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    names = []
    for line in lines:
        if len(line) - len(line.lstrip()) == indent:
            listed = re.split(r"\s*:(?:\s|$)", _ROLE.sub(r"\1", line).replace("`", ""))[0]
            found = [_NAME.fullmatch(name.strip()) for name in listed.split(",") if name.strip()]
            names += [match[1] for match in found if match]
    return names
