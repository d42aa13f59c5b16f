import json

import numpy as np
import pandas as pd
import pytest

from pipelines import clsm, clsm_figures, clsm_statistical
from pipelines.common import Split

SMALL = ["--epochs", "2", "--batch-size", "16", "--dim", "8", "--depth", "20"]
TWO_SEEDS = [*SMALL, "--seeds", "13", "14", "--models", "ql", "dssm-4", "clsm-4", "--windows", "1", "3"]


@pytest.fixture(scope="module")
def every_row(run_in, tmp_path_factory):
    """The results of all rows of all tables."""
    return run_in(tmp_path_factory.mktemp("clsm"), clsm, *SMALL)


@pytest.fixture(scope="module")
def two_seeds(run_in, tmp_path_factory):
    """The results of some rows with two seeds."""
    return run_in(tmp_path_factory.mktemp("clsm"), clsm, *TWO_SEEDS)


def run_file(results, setting, name):
    columns = ["qid", "Q0", "docno", "rank", "score", "tag"]
    return pd.read_csv(results / f"runs-{setting}" / f"{name}.res.gz", sep=r"\s+", names=columns, dtype={"qid": str})


def judgements(folder):
    frame = pd.read_csv(folder / "qrels" / "test.tsv", sep="\t", dtype={"query-id": str})
    return {(row[0], row[1]): row[2] for row in frame.itertuples(index=False)}


def ndcg_10(run, labels):
    """Mean nDCG@10 by its definition, with equal scores in the order that trec_eval gives them."""
    values = []
    for qid in {qid for qid, _ in labels}:
        top = run[run["qid"] == qid].sort_values(["score", "docno"], ascending=False)["docno"][:10]
        gains = [labels.get((qid, docno), 0) for docno in top]
        ideal = sorted((label for (other, _), label in labels.items() if other == qid), reverse=True)
        discounted = [sum(g / np.log2(i + 2) for i, g in enumerate(some)) for some in (gains, ideal[:10])]
        values.append(discounted[0] / discounted[1])
    return np.mean(values)


@pytest.mark.parametrize("setting", ["telescoped", "all-documents"])
def test_all_tables_have_the_rows_of_the_paper_and_ours(every_row, setting):
    five, six, seven = (pd.read_csv(every_row / f"table{number}-{setting}.csv") for number in (5, 6, 7))
    assert five["system"].tolist() == [
        *("BM25", "ULM", "ULM, words as below", "PLSA (T=100)", "PLSA (T=500)", "LDA (T=100)", "LDA (T=500)", "BLTM"),
        *("MRF", "LCE", "WTM", "PTM (maxlen=3)", "DSSM (J=4)", "DSSM (J=50)", "CLSM (J=4)", "CLSM (J=50)"),
        *("DSSM (in-batch)", "CLSM (in-batch)", "LSA", "BM25 + DSSM (in-batch)", "BM25 + CLSM (in-batch)"),
    ]
    assert six["system"].tolist() == [
        "DSSM (J=50)",
        "CLSM (J=50), window 1",
        "CLSM (J=50)",
        "CLSM (J=50), window 5",
    ]
    for table in (five, six):
        assert [name for name in table if "," not in name] == ["system", "nDCG@1", "nDCG@3", "nDCG@10"]
    assert {"nDCG@10, p against BM25", "nDCG@10, p against PTM (maxlen=3)"} <= set(five)
    assert seven.columns.tolist() == ["CLSM (J=50) \\ DSSM (J=50)", "0", "1", "2"]
    assert len(list((every_row / f"runs-{setting}").glob("*.res.gz"))) == len(five) + 2
    for number in (5, 6, 7):
        assert (every_row / f"table{number}-{setting}.md").read_text().startswith(f"Table {number}, ")


