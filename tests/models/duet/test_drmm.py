"""DRMM: its network against a few lines of NumPy, scores from texts, document frequencies, and what it learns."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.models.duet.drmm import DRMMNetwork
from pt_neural.rankers.readers.histograms import HistogramInputs, HistogramPairs
from pt_neural.text import tokenise

WORDS = [f"w{number}" for number in range(40)]
KNOWN = WORDS[:30]
QUIET = pn.Training(epochs=2, verbose=False, device="cpu")


def made_up(count: int, longest: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(longest + 1))) for _ in range(count)]


TOPICS = [*made_up(12, 7, seed=0), "", "unknown words"]
TEXTS = [*made_up(15, 60, seed=1), "", "nothing of it"]


def pairs(topics=TOPICS, texts=TEXTS) -> pd.DataFrame:
    queries = pd.DataFrame({"qid": [f"q{i}" for i in range(len(topics))], "query": topics})
    return queries.merge(pd.DataFrame({"docno": [f"d{i}" for i in range(len(texts))], "text": texts}), how="cross")


CANDIDATES = pairs()
QRELS = CANDIDATES.groupby("qid").head(2)[["qid", "docno"]].assign(label=1)


@pytest.fixture(scope="module")
def spaces() -> pn.EmbeddingSpaces:
    random = np.random.default_rng(3)
    return pn.EmbeddingSpaces.from_vectors(KNOWN, *random.normal(size=(2, len(KNOWN), 12)).astype(np.float32))


def fitted(spaces, **options) -> pn.DRMM:
    model = pn.DRMM(spaces, **{"training": QUIET, "device": "cpu", **options}).fit(CANDIDATES, QRELS)
    random = np.random.default_rng(5)
    with torch.no_grad():  # which makes scores differ more than two epochs do
        for weight in model.network.parameters():
            weight.copy_(torch.from_numpy(random.normal(scale=0.4, size=weight.shape)))
    return model


@pytest.fixture(scope="module", params=["idf", "vector"])
def model(request, spaces) -> pn.DRMM:
    return fitted(spaces, gating=request.param)


def scores(model, frame: pd.DataFrame) -> np.ndarray:
    return model.transform(frame)["score"].to_numpy()


# The network

BINS, HIDDEN = 6, 4


def network_with(features: int = 1, histogram: str = "log-count", scale: float = 0.7) -> DRMMNetwork:
    network = DRMMNetwork(BINS, HIDDEN, features, histogram)
    random = np.random.default_rng(0)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.from_numpy(random.normal(scale=scale, size=weight.shape)))
    return network.eval()


def made_up_inputs(features: int = 1) -> HistogramInputs:
    """Three queries of 2, 0 and 3 terms, with two documents each."""
    random = np.random.default_rng(1)
    lengths, queries = np.array([2, 0, 3]), np.array([[0, 0], [1, 1], [2, 2]])
    present = np.arange(3) < lengths[:, None]
    counts = (random.integers(300, size=(3, 2, 3, BINS)) * present[:, None, :, None]).astype(np.int32)
    gates = (random.normal(size=(3, 3, features)) * present[..., None]).astype(np.float32)
    return HistogramInputs(*map(torch.from_numpy, (counts, gates, lengths, queries)))


TRANSFORMED = {
    "log-count": lambda counts: np.log10(1 + counts),
    "count": lambda counts: counts,
    "normalised": lambda counts: counts / max(counts.sum(), 1),
}


def worked_by_hand(network: DRMMNetwork, inputs: HistogramInputs, query: int, document: int) -> float:
    """f of one pair, float64."""
    weights = {name: weight.double().numpy() for name, weight in network.state_dict().items()}
    outputs, gates = [], []
    for term in range(max(1, int(inputs.lengths[query]))):
        histogram = inputs.counts[query, document, term].numpy().astype(np.float64)
        hidden = weights["dense.weight"] @ TRANSFORMED[network.histogram](histogram) + weights["dense.bias"]
        outputs.append(np.tanh(weights["output.weight"] @ np.tanh(hidden) + weights["output.bias"])[0])
        gates.append(np.exp(weights["gate.weight"][0] @ inputs.gates[query, term].double().numpy()))
    return float(np.dot(outputs, gates) / np.sum(gates))


@pytest.mark.parametrize(
    ("histogram", "features"), [("log-count", 1), ("log-count", 5), ("count", 1), ("normalised", 1)]
)
def test_the_sum_of_gated_outputs(histogram, features):
    network = network_with(features, histogram, scale=0.01 if histogram == "count" else 0.7)
    inputs = made_up_inputs(features)
    found = network(inputs)
    assert found.shape == (3, 2)
    for query in range(3):
        for document in range(2):
            expected = worked_by_hand(network, inputs, query, document)
            assert found[query, document].item() == pytest.approx(expected, abs=1e-5)


def test_gates_of_a_query_sum_to_one_and_go_by_idf():
    network, inputs = network_with(), made_up_inputs()
    with torch.no_grad():
        network.gate.weight.fill_(2.0)
    gates = network.log_gates(inputs).exp()
    np.testing.assert_allclose(gates.sum(-1).detach(), 1, atol=1e-6)
    first, second = inputs.gates[0, :2, 0]
    assert (gates[0, 0, 0] / gates[0, 0, 1]).item() == pytest.approx(float(torch.exp(2 * (first - second))), rel=1e-5)
    assert not gates[0, :, 2].any()


def test_scores_are_atanh_of_the_sum_and_do_not_tie_where_tanh_is_flat():
    network, inputs = network_with(scale=0.4), made_up_inputs()
    np.testing.assert_allclose(network.scores(inputs).tanh().detach(), network(inputs).detach(), atol=1e-6)
    assert network.scores(inputs).dtype == torch.float64
    network = network_with()
    with torch.no_grad():
        network.output.weight.abs_()
        network.dense.weight.abs_()
        network.output.bias.fill_(30.0)
        assert network(inputs)[0, 0] == network(inputs)[0, 1] == 1
        found = network.scores(inputs)
        outputs = network.term_outputs(inputs.counts).double()
    assert found[0, 0] != found[0, 1]
    np.testing.assert_allclose(found[1], outputs[1, :, 0])  # as a query of one term, its output before the tanh
    # 1 - tanh(a) is 2 exp(-2a) by now, so the score is -ln of the mean of exp(-2a), halved.
    gates = network.log_gates(inputs).exp().double()
    expected = -(gates * (-2 * outputs).exp()).sum(-1).log() / 2
    np.testing.assert_allclose(found, expected.detach(), rtol=1e-9)


def test_the_network_of_the_paper_has_162_weights():
    """Thirty bins to five units, these to one, with biases; and one weight for the gate."""
    weights = DRMMNetwork(30, 5, 1, "log-count").parameters()
    assert sum(weight.numel() for weight in weights) == (30 * 5 + 5) + (5 + 1) + 1 == 162


# Scores from texts


def by_hand(model: pn.DRMM, query: str, text: str) -> float:
    """The score of one pair, from the words to atanh(f), in float64."""
    weights = {name: weight.double().numpy() for name, weight in model.network.state_dict().items()}
    rounded = np.round(model.spaces.unit_vectors("in").astype(np.float64) * 2048) / 2048
    unit = dict(zip(KNOWN, rounded, strict=True))
    nothing = np.zeros(model.spaces.dim)
    documents = [set(tokenise(one)) for one in TEXTS]
    gates, outputs = [], []
    for term in tokenise(query):
        counts = np.zeros(model.bins)
        for other in tokenise(text):
            similarity = unit.get(term, nothing) @ unit.get(other, nothing)
            counts[-1 if term == other else min(int((similarity + 1) / 2 * (model.bins - 1)), model.bins - 2)] += 1
        hidden = np.tanh(weights["dense.weight"] @ np.log10(1 + counts) + weights["dense.bias"])
        outputs.append(np.tanh(weights["output.weight"] @ hidden + weights["output.bias"])[0])
        if model.gating == "idf":
            df = max(1, sum(term in one for one in documents))
            gates.append(np.exp(weights["gate.weight"][0, 0] * np.log((len(documents) + 1) / df)))
        else:
            vector = model.spaces.in_vectors[KNOWN.index(term)] if term in KNOWN else nothing
            gates.append(np.exp(weights["gate.weight"][0] @ vector))
    return float(np.arctanh(np.dot(gates, outputs) / np.sum(gates)))


def test_scores_worked_word_by_word(model):
    frame = CANDIDATES[CANDIDATES["query"] != ""].iloc[::5]
    expected = [by_hand(model, query, text) for query, text in zip(frame["query"], frame["text"], strict=True)]
    np.testing.assert_allclose(scores(model, frame), expected, atol=1e-5)
    assert np.std(expected) > 0.05


def test_batches_of_any_size(model):
    copy = pickle.loads(pickle.dumps(model))
    copy.batch_size = 7
    np.testing.assert_allclose(scores(copy, CANDIDATES), scores(model, CANDIDATES), atol=1e-6)


def test_the_order_of_the_document_does_not_count(model):
    turned = CANDIDATES.assign(text=[" ".join(reversed(text.split())) for text in CANDIDATES["text"]])
    np.testing.assert_array_equal(scores(model, turned), scores(model, CANDIDATES))


def test_an_empty_query_does_not_tell_documents_apart(model):
    found = scores(model, pairs(["", "?!"]))
    np.testing.assert_array_equal(found, found[0])
    assert np.isfinite(found).all()


def test_a_word_without_a_vector_matches_itself(model):
    query = WORDS[-1]
    assert query not in model.spaces
    found = scores(model, pairs([query], [f"w1 w2 {query}", f"w1 w2 {WORDS[-2]}", f"w3 w4 {WORDS[-2]}"]))
    assert found[0] != pytest.approx(found[1], abs=1e-3)
    assert found[1] == pytest.approx(found[2], abs=1e-6)


def test_only_the_first_terms_count(spaces):
    model = fitted(spaces, query_terms=3, document_terms=5)
    whole = scores(model, pairs(["w1 w2 w3 w4"], ["w5 w6 w1 w2 w8 w3 w4"]))
    assert scores(model, pairs(["w1 w2 w3"], ["w5 w6 w1 w2 w8"])) == pytest.approx(whole, abs=1e-6)
    assert scores(model, pairs(["w1 w2"], ["w5 w6 w1 w2 w8"])) != pytest.approx(whole, abs=1e-4)


# Training


def test_documents_are_counted_once_each_without_a_forward_index(model):
    frequencies = model.reader.frequencies
    if model.gating == "vector":
        assert frequencies is None
        assert model.network.gate.weight.shape == (1, model.spaces.dim)
        return
    assert frequencies.num_documents == len(TEXTS)
    for term, count in zip(frequencies.terms, frequencies.document_frequency, strict=True):
        assert count == sum(term in tokenise(text) for text in TEXTS)


def test_a_forward_index_counts_the_collection(spaces, tmp_path):
    corpus = [{"docno": f"d{i}", "text": text} for i, text in enumerate([*TEXTS, "w1 w1", "w1 w2", "w39"])]
    index = pn.ForwardIndex.build(tmp_path / "forward", corpus, fields=["text"], verbose=False)
    model = fitted(spaces, documents=index)
    frequencies = model.reader.frequencies
    assert frequencies.num_documents == len(corpus)
    found = dict(zip(frequencies.terms, frequencies.document_frequency, strict=True))["w1"]
    assert found == sum("w1" in tokenise(document["text"]) for document in corpus)
    expected = scores(model, CANDIDATES[["qid", "query", "docno"]])
    model.documents = None  # the frequencies are still those that it was trained with
    np.testing.assert_allclose(scores(model, CANDIDATES), expected, atol=1e-6)


def test_settings_count_until_the_model_is_trained_and_are_checked_then(spaces):
    model = pn.DRMM(spaces, training=QUIET)
    model.space, model.bins = "out", 12
    model.fit(CANDIDATES, QRELS)
    same = pn.DRMM(spaces, space="out", bins=12, training=QUIET).fit(CANDIDATES, QRELS)
    np.testing.assert_array_equal(scores(model, CANDIDATES), scores(same, CANDIDATES))
    inside = pn.DRMM(spaces, bins=12, training=QUIET).fit(CANDIDATES, QRELS)
    assert not np.allclose(scores(inside, CANDIDATES), scores(same, CANDIDATES), atol=1e-3)
    model.bins = 999
    with pytest.raises(ValueError, match="bins must be at most 256"):
        model.fit(CANDIDATES, QRELS)


def test_histograms_of_dev_queries_are_made_once(spaces, monkeypatch):
    counted, original = [], HistogramPairs.blocks

    def counting(self, queries, documents, most=None):
        counted.append(most)
        return original(self, queries, documents, most)

    monkeypatch.setattr(HistogramPairs, "blocks", counting)
    model = pn.DRMM(spaces, training=QUIET, batch_size=50).fit(CANDIDATES, QRELS, CANDIDATES, QRELS)
    assert model.history["epoch"].tolist() == [0, 1, 2]
    assert counted.count(50) == 1
    for _ in range(2):
        scores(model, CANDIDATES)
    assert counted.count(50) == 3


@pytest.mark.parametrize(
    ("histogram", "settings"),
    [
        ("log-count", {"loss": "margin", "margin": 0.1}),
        ("count", {"loss": "pointwise"}),
        ("normalised", {"loss": "softmax"}),
        ("log-count", {"precision": "bf16-mixed"}),
    ],
)
def test_losses_and_histograms_to_train_on(spaces, histogram, settings):
    training = pn.Training(epochs=3, verbose=False, learning_rate=0.05, **settings)
    model = pn.DRMM(spaces, histogram=histogram, training=training).fit(CANDIDATES, QRELS)
    assert model.history["loss"].iloc[-1] < model.history["loss"].iloc[0]
    assert np.isfinite(scores(model, CANDIDATES)).all()
    assert all(weight.dtype == torch.float32 for weight in model.network.parameters())


# Files and arguments


def test_saved_models_have_their_embeddings_and_name_damaged_files(model, tmp_path):
    model.save(tmp_path / "model.pn")
    loaded = pn.DRMM.load(tmp_path / "model.pn")
    np.testing.assert_array_equal(scores(loaded, CANDIDATES), scores(model, CANDIDATES))
    np.testing.assert_array_equal(loaded.spaces.out_vectors, model.spaces.out_vectors)
    assert loaded.fingerprint() == model.fingerprint()
    files = [path for path in (tmp_path / "model.pn").rglob("*.*") if path.is_file()]
    assert len(files) >= (11 if model.gating == "idf" else 8)
    for file in files:
        content = file.read_bytes()
        file.write_bytes(b"")
        with pytest.raises((ArtifactError, FileNotFoundError)) as raised:
            pn.DRMM.load(tmp_path / "model.pn")
        file.write_bytes(content)
        assert any(name in str(raised.value) for name in (file.stem, file.parent.name)), file


def test_the_fingerprint_tells_document_frequencies_apart(spaces):
    model = fitted(spaces)
    before = model.fingerprint()
    model.reader.frequencies.document_frequency[0] += 1
    model._mark_fitted()
    assert model.fingerprint() != before


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"space": "both"}, ValueError, "space must be one of 'in', 'out'"),
        ({"gating": "tf"}, ValueError, "gating must be one of 'idf', 'vector'"),
        ({"histogram": "log"}, ValueError, "histogram must be one of 'log-count'"),
        ({"bins": 1}, ValueError, "bins must be at least 2"),
        ({"bins": 257}, ValueError, "bins must be at most 256"),
        ({"bins": 30.0}, TypeError, "bins must be an integer"),
        ({"hidden": 0}, ValueError, "hidden must be at least 1"),
        ({"query_terms": 0}, ValueError, "query_terms must be at least 1"),
        ({"document_terms": "500"}, TypeError, "document_terms must be an integer"),
    ],
)
def test_wrong_arguments_are_named(spaces, wrong, kind, message):
    with pytest.raises(kind, match=message):
        pn.DRMM(spaces, **wrong)


def test_the_embeddings_are_embeddings_and_part_of_the_model(model, spaces):
    with pytest.raises(TypeError, match=r"spaces must be pn\.EmbeddingSpaces, not 'spaces'"):
        pn.DRMM("spaces")
    with pytest.raises(AttributeError):
        model.spaces = spaces
    assert repr(model) == f"DRMM(gating={model.gating!r})"


# What it learns

FREQUENT, RARE = 20, 400


def training(**options) -> pn.Training:
    settings = {"epochs": 8, "batch_size": 32, "learning_rate": 0.05, "negatives": "judged", "num_negatives": 2}
    return pn.Training(**{**settings, "verbose": False, "device": "cpu", **options})


def accuracies(model, frame: pd.DataFrame) -> list[float]:
    """How often the relevant document, the last of each query's, is above each of the others."""
    found = scores(model, frame).reshape(frame["qid"].nunique(), -1)
    return [float((found[:, -1] > other + 1e-5).mean()) for other in found.T[:-1]]


