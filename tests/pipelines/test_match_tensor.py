import json
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from sklearn.metrics import roc_auc_score

import pt_neural as pn
from pipelines.common.collection import Split, load
from pipelines.common.runs import SavedRuns
from pipelines.common.statistical import READ
from pipelines.match_tensor import __main__ as match_tensor
from pipelines.match_tensor import figures
from pipelines.match_tensor.evaluation import MEASURES, Evaluation, precision_at
from pipelines.match_tensor.examples import first_words, misordered
from pipelines.match_tensor.rankers import ALL
from pt_neural.embeddings.phrases import JOINT

UNITS = {"projection": 6, "document_units": 6, "query_units": 4, "hidden": 4}
TENSOR = {"tensor_size": 4, "filters": 3, "second_filters": 4}
SIZES = {"SSM": UNITS, "MatchTensor": UNITS | TENSOR, "MatchTensorSSM": UNITS | TENSOR, "DRMM": {}}
SMALL = ["--epochs", "1", "--batch-size", "8", "--dim", "8", "--depth", "20", "--groups", "12", "--sizes", "2"]
SMALL += ["--document-terms", "30", "--models", "ssm", "match-tensor", "exact-ssm", "drmm", *READ]
OURS = ["SSM", "Match-Tensor", "Match-Tensor(exact only)+SSM"]


@pytest.fixture(scope="module")
def results(run):
    """All parts, with small networks."""
    with pytest.MonkeyPatch.context() as patch:
        for key, spec in ALL.items():
            patch.setitem(ALL, key, replace(spec, options=spec.options | SIZES[spec.model.__name__]))
        return run(match_tensor, *SMALL)


def read(results, name):
    return pd.read_csv(results / f"{name}.csv").set_index("system")


def assert_gains(gains, values, baselines):
    """Values are rounded to four decimals, and gains in percent to two; there are no gains over zero."""
    positive = baselines > 0
    assert positive.sum() > 2
    np.testing.assert_allclose(baselines[positive] * (1 + gains[positive] / 100), values[positive], atol=3e-4)
    assert not np.isfinite(gains[~positive]).any()


@pytest.mark.long
def test_figure_4_is_relative_to_bm25(results, folder):
    values, gains = read(results, "figure4-values"), read(results, "figure4-gains")
    assert values.index.tolist() == ["BM25", *OURS, "DRMM", *READ.values()]
    assert gains.columns.tolist() == values.columns.tolist() == MEASURES
    for name in gains.index:
        assert_gains(gains.loc[name], values.loc[name], values.loc["BM25"])
    run = pd.read_csv(
        results / "runs" / "SSM, seed 13.res.gz", sep=" ", names=["qid", "q0", "docno", "rank", "score", "run"]
    )
    qrels = load(f"neural:folder:{folder}").test.qrels
    labels = run.merge(qrels, how="left", on=["qid", "docno"])["label"]
    assert values["AUC"]["SSM"] == pytest.approx(roc_auc_score(labels > 0, run["score"]), abs=1e-4)


@pytest.mark.long
def test_the_precision_recall_curve_of_each_ranker(results):
    frame = pd.read_csv(results / "precision-recall.csv")
    assert frame.columns.tolist() == ["recall", "BM25", *OURS, "DRMM", *READ.values()]
    assert frame["recall"].tolist() == pytest.approx([number / 10 for number in range(1, 11)])
    assert frame.min().min() >= 0
    assert frame.max().max() <= 1
    assert (results / "precision-recall.png").stat().st_size > 10_000


def test_precision_is_at_the_first_cutoff_that_reaches_the_recall():
    curve = pd.DataFrame({"recall": [0, 0.5, 1, 1], "precision": [0, 0.5, 2 / 3, 0.5]})
    assert precision_at(np.array([0.25, 0.5, 0.51, 1.0]), curve).tolist() == [0.5, 0.5, 2 / 3, 2 / 3]


