"""The layers of DSSM and CLSM: two towers with a cosine, and max pooling over windows of words."""

from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.rankers.readers.hashed_ngrams import HashedGroups, HashedTexts

TEXTS_PER_STEP = 256  # few enough to stay in the processor's cache


class CosineTowers(nn.Module):
    """Scores documents by the cosine of query and document vectors (CLSM paper, equation 4).

    Args:
        tower: Network for queries; its method ``project`` gives what each distinct word contributes, and ``read`` the
            vectors of texts from that.
        shared: Whether documents have the same network; otherwise they have one that starts as a copy.
    """

    def __init__(self, tower: nn.Module, *, shared: bool):
        super().__init__()
        self.query = tower
        if not shared:
            # Two networks that start alike match equal words from the first step on, which few examples do not teach.
            self.document = deepcopy(tower)

    def tower(self, side: str) -> nn.Module:
        """The network of ``"query"`` or ``"document"``."""
        return getattr(self, side, self.query)

    def vectors(self, side: str, texts: HashedTexts) -> Tensor:
        """Unit vectors of shape (texts, dimensions); zero for texts without any known n-gram."""
        return unit_vectors(self.tower(side)(texts), texts.known)

    def encode(self, side: str, texts: HashedTexts) -> Tensor:
        """The same vectors, with each distinct word projected once, then a few texts read at a time.

        The bits of a product of matrices depend on the number of rows, so there are always as many: the last texts are
        followed by empty ones. A vector then does not depend on the other texts.
        """
        tower, number = self.tower(side), len(texts.known)
        projections = tower.project(texts)
        offsets = F.pad(texts.offsets, (0, -number % TEXTS_PER_STEP), value=len(texts.words))
        blocks = []
        for start in range(0, max(number, 1), TEXTS_PER_STEP):
            some = offsets[start : start + TEXTS_PER_STEP + 1]
            blocks.append(tower.read(projections, texts.words[some[0] : some[-1]], some - some[0]))
        return unit_vectors(torch.cat(blocks)[:number], texts.known)

    def forward(self, inputs: HashedGroups) -> Tensor:
        """Scores of shape (groups, documents a group)."""
        queries = self.vectors("query", inputs.queries)  # (queries, dimensions)
        documents = self.vectors("document", inputs.documents)  # (documents, dimensions)
        return (queries @ documents.T)[inputs.query_rows].gather(1, inputs.document_rows)


def unit_vectors(vectors: Tensor, known: Tensor) -> Tensor:
    """Vectors divided by their lengths, zero where ``known`` is false: (texts, dimensions).

    In float32 at least: float16 has no number small enough to keep a length of zero from dividing zero.
    """
    vectors = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    return F.normalize(vectors * known[:, None], dim=1)


def max_over_windows(projections: Tensor, words: Tensor, offsets: Tensor, window: int) -> Tensor:
    """``max over t of sum over i of projections[word t + i, block i]`` for each text (CLSM paper, equations 1 and 2).

    Args:
        projections: Shape (distinct words * window, units): row ``word * window + i`` is what the word adds to a unit
            where it stands at place ``i`` of a window. The last word is the padding.
        words: The texts, one after the other, int64.
        offsets: Where each text starts, int64 of shape (texts + 1,).
        window: Words a window, an odd number.

    Returns:
        Shape (texts, units); zero for empty texts.
    """
    rows = window_rows(words, offsets, window, projections.shape[0] // window - 1)
    return _MaxOverWindows.apply(projections, rows, offsets)


def window_rows(words: Tensor, offsets: Tensor, window: int, padding: int) -> Tensor:
    """Rows of ``projections`` that each window sums, int64 of shape (words, window)."""
    device, half = words.device, window // 2
    lengths = offsets.diff()
    shift = half * torch.arange(1, len(lengths) + 1, device=device)  # the padding up to a text; neighbours share it
    places = torch.arange(len(words), device=device) + torch.repeat_interleave(shift, lengths)
    padded = torch.full((len(words) + half * (len(lengths) + 1),), padding, dtype=torch.int64, device=device)
    padded[places] = words
    steps = torch.arange(window, device=device)
    return padded[places[:, None] + steps - half] * window + steps


class _MaxOverWindows(torch.autograd.Function):
    """Takes one window of every text at a time, so that arrays stay in the processor's cache."""

    @staticmethod
    def forward(ctx, projections: Tensor, rows: Tensor, offsets: Tensor) -> Tensor:
        best, winners = pool(projections, rows, offsets, winners=ctx.needs_input_grad[0])
        if winners is not None:
            ctx.save_for_backward(rows, winners, offsets)
            ctx.shape = projections.shape
        return best

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        rows, winners, offsets = ctx.saved_tensors
        filled = offsets.diff() > 0
        winners, gradient = winners[filled], gradient[filled].contiguous()
        result = gradient.new_zeros(ctx.shape)
        units = torch.arange(ctx.shape[1], device=gradient.device)
        for block in range(rows.shape[1]):
            places = rows[:, block][winners] * ctx.shape[1] + units
            result.view(-1).index_add_(0, places.view(-1), gradient.view(-1))
        return result, None, None


def pool(projections: Tensor, rows: Tensor, offsets: Tensor, *, winners: bool) -> tuple[Tensor, Tensor | None]:
    """The largest value of each unit over the windows of each text, 0 for empty texts, and the window that has it."""
    lengths = offsets.diff()
    order = torch.argsort(lengths, descending=True, stable=True)
    starts, sorted_lengths = offsets[:-1][order], lengths[order].cpu().numpy()
    longest = int(sorted_lengths[0]) if len(sorted_lengths) else 0
    active = np.searchsorted(-sorted_lengths, -np.arange(longest), side="left")
    best = projections.new_zeros(len(lengths), projections.shape[1])
    small = torch.int16 if longest < 2**15 else torch.int32  # a quarter of the memory to pass over in each step
    won = torch.zeros_like(best, dtype=small) if winners else None
    for step, count in enumerate(active.tolist()):
        windows = starts[:count] + step
        values = F.embedding_bag(rows[windows], projections, mode="sum")
        if step == 0:
            best[:count] = values
        elif winners:
            better = values > best[:count]
            won[:count].masked_fill_(better, step)
            torch.maximum(best[:count], values, out=best[:count])
        else:
            torch.maximum(best[:count], values, out=best[:count])
    back = torch.argsort(order)
    if winners:
        won = (won + starts[:, None])[back]
    return best[back], won
