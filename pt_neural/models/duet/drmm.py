"""The Deep Relevance Matching Model (Guo, Fan, Ai and Croft, 2016): the ranker and its network."""

import math
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
import pyterrier as pt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.rankers.interaction import InteractionRanker, KeptReader
from pt_neural.rankers.options import TrainedOptions
from pt_neural.rankers.readers.histograms import HistogramInputs, HistogramPairs, Histograms
from pt_neural.rankers.readers.reader import to_device

Gating = Literal["idf", "vector"]
Histogram = Literal["log-count", "count", "normalised"]
INITIAL_IDF_WEIGHT = 1.0


class DRMM(InteractionRanker):
    """Histograms of cosine similarities for each term of the query, a small network, and a gate for each term.

    For each query term, the terms of the document are counted by their cosine similarity to it, in bins of equal
    width; the same term has a bin of its own ("matching histogram mapping" in the paper). The logarithm of the counts
    goes through one network that all terms share, with one hidden layer and tanh ("feed forward matching network"). The
    score is the sum of its outputs, each weighted by the term's gate, a softmax over the terms of the query ("term
    gating network"). Where a term occurs in the document makes no difference.

    Each term's output lies between -1 and 1, and so does their weighted sum f, on which the model is trained. The score
    is atanh(f), computed so that it ranks as f does, without ties where tanh is flat.

    With ``gating="idf"`` the gate is softmax(w idf), idf = ln((N + 1) / df), where N is the number of documents in the
    forward index or, without one, among the training candidates; a term that none of them contains gets the idf of a
    term that occurs in a single document. With ``"vector"`` it is softmax(w . x) of the term's vector x. Words without
    a vector have a similarity of 0 to all words but themselves, and a vector of zeros for the gate. Cosines are of unit
    vectors rounded to 11 bits, see :class:`~pt_neural.rankers.readers.histograms.UnitVectors`.

    Training is as in the paper and its authors' code: the margin loss between a relevant document and each of four
    others, with a margin of 0.1. The paper says 1, but two scores between -1 and 1 are hardly ever that far apart, so
    every pair would keep pulling with the same force. Negatives are retrieved documents that were not judged relevant,
    for collections with few judgements.

    Args:
        spaces: The word embeddings.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        gating: What decides the weight of a query term: ``"idf"`` or ``"vector"``.
        bins: Bins of a histogram, including the one of exact matches; from 2 to 256.
        hidden: Units of the hidden layer.
        query_terms: Number of terms of a query that are read; None for all.
        document_terms: Number of terms of a document that are read; None for all.
        histogram: ``"log-count"``, log10(1 + count); ``"count"``; or ``"normalised"``, the share of each bin (LCH, CH
            and NH in the paper).
        device: Where to score: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``. Histograms are made on the CPU.
        batch_size: Pairs scored at a time, at most.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a setting is out of range, or not one of those named.

    Example::

        spaces = pn.EmbeddingSpaces.train(docs.get_corpus_iter())
        drmm = pn.DRMM(spaces, training=pn.Training(negatives="retrieved", num_negatives=4))
        (candidates >> drmm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
    """

    schematic = {"label": "DRMM", "help_url": None}
    artifact_format = "drmm"
    components: ClassVar[dict[str, Any]] = {"spaces": EmbeddingSpaces.load}
    own_training: ClassVar[dict[str, Any]] = {
        "loss": "margin",
        "margin": 0.1,
        "gamma": 20.0,
        "negatives": "retrieved",
        "batch_size": 64,
        "learning_rate": 5e-3,
    }
    recipes: ClassVar[dict[str, dict[str, Any]]] = {
        "few": {"epochs": 40, "patience": 5},
        "some": {"max_groups": 8_000, "epochs": 40, "patience": 5},
        "many": {"max_groups": 100_000, "epochs": 40, "patience": 5},
    }

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        gating: Gating = "idf",
        bins: int = 30,
        hidden: int = 5,
        query_terms: int | None = 20,
        document_terms: int | None = None,
        histogram: Histogram = "log-count",
        **options: Unpack[TrainedOptions],
    ):
        if not isinstance(spaces, EmbeddingSpaces):
            raise TypeError(f"spaces must be pn.EmbeddingSpaces, not {spaces!r:.80}")
        self._spaces = spaces
        self.space = space
        self.gating = gating
        self.bins = bins
        self.hidden = hidden
        self.query_terms = query_terms
        self.document_terms = document_terms
        self.histogram = histogram
        self._check_settings()
        super().__init__(**options)

    @property
    def spaces(self) -> EmbeddingSpaces:
        """The word embeddings, which are part of the model: they cannot be set."""
        return self._spaces

    def _check_settings(self) -> None:
        """Raise an error if a setting is invalid, whether given to the constructor or set later."""
        checked_choice("space", self.space, ("in", "out"))
        checked_choice("gating", self.gating, ("idf", "vector"))
        checked_choice("histogram", self.histogram, ("log-count", "count", "normalised"))
        checked_number("bins", self.bins, int, least=2, most=256)
        checked_number("hidden", self.hidden, int, least=1)
        for name in ("query_terms", "document_terms"):
            checked_number(name, getattr(self, name), int, least=1, optional=True)

    def make_reader(self) -> Histograms:
        """A reader of histograms and of the gates' inputs."""
        self._check_settings()
        return Histograms(
            self.spaces,
            self.space,
            bins=self.bins,
            query_terms=self.query_terms,
            document_terms=self.document_terms,
            gates_by_idf=self.gating == "idf",
        )

    def make_network(self, reader: Histograms) -> "DRMMNetwork":
        """A new network with the model's sizes."""
        return DRMMNetwork(self.bins, self.hidden, reader.features, self.histogram)

    def score_texts(
        self,
        network: "DRMMNetwork",
        texts: HistogramPairs,
        query_rows: np.ndarray,
        document_rows: np.ndarray,
        kept: KeptReader | None,
    ) -> np.ndarray:
        """The network's scores of pairs, float64."""
        device = next(network.parameters()).device
        scores = np.empty(len(query_rows))
        in_training = network is not self.network  # then the same pairs are scored after each epoch
        blocks = texts.batches(query_rows, document_rows, self.batch_size, remember=in_training)
        quiet = not self.verbose or len(scores) <= self.batch_size
        with torch.inference_mode(), pt.tqdm(total=len(scores), desc=repr(self), unit="pair", disable=quiet) as bar:
            for pairs, inputs in blocks:
                scores[pairs] = network.scores(to_device(inputs, device)).cpu().numpy()
                bar.update(len(pairs))
        return scores

    def __repr__(self) -> str:
        return f"DRMM(gating={self.gating!r})"