@pytest.mark.long
def test_table_3_compares_encoders(results):
    values, gains = read(results, "table3-values"), read(results, "table3")
    assert gains.index.tolist() == OURS
    for name in OURS:
        assert_gains(gains.loc[name], values.loc[name], values.loc[f"{name}, CNN"])
    assert read(results, "figure4-values").loc[OURS].equals(values.loc[OURS])


@pytest.mark.long
def test_table_4_adds_bm25(results):
    values, gains = read(results, "table4-values"), read(results, "table4")
    assert gains.index.tolist() == [f"{name} & BM25" for name in [*OURS, "DRMM"]]
    for name in gains.index:
        assert_gains(gains.loc[name], values.loc[name], values.loc[name.removesuffix(" & BM25")])
    assert "12 dev queries" in (results / "table4.md").read_text()
    assert not read(results, "figure4-values").loc[OURS].equals(values.loc[OURS])  # whose queries are the test queries
    assert len(list((results / "runs-ensembles").glob("*& BM25, seed 13.res.gz"))) == 4


@pytest.mark.long
def test_figure_3_ends_at_the_models_of_figure_4(results):
    frame, values = pd.read_csv(results / "figure3.csv"), read(results, "figure4-values")
    assert frame["queries"].tolist() == [6, 12] * 3
    histories = pd.read_csv(results / "histories.csv")
    assert histories["system"].str.endswith(", 6 queries").any()
    assert histories["dev nDCG@10"].notna().all()  # all are trained alike
    last = frame[frame["queries"] == 12].set_index("system")
    np.testing.assert_allclose(last["AUC"], values["AUC"][OURS], atol=1e-4)
    assert last["AUC, %"].tolist() == [100.0] * 3
    first = frame[frame["queries"] == 6].set_index("system")
    np.testing.assert_allclose(first["AUC, %"], 100 * first["AUC"] / last["AUC"], atol=0.05)


@pytest.mark.long
def test_table_5_has_pairs_of_each_ranker(results):
    frame = pd.read_csv(results / "table5.csv")
    assert frame.columns.tolist() == ["query", "irrelevant", "relevant", "ordered wrongly by"]
    assert set(frame["ordered wrongly by"]) <= {"BM25", *OURS, "DRMM"} - {"Match-Tensor"}
    assert frame["ordered wrongly by"].value_counts().max() <= 2
    assert len(frame)
    assert frame["relevant"].str.match(r"Document \d+ \w+").all()


