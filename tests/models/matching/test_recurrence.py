"""The loops of an LSTM's recurrence: their exponential, and what is no number."""

import numpy as np
import torch

from pt_neural.models.matching.recurrence import _exp, _sigmoid, _tanh, states_of


def test_the_exponential_is_that_of_numpy():
    powers = np.linspace(-87, 87, 20_001, dtype=np.float32)
    found = np.array([_exp(power) for power in powers])
    np.testing.assert_allclose(found, np.exp(powers.astype(np.float64)), rtol=5e-7)
    assert _exp(np.float32(0)) == 1
    assert np.isnan(_exp(np.float32(np.nan)))


def test_gates_saturate():
    far = np.float32([-np.inf, -1e30, -200, 200, 1e30, np.inf])
    np.testing.assert_allclose([_sigmoid(x) for x in far], [0, 0, 0, 1, 1, 1], atol=1e-30)
    np.testing.assert_allclose([_tanh(x) for x in far], [-1, -1, -1, 1, 1, 1])


def test_what_is_no_number_stays_none_in_its_text():
    torch.manual_seed(3)
    projected, recurrent = torch.randn(2, 4, 4 * 3), torch.randn(2, 4 * 3, 3)
    projected[:, 1, 5] = torch.nan
    words = torch.tensor([[0, 1, 2, 3, 2], [0, 1, 2, 3, 2]])  # texts 0 2 2 and 1 3
    states = states_of(projected, recurrent, words, [2, 2, 1])
    assert states[:, [1, 3]].isnan().any(-1).all()
    assert states[:, [0, 2, 4]].isfinite().all()
