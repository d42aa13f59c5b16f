import pickle
import warnings

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import nDCG
from lightgbm import LGBMRanker
from sklearn.base import BaseEstimator

from pt_neural.experiment import cross_validate


@pytest.fixture(scope="module")
def setting():
    """Twenty queries with thirty documents, relevant where the sum of two noisy features is high."""
    random = np.random.default_rng(5)
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(20)], "query": "x"})
    candidates = topics.merge(pd.DataFrame({"docno": [f"d{i}" for i in range(30)]}), how="cross")
    candidates["score"] = random.normal(size=len(candidates))
    candidates["other"] = random.normal(size=len(candidates))
    candidates["text"] = None
    truth = candidates["score"] + candidates["other"] + 0.3 * random.normal(size=len(candidates))
    qrels = candidates[["qid", "docno"]].assign(label=np.digitize(truth, [2, 3]))
    other = pt.apply.generic(lambda frame: frame.assign(score=frame["other"]))
    return topics, pt.model.add_ranks(candidates), qrels, other


@pytest.fixture(scope="module")
def features(setting):
    _, candidates, _, other = setting
    return pt.Transformer.from_df(candidates) >> (pt.Transformer.identity() ** other)


class Recorder(BaseEstimator):
    """Keeps what it was fitted on, and scores by the sum of the features."""

    def fit(self, x, y, group, eval_set, eval_group):
        self.x, self.y, self.group, self.validation = x, y, group, (*eval_set[0], eval_group[0])
        return self

    def predict(self, x):
        return x.sum(axis=1)


@pytest.fixture(scope="module")
def recorded(setting, features):
    """An ensemble of three folds that took no training."""
    topics, _, qrels, _ = setting
    return cross_validate(features, topics, qrels, folds=3, learner=Recorder())


def values(frame):
    return {tuple(row) for row in np.stack(frame["features"].tolist())}


def test_an_ensemble_beats_its_parts_repeatably_and_silently(setting, features, capfd):
    topics, candidates, qrels, other = setting
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # hidden by Python; PyTerrier has some about pandas
        ensemble, same, third = (cross_validate(features, topics, qrels, folds=2, seed=seed) for seed in (1, 1, 2))
    assert capfd.readouterr() == ("", "")
    pd.testing.assert_frame_equal(ensemble.run, same.run)
    assert not ensemble.run["score"].equals(third.run["score"])
    source = pt.Transformer.from_df(candidates)
    one, two, both = pt.Experiment([source, source >> other, ensemble], topics, qrels, [nDCG @ 10])["nDCG@10"]
    assert both > max(one, two) + 0.1


@pytest.mark.parametrize("validation", [False, True])
def test_no_learner_sees_the_queries_that_it_ranks(setting, features, validation):
    topics, _, qrels, _ = setting
    folds = pd.DataFrame({"qid": topics["qid"], "fold": [i % 4 for i in range(20)]})
    options = {"folds": folds, "learner": Recorder(), "normalise": None, "validation": validation}
    ensemble = cross_validate(features, topics, qrels, **options)
    rows = features.transform(topics).merge(folds, on="qid")
    for fold, learner in ensemble.learners.items():
        held_out = [fold, (fold + 1) % 4] if validation else [fold]
        assert {tuple(row) for row in learner.x} == values(rows[~rows["fold"].isin(held_out)])
        assert learner.group.tolist() == [30] * (20 - 5 * len(held_out))
        if validation:
            assert {tuple(row) for row in learner.validation[0]} == values(rows[rows["fold"] == held_out[1]])
    pd.testing.assert_frame_equal(ensemble.folds, folds)


def test_labels_are_those_of_the_rows_and_unjudged_queries_are_only_ranked(setting, features):
    topics, _, qrels, _ = setting
    judged = qrels[((qrels["label"] > 0) | (qrels["docno"] == "d1")) & ~qrels["qid"].isin(["q3", "q4"])]
    judged = pd.concat([judged.assign(label=judged["label"].replace(0, -2)), judged])  # the first judgement counts
    ensemble = cross_validate(features, topics, judged, learner=Recorder(), normalise=None)
    rows = features.transform(topics)
    unjudged = values(rows[rows["qid"].isin(["q3", "q4"])])
    rows = rows.merge(qrels, on=["qid", "docno"])
    expected = dict(zip(map(tuple, rows["features"]), rows["label"], strict=True))
    for learner in ensemble.learners.values():
        assert learner.y.tolist() == [expected[tuple(row)] for row in learner.x]
        assert unjudged.isdisjoint(map(tuple, learner.x))
    assert set(ensemble.run["qid"]) == set(topics["qid"])


