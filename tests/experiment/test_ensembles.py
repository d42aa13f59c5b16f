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
    """Forty queries with thirty documents, relevant where two noisy features are high together."""
    random = np.random.default_rng(5)
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(40)], "query": "x"})
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


def values(frame):
    return {tuple(row) for row in np.stack(frame["features"].tolist())}


def test_an_ensemble_beats_its_parts(setting, features):
    topics, candidates, qrels, other = setting
    ensemble = cross_validate(features, topics, qrels)
    source = pt.Transformer.from_df(candidates)
    one, two, both = pt.Experiment([source, source >> other, ensemble], topics, qrels, [nDCG @ 10])["nDCG@10"]
    assert both > max(one, two) + 0.1


def test_no_learner_sees_the_queries_that_it_ranks(setting, features):
    topics, _, qrels, _ = setting
    folds = pd.DataFrame({"qid": topics["qid"], "fold": [i % 4 for i in range(40)]})
    ensemble = cross_validate(features, topics, qrels, folds=folds, learner=Recorder(), normalise=None)
    rows = features.transform(topics).merge(folds, on="qid")
    for fold, learner in ensemble.learners.items():
        assert {tuple(row) for row in learner.x} == values(rows[rows["fold"] != fold])
        assert learner.group.tolist() == [30] * 30
    pd.testing.assert_frame_equal(ensemble.folds, folds)


def test_validation_takes_the_next_fold(setting, features):
    topics, _, qrels, _ = setting
    folds = pd.DataFrame({"qid": topics["qid"], "fold": [i % 4 for i in range(40)]})
    options = {"folds": folds, "learner": Recorder(), "normalise": None, "validation": True}
    ensemble = cross_validate(features, topics, qrels, **options)
    rows = features.transform(topics).merge(folds, on="qid")
    for fold, learner in ensemble.learners.items():
        following = (fold + 1) % 4
        assert {tuple(row) for row in learner.validation[0]} == values(rows[rows["fold"] == following])
        assert {tuple(row) for row in learner.x} == values(rows[~rows["fold"].isin([fold, following])])


def test_labels_are_those_of_the_rows(setting, features):
    topics, _, qrels, _ = setting
    judged = qrels[(qrels["label"] > 0) | (qrels["docno"] == "d1")]
    judged = pd.concat([judged.assign(label=judged["label"].replace(0, -2)), judged])  # the first judgement counts
    ensemble = cross_validate(features, topics, judged, learner=Recorder(), normalise=None)
    rows = features.transform(topics).merge(qrels, on=["qid", "docno"])
    expected = dict(zip(map(tuple, rows["features"]), rows["label"], strict=True))
    for learner in ensemble.learners.values():
        assert learner.y.tolist() == [expected[tuple(row)] for row in learner.x]


def test_queries_without_judgements_are_ranked_and_not_learned_from(setting, features):
    topics, _, qrels, _ = setting
    judged = qrels[~qrels["qid"].isin(["q3", "q4"])]
    ensemble = cross_validate(features, topics, judged, learner=Recorder(), normalise=None)
    assert set(ensemble.run["qid"]) == set(topics["qid"])
    rows = features.transform(topics)
    unjudged = values(rows[rows["qid"].isin(["q3", "q4"])])
    assert all(unjudged.isdisjoint(map(tuple, learner.x)) for learner in ensemble.learners.values())


def test_features_are_scaled_within_queries(setting, features):
    topics, _, qrels, _ = setting
    run = cross_validate(features, topics, qrels, learner=Recorder()).run
    for _, rows in run.groupby("qid"):
        raw = np.stack(rows["features"].tolist())
        scaled = (raw - raw.min(axis=0)) / (raw.max(axis=0) - raw.min(axis=0))
        np.testing.assert_allclose(rows["score"], scaled.sum(axis=1))
        assert rows.sort_values("rank")["score"].is_monotonic_decreasing


