"""The encoders of words in context against loops over texts."""

import pytest
import torch
from torch import Tensor, nn

from pt_neural.models.text_encoders import (
    ConvolutionalEncoder,
    Encoded,
    RecurrentEncoder,
    TextEncoders,
    max_over_texts,
)
from pt_neural.rankers.embedded import EmbeddedTexts

INPUTS, UNITS = 5, 4
BATCHES = {"ragged": [3, 1, 6, 2], "with empty texts": [0, 4, 0, 0, 2, 4, 0], "one word": [1], "equal": [3, 3, 3]}
KINDS = [RecurrentEncoder, ConvolutionalEncoder]


@pytest.fixture(params=BATCHES)
def lengths(request) -> list[int]:
    return BATCHES[request.param]


def batch_of(lengths: list[int]) -> tuple[Tensor, Tensor]:
    torch.manual_seed(len(lengths))
    offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()])
    return torch.randn(sum(lengths), INPUTS, dtype=torch.float64, requires_grad=True), offsets


def made(kind: type[nn.Module], dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(7)
    return kind(INPUTS, UNITS, dropout).double()


def slow_recurrent(encoder: RecurrentEncoder, text: Tensor) -> tuple[Tensor, Tensor]:
    """An LSTM of PyTorch over one text: its states, and the last one of each direction."""
    if not len(text):
        return text.new_zeros(0, 2 * UNITS), text.new_zeros(2 * UNITS)
    plain = nn.LSTM(INPUTS, UNITS, bidirectional=True)
    states, _ = torch.func.functional_call(plain, dict(encoder.lstm.named_parameters()), text)
    return states, torch.cat([states[-1, :UNITS], states[0, UNITS:]])


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


SLOW = {RecurrentEncoder: slow_recurrent, ConvolutionalEncoder: slow_convolution}


def one_at_a_time(encoder: nn.Module, words: Tensor, offsets: Tensor) -> Encoded:
    texts = words.split(offsets.diff().tolist())
    states, whole = zip(*(SLOW[type(encoder)](encoder, text) for text in texts), strict=True)
    return Encoded(torch.cat(states), torch.stack(whole))


@pytest.mark.parametrize("kind", KINDS)
def test_each_text_is_read_as_if_it_were_alone(kind, lengths):
    encoder, (words, offsets) = made(kind), batch_of(lengths)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [0, 1, 3])
def test_texts_without_words(kind, texts):
    encoder = made(kind)
    states, whole = encoder(torch.zeros(0, INPUTS, dtype=torch.float64), torch.zeros(texts + 1, dtype=torch.int64))
    assert states.shape == (0, 2 * UNITS)
    assert whole.tolist() == [[0] * 2 * UNITS] * texts


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_in_training_only(kind):
    encoder, (words, offsets) = made(kind, dropout=0.5), batch_of([400, 100])
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
    assert max_over_texts(states[:0], torch.zeros(3, dtype=torch.int64)).tolist() == [[0, 0]] * 2


@pytest.mark.parametrize("encoder", ["lstm", "cnn"])
def test_one_projection_serves_both_sides(encoder):
    encoders = TextEncoders(6, INPUTS, 3, UNITS, encoder, 0.0).double().eval()
    vectors = torch.randn(4, 6, dtype=torch.float64)
    words, offsets = torch.tensor([2, 0, 2, 3, 1]), torch.tensor([0, 3, 3, 5])
    texts = EmbeddedTexts(vectors, words, offsets, torch.ones(3, dtype=torch.bool))
    projected = vectors @ encoders.projection.weight.T + encoders.projection.bias
    for side, units in (("query", 3), ("document", UNITS)):
        found, expected = encoders(side, texts), getattr(encoders, side)(projected[words], offsets)
        torch.testing.assert_close(found.states, expected.states)
        torch.testing.assert_close(found.whole, expected.whole)
        assert found.whole.shape == (3, 2 * units)


def test_each_distinct_word_is_projected_once():
    encoders = TextEncoders(6, INPUTS, 3, UNITS, "lstm", 0.0)
    rows = []
    encoders.projection.register_forward_hook(lambda _, inputs, output: rows.append(len(output)))
    words = torch.tensor([1, 0] * 50)
    encoders("query", EmbeddedTexts(torch.randn(2, 6), words, torch.tensor([0, 100]), torch.tensor([True])))
    assert rows == [2]
