"""Match-Tensor and its hybrids as rankers: sizes, documents that are read beforehand, what is read of texts."""

import pickle

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.models.match_tensor_network import MatchTensorNetwork

WORDS = [f"w{number}" for number in range(30)]
KNOWN = WORDS[:22]
SIZES = {"projection": 5, "document_units": 6, "query_units": 4, "tensor_size": 8, "filters": 6, "second_filters": 5}
SIZES |= {"hidden": 9, "query_terms": 5, "document_terms": 25, "device": "cpu"}
KINDS = {
    "match-tensor": pn.MatchTensor,
    "match-tensor exact": lambda spaces, **options: pn.MatchTensor(spaces, channels="exact", **options),
    "hybrid": pn.MatchTensorSSM,
    "hybrid exact": lambda spaces, **options: pn.MatchTensorSSM(spaces, channels="exact", **options),
}
TOLERANCE = {"float16": 0.005, "int8": 0.1}  # of the standard deviation of scores


def made_up(count: int, longest: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(longest + 1))) for _ in range(count)]


CORPUS = [
    {"docno": f"d{number}", "title": title, "text": text}
    for number, (title, text) in enumerate(
        zip([*made_up(30, 4, 1), "", "?"], [*made_up(30, 35, 2), "", None], strict=True)
    )
]
TOPICS = pd.DataFrame({"qid": [f"q{number}" for number in range(10)], "query": [*made_up(9, 7, 3), ""]})
CANDIDATES = TOPICS.merge(pd.DataFrame(CORPUS), how="cross").sample(frac=0.8, random_state=0)
BARE = CANDIDATES[["qid", "query", "docno"]]


@pytest.fixture(scope="module")
def spaces() -> pn.EmbeddingSpaces:
    random = np.random.default_rng(4)
    return pn.EmbeddingSpaces.from_vectors(KNOWN, *random.normal(scale=2, size=(2, len(KNOWN), 7)))


@pytest.fixture
def make(spaces, as_if_trained):
    return lambda kind, *, seed=5, **options: as_if_trained(KINDS[kind](spaces, **{**SIZES, **options}), seed=seed)


@pytest.fixture(params=KINDS)
def model(request, make):
    return make(request.param)


def scores(model, frame: pd.DataFrame) -> np.ndarray:
    return model.transform(frame)["score"].to_numpy()


# Sizes


def counted(model) -> int:
    return sum(weight.numel() for weight in model._new_network().parameters())


@pytest.fixture(scope="module")
def wide_spaces() -> pn.EmbeddingSpaces:
    return pn.EmbeddingSpaces.from_vectors(["w"], *np.ones((2, 1, 256)))


FIRST_FILTERS = 3 * (3 + 4 + 5)  # cells that the filters of 3 query words by 3, 4 and 5 document words cover
ALPHA = 1


def test_weights_of_match_tensor_are_as_many_as_table_2_says(wide_spaces):
    """104K. LSTMs have four gates in each direction, each with weights of inputs and of states and two biases."""
    projection = 256 * 40 + 40
    query, document = 2 * 4 * 15 * (40 + 15 + 2), 2 * 4 * 70 * (40 + 70 + 2)
    to_channels = (2 * 15 * 40 + 40) + (2 * 70 * 40 + 40)
    first = 6 * FIRST_FILTERS * (40 + 1) + 18
    second = 18 * 20 + 20
    comparison = (8 * 20 * 50 + 50) + (50 + 1)
    found = counted(pn.MatchTensor(wide_spaces))
    assert found == projection + query + document + to_channels + ALPHA + first + second + comparison
    assert found == pytest.approx(104_000, rel=0.01)


def test_weights_of_the_hybrid_are_as_many_as_table_2_says(wide_spaces):
    """160K."""
    projection = 256 * 50 + 50
    query, document = 2 * 4 * 15 * (50 + 15 + 2), 2 * 4 * 95 * (50 + 95 + 2)
    to_channels = (2 * 15 * 35 + 35) + (2 * 95 * 35 + 35)
    first = 6 * FIRST_FILTERS * (35 + 1) + 18
    second = 18 * 30 + 30
    wholes = (2 * 15 * 55 + 55) + (2 * 95 * 55 + 55)
    output = 8 * 30 + 55 + 1
    found = counted(pn.MatchTensorSSM(wide_spaces))
    assert found == projection + query + document + to_channels + ALPHA + first + second + wholes + output
    assert found == pytest.approx(160_000, rel=0.01)


