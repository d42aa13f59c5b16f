"""The rankers of the SSI paper's tables, each as a re-ranker and as a retriever."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

import pt_neural as pn
from pipelines.common.trained import ModelSpec, TrainedModels
from pipelines.common.workspace import Workspace
from pipelines.ssi.evaluation import Ranker, completed
from pipelines.ssi.task import LinkTask
from pt_neural._evaluation import RunEvaluator
from pt_neural.experiment import RankLoss
from pt_neural.models.ssi.features import HashedWords, Ngrams
from pt_neural.models.ssi.ssi import WITH_VECTORS

BETAS, FEEDBACK_DOCS = (0.25, 0.5, 1.0), (2, 5, 10, 20)
FEEDBACK_QUERIES = 50  # dev queries, with all documents ranked, to choose Rocchio's settings
ALPHAS = 51
NEGATIVES = 8  # random ones per link in each epoch
LESS = 0.25  # the share of the links or mates to train on, to see whether more of them help
PAIR_KINDS = ("full", "off-diagonal", "sparse", "hash")  # kinds of W that weigh pairs of words


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        key: The corresponding row of the paper.
        name: Its name in the table.
        system: A name that is unique among all tables.
        parameters: The number of parameters, as text.
        rankers: The ranker of each seed.
    """

    key: str
    name: str
    system: str
    parameters: str
    rankers: dict[int, Ranker]


def over_vectors(model: Any) -> Ranker:
    """A model with stored vectors."""
    return Ranker(model, lambda number: model.retriever(model.vectors, num_results=number))


