"""What SSI refuses and says, and what it keeps: seeds, checkpoints, files, pickles."""

import pickle
from shutil import rmtree

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch

import pt_neural as pn
from pt_neural._artifacts import ArtifactError
from pt_neural.models import ssi_kinds
from pt_neural.models.ssi_kinds import KINDS, OF_ONE_VOCABULARY, WITH_VECTORS, shape_of

SMALL = {"dim": 3, "embedded_terms": 9, "hash_size": 101, "nonzeros": 3, "rounds": 2}


def quick(**options) -> pn.Training:
    return pn.Training(**{"epochs": 2, "num_negatives": 3, "learning_rate": 0.2, "verbose": False, **options})


@pytest.fixture
def candidates(corpus, topics) -> pd.DataFrame:
    return topics.merge(pd.DataFrame(corpus), how="cross")


@pytest.fixture
def qrels() -> pd.DataFrame:
    return pd.DataFrame({"qid": ["q1", "q1", "q2", "q3"], "docno": ["d1", "d2", "d3", "d5"], "label": 1})


@pytest.fixture
def fit(candidates, qrels):
    """Fits a small model of a kind; ``training`` names what differs in its settings."""

    def fitted(kind="low-rank", *, training=None, monolingual=None, own_queries=False, **options):
        model = pn.SSI(kind, **{**SMALL, **options}, training=quick(**(training or {})))
        return model.fit(candidates, qrels, monolingual=monolingual, own_queries=own_queries)

    return fitted


def weights(model: pn.SSI) -> dict[str, np.ndarray]:
    return {name: weight.numpy() for name, weight in model.network.state_dict().items()}


def check_equal_weights(one: pn.SSI, other: pn.SSI) -> None:
    for (name, weight), also in zip(weights(one).items(), weights(other).values(), strict=True):
        np.testing.assert_array_equal(weight, also, err_msg=name)


# What is refused


def test_a_w_that_takes_too_much_memory_is_refused(fit, monkeypatch):
    for kind in ("full", "sparse"):
        message = r"W of 100,000 by 100,000 words would take 40\.0 GB, and 4\.3 are the most: give max_terms=32,768 or"
        with pytest.raises(ValueError, match=message):
            shape_of(pn.SSI(kind).settings(), 100_000, 100_000)
        assert shape_of(pn.SSI(kind).settings(), 30_000, 30_000).pairs == 900_000_000
    monkeypatch.setattr(ssi_kinds, "MOST_WEIGHTS", 100)
    with pytest.raises(ValueError, match="give max_terms=10 or fewer, or choose kind='low-rank' or 'hash'"):
        fit("full")
    assert fit("full", max_terms=10).word_weights().shape == (10, 10)


@pytest.mark.parametrize("kind", OF_ONE_VOCABULARY)
def test_equal_words_need_one_vocabulary(kind):
    with pytest.raises(ValueError, match=f"kind='{kind}' compares equal words, .* choose kind='low-rank'"):
        pn.SSI(kind, shared_vocabulary=False)


def test_the_identity_needs_one_vocabulary():
    with pytest.raises(ValueError, match=r"the identity matches equal words, .* leave identity out"):
        pn.SSI(shared_vocabulary=False, identity=True)
    assert not pn.SSI(shared_vocabulary=False).identity
    assert pn.SSI().identity


@pytest.mark.parametrize("kind", ["diagonal", "low-rank-diagonal"])
def test_a_diagonal_cannot_be_left_out(kind):
    with pytest.raises(ValueError, match="has a diagonal; without one choose kind='low-rank', identity=False"):
        pn.SSI(kind, identity=False)


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({"loss": "softmax"}, r"Training\(loss='margin'\)"),
        ({"loss": "pointwise"}, r"Training\(loss='margin'\)"),
        ({"optimiser": "adam"}, r"Training\(optimiser='sgd'\)"),
        ({"devices": 2}, r"Training\(devices=1\)"),
        ({"device": "tpu"}, r"Training\(device='cpu'\)"),
        ({"strategy": "ddp"}, r"Training\(strategy='auto'\)"),
        ({"precision": "bf16-mixed"}, r"Training\(precision='32-true'\)"),
        ({"weight_decay": 0.1}, r"Training\(weight_decay=0\.0\)"),
        ({"gradient_clip": 1.0}, r"Training\(gradient_clip=None\)"),
        ({"optimiser": "adam", "loss": "softmax"}, r"Training\(loss='margin', optimiser='sgd'\)"),
    ],
)
def test_other_training_than_the_paper_s_is_refused(fit, settings, needed):
    with pytest.raises(ValueError, match=f"makes the steps of its paper, one tuple at a time, and needs {needed}"):
        fit(training=settings)