def qrels(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["qid", "docno", "label"]]


def test_similar_words_are_learned_to_match():
    """Words come in pairs of a cosine of about 0.9; a relevant document has words similar to the query's, not its own.

    The others have words that are not similar. No word of a held-out query was in a training query.
    """
    random = np.random.default_rng(0)
    count = 500
    first = random.normal(size=(count, 50))
    second = first + 0.45 * random.normal(size=first.shape)
    words, vectors = [f"{kind}{number}" for kind in "xy" for number in range(count)], np.concatenate([first, second])
    rows = []
    for number in range(count // 2):
        concepts = np.array([2 * number, 2 * number + 1])
        fillers = [f"x{other}" for other in random.choice(count, 20)]
        for label in (0, 0, 1):
            near = [f"y{other}" for other in (concepts if label else random.choice(count, 2))]
            text = " ".join(random.permutation([*near, *fillers]))
            rows.append((f"q{number}", f"x{concepts[0]} x{concepts[1]}", f"d{len(rows)}", text, label))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
    spaces = pn.EmbeddingSpaces.from_vectors(words, vectors, vectors)
    model, start = (
        pn.DRMM(spaces, training=training(**options)).fit(frame[:-300], qrels(frame[:-300]))
        for options in ({}, {"epochs": 1, "learning_rate": 1e-12})
    )
    assert min(accuracies(model, frame[-300:])) > 0.95
    assert max(accuracies(start, frame[-300:])) < 0.85


@pytest.fixture(scope="module")
def importance() -> tuple[pn.EmbeddingSpaces, pd.DataFrame]:
    """A query is a frequent word and a rare one; the relevant document has the rare one, the other the frequent one.

    Vectors of frequent words lie on one side, those of rare words on the other, by so little that cosines hardly tell.
    """
    random = np.random.default_rng(1)
    words = [f"f{number}" for number in range(FREQUENT)] + [f"r{number}" for number in range(RARE)]
    sides = np.repeat([[1.0], [-1.0]], [FREQUENT, RARE], axis=0)
    vectors = np.hstack([sides, random.normal(size=(len(words), 60))])
    rows = []
    for number in range(RARE):
        frequent = f"f{random.integers(FREQUENT)}"
        fillers = [f"f{other}" for other in random.permutation(FREQUENT)[:6] if f"f{other}" != frequent]
        for label, match in enumerate([frequent, f"r{number}"]):
            text = " ".join(random.permutation([*fillers, match]))
            rows.append((f"q{number}", f"{frequent} r{number}", f"d{number}-{label}", text, label))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
    return pn.EmbeddingSpaces.from_vectors(words, vectors, vectors), frame


@pytest.mark.parametrize("gating", ["idf", "vector"])
def test_gates_tell_which_terms_matter(importance, gating):
    spaces, frame = importance
    model = pn.DRMM(spaces, gating=gating, training=training()).fit(frame[:-200], qrels(frame[:-200]))
    assert accuracies(model, frame[-200:])[0] > 0.95
    with torch.no_grad():
        model.network.gate.weight.zero_()
    assert accuracies(model, frame[-200:])[0] < 0.7  # chance has a half


def test_the_same_seed_gives_the_same_model(importance):
    spaces, frame = importance
    models = [pn.DRMM(spaces, training=training(epochs=2)) for _ in range(2)]
    found = [scores(model.fit(frame[:60], qrels(frame[:60])), frame) for model in models]
    np.testing.assert_array_equal(*found)
