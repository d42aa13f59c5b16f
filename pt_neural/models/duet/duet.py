"""The Duet (Mitra, Diaz and Craswell, 2017): matching by local and by distributed representations of text."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any, ClassVar, Unpack

import numpy as np
import pandas as pd
import pyterrier as pt
import torch
from torch import Tensor

from pt_neural._arguments import checked_integers, checked_number
from pt_neural._frames import with_scores
from pt_neural.models.duet.networks import DuetNetwork, DuetSizes, joint_scores
from pt_neural.rankers.interaction import InteractionRanker, KeptReader
from pt_neural.rankers.options import KeptInteractionOptions, TrainedOptions
from pt_neural.rankers.readers.reader import to_device
from pt_neural.rankers.readers.word_pairs import PairTexts, WordPairs
from pt_neural.text import ForwardIndex

PAIRS_PER_ROUND = 8  # pairs of one document, so that documents with many queries do not fill a batch with padding
QUERIES_PER_STEP = 4096
_SMALL = {"filters": 100, "hidden": 100, "document_terms": 200, "epochs": 30, "patience": 4}


class DuetRanker(InteractionRanker):
    """Base of the Duet and of its two parts, which are rankers of their own.

    Args:
        **sizes_and_options: See :class:`Duet`.

    Attributes:
        parts: The models in it: ``"local"``, ``"distributed"``, or both.
    """

    parts: ClassVar[tuple[str, ...]] = ("local", "distributed")
    options_type: ClassVar[type] = KeptInteractionOptions
    own_options: ClassVar[dict[str, Any]] = {"batch_size": 128}
    learning_settings: ClassVar[tuple[str, ...]] = ("dropout", "num_ngrams")
    own_training: ClassVar[dict[str, Any]] = {
        "loss": "softmax",
        "gamma": 10.0,
        "negatives": "retrieved",
        "batch_size": 64,
        "learning_rate": 1e-3,
    }
    small_sizes: ClassVar[dict[str, Any]] = {"filters": 50, "hidden": 50, "document_terms": 100}
    recipes: ClassVar[dict[str, dict[str, Any]]] = {
        "few": _SMALL,
        "some": {**_SMALL, "max_groups": 8_000},
        "many": {"max_groups": 100_000},
    }

    def __init__(
        self,
        *,
        query_terms: int = 10,
        document_terms: int = 1000,
        filters: int = 300,
        hidden: int = 300,
        window: int = 3,
        pooling: int | None = None,
        dropout: float = 0.2,
        ngram_sizes: Sequence[int] = (1, 2, 3, 4, 5),
        num_ngrams: int = 2000,
        **options: Unpack[KeptInteractionOptions],
    ):
        sizes = DuetSizes(query_terms, document_terms, filters, hidden, window, pooling, dropout)
        if self.reads_words:
            sizes.require_windows()
        for name, size in asdict(sizes).items():
            setattr(self, name, size)
        self.pooling = None if pooling is None else sizes.pooling  # None follows document_terms if they are set later
        self.ngram_sizes = checked_integers("ngram_sizes", ngram_sizes, least=1)
        self.num_ngrams = checked_number("num_ngrams", num_ngrams, int, least=1)
        super().__init__(**options)

    @property
    def reads_words(self) -> bool:
        """Whether the model has a distributed part, which reads words and not only matches."""
        return "distributed" in self.parts

    def make_reader(self) -> WordPairs:
        """A reader of exact matches for the local part and of letter n-grams for the distributed part."""
        return WordPairs(
            self.query_terms,
            self.document_terms,
            matches="local" in self.parts,
            ngram_sizes=self.ngram_sizes if self.reads_words else None,
            num_ngrams=self.num_ngrams,
        )

    def make_network(self, reader: WordPairs) -> DuetNetwork:
        """A new network with the model's sizes."""
        sizes = DuetSizes(**{size.name: getattr(self, size.name) for size in fields(DuetSizes)})
        return DuetNetwork(sizes, 0 if reader.hashing is None else len(reader.hashing), self.parts)

    def score_texts(
        self,
        network: DuetNetwork,
        texts: PairTexts,
        query_rows: np.ndarray,
        document_rows: np.ndarray,
        kept: KeptReader | None,
    ) -> np.ndarray:
        """The network's scores of pairs, float64: atanh(f / parts), see :func:`~.networks.joint_scores`."""
        return joint_scores(self._part_outputs(network, texts, query_rows, document_rows, kept)).numpy()

    def part_outputs(self, frame: pd.DataFrame) -> Tensor:
        """The output of each part before its tanh for the rows of a result frame, float32 of shape (rows, parts)."""
        network = self._fitted()
        return self._part_outputs(network, *self._frame_pairs(self.reader, frame))

    def _part_outputs(
        self,
        network: DuetNetwork,
        texts: PairTexts,
        query_rows: np.ndarray,
        document_rows: np.ndarray,
        kept: KeptReader | None,
    ) -> Tensor:
        """The output of each part before its tanh; each query and each document is read once for all its pairs."""
        device = next(network.parameters()).device
        outputs = torch.empty(len(query_rows), len(self.parts))
        with torch.inference_mode():
            queries = self._read_queries(network, texts)  # (queries, filters)
            for block, pairs in self._blocks(texts.lengths, document_rows):
                documents = self._read_documents(network, texts, block, kept)  # (documents, filters, hidden)
                for chosen in _rounds(document_rows, pairs):
                    units, places = _take(documents, block, document_rows[chosen])
                    inputs = to_device(texts.match(query_rows[chosen], document_rows[chosen], places), device)
                    outputs[chosen] = network.match(inputs, queries, units).cpu()
        return outputs

    def _read_queries(self, network: DuetNetwork, texts: PairTexts) -> Tensor | None:
        """The distributed part's query vectors, (queries, filters); None if there is no such part."""
        if texts.hashed_queries is None:
            return None
        device, number = next(network.parameters()).device, len(texts.hashed_queries)
        steps = np.array_split(np.arange(number), number // QUERIES_PER_STEP + 1)
        return torch.cat([network.read_queries(to_device(texts.hashed_queries.take(step), device)) for step in steps])

    def _read_documents(
        self, network: DuetNetwork, texts: PairTexts, block: np.ndarray, kept: KeptReader | None = None
    ) -> Tensor | None:
        """The distributed part's document matrices, (documents, filters, hidden), read from ``kept`` if given."""
        if texts.hashed_documents is None:
            return None
        device = next(network.parameters()).device
        if kept is not None:
            return torch.from_numpy(kept(block)[0]).unflatten(0, (len(block), self.filters)).to(device)
        return network.read_documents(to_device(texts.hashed_documents.take(block), device))

    def kept_columns(self) -> int:
        """Hidden units of the distributed part."""
        return self.hidden if self.reads_words else super().kept_columns()

    def kept_lengths(self, documents: ForwardIndex) -> np.ndarray:
        """As many rows for each document as there are filters."""
        return np.full(len(documents), self.filters, dtype=np.int64)

    def encode_kept(self, documents: ForwardIndex, *, verbose: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Encode all documents of a forward index, those of similar length together."""
        network = self._fitted()
        texts = self.reader.pair([], documents.all(), documents.vocabulary)
        for block, _ in self._blocks(texts.lengths, np.arange(len(documents)), unit="doc", verbose=verbose):
            with torch.inference_mode():
                yield block, self._read_documents(network, texts, block).flatten(0, 1).cpu().numpy()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class DuetLocal(DuetRanker):
    """The Duet's local model: a network that sees where the terms of the query occur in the document (section 3.1).

    The binary matrix of exact matches, 10 query terms by 1,000 document terms, goes through 300 filters that each see
    all matches of one query term (equation 2), two dense layers of 300 units, dropout, and one output, with tanh
    throughout. All the model knows about terms is where they match. The score is the output before its tanh: the
    ranking is the same, without ties where tanh is flat.

    Args:
        query_terms: Number of terms of a query that are read (n_q).
        document_terms: Number of terms of a document that are read (n_d). Short documents take less time.
        filters: Filters of the convolution (c).
        hidden: Units of each dense layer.
        dropout: Share of the last layer's units that is dropped in training.
        training: How to train; see :class:`Duet` for the paper's setting.

    Raises:
        TypeError: If a size is not a number.
        ValueError: If a size is below 1, or ``dropout`` is not between 0 and 1.

    Example::

        local = pn.DuetLocal(training=pn.Training(negatives="retrieved", num_negatives=4))
        (candidates >> local).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        (candidates >> local).search("pairwise distance")
    """

    schematic = {"label": "DuetLocal", "help_url": None}
    artifact_format = "duet-local"
    options_type: ClassVar[type] = TrainedOptions
    parts = ("local",)

    def __init__(
        self,
        *,
        query_terms: int = 10,
        document_terms: int = 1000,
        filters: int = 300,
        hidden: int = 300,
        dropout: float = 0.2,
        **options: Unpack[TrainedOptions],
    ):
        sizes = {"query_terms": query_terms, "document_terms": document_terms, "filters": filters, "hidden": hidden}
        super().__init__(**sizes, dropout=dropout, **options)


class DuetDistributed(DuetRanker):
    """The Duet's distributed model: learned representations of query and document, multiplied (section 3.2).

    Each term is represented by the counts of its letter n-grams. Query and document are convolved over windows of three
    terms; the query is pooled over all windows, the document over stretches of 100 windows. After one more layer on
    each side, the two are multiplied element by element (equation 3), and two dense layers, dropout and one output
    follow, with tanh throughout. The score is the output before its tanh.

    The layers that do not depend on the query can be computed beforehand, see :meth:`index`. Each document is then
    stored as a matrix of filters by hidden units: 180 KB as float16 and 90 KB as int8 with the sizes of the paper. The
    paper itself proposes (section 6) to store 300 x 899 numbers, which would take three times the space and would leave
    the largest layer to be computed. Rounding changes the scores of a trained model by less than 0.001 of their
    standard deviation with float16, and by less than 0.02 with int8 (0.002 on average).

    Args:
        query_terms: Number of terms of a query that are read.
        document_terms: Number of terms of a document that are read. Short documents take less time, and score as if
            they had been padded.
        filters: Filters of the convolutions.
        hidden: Units of each dense layer after the product.
        window: Terms per window.
        pooling: Windows of the document that are pooled at each position; None for a tenth of its windows, at most 100
            (the paper's 100 of 998).
        dropout: Share of the last layer's units that is dropped in training.
        ngram_sizes: Lengths of the letter n-grams of ``#term#`` (1 to G).
        num_ngrams: Number of n-grams to know, the most frequent ones in the training documents.
        training: How to train; see :class:`Duet` for the paper's setting.

    Raises:
        TypeError: If a size is not a number.
        ValueError: If a size is below 1, if ``dropout`` is not between 0 and 1, or if windows or pooling are longer
            than the texts.

    Example::

        distributed = pn.DuetDistributed(document_terms=200, filters=100, hidden=100)
        (candidates >> distributed).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        distributed.representations = distributed.index("kept.duet", docs.get_corpus_iter())
    """

    schematic = {"label": "DuetDistributed", "help_url": None}
    artifact_format = "duet-distributed"
    parts = ("distributed",)


class Duet(DuetRanker):
    """The sum of a local and a distributed model that are trained together (equation 1).

    :class:`DuetLocal` and :class:`DuetDistributed` describe the two, and the latter also what :meth:`index` stores.
    Each ends in tanh, and f is their sum. The score is atanh(f / 2), computed so that it ranks as f does, without ties
    where tanh is flat. :attr:`local` and :attr:`distributed` score by one part alone; ``duet.local **
    duet.distributed`` gives both as features, computed in one pass over the texts once the pipeline is compiled.

    The paper (sections 3.3 and 4.2) trains by stochastic gradient descent with judged documents as negatives, four for
    each relevant one. Each grade is set against those at least two below it, and the highest grade is left out::

        pn.Training(negatives="judged", num_negatives=4, grades={3: [1, 0], 2: [0]}, optimiser="sgd",
                    learning_rate=0.01, batch_size=8, gamma=1)

    The first dense layer of the distributed model is kept times its number of positions, which suits Adam; SGD steps as
    if it were not. The default, for collections with few judgements, is Adam with batches of 64 and, as negatives, four
    retrieved documents that were not judged relevant. Scores are multiplied by gamma = 10 in equation 4, because
    differences of at most 4 give the softmax little to work with. Equation 4 leaves the relevant document out of its
    denominator; here it is included, as in the authors' code. Initial weights are nearly the same for all positions of
    a document and all terms of a query. The distributed model starts with the same weights for query and document, and
    with windows that see only their middle word. With entirely random weights, a few thousand queries would not be
    enough to learn from.

    Args:
        query_terms: Number of terms of a query that are read.
        document_terms: Number of terms of a document that are read. Short documents take less time, and score as if
            they had been padded.
        filters: Filters of the convolutions.
        hidden: Units of each dense layer.
        window: Terms per window of the distributed model.
        pooling: Windows of the document that are pooled at each position; None for a tenth of its windows, at most 100
            (the paper's 100 of 998).
        dropout: Share of each model's last units that is dropped in training.
        ngram_sizes: Lengths of the letter n-grams of ``#term#``.
        num_ngrams: Number of n-grams to know, the most frequent ones in the training documents.

    Raises:
        TypeError: If a size is not a number.
        ValueError: If a size is out of range.

    Example::

        duet = pn.Duet(document_terms=200, filters=100, hidden=100)
        (candidates >> duet).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        features = (candidates >> duet.local ** duet.distributed).compile()
    """

    schematic = {"label": "Duet", "help_url": None}
    artifact_format = "duet"

    @property
    def local(self) -> "DuetParts":
        """Transformer that scores by the local model of the Duet."""
        return DuetParts(self, "local")

    @property
    def distributed(self) -> "DuetParts":
        """Transformer that scores by the distributed model of the Duet."""
        return DuetParts(self, "distributed")

    def fuse_feature_union(self, other: pt.Transformer, is_left: bool) -> "DuetParts | None":
        """Features of this model and of its parts from one pass; None for other transformers."""
        return DuetParts(self, "duet").fuse_feature_union(other, is_left)


class DuetParts(pt.Transformer):
    """Scores result frames by parts of a Duet: the outputs of the parts before their tanh.

    When a pipeline with ``duet.local ** duet.distributed`` is compiled (``duet`` itself may be among the features too),
    all features come from one pass over the texts.

    Args:
        duet: The model.
        names: ``"local"``, ``"distributed"``, or ``"duet"`` for both together. One name gives scores; several, like
            ``**``, a column ``features`` of float64 arrays.
    """

    def __init__(self, duet: Duet, *names: str):
        self.duet = duet
        self.names = names
        self.schematic = {"label": f"Duet {', '.join(names)}", "help_url": None}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank by one part, or add the features of several."""
        self.duet.check_columns(inp, self)
        values = np.zeros((0, len(self.names))) if inp.empty else self._values(inp)
        if len(self.names) == 1:
            return with_scores(inp, values[:, 0])
        return inp.assign(features=pd.Series(list(values), index=inp.index, dtype=object))

    def _values(self, frame: pd.DataFrame) -> np.ndarray:
        """One column for each name, float64 of shape (rows, names)."""
        outputs = self.duet.part_outputs(frame)
        columns = dict(zip(self.duet.parts, outputs.unbind(1), strict=True))
        columns["duet"] = joint_scores(outputs)
        return np.stack([columns[name].numpy() for name in self.names], axis=1).astype(np.float64)

    def fuse_feature_union(self, other: pt.Transformer, is_left: bool) -> "DuetParts | None":
        """One transformer that does the work of this one and another of the same model; None for other models."""
        if other is self.duet:
            names = ("duet",)
        elif isinstance(other, DuetParts) and other.duet is self.duet:
            names = other.names
        else:
            return None
        return DuetParts(self.duet, *self.names, *names) if is_left else DuetParts(self.duet, *names, *self.names)

    def __repr__(self) -> str:
        return f"{self.duet!r}.{'+'.join(self.names)}"


def _rounds(document_rows: np.ndarray, pairs: np.ndarray) -> list[np.ndarray]:
    """Divide some pairs, given by number, into rounds with at most PAIRS_PER_ROUND pairs of any document."""
    documents = document_rows[pairs]
    order = np.argsort(documents, kind="stable")
    counts = np.bincount(documents)
    number = (np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)) // PAIRS_PER_ROUND
    sequence = np.argsort(number, kind="stable")
    return np.split(pairs[order[sequence]], np.cumsum(np.bincount(number))[:-1])


def _take(units: Tensor | None, block: np.ndarray, documents: np.ndarray) -> tuple[Tensor | None, np.ndarray]:
    """The units of the documents of some pairs, and the place of each pair's document among them.

    Args:
        units: The network's output for the documents of the block, in the same order; None if it reads no words.
        block: Numbers of the documents of the block.
        documents: The document of each pair.
    """
    order = np.argsort(block)
    distinct, places = np.unique(documents, return_inverse=True)
    if len(distinct) == len(block):
        return units, order[places]
    rows = order[np.searchsorted(block, distinct, sorter=order)]
    return units if units is None else units[torch.from_numpy(rows).to(units.device)], places
