"""Match-Tensor and its hybrids with SSM (Jaech, Kamisetty, Ringger and Clarke, 2017)."""

from collections.abc import Sequence

from pt_neural.embeddings import EmbeddingSpaces, Space
from pt_neural.models.match_tensor_network import Channels, Pooling, Shape
from pt_neural.models.match_tensor_ranker import MatchTensorRanker
from pt_neural.models.text_encoders import Encoder
from pt_neural.rankers.representations import DocumentRepresentations
from pt_neural.text import ForwardIndex
from pt_neural.training import Training


class MatchTensor(MatchTensorRanker):
    """Matches every query word with every document word along many channels (sections 3.1 to 3.3).

    Fixed word embeddings are projected by one layer for both sides, read by a bi-directional LSTM for each, and
    projected to equal lengths. Products of a query word and a document word, component by component, are the channels
    of a tensor of query words x document words x channels; exact matches, times a learned alpha, are one more. Filters
    of three query words by three, four and five document words over all channels, ReLU, 1 x 1 filters and max pooling
    make one vector of it, and a hidden layer the score. A sigmoid would make it the probability of relevance; what is
    given as score is the value before it, which ranks equally and does not tie where the sigmoid is flat.

    Sizes are those of Table 2 (section 3.1 has 50 channels), read so that weights add up to its 104K: projections,
    LSTM sizes for each direction, six filters of each height, pooling to one value for each of eight query words, and a
    hidden layer of ReLU units. ``pooling="global"`` takes one value of each filter. The paper gives neither dropout,
    which was chosen here, nor what unknown words share: one random vector, fixed as those of the boundary tokens
    before each field and after the last (section 5.2). What lies beyond the end of a text takes no part.

    Training is pointwise as in the paper: cross-entropy of each document's sigmoid against its grade, divided by the
    highest, so that three grades have the targets 0, 1/2 and 1, with Adam, and 200 documents a step (40 groups of
    five). Negatives are retrieved documents that were not judged relevant, for collections with few judgements;
    ``pn.Training(negatives="judged")`` is the paper's. Few training queries make few steps of that size:
    ``pn.Training(batch_size=10, learning_rate=0.003)`` then learns sooner.

    The document's side does not depend on the query, and :meth:`index` keeps it: a row of ``tensor_size`` numbers for
    each word, 16 KB as float16 for 200 words.

    Args:
        spaces: The word embeddings; 256 dimensions in the paper.
        space: Which of their two vectors a word has, ``"in"`` or ``"out"``.
        encoder: ``"lstm"``; or ``"cnn"``, convolutions over one and over three words in its place (section 5.6).
        channels: ``"all"``; or ``"exact"``, that of exact matches alone (section 6.6).
        projection: Dimensions that word embeddings are projected to.
        document_units: Units of each direction of the document's encoder.
        query_units: Those of the query's.
        tensor_size: Channels beside that of exact matches.
        filters: Filters of the first layer, a multiple of 3: a third of each height.
        second_filters: Filters of the second layer, 1 x 1.
        hidden: Units of the comparison layer.
        pooling: ``"per-word"``, the largest value of each filter for each query word; ``"global"``, for all of them.
        query_terms: Words of a query that are read.
        document_terms: Words of a document that are read, boundaries included.
        boundaries: Whether boundary tokens stand before each field and after the last.
        dropout: Share of the encoders' inputs and outputs that is dropped in training.
        training: How to train; see :class:`~pt_neural.Training`.
        fields: Text columns; those that a frame lacks are empty, one must be there. None for those of ``documents``, or
            ``title`` and ``text``. A trained model keeps their number, since it tells them apart.
        documents: A forward index, to train and to re-rank by ``docno``.
        representations: What :meth:`index` made, to re-rank by ``docno`` from documents that were read beforehand.
        device: Where to score: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        batch_size: Documents read at a time, at most.
        verbose: Show a progress bar while reading documents.

    Raises:
        TypeError: If an argument is of another kind than said here.
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
        training: Training | None = None,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        representations: DocumentRepresentations | None = None,
        device: str = "auto",
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        super().__init__(
            spaces,
            space,
            Shape(
                projection=projection,
                document_units=document_units,
                query_units=query_units,
                tensor_size=tensor_size,
                filters=filters,
                second_filters=second_filters,
                hidden=hidden,
                query_terms=query_terms,
                document_terms=document_terms,
                dropout=dropout,
                encoder=encoder,
                channels=channels,
                pooling=pooling,
            ),
            boundaries=boundaries,
            training=training,
            fields=fields,
            documents=documents,
            representations=representations,
            device=device,
            batch_size=batch_size,
            verbose=verbose,
        )


class MatchTensorSSM(MatchTensorRanker):
    """Match-Tensor and SSM in one model, which share word embeddings and encoders (sections 5.4 and 5.5).

    What the last filters of Match-Tensor have found, one value a filter and query word, stands beside the products of
    the query's and the document's embedding, component by component, as SSM compares them; one linear layer makes the
    score. With ``channels="exact"`` the tensor has the channel of exact matches alone: local and distributed matching
    as in the Duet (section 5.4). Sizes are those of Table 2, which counts 160K weights. For all else see
    :class:`MatchTensor` and :class:`~pt_neural.SSM`. :meth:`index` keeps a row of numbers for each word of a document
    and some for the whole.

    Args:
        spaces: The word embeddings; 256 dimensions in the paper.
        space: Which of their two vectors a word has, ``"in"`` or ``"out"``.
        encoder: ``"lstm"`` or ``"cnn"``.
        channels: ``"all"``, or ``"exact"`` for that of exact matches alone.
        projection: Dimensions that word embeddings are projected to.
        document_units: Units of each direction of the document's encoder.
        query_units: Those of the query's.
        tensor_size: Channels beside that of exact matches.
        filters: Filters of the first layer, a multiple of 3: a third of each height.
        second_filters: Filters of the second layer, 1 x 1.
        hidden: Length of the embeddings of query and document.
        pooling: ``"per-word"`` or ``"global"``.
        query_terms: Words of a query that are read.
        document_terms: Words of a document that are read, boundaries included.
        boundaries: Whether boundary tokens stand before each field and after the last.
        dropout: Share of the encoders' inputs and outputs that is dropped in training.
        training: How to train.
        fields: Text columns; those that a frame lacks are empty, one must be there.
        documents: A forward index, to train and to re-rank by ``docno``.
        representations: What :meth:`index` made, to re-rank by ``docno`` from documents that were read beforehand.
        device: Where to score: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        batch_size: Documents read at a time, at most.
        verbose: Show a progress bar while reading documents.

    Raises:
        TypeError: If an argument is of another kind than said here.
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
        training: Training | None = None,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        representations: DocumentRepresentations | None = None,
        device: str = "auto",
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        super().__init__(
            spaces,
            space,
            Shape(
                projection=projection,
                document_units=document_units,
                query_units=query_units,
                tensor_size=tensor_size,
                filters=filters,
                second_filters=second_filters,
                hidden=hidden,
                query_terms=query_terms,
                document_terms=document_terms,
                dropout=dropout,
                encoder=encoder,
                channels=channels,
                pooling=pooling,
            ),
            boundaries=boundaries,
            training=training,
            fields=fields,
            documents=documents,
            representations=representations,
            device=device,
            batch_size=batch_size,
            verbose=verbose,
        )
