import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, RR, P, nDCG

import pt_neural as pn


@pytest.fixture(scope="module")
def setting():
    """Forty queries with thirty documents; the truth is 0.3 of one noisy score and 0.7 of another."""
    random = np.random.default_rng(5)
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(40)], "query": "x"})
    candidates = topics.merge(pd.DataFrame({"docno": [f"d{i}" for i in range(30)]}), how="cross")
    candidates["score"] = random.normal(size=len(candidates)).round(1)
    candidates["other"] = random.normal(size=len(candidates)).round(1)
    truth = 0.3 * candidates["other"] + 0.7 * candidates["score"] + 0.1 * random.normal(size=len(candidates))
    qrels = candidates[["qid", "docno"]].assign(label=(truth > 0.9).astype(int))
    other = pt.apply.generic(lambda frame: frame.assign(score=frame["other"]))
    return topics, pt.model.add_ranks(candidates), qrels, other


@pytest.mark.parametrize("measure", [nDCG @ 10, AP, RR @ 5, nDCG(judged_only=True) @ 3, P(judged_only=True, rel=1) @ 2])
def test_curve_equals_experiments_of_each_alpha(setting, measure):
    topics, candidates, qrels, other = setting
    mixture = pn.Mixture(other)
    curve = pn.tune_alpha(pt.Transformer.from_df(candidates) >> mixture, topics, qrels, measure, points=5)
    for alpha, value in zip(curve.to_frame()["alpha"], curve.to_frame()[str(measure)], strict=True):
        run = pn.Mixture(other, alpha=alpha).transform(candidates)
        run = run.rename(columns={"qid": "query_id", "docno": "doc_id"})
        judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
        assert value == pytest.approx(ir_measures.calc_aggregate([measure], judged, run)[measure], abs=1e-9)


def test_finds_the_planted_alpha_and_sets_it(setting):
    topics, candidates, qrels, other = setting
    pipeline = pt.Transformer.from_df(candidates) >> pn.Mixture(other, alpha=0.9)
    curve = pn.tune_alpha(pipeline, topics, qrels)
    assert 0.2 <= curve.alpha <= 0.4
    assert pipeline[-1].alpha == curve.alpha
    assert len(curve.to_frame()) == 101


def test_the_smallest_rank_loss_is_the_best(setting):
    _, candidates, qrels, other = setting
    curve = pn.tune_alpha(pn.Mixture(other), candidates, qrels, "RankLoss", points=11, folds=2)
    means = curve.to_frame().set_index("alpha")["RankLoss"]
    assert curve.alpha == means.idxmin()
    assert 0.2 <= curve.alpha <= 0.4
    for alpha in (0.0, 0.3, 1.0):
        run = pn.Mixture(other, alpha=alpha).transform(candidates)
        assert means[alpha] == pytest.approx(1 - pn.experiment.auc_per_query(run, qrels).mean())
    assert all(0.1 <= alpha <= 0.5 for alpha in curve.fold_alphas.values())
    (mark,) = [line for line in curve.plot().lines if line.get_marker() == "o"]
    assert mark.get_ydata() == [means.min()]


def test_measures_by_name(setting):
    _, candidates, qrels, other = setting
    curves = [pn.tune_alpha(pn.Mixture(other), candidates, qrels, measure, points=3) for measure in ("map", AP)]
    pd.testing.assert_frame_equal(curves[0].to_frame(), curves[1].to_frame())


def test_each_side_runs_once_and_ties_go_to_the_smaller_alpha(setting):
    topics, candidates, qrels, _ = setting
    runs = []

    def count(frame):
        runs.append(len(frame))
        return frame

    pipeline = pt.Transformer.from_df(candidates) >> pn.Mixture(pt.apply.generic(count))
    assert pn.tune_alpha(pipeline, topics, qrels, points=11).alpha == 0.0
    assert runs == [len(candidates)]


def test_folds_rank_each_query_with_an_alpha_chosen_without_it(setting):
    topics, candidates, qrels, other = setting
    folds = pd.DataFrame({"qid": topics["qid"], "fold": [i % 2 for i in range(40)]})
    curve = pn.tune_alpha(pn.Mixture(other), candidates, qrels, points=11, folds=folds)
    for fold in (0, 1):
        rest = folds.loc[folds["fold"] != fold, "qid"]
        alone = pn.tune_alpha(pn.Mixture(other), candidates[candidates["qid"].isin(rest)], qrels, points=11)
        assert curve.fold_alphas[fold] == alone.alpha
        mine = curve.run[curve.run["qid"].isin(folds.loc[folds["fold"] == fold, "qid"])]
        np.testing.assert_allclose(
            mine["score"], alone.alpha * mine["other"] + (1 - alone.alpha) * candidates["score"].loc[mine.index]
        )
    assert set(curve.run["qid"]) == set(topics["qid"])


def test_random_folds_depend_on_the_seed_only(setting):
    _, candidates, qrels, other = setting
    first, second = (pn.tune_alpha(pn.Mixture(other), candidates, qrels, points=5, folds=5, seed=1) for _ in range(2))
    assert first.fold_alphas == second.fold_alphas
    assert len(first.fold_alphas) == 5


def test_queries_without_results_count_zero(setting):
    topics, candidates, qrels, other = setting
    present = candidates[candidates["qid"] != "q0"]
    curve = pn.tune_alpha(pt.Transformer.from_df(present) >> pn.Mixture(other), topics, qrels, points=3)
    assert (curve.per_query["q0"] == 0).all()
    assert curve.per_query.shape == (3, 40)


def test_plot_draws_the_curve(setting):
    _, candidates, qrels, other = setting
    curve = pn.tune_alpha(pn.Mixture(other), candidates, qrels, points=11)
    axes = curve.plot(label="planted")
    assert axes.get_xlabel().startswith("alpha")
    np.testing.assert_allclose(axes.lines[0].get_ydata(), curve.to_frame()["nDCG@10"])


def test_clear_errors(setting):
    topics, candidates, qrels, other = setting
    with pytest.raises(ValueError, match="ends with one"):
        pn.tune_alpha(pn.Mixture(other) >> pt.RankCutoff(3), candidates, qrels)
    with pytest.raises(ValueError, match="no query has a judgement"):
        pn.tune_alpha(pn.Mixture(other), candidates, qrels.assign(qid="elsewhere"))
    with pytest.raises(ValueError, match="folds"):
        pn.tune_alpha(pn.Mixture(other), candidates, qrels, points=2, folds=1)
    with pytest.raises(ValueError, match="'q0' occurs twice"):
        pn.tune_alpha(pt.Transformer.from_df(candidates) >> pn.Mixture(other), pd.concat([topics, topics]), qrels)
    with pytest.raises(ValueError, match="columns qid and fold"):
        pn.tune_alpha(pn.Mixture(other), candidates, qrels, points=2, folds=pd.DataFrame({"query-id": ["q0"]}))
    with pytest.raises(ValueError, match="points"):
        pn.tune_alpha(pn.Mixture(other), candidates, qrels, points=0)
    one = pd.DataFrame({"qid": ["q0"], "fold": [0]})
    with pytest.raises(ValueError, match="no fold for query 'q1'"):
        pn.tune_alpha(pn.Mixture(other), candidates, qrels, points=2, folds=one)
