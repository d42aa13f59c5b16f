"""DSSM against bags of letter trigrams made letter by letter, and what it learns."""

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

import pt_neural as pn
from pt_neural.text import tokenise

TEXTS = ["boys will be boys", "a girl", "mississippi river boat"]
TOPICS = ["the boy", "river girls", "be be be"]


def bag(text: str, ngrams: list[str], size: int = 3) -> np.ndarray:
    """The letter n-gram counts of a text (CLSM paper, section 3.2), dense."""
    counts = np.zeros(len(ngrams))
    for word in tokenise(text):
        bounded = f"#{word}#"
        for i in range(len(bounded) - size + 1):
            if bounded[i : i + size] in ngrams:
                counts[ngrams.index(bounded[i : i + size])] += 1
    return counts


def vector(text: str, model: pn.DSSM, side: str) -> np.ndarray:
    """tanh layer after tanh layer, without biases."""
    weights = {name: array.double().numpy() for name, array in model.network.state_dict().items()}
    units = np.tanh(bag(text, model.reader.hashing.ngrams, model.ngram_sizes[0]) @ weights[f"{side}.hashing.weight"])
    for layer in range(len(model.layers) - 1):
        units = np.tanh(weights[f"{side}.dense.{layer}.weight"] @ units)
    return units


def cosine(a, b) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def pairs(topics=TOPICS, texts=TEXTS) -> pd.DataFrame:
    queries = pd.DataFrame({"qid": [f"q{i}" for i in range(len(topics))], "query": topics})
    return queries.merge(pd.DataFrame({"docno": [f"d{i}" for i in range(len(texts))], "text": texts}), how="cross")


@pytest.mark.parametrize(("layers", "shared"), [((7,), False), ((7, 5), True), ((6, 7, 5), False)])
def test_scores_are_cosines_of_two_networks(with_random_weights, layers, shared):
    model = with_random_weights(pn.DSSM(layers, shared=shared), TEXTS)
    document = "query" if shared else "document"
    frame = pairs()
    expected = [
        cosine(vector(row.query, model, "query"), vector(row.text, model, document)) for row in frame.itertuples()
    ]
    np.testing.assert_allclose(model.transform(frame)["score"], expected, atol=1e-5)


def test_other_ngrams(with_random_weights):
    model = with_random_weights(pn.DSSM((4, 3), ngram_sizes=(2,)), TEXTS)
    assert "oy" in model.reader.hashing.ngrams
    expected = cosine(vector("boy", model, "query"), vector("a girl", model, "document"))
    assert model.transform(pairs(["boy"], ["a girl"]))["score"][0] == pytest.approx(expected, abs=1e-5)


def test_the_papers_shapes(with_random_weights):
    model = with_random_weights(pn.DSSM(), TEXTS)
    shapes = {name: tuple(weight.shape) for name, weight in model.network.state_dict().items()}
    side = {
        "hashing.weight": (len(model.reader.hashing), 300),
        "dense.0.weight": (300, 300),
        "dense.1.weight": (128, 300),
    }
    assert shapes == {f"{tower}.{name}": shape for tower in ("query", "document") for name, shape in side.items()}


def test_gradients_are_equations_12_and_13(with_random_weights):
    model = with_random_weights(pn.DSSM((6, 5)), TEXTS)
    network = model.network
    reader = model.reader
    texts = {"query": reader.read_queries(["boys river"]), "document": reader.read_queries(TEXTS[:1])}
    inputs = {side: corpus.take(np.array([0])) for side, corpus in texts.items()}
    y = {side: torch.tanh(network.tower(side).dense[0](_hidden(network, inputs, side)))[0] for side in inputs}
    score = (network.vectors("query", inputs["query"]) * network.vectors("document", inputs["document"])).sum()
    score.backward()
    a, b, c = y["query"] @ y["document"], 1 / y["query"].norm(), 1 / y["document"].norm()
    deltas = {
        "query": (1 - y["query"]) * (1 + y["query"]) * (b * c * y["document"] - a * c * b**3 * y["query"]),
        "document": (1 - y["document"]) * (1 + y["document"]) * (b * c * y["query"] - a * b * c**3 * y["document"]),
    }
    for side, delta in deltas.items():
        expected = torch.outer(delta, _hidden(network, inputs, side)[0])
        torch.testing.assert_close(network.tower(side).dense[0].weight.grad, expected.detach(), atol=1e-6, rtol=1e-4)


def _hidden(network, inputs, side):
    texts = inputs[side]
    words = network.tower(side).hashing(texts)
    return torch.tanh(words[texts.words].sum(dim=0, keepdim=True))


def test_word_order_does_not_count(with_random_weights):
    model = with_random_weights(pn.DSSM(), TEXTS)
    forward, backward = model.encode_documents(["mississippi river boat", "boat river mississippi"])
    np.testing.assert_allclose(forward, backward, atol=1e-6)


def test_a_word_is_projected_once_however_often_it_occurs(with_random_weights, monkeypatch):
    model = with_random_weights(pn.DSSM(), TEXTS)
    looked_up = []
    original = F.embedding_bag

    def spy(ngrams, weight, *args, **options):
        if len(weight) == len(model.reader.hashing):
            looked_up.append(ngrams)
        return original(ngrams, weight, *args, **options)

    monkeypatch.setattr(F, "embedding_bag", spy)
    model.encode_documents(["boys " * 1000 + "girl"] * 3)
    assert [len(ngrams) for ngrams in looked_up] == [len("boys") + len("girl")]


def test_the_layers_are_checked():
    for layers in ((), (0,), (300, -1)):
        with pytest.raises(ValueError, match=r"layers must (be|hold) at least"):
            pn.DSSM(layers)
    assert repr(pn.DSSM()) == "DSSM(300-300-128)"
