"""Which cells and channels of the match tensor made a score (Match-Tensor paper, sections 3.2 and 3.3).

After the match tensor, Match-Tensor has filters, ReLU, maxima and linear layers, so the score is piecewise linear in
the tensor. On the linear piece that a pair lies on, the score is a constant, which comes from the biases, plus the sum
of each number of the tensor times the score's derivative with respect to it. These products are the contributions, and
together they are complete.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from pt_neural._arguments import checked_number
from pt_neural.explain.cells import CellExplanation
from pt_neural.explain.explanation import Document, document_text, query_text
from pt_neural.explain.pictures import CELL_WORD_LENGTH, SHADES_NOTE, shortened
from pt_neural.explain.words import span_frame
from pt_neural.models.match_tensor.match_tensor import MatchTensorRanker
from pt_neural.models.match_tensor.network import HEIGHTS, WIDTH, MatchFilters, MatchTensorNetwork
from pt_neural.rankers.readers.embedded_words import EmbeddedGroups
from pt_neural.rankers.readers.reader import to_device
from pt_neural.text import Vocabulary, token_spans
from pt_neural.text.tokens import FIELD_END

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXACT = "exact"  # the channel of exact matches
BARS = 4.0  # inches for the channels and the pairs that they react to
PAIRS = 2  # shown of each channel


def explain_match_tensor(model: MatchTensorRanker, query: str, text: Document) -> "MatchTensorExplanation":
    """Show what each cell of the match tensor, a pair of a query word and a document word, adds to the score.

    After the match tensor, the network is piecewise linear, so the score s is a sum: with t(i, j, c) the number for
    query word i, document word j and channel c,

        s = sum over i, j and c of t(i, j, c) * ds/dt(i, j, c) + what biases add.

    Each term of the sum is the contribution of a channel in a cell; the contributions of a cell, or of a channel, are
    added up. If several places share a maximum, it is divided among them. :class:`~pt_neural.MatchTensorSSM` has one
    more addend: the comparison of query and document as wholes, as in SSM.

    The contributions show which numbers made the score what it is. They do not show what the score would be without a
    word, which would also change the states of the words around it; use ``method="drop"`` for that.

    Args:
        model: The model, fitted. Texts are read from the arguments, even if it has a forward index or representations.
        query: The query's text.
        text: A dict of the document's fields, or a text, which is taken as the last field.

    Returns:
        An explanation; its frame is empty if query or document has no words.

    Example::

        explanation = pn.explain(match_tensor, "pairwise distance", {"title": title, "text": text})
        explanation.to_frame().nlargest(5, "contribution")
        explanation.plot()
    """
    network = model._fitted()
    query, text = query_text(query), document_text(model, text, keep_ends=True)
    before = "" if FIELD_END in text or not model.boundaries else FIELD_END * (len(model.fields) - 1)
    sequences, terms = model._pack([before + text])
    pairs = model.reader.pair([query], sequences, Vocabulary(terms))
    inputs = to_device(pairs.batch(np.array([0]), np.array([[0]])), next(network.parameters()).device)
    found = contributions(network, inputs)
    query_words = span_frame(token_spans(query)[: found.cells.shape[0]]).assign(boundary=False)
    document_words = _document_words(model, before, text, pairs.documents.sequences[0] - len(terms))
    exact = query_words["word"].to_numpy()[:, None] == document_words["word"].to_numpy()
    return MatchTensorExplanation(
        model=repr(model),
        query=query,
        text=text.replace(FIELD_END, "\n"),
        score=found.cells.sum() + found.wholes + found.biases,
        note=f"What the cells of a word in the match tensor add to the score. {SHADES_NOTE}",
        query_words=query_words.assign(match=exact.any(axis=1)),
        document_words=document_words.assign(match=exact.any(axis=0)),
        contributions=found.cells,
        match=exact,
        wholes=found.wholes if model.compares_wholes else None,
        biases=found.biases,
    )


def _document_words(model: MatchTensorRanker, before: str, text: str, numbers: np.ndarray) -> pd.DataFrame:
    """The words and boundaries that the model reads, in order.

    Args:
        model: The model.
        before: Marks of the ends of empty fields before the text.
        text: The text.
        numbers: Negative for words; 0 for the boundary after the last field, then one number for each field's start.
    """
    words = iter(token_spans(text))
    ends = [place for place, character in enumerate(before + text) if character == FIELD_END]
    starts = np.clip(np.array([len(before + text), 0, *(end + 1 for end in ends)]) - len(before), 0, None)
    names = ["[end]", *(f"[{field}]" for field in model.fields)]
    spans = [
        next(words) if number < 0 else (names[number], int(starts[number]), int(starts[number])) for number in numbers
    ]
    return span_frame(spans).assign(boundary=numbers >= 0)


class Pair(NamedTuple):
    """What the network compares of one query and one document.

    Attributes:
        tensor: The match tensor, with the channel of exact matches last: float32 of shape (query words, document words,
            channels + 1).
        wholes: Products of query and document as wholes, float32 of shape (hidden,); None if they are not compared.
    """

    tensor: Tensor
    wholes: Tensor | None


class Contributions(NamedTuple):
    """The addends of a score.

    Attributes:
        cells: What each number of the match tensor adds, float64 of shape (query words, document words, channels + 1).
        wholes: What the comparison of query and document as wholes adds.
        biases: What biases add.
    """

    cells: np.ndarray
    wholes: float
    biases: float


def contributions(network: MatchTensorNetwork, inputs: EmbeddedGroups) -> Contributions:
    """Take the score of one query and one document apart."""
    pair = read_pair(network, inputs)
    tensor = pair.tensor.requires_grad_()
    with torch.enable_grad():
        score = pair_score(network, Pair(tensor, pair.wholes))
        (slopes,) = torch.autograd.grad(score, tensor, materialize_grads=True)
    cells = (slopes * tensor).detach().cpu().numpy().astype(np.float64)
    wholes = 0.0
    if network.compares_wholes:
        wholes = float(network.output.weight[0, -network.sizes.hidden :].detach() @ pair.wholes)
    return Contributions(cells, wholes, score.item() - cells.sum() - wholes)


@torch.no_grad()
def read_pair(network: MatchTensorNetwork, inputs: EmbeddedGroups) -> Pair:
    """Make the match tensor of one query and one document."""
    queries = network.read_queries(inputs.queries)
    rows, _ = network.read_documents(inputs.documents)
    query = queries.words[0, : int(queries.lengths[0])]  # (query words, channels)
    num_words = len(inputs.documents.words)
    products = query[:, None] * rows[:num_words, : network.filters.channels]
    exact = torch.zeros(len(query), num_words, device=rows.device)  # (query words, document words)
    exact[torch.repeat_interleave(inputs.matches.offsets.diff()), inputs.matches.positions] = 1
    tensor = torch.cat([products, network.filters.alpha * exact[..., None]], dim=2)
    if not network.compares_wholes:
        return Pair(tensor, None)
    return Pair(tensor, queries.whole[0] * rows[num_words:].flatten()[: network.sizes.hidden])


def pair_score(network: MatchTensorNetwork, pair: Pair) -> Tensor:
    """The score of a pair before its sigmoid, from its match tensor on, with gradients."""
    per_word = network.sizes.pooling == "per-word"
    pooled = pair.tensor.new_zeros(len(pair.tensor) if per_word else 1, network.sizes.second_filters)
    if pair.tensor.shape[0] and pair.tensor.shape[1]:
        pooled = _filtered(network.filters, pair.tensor).amax(dim=1)  # (query words, second filters)
        pooled = pooled if per_word else pooled.amax(dim=0, keepdim=True)
    return network.score(pooled, pair.wholes)


def _filtered(filters: MatchFilters, tensor: Tensor) -> Tensor:
    """Both layers of filters over a match tensor: (query words, document words, second filters)."""
    channels_first = tensor.movedim(2, 0)
    first = []
    for height, weights in zip(HEIGHTS, filters.first, strict=True):
        before, beside = (height - 1) // 2, WIDTH // 2
        padded = F.pad(channels_first, (before, height - 1 - before, beside, beside))
        first.append(F.conv2d(padded[None], weights.movedim(3, 1))[0])  # (filters, query words, document words)
    return filters.second(torch.relu(torch.cat(first).movedim(0, 2) + filters.first_bias))


@dataclass(frozen=True, repr=False)
class MatchTensorExplanation(CellExplanation):
    """What each cell and each channel of the match tensor adds to the score.

    The score is the sum of all contributions, of ``wholes`` and of ``biases``. Boundaries are named in brackets:
    ``[title]`` where the title begins, and ``[end]``.

    Attributes:
        contributions: The contribution of each channel in each cell, float64 of shape (query words, document words,
            channels), with the channel of exact matches last.
        wholes: What the comparison of query and document as wholes adds; None if the model has none.
        biases: What biases add.
    """

    contributions: np.ndarray
    wholes: float | None
    biases: float

    @property
    def cells(self) -> np.ndarray:
        """What all channels of each cell add, float64 of shape (query words, document words)."""
        return self.contributions.sum(axis=2)

    def channels(self) -> pd.DataFrame:
        """One row per channel, the strongest first.

        Returns:
            Frame with ``channel`` (its number, from 0, or ``"exact"`` for exact matches), ``contribution`` (of all
            cells together) and ``pairs`` (the pairs of words that it reacts to most, by absolute contribution).
        """
        totals = self.contributions.sum(axis=(0, 1))
        names = pd.Series([*range(len(totals) - 1), EXACT], dtype=object)
        pairs = [self._strongest_pairs(channel) for channel in range(len(totals))]
        frame = pd.DataFrame({"channel": names, "contribution": totals, "pairs": pd.Series(pairs, dtype=object)})
        return frame.sort_values("contribution", key=np.abs, ascending=False, kind="stable", ignore_index=True)

    def _strongest_pairs(self, channel: int) -> str:
        """The pairs of a query word and a document word that a channel reacts to most."""
        cells = self.contributions[:, :, channel]
        order = np.argsort(-np.abs(cells), axis=None, kind="stable")
        places = np.column_stack(np.unravel_index(order, cells.shape))
        places = places[cells[places[:, 0], places[:, 1]] != 0]
        query, document = self.query_words["word"].to_numpy(), self.document_words["word"].to_numpy()
        pairs = dict.fromkeys((query[row], document[column]) for row, column in places[: 10 * PAIRS])
        return ", ".join("–".join(shortened(word, CELL_WORD_LENGTH) for word in pair) for pair in [*pairs][:PAIRS])

    def plot(self, ax: "Axes | None" = None, *, words: int = 25, channels: int = 8) -> "Axes":
        """Draw a heat map of query words by document words, and the strongest channels.

        Words of both texts are bold. A long document is reduced to the words with the strongest cells and those around
        them, with gaps between.

        Args:
            ax: Axes to draw the heat map on, without the channels; None for a new figure with both.
            words: Number of document words to show, besides the boundaries of fields.
            channels: Number of channels to show.

        Returns:
            The axes of the heat map; those of the channels are the next ones of its figure.

        Raises:
            ValueError: If ``words`` or ``channels`` is below 1.
        """
        bars = self.channels().query("contribution != 0").head(checked_number("channels", channels, int, least=1))
        named = zip(bars["channel"], bars["pairs"], strict=True)
        names = ["exact matches" if channel == EXACT else f"{channel}: {pairs}" for channel, pairs in named]
        bars = bars.set_index(pd.Index(names))
        return self._draw(ax, bars, words, width=BARS, nothing="no channel to show")

    def _sum(self) -> str:
        """The score as a sum."""
        addends = {"match tensor": self.contributions.sum(), "as wholes (SSM)": self.wholes, "biases": self.biases}
        return f"score {self._sum_of(addends)}"
