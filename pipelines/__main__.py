"""Lists the pipelines: ``python -m pipelines``."""

import ast
from pathlib import Path


def main() -> None:
    """Print the command line of each pipeline, and the first sentence of what it makes."""
    print("python -m pipelines.NAME --dataset NAME --seeds 13 14 15 --out FOLDER; --help says what else there is\n")
    for path in sorted(Path(__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.name != "__main__.py" and any(getattr(node, "name", "") == "main" for node in tree.body):
            print(f"  {path.stem:20}{ast.get_docstring(tree).splitlines()[0]}")


if __name__ == "__main__":
    main()
