"""What SSM, Match-Tensor and their hybrids share: fields and their boundaries, training, copies, arguments."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

import pt_neural as pn
from pt_neural._artifacts import ArtifactError
from pt_neural.rankers.embedded import EmbeddedPairs
from pt_neural.rankers.trained import Trained
from pt_neural.training import losses

WORDS = [f"w{number}" for number in range(20)]
SIZES = {"projection": 5, "document_units": 4, "query_units": 3, "hidden": 6, "document_terms": 15, "device": "cpu"}
TENSOR = {"tensor_size": 4, "filters": 6, "second_filters": 4}
KINDS = {
    "max": (pn.SSM, {}),
    "attention": (pn.SSM, {"pooling": "attention"}),
    "match-tensor": (pn.MatchTensor, TENSOR),
    "hybrid": (pn.MatchTensorSSM, TENSOR),
    "exact": (pn.MatchTensorSSM, {**TENSOR, "channels": "exact"}),
}


def made_up(count: int, longest: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(1, longest + 1))) for _ in range(count)]


CORPUS = [
    {"docno": f"d{number}", "title": title, "text": text}
    for number, (title, text) in enumerate(zip(made_up(8, 3, 1), made_up(8, 9, 2), strict=True))
]
TOPICS = pd.DataFrame({"qid": ["q0", "q1", "q2", "q3"], "query": made_up(4, 4, 3)})
CANDIDATES = TOPICS.merge(pd.DataFrame(CORPUS), how="cross")
QRELS = pd.DataFrame({"qid": ["q0", "q1", "q2", "q3"], "docno": ["d1", "d2", "d3", "d5"], "label": 1})


def quiet(**settings) -> pn.Training:
    return pn.Training(**{"epochs": 2, "batch_size": 4, "verbose": False, "device": "cpu", **settings})


@pytest.fixture(scope="module")
def spaces() -> pn.EmbeddingSpaces:
    random = np.random.default_rng(4)
    return pn.EmbeddingSpaces.from_vectors(WORDS[:15], *random.normal(scale=2, size=(2, 15, 7)))


@pytest.fixture(params=KINDS)
def untrained(request, spaces):
    """Makes an untrained model of one kind."""
    kind, own = KINDS[request.param]
    return lambda **options: kind(spaces, **{**SIZES, **own, "training": quiet(), **options})


@pytest.fixture
def make(untrained, as_if_trained):
    return lambda **options: as_if_trained(untrained(**options))


def scores(model, frame: pd.DataFrame) -> np.ndarray:
    return model.transform(frame)["score"].to_numpy()


def weights(model) -> np.ndarray:
    return torch.nn.utils.parameters_to_vector(model.network.parameters()).detach().numpy()


# Fields


def test_boundaries_tell_fields_apart(make):
    frame = pd.DataFrame({"qid": "1", "query": "w1 w2", "docno": ["a", "b"]})
    frame["title"], frame["text"] = ["w3 w1", "w3"], ["w2 w4 w5", "w1 w2 w4 w5"]
    parted, joined = scores(make(), frame), scores(make(boundaries=False), frame)
    assert abs(parted[0] - parted[1]) > 1e-3
    assert joined[0] == pytest.approx(joined[1], abs=1e-6)


def test_one_field_is_read_alone(make, tmp_path):
    model = make(fields="text")
    assert model.fields == ("text",)
    assert len(model.vectors_of_words.others) == 3  # unknown words, the end, the beginning of the text
    whole = scores(model, CANDIDATES)
    np.testing.assert_array_equal(scores(model, CANDIDATES.assign(title="w1 w2")), whole)
    np.testing.assert_array_equal(scores(model, CANDIDATES.drop(columns="title")), whole)
    model.documents = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, fields=["text"], verbose=False)
    np.testing.assert_allclose(scores(model, CANDIDATES[["qid", "query", "docno"]]), whole, atol=1e-6)


def test_fields_that_a_frame_lacks_are_empty(make):
    model = make()
    for column in ("title", "text"):
        empty = scores(model, CANDIDATES.assign(**{column: ""}))
        np.testing.assert_allclose(scores(model, CANDIDATES.drop(columns=column)), empty, atol=1e-6)
        assert not np.allclose(scores(model, CANDIDATES), empty, atol=1e-4)
    with pytest.raises(KeyError, match="none of the columns title, text"):
        model.transform(CANDIDATES[["qid", "query", "docno"]])


@pytest.mark.parametrize("fields", ["text", ["title", "text", "body"], ["a", "b", "c", "d", "e"]])
def test_a_trained_model_reads_as_many_fields_as_it_was_trained_on(make, fields, tmp_path):
    model = make()
    model.save(tmp_path / "model.pn")
    expected = scores(model, CANDIDATES)
    with pytest.raises(ValueError, match=r"tells apart the 2 fields .* cannot read .*(text|body|e) instead"):
        type(model).load(tmp_path / "model.pn", fields=fields)
    model.fields = fields
    with pytest.raises(ValueError, match="give as many, or fit it again"):
        model.transform(CANDIDATES.assign(a="w1"))
    renamed = CANDIDATES.rename(columns={"title": "headline", "text": "body"})
    model.fields = ["headline", "body"]
    np.testing.assert_array_equal(scores(model, renamed), expected)
    loaded = type(model).load(tmp_path / "model.pn", fields=["headline", "body"])
    np.testing.assert_array_equal(scores(loaded, renamed), expected)


def test_checkpoints_of_other_embeddings_are_refused(untrained, spaces, tmp_path):
    training = quiet(epochs=1, checkpoint_dir=str(tmp_path))
    untrained(training=training).fit(CANDIDATES, QRELS)
    model = untrained(training=training)
    model._spaces = pn.EmbeddingSpaces.from_vectors(spaces.vocabulary, spaces.out_vectors, spaces.in_vectors)
    with pytest.raises(ValueError, match="checkpoints of another run"):
        model.fit(CANDIDATES, QRELS)


def test_without_boundaries_fields_are_one_text(make, tmp_path):
    model = make(boundaries=False)
    model.save(tmp_path / "model.pn")
    titles = type(model).load(tmp_path / "model.pn", fields="title")
    np.testing.assert_allclose(scores(titles, CANDIDATES), scores(model, CANDIDATES.assign(text="")), atol=1e-6)


# Training


@pytest.fixture
def graded() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three documents of each query, of the grades 0, 1 and 2."""
    frame = CANDIDATES[CANDIDATES["docno"].isin(["d0", "d1", "d2"])].reset_index(drop=True)
    return frame, frame[["qid", "docno"]].assign(label=frame["docno"].str[1:].astype(int))


