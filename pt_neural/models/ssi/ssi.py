"""Supervised semantic indexing: f(q, d) = q'Wd over tf-idf vectors, learned from preferences (Bai et al., 2010)."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, Unpack, get_args

import numpy as np
import pandas as pd
import pyterrier as pt
import torch

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._evaluation import RankLoss
from pt_neural._files import ArtifactError, read_tensors, write_tensors
from pt_neural._messages import say
from pt_neural.models.ssi.features import CorrelatedHashing, Features, HashedWords, Ngrams, Side, training_texts
from pt_neural.models.ssi.learning import Learner, Task, pair_of_numbers
from pt_neural.models.ssi.network import Network, Shape, random_vectors
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.kept.term_vectors import TermVectors
from pt_neural.rankers.options import LearnedOptions
from pt_neural.rankers.ranker import digest
from pt_neural.rankers.representation import RepresentationRanker
from pt_neural.rankers.vectors import Vectors
from pt_neural.text import PackedSequences, TfIdf, Vocabulary, pack_texts, tokenise, tokenise_packed
from pt_neural.text.counts import most_frequent
from pt_neural.training import Training
from pt_neural.training.examples import Examples, dev_evaluator
from pt_neural.training.examples import digest as frames_digest
from pt_neural.training.groups import Groups
from pt_neural.training.report import FitClock, Report
from pt_neural.training.run import Records
from pt_neural.training.sampling import GroupBatches
from pt_neural.training.settings import RECIPES

Kind = Literal[
    "diagonal",
    "full",
    "off-diagonal",
    "sparse",
    "symmetric",
    "low-rank",
    "low-rank-diagonal",
    "hash",
    "correlated-hash",
]
KINDS = get_args(Kind)
WITH_VECTORS = ("symmetric", "low-rank", "low-rank-diagonal", "correlated-hash")
OF_ONE_VOCABULARY = ("diagonal", "off-diagonal", "symmetric", "low-rank-diagonal", "correlated-hash")
LEARNING_RATES = {
    "diagonal": 10.0,
    "full": 1.0,
    "off-diagonal": 1.0,
    "sparse": 1.0,
    "symmetric": 0.05,
    "low-rank": 0.05,
    "low-rank-diagonal": 0.05,
    "hash": 1.0,
    "correlated-hash": 0.05,
}
MOST_WEIGHTS = 2**30  # if W has a weight for each pair of words; 4.3 GB

# Values of training settings that SSI accepts, the usual one first.
ACCEPTED_TRAINING = {
    "loss": ("margin",),
    "optimiser": ("sgd",),
    "device": ("cpu", "auto"),
    "devices": (1,),
    "nodes": (1,),
    "strategy": ("auto",),
    "precision": ("32-true", "32", 32),
    "weight_decay": (0.0,),
    "gradient_clip": (None,),
}

_RECIPE = {"dim": 200, "epochs": 60, "patience": 10}


class SSI(RepresentationRanker, pt.Estimator):
    """Scores by q'Wd, where W weighs each pair of a word of the query and a word of the document.

    q and d are tf-idf vectors of length 1, and W is learned so that in each tuple (q, d+, d-) the relevant document d+
    scores higher than d- by a margin (equation 8). Words that never meet in training keep their initial weights: the
    identity, which gives the cosine of ``TFIDF(sublinear_tf=True)``, and random U and V if there are any. The kinds of
    W (section 2.2) are

    - ``"low-rank"``: U'V + I (equation 4), the default: N by D matrices of latent concepts, and exact matches;
    - ``"symmetric"``: U'U + I; ``"low-rank-diagonal"``: U'V + D, with a learned weight for each exact match;
    - ``"diagonal"``: D alone, which re-weights tf-idf;
    - ``"full"``: unconstrained, for small vocabularies; ``"sparse"``: only the largest weights of each row of such a W
      (algorithm 2); ``"off-diagonal"``: unconstrained, but 0 for each word with itself, so that only different words
      count (section 4.1, "Ignoring the Diagonal");
    - ``"hash"``: weights that random pairs of words share (hash kernels, equation 5), plus αI;
    - ``"correlated-hash"``: low rank for the frequent words, and a second low-rank model, trained by itself, in which
      words or 2-grams are replaced by the frequent words that they occur with, added with a factor that is chosen on
      dev queries, or learned if there are none. As in algorithm 1, each bin of a word is paired with all bins of
      another; in equation 6, with that of the same number. Vectors longer than 1 are scaled to length 1.

    Queries may be keywords or whole documents. With ``shared_vocabulary=False`` queries and documents have separate
    vocabularies, as for two languages (section 2.4.2) or two types of text (section 2.4.3); words are then never
    compared by their spelling, and there is no identity.

    Training makes the paper's steps, tuple by tuple, in compiled loops on one core, and is repeatable. The first
    training in an environment takes about ten seconds longer, to compile them.

    A query without any known word scores 0 with every document that has one, and retrieves nothing; a document without
    any known word scores -100, and is never retrieved. For U'V alone, words without columns are unknown too.

    Args:
        kind: What W is made of.
        dim: N, rows of U and V; the paper has 50 to 500.
        identity: Whether there is an identity term, or for ``"full"`` and ``"sparse"`` whether W starts as one; None
            wherever queries and documents share a vocabulary, except with ``"off-diagonal"``.
        shared_vocabulary: Whether a word of a query is the same word in a document.
        min_count: Words that occur less often are left out.
        max_terms: Number of most frequent words to keep in each vocabulary (D in the paper); None keeps all.
        embedded_terms: How many of the most frequent words have columns in U and V, as in (U'V)_n of Table 2; the
            others count on the diagonal only. With ``"correlated-hash"`` these are also the F words that replace words.
        sublinear_tf: Replace the term frequency tf by 1 + ln tf.
        deviation: Standard deviation of the initial weights of U and V. None for 1/√N; with the paper's 1, scores start
            √N times as large as those of the identity.
        alike: Whether U and V start with the same random weights, so that U'V is near the identity at first, as W is;
            only with a shared vocabulary. False, as in the paper, draws them separately.
        nonzeros: Weights that ``"sparse"`` keeps in each row of W (p in algorithm 2).
        rounds: How often ``"sparse"`` drops weights and trains again, the same share of each row each time.
        hash_size: Number of weights of ``"hash"`` (H in equation 5).
        ngrams: What ``"correlated-hash"`` replaces by frequent words: words (1), 2-grams in at least two documents (2),
            or both (``"1+2"``).
        bins: How many frequent words replace each of them (k in equation 6).
        hashed_words: Which words ``"correlated-hash"`` replaces: ``"all"``, also the frequent ones, as in algorithm 1;
            or only the ``"others"``, as in the paper's experiment (section 4.1).
        hashed_dim: N of its second model; None for ``dim``.
        training: How to train; None for stochastic gradient descent on the margin ranking loss with a fixed learning
            rate (0.05 with U and V, 1 for weights of pairs, 10 for D alone), 8 random negatives for each relevant
            document, and early stopping by the rank loss on dev queries. Average precision may still grow when rank
            loss no longer falls: give ``dev_measure=AP`` and more epochs if the first ranks matter. Other losses,
            optimisers and devices are refused.

    Attributes:
        features: Turns texts into vectors, and holds the vocabularies; None until :meth:`fit`.
        network: W; None until :meth:`fit`.
        history: One row an epoch: ``epoch``, ``loss`` (mean over groups), ``seconds`` of training, and the dev measure,
            with dev queries from epoch 0, the start, on;
            with ``"sparse"`` also ``nonzeros``, how many weights in each row of W could change, and with
            ``"correlated-hash"`` also ``model``, the part that was trained: ``"words"``, ``"hashed"`` or ``"mixing"``,
            and ``mixing``, the factor that was chosen on dev queries.
        report: What the model was trained on, what was left out, what came of it, and where the time went; None if it
            was loaded.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is out of range, or if the kind needs something that is switched off.

    Example::

        ssi = pn.SSI("low-rank", dim=100, documents=documents)
        ssi.fit(pairs, links, dev_candidates, dev_links)
        ssi.retriever(ssi.index("ssi.vectors", documents)).search("pairwise distance")
    """

    schematic = {"label": "SSI", "help_url": None}
    artifact_format = "ssi"
    options_type: ClassVar[type] = LearnedOptions
    fitting: ClassVar[str] = "(candidates >> model).fit(topics, qrels)"
    recipes: ClassVar[dict[str, dict[str, Any]]] = dict.fromkeys(RECIPES, _RECIPE)
    learning_settings: ClassVar[tuple[str, ...]] = (
        "min_count",
        "max_terms",
        "deviation",
        "alike",
        "nonzeros",
        "rounds",
    )
    history_columns: ClassVar[tuple[str, ...]] = ("epoch", "loss", "seconds")
    kept_as: ClassVar[type] = TermVectors
    least_score = -100.0
    queries_per_block = 256  # their weights of all terms of documents are in memory together
    has_encoders = False

    features: Features | None = None
    network: Network | None = None
    report: Report | None = None

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
        ngrams: Ngrams = 1,
        bins: int = 5,
        hashed_words: HashedWords = "all",
        hashed_dim: int | None = None,
        **options: Unpack[LearnedOptions],
    ):
        self.kind = checked_choice("kind", kind, KINDS)
        self.shared_vocabulary = checked_choice("shared_vocabulary", shared_vocabulary, (True, False))
        checked_choice("identity", identity, (None, True, False))
        self.identity = _checked_identity(kind, shared_vocabulary=shared_vocabulary, identity=identity)
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
        self.ngrams = checked_choice("ngrams", ngrams, (1, 2, "1+2"))
        self.bins = checked_number("bins", bins, int, least=1)
        self.hashed_words = checked_choice("hashed_words", hashed_words, ("all", "others"))
        self.hashed_dim = checked_number("hashed_dim", hashed_dim, int, least=1, optional=True)
        super().__init__(**options)

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

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
        *,
        monolingual: tuple[pd.DataFrame, pd.DataFrame] | None = None,
        own_queries: bool = False,
    ) -> "SSI":
        """Train on candidates and their judgements; ``(candidates >> ssi).fit(...)`` calls this.

        Training starts anew, or from the W that ``pn.Training(start=...)`` names; idf is always that of the documents
        at hand. Words that are new to a vocabulary count as rarer than those that are not, see ``embedded_terms``.

        Args:
            topics_or_res_tr: Candidates of the training queries: ``qid, query, docno`` and text (``docno`` is enough
                if the model has a forward index).
            qrels_tr: Their judgements, or links: ``qid, docno, label``.
            topics_or_res_va: Candidates of the dev queries. With them, the W of the epoch with the best dev measure is
                kept, and training stops when it no longer improves; without, the last epoch's is kept.
            qrels_va: Judgements of the dev queries.
            monolingual: Candidates and judgements of queries in the language of the documents. Training alternates
                between their tuples, with W = V'V (equation 10), and the others, so that V serves both. Words that
                occur only in their documents are known if the model has ``documents``, a forward index of all.
            own_queries: Give these queries a U of their own instead, W = U_E'V, so that only V is shared.

        Returns:
            The model. ``history`` and ``report`` tell what happened.

        Raises:
            TypeError: If ``monolingual`` is not a pair of frames.
            ValueError: If there is nothing to train on; if ``vectors`` are set, which would not change; if the settings
                of the training are not the paper's; if there are monolingual tuples for a kind without V, or none
                although ``own_queries`` is set; if W would take too much memory; or if the model cannot start from
                ``start``.
            FileNotFoundError: If there is no ``start``.
            FloatingPointError: If the loss is no longer a number; the model stays as it was.
            KeyboardInterrupt: If the user interrupts; the model then has the best W so far, and stays as it was if no
                epoch was complete.
        """
        clock = FitClock()
        _check_monolingual(self.kind, monolingual, own_queries)
        self._require_no_vectors()
        training = self._completed_training()
        _check_training(training)
        start = self._load_start(training)
        examples = self._make_examples(topics_or_res_tr, qrels_tr, training)
        if training.verbose:
            say(f"{self!r}: {examples.report.data()}")
        features, sequences = self._learn_features(examples, start, verbose=training.verbose)
        documents = features.read_documents(sequences, features.documents.vocabulary)
        texts = training_texts(features.read_queries(examples.query_texts), documents)
        groups, report, candidates = examples.groups, examples.report, examples.seen(topics_or_res_tr)
        del examples, sequences, documents  # they are sparse vectors by now
        terms = len(features.queries.vocabulary), len(features.documents.vocabulary)
        generator = torch.Generator().manual_seed(training.seed)
        alike = self.alike and self.shared_vocabulary
        network = Network.start(self._shape(*terms), generator, deviation=self.deviation, alike=alike)
        if start is not None:
            network.copy_from(start.network)
        frames = candidates, qrels_tr, topics_or_res_va, qrels_va, *(monolingual or ())
        learner = Learner(
            Task(texts, GroupBatches(groups, training, pair_of_numbers)),
            training,
            history=[],
            origin=partial(self._origin, frames, own_queries, features, groups, start),
        )
        if topics_or_res_va is not None:
            learner.evaluate = clock.timed(self._dev_measure(features, topics_or_res_va, qrels_va, training))
        if monolingual is not None:
            learner.other_task = self._monolingual_task(features, *monolingual, training)
        if own_queries:
            size = network.document_vectors.shape
            learner.other_query_vectors = random_vectors(*size, self.deviation, generator)
        clock.prepared()
        try:
            self._learn(learner, network)
        except KeyboardInterrupt:
            if any(record["epoch"] for record in learner.history):
                self._finish(features, network, learner.history, report)
            raise
        self._finish(features, network, learner.history, report.concluded(learner.history, training, clock))
        return self

    def _load_start(self, training: Training) -> Self | None:
        if training.start is not None and self.kind == "correlated-hash":
            raise ValueError(
                "kind='correlated-hash' cannot start from another model: its hashed features are the words that occur "
                "together in its own collection"
            )
        return super()._load_start(training)

    def _learn_features(
        self, examples: Examples, start: Self | None, *, verbose: bool
    ) -> tuple[Features, PackedSequences]:
        """The features, and the documents as ids of their vocabulary."""
        limits = {"min_count": self.min_count, "max_terms": self.max_terms}
        if examples.document_texts is None:
            vocabulary = most_frequent(self.documents.vocabulary, **limits)
        else:
            vocabulary = Vocabulary.build(map(tokenise, examples.document_texts), **limits)
        if start is not None:
            vocabulary = vocabulary.after(start.features.documents.vocabulary)
        documents = queries = TfIdf(vocabulary, sublinear_tf=self.sublinear_tf)
        if not self.shared_vocabulary:
            query_vocabulary = Vocabulary.build(map(tokenise, examples.query_texts), **limits)
            if start is not None:
                query_vocabulary = query_vocabulary.after(start.features.queries.vocabulary)
            queries = TfIdf(query_vocabulary, sublinear_tf=self.sublinear_tf)
        if not len(vocabulary) or not len(queries.vocabulary):
            raise ValueError(f"no word occurs {self.min_count} times: give more texts, or a smaller min_count")
        features = Features(queries, documents)
        if examples.document_texts is None:
            sequences = features.own_sequences(self.documents.all(), self.documents.vocabulary)
        else:
            sequences = tokenise_packed(examples.document_texts, vocabulary)
        if self.kind == "correlated-hash":
            options = {name: getattr(self, name) for name in ("bins", "ngrams", "hashed_words", "sublinear_tf")}
            options["verbose"] = verbose
            hashing = CorrelatedHashing.build(sequences, vocabulary, frequent=self.embedded_terms, **options)
            features = Features(queries, documents, hashing)
        return features, sequences

    def _shape(self, query_terms: int, document_terms: int) -> Shape:
        """What W is made of."""
        shape: dict[str, Any] = {"query_terms": query_terms, "document_terms": document_terms}
        if self.kind in WITH_VECTORS:
            shape |= {"dim": self.dim, "embedded_terms": self.embedded_terms, "symmetric": self.kind == "symmetric"}
            shape["diagonal"] = "identity" if self.identity else "none"
        if self.kind in ("diagonal", "low-rank-diagonal"):
            shape["diagonal"] = "learned"
        if self.kind in ("full", "off-diagonal", "sparse"):
            shape |= {"pairs": _affordable(query_terms, document_terms), "starts_at_identity": self.identity}
        if self.kind == "hash":
            shape |= {"pairs": self.hash_size, "shared_pairs": True, "diagonal": "factor" if self.identity else "none"}
        if self.kind == "correlated-hash":
            hashed_terms = min(self.embedded_terms, document_terms)
            shape |= {"hashed_terms": hashed_terms, "hashed_dim": self.hashed_dim or self.dim}
        return Shape(**shape)

    def _monolingual_task(
        self, features: Features, candidates: pd.DataFrame, qrels: pd.DataFrame, training: Training
    ) -> Task:
        """The task in the language of the documents, whose queries are over their vocabulary."""
        examples = self._make_examples(candidates, qrels, training)
        queries, terms = pack_texts(examples.query_texts)
        documents = features.read_documents(*self._training_documents(examples))
        texts = training_texts(features.read_documents(queries, Vocabulary(terms)), documents)
        return Task(texts, GroupBatches(examples.groups, training, pair_of_numbers))

    def _origin(
        self,
        frames: Sequence[pd.DataFrame | None],
        own_queries: bool,
        features: Features,
        groups: Groups,
        start: Self | None,
    ) -> str:
        """Changes with everything that a training depends on, so that checkpoints of another one are not used."""
        arrays, words = features.identity_parts()
        arrays |= {"queries": groups.queries, "positives": groups.positives, "relevant": groups.relevant}
        state = [self.artifact_format, self.settings(), own_queries, digest([], arrays, words)]
        if start is not None:
            state.append(start.fingerprint())
        return frames_digest(state, frames, fields=self.fields)

    def _dev_measure(
        self, features: Features, frame: pd.DataFrame, qrels: pd.DataFrame | None, training: Training
    ) -> Callable[[Network], float]:
        """A function that gives the dev measure of a network; texts are turned into vectors once."""
        frame, measure = dev_evaluator(frame, qrels, training)
        query_rows, texts = distinct_queries(frame)
        queries = features.read_queries(texts)
        document_rows, sequences, vocabulary = self._frame_documents(frame)
        documents = features.read_documents(sequences, vocabulary)
        starts = range(0, len(texts), self.queries_per_block)
        blocks = [np.flatnonzero(query_rows // self.queries_per_block == number) for number in range(len(starts))]

        def evaluate(network: Network) -> float:
            weighed, scores = network.weigh_documents(*documents), np.empty(len(frame), dtype=np.float32)
            for start, pairs in zip(starts, blocks, strict=True):
                block = network.weigh_queries(*queries.take(slice(start, start + self.queries_per_block)))
                scores[pairs] = self.score_pairs(block, query_rows[pairs] - start, weighed, document_rows[pairs])
            return float(measure(scores).mean())

        return evaluate

    def _learn(self, learner: Learner, network: Network) -> None:
        if self.kind == "sparse":
            learner.learn_sparse(network, self.nonzeros, self.rounds)
        elif self.kind == "correlated-hash":
            learner.learn_mixed(network)
        elif self.kind == "off-diagonal":
            learner.learn_off_diagonal(network)
        else:
            learner.learn(network)

    def _finish(self, features: Features, network: Network, history: Records, report: Report) -> None:
        self.features, self.network = features, network.compressed() if self.kind == "sparse" else network
        self._history, self.report = history, report
        self._settle_fields()
        self._mark_fitted()

    def truncated(self, dim: int) -> "SSI":
        """The low-rank model nearest to this one, whose W has a weight for each pair: a truncated SVD of W - I.

        It takes less memory and ranks faster, and tells how many dimensions W needs.

        Args:
            dim: N, rows of U and V.

        Returns:
            A fitted model of kind ``"low-rank"`` with this one's history, and without stored vectors. Without an
            identity term, it is a truncated SVD of W.

        Raises:
            ValueError: If the model is not of kind ``"full"`` or ``"sparse"``, or if it has fewer words than ``dim``.

        Example::

            full = pn.SSI("full", max_terms=10_000).fit(pairs, links)
            small = full.truncated(200)
            pt.Experiment([candidates >> full, candidates >> small], topics, qrels, [AP])
        """
        self._require_fitted()
        if self.kind not in ("full", "sparse"):
            raise ValueError(f"only W of kind 'full' or 'sparse' can be truncated, not {self.kind!r}")
        terms = len(self.features.queries.vocabulary), len(self.features.documents.vocabulary)
        if checked_number("dim", dim, int, least=1) > min(terms):
            raise ValueError(f"dim={dim} is too large for {min(terms):,} words: choose dim={min(terms)} or less")
        model = copy(self)
        model.vectors = None
        model.kind, model.dim, model.embedded_terms = "low-rank", dim, max(terms)
        model.network = self.network.truncated(dim, identity=self.identity)
        model._mark_fitted()
        return model

    def symmetric_part(self) -> "SSI":
        """The symmetric model nearest to this one, with (W + W')/2 in place of W.

        It gives a query word and a document word the weight that they have on average, whichever of them is in the
        query, and so tells whether W needs to know which it is.

        Returns:
            A fitted model of the same kind with this one's history, and without stored vectors. Of kind ``"low-rank"``,
            it has twice as many rows in U and V.

        Raises:
            ValueError: If the model is not of kind ``"full"`` or ``"low-rank"``, or if queries and documents have
                vocabularies of their own.

        Example::

            ssi = pn.SSI("low-rank", dim=100).fit(pairs, links)
            pt.Experiment([candidates >> ssi, candidates >> ssi.symmetric_part()], topics, qrels, [AP])
        """
        self._require_fitted()
        if self.kind not in ("full", "low-rank"):
            raise ValueError(f"only W of kind 'full' or 'low-rank' can be made symmetric, not {self.kind!r}")
        if not self.shared_vocabulary:
            raise ValueError("W of two vocabularies cannot be symmetric: train with shared_vocabulary=True")
        model = copy(self)
        model.vectors = None
        model.network = self.network.symmetric_part()
        model.dim = model.network.shape.dim or self.dim
        model._mark_fitted()
        return model

    def represent_queries(self, texts: Sequence[str]) -> Vectors:
        """Queries as they are multiplied: Uq, and q'W for all parts of W except U'V."""
        self._require_fitted()
        return self.network.weigh_queries(*self.features.read_queries(texts))

    def represent_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> Vectors:
        """Documents as they are multiplied: Vd, and d where W has other parts than U'V."""
        self._require_fitted()
        return self.network.weigh_documents(*self.features.read_documents(sequences, vocabulary))

    def word_weights(
        self, query_words: Sequence[str] | None = None, document_words: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """A part of W: the weights of pairs of a query word and a document word.

        Args:
            query_words: Known words, in lower case; None for all.
            document_words: Known words, in lower case; None for all.

        Returns:
            Frame of float32 with the words of the query as index and the words of the document as columns.

        Raises:
            TypeError: If words are not a sequence.
            KeyError: If a word is unknown.
        """
        self._require_fitted()
        network, features = self.network, self.features
        rows = self._word_ids("queries", features.queries.vocabulary, query_words)
        columns = self._word_ids("documents", features.documents.vocabulary, document_words)
        documents = network.weigh_documents(*features.read_words("document", columns))
        weights = np.zeros((len(rows), len(columns)), dtype=np.float32)
        for start in range(0, len(rows), self.queries_per_block):
            block = slice(start, start + self.queries_per_block)
            queries = network.weigh_queries(*features.read_words("query", rows[block]))
            if queries.dense is not None:
                weights[block] += queries.dense @ documents.dense.T
            if queries.sparse is not None:
                products = queries.sparse @ documents.sparse.T
                weights[block] += products if isinstance(products, np.ndarray) else products.toarray()
        terms = features.queries.vocabulary.terms, features.documents.vocabulary.terms
        return pd.DataFrame(weights, index=[terms[0][i] for i in rows], columns=[terms[1][i] for i in columns])

    def _word_ids(self, side: str, vocabulary: Vocabulary, words: Sequence[str] | None) -> np.ndarray:
        """Numbers of words, or an error that names the first unknown one."""
        if words is None:
            return np.arange(len(vocabulary))
        if isinstance(words, str):
            raise TypeError(f"words must be a list, such as [{words!r}], not {words!r}")
        ids = vocabulary.ids(words)
        if (ids < 0).any():
            known = f"the {len(vocabulary):,} words that {self!r} knows in {side}"
            raise KeyError(f"{words[int(np.argmin(ids))]!r} is not one of {known}, all in lower case")
        return ids

    def neighbours(self, word: str, k: int = 10, side: Side = "query") -> pd.DataFrame:
        """The words of documents with the largest weights for a word of a query; or the other way round.

        Args:
            word: A known word, in lower case.
            k: Number of words; fewer if no more have a weight above 0.
            side: ``"query"`` takes the word's row of W, ``"document"`` its column.

        Returns:
            Frame with ``word`` and ``weight``, the largest first.

        Raises:
            KeyError: If the word is unknown.
        """
        if checked_choice("side", side, ("query", "document")) == "query":
            weights = self.word_weights([word]).iloc[0]
        else:
            weights = self.word_weights(None, [word]).iloc[:, 0]
        weights = weights[weights > 0].nlargest(checked_number("k", k, int, least=1))
        return pd.DataFrame({"word": weights.index, "weight": weights.to_numpy()})

    def dice_neighbours(self, text: str, k: int = 5) -> pd.DataFrame:
        """The frequent words that stand for a word or 2-gram in correlated feature hashing (Tables 7 and 8).

        Args:
            text: A hashed word, or 2-gram such as ``"star trek"``, in lower case.
            k: How many, at most.

        Returns:
            Frame with ``word`` and ``dice``, the largest first.

        Raises:
            KeyError: If it is not hashed.
            ValueError: If the model is of another kind, or if ``k`` is below 1.
        """
        k = checked_number("k", k, int, least=1)
        self._require_fitted()
        if self.features.hashing is None:
            raise ValueError(f"only kind='correlated-hash' replaces words by others, not {self.kind!r}")
        return self.features.hashing.nearest(text, self.features.documents.vocabulary, k)

    def _identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        arrays, parts = self.features.identity_parts()
        return {**arrays, **self.network.arrays()}, parts

    def _save_parts(self, directory: Path) -> None:
        write_tensors(directory / "weights.safetensors", self.network.arrays())
        self.features.save(directory)

    def _load_parts(self, directory: Path) -> None:
        arrays, self.features = read_tensors(directory / "weights.safetensors"), Features.load(directory)
        self._check_features(directory)
        shape = self._shape(len(self.features.queries.vocabulary), len(self.features.documents.vocabulary))
        if self.kind == "sparse":
            shape = replace(shape, pairs=0, starts_at_identity=False, nonzeros=max(1, len(arrays["sparse_values"])))
        self.network = Network.from_arrays(shape, arrays)

    def _check_features(self, directory: Path) -> None:
        """Raise ArtifactError unless the features are those of the settings."""
        features, hashing = self.features, self.features.hashing
        found = features.shared, hashing is not None, features.documents.sublinear_tf
        if found != (self.shared_vocabulary, self.kind == "correlated-hash", self.sublinear_tf):
            raise ArtifactError(
                f"{directory / 'features.json'} is damaged: it does not fit the settings in config.json"
            )
        frequent = min(self.embedded_terms, len(features.documents.vocabulary))
        found = hashing and (hashing.frequent, hashing.ngrams, hashing.words)
        if hashing is not None and found != (frequent, self.ngrams, self.hashed_words):
            raise ArtifactError(f"{directory / 'hashing'} is damaged: it does not fit the vocabulary and the settings")

    def __repr__(self) -> str:
        return f"SSI({self.kind!r}{f', dim={self.dim}' if self.kind in WITH_VECTORS else ''})"


def _checked_identity(kind: str, *, shared_vocabulary: bool, identity: bool | None) -> bool:
    """Whether W has an identity term; ValueError if the kind needs what is switched off."""
    if kind in OF_ONE_VOCABULARY and not shared_vocabulary:
        raise ValueError(
            f"kind={kind!r} compares equal words, which queries and documents of two vocabularies do not have; "
            "choose kind='low-rank'"
        )
    if identity and not shared_vocabulary:
        raise ValueError("the identity matches equal words, which two vocabularies do not have: leave identity out")
    if kind in ("diagonal", "low-rank-diagonal") and identity is False:
        raise ValueError(f"kind={kind!r} has a diagonal; without one choose kind='low-rank', identity=False")
    if kind == "off-diagonal" and identity:
        raise ValueError(f"kind={kind!r} has no diagonal, and so no identity; for one choose kind='full'")
    return shared_vocabulary and kind != "off-diagonal" if identity is None else bool(identity)


def _affordable(query_terms: int, document_terms: int) -> int:
    weights = query_terms * document_terms
    if weights > MOST_WEIGHTS:
        raise ValueError(
            f"W of {query_terms:,} by {document_terms:,} words would take {4 * weights / 1e9:,.1f} GB, and "
            f"{4 * MOST_WEIGHTS / 1e9:.1f} are the most: give max_terms={int(MOST_WEIGHTS**0.5):,} or fewer, or choose "
            "kind='low-rank' or 'hash'"
        )
    return weights


def _check_training(training: Training) -> None:
    changed = [name for name, values in ACCEPTED_TRAINING.items() if getattr(training, name) not in values]
    if changed:
        needed = ", ".join(f"{name}={ACCEPTED_TRAINING[name][0]!r}" for name in changed)
        raise ValueError(f"SSI makes the steps of its paper, one tuple at a time, and needs Training({needed})")


def _check_monolingual(kind: str, monolingual: Any, own_queries: bool) -> None:
    if monolingual is None:
        if own_queries:
            raise ValueError("own_queries=True is about monolingual tuples: give monolingual=(candidates, qrels)")
        return
    if kind != "low-rank":
        raise ValueError(f"monolingual tuples share V, which kind={kind!r} does not have: choose 'low-rank'")
    pair = isinstance(monolingual, tuple | list) and len(monolingual) == 2
    if not pair or not all(isinstance(frame, pd.DataFrame) for frame in monolingual):
        raise TypeError("monolingual must be a pair of frames, (candidates, qrels), as fit takes them")
