"""The Convolutional Latent Semantic Model (Shen, He, Gao, Deng and Mesnil, 2014), also known as CDSSM."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.models.clsm.dssm import TOWERS, TRAINING, checked_towers
from pt_neural.models.clsm.layers import CosineTowers, max_over_windows, window_rows
from pt_neural.rankers.options import TowerOptions
from pt_neural.rankers.readers.hashed_ngrams import HashedNgrams, HashedTexts, HashingLayer
from pt_neural.rankers.readers.reader import to_device
from pt_neural.rankers.towers import TowerRanker
from pt_neural.text import tokenise


class CLSM(TowerRanker):
    """Cosine of a query and a document, each encoded by convolution and pooling over its word n-grams.

    Every window of three words, each word the counts of its letter trigrams, is projected to 300 tanh units
    (equations 1 and 2); max pooling keeps the largest value of each unit over the text (section 3.4); a semantic layer
    of 128 tanh units gives the vector (section 3.5); the score is the cosine (equation 4). Query and document have
    separate networks, without biases. A text without any letter trigram that was seen in training has no vector: such
    a query scores 0, such a document -1.

    The paper trains with J = 4 or 50 random documents, ``pn.Training(negatives="random", num_negatives=50)``. The
    default is the relevant documents of the other groups of the batch, which are encoded anyway, and Adam. The paper
    tunes gamma on held-out queries and draws initial weights at random; here gamma is 10, both networks start alike,
    and a window starts as its centre word, because few queries teach neither quickly.

    Args:
        window: Words per window, an odd number; the paper has 1, 3 and 5.
        filters: Units of the convolutional layer.
        dim: Length of the vectors.
        padding: How both ends of a text are padded, which the paper leaves open: with ``"word"``, a word ``<s>`` that
            has letter trigrams, or ``"zero"``, zeros.
        max_terms: Terms to read as a sequence; the letter trigrams of the rest of a longer text are summed into one
            more word (Duet paper, section 4.3). None reads all as a sequence.
        shared: One network for queries and documents. The paper found two better.
        ngram_sizes: Lengths of the letter n-grams.
        fields: Text columns, joined by a space. Missing columns are skipped, but one must be present. None
            for those of ``documents``, or ``title`` and ``text``. The paper has titles only: ``fields="title"``.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If the window is even, a size is below 1, or the padding is unknown.

    Example::

        clsm = pn.CLSM(training=pn.Training(epochs=10))
        (candidates >> clsm).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
        (candidates >> clsm).search("pairwise distance")
    """

    schematic = {"label": "CLSM", "help_url": None}
    artifact_format = "clsm"
    own_options: ClassVar[dict[str, Any]] = {"batch_size": 8192}
    own_training: ClassVar[dict[str, Any]] = TRAINING
    small_sizes: ClassVar[dict[str, Any]] = {"filters": 100, "dim": 64, "max_terms": 100}
    recipes: ClassVar[dict[str, dict[str, Any]]] = {
        "few": {**TOWERS, "window": 1},
        "some": {**TOWERS, "window": 1},
        "many": {**TOWERS, "shared": False},
    }

    def __init__(
        self,
        window: int = 3,
        *,
        filters: int = 300,
        dim: int = 128,
        padding: Literal["word", "zero"] = "word",
        max_terms: int | None = 499,
        shared: bool = False,
        ngram_sizes: Sequence[int] = (3,),
        **options: Unpack[TowerOptions],
    ):
        self.window = checked_number("window", window, int)
        if self.window < 1 or self.window % 2 == 0:
            raise ValueError(f"window must be an odd number of words, not {window}")
        self.filters = checked_number("filters", filters, int, least=1)
        self.dim = checked_number("dim", dim, int, least=1)
        self.padding = checked_choice("padding", padding, ("word", "zero"))
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.shared, self.ngram_sizes = checked_towers(shared, ngram_sizes)
        super().__init__(**options)

    def make_reader(self) -> HashedNgrams:
        """A reader of letter n-grams."""
        hashes_padding = self.padding == "word" and self.window > 1
        return HashedNgrams(self.ngram_sizes, max_terms=self.max_terms, hashes_padding=hashes_padding)

    def make_network(self, reader: HashedNgrams) -> CosineTowers:
        """Two new towers, or one."""
        tower = ConvolutionalTower(len(reader.hashing), self.window, self.filters, self.dim)
        return CosineTowers(tower, shared=self.shared)

    def context_similarities(
        self, word: str, contexts: Sequence[str], *, side: Literal["query", "document"] = "query"
    ) -> pd.DataFrame:
        """How similar a word's feature vector in one context is to those in others (section 3.3, Table 2).

        The feature vector of a word is what the convolutional layer makes of the window around it, h_t in equation 2.

        Args:
            word: The word; it is split from the contexts, and lowercased, as texts are.
            contexts: Short texts that have the word, whose first occurrence counts. The others are compared with the
                first.
            side: Which of the two networks reads them.

        Returns:
            ``context`` and ``similarity``, a cosine, in the order of the contexts; a row for each but the first.

        Raises:
            ValueError: If a context does not have the word among the terms that are read, or there are none to compare.

        Example::

            clsm.context_similarities("key", ["key of a dictionary", "primary key", "press a key"])
        """
        checked_choice("side", side, ("query", "document"))
        network, (term,) = self._fitted(), tokenise(word)[:1] or [word]
        if len(contexts) < 2:
            raise ValueError("context_similarities compares contexts with the first: give two or more")
        places = []
        for context in contexts:
            terms = tokenise(context)[: self.max_terms]
            if term not in terms:
                raise ValueError(f"the context {context!r:.80} does not have the word {word!r}")
            places.append(terms.index(term))
        texts = self.reader.read_queries(list(contexts)).take(np.arange(len(contexts)))
        texts = to_device(texts, next(network.parameters()).device)
        with torch.inference_mode():
            projections = network.tower(side).project(texts)
            rows = window_rows(texts.words, texts.offsets, self.window, len(projections) // self.window - 1)
            windows = rows[texts.offsets[:-1] + torch.tensor(places, device=rows.device)]
            features = torch.tanh(projections[windows].sum(1))  # (contexts, filters)
            similarities = F.cosine_similarity(features[:1], features[1:])
        return pd.DataFrame({"context": list(contexts[1:]), "similarity": similarities.cpu().numpy()})

    def __repr__(self) -> str:
        return f"CLSM(window={self.window})"


CDSSM = CLSM  # as later papers call it


class ConvolutionalTower(nn.Module):
    """A text as a sequence of windows of words, convolved, pooled, and projected.

    Args:
        num_ngrams: Number of letter n-grams.
        window: Words per window.
        filters: Units of the convolutional layer.
        dim: Units of the semantic layer.
    """

    def __init__(self, num_ngrams: int, window: int, filters: int, dim: int):
        super().__init__()
        self.window = window
        self.filters = filters
        self.hashing = HashingLayer(num_ngrams, window * filters, bound=0.02)
        with torch.no_grad():  # a window starts as its centre word; what its context adds is learned
            places = self.hashing.weight.view(num_ngrams, window, filters)
            places[:, [place for place in range(window) if place != window // 2]] = 0
        self.semantic = nn.Linear(filters, dim, bias=False)
        nn.init.xavier_uniform_(self.semantic.weight)

    def forward(self, texts: HashedTexts) -> Tensor:
        """Vectors of shape (texts, dim)."""
        return self.read(self.project(texts), texts.words, texts.offsets)

    def project(self, texts: HashedTexts) -> Tensor:
        """Each distinct word's share in each unit, by its place in a window: (distinct words * window, filters)."""
        # W_c applied to a window (equation 2) is a sum over its words: W_c is cut into one block for each place.
        return self.hashing(texts).view(-1, self.filters)

    def read(self, projections: Tensor, words: Tensor, offsets: Tensor) -> Tensor:
        """Vectors of texts whose words are projected already."""
        largest = max_over_windows(projections, words, offsets, self.window)
        pooled = torch.tanh(largest)  # tanh is monotonic, so it may follow the maximum: once per text, not per window
        return torch.tanh(self.semantic(pooled))
