import itertools

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pt_neural.experiment import auc, auc_per_query, expected_reciprocal_rank, precision_recall


@pytest.fixture
def run():
    rows = [
        ("q1", "a", 3.0),
        ("q1", "b", 2.0),
        ("q1", "c", 1.0),
        ("q2", "a", 9.0),
        ("q2", "b", 8.0),
        ("q3", "a", 7.0),
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


@pytest.fixture
def qrels():
    rows = [("q1", "a", 2), ("q1", "b", 0), ("q1", "z", 1), ("q2", "b", 1)]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def share_of_pairs_in_order(relevant, others):
    """What the area under the ROC curve is, with ties as half a pair."""
    pairs = [(x > y) + 0.5 * (x == y) for x, y in itertools.product(relevant, others)]
    return sum(pairs) / len(pairs)


def test_auc_by_hand(run, qrels):
    # relevant: 3 and 8; others: 2, 1 and 9; q3 has no judgement
    assert auc(run, qrels) == pytest.approx(4 / 6)
    assert auc(run, qrels, unjudged="left out") == pytest.approx(2 / 2)  # 3 and 8 against 2
    assert auc(run, qrels, rel=2) == pytest.approx(2 / 4)  # 3 against 2, 1, 9 and 8
    assert auc_per_query(run, qrels).to_dict() == {"q1": 1.0, "q2": 0.0}
    assert auc_per_query(run, qrels, unjudged="left out").to_dict() == {"q1": 1.0}


def test_the_precision_recall_curve_by_hand(run, qrels):
    # by score: 9, 8 (relevant), 3 (relevant), 2, 1
    curve = precision_recall(run, qrels)
    assert curve["recall"].tolist() == [0, 0.5, 1, 1, 1]
    assert curve["precision"].tolist() == pytest.approx([0, 1 / 2, 2 / 3, 2 / 4, 2 / 5])
    assert precision_recall(run, qrels, rel=2)["precision"].tolist() == pytest.approx([0, 0, 1 / 3, 1 / 4, 1 / 5])
    curve = precision_recall(run, qrels, unjudged="left out")  # 8 and 3, and 2
    assert curve["precision"].tolist() == pytest.approx([1, 1, 2 / 3])


def test_auc_is_the_share_of_pairs_in_order():
    random = np.random.default_rng(2)
    run = pd.DataFrame({"qid": np.repeat([f"q{i}" for i in range(6)], 20), "docno": [f"d{i}" for i in range(20)] * 6})
    run["score"] = random.integers(0, 8, len(run)).astype(float)  # with ties
    qrels = run[["qid", "docno"]].assign(label=random.integers(0, 3, len(run))).sample(60, random_state=1)
    merged = run.merge(qrels, how="left").fillna({"label": 0})
    relevant = merged["label"] > 0
    assert auc(run, qrels) == pytest.approx(share_of_pairs_in_order(run["score"][relevant], run["score"][~relevant]))
    areas = auc_per_query(run, qrels)
    assert len(areas) == 6
    for qid, rows in merged.groupby("qid"):
        expected = share_of_pairs_in_order(rows["score"][rows["label"] > 0], rows["score"][rows["label"] == 0])
        assert areas[qid] == pytest.approx(expected)


def test_repeated_judgements_count_once(run, qrels):
    assert auc(run, pd.concat([qrels, qrels.assign(label=0)])) == pytest.approx(4 / 6)


def test_clear_errors_of_auc(run, qrels):
    with pytest.raises(ValueError, match="no candidate is relevant"):
        auc(run, qrels.assign(label=0))
    with pytest.raises(ValueError, match="no candidate is relevant"):
        auc(run, qrels.assign(qid="elsewhere"))
    with pytest.raises(ValueError, match="no candidate is relevant, so the precision-recall curve means nothing"):
        precision_recall(run, qrels.assign(label=0))
    with pytest.raises(ValueError, match="all candidates are relevant"):
        auc(run, qrels[qrels["label"] > 0], unjudged="left out")
    with pytest.raises(ValueError, match="unjudged must be one of"):
        auc(run, qrels, unjudged="ignored")
    with pytest.raises(ValueError, match="qrels lacks label"):
        auc_per_query(run, qrels.drop(columns="label"))
    assert auc_per_query(run, qrels.assign(label=0)).empty


@pytest.fixture
def graded():
    rows = [("city-1", "a b", 2), ("city-1", "c", 4), ("r", "a b", 1), ("none", "c", 0), ("unseen", "c", 1)]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


@pytest.fixture
def graded_run():
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


def test_expected_reciprocal_rank_by_hand(graded, graded_run):
    # Chapelle et al., equation 4: a user reads on until satisfied, by a grade g with probability (2^g - 1) / 16
    first = 0 + 1 / 2 * 3 / 16 + 1 / 3 * (1 - 3 / 16) * 15 / 16
    found = values(expected_reciprocal_rank(10), graded, graded_run)
    assert found == pytest.approx({"city-1": first, "r": 1 / 32, "none": 0, "unseen": 0}, abs=1e-5)
    assert values(expected_reciprocal_rank(2), graded, graded_run)["city-1"] == pytest.approx(3 / 32, abs=1e-5)


def test_expected_reciprocal_rank_is_that_of_ir_measures_if_it_takes_the_names(graded, graded_run):
    # "r" has two documents that tie: the new names must sort like the old ones
    numbers = {qid: str(number) for number, qid in enumerate(["city-1", "r", "none", "unseen", "unjudged"])}
    qrels, run = (
        frame.assign(qid=frame["qid"].map(numbers), docno=frame["docno"].str.replace(" ", "_"))
        for frame in (graded, graded_run)
    )
    assert values(expected_reciprocal_rank(10), qrels, run) == values(ir_measures.ERR @ 10, qrels, run)


def test_expected_reciprocal_rank_in_an_experiment(graded, graded_run):
    topics = pd.DataFrame({"qid": ["city-1", "r"], "query": "x"})
    ranker = pt.Transformer.from_df(pt.model.add_ranks(graded_run.assign(query="x")))
    table = pt.Experiment([ranker], topics, graded, [expected_reciprocal_rank(1), "ndcg_cut_10"])
    assert table["ERR@1"].tolist() == [0.0]
    table = pt.Experiment([ranker], topics, graded, [expected_reciprocal_rank()], perquery=True)
    assert table.set_index("qid")["value"]["r"] == pytest.approx(1 / 32, abs=1e-5)


def test_clear_errors_of_expected_reciprocal_rank(graded, graded_run):
    with pytest.raises(ValueError, match="cutoff must be at least 1"):
        expected_reciprocal_rank(0)
    with pytest.raises(ValueError, match="grades up to 4, but there is a 5"):
        values(expected_reciprocal_rank(), graded.assign(label=graded["label"] + 1), graded_run)
