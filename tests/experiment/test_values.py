import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import RR, nDCG

from pt_neural.experiment import per_query


@pytest.fixture
def result():
    """Two systems and two queries; the second system finds nothing for the second query."""
    topics = pd.DataFrame({"qid": ["q2", "q1"], "query": "words"})
    qrels = pd.DataFrame({"qid": ["q1", "q2"], "docno": "d1", "label": 1})
    rows = [("q1", "d0", 2.0, 0), ("q1", "d1", 1.0, 1), ("q2", "d1", 1.0, 0)]
    first = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"]).assign(query="words")
    systems = [pt.Transformer.from_df(frame) for frame in (first, first[first["qid"] == "q1"])]
    return pt.Experiment(systems, topics, qrels, [RR, nDCG @ 1], names=["first", "second"], perquery=True)


def test_a_row_a_query_and_a_column_a_system(result):
    values = per_query(result, RR)
    assert values.columns.tolist() == ["first", "second"]
    assert values.loc[["q1", "q2"]].to_numpy().tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert values.index.name == "qid"
    assert values.columns.name == "RR"


def test_queries_that_a_system_lacks_count_nothing(result):
    lacking = result[(result["name"] != "second") | (result["qid"] != "q1")]
    assert per_query(lacking, RR).loc["q1"].tolist() == [0.5, 0.0]


def test_measures_by_name_and_the_only_one(result):
    expected = per_query(result, nDCG @ 1)
    assert expected["first"].to_dict() == {"q1": 0.0, "q2": 1.0}
    for name in ("nDCG@1", "ndcg_cut_1"):
        pd.testing.assert_frame_equal(per_query(result, name), expected)
    pd.testing.assert_frame_equal(per_query(result[result["measure"] == "nDCG@1"]), expected)


def test_clear_errors(result):
    with pytest.raises(ValueError, match="say which measure"):
        per_query(result)
    with pytest.raises(ValueError, match="AP was not measured, but"):
        per_query(result, "AP")
    with pytest.raises(ValueError, match=r"lacks qid.*perquery=True"):
        per_query(result.drop(columns="qid"))


def test_systems_that_share_a_name_are_not_averaged(result):
    with pytest.raises(ValueError, match=r"'first' has several values of RR for query 'q.'; give each system a name"):
        per_query(result.replace({"name": {"second": "first"}}), RR)


def test_a_system_without_any_value_counts_nothing(result):
    unknown = result.assign(value=result["value"].where(result["name"] != "second"))
    assert per_query(unknown, RR)["second"].tolist() == [0.0, 0.0]
