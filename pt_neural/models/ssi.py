"""Supervised semantic indexing: f(q, d) = q'Wd over tf-idf vectors, learned from preferences (Bai et al., 2010)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._measures import RankLoss
from pt_neural.models.ssi_features import Features
from pt_neural.models.ssi_kinds import KINDS, LEARNING_RATES, WITH_VECTORS, Kind, check_kind
from pt_neural.models.ssi_words import SSIWords
from pt_neural.rankers import BilinearRanker, TermVectors
from pt_neural.rankers.encoders import DocEncoder, QueryEncoder
from pt_neural.rankers.trained import Trained
from pt_neural.rankers.weighed import Weighed
from pt_neural.text import ForwardIndex
from pt_neural.training import Training


class SSI(SSIWords):
    """Scores by q'Wd, where W says how much each word of a query speaks for each word of a document.

    q and d are tf-idf vectors of length 1, and W is learned so that the relevant document of each tuple (q, d+, d-)
    scores higher than the other by a margin (equation 8). Words that never meet in training keep what W starts with:
    the identity, which is the cosine of ``TFIDF(sublinear_tf=True)``, and random U and V where there are any. The kinds
    of W (section 2.2) are

    - ``"low-rank"``: U'V + I (equation 4), the default: N by D matrices of latent concepts beside exact matches;
    - ``"symmetric"``: U'U + I; ``"low-rank-diagonal"``: U'V + D, with a learned weight for each exact match;
    - ``"diagonal"``: D alone, a learned re-weighting of tf-idf;
    - ``"full"``: unconstrained, for small vocabularies; ``"sparse"``: of which only the largest weights of each row are
      kept (algorithm 2);
    - ``"hash"``: weights that pairs of words share at random (hash kernels, equation 5), plus αI;
    - ``"correlated-hash"``: low rank for the frequent words, and a second low-rank model, trained by itself, in which
      words, or 2-grams, are replaced by the frequent words that they occur with, added with a learned factor. As in
      algorithm 1 frequent words are replaced too, and each bin of a word goes with all of another one; in section 4.1
      it is "all other words", and in equation 6 each bin goes with its like. Vectors longer than 1 are cut to 1.

    Queries may be keywords or whole documents. With ``shared_vocabulary=False`` queries and documents have vocabularies
    of their own, as for two languages (section 2.4.2) or any two types of text (section 2.4.3); nothing then compares
    words by their spelling, so that there is no identity.

    Training makes the paper's steps, one tuple after the other, each as long as its texts, in compiled loops; it is
    repeatable, and runs on one core. The first training in an environment takes some ten seconds to compile them.

    A query without any known word scores 0 with every document that has one, and retrieves none; a document without any
    known word scores -100, and is never retrieved. For U'V alone, words without columns are unknown too.

    Args:
        kind: What W is made of.
        dim: N, rows of U and V; the paper has 50 to 500.
        identity: Whether there is an identity term, or for ``"full"`` and ``"sparse"`` whether W starts at it; None for
            wherever queries and documents share a vocabulary.
        shared_vocabulary: Whether a word of a query is the same word in a document.
        min_count: Words that occur less often are left out.
        max_terms: Keep only that many of the most frequent words, in each vocabulary (D in the paper); None keeps all.
        embedded_terms: Only that many of the most frequent words have columns in U and V, as in (U'V)_n of Table 2;
            the others count on the diagonal only. With ``"correlated-hash"`` they are also the F words that all words
            are replaced by.
        sublinear_tf: Weigh tf occurrences as 1 + ln tf; False as tf.
        deviation: Standard deviation of the first weights of U and V. None for 1/√N; with the paper's 1 scores are at
            first √N times as large as those of the identity.
        alike: Whether U and V start with the same random weights, so that U'V is near the identity at first, as W is;
            only with a shared vocabulary. False for the paper's start, in which each is random.
        nonzeros: Weights that ``"sparse"`` keeps in each row of W (p in algorithm 2).
        rounds: How often ``"sparse"`` drops weights and trains again, the same share of each row each time.
        hash_size: Weights of ``"hash"`` (H in equation 5).
        ngrams: What ``"correlated-hash"`` replaces by frequent words: 1 for words, 2 for 2-grams that stand in at least
            two documents.
        bins: By how many of them (k in equation 6).
        hashed_dim: N of its second model; None for ``dim``.
        training: How to train; None for stochastic gradient descent on the margin ranking loss with a fixed learning
            rate (0.05 with U and V, 1 for weights of pairs, 10 for D alone), 8 random negatives for each relevant
            document, and early stopping on the ranking loss of the dev queries. Average precision may still grow when
            that no longer falls: give ``dev_measure=AP`` and more epochs where the first ranks count. Other losses,
            optimisers and devices than the processor are refused.
        fields: Text columns, joined by a space; those that a frame lacks are passed over, one must be there. None for
            those of ``documents``, or ``title`` and ``text``.
        documents: A forward index, to train on and to re-rank by ``docno``.
        vectors: What :meth:`~pt_neural.rankers.BilinearRanker.index` made, or the path of it, to re-rank by ``docno``
            from kept vectors.
        batch_size: Documents weighed at a time.
        verbose: Show a progress bar while weighing documents.

    Attributes:
        features: What turns texts into vectors, with the vocabularies; None until :meth:`fit`.
        network: W; None until then.

    Raises:
        TypeError: If an argument is of another kind than said here.
        ValueError: If a setting is out of range, or if the kind cannot do without what is switched off.

    Example::

        ssi = pn.SSI("low-rank", dim=100, documents=documents)
        ssi.fit(pairs, links, dev_candidates, dev_links)
        ssi.retriever(ssi.index("ssi.vectors", documents)).search("pairwise distance")
    """

    schematic = {"label": "SSI", "help_url": None}
    artifact_format = "ssi"
    least_score = -100.0

    def __init__(
        self,
        kind: Kind = "low-rank",
        dim: int = 100,
        *,
        identity: bool | None = None,
        shared_vocabulary: bool = True,
        min_count: int = 1,
        max_terms: int | None = None,
        embedded_terms: int = 30_000,
        sublinear_tf: bool = True,
        deviation: float | None = None,
        alike: bool = True,
        nonzeros: int = 100,
        rounds: int = 3,
        hash_size: int = 1_000_000,
        ngrams: int = 1,
        bins: int = 5,
        hashed_dim: int | None = None,
        training: Training | None = None,
        fields: str | Sequence[str] | None = None,
        documents: ForwardIndex | None = None,
        vectors: TermVectors | None = None,
        batch_size: int = 1024,
        verbose: bool = False,
    ):
        self.kind = checked_choice("kind", kind, KINDS)
        self.shared_vocabulary = checked_choice("shared_vocabulary", shared_vocabulary, (True, False))
        checked_choice("identity", identity, (None, True, False))
        self.identity = check_kind(kind, shared_vocabulary=shared_vocabulary, identity=identity)
        self.dim = checked_number("dim", dim, int, least=1)
        self.min_count = checked_number("min_count", min_count, int, least=1)
        self.max_terms = checked_number("max_terms", max_terms, int, least=1, optional=True)
        self.embedded_terms = checked_number("embedded_terms", embedded_terms, int, least=1)
        self.sublinear_tf = checked_choice("sublinear_tf", sublinear_tf, (True, False))
        self.deviation = checked_number("deviation", deviation, float, above=0, optional=True)
        self.alike = checked_choice("alike", alike, (True, False))
        self.nonzeros = checked_number("nonzeros", nonzeros, int, least=1)
        self.rounds = checked_number("rounds", rounds, int, least=1)
        self.hash_size = checked_number("hash_size", hash_size, int, least=1)
        self.ngrams = checked_choice("ngrams", ngrams, (1, 2))
        self.bins = checked_number("bins", bins, int, least=1)
        self.hashed_dim = checked_number("hashed_dim", hashed_dim, int, least=1, optional=True)
        self.features: Features | None = None
        Trained.__init__(self, training=training, device="cpu")
        BilinearRanker.__init__(
            self, fields=fields, documents=documents, vectors=vectors, batch_size=batch_size, verbose=verbose
        )

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is."""
        names = (
            *("kind", "dim", "identity", "shared_vocabulary", "min_count", "max_terms", "embedded_terms"),
            *("sublinear_tf", "deviation", "alike", "nonzeros", "rounds", "hash_size", "ngrams", "bins", "hashed_dim"),
        )
        return {name: getattr(self, name) for name in names}

    @property
    def own_training(self) -> dict[str, Any]:
        """Values for the settings of :class:`~pt_neural.Training` that are None."""
        return {
            "optimiser": "sgd",
            "loss": "margin",
            "learning_rate": LEARNING_RATES[self.kind],
            "batch_size": 1024,
            "negatives": "random",
            "num_negatives": 8,
            "dev_measure": RankLoss,
        }

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """The latent part of queries, Uq, float32 of shape ``(len(texts), dim)``.

        Raises:
            ValueError: If the kind has none.
        """
        return self._latent(self.weigh_queries(texts))

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """The latent part of documents, Vd, likewise."""
        return self._latent(self.weigh_documents(texts))

    def _latent(self, weighed: Weighed) -> np.ndarray:
        if weighed.latent is None:
            raise ValueError(f"kind={self.kind!r} has no latent vectors; {', '.join(WITH_VECTORS)} have")
        return weighed.latent

    def query_encoder(self) -> QueryEncoder:
        """Transformer that adds ``query_vec``, the latent part of the query, to frames with ``query``."""
        return QueryEncoder(self)

    def doc_encoder(self) -> DocEncoder:
        """Transformer that adds ``doc_vec``, the latent part of the document, to frames with text."""
        return DocEncoder(self)

    def __repr__(self) -> str:
        return f"SSI({self.kind!r}{f', dim={self.dim}' if self.kind in WITH_VECTORS else ''})"