class DRMMNetwork(nn.Module):
    """One feed-forward network for all query terms, and a gate that weighs them.

    Args:
        bins: Bins of a histogram.
        hidden: Units of the hidden layer.
        features: Inputs of the gate for each term: 1 for its idf, or the length of its vector.
        histogram: How the counts of a histogram are scaled.
    """

    def __init__(self, bins: int, hidden: int, features: int, histogram: Histogram):
        super().__init__()
        self.histogram = histogram
        self.dense = nn.Linear(bins, hidden)
        self.output = nn.Linear(hidden, 1)
        self.gate = nn.Linear(features, 1, bias=False)
        nn.init.constant_(self.gate.weight, INITIAL_IDF_WEIGHT if features == 1 else 0.0)

    def forward(self, inputs: HistogramInputs) -> Tensor:
        """Scores f between -1 and 1, one for each pair: the sum of gate times tanh over the query's terms."""
        outputs = torch.tanh(self.term_outputs(inputs.counts))  # (*pairs, terms)
        return (self.log_gates(inputs).exp() * outputs).sum(-1)

    def scores(self, inputs: HistogramInputs) -> Tensor:
        """atanh(f), float64, computed without f so that there are no ties where tanh is flat.

        For a query of one term this is the term's output before its tanh.
        """
        # 1 + tanh(a) = 2 sigmoid(2a), 1 - tanh(a) = 2 sigmoid(-2a), and the gates of a query sum to 1.
        outputs, gates = self.term_outputs(inputs.counts).double(), self.log_gates(inputs).double()  # (*pairs, terms)
        above, below = gates + F.logsigmoid(2 * outputs), gates + F.logsigmoid(-2 * outputs)
        return (above.logsumexp(-1) - below.logsumexp(-1)) / 2

    def term_outputs(self, counts: Tensor) -> Tensor:
        """The output of each term before its tanh: from (*pairs, terms, bins) to (*pairs, terms)."""
        hidden = torch.tanh(self.dense(self.transformed(counts)))  # (*pairs, terms, hidden)
        return self.output(hidden).squeeze(-1)

    def transformed(self, counts: Tensor) -> Tensor:
        """Counts scaled for the network, float32 of the same shape."""
        counts = counts.to(self.dense.weight.dtype)
        if self.histogram == "log-count":
            return torch.log1p(counts) / math.log(10)
        if self.histogram == "normalised":
            return counts / counts.sum(-1, keepdim=True).clamp(min=1)
        return counts

    def log_gates(self, inputs: HistogramInputs) -> Tensor:
        """Logarithms of the gates of each pair's terms, shape (*pairs, terms); -inf where a query has fewer terms.

        A query without terms counts as one term with an empty histogram.
        """
        weights = self.gate(inputs.gates).squeeze(-1)  # (queries, terms)
        places = torch.arange(weights.shape[1], device=weights.device)
        absent = places >= inputs.lengths.clamp(min=1)[:, None]  # (queries, terms)
        return weights.masked_fill(absent, -torch.inf).log_softmax(-1)[inputs.queries]
