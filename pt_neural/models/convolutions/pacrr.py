"""PACRR, a position-aware neural model for relevance matching (Hui, Yates, Berberich and de Melo, 2017)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.matching.layers import (
    Interaction,
    SimilarityNetwork,
    WordVectors,
    largest,
    masked_log_softmax,
)
from pt_neural.models.matching.ranker import FAST, TRAINED_VECTORS, TRAINING, Embeddings, MatchingRanker, for_few
from pt_neural.rankers.options import TrainedOptions
from pt_neural.rankers.readers.word_sequences import WordSequences, WordTexts

Selection = Literal["first-k", "k-window"]
Combination = Literal["lstm", "dense"]


class PACRR(MatchingRanker):
    """The strongest matches of each query word, alone and with the words around it, in the order of the query.

    Square filters of 2 x 2 up to ``max_ngram`` x ``max_ngram`` cells go over the matrix of cosines, with ReLU; each
    cell keeps the largest value of the filters of a size. For each query word and each size, and for the cosines
    themselves, the k largest values of the document are kept, in falling order. With the softmax of the query words'
    idf they are the input of an LSTM with a single unit that reads the query word by word; its last output is the
    score::

        C_ij^n = max_f relu(w_f^n . M_(i..i+n-1, j..j+n-1) + b_f^n)
        P_i = [kmax_j M_ij; kmax_j C_ij^2; ...; softmax(idf)_i]
        rel(q, d) = LSTM(P_1, ..., P_|q|)

    ``combination="dense"`` replaces the LSTM by two hidden layers over all query words, as in the authors' later
    Co-PACRR, OpenNIR and Capreolus. ``selection="first-k"`` reads the first words of a document. With ``"k-window"``,
    each size n has the windows of n words whose largest cosines have the highest mean, ``window_terms // n`` of them in
    the order of the text, and filters do not reach beyond a window.

    Training is the paper's: a softmax over a relevant document and one other, with Adam; idf is ln((N + 1) / df) in the
    forward index or the training candidates. Words without a vector have a cosine of 1 with themselves. The recipes
    for up to tens of thousands of queries train the word vectors, with a rate of 0.01 instead of 0.001 and a gamma of
    10 in the softmax, which did best of five settings on the dev queries of two collections.

    Args:
        spaces: The word embeddings; 300 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        embeddings: ``"frozen"``; or ``"trained"``, so that training starts from these vectors.
        max_ngram: Width of the largest filters, in words.
        filters: Filters of each size.
        top_k: How many values of each size are kept for a query word.
        selection: ``"first-k"`` or ``"k-window"``.
        window_terms: Words of a document that windows of one size have together; only for ``"k-window"``.
        combination: ``"lstm"`` or ``"dense"``.
        dense_units: Units of each hidden layer; only for ``"dense"``.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read; 800 in the authors' code, 200 here as for the other
            rankers over similarities.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        pacrr = pn.PACRR(pn.EmbeddingSpaces.train(docs.get_corpus_iter()), combination="dense")
        (candidates >> pacrr).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        pn.explain(pacrr, "pairwise distance", text).plot()
    """

    schematic = {"label": "PACRR", "help_url": None}
    artifact_format = "pacrr"
    own_training: ClassVar[dict[str, Any]] = {**TRAINING, "loss": "softmax", "num_negatives": 1}
    recipes: ClassVar[dict[str, dict[str, Any]]] = for_few(**FAST, **TRAINED_VECTORS)
    least: ClassVar[Mapping[str, int]] = {"max_ngram": 1, "filters": 1, "top_k": 1, "window_terms": 1, "dense_units": 1}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "selection": ("first-k", "k-window"),
        "combination": ("lstm", "dense"),
    }
    reads_idf: ClassVar[bool] = True

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        embeddings: Embeddings = "frozen",
        max_ngram: int = 3,
        filters: int = 32,
        top_k: int = 2,
        selection: Selection = "first-k",
        window_terms: int = 100,
        combination: Combination = "lstm",
        dense_units: int = 32,
        query_terms: int = 16,
        document_terms: int = 200,
        **options: Unpack[TrainedOptions],
    ):
        self.max_ngram, self.filters, self.top_k = max_ngram, filters, top_k
        self.selection, self.window_terms = selection, window_terms
        self.combination, self.dense_units = combination, dense_units
        sizes = {"query_terms": query_terms, "document_terms": document_terms}
        super().__init__(spaces, space=space, embeddings=embeddings, **sizes, **options)

    def make_network(self, reader: WordSequences) -> "PACRRNetwork":
        """A new network."""
        return PACRRNetwork(
            self.word_vectors(reader),
            self.max_ngram,
            self.filters,
            self.top_k,
            self.window_terms if self.selection == "k-window" else None,
            (self.query_terms, self.dense_units) if self.combination == "dense" else None,
        )


class PACRRNetwork(SimilarityNetwork):
    """Filters over cosines, the strongest values of each query word, and an LSTM or hidden layers over these.

    Args:
        vectors: The word vectors.
        max_ngram: Width of the largest filters.
        filters: Filters of each size.
        top_k: Values that are kept for a query word.
        window_terms: Words that windows of one size have together; None to read all words.
        dense: Most words of a query, and units of hidden layers; None for an LSTM.
    """

    def __init__(
        self,
        vectors: WordVectors,
        max_ngram: int,
        filters: int,
        top_k: int,
        window_terms: int | None,
        dense: tuple[int, int] | None,
    ):
        super().__init__(vectors)
        self.top_k, self.window_terms, self.dense = top_k, window_terms, dense
        self.piecewise_linear = dense is not None
        self.convolutions = nn.ModuleList(nn.Conv2d(1, filters, size) for size in range(2, max_ngram + 1))
        features = max_ngram * top_k + 1
        if dense is None:
            self.lstm = nn.LSTM(features, 1, batch_first=True)
        else:
            query_terms, hidden = dense
            self.first, self.second = nn.Linear(query_terms * features, hidden), nn.Linear(hidden, hidden)
            self.output = nn.Linear(hidden, 1)

    def query_features(self, queries: WordTexts, places: Tensor) -> Tensor:
        """The idf of query words."""
        return F.pad(queries.idf, (0, 1))[places][..., None]

    def score_cells(self, interaction: Interaction) -> Tensor:
        """Scores."""
        shares = masked_log_softmax(interaction.features.squeeze(-1), interaction.query_mask).exp()  # (groups, words)
        shares = shares[:, None, :, None].expand(*interaction.mask.shape[:3], 1)
        matches = [self.strongest(interaction, size) for size in range(1, len(self.convolutions) + 2)]
        words = torch.cat([*matches, shares.to(matches[0].dtype)], dim=-1)  # (groups, documents, query words, features)
        words = words * interaction.query_mask[:, None, :, None]
        if self.dense is not None:
            words = F.pad(words, (0, 0, 0, self.dense[0] - words.shape[2])).flatten(2)
            return self.output(torch.relu(self.second(torch.relu(self.first(words))))).squeeze(-1)
        with torch.autocast(words.device.type, enabled=False):  # which PyTorch's LSTM of a CPU lacks
            outputs = self.lstm(words.float().flatten(0, 1))[0].view(words.shape[:3])  # (groups, documents, words)
        last = (interaction.query_mask.sum(-1).clamp(min=1) - 1)[:, None, None].expand(-1, outputs.shape[1], 1)
        return outputs.gather(2, last).squeeze(-1)

    def strongest(self, interaction: Interaction, size: int) -> Tensor:
        """The largest values of filters of this size for each query word: (groups, documents, query words, k)."""
        cells, mask = interaction.cells * interaction.mask, interaction.mask
        if self.window_terms is not None:
            cells, mask = self.windows(cells, interaction, size)
        if size == 1:
            return largest(cells, mask, self.top_k)
        stride = 1 if self.window_terms is None else size
        after = size - 1 if self.window_terms is None else 0
        padded = F.pad(cells.flatten(0, 1), (0, after, 0, size - 1))[:, None]  # (pairs, 1, query words, words)
        convolution, mask = self.convolutions[size - 2], mask[..., ::stride].flatten(0, 1)
        with torch.no_grad():  # only the windows that are kept have a gradient
            images = padded.to(memory_format=torch.channels_last)
            values = F.conv2d(images, convolution.weight, convolution.bias, stride=(1, stride)).amax(1)
            values = values.masked_fill(~mask, -torch.inf)
            places = values.topk(min(self.top_k, values.shape[-1]), dim=-1).indices  # (pairs, query words, k)
        pairs, words = (torch.arange(count, device=places.device)[:, None] for count in places.shape[:2])
        windows = padded[:, 0].unfold(1, size, 1).unfold(2, size, stride)[pairs[:, None], words, places].flatten(-2)
        kept = torch.relu(F.linear(windows, convolution.weight.flatten(1), convolution.bias).amax(-1))
        kept = kept * mask.gather(-1, places)
        return F.pad(kept, (0, self.top_k - kept.shape[-1])).view(*cells.shape[:3], self.top_k)

    def windows(self, cells: Tensor, interaction: Interaction, size: int) -> tuple[Tensor, Tensor]:
        """The cells of the best windows of this size, side by side, and whether each belongs to a window."""
        cells = F.pad(cells, (0, size - 1))  # a document that is shorter than a window is one window
        seen = F.pad(interaction.mask, (0, size - 1))
        best = cells.masked_fill(~seen, -1.0).amax(2)  # (groups, documents, document words)
        best = best.masked_fill(~seen.any(2), 0.0)
        means = best.unfold(-1, size, 1).mean(-1)  # (groups, documents, windows)
        count = (interaction.lengths - size + 1).clamp(min=1)[..., None]  # windows that the document has
        steps = torch.arange(means.shape[-1], device=cells.device)
        means = means.masked_fill(steps >= count, -torch.inf)
        kept = min(max(1, self.window_terms // size), means.shape[-1])
        order = means.argsort(dim=-1, descending=True, stable=True)  # of equal windows, the first
        starts = order[..., :kept].sort(dim=-1).values  # (groups, documents, kept)
        places = (starts[..., None] + torch.arange(size, device=cells.device)).flatten(-2)
        places = places[:, :, None].expand(-1, -1, cells.shape[2], -1)
        is_window = (starts < count).repeat_interleave(size, dim=-1)[:, :, None] & interaction.mask[..., :1]
        return cells.gather(-1, places), is_window
