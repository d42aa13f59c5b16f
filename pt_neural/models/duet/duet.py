"""The Duet (Mitra, Diaz and Craswell, 2017): matching by local and by distributed representations of text."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pyterrier as pt

from pt_neural._arguments import checked_integers, checked_number
from pt_neural.models.duet_features import DuetParts
from pt_neural.models.duet_kept import KeptDocumentsRanker
from pt_neural.models.duet_networks import Shape
from pt_neural.models.duet_ranker import DuetRanker
from pt_neural.rankers.representations import DocumentRepresentations
from pt_neural.text import ForwardIndex
from pt_neural.training import Training

_LOCAL_SIZES = ("query_terms", "document_terms", "filters", "hidden", "dropout")


class DuetLocal(DuetRanker):
    """The Duet's local model: a network over where the terms of the query stand in the document (section 3.1).

    The binary matrix of exact matches, 10 query terms by 1,000 document terms, goes through 300 filters that each see
    all matches of one query term (equation 2), two dense layers of 300 units, dropout, and one output, with tanh
    throughout. The model knows nothing about terms but where they match. Scores are the output before its tanh, which
    ranks alike and does not tie where tanh is flat.

    Args:
        query_terms: Terms of a query that count (n_q).
        document_terms: Terms of a document that count (n_d). Short documents take less time.
        filters: Filters of the convolution (c).
        hidden: Units of each dense layer.
        dropout: Share of the last layer's units that is dropped in training.
        training: How to train; see :class:`Duet` for the paper's setting.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there.
        documents: A forward index, to train and to re-rank by ``docno``.
        device: Where to score: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        batch_size: Documents read at a time, at most.
        verbose: Show a progress bar while scoring.

    Raises:
        TypeError: If a size is no number.
        ValueError: If a size is below 1, or ``dropout`` is not between 0 and 1.

    Example::

        local = pn.DuetLocal(training=pn.Training(negatives="retrieved", num_negatives=4))
        (candidates >> local).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        (candidates >> local).search("pairwise distance")
    """

    schematic = {"label": "DuetLocal", "help_url": None}
    artifact_format = "duet-local"
    parts = ("local",)

    def __init__(
        self,
        *,
        query_terms: int = 10,
        document_terms: int = 1000,
        filters: int = 300,
        hidden: int = 300,
        dropout: float = 0.2,
        training: Training | None = None,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        device: str = "auto",
        batch_size: int = 128,
        verbose: bool = False,
    ):
        shape = Shape(
            query_terms=query_terms, document_terms=document_terms, filters=filters, hidden=hidden, dropout=dropout
        )
        super().__init__(
            shape,
            training=training,
            fields=fields,
            documents=documents,
            device=device,
            batch_size=batch_size,
            verbose=verbose,
        )

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is."""
        return {name: getattr(self.shape, name) for name in _LOCAL_SIZES}

    def __repr__(self) -> str:
        return "DuetLocal()"


