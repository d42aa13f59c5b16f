"""Training that starts from a saved ranker, for every ranker that trains."""

import inspect
import shutil
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import nDCG
from torch import nn

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.rankers.trained import copy_weights
from tests.rankers.fitted import (
    CANDIDATES,
    CORPUS,
    NAMES,
    QRELS,
    TRAINING,
    fit,
    fitted,
    ranker_class,
    saved,
    scores,
    spaces,
    unfitted,
)

STARTS = [
    name
    for name in NAMES
    if "training" in inspect.signature(ranker_class(name)).parameters and name != "SSI correlated-hash"
]
LEARNS_WORDS = [name for name in STARTS if name in ("CLSM", "DSSM", "Duet", "DuetDistributed") or name[:3] == "SSI"]
HAS_IDF = [name for name in STARTS if name.startswith(("DRMM", "PACRR", "POSIT", "SSI")) and name != "DRMMTKS"]
MORE = [
    {"docno": "d9", "title": "Zebra", "text": "A zebra quickly jumps over six vexed wolves by the river."},
    {"docno": "d10", "title": "Jazz", "text": "Wolves hum jazz to the giraffe and the zebra."},
]
MORE_TOPICS = pd.DataFrame({"qid": ["q1", "q4"], "query": ["university city", "humming zebra quartz"]})
MORE_CANDIDATES = MORE_TOPICS.merge(pd.DataFrame([*CORPUS, *MORE]), how="cross")
MORE_QRELS = pd.DataFrame({"qid": ["q1", "q4"], "docno": ["d1", "d9"], "label": 1})
NO_STEPS = replace(TRAINING, epochs=1, learning_rate=1e-60)  # 0 in float32


@cache
def started(name, training=NO_STEPS):
    """A ranker on more documents, from that of few."""
    model = unfitted(name, training=replace(training, start=saved(name)))
    return fit(model, MORE_CANDIDATES, MORE_QRELS, [*CORPUS, *MORE])


def weights(ranker) -> dict[str, np.ndarray]:
    return ranker._weights() if hasattr(ranker, "_weights") else ranker.network.arrays()


@pytest.mark.parametrize("name", STARTS)
def test_before_any_step_the_scores_are_those_of_the_start(name):
    model = fit(unfitted(name, training=replace(NO_STEPS, start=saved(name))))
    np.testing.assert_allclose(scores(model, CANDIDATES), scores(fitted(name), CANDIDATES), atol=1e-6)
    assert not np.allclose(scores(fit(unfitted(name, training=NO_STEPS)), CANDIDATES), scores(model, CANDIDATES))


@pytest.mark.parametrize("name", STARTS)
def test_epoch_0_is_the_start(name):
    start = fitted(name)
    training = replace(TRAINING, epochs=1, start=saved(name), dev_measure="nDCG@10")
    history = unfitted(name, training=training).fit(CANDIDATES, QRELS, CANDIDATES, QRELS).history
    measured = pt.Experiment([start], CANDIDATES, QRELS, [nDCG @ 10])["nDCG@10"].item()
    assert history["epoch"].iloc[0] == 0
    assert history["dev nDCG@10"].iloc[0] == pytest.approx(measured)


@pytest.mark.parametrize("name", STARTS)
def test_what_the_start_knew_scores_as_before_among_new_words(name):
    old, new = scores(fitted(name), CANDIDATES), scores(started(name), CANDIDATES)
    if name not in HAS_IDF:
        np.testing.assert_allclose(new, old, atol=1e-5)
    assert np.isfinite(scores(started(name), MORE_CANDIDATES)).all()


@pytest.mark.parametrize("name", LEARNS_WORDS)
def test_known_rows_stay_to_the_bit_and_new_ones_come_after(name):
    old, new = fitted(name), started(name)
    if name.startswith("SSI"):
        own, known = new.features.documents.vocabulary.terms, old.features.documents.vocabulary.terms
        assert {"zebra", "wolves"} <= set(own[len(known) :])
    else:
        own, known = new.reader.hashing.ngrams, old.reader.hashing.ngrams
        assert {"zeb", "ebr"} <= set(own[len(known) :])
    assert own[: len(known)] == known
    if name == "SSI sparse":
        rows, columns = old.network.sparse().shape
        np.testing.assert_array_equal(new.network.sparse().toarray()[:rows, :columns], old.network.sparse().toarray())
        return
    grown = 0
    for part, weight in weights(new).items():
        before = weights(old)[part]
        np.testing.assert_array_equal(weight[tuple(map(slice, before.shape))], before)
        grown += weight.shape != before.shape
        if weight.shape != before.shape and "diagonal" not in part:
            assert weight[len(before) :].any()
    assert grown or name in ("SSI", "SSI hash")  # whose first 15 words have vectors, or all words share weights