def test_the_folder_tells_what_made_the_results(every_row):
    settings = json.loads((every_row / "settings.json").read_text())
    assert settings["arguments"]["seeds"] == [13]
    chosen = settings["chosen"]
    assert len(chosen["alpha"]) == 4
    assert len(chosen["rows"]) == 11
    assert chosen["rows"]["ULM"]["mu"] in clsm_statistical.SMOOTHING["mu"]
    assert chosen["rows"]["WTM"]["unigram_weight"] in clsm_statistical.MIXED["unigram_weight"]
    assert "torch" in settings["packages"]
    assert settings["command"].startswith("python -m pipelines.clsm --dataset neural:folder:")
    assert settings["command"].endswith(" --epochs 2 --batch-size 16 --dim 8 --depth 20")
    histories = pd.read_csv(every_row / "histories.csv")
    assert histories.groupby("system").size().to_dict() == dict.fromkeys(
        [row.name for key, row in clsm.LEARNED.items() if key in clsm.DEFAULT]
        + ["CLSM (J=50), window 1", "CLSM (J=50), window 5"],
        2,
    )
    assert {"seed", "epoch", "loss", "seconds", "dev nDCG@10"} <= set(histories)
    for picture in ("figure3", "learning", "alpha", "table5-telescoped"):
        assert (every_row / f"{picture}.png").read_bytes().startswith(b"\x89PNG")


def test_two_seeds_give_means_and_deviations(two_seeds, folder):
    table = pd.read_csv(two_seeds / "table5-all-documents.csv").set_index("system")
    text = (two_seeds / "table5-all-documents.md").read_text()
    values = [
        ndcg_10(run_file(two_seeds, "all-documents", f"CLSM (J=4), seed {s}"), judgements(folder)) for s in (13, 14)
    ]
    means = table.loc["CLSM (J=4)", ["nDCG@10", "nDCG@10, deviation"]]
    np.testing.assert_allclose(means.astype(float), [np.mean(values), np.std(values, ddof=1)], atol=1e-9)
    assert f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}" in text
    assert values[0] != values[1]
    bm25 = ndcg_10(run_file(two_seeds, "all-documents", "BM25"), judgements(folder))
    assert table["nDCG@10"]["BM25"] == pytest.approx(bm25)
    assert pd.read_csv(two_seeds / "histories.csv")["seed"].value_counts().to_dict() == {13: 6, 14: 6}


def test_top_grades_are_those_of_the_run_files(two_seeds, folder):
    labels = judgements(folder)
    expected = np.zeros((3, 3), dtype=int)
    for seed in (13, 14):
        tops = [
            run_file(two_seeds, "telescoped", f"{name} (J=4), seed {seed}")
            .sort_values("rank")
            .groupby("qid")["docno"]
            .first()
            for name in ("CLSM", "DSSM")
        ]
        for qid in {qid for qid, _ in labels}:
            expected[tuple(labels.get((qid, top[qid]), 0) for top in tops)] += 1
    table = pd.read_csv(two_seeds / "table7-telescoped.csv", index_col=0)
    assert table.to_numpy().tolist() == expected.tolist()
    assert "once for each of 2 seeds" in (two_seeds / "table7-telescoped.md").read_text()


def test_trained_models_are_used_again_unless_a_setting_differs(run, capsys):
    options = [*SMALL, "--models", "dssm", "--windows"]
    run(clsm, *options)
    assert "building" in capsys.readouterr().out
    run(clsm, *options)
    assert "building" not in capsys.readouterr().out
    run(clsm, *options, "--groups", "8")
    assert "/dssm-" in capsys.readouterr().out.partition("building")[2]
    run(clsm, *options, "--queries", "5")  # other dev queries may choose another epoch
    assert "/dssm-" in capsys.readouterr().out.partition("building")[2]


def test_other_fields_have_artifacts_of_their_own(run):
    results = run(clsm, *SMALL, "--models", "lsa", "clsm", "--fields", "text")
    artifacts = {path.name for folder in (results.parent / "artifacts").iterdir() for path in folder.iterdir()}
    assert {"lucene-text", "forward-text", "lsa-dim8-seed13-text"} <= artifacts
    assert not {"lucene", "forward"} & artifacts