def test_three_grades_are_the_targets_0_a_half_and_1(untrained, graded, monkeypatch):
    frame, qrels = graded
    taken, targets = [], []
    call, entropy = EmbeddedPairs.__call__, losses.F.binary_cross_entropy_with_logits
    monkeypatch.setattr(
        EmbeddedPairs,
        "__call__",
        lambda self, queries, documents: taken.extend(documents.ravel()) or call(self, queries, documents),
    )
    monkeypatch.setattr(
        losses.F,
        "binary_cross_entropy_with_logits",
        lambda scores, target, **options: targets.extend(target.ravel().tolist()) or entropy(scores, target, **options),
    )
    model = untrained(training=quiet(negatives="judged", num_negatives=1)).fit(frame, qrels)
    assert model.training.completed(model.own_training).loss == "pointwise"
    assert set(targets) == {0, 0.5, 1}
    labels = frame.drop_duplicates("docno")["docno"].str[1:].astype(int).tolist()  # as the documents are numbered
    assert [labels[document] / 2 for document in taken] == targets


def test_the_same_seed_gives_the_same_model(untrained):
    first, again, other = (
        untrained(training=quiet(seed=seed)).fit(CANDIDATES, QRELS, CANDIDATES, QRELS) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(weights(first), weights(again))
    np.testing.assert_array_equal(first.vectors_of_words.others, again.vectors_of_words.others)
    np.testing.assert_array_equal(scores(first, CANDIDATES), scores(again, CANDIDATES))
    assert not np.isin(first.vectors_of_words.others, other.vectors_of_words.others).any()
    assert not np.allclose(weights(first), weights(other))


def test_an_interrupted_training_goes_on_where_it_was(untrained, monkeypatch, tmp_path):
    expected = untrained(training=quiet(epochs=3)).fit(CANDIDATES, QRELS, CANDIDATES, QRELS)
    evaluate, calls = Trained._evaluation, []

    def evaluation(*args):
        measure = evaluate(*args)

        def measured(network):
            calls.append(None)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return measure(network)

        return measured

    with monkeypatch.context() as patch:
        patch.setattr(Trained, "_evaluation", evaluation)
        with pytest.raises(KeyboardInterrupt):
            untrained(training=quiet(epochs=3, checkpoint_dir=tmp_path)).fit(CANDIDATES, QRELS, CANDIDATES, QRELS)
    resumed = untrained(training=quiet(epochs=3, checkpoint_dir=tmp_path)).fit(CANDIDATES, QRELS, CANDIDATES, QRELS)
    np.testing.assert_array_equal(weights(resumed), weights(expected))
    np.testing.assert_array_equal(resumed.vectors_of_words.others, expected.vectors_of_words.others)
    histories = [model.history.drop(columns="seconds") for model in (resumed, expected)]
    pd.testing.assert_frame_equal(*histories)


@pytest.mark.parametrize("encoder", ["lstm", "cnn"])
def test_mixed_precision_trains_nearly_alike(untrained, encoder):
    losses_of = []
    for precision in ("32-true", "bf16-mixed"):
        training = quiet(precision=precision, learning_rate=0.01)
        model = untrained(encoder=encoder, dropout=0, training=training).fit(CANDIDATES, QRELS)
        assert all(weight.dtype == torch.float32 for weight in model.network.parameters())
        assert np.isfinite(scores(model, CANDIDATES)).all()
        losses_of.append(model.history["loss"].to_numpy())
    np.testing.assert_allclose(losses_of[1], losses_of[0], rtol=0.05)


@pytest.mark.parametrize("loss", ["softmax", "margin"])
def test_other_losses(untrained, loss):
    training = quiet(loss=loss, epochs=4, learning_rate=0.02)
    history = untrained(training=training, dropout=0).fit(CANDIDATES, QRELS).history
    assert history["loss"].iloc[-1] < history["loss"].iloc[0]


def test_training_from_a_forward_index(untrained, tmp_path):
    forward = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    bare = CANDIDATES[["qid", "query", "docno"]]
    by_docno = untrained(documents=forward).fit(bare, QRELS, bare, QRELS)
    by_text = untrained().fit(CANDIDATES, QRELS, CANDIDATES, QRELS)
    np.testing.assert_allclose(weights(by_docno), weights(by_text), atol=1e-5)
    np.testing.assert_allclose(scores(by_docno, bare), scores(by_text, CANDIDATES), atol=1e-4)


def test_embeddings_without_any_word_of_the_collection(untrained):
    frame = CANDIDATES.assign(title="neither", text="nor")
    with pytest.raises(ValueError, match=r"no word of title and text has a vector in EmbeddingSpaces.* same language"):
        untrained().fit(frame, QRELS)
    with pytest.raises(ValueError, match="no word of text has a vector"):
        untrained(fields="text").fit(frame.assign(title="w1"), QRELS)


# Copies


def test_saved_and_pickled_models_score_alike(make, tmp_path):
    model = make(space="out")
    expected = model.transform(CANDIDATES)
    model.save(tmp_path / "model.pn")
    loaded = type(model).load(tmp_path / "model.pn")
    for copy in (loaded, pickle.loads(pickle.dumps(model))):
        pd.testing.assert_frame_equal(copy.transform(CANDIDATES), expected)
        assert copy.settings() == model.settings()
        assert copy.fingerprint() == model.fingerprint()
        assert (copy.fields, repr(copy)) == (model.fields, repr(model))
    np.testing.assert_array_equal(loaded.spaces.out_vectors, model.spaces.out_vectors)
    with pytest.raises(ValueError, match="hidden cannot be changed by loading"):
        type(model).load(tmp_path / "model.pn", hidden=6)


@pytest.mark.parametrize(
    "others", [np.zeros((1, 7), "f4"), np.zeros((4, 6), "f4"), np.zeros((4, 7)), np.zeros(7, "f4"), None]
)
def test_damaged_vectors_are_named(make, others, tmp_path):
    make().save(tmp_path / "model.pn")
    path = tmp_path / "model.pn" / "other_vectors.npy"
    path.unlink()
    if others is not None:
        np.save(path, others)
    with pytest.raises((ArtifactError, FileNotFoundError), match="other_vectors"):
        type(make()).load(tmp_path / "model.pn")


# Arguments


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"space": "both"}, ValueError, "space must be one of 'in', 'out'"),
        ({"encoder": "gru"}, ValueError, "encoder must be one of 'lstm', 'cnn'"),
        ({"pooling": "mean"}, ValueError, "pooling must be one of"),
        ({"boundaries": "yes"}, ValueError, "boundaries must be one of True, False"),
        ({"projection": 0}, ValueError, "projection must be at least 1"),
        ({"query_units": 1.5}, TypeError, "query_units must be an integer"),
        ({"document_terms": None}, TypeError, "document_terms must be an integer"),
        ({"dropout": 1}, ValueError, "dropout must be below 1, not 1"),
        ({"dropout": -0.1}, ValueError, "dropout must be at least 0"),
        ({"training": 3}, TypeError, r"training must be a pn\.Training"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(untrained, wrong, kind, message):
    with pytest.raises(kind, match=message):
        untrained(**wrong)


@pytest.mark.parametrize("kind", [pn.SSM, pn.MatchTensor, pn.MatchTensorSSM])
def test_spaces_must_be_embeddings(kind):
    with pytest.raises(TypeError, match=r"spaces must be pn\.EmbeddingSpaces, not 'spaces'"):
        kind("spaces")


def test_the_embeddings_are_part_of_the_model(untrained, spaces):
    with pytest.raises(AttributeError):
        untrained().spaces = spaces


def test_settings_count_until_the_model_is_trained(untrained):
    model = untrained()
    model.hidden, model.boundaries, model.encoder = 5, False, "cnn"
    model.fit(CANDIDATES, QRELS)
    same = untrained(hidden=5, boundaries=False, encoder="cnn").fit(CANDIDATES, QRELS)
    pd.testing.assert_frame_equal(model.transform(CANDIDATES), same.transform(CANDIDATES))
    for name, value in (("hidden", 6), ("boundaries", True), ("document_terms", 14)):
        before = getattr(model, name)
        setattr(model, name, value)
        with pytest.raises(RuntimeError, match=f"{name} of .* changed after training"):
            model.transform(CANDIDATES)
        setattr(model, name, before)
    for name, value in (("hidden", 0), ("dropout", 1.0), ("encoder", "gru"), ("pooling", "mean")):
        model = untrained()
        setattr(model, name, value)
        with pytest.raises(ValueError, match=f"{name} must be"):
            model.fit(CANDIDATES, QRELS)