class DuetDistributed(KeptDocumentsRanker):
    """The Duet's distributed model: learned representations of query and document, multiplied (section 3.2).

    Each term is the counts of its letter n-grams. Query and document are convolved over windows of three terms; the
    query is pooled over all windows, the document over stretches of 100 windows; after one more layer on each side both
    are multiplied element by element (equation 3), and two dense layers, dropout and one output follow, with tanh
    throughout. Scores are the output before its tanh.

    What of this does not depend on the query can be kept, see :meth:`index`: a matrix of filters x hidden units for
    each document, 180 KB as float16 and 90 KB as int8 with the sizes of the paper, whose own proposal (section 6),
    300 x 899 numbers, would be three times larger and would leave the largest layer to be computed. With the rounding,
    the scores of a trained model differ by less than 0.001 of their standard deviation with float16, and by less than
    0.02 with int8 (0.002 on average).

    Args:
        query_terms: Terms of a query that count.
        document_terms: Terms of a document that count. Short documents take less time, and score as if they had been
            padded.
        filters: Filters of the convolutions.
        hidden: Units of each dense layer after the product.
        window: Terms a window.
        pooling: Windows of the document that are pooled, at each position.
        dropout: Share of the last layer's units that is dropped in training.
        ngram_sizes: Lengths of the letter n-grams of ``#term#`` (1 to G).
        num_ngrams: The most frequent n-grams of the training corpus that count.
        training: How to train; see :class:`Duet` for the paper's setting.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there.
        documents: A forward index, to train and to re-rank by ``docno``.
        representations: What :meth:`index` made, to re-rank by ``docno`` from documents that were encoded beforehand.
        device: Where to score: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        batch_size: Documents read at a time, at most.
        verbose: Show a progress bar while scoring.

    Raises:
        TypeError: If a size is no number.
        ValueError: If a size is below 1, if ``dropout`` is not between 0 and 1, or if windows or pooling are longer
            than the texts.

    Example::

        distributed = pn.DuetDistributed(document_terms=200, filters=100, hidden=100, pooling=20)
        (candidates >> distributed).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        distributed.representations = distributed.index("kept.duet", docs.get_corpus_iter())
    """

    schematic = {"label": "DuetDistributed", "help_url": None}
    artifact_format = "duet-distributed"
    parts = ("distributed",)

    def __init__(
        self,
        *,
        query_terms: int = 10,
        document_terms: int = 1000,
        filters: int = 300,
        hidden: int = 300,
        window: int = 3,
        pooling: int = 100,
        dropout: float = 0.2,
        ngram_sizes: Sequence[int] = (1, 2, 3, 4, 5),
        num_ngrams: int = 2000,
        training: Training | None = None,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        representations: DocumentRepresentations | None = None,
        device: str = "auto",
        batch_size: int = 128,
        verbose: bool = False,
    ):
        shape = Shape(query_terms, document_terms, filters, hidden, window, pooling, dropout)
        shape.require_windows()
        super().__init__(
            shape,
            ngram_sizes=checked_integers("ngram_sizes", ngram_sizes, least=1),
            num_ngrams=checked_number("num_ngrams", num_ngrams, int, least=1),
            training=training,
            fields=fields,
            documents=documents,
            representations=representations,
            device=device,
            batch_size=batch_size,
            verbose=verbose,
        )

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is."""
        return {**asdict(self.shape), "ngram_sizes": list(self.ngram_sizes), "num_ngrams": self.num_ngrams}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Duet(DuetDistributed):
    """The sum of a local and a distributed model that are trained together (equation 1).

    See :class:`DuetLocal` and :class:`DuetDistributed` for the two, and the latter for what :meth:`index` keeps. Each
    ends in tanh, and the score f is the sum. What is given as score is atanh(f / 2), computed so that it ranks as f
    does and does not tie where tanh is flat. :attr:`local` and :attr:`distributed` score by one part; ``duet.local **
    duet.distributed`` are features, from one pass over the texts once the pipeline is compiled.

    The paper (sections 3.3 and 4.2) trains with judged documents as negatives, four for each relevant one, by grades
    that leave the highest out, and stochastic gradient descent::

        pn.Training(negatives="judged", num_negatives=4, grades={3: [1, 0], 2: [0]}, optimiser="sgd",
                    learning_rate=0.01, batch_size=8, gamma=1)

    The default, for collections with few judgements, is Adam with batches of 64, four retrieved documents that were
    not judged relevant, and scores multiplied by gamma = 10 in equation 4, since differences of at most 4 leave the
    softmax little to say. Equation 4 leaves the relevant document out of its denominator; here it is in, as in the
    authors' code. First weights are nearly the same for all positions of a document and all terms of a query, and the
    distributed model begins with the same weights for query and document and with windows that are their middle word:
    some thousand queries do not teach as much from weights that are drawn at random throughout.

    Args:
        query_terms: Terms of a query that count.
        document_terms: Terms of a document that count. Short documents take less time, and score as if they had been
            padded.
        filters: Filters of the convolutions.
        hidden: Units of each dense layer.
        window: Terms a window of the distributed model.
        pooling: Windows of the document that are pooled, at each position.
        dropout: Share of each model's last units that is dropped in training.
        ngram_sizes: Lengths of the letter n-grams of ``#term#``.
        num_ngrams: The most frequent n-grams of the training corpus that count.
        training: How to train.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there.
        documents: A forward index, to train and to re-rank by ``docno``.
        representations: What :meth:`index` made, to re-rank by ``docno`` from documents that were encoded beforehand.
        device: Where to score: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        batch_size: Documents read at a time, at most.
        verbose: Show a progress bar while scoring.

    Raises:
        TypeError: If a size is no number.
        ValueError: If a size is out of range.

    Example::

        duet = pn.Duet(document_terms=200, filters=100, hidden=100, pooling=20)
        (candidates >> duet).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        features = (candidates >> duet.local ** duet.distributed).compile()
    """

    schematic = {"label": "Duet", "help_url": None}
    artifact_format = "duet"
    parts = ("local", "distributed")

    @property
    def local(self) -> DuetParts:
        """Transformer that scores by the local model of the Duet."""
        return DuetParts(self, "local")

    @property
    def distributed(self) -> DuetParts:
        """Transformer that scores by the distributed model of the Duet."""
        return DuetParts(self, "distributed")

    def fuse_feature_union(self, other: pt.Transformer, is_left: bool) -> DuetParts | None:
        """Features of this model and of its parts from one pass; None for other transformers."""
        return DuetParts(self, "duet").fuse_feature_union(other, is_left)
