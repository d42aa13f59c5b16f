"""The encoders of words in context against loops over texts; dropout by bytes."""

import copy

import pytest
import torch
from torch import Tensor, nn

from pt_neural.models.matching import encoders as module
from pt_neural.models.matching.encoders import (
    ByteDropout,
    ConvolutionalEncoder,
    Encoded,
    RecurrentEncoder,
    TextEncoders,
    TextLSTM,
    max_over_texts,
)
from pt_neural.rankers.readers.embedded_words import EmbeddedTexts

INPUTS, UNITS = 5, 4
LENGTHS = [3, 0, 7, 1, 7, 2, 0, 5, 5, 1, 4, 0]
KINDS = [RecurrentEncoder, ConvolutionalEncoder]


def texts_of(lengths: list[int]) -> tuple[Tensor, Tensor]:
    torch.manual_seed(len(lengths))
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return torch.randn(sum(lengths), INPUTS, dtype=torch.float64, requires_grad=True), offsets


def make(kind: type[nn.Module], dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(7)
    return kind(INPUTS, UNITS, dropout).double()


def slow_lstm(lstm: nn.LSTM, text: Tensor) -> tuple[Tensor, Tensor]:
    """An LSTM of PyTorch over one text: its states, and the last one of each direction."""
    if not len(text):
        return text.new_zeros(0, 2 * UNITS), text.new_zeros(2 * UNITS)
    plain = nn.LSTM(INPUTS, UNITS, bidirectional=True)
    states, (ends, _) = torch.func.functional_call(plain, dict(lstm.named_parameters()), text)
    return states, ends.flatten()


def slow_convolution(encoder: ConvolutionalEncoder, text: Tensor) -> tuple[Tensor, Tensor]:
    """Filters over each word, and over it and its neighbours; zeros lie beyond both ends."""
    if not len(text):
        return text.new_zeros(0, 2 * UNITS), text.new_zeros(2 * UNITS)
    beyond = text.new_zeros(INPUTS)
    states = []
    for place, word in enumerate(text):
        before = text[place - 1] if place else beyond
        after = text[place + 1] if place + 1 < len(text) else beyond
        one = encoder.one.weight @ word + encoder.one.bias
        three = encoder.three.weight @ torch.cat([before, word, after]) + encoder.three.bias
        states.append(torch.tanh(torch.cat([one, three])))
    return torch.stack(states), torch.stack(states).amax(dim=0)


def one_at_a_time(encoder: nn.Module, words: Tensor, offsets: Tensor) -> Encoded:
    texts = words.split(offsets.diff().tolist())
    if isinstance(encoder, RecurrentEncoder):
        read = [slow_lstm(encoder.lstm, text) for text in texts]
    else:
        read = [slow_convolution(encoder, text) for text in texts]
    states, whole = zip(*read, strict=True)
    return Encoded(torch.cat(states), torch.stack(whole))


@pytest.mark.parametrize("texts_at_once", [1, 4, 32])
@pytest.mark.parametrize("kind", KINDS)
def test_each_text_is_read_as_if_it_were_alone(kind, texts_at_once, monkeypatch):
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", texts_at_once)
    monkeypatch.setattr(module, "WORDS_AT_ONCE", 1)
    encoder, (words, offsets) = make(kind), texts_of(LENGTHS)
    found, expected = encoder(words, offsets), one_at_a_time(encoder, words, offsets)
    torch.testing.assert_close(found.states, expected.states)
    torch.testing.assert_close(found.whole, expected.whole)
    weights = torch.randn_like(expected.states), torch.randn_like(expected.whole)
    gradients = [
        torch.autograd.grad(
            (encoded.states * weights[0]).sum() + (encoded.whole * weights[1]).sum(), [words, *encoder.parameters()]
        )
        for encoded in (found, expected)
    ]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_gpu_reads_packed_texts():
    torch.manual_seed(7)
    lstm, (words, offsets) = TextLSTM(INPUTS, UNITS).double(), texts_of(LENGTHS)
    lengths = offsets.diff()
    order = torch.argsort(lengths, descending=True)[: int((lengths > 0).sum())]
    expected = torch.cat([slow_lstm(lstm, text)[0] for text in words.split(LENGTHS)])
    torch.testing.assert_close(lstm._packed(words, offsets, order), expected)


@pytest.mark.parametrize("lengths", [LENGTHS, [1, 1], [4], [0, 2], [0]])
def test_distinct_words_are_projected_once(lengths):
    torch.manual_seed(7)
    lstm, (_, offsets) = TextLSTM(INPUTS, UNITS), texts_of(lengths)
    exact = copy.deepcopy(lstm).double()
    words, vectors = torch.randint(6, (sum(lengths),)), torch.randn(6, INPUTS, requires_grad=True)
    slow = vectors.detach().double().requires_grad_()
    expected = torch.cat([slow_lstm(exact, text)[0] for text in slow[words].split(lengths)])
    for training in (True, False):  # in double precision, our loops read neither
        torch.testing.assert_close(exact.train(training).of_distinct(slow, words, offsets), expected)
    with torch.autocast("cpu", torch.bfloat16):
        found = lstm.of_distinct(vectors, words, offsets)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)
    if len(words):
        weights, inputs = torch.randn_like(expected), ([vectors, *lstm.parameters()], [slow, *exact.parameters()])
        pairs = zip((found, expected), inputs, strict=True)
        ours, theirs = (torch.autograd.grad((states * weights).sum(), each) for states, each in pairs)
        for gradient, known in zip(ours, theirs, strict=True):
            torch.testing.assert_close(gradient.double(), known, rtol=1e-4, atol=1e-5)


