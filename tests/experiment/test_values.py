import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import RR, nDCG

from pt_neural.experiment import (
    RankLoss,
    bootstrap,
    by_length,
    mean_over_seeds,
    over_seeds,
    per_query,
    significance,
    standard_errors,
    with_standard_errors,
)

SYSTEMS = {"model": ["model 1", "model 2", "model 3"], "BM25": "BM25"}


@pytest.fixture(scope="module")
def result():
    """Two systems and two queries; the second system finds nothing for the second query."""
    topics = pd.DataFrame({"qid": ["q2", "q1"], "query": "words"})
    qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": "d1", "label": 1})
    rows = [("q1", "d0", 2.0, 0), ("q1", "d1", 1.0, 1), ("q2", "d1", 1.0, 0)]
    first = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"]).assign(query="words")
    systems = [pt.Transformer.from_df(frame) for frame in (first, first[first["qid"] == "q1"])]
    return pt.Experiment(systems, topics, qrels, [RR, nDCG @ 1], names=["first", "second"], perquery=True)


def frame_of(values):
    """The result of an experiment, from the values of each name and measure for q0, q1, ..."""
    rows = [(name, f"q{i}", measure, v) for (name, measure), each in values.items() for i, v in enumerate(each)]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])


@pytest.fixture
def seeds():
    """Two queries, BM25 and three runs of a model, two measures."""
    return frame_of(
        {
            ("BM25", "AP"): [0.2, 0.4],
            ("BM25", "RR"): [1.0, 0.0],
            ("model 1", "AP"): [0.1, 0.3],
            ("model 1", "RR"): [1.0, 1.0],
            ("model 2", "AP"): [0.5, 0.3],
            ("model 2", "RR"): [0.5, 0.5],
            ("model 3", "AP"): [0.9, 0.3],
            ("model 3", "RR"): [0.0, 0.0],
        }
    )


@pytest.fixture
def uneven():
    """One system lacks a query in one measure."""
    return frame_of(
        {("TFIDF", "P@10"): [0.1, 0.3], ("TFIDF", "AP"): [0.2, 0.8], ("SSI", "P@10"): [0.5], ("SSI", "AP"): [1, 0]}
    )


def test_one_row_per_query_and_one_column_per_system(result):
    values = per_query(result, RR)
    assert values.columns.tolist() == ["first", "second"]
    assert values.loc[["q1", "q2"]].to_numpy().tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert values.index.name == "qid"
    assert values.columns.name == "RR"


def test_queries_without_judgements_do_not_count():
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(10)], "query": "words"})
    judged = topics["qid"][:5].tolist()
    qrels = pd.DataFrame({"qid": judged, "docno": "good", "label": 1})
    found = topics.merge(pd.DataFrame({"docno": ["good", "bad"], "score": [2.0, 1.0], "rank": [0, 1]}), how="cross")
    runs = {
        "perfect": found,
        "worst": found.assign(score=-found["score"], rank=1 - found["rank"]),
        "some": found[found["qid"].isin(["q0", "q1", "q9"])],  # nothing for three judged queries
    }
    systems, measures = {name: pt.Transformer.from_df(run) for name, run in runs.items()}, [RR, RankLoss]
    means = pt.Experiment(systems, topics, qrels, measures).set_index("name")
    result = pt.Experiment(systems, topics, qrels, measures, perquery=True)
    for measure in measures:
        values = per_query(result, measure)
        assert sorted(values.index) == judged
        assert values.mean().to_dict() == means[str(measure)].to_dict()
    assert per_query(result, RR).mean().to_dict() == {"perfect": 1.0, "worst": 0.5, "some": 0.4}
    assert per_query(result, RankLoss).mean().to_dict() == {"perfect": 0.0, "worst": 1.0, "some": 0.6}
    values = per_query(result, RR)
    seeds = over_seeds(result, {"perfect": "perfect"}).set_index("measure")
    assert seeds["mean"].to_dict() == {"RR": 1.0, "RankLoss": 0.0}
    assert bootstrap(values[["perfect"]]).to_frame()["mean"].tolist() == [1.0]
    assert significance(values, "perfect").set_index("system")["difference"]["worst"] == -0.5
    assert by_length(values, topics).to_frame()[["queries", "perfect"]].to_numpy().tolist() == [[5, 1]]


def test_systems_must_have_values_for_the_same_queries(result):
    fewer = result[(result["name"] != "second") | (result["qid"] != "q1")]
    with pytest.raises(ValueError, match="'second' has no value of RR for query 'q1', but other systems have"):
        per_query(fewer, RR)
    unknown = result.assign(value=result["value"].where(result["name"] != "second"))
    with pytest.raises(ValueError, match="'second' has no value of RR for query"):
        per_query(unknown, RR)


def test_measures_by_name_and_the_only_one(result):
    expected = per_query(result, nDCG @ 1)
    assert expected["first"].to_dict() == {"q1": 0.0, "q2": 1.0}
    for name in ("nDCG@1", "ndcg_cut_1"):
        pd.testing.assert_frame_equal(per_query(result, name), expected)
    pd.testing.assert_frame_equal(per_query(result[result["measure"] == "nDCG@1"]), expected)


