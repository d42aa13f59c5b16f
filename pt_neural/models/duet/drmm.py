"""The Deep Relevance Matching Model (Guo, Fan, Ai and Croft, 2016)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyterrier as pt
import torch
from torch import nn

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.drmm_idf import count_documents, idf
from pt_neural.models.drmm_network import DRMMNetwork, Histogram
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.histograms import HistogramInputs, HistogramPairs, UnitVectors
from pt_neural.rankers.interaction import Interaction
from pt_neural.rankers.pairs import moved
from pt_neural.rankers.trained import Scorer
from pt_neural.rankers.word_vectors import WithSpaces
from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, pack_texts
from pt_neural.training import Training
from pt_neural.training.examples import Examples
from pt_neural.training.sampling import Collate

Gating = Literal["idf", "vector"]
Block = tuple[np.ndarray, HistogramInputs]

FREQUENCIES = "frequencies"  # folder of a saved model


class DRMM(WithSpaces, Interaction):
    """Histograms of cosine similarities for each term of the query, a small network, and a gate for each term.

    For each query term, the terms of the document are counted by their cosine similarity to it, in bins of equal
    width, and in one more bin if they are the same term ("matching histogram mapping" in the paper). The logarithm of
    the counts goes through one network for all terms, with one hidden layer and tanh ("feed forward matching network");
    the score is the sum of what comes out, each weighed by the term's gate, a softmax over the terms of the query
    ("term gating network"). Where a term stands in the document does not count.

    Each term's output lies between -1 and 1, and so does their weighted sum f, on which the model is trained. What is
    given as score is atanh(f), computed so that it ranks as f does and does not tie where tanh is flat.

    With ``gating="idf"`` the gate is softmax(w idf), idf = ln((N + 1) / df), where N counts the documents of the
    forward index or, without one, those among the training candidates; a term that is in none of them has the idf of
    one that is in a single document. With ``"vector"`` it is softmax(w . x) of the term's vector x. Words without a
    vector have a similarity of 0 with all words but themselves, and a vector of zeros for the gate. Cosines are those
    of unit vectors rounded to 11 bits; see :class:`~pt_neural.rankers.histograms.UnitVectors`.

    Training is as in the paper and its authors' code: the margin loss between a relevant document and each of four
    others, with margin 0.1. The paper says 1, which two scores between -1 and 1 hardly have between them, so that all
    pairs pull alike for ever. Negatives are retrieved documents that were not judged relevant, for collections with few
    judgements.

    Args:
        spaces: The word embeddings.
        space: Which of their two vectors a word has, ``"in"`` or ``"out"``.
        gating: What tells how much a query term weighs: ``"idf"`` or ``"vector"``.
        bins: Bins of a histogram, that of exact matches among them; from 2 to 256.
        hidden: Units of the hidden layer.
        query_terms: Terms of a query that count; None for all.
        document_terms: Terms of a document that count; None for all.
        histogram: ``"log-count"``, log10(1 + count); ``"count"``; or ``"normalised"``, the share of each bin (LCH, CH
            and NH in the paper).
        training: How to train.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there.
        documents: A forward index, to train and to re-rank by ``docno``.
        device: Where to score: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``. Histograms are made on the CPU.
        batch_size: Pairs scored at a time, at most.
        verbose: Show a progress bar while scoring.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a setting is out of range, or none of those named.

    Example::

        spaces = pn.EmbeddingSpaces.train(docs.get_corpus_iter())
        drmm = pn.DRMM(spaces, training=pn.Training(negatives="retrieved", num_negatives=4))
        (candidates >> drmm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
    """

    schematic = {"label": "DRMM", "help_url": None}
    artifact_format = "drmm"
    own_training: ClassVar[dict[str, Any]] = {
        "loss": "margin",
        "margin": 0.1,
        "gamma": 20.0,
        "negatives": "retrieved",
        "batch_size": 64,
        "learning_rate": 5e-3,
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
        training: Training | None = None,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        device: str = "auto",
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        super().__init__(
            spaces,
            space,
            training=training,
            fields=fields,
            documents=documents,
            device=device,
            batch_size=batch_size,
            verbose=verbose,
        )
        self.gating = gating
        self.bins = bins
        self.hidden = hidden
        self.query_terms = query_terms
        self.document_terms = document_terms
        self.histogram = histogram
        self.frequencies: Vocabulary | None = None
        self._units = UnitVectors(self.spaces, self.space)
        self._check_settings()

    def _check_settings(self) -> None:
        """Raise an error where a setting is wrong, given to the class or set later."""
        checked_choice("space", self.space, ("in", "out"))
        checked_choice("gating", self.gating, ("idf", "vector"))
        checked_choice("histogram", self.histogram, ("log-count", "count", "normalised"))
        if checked_number("bins", self.bins, int, least=2) > 256:
            raise ValueError(f"bins must be at most 256, not {self.bins!r}")
        checked_number("hidden", self.hidden, int, least=1)
        for name in ("query_terms", "document_terms"):
            checked_number(name, getattr(self, name), int, least=1, optional=True)

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is, beside the embeddings."""
        names = ("space", "gating", "bins", "hidden", "query_terms", "document_terms", "histogram")
        return {name: getattr(self, name) for name in names}

    def _begin(self, examples: Examples) -> tuple[Vocabulary | None, nn.Module, Collate]:
        self._check_settings()
        documents, vocabulary = self._training_documents(examples)
        frequencies = count_documents(documents, vocabulary) if self.gating == "idf" else None
        pairs = self._pairs(examples.query_texts, documents, vocabulary, frequencies)
        return frequencies, self._new_network(), pairs.take

    def _new_network(self) -> DRMMNetwork:
        features = 1 if self.gating == "idf" else self.spaces.dim
        return DRMMNetwork(self.bins, self.hidden, features, self.histogram)

    def _pairs(
        self,
        queries: Sequence[str],
        documents: PackedSequences,
        vocabulary: Vocabulary,
        frequencies: Vocabulary | None,
    ) -> HistogramPairs:
        sequences, terms = pack_texts(queries)
        units = self._unit_vectors()
        rows = units.rows(terms)
        return HistogramPairs(
            queries=sequences,
            query_ids=vocabulary.ids(terms),
            query_rows=rows,
            gates=self._word_vectors(rows[:-1]) if frequencies is None else idf(terms, frequencies)[:, None],
            documents=documents,
            document_rows=units.rows_of(vocabulary),
            matrix=units.matrix,
            bins=self.bins,
            query_terms=self.query_terms,
            document_terms=self.document_terms,
        )

    def _unit_vectors(self) -> UnitVectors:
        if self._units.space != self.space:  # as it was set later
            self._units = UnitVectors(self.spaces, self.space)
        return self._units

    def _word_vectors(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of words as they are, for the gate; zeros where there is none."""
        vectors = np.zeros((len(rows), self.spaces.dim), dtype=np.float32)
        vectors[rows >= 0] = self.spaces.vectors(self.space)[rows[rows >= 0]]
        return vectors

    def _scorer(self, preparation: Vocabulary | None, frame: pd.DataFrame) -> Scorer:
        blocks: list[Block] = []  # of the first scoring, for histograms do not change while a network is trained

        def scores(network: DRMMNetwork) -> np.ndarray:
            blocks.extend([] if blocks else self._histograms(preparation, frame))
            return scored(network, blocks, len(frame))

        return scores

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        """Scores of the rows of a result frame, float64 of shape (rows,)."""
        network = self._fitted()
        return scored(network, self._histograms(self.frequencies, frame), len(frame))

    def _histograms(self, frequencies: Vocabulary | None, frame: pd.DataFrame) -> Iterator[Block]:
        """Numbers of rows of a frame with their histograms, block by block; with a progress bar."""
        queries, texts = distinct_queries(frame)
        documents, sequences, vocabulary = self._frame_documents(frame)
        pairs = self._pairs(texts, sequences, vocabulary, frequencies)
        with pt.tqdm(total=len(frame), desc=repr(self), unit="pair", disable=not self.verbose) as progress:
            for rows in pairs.blocks(queries, documents, self.batch_size):
                yield rows, pairs.take(queries[rows], documents[rows])
                progress.update(len(rows))

    def _install(self, preparation: Vocabulary | None, network: nn.Module) -> None:
        super()._install(preparation, network)
        self.frequencies = preparation

    def _save_preparation(self, directory: Path) -> None:
        super()._save_preparation(directory)
        if self.frequencies is not None:
            self.frequencies.save(directory / FREQUENCIES)

    def _load_preparation(self, directory: Path) -> tuple[Vocabulary | None, nn.Module]:
        frequencies = Vocabulary.load(directory / FREQUENCIES) if self.gating == "idf" else None
        return frequencies, self._new_network()

    def __repr__(self) -> str:
        return f"DRMM(gating={self.gating!r})"


def scored(network: DRMMNetwork, blocks: Iterator[Block] | list[Block], rows: int) -> np.ndarray:
    """Scores of all rows of a frame, float64, from the histograms of its blocks."""
    device = next(network.parameters()).device
    scores = np.empty(rows)
    with torch.inference_mode():
        for some, inputs in blocks:
            scores[some] = network.scores(moved(inputs, device)).cpu().numpy()
    return scores
