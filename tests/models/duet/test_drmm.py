"""DRMM as a ranker: settings, scores from texts, document frequencies, copies."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

import pt_neural as pn
from pt_neural._artifacts import ArtifactError
from pt_neural.models import DRMM
from pt_neural.models.drmm_idf import idf
from pt_neural.text import Vocabulary, tokenise

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


# Scores


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
    np.testing.assert_allclose(model.transform(frame)["score"], expected, atol=1e-5)
    assert np.std(expected) > 0.05


def test_a_row_has_exactly_its_histograms_among_any_others(model):
    scored = model.transform(CANDIDATES)["score"]
    for row in range(0, len(CANDIDATES), 17):
        alone = model.transform(CANDIDATES.iloc[[row]])["score"].iloc[0]
        assert alone == pytest.approx(scored[row], abs=1e-6)


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_batches_of_any_size(model, batch_size):
    expected = model.transform(CANDIDATES)["score"]
    copy = pickle.loads(pickle.dumps(model))
    copy.batch_size = batch_size
    np.testing.assert_allclose(copy.transform(CANDIDATES)["score"], expected, atol=1e-6)


def test_the_order_of_the_document_does_not_count(model):
    turned = CANDIDATES.assign(text=[" ".join(reversed(text.split())) for text in CANDIDATES["text"]])
    np.testing.assert_array_equal(model.transform(turned)["score"], model.transform(CANDIDATES)["score"])


def test_an_empty_query_does_not_tell_documents_apart(model):
    scores = model.transform(pairs(["", "?!"], TEXTS))["score"]
    np.testing.assert_array_equal(scores, scores[0])
    assert np.isfinite(scores).all()


def test_a_word_without_a_vector_matches_itself(model):
    query = WORDS[-1]
    assert query not in model.spaces
    scores = model.transform(pairs([query], [f"w1 w2 {query}", f"w1 w2 {WORDS[-2]}", f"w3 w4 {WORDS[-2]}"]))["score"]
    assert scores[0] != pytest.approx(scores[1], abs=1e-3)
    assert scores[1] == pytest.approx(scores[2], abs=1e-6)


def test_only_the_first_terms_count(spaces):
    model = fitted(spaces, query_terms=3, document_terms=5)
    whole = model.transform(pairs(["w1 w2 w3 w4"], ["w5 w6 w1 w2 w8 w3 w4"]))["score"][0]
    assert model.transform(pairs(["w1 w2 w3"], ["w5 w6 w1 w2 w8"]))["score"][0] == pytest.approx(whole, abs=1e-6)
    assert model.transform(pairs(["w1 w2"], ["w5 w6 w1 w2 w8"]))["score"][0] != pytest.approx(whole, abs=1e-4)


def test_spaces_give_different_scores(spaces):
    one, other = (fitted(spaces, space=space).transform(CANDIDATES)["score"] for space in ("in", "out"))
    assert not np.allclose(one, other, atol=1e-3)


@pytest.mark.parametrize("histogram", ["count", "normalised"])
def test_other_histograms_are_trained_on_too(spaces, histogram):
    model = pn.DRMM(spaces, histogram=histogram, training=QUIET).fit(CANDIDATES, QRELS, CANDIDATES, QRELS)
    assert np.isfinite(model.transform(CANDIDATES)["score"]).all()
    assert model.history["loss"].nunique() == 2


# Document frequencies


def test_idf_by_hand():
    frequencies = Vocabulary(["a", "b"], np.array([5, 2]), np.array([3, 1]), num_documents=4)
    found = idf(["b", "unseen", "a"], frequencies)
    np.testing.assert_allclose(found, np.log([5 / 1, 5 / 1, 5 / 3]), rtol=1e-6)


def test_documents_are_counted_once_each_without_a_forward_index(spaces):
    model = fitted(spaces)
    assert model.frequencies.num_documents == len(TEXTS)
    for term, count in zip(model.frequencies.terms, model.frequencies.document_frequency, strict=True):
        assert count == sum(term in tokenise(text) for text in TEXTS)


def test_a_forward_index_counts_the_collection(spaces, tmp_path):
    corpus = [{"docno": f"d{i}", "text": text} for i, text in enumerate([*TEXTS, "w1 w1", "w1 w2", "w39"])]
    index = pn.ForwardIndex.build(tmp_path / "forward", corpus, fields=["text"], verbose=False)
    model = fitted(spaces, documents=index)
    assert model.frequencies.num_documents == len(corpus)
    assert dict(zip(model.frequencies.terms, model.frequencies.document_frequency, strict=True))["w1"] == sum(
        "w1" in tokenise(document["text"]) for document in corpus
    )
    expected = model.transform(CANDIDATES[["qid", "query", "docno"]])["score"]
    model.documents = None  # the frequencies are still those that it was trained with
    np.testing.assert_allclose(model.transform(CANDIDATES)["score"], expected, atol=1e-6)


def test_gates_by_vector_need_no_frequencies(spaces, tmp_path):
    model = fitted(spaces, gating="vector")
    assert model.frequencies is None
    model.save(tmp_path / "model.pn")
    assert not (tmp_path / "model.pn" / "frequencies").exists()
    assert model.network.gate.weight.shape == (1, spaces.dim)


# Training


def test_histograms_of_dev_queries_are_made_once(spaces, monkeypatch):
    made = []
    original = DRMM._histograms

    def counting(self, *args):
        made.append(1)
        return original(self, *args)

    monkeypatch.setattr(DRMM, "_histograms", counting)
    model = pn.DRMM(spaces, training=QUIET).fit(CANDIDATES, QRELS, CANDIDATES, QRELS)
    assert len(model.history) == 2
    assert len(made) == 1


def test_training_in_mixed_precision_keeps_exact_counts(spaces):
    training = pn.Training(epochs=1, batch_size=4, precision="bf16-mixed", verbose=False)
    model = pn.DRMM(spaces, training=training).fit(CANDIDATES, QRELS)
    assert np.isfinite(model.history["loss"]).all()
    assert all(weight.dtype == torch.float32 for weight in model.network.parameters())


@pytest.mark.parametrize("training", [{"loss": "margin", "margin": 0.1}, {"loss": "pointwise"}, {"loss": "softmax"}])
def test_losses(spaces, training):
    model = pn.DRMM(spaces, training=pn.Training(epochs=3, verbose=False, learning_rate=0.05, **training))
    history = model.fit(CANDIDATES, QRELS).history
    assert history["loss"].iloc[-1] < history["loss"].iloc[0]


# Copies


def test_pickles_and_saved_models_score_alike(model, tmp_path):
    expected = model.transform(CANDIDATES)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(model)).transform(CANDIDATES), expected)
    model.save(tmp_path / "model.pn")
    loaded = pn.DRMM.load(tmp_path / "model.pn")
    pd.testing.assert_frame_equal(loaded.transform(CANDIDATES), expected)
    assert loaded.settings() == model.settings()
    assert loaded.fingerprint() == model.fingerprint()
    np.testing.assert_array_equal(loaded.spaces.out_vectors, model.spaces.out_vectors)


def test_damaged_files_are_named(model, tmp_path):
    model.save(tmp_path / "whole")
    files = [path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*.*")]
    assert len(files) >= (11 if model.gating == "idf" else 8)
    for number, file in enumerate(files):
        path = tmp_path / str(number)
        model.save(path)
        (path / file).write_bytes(b"")
        with pytest.raises((ArtifactError, FileNotFoundError)) as raised:
            pn.DRMM.load(path)
        assert any(name in str(raised.value) for name in (file.stem, file.parent.name or file.stem))


def test_the_embeddings_are_part_of_the_model(model, spaces):
    with pytest.raises(AttributeError):
        model.spaces = spaces


# Arguments


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
        ({"training": 3}, TypeError, r"training must be a pn\.Training"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(spaces, wrong, kind, message):
    with pytest.raises(kind, match=message):
        pn.DRMM(spaces, **wrong)


def test_spaces_must_be_embeddings():
    with pytest.raises(TypeError, match=r"spaces must be pn\.EmbeddingSpaces, not 'spaces'"):
        pn.DRMM("spaces")


def test_settings_count_until_the_model_is_trained(spaces):
    model = pn.DRMM(spaces, training=QUIET)
    model.space, model.bins = "out", 12
    model.fit(CANDIDATES, QRELS)
    same = pn.DRMM(spaces, space="out", bins=12, training=QUIET).fit(CANDIDATES, QRELS)
    pd.testing.assert_frame_equal(model.transform(CANDIDATES), same.transform(CANDIDATES))
    model.bins = 13
    with pytest.raises(RuntimeError, match=r"bins of DRMM.* changed after training"):
        model.transform(CANDIDATES)
    model.bins = 999
    with pytest.raises(ValueError, match="bins must be at most 256"):
        model.fit(CANDIDATES, QRELS)


def test_representations_are_short(spaces):
    assert repr(pn.DRMM(spaces)) == "DRMM(gating='idf')"
    assert repr(pn.DRMM(spaces, gating="vector")) == "DRMM(gating='vector')"


def test_explanations_drop_one_occurrence_at_a_time(model):
    query, text = "w1 w2 w35", "w5 w1 w6 w1 w35"
    explanation = pn.explain(model, query, text)
    whole = model.transform(pairs([query], [text]))["score"][0]
    assert explanation.score == pytest.approx(whole, abs=1e-6)
    frame = explanation.to_frame()
    document = frame[frame["side"] == "document"]
    assert document["word"].tolist() == text.split()
    without = model.transform(pairs([query], ["w5 w6 w1 w35"]))["score"][0]
    assert document["contribution"].iloc[1] == pytest.approx(whole - without, abs=1e-6)
    np.testing.assert_allclose(document["contribution"].iloc[1], document["contribution"].iloc[3], atol=1e-6)
