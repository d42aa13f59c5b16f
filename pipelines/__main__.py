"""Lists the pipelines: ``python -m pipelines``."""

import ast
from pathlib import Path


def main() -> None:
    """Print the name of each pipeline and the first line of its description."""
    print("python -m pipelines.NAME --dataset NAME --seeds 13 14 15 --out FOLDER; see --help for more options\n")
    folder = Path(__file__).parent
    modules = {path.stem: path for path in folder.glob("*.py") if path.name != "__main__.py"}
    modules |= {path.parent.name: path for path in folder.glob("*/__main__.py")}
    for name, path in sorted(modules.items()):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(getattr(node, "name", "") == "main" for node in tree.body):
            print(f"  {name:20}{ast.get_docstring(tree).splitlines()[0]}")


if __name__ == "__main__":
    main()