@pytest.mark.parametrize("kind", ["low-rank", "sparse", "correlated-hash"])
def test_training_stays_on_the_processor_beside_a_gpu(fit, kind, monkeypatch):
    on_a_processor = fit(kind)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)  # Lightning would choose it, and not find it
    check_equal_weights(fit(kind), on_a_processor)


@pytest.mark.parametrize("kind", KINDS)
def test_the_random_numbers_of_the_user_stay_as_they_are(fit, kind):
    before = torch.get_rng_state()
    fit(kind)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"kind": "dense"}, "kind must be one of 'diagonal', 'full'"),
        ({"ngrams": 3}, "ngrams must be one of 1, 2"),
        ({"alike": None}, "alike must be one of True, False"),
        ({"deviation": 0}, "deviation must be above 0"),
        *(({name: 0}, f"{name} must be at least 1") for name in ("dim", "min_count", "max_terms", "embedded_terms")),
        *(({name: 0}, f"{name} must be at least 1") for name in ("nonzeros", "rounds", "hash_size", "bins")),
    ],
)
def test_settings_out_of_range(options, error):
    with pytest.raises(ValueError, match=error):
        pn.SSI(**options)


def test_rare_words_alone_are_not_enough(fit):
    with pytest.raises(ValueError, match="no word occurs 99 times: give more texts, or a smaller min_count"):
        fit(min_count=99)


def test_an_unfitted_model_says_what_to_do(corpus, candidates, tmp_path):
    model = pn.SSI()
    for use in (
        lambda: model.transform(candidates),
        lambda: model.save(tmp_path / "ssi.pn"),
        lambda: model.index(tmp_path / "vectors", iter(corpus), verbose=False),
        lambda: model.word_weights(["city"]),
        lambda: model.neighbours("city"),
        lambda: model.dice_neighbours("city"),
        lambda: model.encode_queries(["city"]),
        lambda: model.encode_texts(["city"]),
    ):
        with pytest.raises(RuntimeError, match=r"SSI\('low-rank', dim=100\) is not trained yet: call .*fit"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_unknown_words_are_named(fit):
    model = fit()
    for use in (
        lambda: model.word_weights(["city", "zebra"]),
        lambda: model.word_weights(None, ["zebra", "city"]),
        lambda: model.neighbours("zebra"),
        lambda: model.neighbours("zebra", side="document"),
    ):
        with pytest.raises(KeyError, match=r"'zebra' is none of the \d+ words that SSI\('low-rank', dim=3\) knows in"):
            use()
    with pytest.raises(KeyError, match="knows in documents, all in lower case"):
        model.neighbours("City", side="document")
    with pytest.raises(TypeError, match=r"words must be a list, such as \['city'\], not 'city'"):
        model.word_weights("city")
    with pytest.raises(ValueError, match="side must be one of 'query', 'document'"):
        model.neighbours("city", side="both")
    with pytest.raises(ValueError, match="only kind='correlated-hash' replaces words by others, not 'low-rank'"):
        model.dice_neighbours("city")
    with pytest.raises(KeyError, match=r"'zebra' is none of the \d+ words that are hashed"):
        fit("correlated-hash").dice_neighbours("zebra")
    with pytest.raises(ValueError, match="k must be at least 1"):
        fit("correlated-hash").dice_neighbours("city", k=0)


def test_words_without_weight_are_no_neighbours(fit):
    model = fit("diagonal")
    for side in ("query", "document"):
        found = model.neighbours("city", k=5, side=side)
        assert found["word"].tolist() == ["city"]
        assert found["weight"].item() == pytest.approx(model.word_weights(["city"], ["city"]).to_numpy().item())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "low-rank"])
def test_monolingual_tuples_need_a_v(fit, candidates, qrels, kind):
    with pytest.raises(ValueError, match=f"monolingual tuples share V, which kind='{kind}' has none of: choose"):
        fit(kind, monolingual=(candidates, qrels))


def test_monolingual_tuples_are_a_pair_of_frames(fit, candidates, qrels):
    for wrong in (candidates, (candidates,), (candidates, "qrels")):
        with pytest.raises(TypeError, match=r"monolingual must be a pair of frames, \(candidates, qrels\)"):
            fit(monolingual=wrong)
    with pytest.raises(ValueError, match=r"own_queries=True is about monolingual tuples: give monolingual="):
        fit(own_queries=True)