def test_repeatable_by_seed_and_silent(setting, features, capfd):
    topics, _, qrels, _ = setting
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # which Python hides; PyTerrier has some of pandas
        first, second, third = (cross_validate(features, topics, qrels, seed=seed).run for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, second)
    assert not first["score"].equals(third["score"])
    assert capfd.readouterr() == ("", "")


def test_the_pipeline_runs_once_and_the_rows_stay_in_place(setting):
    _, candidates, qrels, _ = setting
    runs = []

    def count(frame):
        runs.append(len(frame))
        return frame.assign(score=frame["other"])

    features = pt.Transformer.identity() ** pt.apply.generic(count)
    shuffled = candidates.sample(frac=1, random_state=1)
    run = cross_validate(features, shuffled, qrels).run
    assert runs == [len(candidates)]
    assert run[["qid", "docno"]].to_numpy().tolist() == shuffled[["qid", "docno"]].to_numpy().tolist()
    again = cross_validate(features, shuffled, qrels, verbose=True)
    pd.testing.assert_frame_equal(again.run, run)


def test_runs_the_queries_that_come_in(setting, features):
    topics, candidates, qrels, _ = setting
    ensemble = cross_validate(features, topics, qrels, folds=3)
    some = ensemble.transform(topics.head(2))
    assert some["qid"].unique().tolist() == ["q0", "q1"]
    pd.testing.assert_frame_equal(ensemble.transform(candidates[candidates["qid"].isin(["q0", "q1"])]), some)
    assert ensemble.transform(topics.head(0)).empty
    assert repr(ensemble) == "CrossValidated(3 folds, 40 queries)"


def test_learners_can_stop_early(setting, features):
    topics, _, qrels, _ = setting
    learner = LGBMRanker(n_estimators=500, early_stopping_round=5, n_jobs=1, verbosity=-1)
    ensemble = cross_validate(features, topics, qrels, learner=learner, validation=True)
    assert all(0 < fitted.best_iteration_ < 500 for fitted in ensemble.learners.values())
    assert not hasattr(learner, "best_iteration")


def test_clear_errors(setting, features):
    topics, candidates, qrels, other = setting
    with pytest.raises(ValueError, match=r"gives no features; join rankers by \*\*"):
        cross_validate(pt.Transformer.from_df(candidates) >> other, topics, qrels)
    with pytest.raises(ValueError, match="5 folds need as many queries with candidates, and there are 4"):
        cross_validate(features, topics.head(4), qrels)
    with pytest.raises(ValueError, match="judged relevant: are topics and qrels of the same split"):
        cross_validate(features, topics, qrels.assign(qid="elsewhere"))
    with pytest.raises(ValueError, match="judged relevant"):
        cross_validate(features, topics, qrels.assign(label=0))
    for folds in (0, 1):
        with pytest.raises(ValueError, match="folds must be at least 2"):
            cross_validate(features, topics, qrels, folds=folds)
    with pytest.raises(TypeError, match="folds must be an integer"):
        cross_validate(features, topics, qrels, folds=5.0)
    with pytest.raises(ValueError, match="ranks only the queries that it was made with"):
        cross_validate(features, topics, qrels, folds=2).transform(topics.assign(qid="elsewhere"))
    with pytest.raises(ValueError, match="at least 3 folds"):
        cross_validate(features, topics, qrels, folds=2, validation=True)
    with pytest.raises(ValueError, match="no candidates"):
        cross_validate(features, topics.head(0), qrels)


def test_is_inspected_drawn_and_pickled(setting, features):
    topics, _, qrels, _ = setting
    ensemble = cross_validate(features, topics, qrels, folds=2)
    assert pt.inspect.transformer_inputs(ensemble) == [["qid"]]
    assert set(pt.inspect.transformer_outputs(ensemble, ["qid", "query"])) == set(ensemble.run)
    assert "CrossValidated" in pt.schematic.draw(ensemble % 5)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(ensemble)).transform(topics), ensemble.transform(topics))
