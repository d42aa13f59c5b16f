"""Tables that stand on the page as their pipelines wrote them."""

from collections.abc import Iterator, Sequence

from pipelines.results.folders import ResultFolder

SHOWN = {  # by pipeline
    "clsm": ("table2", "table4", "table7-telescoped"),
    "duet": ("table2-differences", "figure4", "figure5-length", "figure5-rarity"),
    "match-tensor": ("figure4-gains", "precision-recall", "figure3", "table5"),
    "ssi": ("table7", "table8"),
}
SECTION = """\
## More tables and figures of the papers

As the pipelines wrote them; click on a line to see its table.
"""


def shown_section(folders: Sequence[ResultFolder]) -> Iterator[str]:
    """The section of the page; nothing if there are no such tables."""
    paths = [
        path
        for folder in folders
        for name in SHOWN.get(folder.pipeline, ())
        if (path := folder.path / f"{name}.md").exists()
    ]
    if paths:
        yield SECTION
    for path in paths:
        caption, _, table = path.read_text(encoding="utf-8").partition("\n\n")
        yield f"<details><summary>{caption}</summary>\n\n{table}\n</details>\n"