def test_a_word_has_no_gradient_from_another_text():
    lstm, (words, offsets) = TextLSTM(INPUTS, UNITS).double(), texts_of(LENGTHS)
    states, _ = lstm(words, offsets)
    text = slice(int(offsets[2]), int(offsets[3]))
    (gradient,) = torch.autograd.grad(states[text].sum(), words)
    is_own = torch.zeros(len(words), dtype=torch.bool)
    is_own[text] = True
    assert (gradient[is_own] != 0).all()
    assert (gradient[~is_own] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_texts_without_words(kind):
    for texts in (0, 1, 3):
        words, offsets = torch.zeros(0, INPUTS, dtype=torch.float64), torch.zeros(texts + 1, dtype=torch.int64)
        states, whole = make(kind)(words, offsets)
        assert states.shape == (0, 2 * UNITS)
        assert whole.tolist() == [[0] * 2 * UNITS] * texts


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_in_training_only(kind):
    encoder, (words, offsets) = make(kind, dropout=0.5), texts_of([400, 100])
    inputs = []
    layer = encoder.lstm if kind is RecurrentEncoder else encoder.one
    hook = layer.register_forward_pre_hook(lambda _, given: inputs.append(getattr(given[0], "data", given[0])))
    states, _ = encoder(words, offsets)
    hook.remove()
    assert float((states == 0).double().mean()) == pytest.approx(0.5, abs=0.05)
    assert float((inputs[0] == 0).double().mean()) == pytest.approx(0.5, abs=0.05)
    encoder.eval()
    torch.testing.assert_close(encoder(words, offsets).states, one_at_a_time(encoder, words, offsets).states)


def test_the_largest_value_of_each_unit():
    states = torch.tensor([[1.0, -9], [4, -3], [2, -5], [-1, -2]], requires_grad=True)
    pooled = max_over_texts(states, torch.tensor([0, 3, 3, 4]))
    assert pooled.tolist() == [[4, -3], [0, 0], [-1, -2]]
    (pooled * torch.tensor([[1.0, 10], [100, 100], [1000, 10000]])).sum().backward()
    assert states.grad.tolist() == [[0, 0], [1, 10], [0, 0], [1000, 10000]]


@pytest.mark.parametrize("encoder", ["lstm", "cnn"])
def test_one_projection_serves_both_sides_and_reads_each_distinct_word_once(encoder):
    encoders = TextEncoders(6, INPUTS, 3, UNITS, encoder, 0.0).double().eval()
    rows = []
    encoders.projection.register_forward_hook(lambda _, inputs, output: rows.append(len(output)))
    vectors = torch.randn(4, 6, dtype=torch.float64)
    words, offsets = torch.tensor([2, 0, 2, 3, 1]), torch.tensor([0, 3, 3, 5])
    texts = EmbeddedTexts(vectors, words, offsets, torch.ones(3, dtype=torch.bool))
    projected = vectors @ encoders.projection.weight.T + encoders.projection.bias
    for side, units in (("query", 3), ("document", UNITS)):
        found, expected = encoders(side, texts), getattr(encoders, side)(projected[words], offsets)
        torch.testing.assert_close(found.states, expected.states)
        torch.testing.assert_close(found.whole, expected.whole)
        assert found.whole.shape == (3, 2 * units)
    assert rows == [4, 4]


# Dropout


def test_the_share_is_dropped_and_the_mean_stays():
    torch.manual_seed(0)
    for share in (0.1, 0.5, 0.9, 0.9999):
        dropped = ByteDropout(share)(torch.full((400, 1000), 3.0))
        exact = min(255, round(256 * share)) / 256
        assert float((dropped == 0).float().mean()) == pytest.approx(exact, abs=0.005)
        assert dropped[dropped != 0].unique().tolist() == pytest.approx([3 / (1 - exact)], rel=1e-5)
        assert float(dropped.mean()) == pytest.approx(3, rel=0.1)


def test_units_are_dropped_independently():
    torch.manual_seed(0)
    kept = (ByteDropout(0.5)(torch.ones(100_000)) != 0).double()
    for apart in (1, 2, 3, 4, 7, 8, 64):  # eight units share a random number
        assert float((kept[apart:] * kept[:-apart]).mean()) == pytest.approx(0.25, abs=0.01)


def test_units_stay_as_they_are_in_use_and_without_dropout():
    units = torch.randn(7, 3)
    for unused in (ByteDropout(0.5).eval(), ByteDropout(0.0), ByteDropout(0.001)):  # less than half of a 256th
        assert unused(units) is units


def test_the_seed_decides():
    units, dropout = torch.ones(1000), ByteDropout(0.3)
    found = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        found.append(dropout(units))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert not torch.equal(found[2], dropout(units))


def test_gradients_reach_the_units_that_are_kept():
    units = torch.randn(13, 5, dtype=torch.float64, requires_grad=True)
    dropped = ByteDropout(0.5)(units)
    dropped.sum().backward()
    torch.testing.assert_close(units.grad, (dropped != 0).double() * 2)
    assert 0 < int((dropped != 0).sum()) < dropped.numel()


def test_units_of_any_shape_and_precision_can_be_dropped():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for shape in [(0,), (1,), (7,), (8,), (9,), (3, 0), (3, 5, 2)]:
            dropped = ByteDropout(0.5)(torch.ones(shape, dtype=dtype))
            assert (dropped.shape, dropped.dtype) == (shape, dtype)
            assert set(dropped.flatten().tolist()) <= {0.0, 2.0}
