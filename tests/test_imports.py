"""No file of the package imports a room above its own, or around a circle, inside functions included."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pt_neural

PACKAGE = Path(pt_neural.__file__).parent
ROOMS = [
    "datasets",
    "cluster",
    "text",
    "lucene",
    "embeddings",
    "training",
    "rankers",
    "models",
    "experiment",
    "explain",
]


@cache
def imports() -> dict[str, set[str]]:
    """The modules of the package that each of them imports, anywhere in its file."""
    files = {".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts): file for file in PACKAGE.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): file for name, file in files.items()}
    found: dict[str, set[str]] = {}
    for name, file in modules.items():
        nodes = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
        targets = {
            full if (full := f"{node.module}.{alias.name}") in modules else node.module
            for node in nodes
            for alias in node.names
        }
        packages = {target for target in targets if name.startswith(f"{target}.")}  # a file's own package is no arrow
        found[name] = (targets & modules.keys()) - packages - {name}
    return found


def test_imports_have_no_circle():
    arrows = imports()
    assert len(arrows) > 100
    TopologicalSorter(arrows).prepare()  # raises CycleError, which names the circle


def test_rooms_import_those_below_alone():
    names = {f"pt_neural.{room}": place for place, room in enumerate(ROOMS)}

    def room(name: str) -> int | None:
        return names.get(".".join(name.split(".")[:2]))

    arrows = [(name, target) for name, each in imports().items() for target in each]
    between = [arrow for arrow in arrows if None not in (ends := [*map(room, arrow)]) and ends[0] != ends[1]]
    assert len(between) > 100
    assert [arrow for arrow in between if room(arrow[0]) < room(arrow[1])] == []