class Rankers(TrainedModels):
    """The rankers of the paper for one task; those that are trained learn from its training links.

    Args:
        workspace: Where artifacts are.
        arguments: The arguments of the pipeline.
        task: The queries and links.
        about: Distinguishes the task in the names of systems, such as ``", k = 10"``.
    """

    dev_measure = RankLoss
    pairs = "links"  # what the rankers learn from

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace, task: LinkTask, about: str = ""):
        super().__init__(workspace, arguments)
        self.task, self.about = task, about

    @cached_property
    def examples(self) -> list[pd.DataFrame]:
        """Linked pairs of train, and the candidates of dev."""
        return self.task.examples(self.arguments.dev_documents)

    @property
    def dev_candidates(self) -> pd.DataFrame:
        """The linked documents of dev queries, and random ones."""
        return self.examples[2]

    def words(self, limit: int | None) -> int:
        """D, the size of the dictionary."""
        known = len(self.documents.vocabulary)
        return known if limit is None else min(limit, known)

    def _row(self, key: str, name: str, limit: int | None, parameters: str, rankers: dict[int, Ranker]) -> Row:
        name = f"{name}, {self.words(limit):,} words"
        return Row(key, name, f"{name}{self.about}", parameters, rankers)

    def _once(self, ranker: Ranker) -> dict[int, Ranker]:
        return {self.arguments.seed: ranker}

    def tfidf(self, limit: int | None) -> Row:
        """The cosine of tf-idf vectors."""
        return self._row("tfidf", "TFIDF", limit, "0", self._once(over_vectors(self._tfidf(limit))))

    def _tfidf(self, limit: int | None) -> pn.TFIDF:
        return self.workspace.tfidf(self.arguments.fields, limit)

    def qe(self, limit: int | None) -> Row:
        """Query expansion, with the settings of the smallest rank loss on dev queries over all documents."""
        tfidf = self._tfidf(limit)
        dev = self.task.collection.dev.sample(FEEDBACK_QUERIES, self.arguments.seed)
        docnos, excluded = self.task.docnos, self.task.excluded(dev)
        losses = {}
        for beta, number in product(BETAS, FEEDBACK_DOCS):
            rocchio = pn.Rocchio(tfidf, beta=beta, feedback_docs=number)
            run = rocchio.retriever(tfidf.vectors, num_results=len(docnos)).transform(dev.topics)
            losses[rocchio] = self.loss(completed(run, dev.topics, docnos, excluded), dev.qrels)
        best = min(losses, key=losses.get)
        name = f"QE, beta = {best.beta:g}, E = {best.feedback_docs}"
        ranker = Ranker(best, lambda number: best.retriever(tfidf.vectors, num_results=number))
        return self._row("qe", name, limit, "2", self._once(ranker))

    def loss(self, run: pd.DataFrame, qrels: pd.DataFrame) -> float:
        """Mean rank loss of a run."""
        return float(RunEvaluator(run, qrels, run["qid"].unique(), RankLoss)(run["score"].to_numpy()).mean())

    def lsa(self, limit: int | None) -> Row:
        """LSA with the dimensions of the smallest rank loss on dev queries."""
        models = [self._lsa(dim, limit) for dim in self.arguments.lsa_dims]
        losses = [self.loss(model.transform(self.dev_candidates), self.task.collection.dev.qrels) for model in models]
        lsa = models[int(np.argmin(losses))]
        parameters = f"{lsa.dim} × {self.words(limit):,}"
        return self._row("lsa", f"LSA, {lsa.dim} dimensions", limit, parameters, self._once(over_vectors(lsa)))

    def _lsa(self, dim: int, limit: int | None) -> pn.LSA:
        return self.workspace.lsa(dim, self.arguments.seed, self.arguments.fields, limit)

    def mixture(self, limit: int | None, lsa_limit: int | None) -> Row:
        """LSA and TFIDF mixed, with the alpha and the dimensions of the smallest rank loss on dev queries.

        Args:
            limit: Words of TFIDF.
            lsa_limit: Words of LSA.
        """
        tfidf = over_vectors(self._tfidf(limit))
        models = [self._lsa(dim, lsa_limit) for dim in self.arguments.lsa_dims]
        mixed = [self.mixed(over_vectors(model), tfidf) for model in models]
        lsa, (ranker, alpha, _) = min(zip(models, mixed, strict=True), key=lambda pair: pair[1][2])
        words = "" if limit == lsa_limit else f" of {self.words(lsa_limit):,} words"
        name = f"{alpha:g} LSA{words} + {1 - alpha:g} TFIDF, {lsa.dim} dimensions"
        return self._row("mixture", name, limit, f"{lsa.dim} × {self.words(lsa_limit):,} + 1", self._once(ranker))

    def mixed(self, a: Ranker, b: Ranker, normalise: str | None = None) -> tuple[Ranker, float, float]:
        """A mixture with the alpha of the smallest rank loss on dev queries; alpha; and that loss.

        Its retriever scores all documents by both sides. A mixture of two retrievers would not do, since normalised
        scores depend on the documents that a side returns.
        """
        mixture, dev = pn.Mixture(a.reranker, b.reranker, normalise=normalise), self.task.collection.dev
        curve = pn.tune_alpha(mixture, self.dev_candidates, dev.qrels, RankLoss, points=ALPHAS)
        everything = pt.apply.generic(lambda topics: topics.merge(self.task.docnos.to_frame(name="docno"), how="cross"))
        ranker = Ranker(mixture, lambda number: everything >> mixture % number)
        return ranker, curve.alpha, curve.per_query.loc[curve.alpha].mean()

    def ssi(
        self,
        key: str,
        name: str,
        parameters: str,
        kind: str,
        limit: int | None,
        *,
        monolingual: Sequence[pd.DataFrame] | None = None,
        **options: Any,
    ) -> Row:
        """SSI, trained once for each seed.

        Args:
            key: The corresponding row of the paper.
            name: Its name in the table.
            parameters: The number of parameters, as text.
            kind: The kind of W.
            limit: Words of the dictionary.
            monolingual: Pairs and links in the language of the documents, to train on alternately.
            **options: Other settings of the model.
        """
        arguments = self.arguments
        training = {"patience": arguments.patience, "num_negatives": NEGATIVES}
        training |= {"dev_measure": arguments.dev_measure, "dev_queries": arguments.dev_queries}
        if kind in PAIR_KINDS:
            training["epochs"] = arguments.pair_epochs
        rates = dict.fromkeys(PAIR_KINDS, arguments.pair_rate) | dict.fromkeys(WITH_VECTORS, arguments.vector_rate)
        if (rate := rates.get(kind)) is not None:
            training["learning_rate"], name = rate, f"{name}, learning rate {rate:g}"
        options = {"kind": kind, "max_terms": limit, **options}
        row = self._row(key, f"SSI: {name}{arguments.name_note}", limit, parameters, {})
        fitting = {} if monolingual is None else {"monolingual": monolingual}
        models = self.trained(ModelSpec(row.system, pn.SSI, training, options, fitting))
        return Row(row.key, row.name, row.system, parameters, {seed: over_vectors(m) for seed, m in models.items()})

    def low_rank(self, limit: int | None, dim: int | None = None, *, kind: str = "low-rank", key: str = "") -> Row:
        """U'V + I, or U'U + I with ``kind="symmetric"``, with columns for every word of the dictionary."""
        dim = dim or self.arguments.dim
        matrices, name = (1, "W = U'U + I") if kind == "symmetric" else (2, "W = U'V + I")
        parameters = f"{matrices * dim} × {self.words(limit):,}"
        options = {"dim": dim, "embedded_terms": self.words(limit)}
        return self.ssi(key or kind, f"{name}, N = {dim}", parameters, kind, limit, **options)

    def full(self, limit: int | None) -> Row:
        """W unconstrained."""
        return self.ssi("full", "W unconstrained", f"{self.words(limit):,}²", "full", limit)

    def sparse(self, limit: int | None, number: int) -> Row:
        """Sparse W with a number of weights a row."""
        name, parameters = f"sparse W, {number:,} a row", f"{number:,} × {self.words(limit):,}"
        return self.ssi(f"sparse-{number}", name, parameters, "sparse", limit, nonzeros=number)

    @cached_property
    def with_fewer(self) -> "Rankers":
        """The same rankers, but trained on a quarter of the links."""
        about = f"{self.about}{self._less}"
        rankers = type(self)(self.workspace, self.arguments, self.task.with_share(LESS), about)
        rankers.models = self.models
        return rankers

    @property
    def _less(self) -> str:
        return f", {LESS:.0%} of the {self.pairs}"

    def fewer(self, make: Callable[..., Row], *arguments: Any, **options: Any) -> Row:
        """A row that ``with_fewer`` makes, marked as such in its key and its name."""
        row, number = make(*arguments, **options), len(self.with_fewer.task.collection.train.qrels)
        return replace(row, key=f"{row.key}-quarter", name=f"{row.name}, {number:,} {self.pairs}")

    def truncated(self, make: Callable[..., Row], limit: int | None, *arguments: Any, dim: int) -> Row:
        """A row that ``full`` or ``sparse`` makes, with the nearest U'V + I in place of its trained W."""
        row = replace(make(limit, *arguments), parameters=f"{2 * dim} × {self.words(limit):,}")
        return self._changed(row, f"truncated-{dim}", f"truncated to N = {dim}", lambda model: model.truncated(dim))

    def symmetric_part(self, make: Callable[..., Row], limit: int | None) -> Row:
        """A row that ``full`` or ``low_rank`` makes, with (W + W')/2 in place of its trained W."""
        return self._changed(make(limit), "symmetric-part", "its symmetric part", pn.SSI.symmetric_part)

    def _changed(self, row: Row, key: str, about: str, change: Callable[[pn.SSI], pn.SSI]) -> Row:
        """A row with its trained models changed."""

        def changed(model: pn.SSI) -> Ranker:
            def build(path: Path) -> None:
                change(model).save(path)

            name = f"{model.artifact_format}-{model.fingerprint()[:12]}-{key}"
            return over_vectors(self.workspace.over_vectors(name, build, pn.SSI.load, self.documents))

        rankers = {seed: changed(ranker.reranker) for seed, ranker in row.rankers.items()}
        names = {"name": f"{row.name}, {about}", "system": f"{row.system}, {about}"}
        return replace(row, key=f"{row.key}-{key}", **names, rankers=rankers)

    def learning_curve(self, dim: int, share: float) -> pd.DataFrame:
        """Figure 2: the epochs of training on a share of the links, without early stopping.

        Returns:
            Frame with the number of ``tuples`` seen, the mean training ``loss``, and the dev rank loss.
        """
        limit, epochs = self.arguments.max_terms, round(self.arguments.figure_epochs / share**0.5)
        training = {"patience": None, "num_negatives": NEGATIVES, "epochs": epochs}
        options = {"dim": dim, "max_terms": limit, "embedded_terms": self.words(limit)}
        name = f"SSI: W = U'V + I, N = {dim}, {epochs} epochs{self.about}"
        histories = [model.history for model in self.trained(ModelSpec(name, pn.SSI, training, options)).values()]
        frame = sum(history[["loss", f"dev {RankLoss}"]] for history in histories) / len(histories)
        links = min(len(self.task.collection.train.qrels), self.arguments.groups or sys.maxsize)
        return frame.assign(tuples=histories[0]["epoch"] * links * NEGATIVES)

    def embedded(self, key: str, number: int, dim: int | None = None) -> Row:
        """(U'V)_n + I: columns in U and V for the n most frequent words only."""
        dim, number = dim or self.arguments.dim, min(number, self.words(None))
        name, parameters = f"W = (U'V)_n + I, n = {number:,}, N = {dim}", f"{2 * dim} × {number:,}"
        return self.ssi(key, name, parameters, "low-rank", None, dim=dim, embedded_terms=number)

    def correlated(self, ngrams: Ngrams, hashed_words: HashedWords = "all") -> Row:
        """Correlated feature hashing of words, of 2-grams, or of both; of all words, or of the rarer ones."""
        dim, number = self.arguments.correlated_dim, min(self.arguments.frequent_terms, self.words(None))
        what = f"{ngrams}-grams" if hashed_words == "all" else "other words"
        name, parameters = f"CFH ({what}), n = {number:,}, N = {dim}", f"{4 * dim} × {number:,} + 1"
        options = {"dim": dim, "embedded_terms": number, "ngrams": ngrams, "hashed_words": hashed_words}
        key = f"correlated-{ngrams if hashed_words == 'all' else hashed_words}"
        return self.ssi(key, name, parameters, "correlated-hash", None, **options)


def millions(number: int) -> str:
    """A number as the paper writes it: ``3M``."""
    return f"{number / 1e6:g}M" if number >= 100_000 else f"{number:,}"