def test_a_learning_rate_that_is_too_large_is_named(fit):
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        fit(training={"learning_rate": 1e12, "epochs": 20})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("kind", "symmetric"), ("dim", 4), ("identity", False), ("shared_vocabulary", False), ("min_count", 2)],
        *[("max_terms", 9), ("embedded_terms", 4), ("sublinear_tf", False), ("deviation", 1.0), ("hash_size", 9)],
        *[("nonzeros", 9), ("rounds", 9), ("ngrams", 2), ("bins", 9), ("hashed_dim", 9), ("alike", False)],
    ],
)
def test_a_fitted_model_is_not_another_one(fit, candidates, tmp_path, name, value):
    model = fit()
    setattr(model, name, value)
    for use in (lambda: model.transform(candidates), lambda: model.save(tmp_path / "ssi.pn")):
        with pytest.raises(
            RuntimeError, match=f"^{name} of SSI.* changed after training: fit it again, or change back"
        ):
            use()


# What is kept


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_repeatable(fit, kind):
    one, again, other = fit(kind), fit(kind), fit(kind, training={"seed": 14})
    check_equal_weights(one, again)
    assert one.fingerprint() == again.fingerprint() != other.fingerprint()
    assert (one.history.drop(columns="seconds")).equals(again.history.drop(columns="seconds"))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("sparse", "correlated-hash")])
def test_training_goes_on_from_checkpoints(fit, tmp_path, kind):
    slow = {"learning_rate": 0.01}
    whole = fit(kind, training={"epochs": 4, **slow})
    slow["checkpoint_dir"] = str(tmp_path / "run")
    half = fit(kind, training={"epochs": 2, **slow})
    on = fit(kind, training={"epochs": 4, **slow})
    check_equal_weights(on, whole)
    assert on.fingerprint() != half.fingerprint()
    assert on.history["loss"].tolist() == whole.history["loss"].tolist()


STAGES = [("sparse", "11-nonzeros", "3-nonzeros"), ("correlated-hash", "hashed-model", "mixing-model")]


@pytest.mark.parametrize(("kind", "second", "last"), STAGES)
def test_training_goes_on_from_the_stage_that_was_interrupted(fit, tmp_path, kind, second, last):
    whole = fit(kind)
    kept = {"checkpoint_dir": str(tmp_path / "run")}
    fit(kind, training=kept)
    for stage in (last, second):
        rmtree(tmp_path / "run" / stage)  # as if it had not begun
        again = fit(kind, training=kept)
        check_equal_weights(again, whole)
        assert again.history.drop(columns="seconds").equals(whole.history.drop(columns="seconds"))


@pytest.mark.parametrize(("kind", "last"), [("sparse", "nonzeros"), ("correlated-hash", "mixing-model")])
def test_checkpoints_of_a_stage_after_other_ones_are_refused(fit, tmp_path, kind, last):
    """What a stage learns depends on what those before it have learned."""
    kept = {"checkpoint_dir": str(tmp_path / "run"), "learning_rate": 0.01}
    fit(kind, training={"epochs": 1, **kept})
    with pytest.raises(ValueError, match=f"{last} holds checkpoints of another run"):
        fit(kind, training={"epochs": 4, **kept})


def test_checkpoints_of_other_monolingual_tuples_are_refused(fit, candidates, qrels, tmp_path):
    kept = {"training": {"checkpoint_dir": str(tmp_path / "run")}, "shared_vocabulary": False}
    mono = candidates.assign(query=candidates["title"])
    one = fit(monolingual=(mono, qrels), **kept)
    check_equal_weights(fit(monolingual=(mono, qrels), **kept), one)
    others = ((mono.assign(query="giraffe"), qrels), (mono, qrels[:2]), None)
    for other in others:
        with pytest.raises(ValueError, match="run holds checkpoints of another run"):
            fit(monolingual=other, **kept)
    with pytest.raises(ValueError, match="run holds checkpoints of another run"):
        fit(monolingual=(mono, qrels), own_queries=True, **kept)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_score_alike(fit, candidates, tmp_path, kind):
    model = fit(kind)
    expected = model.transform(candidates)
    model.save(tmp_path / "ssi.pn")
    copies = [pn.SSI.load(tmp_path / "ssi.pn"), pt.Artifact.load(str(tmp_path / "ssi.pn"))]
    for copy in (*copies, pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(copies[0]))):
        pd.testing.assert_frame_equal(copy.transform(candidates), expected)
        pd.testing.assert_frame_equal(copy.word_weights(), model.word_weights())
        assert copy.fingerprint() == model.fingerprint()
        assert copy.settings() == model.settings()
    again = copies[0].fit(candidates, pd.DataFrame({"qid": ["q2"], "docno": ["d4"], "label": 1}))
    assert again.fingerprint() != model.fingerprint()


