"""Convolution and max pooling at once, against a loop over texts and windows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pt_neural.models.clsm.layers import max_over_windows, pool, window_rows

TEXTS = st.lists(st.lists(st.integers(0, 3), max_size=7), max_size=6)
WINDOWS = st.sampled_from([1, 3, 5])
NUM_WORDS = 5  # the last is the padding


def packed(texts) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([0, *map(len, texts)])
    return torch.tensor([word for text in texts for word in text], dtype=torch.int64), lengths.cumsum(0)


def drawn(window: int, units: int = 3, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(NUM_WORDS * window, units, dtype=torch.float64, generator=generator, requires_grad=True)


def naive(projections, texts, window) -> torch.Tensor:
    """Window after window; of equal windows, the first has the maximum (equation 15)."""
    blocks = projections.view(NUM_WORDS, window, -1)
    half = window // 2
    rows = []
    for text in texts:
        padded = [NUM_WORDS - 1] * half + text + [NUM_WORDS - 1] * half
        sums = [sum(blocks[padded[t + i], i] for i in range(window)) for t in range(len(text))]
        if sums:
            sums = torch.stack(sums)
            first = (sums == sums.max(dim=0).values).int().argmax(dim=0)
            rows.append(sums.gather(0, first[None])[0])
        else:
            rows.append(blocks.new_zeros(blocks.shape[2]))
    return torch.stack(rows) if rows else blocks.new_zeros(0, blocks.shape[2])


@given(TEXTS, WINDOWS)
def test_values_and_gradients_equal_a_loop(texts, window):
    words, offsets = packed(texts)
    projections, same = drawn(window), drawn(window)
    found, expected = max_over_windows(projections, words, offsets, window), naive(same, texts, window)
    torch.testing.assert_close(found, expected)
    weights = torch.linspace(-1, 2, found.numel(), dtype=torch.float64).view(found.shape)
    (found * weights).sum().backward()
    ((expected * weights).sum() + 0 * same.sum()).backward()  # no text depends on nothing
    torch.testing.assert_close(projections.grad, same.grad)


@pytest.mark.parametrize("window", [1, 3, 5])
def test_numerical_gradients(window):
    words, offsets = packed([[0, 1, 2, 3, 0], [], [2], [3, 3], [1, 0, 2]])
    assert torch.autograd.gradcheck(lambda p: max_over_windows(p, words, offsets, window), drawn(window))


def test_of_equal_windows_the_first_one_learns():
    words, offsets = packed([[0, 1, 2]])
    projections = torch.zeros(NUM_WORDS, 2, dtype=torch.float64, requires_grad=True)
    max_over_windows(projections, words, offsets, 1).sum().backward()
    assert projections.grad.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0], [0, 0]]
    _, winners = pool(projections.detach(), window_rows(words, offsets, 1, 4), offsets, winners=True)
    assert winners.tolist() == [[0, 0]]


def test_a_maximum_below_zero_is_kept():
    words, offsets = packed([[0, 1], []])
    projections = torch.tensor([[-2.0], [-3.0], [9.0], [9.0], [9.0]])
    assert max_over_windows(projections, words, offsets, 1).tolist() == [[-2], [0]]


@given(TEXTS.filter(len), WINDOWS, st.data())
def test_a_text_has_its_values_in_any_batch(texts, window, data):
    order = data.draw(st.permutations(range(len(texts))))
    projections = drawn(window).detach()
    words, offsets = packed(texts)
    whole = max_over_windows(projections, words, offsets, window)
    words, offsets = packed([texts[i] for i in order])
    assert torch.equal(max_over_windows(projections, words, offsets, window), whole[order])
    words, offsets = packed(texts[:1])
    assert torch.equal(max_over_windows(projections, words, offsets, window), whole[:1])


def test_windows_do_not_reach_into_the_next_text():
    words, offsets = packed([[0, 1], [], [2]])
    assert window_rows(words, offsets, 3, padding=4).tolist() == [
        [4 * 3, 0 * 3 + 1, 1 * 3 + 2],
        [0 * 3, 1 * 3 + 1, 4 * 3 + 2],
        [4 * 3, 2 * 3 + 1, 4 * 3 + 2],
    ]


def test_winners_are_windows_of_the_batch():
    words, offsets = packed([[], [0, 1], [2]])
    projections = torch.eye(NUM_WORDS)
    _, winners = pool(projections, window_rows(words, offsets, 1, 4), offsets, winners=True)
    assert winners[1:].tolist() == [[0, 1, 0, 0, 0], [2] * 5]


def test_no_gradient_costs_no_winners():
    words, offsets = packed([[0, 1]])
    with torch.no_grad():
        found = max_over_windows(drawn(3), words, offsets, 3)
    assert not found.requires_grad
    assert pool(drawn(3).detach(), window_rows(words, offsets, 3, 4), offsets, winners=False)[1] is None
