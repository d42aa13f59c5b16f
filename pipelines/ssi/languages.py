"""Queries in a language other than the documents': Tables 9 and 10 of the SSI paper."""

import argparse
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import coo_array

import pt_neural as pn
from pipelines.common.collection import SPLITS, Collection, Split
from pipelines.common.workspace import Workspace
from pipelines.ssi.evaluation import Ranker
from pipelines.ssi.rankers import LESS, Rankers, Row, over_vectors
from pipelines.ssi.tables import Makers
from pipelines.ssi.task import LinkTask, page_texts
from pt_neural.text import tokenise


@dataclass(frozen=True)
class Languages:
    """A task whose queries are translations of pages of the collection, their mates.

    Attributes:
        task: The queries in their own language; the mate of a query is a candidate only if the task is to find it.
        english: The same with the text of each query's mate, which stands for a perfect translation.
        mates: Training queries with the text of their mates: ``qid, query, mate``.
        finding: Whether the task is to find the mates.
    """

    task: LinkTask
    english: LinkTask
    mates: pd.DataFrame
    finding: bool

    def with_share(self, share: float) -> "Languages":
        """The same with a share of the training pairs, drawn at random, and only the mates of their queries."""
        task, english = self.task.with_share(share), self.english.with_share(share)
        kept = self.mates["qid"].isin(task.collection.train.topics["qid"])
        return replace(self, task=task, english=english, mates=self.mates[kept])

    @classmethod
    def of(
        cls, workspace: Workspace, arguments: argparse.Namespace, task: LinkTask, mates: Collection | None
    ) -> "Languages":
        """The languages of a task; the judgements of another dataset are the mates, or else the task's own."""
        finding, source = mates is None, mates or task.collection
        splits = [split for split in (getattr(source, name) for name in SPLITS) if split is not None]
        judged = pd.concat([split.qrels for split in splits]).drop_duplicates("qid")
        pages = page_texts(workspace.documents())
        texts = judged.set_index("qid")["docno"].map(pages).dropna().to_dict()
        if not finding:
            task = LinkTask.of(task.collection, task.docnos, task.seed, judged)
        task = task.sample(arguments.queries)
        return cls(task, task.with_texts(texts), with_mates(source.train, texts), finding)


def with_mates(train: Split | None, texts: Mapping[str, str]) -> pd.DataFrame:
    """The training queries that have a mate, with its text."""
    if train is None:
        raise SystemExit("the dataset of --mates has no split named train, which CL-LSA is fitted on")
    frame = train.topics.assign(mate=train.topics["qid"].map(texts))
    return frame[frame["mate"].notna()][["qid", "query", "mate"]]