def test_clear_errors(result):
    with pytest.raises(ValueError, match="say which of RR, nDCG@1"):
        per_query(result)
    with pytest.raises(ValueError, match="AP was not measured; the result has"):
        per_query(result, "AP")
    for function in (per_query, standard_errors):
        with pytest.raises(ValueError, match=r"lacks qid.*perquery=True"):
            function(result.drop(columns="qid"))
    with pytest.raises(ValueError, match=r"'first' has several values of RR for query 'q.'; give each system a name"):
        per_query(result.replace({"name": {"second": "first"}}), RR)
    with pytest.raises(ValueError, match="digits"):
        with_standard_errors(result, digits=-1)


def test_mean_and_deviation_over_seeds(seeds):
    frame = over_seeds(seeds, SYSTEMS)
    assert frame.columns.tolist() == ["system", "measure", "seeds", "mean", "deviation"]
    assert frame["system"].tolist() == ["model", "model", "BM25", "BM25"]
    assert frame["measure"].tolist() == ["AP", "RR"] * 2
    assert frame["seeds"].tolist() == [3, 3, 1, 1]
    np.testing.assert_allclose(frame["mean"], [0.4, 0.5, 0.3, 0.5])
    # The means over queries are 0.2, 0.4, 0.6 and 1, 0.5, 0.
    np.testing.assert_allclose(frame["deviation"], [0.2, 0.5, np.nan, np.nan])


def test_values_are_averaged_over_seeds_query_by_query(seeds):
    values = mean_over_seeds(per_query(seeds, "AP"), SYSTEMS)
    assert values.columns.tolist() == ["model", "BM25"]
    assert values.columns.name == "AP"
    np.testing.assert_allclose(values.loc["q0"], [0.5, 0.2])
    np.testing.assert_allclose(values.loc["q1"], [0.3, 0.4])


def test_a_run_may_belong_to_several_systems(seeds):
    frame = over_seeds(seeds[seeds["measure"] == "AP"], {"all": ["model 1", "model 3"], "best": ["model 3"]})
    np.testing.assert_allclose(frame["mean"], [0.4, 0.6])


def test_clear_errors_about_seeds(seeds):
    values = per_query(seeds, "AP")
    for systems in ({"model": ["model 1", "model 9"]}, {"model": "model 9"}):
        with pytest.raises(ValueError, match="system 'model': there is no run 'model 9'; the runs are BM25, model 1"):
            over_seeds(seeds, systems)
        with pytest.raises(ValueError, match="there is no run 'model 9'"):
            mean_over_seeds(values, systems)
    with pytest.raises(ValueError, match="'model': it has no runs"):
        mean_over_seeds(values, {"model": []})
    with pytest.raises(ValueError, match="names a run twice: model 1, model 1"):
        over_seeds(seeds, {"model": ["model 1", "model 1"]})
    for systems in ({}, ["model 1"]):
        with pytest.raises(ValueError, match="systems must map the name"):
            over_seeds(seeds, systems)
    fewer = seeds[(seeds["name"] != "model 2") | (seeds["measure"] != "RR")]
    with pytest.raises(ValueError, match="run 'model 2' of system 'model' has no values of RR"):
        over_seeds(fewer, SYSTEMS)


def test_standard_errors_by_hand(uneven):
    frame = standard_errors(uneven)
    assert frame.columns.tolist() == ["name", "measure", "queries", "mean", "standard_error"]
    rows = list(zip(frame["name"], frame["measure"], frame["queries"], strict=True))
    assert rows == [("TFIDF", "P@10", 2), ("TFIDF", "AP", 2), ("SSI", "P@10", 1), ("SSI", "AP", 2)]
    np.testing.assert_allclose(frame["mean"], [0.2, 0.5, 0.5, 0.5])
    # For two values: half their distance.
    np.testing.assert_allclose(frame["standard_error"], [0.1, 0.3, np.nan, 0.5])
    unjudged = pd.DataFrame({"name": ["SSI"], "qid": ["q9"], "measure": ["AP"], "value": [np.nan]})
    pd.testing.assert_frame_equal(standard_errors(pd.concat([uneven, unjudged])), frame)


def test_the_standard_error_is_the_deviation_of_means_of_samples():
    random = np.random.default_rng(3)
    means = random.exponential(size=(2000, 50)).mean(axis=1)
    sample = pd.DataFrame({"name": "s", "measure": "m", "qid": range(5000), "value": random.exponential(size=5000)})
    assert standard_errors(sample)["standard_error"][0] * np.sqrt(5000 / 50) == pytest.approx(means.std(), rel=0.08)


def test_a_table_as_the_paper_prints_it(uneven):
    table = with_standard_errors(uneven)
    assert table.index.tolist() == ["TFIDF", "SSI"]
    assert table.columns.tolist() == ["P@10", "AP"]
    assert table.to_numpy().tolist() == [["0.200±0.100", "0.500±0.300"], ["0.500", "0.500±0.500"]]
    assert with_standard_errors(uneven, digits=1).loc["TFIDF", "AP"] == "0.5±0.3"
