import ir_measures
import pandas as pd
import pyterrier as pt
import pytest

from pt_neural.experiment import expected_reciprocal_rank


@pytest.fixture
def qrels():
    rows = [("city-1", "a b", 2), ("city-1", "c", 4), ("r", "a b", 1), ("none", "c", 0), ("unseen", "c", 1)]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


@pytest.fixture
def run():
    rows = [
        ("city-1", "x", 9.0),
        ("city-1", "a b", 8.0),
        ("city-1", "c", 7.0),
        ("r", "c", 1.0),
        ("r", "a b", 1.0),
        ("none", "c", 1.0),
        ("unjudged", "c", 1.0),
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def values(measure, qrels, run):
    qrels = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    run = run.rename(columns={"qid": "query_id", "docno": "doc_id"})
    return {metric.query_id: metric.value for metric in ir_measures.iter_calc([measure], qrels, run)}


def test_by_hand(qrels, run):
    # Chapelle et al., equation 4: a user goes down until satisfied, by a grade g with probability (2^g - 1) / 16
    first = 0 + 1 / 2 * 3 / 16 + 1 / 3 * (1 - 3 / 16) * 15 / 16
    found = values(expected_reciprocal_rank(10), qrels, run)
    assert found == pytest.approx({"city-1": first, "r": 1 / 32, "none": 0, "unseen": 0}, abs=1e-5)
    assert values(expected_reciprocal_rank(2), qrels, run)["city-1"] == pytest.approx(3 / 32, abs=1e-5)


def test_is_ir_measures_own_where_that_takes_the_names(qrels, run):
    # "r" has two documents that tie: names must sort as they did
    numbers = {qid: str(number) for number, qid in enumerate(["city-1", "r", "none", "unseen", "unjudged"])}
    qrels, run = (
        frame.assign(qid=frame["qid"].map(numbers), docno=frame["docno"].str.replace(" ", "_"))
        for frame in (qrels, run)
    )
    assert values(expected_reciprocal_rank(10), qrels, run) == values(ir_measures.ERR @ 10, qrels, run)


def test_in_an_experiment(qrels, run):
    topics = pd.DataFrame({"qid": ["city-1", "r"], "query": "x"})
    ranker = pt.Transformer.from_df(pt.model.add_ranks(run.assign(query="x")))
    table = pt.Experiment([ranker], topics, qrels, [expected_reciprocal_rank(1), "ndcg_cut_10"])
    assert table["ERR@1"].tolist() == [0.0]
    table = pt.Experiment([ranker], topics, qrels, [expected_reciprocal_rank()], perquery=True)
    assert table.set_index("qid")["value"]["r"] == pytest.approx(1 / 32, abs=1e-5)


def test_clear_errors(qrels, run):
    with pytest.raises(ValueError, match="cutoff must be at least 1"):
        expected_reciprocal_rank(0)
    with pytest.raises(ValueError, match="grades up to 4, and there is a 5"):
        values(expected_reciprocal_rank(), qrels.assign(label=qrels["label"] + 1), run)