def test_exact_channels_save_their_weights(wide_spaces):
    """Without any other channel, Match-Tensor reads no word, and the hybrid projects none to channels."""
    alone = ALPHA + 6 * FIRST_FILTERS + 18 + (18 * 20 + 20) + (8 * 20 * 50 + 50) + (50 + 1)
    assert counted(pn.MatchTensor(wide_spaces, channels="exact")) == alone
    spared = 6 * FIRST_FILTERS * 35 + (2 * 15 * 35 + 35) + (2 * 95 * 35 + 35)
    whole = counted(pn.MatchTensorSSM(wide_spaces))
    assert counted(pn.MatchTensorSSM(wide_spaces, channels="exact")) == whole - spared


def test_global_pooling_leaves_one_value_of_each_filter(wide_spaces):
    per_word, for_all = (counted(pn.MatchTensor(wide_spaces, pooling=pooling)) for pooling in ("per-word", "global"))
    assert per_word - for_all == 7 * 20 * 50


# What is read


def test_only_the_first_words_count(make):
    model = make("match-tensor", query_terms=2, document_terms=6)
    frame = pd.DataFrame({"qid": ["1"], "query": ["w1 w2 w3"], "docno": ["d"], "title": ["w4"]})
    frame["text"] = "w1 w2 w3 w5 w6"  # of which a title, two boundaries and three words remain
    whole = scores(model, frame)
    np.testing.assert_allclose(scores(model, frame.assign(query="w1 w2", text="w1 w2 w3")), whole, atol=1e-6)
    assert abs(scores(model, frame.assign(text="w1 w2"))[0] - whole[0]) > 1e-4
    assert abs(scores(model, frame.assign(query="w1"))[0] - whole[0]) > 1e-4


def test_unknown_words_match_themselves_alone(make):
    model = make("match-tensor")
    frame = pd.DataFrame({"qid": "1", "query": "w25", "docno": list("abc"), "title": ""})
    itself, another, a_third = scores(model, frame.assign(text=["w1 w25", "w1 w26", "w1 w27"]))
    assert another == pytest.approx(a_third, abs=1e-6)  # all unknown words share one vector
    assert abs(itself - another) > 1e-4


def test_exact_matches_are_all_that_the_exact_channel_sees(make):
    model = make("match-tensor exact")
    frame = pd.DataFrame({"qid": "1", "query": "w1 w2", "docno": list("abc"), "title": ""})
    found = scores(model, frame.assign(text=["w5 w1 w7", "w8 w1 w9", "w1 w8 w9"]))
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    others = scores(make("hybrid exact"), frame.assign(text=["w5 w1 w7", "w8 w1 w9", "w1 w8 w9"]))
    assert abs(others[0] - others[1]) > 1e-3


# Documents that are read beforehand


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_scores_by_docno_stay_near_those_by_text(model, dtype, tmp_path):
    by_text = scores(model, CANDIDATES)
    model.representations = model.index(tmp_path / "kept", CORPUS, dtype=dtype, verbose=False)
    assert model.representations.dtype == dtype
    differences = np.abs(scores(model, BARE) - by_text)
    assert differences.max() < TOLERANCE[dtype] * by_text.std()
    assert differences.max() > 0 or model.channels == "exact"
    for row in range(0, len(BARE), 31):
        assert scores(model, BARE.iloc[[row]])[0] == pytest.approx(by_text[row], abs=TOLERANCE[dtype] * by_text.std())
    of_the_whole = model.network.num_rows(np.array([0]))[0]
    kept, offsets = model.representations.read(np.arange(len(CORPUS)))
    assert kept.shape == (offsets[-1], model.kept_columns())
    assert offsets[-1] - offsets[-2] == 3 + of_the_whole  # of a document without a word


