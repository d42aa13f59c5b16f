import itertools

import numpy as np
import pandas as pd
import pytest

from pt_neural.experiment import auc, auc_per_query


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


def test_by_hand(run, qrels):
    # relevant: 3 and 8; others: 2, 1 and 9; q3 has no judgement
    assert auc(run, qrels) == pytest.approx(4 / 6)
    assert auc(run, qrels, unjudged="left out") == pytest.approx(2 / 2)  # 3 and 8 against 2
    assert auc(run, qrels, rel=2) == pytest.approx(2 / 4)  # 3 against 2, 1, 9 and 8
    assert auc_per_query(run, qrels).to_dict() == {"q1": 1.0, "q2": 0.0}
    assert auc_per_query(run, qrels, unjudged="left out").to_dict() == {"q1": 1.0}


def test_is_the_share_of_pairs_in_order():
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


def test_each_pair_is_judged_once(run, qrels):
    assert auc(run, pd.concat([qrels, qrels.assign(label=0)])) == pytest.approx(4 / 6)


def test_clear_errors(run, qrels):
    with pytest.raises(ValueError, match="no candidate is relevant"):
        auc(run, qrels.assign(label=0))
    with pytest.raises(ValueError, match="no candidate is relevant"):
        auc(run, qrels.assign(qid="elsewhere"))
    with pytest.raises(ValueError, match="all candidates are relevant"):
        auc(run, qrels[qrels["label"] > 0], unjudged="left out")
    with pytest.raises(ValueError, match="unjudged must be one of"):
        auc(run, qrels, unjudged="ignored")
    with pytest.raises(ValueError, match="qrels lacks label"):
        auc_per_query(run, qrels.drop(columns="label"))
    assert auc_per_query(run, qrels.assign(label=0)).empty