@pytest.mark.long
def test_the_folder_tells_how_the_results_were_made(results):
    settings = json.loads((results / "settings.json").read_text())
    assert (settings["chosen"]["negatives"], settings["chosen"]["grades"]) == ("retrieved", None)
    assert settings["arguments"]["ensembles"] == "dev"
    systems = pd.read_csv(results / "histories.csv")["system"].unique()
    assert set(systems) == {*OURS, "DRMM", *(f"{name}{kind}" for name in OURS for kind in (", CNN", ", 6 queries"))}
    for number in (3, 4):
        assert (results / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_phrases_are_read_by_all_rankers(run, tmp_path, monkeypatch):
    learn = partial(pn.PhraseJoiner.learn, min_count=1, threshold=1e-9)  # all pairs of words
    monkeypatch.setattr(pn.PhraseJoiner, "learn", learn)
    options = SMALL[: SMALL.index("--models")]
    results = run(match_tensor, *options, "--models", "drmm", "--parts", "--phrases", out=tmp_path)
    assert len(pd.read_csv(results / "figure4-gains.csv")) == 1
    (words,) = tmp_path.glob("artifacts/*/forward-phrases")
    joined = [JOINT in term for term in pn.ForwardIndex(words).vocabulary.terms]
    assert sum(joined) > len(joined) / 2


@pytest.mark.long
def test_rows_parts_and_seeds_are_chosen(run, tmp_path):
    options = ["--models", "drmm", "--parts", "table3", "table4", "figure3", "table5", "--ensembles", "test"]
    results = run(match_tensor, *SMALL, *options, "--seeds", "13", "14", out=tmp_path)
    assert {path.stem for path in results.glob("*.csv")} == {
        *("figure4-gains", "figure4-values", "precision-recall", "table4", "table4-values", "histories")
    }
    assert read(results, "figure4-values").loc["DRMM"].str.contains("±").all()
    assert not read(results, "figure4-values").loc["BM25"].astype(str).str.contains("±").any()
    assert "12 test queries, 2 seeds" in (results / "table4.md").read_text()
    assert list((results / "runs-ensembles").glob("DRMM & BM25, seed 14*"))


def test_gains_are_of_means_over_seeds(tmp_path):
    qids = [f"q{number}" for number in range(4)]
    topics = pd.DataFrame({"qid": qids, "query": "words"})
    qrels = pd.DataFrame({"qid": qids, "docno": "a", "label": 1})

    def ranker(places):
        rows = [
            (qid, "words", docno, -float(rank), rank)
            for qid, place in zip(qids, places, strict=True)
            for rank, docno in enumerate(["b", "a"] if place else ["a", "b"])
        ]
        return pt.Transformer.from_df(pd.DataFrame(rows, columns=["qid", "query", "docno", "score", "rank"]))

    evaluation = Evaluation(Split(topics, qrels), SavedRuns(tmp_path, {}))
    evaluation.add("base", ranker([0, 0, 1, 1]))
    evaluation.add("two", {1: ranker([0, 0, 0, 0]), 2: ranker([0, 1, 1, 1])})
    evaluation.add("base", ranker([1, 1, 1, 1]))  # the name is not new
    assert evaluation.table(["base", "two"])["nDCG@1"].tolist() == ["0.5000", "0.6250 ± 0.5303"]
    gains = evaluation.gains({"two": "base"}).set_index("system").loc["two"]
    assert gains["nDCG@1"] == 25.0
    assert gains["AUC"] == gains["AUC by query"] == 25.0  # the pair of each query is in order, or is not


def test_misordered_pairs_by_hand():
    run = pd.DataFrame(
        [("q1", docno, rank) for rank, docno in enumerate("abcd")]
        + [("q2", docno, rank) for rank, docno in enumerate("ab")]
        + [("q3", docno, rank) for rank, docno in enumerate("ba")],
        columns=["qid", "docno", "rank"],
    ).assign(query="words")
    reference = run.assign(rank=[3, 2, 0, 1, 1, 0, 1, 0])
    qrels = pd.DataFrame(
        [("q1", "c", 1), ("q1", "d", 2), ("q1", "b", 0), ("q2", "b", 1)], columns=["qid", "docno", "label"]
    )
    found = misordered(run, reference, qrels, 5)[["qid", "irrelevant", "relevant"]]  # q3 has no judgement
    assert found.to_numpy().tolist() == [["q1", "a", "c"], ["q2", "a", "b"]]  # c is lower in the run than b
    assert len(misordered(run, reference, qrels, 1)) == 1
    assert misordered(run, run, qrels, 5).empty


def test_first_words():
    documents = pd.DataFrame({"docno": ["a", "b"], "title": ["A title", None], "text": ["x " * 20, "short"]})
    loader = pt.apply.generic(lambda frame: frame.merge(documents, on="docno"))
    words = first_words(pd.Series(["b", "a"]), loader, ["title", "text"])
    assert words == ["short", "A title" + " x" * 10 + " …"]


def test_bars_of_figure_4():
    frame = pd.DataFrame({"system": ["SSM", "DRMM"], "nDCG@1": [5.0, -2.0], "AUC": [11.0, 3.0]})
    left, right = figures.relative_bars(frame, [["nDCG@1"], ["AUC"]], "BM25").axes
    assert [bar.get_height() for bar in left.patches] == [5.0, -2.0]
    assert [bar.get_height() for bar in right.patches] == [11.0, 3.0]
    assert left.get_ylabel() == "difference from BM25, %"


def test_lines_of_figure_3():
    frame = pd.DataFrame({"system": ["SSM"] * 2 + ["DRMM"] * 2, "queries": [8, 16] * 2, "AUC, %": [90.0, 100.0] * 2})
    (ax,) = figures.learning_curves(frame, "AUC").axes
    assert ax.lines[1].get_xydata().tolist() == [[8, 90.0], [16, 100.0]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["8", "16"]
