"""The notebooks: stored outputs are complete and clean, and every cell runs with small parameters.

Each notebook has one cell tagged ``parameters``, which assigns constants; the metadata of this cell has small values
for them under ``small``. The test of a run replaces the cell by these values. It runs the notebook in a folder with two
small collections, ``neural:folder:small`` and ``neural:folder:small-links``: ``neural:pydocs`` and its links, cut down
to one package. All notebooks run in one kernel, one after the other, since a new one loads the same libraries again.
"""

import ast
import json
import os
import re
from importlib import import_module
from pathlib import Path

import nbformat
import pandas as pd
import pyterrier as pt
import pytest
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient

import pt_neural as pn

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
PACKAGE = "networkx"
FRESH = """\
%cd -q {place}
%reset -f
import tempfile
import matplotlib.pyplot
tempfile.tempdir = {temporary!r}
matplotlib.pyplot.close("all")
del tempfile, matplotlib
"""
ABSOLUTE = re.compile(r"(?<![\w/.:<])(/(tmp|home|root|work|usr|var|opt|mnt|private|Users)/|[A-Z]:\\\\?Users)")

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with the two small collections."""
    place = tmp_path_factory.mktemp("notebooks")
    for name, folder in {"neural:pydocs": "small", "neural:pydocs/links": "small-links"}.items():
        write_small(pt.get_dataset(name), place / folder)
    return place


@pytest.fixture(scope="module")
def kernel(place) -> KernelManager:
    """A running kernel, in the folder with the collections."""
    variables = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}  # Java prints them
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(place), env=variables)
    client.stop_channels()
    yield manager
    manager.shutdown_kernel(now=True)


def write_small(dataset: pt.datasets.Dataset, folder: Path) -> None:
    """Write the documents of one package, and the queries with an answer among them, in the BEIR layout."""
    (folder / "qrels").mkdir(parents=True)
    documents = [doc for doc in dataset.get_corpus_iter(verbose=False) if doc["package"] == PACKAGE]
    docnos = {doc["docno"] for doc in documents}
    queries = []
    for split in ("train", "dev", "test"):
        qrels = dataset.get_qrels(split)
        qrels = qrels[qrels["docno"].isin(docnos)]
        queries.append(dataset.get_topics(split).query("qid in @qrels.qid"))
        columns = {"qid": "query-id", "docno": "corpus-id", "label": "score"}
        qrels[list(columns)].rename(columns=columns).to_csv(folder / "qrels" / f"{split}.tsv", sep="\t", index=False)
    write_lines(folder / "corpus.jsonl", [{"_id": doc.pop("docno"), **doc} for doc in documents])
    topics = pd.concat(queries).drop_duplicates("qid").rename(columns={"qid": "_id", "query": "text"})
    write_lines(folder / "queries.jsonl", topics[["_id", "text"]].to_dict("records"))


def write_lines(path: Path, records: list[dict]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def parameters(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The cell tagged ``parameters``."""
    (cell,) = (cell for cell in code_cells(notebook) if "parameters" in cell.metadata.get("tags", []))
    return cell


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """All text that the notebook shows, without pictures."""
    texts = []
    for cell in notebook.cells:
        texts.append(cell.source)
        for output in cell.get("outputs", []):
            texts.append(output.get("text", ""))
            texts += [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
    return texts


def troubles(notebook: nbformat.NotebookNode) -> list[str]:
    """Errors, warnings and progress bars, and paths of the machine that it ran on."""
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    errors = [f"{output.ename}: {output.evalue}" for output in outputs if output.output_type == "error"]
    warnings = [output.text for output in outputs if output.get("name") == "stderr"]
    paths = [text[at.start() :][:60] for text in shown(notebook) for at in ABSOLUTE.finditer(text)]
    return errors + warnings + paths


def test_every_cell_was_executed_in_order(path):
    counts = [cell.execution_count for cell in code_cells(read(path))]
    assert counts == list(range(1, len(counts) + 1))


def test_no_errors_warnings_or_paths_are_stored(path):
    assert not troubles(read(path))


def test_tables_and_pictures_are_stored(path):
    kinds = [set(output.data) for cell in code_cells(read(path)) for output in cell.outputs if "data" in output]
    assert sum("image/png" in kind for kind in kinds) >= 1
    assert sum("text/html" in kind for kind in kinds) >= 2


def test_parameters_have_small_values(path):
    cell = parameters(read(path))
    assigned = {target.id for line in ast.parse(cell.source).body for target in line.targets}
    assert set(cell.metadata["small"]) == assigned


def test_names_of_the_package_exist(path):
    """Imports resolve, and schematics in stored outputs name classes by where they are now."""
    tree = ast.parse("\n".join(cell.source for cell in code_cells(read(path))))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("pt_neural"):
            assert all(hasattr(import_module(node.module), alias.name) for alias in node.names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pn":
            assert hasattr(pn, node.attr)
    for name in set(re.findall(r"^\s+(pt_neural\.[\w.]+)$", "\n".join(shown(read(path))), re.MULTILINE)):
        module, _, own = name.rpartition(".")
        assert hasattr(import_module(module), own), name


@pytest.mark.long
def test_it_runs(path, place, kernel, tmp_path):
    notebook = read(path)
    cell = parameters(notebook)
    cell.source = "\n".join(f"{name} = {value!r}" for name, value in cell.metadata["small"].items())
    notebook.cells.insert(0, nbformat.v4.new_code_cell(FRESH.format(place=place, temporary=str(tmp_path))))
    before = sorted(place.rglob("*"))
    NotebookClient(notebook, km=kernel, timeout=600).execute()
    del notebook.cells[0]
    assert not troubles(notebook)
    assert sorted(place.rglob("*")) == before  # what it wrote is in its temporary folder
