import itertools
import pickle

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, nDCG

import pt_neural as pn
from pt_neural._evaluation import RankLoss, RunEvaluator, direction, parse_measure, share_in_order
from pt_neural.experiment import auc_per_query, per_query


def frame(**runs):
    """A run of the documents and scores that each query is given."""
    rows = [(qid, docno, score) for qid, run in runs.items() for docno, score in run.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def judgements(**labels):
    return frame(**labels).rename(columns={"score": "label"})


def rank_loss(run, qrels, measure=RankLoss):
    run = run.rename(columns={"qid": "query_id", "docno": "doc_id"})
    qrels = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    return {metric.query_id: metric.value for metric in measure.iter_calc(qrels, run)}


def share_of_wrong_pairs(scores, labels):
    """Every pair in turn; what was not retrieved is below everything."""
    good = [scores.get(docno, -np.inf) for docno, label in labels.items() if label > 0]
    others = [score for docno, score in scores.items() if labels.get(docno, 0) <= 0]
    pairs = [(other > score) + 0.5 * (other == score) for score, other in itertools.product(good, others)]
    return sum(pairs) / len(pairs)


def test_by_hand():
    run = frame(q1={"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}, q2={"a": 1.0, "b": 2.0})
    qrels = judgements(q1={"a": 0, "b": 1, "d": 2}, q2={"b": 1})
    # q1: b is below a and ties with c, 1.5 of 2 pairs; d is below both
    assert rank_loss(run, qrels) == {"q1": 3.5 / 4, "q2": 0.0}
    assert rank_loss(run, qrels, RankLoss(rel=2)) == {"q1": 1.0, "q2": 0.0}


def test_what_was_not_retrieved_is_below_all_others():
    run = frame(q1={"a": 3.0, "b": 2.0, "c": 1.0})
    assert rank_loss(run, judgements(q1={"b": 1, "z": 1})) == {"q1": 3 / 4}


def test_queries_without_a_pair():
    for run, labels, loss in [
        ({}, {"a": 1}, 1.0),  # nothing retrieved
        ({"a": 1.0, "b": 2.0}, {"a": 0}, 0.0),  # nothing relevant
        ({"a": 1.0, "b": 1.0}, {"a": 1, "b": 1}, 0.0),  # only relevant documents
        ({"a": 1.0}, {"a": 1, "b": 1}, 0.5),  # only relevant documents, but not all of them
    ]:
        assert rank_loss(frame(q0={"a": 1.0}, q1=run), judgements(q1=labels)) == {"q1": loss}


def test_random_runs_against_every_pair_in_turn():
    random = np.random.default_rng(4)
    runs, labels = {}, {}
    for number in range(30):
        documents = [f"d{document}" for document in random.permutation(20)]
        runs[f"q{number}"] = dict(zip(documents[:15], random.integers(0, 6, 15).astype(float), strict=True))
        labels[f"q{number}"] = {document: int(random.integers(0, 3)) for document in documents[5:]}
    found = rank_loss(frame(**runs), judgements(**labels))
    assert found == pytest.approx({qid: share_of_wrong_pairs(runs[qid], labels[qid]) for qid in runs})


def test_is_one_minus_the_area_under_the_curve_where_all_relevant_documents_are_retrieved():
    random = np.random.default_rng(5)
    run = frame(**{f"q{i}": {f"d{j}": float(random.integers(0, 9)) for j in range(20)} for i in range(8)})
    qrels = run[["qid", "docno"]].assign(label=random.integers(0, 2, len(run)))
    assert rank_loss(run, qrels) == pytest.approx((1 - auc_per_query(run, qrels)).to_dict())


def test_in_an_experiment_beside_other_measures():
    run = frame(q1={"a": 3.0, "b": 2.0, "c": 1.0}, q2={"a": 1.0}).assign(query="words", rank=[0, 1, 2, 0])
    topics, qrels = run[["qid", "query"]].drop_duplicates(), judgements(q1={"b": 1}, q2={"a": 1}, q3={"a": 1})
    topics = pd.concat([topics, pd.DataFrame({"qid": ["q3"], "query": "words"})])
    system = pt.Transformer.from_df(run)
    result = pt.Experiment([system], topics, qrels, [RankLoss, AP], names=["run"], perquery=True)
    assert per_query(result, "RankLoss")["run"].to_dict() == {"q1": 0.5, "q2": 0.0, "q3": 1.0}
    mean = pt.Experiment([system], topics, qrels, [RankLoss, AP], names=["run"])
    assert mean[["RankLoss", "AP"]].to_numpy().tolist() == [[0.5, 0.5]]


def test_is_found_by_name_and_says_its_direction():
    for measure in (RankLoss, RankLoss(rel=2)):
        assert parse_measure(str(measure)) == measure == pickle.loads(pickle.dumps(measure))
        assert direction(measure) == -1
        training = pn.Training(dev_measure=str(measure))
        assert pn.Training.from_json(training.to_json()).dev_measure == measure
    assert ir_measures.parse_measure("RankLoss") == RankLoss
    assert direction(nDCG @ 10) == direction(AP) == 1


def test_many_score_vectors_over_the_same_rows():
    run = frame(q1={"a": 3.0, "b": 2.0, "c": 1.0}, q2={"a": 1.0, "b": 1.0}, q3={"a": 1.0})
    qrels = judgements(q1={"b": 1}, q2={"a": 1}, q4={"a": 1})
    evaluate = RunEvaluator(run, qrels, ["q2", "q4", "q1", "q3"], RankLoss)
    assert evaluate.qids == ["q2", "q4", "q1"]
    assert evaluate(run["score"].to_numpy()).tolist() == [0.5, 1.0, 0.5]
    assert evaluate(np.array([1.0, 2, 2, 0, 5, 0])).tolist() == [1.0, 1.0, 0.25]
    nothing = RunEvaluator(run[:0], qrels, ["q1", "q2"], RankLoss)
    assert nothing(np.empty(0)).tolist() == [1.0, 1.0]


def test_share_in_order_of_no_rows_and_of_queries_without_pairs():
    none = np.empty(0, dtype=np.int64)
    assert np.isnan(share_in_order(none, none.astype(float), none.astype(bool), 2)).tolist() == [True, True]
    queries, relevant = np.array([2, 0, 2, 0]), np.array([True, True, False, True])
    shares = share_in_order(queries, np.array([1.0, 5.0, 0.0, 6.0]), relevant, 4)
    assert np.isnan(shares).tolist() == [True, True, False, True]
    assert shares[2] == 1.0


@pytest.mark.parametrize("measure", [nDCG, nDCG @ 3])
def test_ndcg_is_that_of_ir_measures_also_where_scores_tie(measure):
    random = np.random.default_rng(8)
    run = frame(**{f"q{i}": {f"d{j}": float(random.integers(0, 6)) for j in range(20)} for i in range(12)})
    qrels = run.sample(60, random_state=1).assign(label=random.integers(-1, 4, 60))[["qid", "docno", "label"]]
    qrels = pd.concat([qrels, judgements(q1={"elsewhere": 2}, q99={"d1": 1}, q98={"d1": 0})])
    qids = [*dict.fromkeys(run["qid"]), "q99", "q98", "unjudged"]
    evaluate = RunEvaluator(run, qrels, qids, measure)
    renamed = [
        each.rename(columns=dict(zip(each, ("query_id", "doc_id", name), strict=True)))
        for each, name in ((run, "score"), (qrels, "relevance"))
    ]
    expected = {metric.query_id: metric.value for metric in measure.iter_calc(renamed[1], renamed[0])}
    assert evaluate.qids[-2:] == ["q99", "q98"]
    np.testing.assert_allclose(evaluate(run["score"].to_numpy()), [expected[qid] for qid in evaluate.qids])
