"""An LSTM over texts of different lengths against PyTorch's over one text at a time."""

import pytest
import torch
from torch import Tensor

from pt_neural.models import text_lstm
from pt_neural.models.text_lstm import TextLSTM

INPUTS, UNITS = 5, 4
LENGTHS = [3, 0, 7, 1, 7, 2, 0, 5, 5, 1, 4]


@pytest.fixture
def lstm() -> TextLSTM:
    torch.manual_seed(7)
    return TextLSTM(INPUTS, UNITS).double()


@pytest.fixture
def texts() -> tuple[Tensor, Tensor]:
    torch.manual_seed(11)
    offsets = torch.tensor([0, *LENGTHS]).cumsum(0)
    return torch.randn(sum(LENGTHS), INPUTS, dtype=torch.float64, requires_grad=True), offsets


def expected(lstm: TextLSTM, words: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    alone = torch.nn.LSTM(INPUTS, UNITS, bidirectional=True).double()
    alone.load_state_dict(lstm.state_dict())
    states, last = [], []
    for text in words.split(offsets.diff().tolist()):
        if len(text):
            output, (ends, _) = alone(text)
        else:
            output, ends = words.new_zeros(0, 2 * UNITS), words.new_zeros(2, UNITS)
        states.append(output)
        last.append(ends.flatten())
    return torch.cat(states), torch.stack(last)


@pytest.mark.parametrize("at_once", [1, 2, 4, 100])
def test_however_many_texts_are_read_at_once(lstm, texts, monkeypatch, at_once):
    monkeypatch.setattr(text_lstm, "TEXTS_AT_ONCE", at_once)
    monkeypatch.setattr(text_lstm, "WORDS_AT_ONCE", 1)
    for ours, theirs in zip(lstm(*texts), expected(lstm, *texts), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_as_a_gpu_reads_them(lstm, texts):
    words, offsets = texts
    lengths = offsets.diff()
    order = torch.argsort(lengths, descending=True)[: int((lengths > 0).sum())]
    torch.testing.assert_close(lstm._packed(words, offsets, order), expected(lstm, *texts)[0])


def test_a_word_has_no_gradient_from_another_text(lstm, texts):
    words, offsets = texts
    states, _ = lstm(words, offsets)
    text = slice(int(offsets[2]), int(offsets[3]))
    (gradient,) = torch.autograd.grad(states[text].sum(), words)
    there = torch.zeros(len(words), dtype=torch.bool)
    there[text] = True
    assert (gradient[there] != 0).all()
    assert (gradient[~there] == 0).all()