@pytest.fixture
def without_train(folder, tmp_path):
    """The collection with test queries only."""
    place = tmp_path / "test-only"
    (place / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (place / name).write_bytes((folder / name).read_bytes())
    return place


def test_without_training_queries_it_says_what_to_do(run_in, without_train, tmp_path):
    with pytest.raises(SystemExit, match=r"no training queries.*split named train.*--models ql unigram plsa-100"):
        run_in(tmp_path / "out", clsm, *SMALL, dataset=without_train)


def test_rows_that_need_no_training_need_no_training_queries(run_in, without_train, tmp_path):
    results = run_in(tmp_path / "out", clsm, *SMALL, "--models", "ql", "lsa", dataset=without_train)
    assert pd.read_csv(results / "table5-telescoped.csv")["system"].tolist() == ["BM25", "ULM", "LSA"]
    assert sorted(path.stem for path in results.glob("*.png")) == ["table5-all-documents", "table5-telescoped"]
    assert not list(results.glob("table[67]*"))


def test_without_dev_queries_the_last_epoch_counts(run_in, folder, without_train, tmp_path):
    (without_train / "qrels" / "train.tsv").write_bytes((folder / "qrels" / "train.tsv").read_bytes())
    options = [*SMALL, "--models", "clsm", "bm25+clsm", "--windows"]
    results = run_in(tmp_path / "out", clsm, *options, dataset=without_train)
    assert "dev nDCG@10" not in pd.read_csv(results / "histories.csv")
    assert pd.read_csv(results / "table5-all-documents.csv")["system"].tolist()[-1] == "BM25 + CLSM (in-batch)"


def test_top_grades_without_results_or_judgement_are_zero():
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3", "q4", "q5"], "query": "words"})
    qrels = pd.DataFrame(
        [("q1", "a", 3), ("q1", "b", 1), ("q2", "b", 2), ("q3", "a", -1), ("q4", "a", 1)],
        columns=["qid", "docno", "label"],
    )
    found = [("q1", "a", 1), ("q1", "b", 0), ("q2", "a", 0), ("q3", "a", 0), ("q5", "a", 0)]
    run = pd.DataFrame(found, columns=["qid", "docno", "rank"]).assign(query="words", score=0.0)
    once = clsm.top_grades([run], Split(topics, qrels))
    assert once.tolist() == [1, 0, 0, 0]  # b before a; a is not judged; below 0; nothing found; q5 is not judged
    assert clsm.top_grades([run, run], Split(topics, qrels)).tolist() == [1, 0, 0, 0] * 2


def test_grades_of_both_are_in_the_table():
    table = clsm.grade_table(np.array([0, 2, 2]), np.array([1, 0, 0]))
    assert table.to_numpy().tolist() == [[0, 1, 0], [0, 0, 0], [2, 0, 0]]


def test_bars_are_percentages():
    grades = {"telescoped": {"DSSM": np.array([0, 0, 1, 2]), "CLSM": np.array([0, 1, 1, 1])}}
    (axes,) = clsm_figures.top_documents(grades).axes
    assert [bar.get_height() for bar in axes.patches] == [50, 25, 25, 25, 75, 0]


def test_learning_curves_have_a_line_a_seed_and_a_label_a_model():
    rows = [(name, seed, epoch, 0.5) for name in ("DSSM", "CLSM") for seed in (1, 2) for epoch in (1, 2, 3)]
    histories = pd.DataFrame(rows, columns=["system", "seed", "epoch", "loss"])
    (axes,) = clsm_figures.learning_curves(histories).axes
    assert len(axes.lines) == 4
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["DSSM", "CLSM"]
    assert axes.get_ylabel() == "training loss"
    (axes,) = clsm_figures.learning_curves(histories.assign(**{"dev nDCG@10": 0.1})).axes
    assert axes.lines[0].get_ydata().tolist() == [0.1] * 3