def test_full_weights_of_pairs_grow_on_both_sides(tmp_path):
    ssi = fit(pn.SSI("full", training=TRAINING))
    ssi.save(tmp_path / "ssi")
    grown = fit(pn.SSI("full", training=replace(NO_STEPS, start=tmp_path / "ssi")), MORE_CANDIDATES, MORE_QRELS)
    words = ssi.features.documents.vocabulary.terms
    pd.testing.assert_frame_equal(grown.word_weights(words, words), ssi.word_weights(words, words))
    new = grown.word_weights(["zebra"])
    assert new.loc["zebra", "zebra"] == 1  # the identity, as without a start
    assert new.to_numpy().sum() == 1


def test_correlated_hashing_says_why_it_cannot_start():
    model = unfitted("SSI correlated-hash", training=replace(TRAINING, start=saved("SSI correlated-hash")))
    with pytest.raises(ValueError, match="cannot start from another model: its hashed features are"):
        fit(model)


def test_new_weights_are_those_of_the_seed():
    other = started("DSSM", replace(NO_STEPS, seed=14))
    known = len(fitted("DSSM").reader.hashing)
    one, two = (weights(model)["query.hashing.weight"] for model in (started("DSSM"), other))
    np.testing.assert_array_equal(one[:known], two[:known])
    assert (one[known:] != two[known:]).all()
    again = started.__wrapped__("DSSM")
    np.testing.assert_array_equal(weights(again)["query.hashing.weight"], one)


@pytest.mark.parametrize("name", STARTS)
def test_settings_that_differ_are_named_with_both_values(name):
    model = unfitted(name, training=replace(TRAINING, start=saved(name)))
    sizes = ("layers", "filters", "bins", "projection", "dim", "document_terms")
    setting = next(size for size in sizes if size in model.settings())
    value = getattr(model, setting)
    setattr(model, setting, (9, *value[1:]) if isinstance(value, tuple) else value + 3)
    with pytest.raises(ValueError, match="its weights fit rankers with equal settings only") as raised:
        fit(model)
    shown = model.settings()[setting], fitted(name).settings()[setting]
    assert f"{setting}={shown[0]!r}, but start={str(saved(name))!r} has {setting}={shown[1]!r}" in str(raised.value)
    assert model.report is None


def test_settings_of_learning_alone_may_differ():
    model = unfitted("MatchTensor", dropout=0.5, training=replace(NO_STEPS, start=saved("MatchTensor")))
    np.testing.assert_allclose(scores(fit(model), CANDIDATES), scores(fitted("MatchTensor"), CANDIDATES), atol=1e-6)


def test_a_start_of_another_kind_or_none_is_refused(tmp_path):
    for start in ("CLSM", "TFIDF"):
        with pytest.raises(ArtifactError, match=r"describes a ranker '.*', not 'dssm'"):
            fit(unfitted("DSSM", training=replace(TRAINING, start=saved(start))))
    with pytest.raises(FileNotFoundError, match="nothing-here"):
        fit(unfitted("DSSM", training=replace(TRAINING, start=tmp_path / "nothing-here")))


@pytest.mark.parametrize("name", ["DRMM", "MatchTensor", "MatchTensorSSM", "SSM"])
def test_other_embeddings_are_refused_and_equal_ones_are_not(name):
    words, vectors = spaces().vocabulary, spaces().vectors("in")
    training = replace(NO_STEPS, start=saved(name))
    with pytest.raises(ValueError, match="has learned to read other word vectors"):
        fit(unfitted(name, spaces=pn.EmbeddingSpaces.from_vectors(words, -vectors, vectors), training=training))
    equal = pn.EmbeddingSpaces.from_vectors(words, vectors.copy(), -vectors)  # only IN vectors are read
    model = fit(unfitted(name, spaces=equal, training=training))
    np.testing.assert_allclose(scores(model, CANDIDATES), scores(fitted(name), CANDIDATES), atol=1e-6)


def test_boundaries_need_the_same_number_of_fields():
    model = unfitted("MatchTensor", fields="text", training=replace(TRAINING, start=saved("MatchTensor")))
    with pytest.raises(ValueError, match="tells 2 fields apart, and this one 1"):
        fit(model)


