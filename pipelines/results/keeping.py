"""The small files of results that stay in the repository: values by query and seed, tables, and how they were made."""

import shutil
from pathlib import Path

from pipelines.common.arguments import as_json
from pipelines.common.runs import VALUES, read_values, write_whole
from pipelines.results.folders import result_folders
from pipelines.results.shown import SHOWN

KEPT = Path(__file__).parent / "kept"
PUBLIC = ("command", "pipeline", "collection", "packages", "seconds")  # the other settings name folders of a machine
DIGITS = 5  # of a value


def keep(out: Path, kept: Path = KEPT) -> list[str]:
    """Copy what the page needs of all results below a folder, in the place of earlier ones of the same name.

    Returns:
        The names of the folders.
    """
    names = []
    for folder in result_folders(out):
        name = folder.path.name
        shutil.rmtree(kept / name, ignore_errors=True)
        for path in sorted(folder.path.glob(f"*/{VALUES}")):
            runs = kept / name / path.parent.name
            runs.mkdir(parents=True)
            values = read_values(path).round({"value": DIGITS})
            write_whole(runs / VALUES, lambda file, values=values: values.to_csv(file, index=False))
        shown = {f"{table}.md" for table in SHOWN.get(folder.pipeline, ())}
        for table in sorted(folder.path.iterdir()):
            if table.suffix == ".csv" or table.name in shown:
                shutil.copyfile(table, kept / name / table.name)
        settings = {name: folder.settings[name] for name in PUBLIC if name in folder.settings}
        (kept / name / "settings.json").write_text(as_json(settings), encoding="utf-8")
        names.append(name)
    return names
