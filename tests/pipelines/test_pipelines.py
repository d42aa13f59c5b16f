"""The pipelines end to end, on a collection so small that the figures mean nothing but the files must be there."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from pipelines import desm, embedding_settings, lsa_settings, quickstart
from pipelines.common import load, markdown

SUBJECTS = {
    "city": "university college town county river bridge station museum library street".split(),
    "animal": "neck legs savanna herd leaves mammal coat africa hooves grazing".split(),
    "music": "chord rhythm melody tempo harmony violin concert singer record stage".split(),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ninety documents and sixty queries on three subjects, with train, dev and test judgements."""
    random = np.random.default_rng(3)
    place = tmp_path_factory.mktemp("folder")
    documents, queries, qrels = [], [], {"train": [], "dev": [], "test": []}
    for number in range(90):
        words = SUBJECTS[sorted(SUBJECTS)[number % 3]]
        text = " ".join(random.choice(words, 40))
        documents.append({"_id": f"d{number}", "title": f"Document {number}", "text": text})
    for number in range(60):
        words = documents[number]["text"].split()
        queries.append({"_id": f"q{number}", "text": " ".join(random.choice(words, 3))})
        split = ("train", "dev", "test")[number // 3 % 3]
        qrels[split] += [(f"q{number}", f"d{number}", 2), (f"q{number}", f"d{(number + 3) % 90}", 1)]
    for name, records in (("corpus", documents), ("queries", queries)):
        (place / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    (place / "qrels").mkdir()
    for split, rows in qrels.items():
        frame = pd.DataFrame(rows, columns=["query-id", "corpus-id", "score"])
        frame.to_csv(place / "qrels" / f"{split}.tsv", sep="\t", index=False)
    return place


def run(module, folder, out, monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", ["pipeline", "--dataset", f"neural:folder:{folder}", "--out", str(out), *options])
    module.main()


def results_of(out, pipeline):
    return next(path for path in out.iterdir() if path.name.startswith(pipeline))


def test_quickstart_writes_table_runs_and_picture(folder, tmp_path, monkeypatch, capsys):
    run(quickstart, folder, tmp_path, monkeypatch)
    results = results_of(tmp_path, "quickstart")
    table = pd.read_csv(results / "table.csv")
    assert table["system"].tolist()[:3] == ["BM25", "query likelihood", "SDM"]
    assert len(table) == 11
    assert {"table.md", "alpha.png", "settings.json"} <= {path.name for path in results.iterdir()}
    assert len(list((results / "runs").glob("*.res.gz"))) == 11
    assert "BM25 + DESM IN-OUT" in capsys.readouterr().out


def test_second_run_builds_nothing(folder, tmp_path, monkeypatch, capsys):
    run(quickstart, folder, tmp_path, monkeypatch)
    assert "building" in capsys.readouterr().out
    first = pd.read_csv(results_of(tmp_path, "quickstart") / "table.csv")
    run(quickstart, folder, tmp_path, monkeypatch)
    assert "building" not in capsys.readouterr().out
    pd.testing.assert_frame_equal(pd.read_csv(results_of(tmp_path, "quickstart") / "table.csv"), first)


def test_desm_writes_both_tables_and_all_figures(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(desm, "MIN_QUERIES", 10)
    monkeypatch.setattr(desm, "embeddings", lambda workspace, dim, seed: small_embeddings(workspace, seed))
    run(desm, folder, tmp_path, monkeypatch, "--depth", "20", "--dim", "8")
    results = results_of(tmp_path, "desm")
    three, four = (pd.read_csv(results / f"table{number}.csv") for number in (3, 4))
    assert len(three) == 2 + 4  # BM25, LSA, and both pairs of spaces trained on documents and on queries
    assert len(four) == 2 + 4 + 4
    assert three["system"].tolist()[:2] == four["system"].tolist()[:2] == ["BM25", "LSA"]
    settings = json.loads((results / "settings.json").read_text())
    assert len(settings["alpha"]) == 4
    assert {"figure1.png", "figure4.png", "figure5.png", "alpha.png"} <= {path.name for path in results.iterdir()}


def small_embeddings(workspace, seed):
    train = workspace.collection.train.topics
    corpora = {"documents": workspace.documents, "queries": lambda: train}
    return {name: workspace.spaces(name, texts, dim=8, seed=seed, min_count=1) for name, texts in corpora.items()}


def test_lsa_settings_compare_projections_and_weights(folder, tmp_path, monkeypatch):
    run(lsa_settings, folder, tmp_path, monkeypatch, "--dims", "3", "5")
    table = pd.read_csv(results_of(tmp_path, "lsa-settings") / "table.csv")
    assert table[["dim", "tf"]].to_numpy().tolist() == [[3, "tf"], [3, "1 + ln tf"], [5, "tf"], [5, "1 + ln tf"]]
    assert table[["U", "U/Σ"]].to_numpy().min() > 0


@pytest.mark.parametrize("settings", [embedding_settings, lsa_settings])
def test_settings_need_dev_queries(folder, tmp_path, monkeypatch, settings):
    collection = load(f"neural:folder:{folder}")
    monkeypatch.setattr(
        settings,
        "load",
        lambda name: collection.__class__(name, collection.dataset, None, None, collection.test),
    )
    with pytest.raises(SystemExit, match="no dev queries"):
        run(settings, folder, tmp_path, monkeypatch)


def test_markdown():
    assert markdown(pd.DataFrame({"a": [1], "b": ["x"]})) == "| a | b |\n| --- | --- |\n| 1 | x |"