def test_networks_that_differ_otherwise_are_refused():
    with pytest.raises(ValueError, match=r"weight is of shape \[3, 2\].*and of shape \[3, 4\] here"):
        copy_weights(nn.Linear(2, 3), nn.Linear(4, 3))
    with pytest.raises(ValueError, match=r"weight is of shape \[3, 2\].*and of shape \[2, 2\] here"):
        copy_weights(nn.Linear(2, 3, bias=False), nn.Linear(2, 2, bias=False))
    with pytest.raises(ValueError, match="bias is of shape None"):
        copy_weights(nn.Linear(2, 3, bias=False), nn.Linear(2, 3))
    network = nn.BatchNorm1d(2)
    network.num_batches_tracked += 5
    copy_weights(network, other := nn.BatchNorm1d(2))
    assert other.num_batches_tracked == 5


def test_the_report_and_the_saved_model_say_what_it_started_from(tmp_path):
    path = tmp_path / "start"
    shutil.copytree(saved("DSSM"), path)
    model = fit(unfitted("DSSM", training=replace(TRAINING, start=path)))
    assert f"documents, starting from {path}" in str(model.report)
    assert "starting from" not in str(fitted("DSSM").report)
    model.save(tmp_path / "model")
    shutil.rmtree(path)
    loaded = pt.Artifact.load(str(tmp_path / "model"))
    assert loaded.training.start == str(path)
    np.testing.assert_array_equal(scores(loaded, CANDIDATES), scores(model, CANDIDATES))


@pytest.mark.parametrize("name", ["DSSM", "SSI"])
def test_checkpoints_belong_to_one_start_wherever_it_is(name, tmp_path, capsys):
    path = tmp_path / "start"
    shutil.copytree(saved(name), path)
    training = replace(TRAINING, start=path, checkpoint_dir=tmp_path / "checkpoints")
    done = fit(unfitted(name, training=training))
    path = path.rename(tmp_path / "moved")
    resumed = fit(unfitted(name, training=replace(training, start=path, verbose=True)))
    assert "finished after epoch 2" in capsys.readouterr().out
    np.testing.assert_array_equal(scores(resumed, CANDIDATES), scores(done, CANDIDATES))
    done.save(path, overwrite=True)
    for other in (path, None):
        with pytest.raises(ValueError, match="holds checkpoints of another run"):
            fit(unfitted(name, training=replace(training, start=other)))


def test_a_model_may_go_on_from_itself(tmp_path):
    model = fit(unfitted("DSSM"))
    model.save(tmp_path / "dssm")
    model.training = replace(TRAINING, start=tmp_path / "dssm")
    first = model.history["loss"].iloc[0]
    candidates = pt.Transformer.from_df(CANDIDATES.assign(score=0.0))
    (candidates >> model).fit(CANDIDATES[["qid", "query"]].drop_duplicates(), QRELS)
    assert model.history["loss"].iloc[0] < first
    model.save(tmp_path / "dssm", overwrite=True)


@pytest.mark.parametrize(
    ("name", "options"), [("DSSM", {"layers": (16, 8)}), ("SSI", {"dim": 8, "shared_vocabulary": False})]
)
def test_what_was_learned_on_one_collection_serves_the_next(name, options, tmp_path):
    """Which words answer which is learned from one collection; the next has few queries, and words of its own."""
    pairs = [("kiwi", "orchard"), ("oboe", "concert"), ("iron", "furnace"), ("rain", "clouds"), ("fox", "burrow")]

    def planted(count, words, seed):
        rng, numbers = np.random.default_rng(seed), np.arange(count)
        queries = [(f"q{number}", f"{pairs[number % 5][0]} {rng.choice(words)}") for number in numbers]
        texts = [(f"d{number}", f"{pairs[number % 5][1]} {rng.choice(words)}") for number in numbers]
        frame = pd.DataFrame(queries, columns=["qid", "query"]).merge(
            pd.DataFrame(texts, columns=["docno", "text"]), how="cross"
        )
        same = np.equal.outer(numbers % 5, numbers % 5).ravel()
        return frame, frame.loc[same, ["qid", "docno"]].assign(label=1)

    def model(**settings):
        training = {"negatives": "random", "num_negatives": 4, "batch_size": 16, "dev_measure": "nDCG@5"} | settings
        training |= {"learning_rate": 0.02 if name == "DSSM" else 0.1, "device": "cpu", "verbose": False}
        return getattr(pn, name)(**options, fields="text", training=pn.Training(**training))

    large, few, dev = planted(20, ["red", "blue"], 1), planted(5, ["zinc", "jazz"], 2), planted(10, ["zinc", "jazz"], 3)
    model(epochs=30).fit(*large).save(tmp_path / "start")
    anew, after = model(epochs=1).fit(*few, *dev), model(epochs=1, start=tmp_path / "start").fit(*few, *dev)
    measured_anew, measured_after = (ranker.history["dev nDCG@5"].iloc[-1] for ranker in (anew, after))
    assert measured_after > 0.95
    assert measured_after > measured_anew + 0.1