@pytest.mark.parametrize("boundaries", [True, False])
@pytest.mark.parametrize("encoder", ["lstm", "cnn"])
def test_documents_with_and_of_the_whole_are_kept(make, boundaries, encoder, tmp_path):
    model = make("hybrid", boundaries=boundaries, encoder=encoder)
    by_text = scores(model, CANDIDATES)
    forward = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    for number, corpus in enumerate([CORPUS, iter(CORPUS), forward]):
        model.representations = model.index(tmp_path / f"kept{number}", corpus, verbose=False)
        np.testing.assert_allclose(scores(model, BARE), by_text, atol=TOLERANCE["float16"] * by_text.std())


def test_what_is_kept_does_not_depend_on_the_batch(model, tmp_path):
    every = np.arange(len(CORPUS))
    together = model.index(tmp_path / "together", CORPUS, verbose=False).read(every)
    model.batch_size = 3
    apart = model.index(tmp_path / "apart", CORPUS, verbose=False).read(every)
    np.testing.assert_array_equal(apart[1], together[1])
    np.testing.assert_allclose(apart[0], together[0], atol=2e-3)


def test_kept_documents_are_not_read_again(model, tmp_path, monkeypatch):
    model.representations = model.index(tmp_path / "kept", CORPUS, verbose=False)
    expected = scores(model, BARE)
    monkeypatch.setattr(MatchTensorNetwork, "read_documents", None)
    np.testing.assert_array_equal(scores(model, BARE), expected)


def test_documents_of_another_model_are_refused(make, tmp_path):
    model = make("match-tensor")
    kept = model.index(tmp_path / "kept", CORPUS, verbose=False)
    for other in (make("match-tensor", seed=6), make("match-tensor", space="out"), make("hybrid")):
        other.representations = kept
        with pytest.raises(ValueError, match=r"made by another model than this .*index the collection again"):
            other.transform(BARE)


def test_other_boundaries_make_another_model(make, tmp_path):
    """Their vectors are drawn, not learned, and yet part of what was kept."""
    model = make("match-tensor")
    kept = model.index(tmp_path / "kept", CORPUS, verbose=False)
    model.vectors_of_words.others = model.vectors_of_words.others + 1
    other = pickle.loads(pickle.dumps(model))
    other._install(other.vectors_of_words, other.network)
    other.representations = kept
    with pytest.raises(ValueError, match="made by another model"):
        other.transform(BARE)


def test_kept_documents_serve_the_saved_and_the_pickled_model(model, tmp_path):
    model.save(tmp_path / "model.pn")
    model.representations = model.index(tmp_path / "kept", CORPUS, verbose=False)
    expected = model.transform(BARE)
    loaded = type(model).load(tmp_path / "model.pn", representations=model.representations)
    pd.testing.assert_frame_equal(loaded.transform(BARE), expected)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(model)).transform(BARE), expected)


def test_a_new_training_needs_the_text(make, tmp_path):
    model = make("match-tensor")
    model.representations = model.index(tmp_path / "kept", CORPUS, verbose=False)
    with pytest.raises(ValueError, match="train without them"):
        model.fit(CANDIDATES, pd.DataFrame({"qid": ["q0"], "docno": ["d1"], "label": [1]}))


def test_reading_shows_progress(make, tmp_path, capfd):
    model = make("match-tensor", verbose=True)
    model.transform(CANDIDATES)
    assert f"{len(CORPUS)}/{len(CORPUS)}" in capfd.readouterr().err
    model.index(tmp_path / "kept", CORPUS)
    assert f"{len(CORPUS)}/{len(CORPUS)}" in capfd.readouterr().err


def test_names():
    spaces = pn.EmbeddingSpaces.from_vectors(["w"], np.ones((1, 2)), np.ones((1, 2)))
    assert repr(pn.MatchTensor(spaces)) == "MatchTensor(encoder='lstm', channels='all')"
    assert repr(pn.MatchTensorSSM(spaces, encoder="cnn", channels="exact")) == (
        "MatchTensorSSM(encoder='cnn', channels='exact')"
    )