class LanguageRankers(Rankers):
    """The rankers of Tables 9 and 10.

    Args:
        workspace: Where artifacts are.
        arguments: The arguments of the pipeline.
        languages: The task.
        about: Distinguishes the task in the names of systems.
    """

    def __init__(self, workspace: Workspace, arguments: argparse.Namespace, languages: Languages, about: str = ""):
        super().__init__(workspace, arguments, languages.task, f", across languages{about}")
        self.languages = languages
        self.pairs = "mates" if languages.finding else "links"
        self._english = Rankers(workspace, arguments, languages.english, f", English mates{about}")
        self._english.models = self.models

    def table(self, limit: int | None, *, finding: bool) -> Makers:
        """The rows of a table.

        Args:
            limit: Words of each dictionary; None for all.
            finding: Whether the task is to find the mates; rankers that know them are then left out.
        """
        english, few, by_words = self._english, self.with_fewer, partial(self._by_words, "")
        if finding:
            yield "cl-lsa", partial(self.cl_lsa, limit)
            yield "cross", partial(self.cross, limit)
            yield "cl-lsa-quarter", partial(self.fewer, few.cl_lsa, limit)
            yield "cross-quarter", partial(self.fewer, few.cross, limit)
            return
        lsa_limit = limit or self.arguments.frequent_terms
        yield "tfidf", lambda: self._translated(english.tfidf(limit))
        if limit:
            yield "words", lambda: self._by_words("words", english.tfidf(limit))
            yield "lsa", lambda: self._translated(english.lsa(limit))
            yield "words-lsa", lambda: self._by_words("words-lsa", english.lsa(limit))
        yield "mixture", lambda: self._translated(english.mixture(limit, lsa_limit))
        if limit:
            yield "cl-lsa", partial(self.cl_lsa, limit)
            key = "cl-lsa+tfidf"
            yield key, lambda: self._mixed(key, self.cl_lsa(limit), self._translated(english.tfidf(limit)))
        yield "english", lambda: self._translated(english.low_rank(limit, key="english"))
        if limit:
            yield "words-english", lambda: self._by_words("words-english", english.low_rank(limit))
        yield "cross", partial(self.cross, limit)
        yield "regularised", partial(self.cross, limit, regularised=True)
        yield "cross+tfidf", lambda: self._cross_mixed("tfidf", limit, self._translated(english.tfidf(limit)))
        yield "cross+english", lambda: self._cross_mixed("english", limit, self._translated(english.low_rank(limit)))
        if limit:
            yield "cross+words", lambda: self._cross_mixed("words", limit, by_words(english.tfidf(limit)))
            yield (
                "cross+words-english",
                lambda: self._cross_mixed("words-english", limit, by_words(english.low_rank(limit))),
            )
            yield "cl-lsa-quarter", partial(self.fewer, few.cl_lsa, limit)
            few_english = partial(few._english.low_rank, limit, key="english")
            yield "english-quarter", lambda: self.fewer(lambda: self._translated(few_english()))
            yield "cross-quarter", partial(self.fewer, few.cross, limit)

    @cached_property
    def with_fewer(self) -> "LanguageRankers":
        """The same rankers, but trained on a quarter of the links or mates."""
        rankers = LanguageRankers(self.workspace, self.arguments, self.languages.with_share(LESS), self._less)
        rankers.models = rankers._english.models = self.models
        return rankers

    def cl_lsa(self, limit: int | None) -> Row:
        """LSA of queries joined with their mates (CL-LSI), with the dimensions of the smallest dev rank loss."""
        models = [self._cl_lsa(dim, limit) for dim in self.arguments.lsa_dims]
        losses = [self.loss(model.transform(self.dev_candidates), self.task.collection.dev.qrels) for model in models]
        lsa = models[int(np.argmin(losses))]
        parameters = f"{lsa.dim} × {len(lsa.vocabulary):,}"
        return self._row("cl-lsa", f"CL-LSA, {lsa.dim} dimensions", limit, parameters, self._once(over_vectors(lsa)))

    def _cl_lsa(self, dim: int, limit: int | None) -> pn.LSA:
        mates, fields = self.languages.mates, self.documents.fields
        texts = mates["query"] + " " + mates["mate"]
        corpus = pd.DataFrame({"docno": mates["qid"], fields[0]: texts})
        options = {"seed": self.arguments.seed, "max_terms": limit and 2 * limit, "fields": fields}
        digest = hashlib.sha256(f"{options} {texts.to_list()}".encode()).hexdigest()[:12]
        return self.workspace.over_vectors(
            f"cl-lsa-dim{dim}-{digest}",
            lambda path: pn.LSA(dim, **options).fit_corpus(corpus).save(path),
            pn.LSA.load,
            self.documents,
        )

    def cross(self, limit: int | None, *, regularised: bool = False) -> Row:
        """SSI with separate vocabularies for queries and documents (equation 9).

        Args:
            limit: Words of each dictionary; None for all.
            regularised: Whether it also learns from the English mates of the training queries (equation 10).
        """
        dim, words = self.arguments.dim, self.words(limit)
        options = {"dim": dim, "embedded_terms": words, "shared_vocabulary": False}
        parameters = f"{dim} × (words of queries + {words:,})"
        if regularised:
            options["monolingual"] = self._english.examples[:2]
        key, note = ("regularised", ", with V'V on mates") if regularised else ("cross", "")
        name = f"W = U'V across languages{note}, N = {dim}"
        return self.ssi(key, name, parameters, "low-rank", limit, **options)

    def _cross_mixed(self, name: str, limit: int | None, b: Row) -> Row:
        return self._mixed(f"cross+{name}", self.cross(limit), b)

    def _mixed(self, key: str, a: Row, b: Row) -> Row:
        """A mixture of a ranker across languages and one of translated queries, with the same seeds."""
        mixed = {
            # The scores of a W without I are not on the scale of cosines.
            seed: self.mixed(ranker, b.rankers.get(seed, next(iter(b.rankers.values()))), "zscore")
            for seed, ranker in a.rankers.items()
        }
        alphas = ", ".join(f"{alpha:g}" for _, alpha, _ in mixed.values())
        row = replace(b, key=key, name=f"{a.name} + {b.name}, alpha = {alphas}", parameters="")
        return replace(row, system=f"{row.name}, {a.system}", rankers={seed: r for seed, (r, _, _) in mixed.items()})

    def _translated(self, row: Row) -> Row:
        """The row with rankers that read the English mates of the queries in their place."""
        texts = pd.concat(getattr(self.languages.english.collection, name).topics for name in SPLITS)
        mates = texts.drop_duplicates("qid").set_index("qid")["query"]
        swap = pt.apply.generic(lambda frame: frame.assign(query=frame["qid"].map(mates)))
        return replace(row, name=f"{row.name} (English mates)", rankers=_after(swap, row.rankers))

    def _by_words(self, key: str, row: Row) -> Row:
        """The row with rankers that read the queries translated word by word, with a dictionary made from the mates."""
        note, translate = "translated by words", pt.apply.generic(self._translate)
        rankers = _after(translate, row.rankers)
        return replace(row, key=key, name=f"{row.name} ({note})", system=f"{row.system}, {note}", rankers=rankers)

    def _translate(self, frame: pd.DataFrame) -> pd.DataFrame:
        english = {query: self._in_english(query) for query in frame["query"].unique()}
        return frame.assign(query=frame["query"].map(english))

    def _in_english(self, text: str) -> str:
        return " ".join(self._dictionary.get(word, word) for word in tokenise(text))

    @cached_property
    def _dictionary(self) -> dict[str, str]:
        """The most probable English word for each word of the mates' other language, by IBM Model 1."""
        mates = self.languages.mates.rename(columns={"query": "text", "mate": "query"})
        pairs = mates.assign(docno=mates["qid"])  # an English query, and the same page in the other language
        model = pn.WordTranslation(top=1, self_translation=0.0, fields="text", verbose=False)
        model.fit(pairs, pairs[["qid", "docno"]].assign(label=1))
        best = coo_array(model.table)  # columns are of the words to translate
        terms = model.vocabulary.terms
        return {terms[word]: terms[english] for english, word in zip(best.row, best.col, strict=True)}


def _after(change: pt.Transformer, rankers: Mapping[int, Ranker]) -> dict[int, Ranker]:
    """Rankers that read queries which a transformer has changed."""

    def changed(ranker: Ranker) -> Ranker:
        return Ranker(change >> ranker.reranker, lambda number: change >> ranker.retriever(number))

    return {seed: changed(ranker) for seed, ranker in rankers.items()}
