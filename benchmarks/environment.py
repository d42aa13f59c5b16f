"""What the set-up installs: distributions and megabytes in all, what each direct dependency alone brings, the largest.

``--wheels FOLDER`` adds the size of the download: the files that ``pip download`` has put there.
"""

import argparse
import re
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path

import pandas as pd
from packaging.requirements import Requirement

INSTALLED = {re.sub(r"[-_.]+", "-", found.name).lower(): found for found in distributions()}
DEMO, ALL = "pt-neural", "pt-neural[dev,notebooks]"


def needed(roots: Iterable[str], without: str = "") -> set[str]:
    """The installed distributions that requirements need, directly or not, if one distribution did not exist."""
    waiting, done = [Requirement(root) for root in roots], set()
    while waiting:
        each = waiting.pop()
        name = re.sub(r"[-_.]+", "-", each.name).lower()
        if name in INSTALLED and name != without and (name, *sorted(each.extras)) not in done:
            done.add((name, *sorted(each.extras)))
            further = map(Requirement, INSTALLED[name].requires or [])
            extras = [*each.extras, ""]
            waiting += [
                one for one in further if not one.marker or any(one.marker.evaluate({"extra": x}) for x in extras)
            ]
    return {name for name, *_ in done}


def main() -> None:
    """Print three tables."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--wheels", type=Path, help="folder of downloaded files")
    wheels = arguments.parse_args().wheels
    sizes = {name: sum(file.size or 0 for file in found.files or []) for name, found in INSTALLED.items()}
    sizes = pd.DataFrame({"installed MB": pd.Series(sizes) / 1e6})
    if wheels:
        named = {re.sub(r"[-_.]+", "-", file.name.partition("-")[0]).lower(): file for file in wheels.iterdir()}
        sizes["download MB"] = pd.Series({name: file.stat().st_size / 1e6 for name, file in named.items()})

    sets = {root: needed([root]) for root in (DEMO, ALL)}
    for name in sorted({Requirement(one).name for one in INSTALLED["pt-neural"].requires or []} & INSTALLED.keys()):
        sets[f"only by {name}"] = sets[ALL] - needed([ALL], without=name)
    rows = [
        {"set": name, "distributions": len(found), **sizes.loc[list(found)].sum()}
        for name, found in sets.items()
        if found
    ]
    print(pd.DataFrame(rows).round(1).sort_values("installed MB", ascending=False).to_string(index=False))
    print(sizes.loc[list(sets[ALL])].nlargest(12, "installed MB").round(1).to_string())


if __name__ == "__main__":
    main()
