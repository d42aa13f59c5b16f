from itertools import permutations

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, R, Success, nDCG

from pt_neural.experiment import candidate_recall


@pytest.fixture
def qrels():
    """The second query's grade 2 is not found, the third query finds nothing, the fourth has nothing to find."""
    labels = {"q1": {"d1": 1, "d3": 2, "d9": 0}, "q2": {"d2": 1, "d8": 2}, "q3": {"d1": 1}, "q4": {"d1": 0}}
    rows = [(qid, docno, label) for qid, each in labels.items() for docno, label in each.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


@pytest.fixture
def run():
    """Rows in no order; ranks are those of the scores."""
    rows = [("q1", "d3", 1.0, 3), ("q1", "d9", 4.0, 0), ("q1", "d1", 3.0, 1), ("q1", "d0", 2.0, 2)]
    rows += [("q2", "d2", 2.0, 0), ("q2", "d7", 1.0, 1), ("q4", "d1", 1.0, 0), ("q9", "d1", 1.0, 0)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


def test_by_hand(run, qrels):
    found = candidate_recall(run, qrels, [1, 2, 4])
    frame = found.to_frame()
    assert frame.columns.tolist() == ["depth", "recall", "success", "ceiling"]
    assert frame["depth"].tolist() == [1, 2, 4]
    # Shares of the relevant documents of q1 and q2; q3 and q4 have 0.
    np.testing.assert_allclose(frame["recall"], [(0 + 1 / 2) / 4, (1 / 2 + 1 / 2) / 4, (1 + 1 / 2) / 4])
    np.testing.assert_allclose(frame["success"], [1 / 4, 2 / 4, 2 / 4])
    best = 2 + 1 / np.log2(3)  # of a grade 2 before a grade 1
    np.testing.assert_allclose(frame["ceiling"], [(1 / best) / 4, (2 / best) / 4, (1 + 1 / best) / 4])
    assert found.queries == 4
    assert repr(found) == f"CandidateRecall(recall=0.375, ceiling of nDCG@10={frame['ceiling'][2]:.3f} " + (
        "at 4 candidates, 4 queries)"
    )


def test_as_an_experiment_measures_them(run, qrels):
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3", "q4"], "query": "words"})
    labels = run.merge(qrels, how="left").fillna({"label": 0})["label"]
    ideal = pt.model.add_ranks(run.assign(score=labels.to_numpy(dtype=float)))
    systems = [pt.Transformer.from_df(frame) for frame in (run, ideal)]
    measures = [R @ 2, Success @ 2, AP]
    first, best = pt.Experiment(systems, topics, qrels, measures)[["R@2", "Success@2", "AP"]].to_numpy()
    frame = candidate_recall(run, qrels, [2, 1000], AP).to_frame()
    np.testing.assert_allclose(frame[["recall", "success"]].iloc[0], first[:2])
    assert frame["ceiling"][1] == pytest.approx(best[2])


def dcg(labels):
    return labels[0] + labels[1] / np.log2(3)


def average_precision(labels):
    found = np.flatnonzero(np.array(labels) > 0)
    return sum((number + 1) / (place + 1) for number, place in enumerate(found))


def test_the_ceiling_is_the_best_of_all_orders():
    labels, missed = [0, 2, 0, 1, 1], [2, 0]  # of the candidates, and of documents that are none
    names = [f"d{number}" for number in range(7)]
    qrels = pd.DataFrame({"qid": "q1", "docno": names, "label": labels + missed})
    run = pd.DataFrame({"qid": "q1", "docno": names[:5], "score": [5.0, 4.0, 3.0, 2.0, 1.0]})
    orders = list(permutations(labels))
    expected = {nDCG @ 2: max(map(dcg, orders)) / dcg([2, 2]), AP: max(map(average_precision, orders)) / 4}
    for measure, best in expected.items():
        assert candidate_recall(run, qrels, 5, measure).to_frame()["ceiling"][0] == pytest.approx(best)


def test_order_is_that_of_ranks_or_else_scores(run, qrels):
    frame = candidate_recall(run, qrels).to_frame()
    pd.testing.assert_frame_equal(candidate_recall(run.drop(columns="rank"), qrels).to_frame(), frame)
    pd.testing.assert_frame_equal(candidate_recall(run.assign(rank=run["rank"] + 1, score=0), qrels).to_frame(), frame)
    pd.testing.assert_frame_equal(candidate_recall(pd.concat([run, run]), pd.concat([qrels, qrels])).to_frame(), frame)


def test_only_high_grades_are_relevant(run, qrels):
    frame = candidate_recall(run, qrels, 4, rel=2).to_frame()
    np.testing.assert_allclose(frame["recall"], 1 / 4)


def test_negative_grades_are_not_relevant(run, qrels):
    spam = qrels.assign(label=qrels["label"].where(qrels["label"] > 0, -2))
    pd.testing.assert_frame_equal(candidate_recall(run, spam).to_frame(), candidate_recall(run, qrels).to_frame())


def test_depths_that_one_left_out(qrels):
    run = pd.DataFrame({"qid": "q1", "docno": [f"d{number}" for number in range(110)], "rank": range(110)})
    assert candidate_recall(run, qrels).to_frame()["depth"].tolist() == [1, 2, 5, 10, 20, 50, 110]
    assert candidate_recall(run.head(1), qrels).to_frame()["depth"].tolist() == [1]
    assert candidate_recall(run, qrels, [20, 5, 20]).to_frame()["depth"].tolist() == [5, 20]


def test_picture_names_the_curves(run, qrels):
    axes = candidate_recall(run, qrels, [1, 2, 4], "AP").plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "queries with a relevant candidate",
        "AP of the best re-ranking",
        "recall",
    ]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    np.testing.assert_allclose(axes.lines[2].get_ydata(), [1 / 8, 1 / 4, 3 / 8])
    assert axes.get_ylabel() == "mean over 4 queries"
    crowded = candidate_recall(run, qrels, range(1, 101)).plot()
    assert [label.get_text() for label in crowded.get_xticklabels()][-1] == "100"
    assert len(crowded.get_xticklabels()) < 15
    assert len(candidate_recall(run, qrels, 4).plot().get_xticklabels()) == 1


def test_clear_errors(run, qrels):
    with pytest.raises(ValueError, match="run lacks score; it has qid, docno"):
        candidate_recall(run[["qid", "docno"]], qrels)
    with pytest.raises(TypeError, match="run must be a frame"):
        candidate_recall("bm25.res", qrels)
    with pytest.raises(ValueError, match="the run is empty"):
        candidate_recall(run.head(0), qrels)
    with pytest.raises(ValueError, match="no query of the run has a judgement"):
        candidate_recall(run[run["qid"] == "q9"], qrels)
    with pytest.raises(ValueError, match="qrels lacks label"):
        candidate_recall(run, qrels.drop(columns="label"))
    with pytest.raises(ValueError, match="each number of depths must be at least 1"):
        candidate_recall(run, qrels, [0, 5])
    with pytest.raises(ValueError, match="'nonsense' is no measure"):
        candidate_recall(run, qrels, measure="nonsense")