@pytest.mark.parametrize("options", [{}, {"kind": "correlated-hash", "ngrams": 2}, {"shared_vocabulary": False}])
def test_text_and_forward_index_train_alike(fit, corpus, candidates, qrels, tmp_path, options):
    by_text = fit(**options)
    forward = pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)
    model = pn.SSI(**{**SMALL, **options}, training=quick(), documents=forward)
    model.fit(candidates[["qid", "query", "docno"]], qrels)
    check_equal_weights(model, by_text)
    found = model.transform(candidates[["qid", "query", "docno"]])["score"]
    np.testing.assert_allclose(found, by_text.transform(candidates)["score"], atol=1e-6)
    assert model.fingerprint() == by_text.fingerprint()


@pytest.mark.parametrize("kind", KINDS)
def test_the_dev_measure_chooses_the_epoch(candidates, qrels, kind):
    training = quick(epochs=6, patience=6)
    model = pn.SSI(kind, **SMALL, training=training).fit(candidates, qrels, candidates, qrels)
    history = model.history
    (column,) = [column for column in history if column.startswith("dev ")]
    stage = {"sparse": "nonzeros == 3", "correlated-hash": "model == 'mixing'"}.get(kind, "epoch > 0")
    last = history.query(stage)
    ranked = model.transform(candidates).merge(qrels, on=["qid", "docno"], how="left").fillna({"label": 0})
    losses = []  # of each query the share of pairs that are in the wrong order
    for _, one in ranked.groupby("qid"):
        good, bad = (one.loc[one["label"] == label, "score"].to_numpy() for label in (1, 0))
        losses.append(((bad > good[:, None]) + 0.5 * (bad == good[:, None])).mean())
    assert last[column].min() == pytest.approx(np.mean(losses), abs=1e-6)


DAMAGED = [
    ("shape.json", "[]"),
    ("shape.json", '{"query_terms": 3}'),
    ("shape.json", '{"terms": 3}'),
    ("shape.json", '{"query_terms": "x", "document_terms": 3}'),
    ("features.json", "[]"),
    ("features.json", "{}"),
    ("features.json", '{"shared": false}'),
    ("hashing/hashing.json", "[]"),
    ("hashing/neighbours.npy", "no array"),
    ("vocabulary/terms.txt", "one\nword"),
    ("weights.safetensors", "no tensors"),
    ("config.json", "{}"),
    ("history.json", "{}"),
]


@pytest.mark.parametrize(("name", "content"), DAMAGED)
def test_damaged_files_are_named(fit, tmp_path, name, content):
    fit("correlated-hash").save(tmp_path / "ssi.pn")
    path = tmp_path / "ssi.pn" / name
    path.write_text(content)
    with pytest.raises(ArtifactError, match=f"^{path}"):
        pn.SSI.load(tmp_path / "ssi.pn")
    path.unlink()
    with pytest.raises(ArtifactError, match=f"^{path} is missing"):
        pn.SSI.load(tmp_path / "ssi.pn")


@pytest.mark.parametrize(
    ("options", "folder"),
    [({"shared_vocabulary": False}, "query_vocabulary"), ({"kind": "correlated-hash"}, "hashing")],
)
def test_folders_that_only_some_kinds_have_are_missed(fit, tmp_path, options, folder):
    fit(**options).save(tmp_path / "ssi.pn")
    rmtree(tmp_path / "ssi.pn" / folder)
    with pytest.raises(ArtifactError, match=f"^{tmp_path / 'ssi.pn' / folder}/.* is missing"):
        pn.SSI.load(tmp_path / "ssi.pn")


def test_representations_name_the_kind():
    for kind in KINDS:
        expected = f"SSI('{kind}', dim=7)" if kind in WITH_VECTORS else f"SSI('{kind}')"
        assert repr(pn.SSI(kind, dim=7)) == expected
