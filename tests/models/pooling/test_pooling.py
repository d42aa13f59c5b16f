"""DRMMTKS, aNMM and MV-LSTM against loops over words."""

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


def states(model, side: str, words: list[str], hand: ByHand) -> list[np.ndarray]:
    """The states of a text that PyTorch's own LSTM reads alone."""
    encoder = getattr(model.network, side).lstm
    lstm = torch.nn.LSTM(model.spaces.dim, model.units, bidirectional=True).double()
    lstm.load_state_dict({name: weight.double() for name, weight in encoder.state_dict().items()})
    if not words:
        return []
    vectors = torch.from_numpy(np.array([hand.vector(word) for word in words]))
    with torch.no_grad():
        return list(lstm(vectors)[0].numpy())


@pytest.mark.parametrize("similarity", ["cosine", "bilinear", "tensor"])
def test_mv_lstm_reads_the_strongest_matches_of_states(similarity):
    model = made(pn.MVLSTM, similarity=similarity, slices=2, units=3, top_k=4, hidden=5)
    expected = []
    for pair in PAIRS:
        hand, strongest = ByHand(model, *pair), []
        query, text = states(model, "query", hand.query, hand), states(model, "document", hand.text, hand)
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
