"""The pipelines end to end, on a collection so small that the figures mean nothing but the files must be there."""

import json
import shutil

import pandas as pd
import pytest

from pipelines import desm, duet, embedding_settings, lsa_settings, quickstart
from pipelines.common import load
from pipelines.kept import VALUES, read_values
from pipelines.workspace import markdown


def test_quickstart_writes_table_runs_and_picture(run, capsys):
    results = run(quickstart)
    table = pd.read_csv(results / "table.csv")
    assert table["system"].tolist()[:3] == ["BM25", "query likelihood", "SDM"]
    assert len(table) == 15
    assert table["system"].tolist()[-2:] == ["all documents, DSSM", "all documents, BM25 + DSSM"]
    assert {"table.md", "alpha.png", "settings.json", "table.png"} <= {path.name for path in results.iterdir()}
    assert len(list((results / "runs").glob("*.res.gz"))) == 15
    assert "BM25 + DESM IN-OUT" in capsys.readouterr().out


def test_second_run_builds_nothing(run, capsys):
    first = pd.read_csv(run(quickstart) / "table.csv")
    assert "building" in capsys.readouterr().out
    second = pd.read_csv(run(quickstart) / "table.csv")
    assert "building" not in capsys.readouterr().out
    pd.testing.assert_frame_equal(second, first)


def test_a_folder_of_the_same_name_elsewhere_has_runs_of_its_own(run_in, folder, tmp_path):
    """Results are named by the collection, so that those of another one of that name would be taken for its own."""
    other, out = tmp_path / folder.name, tmp_path / "out"
    shutil.copytree(folder, other)
    documents = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    swapped = [{**one, "text": two["text"]} for one, two in zip(documents, documents[1:] + documents[:1], strict=True)]
    (other / "corpus.jsonl").write_text("\n".join(map(json.dumps, swapped)))
    first, second = (
        values_of(run_in(out, duet, "--models", "ql", "--figures", dataset=place)) for place in (folder, other)
    )
    assert not first.equals(second)


def test_desm_writes_both_tables_and_all_figures(run, monkeypatch):
    monkeypatch.setattr(desm, "MIN_QUERIES", 10)
    monkeypatch.setattr(desm, "embeddings", lambda workspace, dim, seed: small_embeddings(workspace, seed))
    results = run(desm, "--depth", "20", "--dim", "8")
    three, four = (pd.read_csv(results / f"table{number}.csv") for number in (3, 4))
    assert len(three) == 2 + 4  # BM25, LSA, and both pairs of spaces trained on documents and on queries
    assert len(four) == 2 + 4 + 4
    assert three["system"].tolist()[:2] == four["system"].tolist()[:2] == ["BM25", "LSA"]
    settings = json.loads((results / "settings.json").read_text())
    assert len(settings["chosen"]["alpha"]) == 4
    pictures = {"figure1", "figure4", "figure5", "alpha", "table3", "table4"}
    assert {path.stem for path in results.glob("*.png")} == pictures


def values_of(results):
    return read_values(results / "runs" / VALUES)


def small_embeddings(workspace, seed):
    train = workspace.collection.train.topics
    corpora = {"documents": workspace.documents, "queries": lambda: train}
    return {name: workspace.spaces(name, texts, dim=8, seed=seed, min_count=1) for name, texts in corpora.items()}


def test_lsa_settings_compare_projections_and_weights(run):
    table = pd.read_csv(run(lsa_settings, "--dims", "3", "5") / "table.csv")
    assert table[["dim", "tf"]].to_numpy().tolist() == [[3, "tf"], [3, "1 + ln tf"], [5, "tf"], [5, "1 + ln tf"]]
    assert table[["U", "U/Σ"]].to_numpy().min() > 0


@pytest.mark.parametrize("settings", [embedding_settings, lsa_settings])
def test_settings_need_dev_queries(folder, run, monkeypatch, settings):
    collection = load(f"neural:folder:{folder}")
    monkeypatch.setattr(
        settings,
        "load",
        lambda name: collection.__class__(name, collection.dataset, None, None, collection.test),
    )
    with pytest.raises(SystemExit, match="no dev queries"):
        run(settings)


def test_markdown():
    assert markdown(pd.DataFrame({"a": [1], "b": ["x"]})) == "| a | b |\n| --- | --- |\n| 1 | x |"
