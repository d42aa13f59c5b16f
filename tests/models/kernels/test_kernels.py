"""KNRM, ConvKNRM and TK against loops over pairs of words."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

import pt_neural as pn
from pt_neural.models.kernels.conv_knrm import _UnitRows
from pt_neural.training import lightning
from tests.models.matching.reference import PAIRS, ByHand, made, relu, scores, unit

MEANS = [1, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9]


def kernel_sums(cosines: np.ndarray, means=MEANS, exact: bool = True, by_length: bool = False, log=math.log) -> list:
    """Over query words, of the logarithm of the count of each kernel, or of its count by length, divided by 100."""
    found = []
    for number, mean in enumerate(means):
        width = 1e-3 if exact and number == 0 else 0.1
        counts = [sum(math.exp(-((c - mean) ** 2) / (2 * width**2)) for c in row) for row in cosines]
        parts = [count / max(cosines.shape[1], 1) if by_length else log(max(count, 1e-10)) for count in counts]
        found.append(sum(parts) / 100)
    return found


@pytest.mark.parametrize("embeddings", ["trained", "frozen"])
def test_knrm(embeddings):
    model = made(pn.KNRM, embeddings=embeddings)
    expected = []
    for pair in PAIRS:
        hand = ByHand(model, *pair)
        expected.append(hand.layer("dense", np.array(kernel_sums(hand.cosines())))[0])
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)
    assert ("vectors.table" in model.network.state_dict()) == (embeddings == "trained")


def test_conv_knrm_matches_ngrams_of_all_lengths():
    model = made(pn.ConvKNRM, max_ngram=2, filters=4)
    expected = []
    for pair in PAIRS:
        hand, sums = ByHand(model, *pair), []
        for one in (1, 2):
            query = [unit(row) for row in relu(hand.windows(f"windows.{one - 1}", hand.query, one))]
            for other in (1, 2):
                text = [unit(row) for row in relu(hand.windows(f"windows.{other - 1}", hand.text, other))]
                cosines = np.array([[a @ b for b in text] for a in query]).reshape(len(query), len(text))
                sums += kernel_sums(cosines)
        expected.append(hand.layer("dense", 10 * np.array(sums))[0])  # divided by 10, not by 100
    np.testing.assert_allclose(scores(model), expected, atol=1e-4)


def test_gradients_of_positive_unit_rows_are_those_of_autograd():
    tables = [torch.randn(6, 4, dtype=torch.float32, requires_grad=True) for _ in range(3)]
    with torch.no_grad():
        tables[1][2] = -1.0  # nothing of it is positive
    weights = torch.randn(6, 12)
    plain = torch.cat([F.normalize(torch.relu(table), dim=-1) for table in tables], dim=-1)
    found = _UnitRows.apply(*tables)
    torch.testing.assert_close(found, plain)
    expected = torch.autograd.grad((plain * weights).sum(), tables)
    for one, other in zip(torch.autograd.grad((found * weights).sum(), tables), expected, strict=True):
        torch.testing.assert_close(one, other)


def in_context(hand: ByHand, words: list[str], heads: int, size: int) -> list[np.ndarray]:
    """The mixed vectors of TK, one word and one head at a time."""
    dim = hand.model.spaces.dim
    half = dim // 2
    angles = [[place / 10_000 ** (step / (half - 1)) for step in range(half)] for place in range(20)]
    position = [[*map(math.sin, row), *map(math.cos, row)] for row in angles]
    vectors = [hand.vector(word) for word in words]
    states = [vector + position[place] for place, vector in enumerate(vectors)]
    for layer in range(hand.model.num_layers):
        parts = [hand.layer(f"layers.{layer}.attended", state).reshape(3, heads, size) for state in states]
        new = []
        for state, (query, _, _) in zip(states, parts, strict=True):
            joined = []
            for head in range(heads):
                exponents = np.exp([query[head] @ key[head] / math.sqrt(size) for _, key, _ in parts])
                joined.append(sum(e * value[head] for e, (_, _, value) in zip(exponents, parts, strict=True)))
                joined[-1] = joined[-1] / exponents.sum()
            attended = hand.layer(f"layers.{layer}.joined", np.concatenate(joined))
            state = normalised(hand, f"layers.{layer}.first_norm", state + attended)
            fed = hand.layer(f"layers.{layer}.output", relu(hand.layer(f"layers.{layer}.hidden", state)))
            new.append(normalised(hand, f"layers.{layer}.second_norm", state + fed))
        states = new
    alpha = hand.weights["alpha"]
    return [unit(alpha * vector + (1 - alpha) * state) for vector, state in zip(vectors, states, strict=True)]


def normalised(hand: ByHand, name: str, state: np.ndarray) -> np.ndarray:
    centred = (state - state.mean()) / math.sqrt(state.var() + 1e-5)
    return hand.weights[f"{name}.weight"] * centred + hand.weights[f"{name}.bias"]


def test_tk_reads_words_in_context_and_counts_by_logarithm_and_by_length():
    model = made(pn.TK, num_layers=2, heads=2, projection=6, hidden=4)
    means, expected = [-1 + 0.2 * number for number in range(11)], []
    for pair in PAIRS:
        hand = ByHand(model, *pair)
        query, text = (in_context(hand, words, 2, 3) for words in (hand.query, hand.text))
        cosines = np.array([[a @ b for b in text] for a in query]).reshape(len(query), len(text))
        logarithms = kernel_sums(cosines, means, exact=False, log=math.log2)
        shares = kernel_sums(cosines, means, exact=False, by_length=True)
        parts = [hand.layer("by_logarithm", np.array(logarithms))[0], hand.layer("by_length", np.array(shares))[0]]
        expected.append(hand.layer("both", np.array(parts))[0])
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


def test_weights_of_kernels_of_tk_start_near_zero():
    model = made(pn.TK)
    network = model.make_network(model.reader)
    for layer in (network.by_logarithm, network.by_length):
        assert 0 < layer.weight.abs().max() <= 0.014


@pytest.mark.parametrize("embeddings", ["trained", "frozen"])
def test_embeddings_and_layers_of_tk_learn_at_a_tenth_of_the_rate(embeddings):
    network = made(pn.TK, embeddings=embeddings).network
    names = {id(weight): name for name, weight in network.named_parameters()}
    training = pn.Training(learning_rate=0.5).completed(pn.TK.own_training)
    rates = {
        names[id(w)]: group["lr"] for group in lightning.parameter_groups(network, training) for w in group["params"]
    }
    fast = {"by_logarithm.weight", "by_length.weight", "both.weight"}
    assert rates == {name: 0.5 if name in fast else 0.05 for name in names.values()}


def test_kernels_train_on_the_tanh_of_the_score():
    for kind in (pn.KNRM, pn.ConvKNRM):
        model = made(kind)
        pairs = model.reader.pair(["river city"], *model._frame_documents(frame("old city river"))[1:])
        batch = pairs.batch(np.array([0]), np.array([[0]]))
        score = model.network(batch)
        trained = model.network.train()(batch)
        torch.testing.assert_close(trained, score.tanh())


def frame(text: str) -> pd.DataFrame:
    return pd.DataFrame({"qid": ["1"], "query": ["q"], "docno": ["d"], "text": [text]})
