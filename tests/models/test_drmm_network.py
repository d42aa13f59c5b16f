"""The network of DRMM against a few lines of NumPy, term by term."""

import numpy as np
import pytest
import torch

from pt_neural.models.drmm_network import DRMMNetwork
from pt_neural.rankers.histograms import HistogramInputs

BINS, HIDDEN = 6, 4


def network_with(features: int = 1, histogram: str = "log-count", scale: float = 0.7) -> DRMMNetwork:
    network = DRMMNetwork(BINS, HIDDEN, features, histogram)
    random = np.random.default_rng(0)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.from_numpy(random.normal(scale=scale, size=weight.shape)))
    return network.eval()


def made_up(features: int = 1, seed: int = 1) -> HistogramInputs:
    """Three queries of 2, 0 and 3 terms, with two documents each."""
    random = np.random.default_rng(seed)
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


def by_hand(network: DRMMNetwork, inputs: HistogramInputs, query: int, document: int) -> float:
    """f of one pair, float64."""
    weights = {name: weight.double().numpy() for name, weight in network.state_dict().items()}
    outputs, gates = [], []
    for term in range(max(1, int(inputs.lengths[query]))):
        histogram = inputs.counts[query, document, term].numpy().astype(np.float64)
        hidden = weights["dense.weight"] @ TRANSFORMED[network.histogram](histogram) + weights["dense.bias"]
        outputs.append(np.tanh(weights["output.weight"] @ np.tanh(hidden) + weights["output.bias"])[0])
        gates.append(np.exp(weights["gate.weight"][0] @ inputs.gates[query, term].double().numpy()))
    return float(np.dot(outputs, gates) / np.sum(gates))


@pytest.mark.parametrize("histogram", TRANSFORMED)
@pytest.mark.parametrize("features", [1, 5])
def test_the_sum_of_gated_outputs(features, histogram):
    network, inputs = network_with(features, histogram, scale=0.01 if histogram == "count" else 0.7), made_up(features)
    found = network(inputs)
    assert found.shape == (3, 2)
    for query in range(3):
        for document in range(2):
            assert found[query, document].item() == pytest.approx(by_hand(network, inputs, query, document), abs=1e-5)


def test_gates_of_a_query_sum_to_one_and_go_by_idf():
    network = network_with()
    with torch.no_grad():
        network.gate.weight.fill_(2.0)
    inputs = made_up()
    gates = network.log_gates(inputs).exp()
    np.testing.assert_allclose(gates.sum(-1).detach(), 1, atol=1e-6)
    first, second = inputs.gates[0, :2, 0]
    assert (gates[0, 0, 0] / gates[0, 0, 1]).item() == pytest.approx(float(torch.exp(2 * (first - second))), rel=1e-5)
    assert not gates[0, :, 2].any()


def test_scores_are_atanh_of_the_sum():
    network, inputs = network_with(scale=0.4), made_up()
    np.testing.assert_allclose(network.scores(inputs).tanh().detach(), network(inputs).detach(), atol=1e-6)
    assert network.scores(inputs).dtype == torch.float64


def test_scores_do_not_tie_where_tanh_is_flat():
    network = network_with()
    inputs = made_up()
    with torch.no_grad():
        network.output.weight.abs_()
        network.dense.weight.abs_()
        network.output.bias.fill_(30.0)
        assert network(inputs)[0, 0] == network(inputs)[0, 1] == 1
        scores = network.scores(inputs)
        outputs = network.term_outputs(inputs.counts).double()
    assert scores[0, 0] != scores[0, 1]
    assert scores.isfinite().all()
    np.testing.assert_allclose(scores[1], outputs[1, :, 0])  # as a query of one term, its output before the tanh
    # 1 - tanh(a) is 2 exp(-2a) by now, so that the score is -ln of the mean of exp(-2a), halved.
    gates = network.log_gates(inputs).exp().double()
    expected = -(gates * (-2 * outputs).exp()).sum(-1).log() / 2
    np.testing.assert_allclose(scores, expected.detach(), rtol=1e-9)


def test_gradients_are_those_of_finite_differences():
    network, inputs = network_with(features=2, scale=0.3).double(), made_up(2)
    inputs = inputs._replace(gates=inputs.gates.double())
    names, weights = zip(*network.named_parameters(), strict=True)

    def outputs(*values):
        return torch.func.functional_call(network, dict(zip(names, values, strict=True)), (inputs,))

    assert torch.autograd.gradcheck(outputs, weights)


def test_the_paper_s_network_has_162_weights():
    """Thirty bins to five units, these to one, with biases; and one weight for the gate."""
    weights = DRMMNetwork(30, 5, 1, "log-count").parameters()
    assert sum(weight.numel() for weight in weights) == (30 * 5 + 5) + (5 + 1) + 1 == 162
