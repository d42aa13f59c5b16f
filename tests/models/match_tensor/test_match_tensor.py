"""Match-Tensor and its hybrids as rankers, with what SSM shares: sizes, what is read, stored documents, training."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

import pt_neural as pn
from pt_neural.models.match_tensor.network import MatchTensorNetwork
from pt_neural.models.matching import encoded as module
from pt_neural.models.matching.encoded import score_pairs
from pt_neural.rankers import Trained
from pt_neural.rankers.readers.embedded_words import EmbeddedPairs
from pt_neural.text import pack_texts
from pt_neural.text.vocabulary import Vocabulary
from pt_neural.training import losses

WORDS = [f"w{number}" for number in range(30)]
KNOWN = WORDS[:22]
READER = {"projection": 5, "document_units": 6, "query_units": 4, "hidden": 9, "query_terms": 5, "document_terms": 25}
TENSOR = {"tensor_size": 8, "filters": 6, "second_filters": 5}
KINDS = {
    "match-tensor": (pn.MatchTensor, TENSOR),
    "match-tensor exact": (pn.MatchTensor, {**TENSOR, "channels": "exact"}),
    "hybrid": (pn.MatchTensorSSM, TENSOR),
    "hybrid exact": (pn.MatchTensorSSM, {**TENSOR, "channels": "exact"}),
    "max": (pn.SSM, {}),
    "attention": (pn.SSM, {"pooling": "attention"}),
}
TENSORS = [kind for kind, (made, _) in KINDS.items() if made is not pn.SSM]
TOLERANCE = {"float16": 0.005, "int8": 0.1}  # of the standard deviation of scores


def made_up(count: int, longest: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(longest + 1))) for _ in range(count)]


CORPUS = [
    {"docno": f"d{number}", "title": title, "text": text}
    for number, (title, text) in enumerate(
        zip([*made_up(22, 4, 1), "", "?"], [*made_up(22, 35, 2), "", None], strict=True)
    )
]
TOPICS = pd.DataFrame({"qid": [f"q{number}" for number in range(8)], "query": [*made_up(7, 7, 3), ""]})
ORDERED = TOPICS.merge(pd.DataFrame(CORPUS), how="cross")  # documents in the order of the corpus
CANDIDATES = ORDERED.sample(frac=0.8, random_state=0)
BARE = CANDIDATES[["qid", "query", "docno"]]
QRELS = pd.DataFrame({"qid": [f"q{number}" for number in range(7)], "docno": [f"d{n}" for n in range(7)], "label": 1})


@pytest.fixture(scope="module")
def spaces() -> pn.EmbeddingSpaces:
    random = np.random.default_rng(4)
    return pn.EmbeddingSpaces.from_vectors(KNOWN, *random.normal(scale=2, size=(2, len(KNOWN), 7)))


@pytest.fixture(scope="module")
def untrained(spaces):
    def make(kind: str, **options) -> Trained:
        made, own = KINDS[kind]
        return made(spaces, **{**READER, **own, "device": "cpu", **options})

    return make


@pytest.fixture(scope="module")
def make(untrained, as_if_trained):
    return lambda kind, *, seed=5, **options: as_if_trained(untrained(kind, **options), seed=seed)


@pytest.fixture(params=TENSORS)
def model(request, make):
    return make(request.param)


def scores(model, frame: pd.DataFrame) -> np.ndarray:
    return model.transform(frame)["score"].to_numpy()


# Sizes


def counted(model) -> int:
    return sum(weight.numel() for weight in model.make_network(model.make_reader()).parameters())


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
    assert found - counted(pn.MatchTensor(wide_spaces, pooling="global")) == 7 * 20 * 50  # one value of each filter


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


# What is read


def test_only_the_first_words_count(make):
    model = make("match-tensor", query_terms=2, document_terms=6)
    frame = pd.DataFrame({"qid": ["1"], "query": ["w1 w2 w3"], "docno": ["d"], "title": ["w4"]})
    frame["text"] = "w1 w2 w3 w5 w6"  # a title, two boundaries and three words remain
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
    frame = pd.DataFrame({"qid": "1", "query": "w1 w2", "docno": list("ab"), "title": ""})
    frame["text"] = ["w5 w1 w7", "w8 w1 w9"]
    one, other = scores(make("match-tensor exact"), frame)
    assert one == pytest.approx(other, abs=1e-6)
    one, other = scores(make("hybrid exact"), frame)
    assert abs(one - other) > 1e-3


@pytest.mark.parametrize("kind", ["max", "hybrid"])
def test_boundaries_tell_fields_apart(kind, make):
    frame = pd.DataFrame({"qid": "1", "query": "w1 w2", "docno": ["a", "b"]})
    frame["title"], frame["text"] = ["w3 w1", "w3"], ["w2 w4 w5", "w1 w2 w4 w5"]
    parted, joined = scores(make(kind), frame), scores(make(kind, boundaries=False), frame)
    assert abs(parted[0] - parted[1]) > 1e-3
    assert joined[0] == pytest.approx(joined[1], abs=1e-6)


@pytest.mark.parametrize("kind", ["max", "hybrid"])
def test_one_field_is_read_alone(kind, make, tmp_path):
    model = make(kind, fields="text")
    assert len(model.reader.other_vectors) == 3  # unknown words, the end, the beginning of the text
    whole = scores(model, CANDIDATES)
    np.testing.assert_array_equal(scores(model, CANDIDATES.assign(title="w1 w2")), whole)
    model.documents = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, fields=["text"], verbose=False)
    np.testing.assert_allclose(scores(model, BARE), whole, atol=1e-6)


@pytest.mark.parametrize("kind", ["max", "hybrid"])
def test_a_trained_model_reads_as_many_fields_as_it_was_trained_on(kind, make, tmp_path):
    model = make(kind)
    model.save(tmp_path / "model.pn")
    expected = scores(model, CANDIDATES)
    for fields in ("text", ["title", "text", "body"]):
        with pytest.raises(ValueError, match=r"tells apart the 2 fields .* cannot read .*(text|body) instead"):
            type(model).load(tmp_path / "model.pn", fields=fields)
        model.fields = fields
        with pytest.raises(ValueError, match="give the same number of fields, or fit it again"):
            model.transform(CANDIDATES.assign(a="w1"))
    loaded = type(model).load(tmp_path / "model.pn", fields=["headline", "body"])
    renamed = CANDIDATES.rename(columns={"title": "headline", "text": "body"})
    np.testing.assert_array_equal(scores(loaded, renamed), expected)


# Many pairs at once


@pytest.fixture(scope="module")
def texts():
    """Pairs a few queries and documents, some of them empty."""
    queries, documents = ([*made_up(3, 6, 1), "", "w1"], [*made_up(4, 30, 2), "", "w3", ""])
    sequences, terms = pack_texts(documents)
    return lambda model: model.reader.pair(queries, sequences, Vocabulary(terms))


EVERY = np.repeat(np.arange(5), 7), np.tile(np.arange(7), 5)
PAIRS = [
    tuple(np.random.default_rng(4).permutation(np.transpose(EVERY)).T),
    (np.array([4, 2, 0, 1, 3]), np.array([2, 2, 2, 2, 2])),
    (np.array([2, 0, 2, 2, 0]), np.array([4, 4, 4, 4, 4])),
    (np.array([0, 2, 0]), np.array([5, 1, 1])),
    (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)),
]


@pytest.mark.parametrize("kind", [*TENSORS, "attention"])
def test_scores_are_those_of_one_pair_at_a_time(kind, make, texts, monkeypatch):
    model = make(kind)
    pairs = texts(model)
    with torch.no_grad():
        expected = [
            float(model.network(pairs.batch(np.array([query]), np.array([[document]]))))
            for query, document in zip(*EVERY, strict=True)
        ]
    assert len(np.unique(expected)) > 4
    for at_once, per_step in [(8192, 32), (3, 2)]:
        monkeypatch.setattr(module, "DOCUMENTS_AT_ONCE", at_once)
        monkeypatch.setattr(module, "PAIRS_PER_STEP", per_step)
        for queries, documents in PAIRS:
            found = score_pairs(model, model.network, pairs, queries, documents)
            wanted = np.array(expected, dtype=np.float32)[queries * 7 + documents]
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_documents_in_memory_are_limited_but_queries_are_not_cut(make, texts, monkeypatch):
    model, read = make("match-tensor"), []

    def kept(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        read.append(numbers.tolist())
        rows, offsets = module._read(model, model.network, pairs.documents, numbers)
        return rows.numpy(), offsets.numpy()

    pairs = texts(model)
    score_pairs(model, model.network, pairs, *EVERY, kept)
    assert read == [list(range(7))]  # once for all queries
    monkeypatch.setattr(module, "DOCUMENTS_AT_ONCE", 4)
    queries = np.array([0, 0, 1, 1, 2, 3, 3, 3, 3, 3, 4])
    documents = np.array([0, 1, 1, 2, 3, 0, 1, 2, 3, 4, 6])
    score_pairs(model, model.network, pairs, queries, documents, kept)
    assert read[1:] == [[0, 1, 2, 3], [0, 1, 2, 3, 4], [6]]


# Stored documents


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_scores_by_docno_stay_near_those_by_text(model, dtype, tmp_path):
    by_text = scores(model, CANDIDATES)
    model.representations = model.index(tmp_path / "kept", CORPUS, dtype=dtype, verbose=False)
    assert model.representations.dtype == dtype
    differences = np.abs(scores(model, BARE) - by_text)
    assert differences.max() < TOLERANCE[dtype] * by_text.std()
    assert differences.max() > 0 or model.channels == "exact"
    whole_rows = model.network.num_rows(np.array([0]))[0]
    kept, offsets = model.representations.read(np.arange(len(CORPUS)))
    assert kept.shape == (offsets[-1], model.kept_columns())
    assert offsets[-1] - offsets[-2] == 3 + whole_rows  # a document without a word


def test_the_corpus_may_be_a_forward_index_and_boundaries_may_lack(make, tmp_path):
    model = make("hybrid", boundaries=False, encoder="cnn")
    by_text = scores(model, CANDIDATES)
    forward = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    for number, corpus in enumerate([iter(CORPUS), forward]):
        model.representations = model.index(tmp_path / f"kept{number}", corpus, verbose=False)
        np.testing.assert_allclose(scores(model, BARE), by_text, atol=TOLERANCE["float16"] * by_text.std())


def test_what_is_kept_does_not_depend_on_the_batch(make, tmp_path):
    model, every = make("hybrid"), np.arange(len(CORPUS))
    together = model.index(tmp_path / "together", CORPUS, verbose=False).read(every)
    model.batch_size = 3
    apart = model.index(tmp_path / "apart", CORPUS, verbose=False).read(every)
    np.testing.assert_array_equal(apart[1], together[1])
    np.testing.assert_allclose(apart[0], together[0], atol=2e-3)


def test_kept_documents_are_not_read_again_and_serve_copies(make, tmp_path, monkeypatch):
    model = make("hybrid")
    model.save(tmp_path / "model.pn")
    model.representations = model.index(tmp_path / "kept", CORPUS, verbose=False)
    expected = model.transform(BARE)
    monkeypatch.setattr(MatchTensorNetwork, "read_documents", None)
    loaded = pn.MatchTensorSSM.load(tmp_path / "model.pn", representations=model.representations)
    for copy in (model, loaded, pickle.loads(pickle.dumps(model))):
        pd.testing.assert_frame_equal(copy.transform(BARE), expected)


def test_documents_of_another_model_are_refused(make, tmp_path):
    model = make("match-tensor")
    kept = model.index(tmp_path / "kept", CORPUS, verbose=False)
    other_boundaries = make("match-tensor")
    reader = pickle.loads(pickle.dumps(other_boundaries.reader))
    reader.spaces = other_boundaries.spaces
    reader.other_vectors = reader.other_vectors + 1  # drawn, not learned, and yet part of what was kept
    other_boundaries._take(reader, other_boundaries.network)
    for other in (make("match-tensor", seed=6), make("match-tensor", space="out"), make("hybrid"), other_boundaries):
        other.representations = kept
        with pytest.raises(ValueError, match=r"made by another model than this .*index the collection again"):
            other.transform(BARE)


def test_reading_shows_progress(make, tmp_path, capfd):
    model = make("match-tensor", verbose=True, batch_size=2)
    model.transform(CANDIDATES)
    assert f"{len(CORPUS)}/{len(CORPUS)}" in capfd.readouterr().err
    model.index(tmp_path / "kept", CORPUS)
    assert f"{len(CORPUS)}/{len(CORPUS)}" in capfd.readouterr().err


# Training


def quiet(**settings) -> pn.Training:
    return pn.Training(**{"epochs": 2, "batch_size": 4, "verbose": False, "device": "cpu", **settings})


def weights(model) -> np.ndarray:
    return torch.nn.utils.parameters_to_vector(model.network.parameters()).detach().numpy()


@pytest.fixture(scope="module")
def hybrid(untrained) -> pn.MatchTensorSSM:
    """Trained, with dev queries."""
    return untrained("hybrid", training=quiet()).fit(ORDERED, QRELS, CANDIDATES, QRELS)


def test_three_grades_are_the_targets_0_a_half_and_1(untrained, monkeypatch):
    frame = CANDIDATES[CANDIDATES["docno"].isin(["d0", "d1", "d2"])].reset_index(drop=True)
    qrels = frame[["qid", "docno"]].assign(label=frame["docno"].str[1:].astype(int))
    taken, targets = [], []
    batch, entropy = EmbeddedPairs.batch, losses.F.binary_cross_entropy_with_logits
    monkeypatch.setattr(
        EmbeddedPairs,
        "batch",
        lambda self, queries, documents: taken.extend(documents.ravel()) or batch(self, queries, documents),
    )
    monkeypatch.setattr(
        losses.F,
        "binary_cross_entropy_with_logits",
        lambda scores, target, **options: targets.extend(target.ravel().tolist()) or entropy(scores, target, **options),
    )
    untrained("max", training=quiet(negatives="judged", num_negatives=1)).fit(frame, qrels)
    assert set(targets) == {0, 0.5, 1}
    labels = frame.drop_duplicates("docno")["docno"].str[1:].astype(int).tolist()  # as the documents are numbered
    assert [labels[document] / 2 for document in taken] == targets


def test_the_seed_decides_and_docnos_are_enough(untrained, hybrid, tmp_path):
    forward = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    frames = ORDERED[["qid", "query", "docno"]], QRELS, BARE, QRELS
    again = untrained("hybrid", training=quiet(), documents=forward).fit(*frames)
    np.testing.assert_allclose(weights(hybrid), weights(again), atol=1e-5)
    np.testing.assert_array_equal(hybrid.reader.other_vectors, again.reader.other_vectors)
    np.testing.assert_allclose(scores(again, BARE), scores(hybrid, CANDIDATES), atol=1e-4)
    other = untrained("hybrid", training=quiet(seed=4)).fit(ORDERED, QRELS)
    assert not np.isin(hybrid.reader.other_vectors, other.reader.other_vectors).any()
    assert not np.allclose(weights(hybrid), weights(other))


def test_an_interrupted_training_goes_on_with_the_vectors_that_were_drawn(untrained, hybrid, tmp_path, monkeypatch):
    calls, scorer = [], pn.MatchTensorSSM._scorer

    def interrupted(self, *args):
        score = scorer(self, *args)

        def counted(network):
            calls.append(None)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return score(network)

        return counted

    training = quiet(checkpoint_dir=str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(pn.MatchTensorSSM, "_scorer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            untrained("hybrid", training=training).fit(ORDERED, QRELS, CANDIDATES, QRELS)
    resumed = untrained("hybrid", training=training).fit(ORDERED, QRELS, CANDIDATES, QRELS)
    np.testing.assert_array_equal(weights(resumed), weights(hybrid))
    np.testing.assert_array_equal(resumed.reader.other_vectors, hybrid.reader.other_vectors)
    pd.testing.assert_frame_equal(*(one.history.drop(columns="seconds") for one in (resumed, hybrid)))
    swapped = pn.EmbeddingSpaces.from_vectors(KNOWN, hybrid.spaces.out_vectors, hybrid.spaces.in_vectors)
    other = pn.MatchTensorSSM(swapped, **READER, **TENSOR, training=training, device="cpu")
    with pytest.raises(ValueError, match="checkpoints of another run"):
        other.fit(ORDERED, QRELS, CANDIDATES, QRELS)


@pytest.mark.parametrize(("kind", "encoder"), [("hybrid", "lstm"), ("attention", "cnn")])
def test_mixed_precision_trains_nearly_alike(untrained, kind, encoder):
    found = []
    for precision in ("32-true", "bf16-mixed"):
        training = quiet(precision=precision, learning_rate=0.01)
        model = untrained(kind, encoder=encoder, dropout=0, training=training).fit(CANDIDATES, QRELS)
        assert all(weight.dtype == torch.float32 for weight in model.network.parameters())
        assert np.isfinite(scores(model, CANDIDATES)).all()
        found.append(model.history["loss"].to_numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=0.05)


def test_settings_count_until_the_model_is_trained(untrained, hybrid):
    model = untrained("hybrid", training=quiet())
    model.second_filters, model.boundaries, model.encoder = np.int64(3), False, "cnn"
    model.fit(CANDIDATES, QRELS)
    same = untrained("hybrid", second_filters=3, boundaries=False, encoder="cnn", training=quiet())
    pd.testing.assert_frame_equal(model.transform(CANDIDATES), same.fit(CANDIDATES, QRELS).transform(CANDIDATES))
    assert type(model.settings()["second_filters"]) is int  # which JSON can hold
    copy = pickle.loads(pickle.dumps(hybrid))
    copy.spaces = pn.EmbeddingSpaces.from_vectors(KNOWN, *np.ones((2, len(KNOWN), 7)))
    with pytest.raises(RuntimeError, match=r"spaces of .* changed after fitting"):
        copy.transform(CANDIDATES)
    for name, value in (("hidden", 0), ("dropout", 1.0), ("encoder", "gru"), ("pooling", "mean")):
        for kind in ("max", "hybrid"):
            model = untrained(kind)
            setattr(model, name, value)
            with pytest.raises(ValueError, match=f"{name} must be"):
                model.fit(CANDIDATES, QRELS)


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
    ],
)
def test_wrong_arguments_are_named(untrained, wrong, kind, message):
    for made in ("max", "hybrid"):
        with pytest.raises(kind, match=message):
            untrained(made, **wrong)


def test_wrong_filters_channels_and_spaces_are_named(untrained):
    with pytest.raises(ValueError, match="filters must be a multiple of 3"):
        untrained("match-tensor", filters=16)
    with pytest.raises(ValueError, match="channels must be one of 'all', 'exact'"):
        untrained("match-tensor", channels="some")
    for made in (pn.SSM, pn.MatchTensor, pn.MatchTensorSSM):
        with pytest.raises(TypeError, match=r"spaces must be pn\.EmbeddingSpaces, not 'spaces'"):
            made("spaces")


def test_names(wide_spaces):
    assert repr(pn.MatchTensor(wide_spaces)) == "MatchTensor(encoder='lstm', channels='all')"
    assert repr(pn.MatchTensorSSM(wide_spaces, encoder="cnn", channels="exact")) == (
        "MatchTensorSSM(encoder='cnn', channels='exact')"
    )
