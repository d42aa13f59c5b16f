"""Which cells and kernels made the score of a ranker that matches each query word with each document word."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from pt_neural._arguments import checked_number
from pt_neural.explain.cells import CellExplanation
from pt_neural.explain.explanation import Document, document_text, query_text
from pt_neural.explain.pictures import SHADES_NOTE
from pt_neural.explain.words import span_frame
from pt_neural.models.matching.layers import Interaction, MatchingNetwork
from pt_neural.models.matching.ranker import MatchingRanker
from pt_neural.rankers.readers.reader import to_device
from pt_neural.rankers.readers.word_sequences import WordGroups
from pt_neural.text import Vocabulary, token_spans

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 2.6  # inches for the kernels or words
CELLS_AT_ONCE = 2**20  # in copies of the interaction, each without one cell


def explain_interaction(model: MatchingRanker, query: str, text: Document) -> "InteractionExplanation":
    """Show what each cell of the interaction, a pair of a query word and a document word, adds to the score.

    Where the score is piecewise linear in the cells (MatchPyramid, ARCII, MVLSTM, POSITDRMM, and PACRR with
    ``combination="dense"``), the contribution of a cell is its value times the slope of the score, summed over the
    channels. On the linear piece that a pair lies on, the score is the sum of all contributions and of what biases add.
    If several places share a maximum, it is divided among them.

    For the others (KNRM, ConvKNRM, TK, DRMMTKS, ANMM, and PACRR with an LSTM), the contribution is what the score loses
    if these two words are not compared with each other. Contributions then do not add up to the score: two cells may
    replace each other. For models with kernels there are also the soft counts of each kernel, and what it adds to the
    score: these parts do add up.

    Args:
        model: The model, fitted. Texts are read from the arguments, even if it has a forward index or representations.
        query: The query's text.
        text: The document's text, or a dict of its fields.

    Returns:
        An explanation; its frame is empty if query or document has no words.

    Example::

        explanation = pn.explain(knrm, "pairwise distance", text)
        explanation.to_frame().nlargest(5, "contribution")
        explanation.kernels()
    """
    network = model._fitted()
    query, text = query_text(query), document_text(model, text)
    with torch.no_grad():
        interaction = network.interaction(read_pair(model, query, text))
        score = float(network.score_cells(interaction))
    query_words = _words(query, model.query_terms)
    document_words = _words(text, model.document_terms)
    cells = slopes(network, interaction) if network.piecewise_linear else losses(network, interaction, score)
    cells = cells[: len(query_words), : len(document_words)]
    match = query_words["word"].to_numpy()[:, None] == document_words["word"].to_numpy()
    return InteractionExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=score,
        note=f"What the cells of a word add to the score. {SHADES_NOTE}",
        query_words=query_words.assign(match=match.any(axis=1)),
        document_words=document_words.assign(match=match.any(axis=0)),
        match=match,
        contributions=cells,
        biases=score - float(cells.sum()) if network.piecewise_linear else None,
        kernel_parts=_kernels(network, interaction) if hasattr(network, "kernel_contributions") else None,
    )


def read_pair(model: MatchingRanker, query: str, text: str) -> WordGroups:
    """One query and one document as the network of a model reads them, on its device."""
    sequences, terms = model._pack([text])
    groups = model.reader.pair([query], sequences, Vocabulary(terms)).batch(np.array([0]), np.array([[0]]))
    return to_device(groups, next(model._fitted().parameters()).device)


def _words(text: str, most: int) -> pd.DataFrame:
    return span_frame(token_spans(text)[:most]).assign(boundary=False)


def slopes(network: MatchingNetwork, interaction: Interaction) -> np.ndarray:
    """Each cell times the slope of the score of one pair, summed over channels: float64, (query words, words)."""
    cells = interaction.cells.detach().requires_grad_()
    with torch.enable_grad():
        score = network.score_cells(interaction._replace(cells=cells))
        (slope,) = torch.autograd.grad(score.sum(), cells)
    products = (slope * cells).detach()[0, 0].double().cpu().numpy()
    return products.sum(axis=0) if products.ndim == 3 else products


@torch.no_grad()
def losses(network: MatchingNetwork, interaction: Interaction, score: float) -> np.ndarray:
    """What the score of one pair loses without each cell: float64, (query words, document words)."""
    mask = interaction.mask[0, 0]
    places = mask.flatten().nonzero().squeeze(1)
    found = np.zeros(mask.numel())
    for some in places.split(max(1, CELLS_AT_ONCE // interaction.cells[0, 0].numel())) if len(places) else ():
        masks = mask.flatten().repeat(len(some), 1)
        masks[torch.arange(len(some)), some] = False
        copies = interaction._replace(
            cells=interaction.cells.expand(-1, len(some), *interaction.cells.shape[2:]),
            mask=masks.view(1, len(some), *mask.shape),
            lengths=interaction.lengths.expand(-1, len(some)),
        )
        found[some.cpu().numpy()] = score - network.score_cells(copies)[0].double().cpu().numpy()
    return found.reshape(mask.shape)


@torch.no_grad()
def _kernels(network: MatchingNetwork, interaction: Interaction) -> pd.DataFrame:
    """The frame of :meth:`InteractionExplanation.kernels`."""
    pooling, parts = network.pooling, network.parts
    mask = interaction.mask if interaction.cells.dim() == 4 else interaction.mask[:, :, None]
    counts = pooling(interaction.cells, mask)[0, 0].sum(-2).view(-1, len(pooling)).cpu().numpy()
    frame = pd.DataFrame(
        {
            "part": np.repeat(np.array(parts, dtype=object), len(pooling)),
            "mean": pooling.means * len(parts),
            "width": pooling.widths * len(parts),
            "count": np.broadcast_to(counts, (len(parts), len(pooling))).ravel().astype(np.float64),
            "contribution": network.kernel_contributions(interaction)[0, 0].flatten().double().cpu().numpy(),
        }
    )
    return frame.sort_values("contribution", key=np.abs, ascending=False, kind="stable", ignore_index=True)


@dataclass(frozen=True, repr=False)
class InteractionExplanation(CellExplanation):
    """What each pair of a query word and a document word adds to the score, or what the score loses without it.

    Attributes:
        contributions: The contribution of each cell, float64 of shape (query words, document words).
        biases: What biases add, if the score is the sum of the contributions and of these; None if it is not.
        kernel_parts: One row per kernel, see :meth:`kernels`; None if the model has no kernels.
    """

    contributions: np.ndarray
    biases: float | None
    kernel_parts: pd.DataFrame | None

    @property
    def cells(self) -> np.ndarray:
        """What each cell adds, float64 of shape (query words, document words)."""
        return self.contributions

    def kernels(self) -> pd.DataFrame:
        """One row per kernel, the strongest first.

        Returns:
            Frame with ``part`` (empty for KNRM; ``"1-1"`` to ``"3-3"``, words of the query's and of the document's
            n-grams, for ConvKNRM; ``"logarithm"`` and ``"length"`` for TK), ``mean``, ``width``, ``count`` (soft
            matches of all query words together) and ``contribution`` (all of them and the bias add up to the score).

        Raises:
            ValueError: If the model has no kernels.
        """
        if self.kernel_parts is None:
            raise ValueError(f"{self.model} has no kernels; KNRM, ConvKNRM and TK have")
        return self.kernel_parts.copy()

    def plot(self, ax: "Axes | None" = None, *, words: int = 25, bars: int = 8) -> "Axes":
        """Draw a heat map of query words by document words, and the strongest kernels or words beside it.

        Words of both texts are bold. A long document is reduced to the words with the strongest cells and those around
        them, with gaps between.

        Args:
            ax: Axes to draw the heat map on, without the bars; None for a new figure with both.
            words: Number of document words to show.
            bars: Number of kernels to show; of document words, where the model has no kernels.

        Returns:
            The axes of the heat map; those of the bars are the next ones of its figure.

        Raises:
            ValueError: If ``words`` or ``bars`` is below 1.
        """
        found, count = self._bars(), checked_number("bars", bars, int, least=1)
        found = found[found["contribution"] != 0].head(count)
        return self._draw(ax, found, words, width=BARS, nothing="nothing to show")

    def _bars(self) -> pd.DataFrame:
        if self.kernel_parts is None:
            totals = self._words("document").groupby("word")[["contribution"]].sum()
            return totals.sort_values("contribution", key=np.abs, ascending=False, kind="stable")
        kernels = self.kernel_parts
        names = [f"{part} near {mean:g}".strip() for part, mean in zip(kernels["part"], kernels["mean"], strict=True)]
        return kernels.set_index(pd.Index(names))

    def _sum(self) -> str:
        """The score, as a sum if it is one."""
        if self.biases is None:
            return f"score {self.score:.3f}".replace("-", "−")
        addends = {"cells": self.cells.sum(), "biases": self.biases}
        return f"score {self._sum_of(addends)}"