def test_features_are_normalised_within_queries(recorded):
    for _, rows in recorded.run.groupby("qid"):
        raw = np.stack(rows["features"].tolist())
        scaled = (raw - raw.min(axis=0)) / (raw.max(axis=0) - raw.min(axis=0))
        np.testing.assert_allclose(rows["score"], scaled.sum(axis=1))
        assert rows.sort_values("rank")["score"].is_monotonic_decreasing


def test_the_pipeline_runs_once_and_the_rows_keep_their_order(setting):
    _, candidates, qrels, _ = setting
    runs = []

    def count(frame):
        runs.append(len(frame))
        return frame.assign(score=frame["other"])

    features = pt.Transformer.identity() ** pt.apply.generic(count)
    shuffled = candidates.sample(frac=1, random_state=1)
    run = cross_validate(features, shuffled, qrels, learner=Recorder(), verbose=True).run
    assert runs == [len(candidates)]
    assert run[["qid", "docno"]].to_numpy().tolist() == shuffled[["qid", "docno"]].to_numpy().tolist()


def test_ranks_the_incoming_queries(setting, recorded):
    topics, candidates, _, _ = setting
    run = recorded.transform(topics.head(2))
    assert run["qid"].unique().tolist() == ["q0", "q1"]
    pd.testing.assert_frame_equal(recorded.transform(candidates[candidates["qid"].isin(["q0", "q1"])]), run)
    assert recorded.transform(topics.head(0)).empty
    with pytest.raises(ValueError, match="ranks only the queries that it was made with"):
        recorded.transform(topics.assign(qid="elsewhere"))


def test_learners_can_stop_early(setting, features):
    topics, _, qrels, _ = setting
    learner = LGBMRanker(n_estimators=200, early_stopping_round=5, n_jobs=1, verbosity=-1)
    ensemble = cross_validate(features, topics, qrels, folds=3, learner=learner, validation=True)
    assert all(0 < fitted.best_iteration_ < 200 for fitted in ensemble.learners.values())
    assert not hasattr(learner, "best_iteration")


def test_clear_errors(setting, features):
    topics, candidates, qrels, other = setting
    with pytest.raises(ValueError, match=r"gives no features; join rankers by \*\*"):
        cross_validate(pt.Transformer.from_df(candidates) >> other, topics, qrels)
    with pytest.raises(ValueError, match="5 folds need at least as many queries with candidates, but there are 4"):
        cross_validate(features, topics.head(4), qrels)
    for judged in (qrels.assign(qid="elsewhere"), qrels.assign(label=0)):
        with pytest.raises(ValueError, match="judged relevant: are topics and qrels of the same split"):
            cross_validate(features, topics, judged)
    for folds in (0, 1):
        with pytest.raises(ValueError, match="folds must be at least 2"):
            cross_validate(features, topics, qrels, folds=folds)
    with pytest.raises(TypeError, match="folds must be an integer"):
        cross_validate(features, topics, qrels, folds=5.0)
    with pytest.raises(ValueError, match="at least 3 folds"):
        cross_validate(features, topics, qrels, folds=2, validation=True)
    with pytest.raises(ValueError, match="no candidates"):
        cross_validate(features, topics.head(0), qrels)


def test_is_inspected_drawn_and_pickled(setting, recorded):
    topics, _, _, _ = setting
    assert repr(recorded) == "CrossValidated(3 folds, 20 queries)"
    assert pt.inspect.transformer_inputs(recorded) == [["qid"]]
    assert set(pt.inspect.transformer_outputs(recorded, ["qid", "query"])) == set(recorded.run)
    assert "CrossValidated" in pt.schematic.draw(recorded % 5)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(recorded)).transform(topics), recorded.transform(topics))
