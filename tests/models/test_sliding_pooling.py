"""Convolution and sliding max pooling at once, against a loop over texts, positions and windows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pt_neural.models import sliding_pooling
from pt_neural.models.sliding_pooling import padded_words, pooled_windows, sliding_max, window_sums

NUM_WORDS = 5  # the last is the padding, whose projections are zero
PADDING = NUM_WORDS - 1
UNITS = 3
TEXTS = st.lists(st.lists(st.integers(0, PADDING - 1), max_size=9), min_size=1, max_size=5)


def packed(texts) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([0, *map(len, texts)])
    return torch.tensor([word for text in texts for word in text], dtype=torch.int64), lengths.cumsum(0)


def padded(texts, width: int) -> torch.Tensor:
    return padded_words(*packed(texts), width, PADDING)


def drawn(window: int, seed: int = 0) -> torch.Tensor:
    """Distinct float32 values, as float64: ties between different windows do not occur by chance."""
    generator = torch.Generator().manual_seed(seed)
    projections = torch.randn(NUM_WORDS, window, UNITS, generator=generator).double()
    projections[PADDING] = 0
    return projections.view(-1, UNITS).requires_grad_()


def window_sum(projections: torch.Tensor, text: list[int], place: int, window: int) -> torch.Tensor:
    blocks = projections.view(NUM_WORDS, window, UNITS)
    words = [text[place + i] if place + i < len(text) else PADDING for i in range(window)]
    return sum(blocks[word, i] for i, word in enumerate(words))


def naive(projections: torch.Tensor, texts, window: int, size: int, positions: int) -> torch.Tensor:
    pooled = [
        torch.stack([window_sum(projections, text, t + s, window) for s in range(size)]).max(dim=0).values
        for text in texts
        for t in range(positions)
    ]
    return torch.stack(pooled).view(len(texts), positions, UNITS).transpose(1, 2)


@given(TEXTS)
def test_padding_equals_a_loop(texts):
    width = max(map(len, texts)) + 2
    assert padded(texts, width).tolist() == [text + [PADDING] * (width - len(text)) for text in texts]


def test_some_of_the_texts_are_padded_alone():
    words, offsets = packed([[0, 1], [2], [], [3, 0, 1]])
    assert padded_words(words, offsets[1:4], 2, PADDING).tolist() == [[2, PADDING], [PADDING, PADDING]]


@pytest.mark.parametrize("window", [1, 2, 3])
def test_sums_are_those_of_each_window(window):
    text, projections = [0, 3, 1, 1, 2], drawn(window)
    found = window_sums(projections, padded([text], len(text)), window)
    expected = torch.stack([window_sum(projections, text, t, window) for t in range(len(text) - window + 1)])
    torch.testing.assert_close(found[0], expected)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9])
def test_sliding_maximum_equals_that_of_each_stretch(size):
    values = drawn(3).detach().view(1, -1, UNITS)
    stretches = values.unfold(1, size, 1).max(dim=3).values
    torch.testing.assert_close(sliding_max(values, size), stretches)


@given(TEXTS, st.sampled_from([1, 2, 3]), st.integers(1, 6), st.integers(1, 7))
def test_values_and_gradients_equal_a_loop(texts, window, size, positions):
    width = max(1, *map(len, texts)) + window - 1
    projections, same = drawn(window), drawn(window)
    found = pooled_windows(projections, padded(texts, width), window, size, positions)
    expected = naive(same, texts, window, size, positions)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    factors = torch.linspace(-1, 2, found.numel(), dtype=torch.float64).view(found.shape)
    (found * factors).sum().backward()
    (expected * factors).sum().backward()
    torch.testing.assert_close(projections.grad[:-window], same.grad[:-window])  # those of the padding do not count


@pytest.mark.parametrize(("window", "size", "positions"), [(1, 1, 3), (3, 2, 4), (3, 5, 2)])
def test_numerical_gradients(window, size, positions):
    words = padded([[0, 1, 2, 3, 0], [], [2], [3, 3], [1, 0, 2]], 5 + window - 1)
    projections = drawn(window).detach()
    gradient = torch.zeros_like(projections)
    factors = torch.linspace(-1, 2, 5 * UNITS * positions, dtype=torch.float64).view(5, UNITS, positions)

    def total(values: torch.Tensor) -> float:
        return float((pooled_windows(values, words, window, size, positions) * factors).sum())

    for place in range(PADDING * window):
        for unit in range(UNITS):
            step = torch.zeros_like(projections)
            step[place, unit] = 1e-5
            gradient[place, unit] = (total(projections + step) - total(projections - step)) / 2e-5
    learned = projections.clone().requires_grad_()
    (pooled_windows(learned, words, window, size, positions) * factors).sum().backward()
    torch.testing.assert_close(learned.grad[: PADDING * window], gradient[: PADDING * window], rtol=1e-6, atol=1e-6)


@given(TEXTS, st.sampled_from([1, 3]), st.integers(1, 6))
def test_remembering_the_winners_changes_no_value(texts, window, size):
    """Training and scoring take different ways."""
    words = padded(texts, max(1, *map(len, texts)) + window - 1)
    projections = drawn(window).detach().float()
    with torch.no_grad():
        scored = pooled_windows(projections, words, window, size, 4)
    assert torch.equal(pooled_windows(projections.requires_grad_(), words, window, size, 4), scored)


@pytest.mark.parametrize("windows_per_step", [1, 7, 20, 2048])
def test_texts_are_taken_in_steps_of_any_size(monkeypatch, windows_per_step):
    texts = [[0, 1, 2, 3, 0], [], [2], [3, 3], [1, 0, 2]]
    projections = drawn(3)
    monkeypatch.setattr(sliding_pooling, "WINDOWS_PER_STEP", windows_per_step)
    found = pooled_windows(projections, padded(texts, 7), 3, 3, 4)
    torch.testing.assert_close(found, naive(projections, texts, 3, 3, 4), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("value", [2.0, -2.0, 0.0])
def test_of_equal_windows_one_learns(value):
    projections = torch.full((NUM_WORDS, 2), value, requires_grad=True)
    pooled_windows(projections, torch.tensor([[0, 1, 2]]), 1, 3, 1).sum().backward()
    assert projections.grad.sum(0).tolist() == [1, 1]
    assert sorted(projections.grad[:, 0].tolist()) == [0, 0, 0, 0, 1]


def test_more_windows_than_a_small_integer_counts():
    length = 2**15 + 10
    words = torch.zeros(1, length, dtype=torch.int64)
    words[0, -1] = 1
    projections = torch.tensor([[1.0], [5.0], [0.0], [0.0], [0.0]], requires_grad=True)
    found = pooled_windows(projections, words, 1, 4, length - 3)
    found[0, 0, [0, -1]].sum().backward()
    assert found[0, 0, [0, -2, -1]].tolist() == [1, 1, 5]
    assert projections.grad.flatten().tolist() == [1, 1, 0, 0, 0]
