"""Match-Tensor and its hybrids with SSM (Jaech, Kamisetty, Ringger and Clarke, 2017)."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Unpack

import numpy as np
from torch import nn

from pt_neural._arguments import checked_choice
from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.match_tensor.network import HEIGHTS, Channels, MatchTensorNetwork, MatchTensorSizes, Pooling
from pt_neural.models.matching.encoded import TERMS_PER_BLOCK, read_blocks, score_pairs
from pt_neural.models.matching.encoders import ENCODERS, Encoder, checked_sizes
from pt_neural.rankers.interaction import InteractionRanker, KeptReader
from pt_neural.rankers.options import KeptInteractionOptions
from pt_neural.rankers.ranker import Ranker
from pt_neural.rankers.readers.embedded_words import EmbeddedPairs, EmbeddedWords
from pt_neural.rankers.trained import Trained
from pt_neural.text import ForwardIndex

TRAINING = {
    "loss": "pointwise",
    "gamma": 1.0,
    "negatives": "retrieved",
    "batch_size": 40,
    "learning_rate": 1e-3,
}
SMALL_STEPS = {"batch_size": 10, "learning_rate": 3e-3}  # for up to tens of thousands of queries
RECIPES = {
    "few": SMALL_STEPS,
    "some": {**SMALL_STEPS, "max_groups": 8_000, "epochs": 30},
    "many": {"max_groups": 100_000, "epochs": 30},
}


class MatchTensorRanker(InteractionRanker):
    """Base of Match-Tensor and its hybrids with SSM.

    Args:
        spaces: The word embeddings.
        **options: See :class:`~pt_neural.rankers.options.KeptInteractionOptions`.
    """

    options_type: ClassVar[type] = KeptInteractionOptions
    components: ClassVar[dict[str, Callable[..., Any]]] = {"spaces": EmbeddingSpaces.load}
    learning_settings: ClassVar[tuple[str, ...]] = ("dropout",)
    own_training: ClassVar[dict[str, Any]] = TRAINING
    small_sizes: ClassVar[dict[str, Any]] = {"document_units": 30, "tensor_size": 20, "document_terms": 100}
    recipes: ClassVar[dict[str, dict[str, Any]]] = RECIPES
    terms_per_block: ClassVar[int] = TERMS_PER_BLOCK
    compares_wholes: ClassVar[bool]

    def __init__(self, spaces: EmbeddingSpaces, **options: Unpack[KeptInteractionOptions]):
        self.spaces = spaces
        super().__init__(**options)
        self._check_settings()

    @property
    def tells_fields_apart(self) -> bool:
        """Whether boundary tokens separate fields."""
        return self.boundaries

    @property
    def sizes(self) -> MatchTensorSizes:
        """Sizes of the network."""
        choices = {"encoder": ENCODERS, "channels": ("all", "exact"), "pooling": ("per-word", "global")}
        sizes = checked_sizes({name: getattr(self, name) for name in MatchTensorSizes._fields}, choices)
        if sizes["filters"] % len(HEIGHTS):
            raise ValueError(f"filters must be a multiple of 3, as many of each height, not {sizes['filters']}")
        return MatchTensorSizes(**sizes)

    def make_reader(self) -> EmbeddedWords:
        """A reader of word embeddings and exact matches."""
        return make_word_reader(self, matches=True)

    def make_network(self, reader: EmbeddedWords) -> MatchTensorNetwork:
        """A new network."""
        return MatchTensorNetwork(reader.spaces.dim, self.sizes, compares_wholes=self.compares_wholes)

    def score_texts(
        self,
        network: nn.Module,
        texts: EmbeddedPairs,
        query_rows: np.ndarray,
        document_rows: np.ndarray,
        kept: KeptReader | None,
    ) -> np.ndarray:
        """The network's scores of pairs; each document is read once."""
        return score_pairs(self, network, texts, query_rows, document_rows, kept)

    def kept_columns(self) -> int:
        """Channels of the match tensor, not counting exact matches."""
        return self._fitted().columns

    def kept_lengths(self, documents: ForwardIndex) -> np.ndarray:
        """Rows of each document: its words and boundaries, then those for the document as a whole, if any."""
        boundaries = len(self.fields) + 1 if self.boundaries else 0
        return self._fitted().num_rows(np.minimum(documents.all().lengths + boundaries, self.document_terms))

    def encode_kept(self, documents: ForwardIndex, *, verbose: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read all documents of a forward index, those of similar length together."""
        texts = self.reader.read_documents(documents.all(), documents.vocabulary)
        for numbers, rows in read_blocks(self, self._fitted(), texts, np.arange(len(documents)), verbose=verbose):
            yield numbers, rows.cpu().numpy()

    def _check_settings(self) -> None:
        self.make_reader()
        for name, value in self.sizes._asdict().items():
            setattr(self, name, value)  # now a Python number

    def _check_fit(self) -> None:
        super()._check_fit()
        self._check_settings()

    def _check_options(self) -> None:
        super()._check_options()
        require_trained_input(self)

    def _require_fitted(self) -> None:
        super()._require_fitted()
        require_trained_input(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(encoder={self.encoder!r}, channels={self.channels!r})"


class MatchTensor(MatchTensorRanker):
    """Matches every query word with every document word along many channels (sections 3.1 to 3.3).

    Fixed word embeddings are projected by one layer that both sides share, read by a bi-directional LSTM for each side,
    and projected to equal lengths. Element-wise products of a query word and a document word are the channels of a
    tensor of query words x document words x channels; one more channel has exact matches, times a learned alpha.
    Filters of three query words by three, four and five document words over all channels, ReLU, 1 x 1 filters and max
    pooling reduce the tensor to one vector, and a hidden layer reduces that to the score. A sigmoid would turn it into
    the probability of relevance; the score is the value before the sigmoid: the ranking is the same, without ties where
    the sigmoid is flat.

    Sizes are those of Table 2 (section 3.1 has 50 channels), interpreted so that the weights add up to its 104K:
    projections, LSTM units of each direction, six filters of each height, one pooled value for each of eight query
    words, and a hidden layer of ReLU units. ``pooling="global"`` takes one value per filter. The paper says neither how
    much dropout there is (the default was chosen here) nor which vector unknown words share: here it is random and
    fixed, as are the vectors of the boundary tokens before each field and after the last (section 5.2). Padding is
    ignored.

    Training is pointwise as in the paper: cross-entropy of each document's sigmoid against its grade, divided by the
    highest, so that three grades have the targets 0, 1/2 and 1, with Adam, and 200 documents a step (40 groups of
    five). Negatives are retrieved documents that were not judged relevant, for collections with few judgements;
    ``pn.Training(negatives="judged")`` is the paper's choice. Few training queries give few steps of that size: the
    recipes for up to tens of thousands have batches of 10 groups and a rate of 0.003 in the place of 0.001, which did
    better on the dev queries of two collections.

    The document's side does not depend on the query, and :meth:`index` stores it: a row of ``tensor_size`` numbers for
    each word, 16 KB as float16 for 200 words.

    Args:
        spaces: The word embeddings; 256 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        encoder: ``"lstm"``; or ``"cnn"``, convolutions over one and over three words instead (section 5.6).
        channels: ``"all"``; or ``"exact"`` for only the channel of exact matches (section 6.6).
        projection: Dimensions that word embeddings are projected to.
        document_units: Units of each direction of the document encoder.
        query_units: Units of each direction of the query encoder.
        tensor_size: Channels, not counting the one of exact matches.
        filters: Filters of the first layer, a multiple of 3: a third of each height.
        second_filters: Filters of the second layer, 1 x 1.
        hidden: Units of the comparison layer.
        pooling: ``"per-word"``: the largest value of each filter for each query word; ``"global"``: over all of them.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read, boundaries included.
        boundaries: Whether boundary tokens stand before each field and after the last. A trained model then reads only
            as many fields as it was trained on.
        dropout: Share of the encoders' inputs and outputs that is dropped in training.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        spaces = pn.EmbeddingSpaces.train(docs.get_corpus_iter(), dim=256)
        match_tensor = pn.MatchTensor(spaces)
        (candidates >> match_tensor).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
    """

    schematic = {"label": "MatchTensor", "help_url": None}
    artifact_format = "match-tensor"
    compares_wholes = False

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        encoder: Encoder = "lstm",
        channels: Channels = "all",
        projection: int = 40,
        document_units: int = 70,
        query_units: int = 15,
        tensor_size: int = 40,
        filters: int = 18,
        second_filters: int = 20,
        hidden: int = 50,
        pooling: Pooling = "per-word",
        query_terms: int = 8,
        document_terms: int = 200,
        boundaries: bool = True,
        dropout: float = 0.2,
        **options: Unpack[KeptInteractionOptions],
    ):
        self.space, self.encoder, self.channels, self.pooling = space, encoder, channels, pooling
        self.projection, self.document_units, self.query_units = projection, document_units, query_units
        self.tensor_size, self.filters, self.second_filters, self.hidden = tensor_size, filters, second_filters, hidden
        self.query_terms, self.document_terms = query_terms, document_terms
        self.boundaries, self.dropout = boundaries, dropout
        super().__init__(spaces, **options)


class MatchTensorSSM(MatchTensorRanker):
    """Match-Tensor and SSM in one model, with shared word embeddings and encoders (sections 5.4 and 5.5).

    One linear layer makes the score from the pooled values of Match-Tensor's last filters, one per filter and query
    word, and from the element-wise products of query and document embedding that SSM sums up. With
    ``channels="exact"`` the tensor has only the channel of exact matches: local and distributed matching as in the Duet
    (section 5.4). Sizes are those of Table 2, which counts 160K weights. For everything else see :class:`MatchTensor`
    and :class:`~pt_neural.SSM`. :meth:`index` stores a row of numbers for each word of a document, and a few for the
    document as a whole.

    Args:
        spaces: The word embeddings; 256 dimensions in the paper.
        space: Which of a word's two vectors to take, ``"in"`` or ``"out"``.
        encoder: ``"lstm"`` or ``"cnn"``.
        channels: ``"all"``, or ``"exact"`` for only the channel of exact matches.
        projection: Dimensions that word embeddings are projected to.
        document_units: Units of each direction of the document encoder.
        query_units: Units of each direction of the query encoder.
        tensor_size: Channels, not counting the one of exact matches.
        filters: Filters of the first layer, a multiple of 3: a third of each height.
        second_filters: Filters of the second layer, 1 x 1.
        hidden: Length of the embeddings of query and document.
        pooling: ``"per-word"`` or ``"global"``.
        query_terms: Number of words of a query that are read.
        document_terms: Number of words of a document that are read, boundaries included.
        boundaries: Whether boundary tokens stand before each field and after the last.
        dropout: Share of the encoders' inputs and outputs that is dropped in training.

    Raises:
        TypeError: If an argument is of another kind than described.
        ValueError: If a size is out of range or a choice unknown.

    Example::

        hybrid = pn.MatchTensorSSM(spaces, channels="exact")
        (candidates >> hybrid).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        (candidates >> hybrid).search("pairwise distance")
    """

    schematic = {"label": "MatchTensorSSM", "help_url": None}
    artifact_format = "match-tensor-ssm"
    compares_wholes = True

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        *,
        space: Space = "in",
        encoder: Encoder = "lstm",
        channels: Channels = "all",
        projection: int = 50,
        document_units: int = 95,
        query_units: int = 15,
        tensor_size: int = 35,
        filters: int = 18,
        second_filters: int = 30,
        hidden: int = 55,
        pooling: Pooling = "per-word",
        query_terms: int = 8,
        document_terms: int = 200,
        boundaries: bool = True,
        dropout: float = 0.2,
        **options: Unpack[KeptInteractionOptions],
    ):
        self.space, self.encoder, self.channels, self.pooling = space, encoder, channels, pooling
        self.projection, self.document_units, self.query_units = projection, document_units, query_units
        self.tensor_size, self.filters, self.second_filters, self.hidden = tensor_size, filters, second_filters, hidden
        self.query_terms, self.document_terms = query_terms, document_terms
        self.boundaries, self.dropout = boundaries, dropout
        super().__init__(spaces, **options)


def make_word_reader(model: Ranker, *, matches: bool) -> EmbeddedWords:
    """A new reader of word embeddings with the settings of a Match-Tensor or SSM model."""
    boundaries = checked_choice("boundaries", model.boundaries, (True, False))
    return EmbeddedWords(
        model.spaces,
        model.space,
        query_terms=model.query_terms,
        document_terms=model.document_terms,
        fields=len(model.fields) if boundaries else 0,
        matches=matches,
    )


def require_trained_input(model: Trained) -> None:
    """Raise an error if a trained model would read other embeddings, or another number of fields, than in training."""
    if model.reader is None:
        return
    if model.reader.spaces is not model.spaces:
        raise RuntimeError(f"spaces of {model!r} changed after fitting: fit it again, or change back")
    if model.boundaries and len(model.fields) != model.reader.fields:
        raise ValueError(
            f"{model!r} tells apart the {model.reader.fields} fields that it was trained on, and cannot read "
            f"{', '.join(model.fields)} instead: give the same number of fields, or fit it again"
        )
