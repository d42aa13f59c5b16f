"""Which cells and channels of the match tensor carried a score (Match-Tensor paper, sections 3.2 and 3.3).

From the match tensor on, Match-Tensor has filters, ReLU, maxima and linear layers, so the score is piecewise linear in
the tensor. On the piece that a pair lies on, the score is a constant, which the biases make, plus the product of each
number of the tensor and the score's derivative by it. These products are the contributions; they leave nothing out.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Document, Side, TextExplanation, document_text, query_text
from pt_neural.explain.pictures import (
    LEFT_OUT,
    MATCH_COLOUR,
    HeatMap,
    Mark,
    draw_heat_map,
    shades,
    shortened,
    word_style,
)
from pt_neural.explain.words import WORD_COLUMNS, span_frame
from pt_neural.models.match_tensor.match_tensor import MatchTensorRanker
from pt_neural.models.match_tensor.network import HEIGHTS, WIDTH, MatchFilters, MatchTensorNetwork
from pt_neural.rankers.readers.embedded_words import EmbeddedGroups
from pt_neural.rankers.readers.reader import to_device
from pt_neural.text import Vocabulary, token_spans
from pt_neural.text.tokens import FIELD_END

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXACT = "exact"  # the channel of exact matches
OUTLINE = f"outline: 2px solid {MATCH_COLOUR}"  # like the cells of exact matches
BARS = 2.3  # inches for the channels
CONTEXT = 2  # words shown on either side of a strong one


def explain_match_tensor(model: MatchTensorRanker, query: str, text: Document) -> "MatchTensorExplanation":
    """Tell what each cell of the match tensor, a query word beside a document word, adds to the score.

    From the match tensor on, the network is piecewise linear, so the score s is a sum: with t(i, j, c) the number for
    query word i, document word j and channel c,

        s = sum over i, j and c of t(i, j, c) * ds/dt(i, j, c) + what biases add.

    A term of the sum is the contribution of a channel in a cell; the contributions of a cell, or of a channel, are
    added up. Where several places share a maximum, it is divided among them. :class:`~pt_neural.MatchTensorSSM` has
    one more addend: what the comparison of query and document as wholes adds, as in SSM.

    The contributions tell which numbers made the score what it is. They do not tell what it would be without a word,
    which changes the states of the words around it too; ``method="drop"`` does.

    Args:
        model: The model, fitted. Texts are read from the arguments, even if it has a forward index or representations.
        query: The query's text.
        text: The document's text, which is then the last field, or a dict of its fields.

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
        note=(
            "Blue: words whose cells of the match tensor raise the score; purple and underlined: words whose cells "
            "lower it; the stronger the colour, the more, within each text. Outlined: words of query and document."
        ),
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
        before: What stands before the text as the model reads it.
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
class MatchTensorExplanation(TextExplanation):
    """What each cell and each channel of the match tensor adds to the score.

    The score is the sum of all contributions, of ``wholes`` and of ``biases``.

    Attributes:
        query_words: One row per query word that the model reads: ``word``, ``start``, ``end``, ``match`` (whether the
            document has it) and ``boundary`` (false).
        document_words: One row per word or boundary of the document that the model reads, likewise; positions are
            characters of ``text``, where each field starts a new line.
        contributions: Of each channel in each cell, float64 of shape (query words, document words, channels), with the
            channel of exact matches last.
        match: Whether a cell is an exact match, bool of shape (query words, document words).
        wholes: What the comparison of query and document as wholes adds; None if the model has none.
        biases: What biases add.
    """

    query_words: pd.DataFrame
    document_words: pd.DataFrame
    contributions: np.ndarray
    match: np.ndarray
    wholes: float | None
    biases: float

    @property
    def cells(self) -> np.ndarray:
        """What all channels of each cell add, float64 of shape (query words, document words)."""
        return self.contributions.sum(axis=2)

    def to_frame(self) -> pd.DataFrame:
        """One row per cell that adds to the score or is an exact match, by query word and position.

        Returns:
            Frame with ``query_word``, ``document_word``, ``match`` (whether both are the same word), ``contribution``,
            ``query_position`` and ``position`` (in words and boundaries, from 0), ``start`` and ``end`` (of the
            document's word, in characters). Boundaries are named in brackets: ``[title]`` where that field begins, and
            ``[end]``.
        """
        cells = self.cells
        rows, columns = np.nonzero((cells != 0) | self.match)
        document = self.document_words.iloc[columns]
        return pd.DataFrame(
            {
                "query_word": self.query_words["word"].to_numpy()[rows],
                "document_word": document["word"].to_numpy(),
                "match": self.match[rows, columns],
                "contribution": cells[rows, columns],
                "query_position": rows,
                "position": columns,
                "start": document["start"].to_numpy(),
                "end": document["end"].to_numpy(),
            }
        )

    def channels(self) -> pd.DataFrame:
        """One row per channel, the strongest first.

        Returns:
            Frame with ``channel`` (its number, from 0, or ``"exact"`` for that of exact matches) and ``contribution``
            (of all cells together).
        """
        totals = self.contributions.sum(axis=(0, 1))
        names = pd.Series([*range(len(totals) - 1), EXACT], dtype=object)
        frame = pd.DataFrame({"channel": names, "contribution": totals})
        return frame.sort_values("contribution", key=np.abs, ascending=False, kind="stable", ignore_index=True)

    def by_word(self) -> pd.DataFrame:
        """What all cells of each word add to the score; cells of boundaries are left out."""
        sides = [self._words(side).assign(side=side) for side in ("query", "document")]
        both = pd.concat(sides, ignore_index=True)
        return both.loc[~both["boundary"], list(WORD_COLUMNS)].reset_index(drop=True)

    def _words(self, side: Side) -> pd.DataFrame:
        """The words and boundaries of a text with the contribution of all their cells."""
        words, axis = (self.query_words, 1) if side == "query" else (self.document_words, 0)
        return words.assign(contribution=self.cells.sum(axis=axis))

    def plot(self, ax: "Axes | None" = None, *, words: int = 25, channels: int = 8) -> "Axes":
        """Draw a heat map of query words by document words, and the strongest channels.

        Exact matches are outlined. A long document is reduced to the words with the strongest cells and those around
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
        names = ["exact matches" if channel == EXACT else f"channel {channel}" for channel in bars["channel"]]
        boundaries = self.document_words["boundary"].to_numpy(bool)
        shown = shown_columns(np.abs(self.cells).sum(axis=0), boundaries, checked_number("words", words, int, least=1))
        gaps = shown < 0
        document = self.document_words["word"]
        heat_map = HeatMap(
            rows=self.query_words["word"].to_list(),
            columns=[LEFT_OUT if place < 0 else document.iloc[place] for place in shown],
            cells=np.where(gaps, np.nan, self.cells[:, shown]),
            outlined=self.match[:, shown] & ~gaps,
            labels=(
                "words of the query",
                "words of the document" + (", where its cells are strongest" if gaps.any() else ""),
            ),
            legend="exact match",
            boundaries=boundaries[shown] & ~gaps,
        )
        title = f'"{shortened(self.query)}"\n{self.model}\n{self._sum()}'
        return draw_heat_map(
            ax, heat_map, bars.set_index(pd.Index(names)), title=title, width=BARS, nothing="no channel to show"
        )

    def _sum(self) -> str:
        """The score as a sum."""
        addends = {"match tensor": self.contributions.sum(), "as wholes (SSM)": self.wholes, "biases": self.biases}
        parts = [f"{value:.3f} ({name})" for name, value in addends.items() if value is not None]
        return f"score {self.score:.3f} = {' + '.join(parts)}".replace("+ -", "− ").replace("-", "−")

    def _marks(self, side: Side) -> list[Mark]:
        text, words = self._text_of(side), self._words(side)
        rows = zip(words.itertuples(index=False), shades(words["contribution"].to_numpy()), strict=True)
        return [
            Mark(
                word.start,
                word.end,
                word.word if word.boundary else text[word.start : word.end],
                word_style(word.match, shade, match_style=OUTLINE),
                f"contribution {word.contribution:.4f}",
            )
            for word, shade in rows
            if word.match or not np.isnan(shade)
        ]

    def _body_html(self) -> str:
        return f"<p>{self._sum()}</p>{super()._body_html()}"


def shown_columns(strengths: np.ndarray, boundary: np.ndarray, most: int) -> np.ndarray:
    """Choose what to show of a document: boundaries, and the strongest words with those around them.

    Args:
        strengths: Of each word and boundary.
        boundary: Whether it is a boundary.
        most: Number of words at most.

    Returns:
        Places in order, and -1 where something is left out between two.
    """
    words = np.flatnonzero(~boundary)
    shown: dict[int, None] = {}
    for rank in np.argsort(-strengths[words], kind="stable").tolist():
        around = words[max(0, rank - CONTEXT) : rank + CONTEXT + 1].tolist()
        shown.update(dict.fromkeys([int(words[rank]), *around]))
        if len(shown) >= most:
            break
    places = np.sort(np.array([*np.flatnonzero(boundary), *list(shown)[:most]], dtype=np.int64))
    return np.insert(places, np.flatnonzero(np.diff(places) > 1) + 1, -1)
