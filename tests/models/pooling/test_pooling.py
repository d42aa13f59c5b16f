"""DRMMTKS, aNMM, MV-LSTM and POSIT-DRMM against loops over words."""

import math

import numpy as np
import pytest
import torch

import pt_neural as pn
from tests.models.matching.reference import PAIRS, ByHand, k_largest, made, relu, scores, unit


def test_drmmtks_reads_the_largest_cosines_of_each_query_word():
    model = made(pn.DRMMTKS, top_k=4, hidden=3)
    expected = []
    for pair in PAIRS:
        hand = ByHand(model, *pair)
        outputs = [hand.layer("output", np.tanh(hand.layer("dense", k_largest(row, 4))))[0] for row in hand.cosines()]
        empty = hand.layer("output", np.tanh(hand.layer("dense", np.zeros(4))))[0]  # a query without words
        expected.append(hand.gates() @ outputs if outputs else empty)
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@pytest.mark.parametrize("nodes", [1, 3])
def test_anmm_weighs_cosines_by_their_value(nodes):
    model = made(pn.ANMM, bins=5, nodes=nodes)
    expected = []
    for pair in PAIRS:
        hand, outputs = ByHand(model, *pair), []
        for row in hand.cosines() if hand.query else np.zeros((1, 0)):
            sums = np.zeros(5)
            for cosine in row:
                sums[4 if cosine > 1 - 1e-6 else min(int((cosine + 1) / 0.5), 3)] += cosine
            found = hand.layer("values", sums)
            outputs.append(found[0] if nodes == 1 else hand.layer("joined", np.array(list(map(sigmoid, found))))[0])
        gates = hand.gates() if hand.query else np.ones(1)
        expected.append(math.atanh(2 * (gates @ list(map(sigmoid, outputs))) - 1))
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


def test_anmm_ranks_where_its_sigmoids_are_flat():
    model = made(pn.ANMM)
    with torch.no_grad():
        model.network.values.weight.fill_(10)
    once, twice = scores(model, [("river", "river " * count) for count in (10, 12)])
    assert twice > once + 5


def states(encoder: torch.nn.LSTM, vectors: list[np.ndarray]) -> list[np.ndarray]:
    """The states of a text that PyTorch's own LSTM reads alone."""
    lstm = torch.nn.LSTM(encoder.input_size, encoder.hidden_size, bidirectional=True).double()
    lstm.load_state_dict({name: weight.double() for name, weight in encoder.state_dict().items()})
    if not vectors:
        return []
    with torch.no_grad():
        return list(lstm(torch.from_numpy(np.array(vectors)))[0].numpy())


@pytest.mark.parametrize("similarity", ["cosine", "bilinear", "tensor"])
def test_mv_lstm_reads_the_strongest_matches_of_states(similarity):
    model = made(pn.MVLSTM, similarity=similarity, slices=2, units=3, top_k=4, hidden=5)
    expected = []
    for pair in PAIRS:
        hand, strongest = ByHand(model, *pair), []
        query = states(model.network.query.lstm, [hand.vector(word) for word in hand.query])
        text = states(model.network.document.lstm, [hand.vector(word) for word in hand.text])
        for number in range(2 if similarity == "tensor" else 1):
            found = []
            for u in query:
                for v in text:
                    if similarity == "cosine":
                        found.append(unit(u) @ unit(v))
                        continue
                    value = u @ hand.weights["bilinear"][number] @ v + hand.weights["bias"][number]
                    if similarity == "tensor":
                        by_side = hand.layer("query_part", u)[number] + hand.layer("document_part", v)[number]
                        value = relu(value + by_side)
                    found.append(value)
            strongest.append(k_largest(found, 4))
        expected.append(hand.layer("output", relu(hand.layer("hidden", np.concatenate(strongest))))[0])
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


@pytest.mark.parametrize(("num_layers", "dim", "query_terms"), [(1, 6, 5), (2, 5, 2)])
def test_posit_drmm_pools_three_views_of_each_query_word(num_layers, dim, query_terms):
    model = made(pn.POSITDRMM, dim=dim, num_layers=num_layers, top_k=3, hidden=4, query_terms=query_terms)
    expected = []
    for pair in PAIRS:
        hand = ByHand(model, *pair)
        query, text = (in_context(model, hand, words) for words in (hand.query, hand.text))
        exact = np.array([[float(word == other) for other in hand.text] for word in hand.query])
        exact = exact.reshape(len(hand.query), len(hand.text))
        outputs = []
        for place, word in enumerate(hand.query):
            views = [unit(query[place]) @ unit(vector) for vector in text]
            others = [unit(hand.vector(word)) @ unit(hand.vector(other)) for other in hand.text]
            pooled = [
                value
                for view in (views, others, exact[place])
                for value in (max(view, default=0), k_largest(view, 3).sum() / 3)
            ]
            units = hand.layer("hidden", np.array(pooled))
            outputs.append(hand.layer("output", np.where(units > 0, units, 0.1 * units))[0])
        if not hand.query:
            units = hand.layer("hidden", np.zeros(6))
            total = hand.layer("output", np.where(units > 0, units, 0.1 * units))[0]
            expected.append(hand.layer("joined", np.array([total, 0, 0, 0, 0]))[0])
            continue
        idf = model.reader.read_queries([" ".join(hand.query)]).take(np.array([0]))
        idf = idf.idf[idf.words].double().numpy()
        exponents = np.exp([hand.layer("gate", np.append(query[place], idf[place]))[0] for place in range(len(query))])
        found = exact.any(axis=1)
        neighbours = [(a, b) for a, b in zip(hand.query, hand.query[1:], strict=False)]
        in_text = [pair in zip(hand.text, hand.text[1:], strict=False) for pair in neighbours]
        products = idf[:-1] * idf[1:]
        overlaps = [found.mean(), found @ idf / idf.sum()]
        overlaps += [np.mean(in_text), in_text @ products / products.sum()] if neighbours else [0, 0]
        expected.append(hand.layer("joined", np.array([exponents @ outputs / exponents.sum(), *overlaps]))[0])
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


def in_context(model, hand: ByHand, words: list[str]) -> list[np.ndarray]:
    """The sums of the vectors of words and of their states."""
    vectors = read = [hand.vector(word) for word in words]
    for lstm in model.network.lstms:
        read = states(lstm, read)
    return [vector + state[: len(vector)] for vector, state in zip(vectors, read, strict=True)]
