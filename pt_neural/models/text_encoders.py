"""Each word of a text in its context: bi-directional LSTMs, or convolutions in their place (Match-Tensor paper)."""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.models.byte_dropout import ByteDropout
from pt_neural.models.text_lstm import TextLSTM
from pt_neural.models.window_pooling import max_over_windows
from pt_neural.rankers.embedded import EmbeddedTexts

Encoder = Literal["lstm", "cnn"]
ENCODERS = ("lstm", "cnn")


class Encoded(NamedTuple):
    """Texts as an encoder reads them.

    Attributes:
        states: What each word has become, text after text, float32 of shape (words, 2 * units).
        whole: What each text has become, float32 of shape (texts, 2 * units); zero for empty texts.
    """

    states: Tensor
    whole: Tensor


class RecurrentEncoder(nn.Module):
    """A bi-directional LSTM; the last state of each direction stands for the text (sections 3.1 and 5.3).

    What a text becomes does not depend on the others of the batch.

    Args:
        inputs: Length of the words' vectors.
        units: Units of each direction.
        dropout: Share of inputs and outputs that is dropped in training; recurrent connections keep theirs.
    """

    def __init__(self, inputs: int, units: int, dropout: float):
        super().__init__()
        self.lstm = TextLSTM(inputs, units)
        self.dropout = ByteDropout(dropout)

    def forward(self, words: Tensor, offsets: Tensor) -> Encoded:
        """Read texts.

        Args:
            words: Vectors of the words, text after text, float32 of shape (words, inputs).
            offsets: Where each text starts, int64 of shape (texts + 1,).
        """
        states, whole = self.lstm(self.dropout(words), offsets)
        return Encoded(self.dropout(states), self.dropout(whole))


class ConvolutionalEncoder(nn.Module):
    """Convolutions over single words and over three words; the largest value of each unit stands for the text.

    "A mix of width 1 and width 3 convolutional filters" (section 5.6): half of the units each, tanh, as many as the
    LSTM has in both directions.

    Args:
        inputs: Length of the words' vectors.
        units: Units of each width.
        dropout: Share of inputs and outputs that is dropped in training.
    """

    def __init__(self, inputs: int, units: int, dropout: float):
        super().__init__()
        self.one = nn.Linear(inputs, units)
        self.three = nn.Linear(3 * inputs, units)
        self.dropout = ByteDropout(dropout)

    def forward(self, words: Tensor, offsets: Tensor) -> Encoded:
        """Read texts; arguments as for :meth:`RecurrentEncoder.forward`."""
        words = self.dropout(words)
        places = torch.arange(len(words), device=words.device)
        before, after = places - 1, places + 1
        filled = offsets.diff() > 0
        before[offsets[:-1][filled]] = len(words)
        after[offsets[1:][filled] - 1] = len(words)
        padded = F.pad(words, (0, 0, 0, 1))
        windows = torch.cat([padded[before], words, padded[after]], dim=1)
        states = torch.tanh(torch.cat([self.one(words), self.three(windows)], dim=1))
        states = self.dropout(states)
        return Encoded(states, max_over_texts(states, offsets))


def max_over_texts(states: Tensor, offsets: Tensor) -> Tensor:
    """The largest value of each unit over each text; zero for empty texts."""
    return max_over_windows(states, torch.arange(len(states), device=states.device), offsets, 1)


class TextEncoders(nn.Module):
    """What all models of the paper begin with: one projection of words, then an encoder for each side.

    Args:
        dim: Dimensions of the word embeddings.
        projection: Dimensions that they are projected to.
        query_units: Units of each direction of the query's encoder.
        document_units: Those of the documents'.
        encoder: Which encoder.
        dropout: Share of the encoders' inputs and outputs that is dropped in training.
    """

    def __init__(
        self, dim: int, projection: int, query_units: int, document_units: int, encoder: Encoder, dropout: float
    ):
        super().__init__()
        kind = RecurrentEncoder if encoder == "lstm" else ConvolutionalEncoder
        self.projection = nn.Linear(dim, projection)
        self.query = kind(projection, query_units, dropout)
        self.document = kind(projection, document_units, dropout)

    def forward(self, side: Literal["query", "document"], texts: EmbeddedTexts) -> Encoded:
        """Read the texts of one side; each distinct word is projected once."""
        words = F.embedding(texts.words, self.projection(texts.vectors))
        return getattr(self, side)(words, texts.offsets)
