"""The function that explains any model's score."""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.explain.comparison import compare
from pt_neural.explain.explanation import Document, Explanation, TextExplanation
from pt_neural.rankers.mixture import Mixture
from pt_neural.rankers.retriever import Retriever
from pt_neural.text import ForwardIndex

Method = Callable[..., Explanation]

_DROP_TERMS = {"drop": "dropping.explain_terms"}
_DROP_OCCURRENCES = {"drop": "dropping.explain_occurrences"}
_LUCENE = {"terms": "models.lucene.explain_lucene"}
_MATCHES = {"matches": "models.matches.explain_matches"}

# The explanations of each kind of model, by the name of its class or of its nearest base class here; the default method
# comes first. They are functions of this package, imported when they are called.
EXPLANATIONS: dict[str, dict[str, str]] = {
    "DESM": {"similarity": "models.desm.explain_desm", **_DROP_TERMS},
    "CLSM": {"max-pooling": "models.clsm.explain_clsm", **_DROP_TERMS},
    "SSI": {"word-pairs": "models.word_pairs.explain_word_pairs", **_DROP_TERMS},
    "TFIDF": {"word-pairs": "models.word_pairs.explain_word_pairs", **_DROP_TERMS},
    "PhraseTranslation": _DROP_TERMS,
    "LanguageModelRanker": {"likelihood": "models.likelihood.explain_likelihood", **_DROP_TERMS},
    "RepresentationRanker": _DROP_TERMS,
    "MatchTensorRanker": {
        "match-tensor": "models.match_tensor.explain_match_tensor",
        **_DROP_OCCURRENCES,
        **_MATCHES,
    },
    "ARCI": {"words": "models.text_vectors.explain_words", **_DROP_OCCURRENCES, **_MATCHES},
    "MatchingRanker": {
        "interaction": "models.interaction.explain_interaction",
        **_DROP_OCCURRENCES,
        **_MATCHES,
    },
    "InteractionRanker": {**_DROP_OCCURRENCES, **_MATCHES},
    "BM25": _LUCENE,
    "QL": _LUCENE,
    "SDM": _LUCENE,
    "Mixture": {"drop": "models.mixture.explain_mixture"},
    "Rocchio": {"expansion": "models.expansion.explain_rocchio"},
    "LatentConceptExpansion": {"expansion": "models.expansion.explain_concepts"},
}
NO_TEXT: Any = object()  # None is an empty text
NOT_TEXT = re.compile(r"qid|query(_\d+)?|docno|docid|name|iteration")  # PyTerrier's columns of strings; name is a run's


def explain(
    model: pt.Transformer | Sequence[pt.Transformer] | Mapping[str, pt.Transformer],
    query: str | Mapping[str, Any] | pd.Series | pd.DataFrame,
    text: Document | Sequence[Document] = NO_TEXT,
    *,
    docno: str | None = None,
    index: Any = None,
    method: str | None = None,
    **options: object,
) -> Explanation:
    """Explain why a model gives a document its score for a query, or how it expands the query.

    The document is given by its text, by its ``docno``, or, with its query, as a row of a result frame. The model may
    be a pipeline: it runs for the query, and its last ranker is explained, for the document that comes first unless you
    name another.

    The methods depend on the model:

    - ``"terms"``, BM25, QL and SDM: what each term of the query adds, with its tf, its idf and the document's length;
      see :func:`~pt_neural.explain.models.lucene.explain_lucene`.
    - ``"similarity"``, DESM: how close each word of the document is to the query; see
      :func:`~pt_neural.explain.models.desm.explain_desm` (option ``threshold``).
    - ``"max-pooling"``, CLSM: which words win the max pooling at the neurons that are most active in query and
      document; see :func:`~pt_neural.explain.models.clsm.explain_clsm` (option ``neurons``).
    - ``"match-tensor"``, MatchTensor and MatchTensorSSM: which cells and channels of the match tensor made the score,
      as a heat map of query words by document words; see
      :func:`~pt_neural.explain.models.match_tensor.explain_match_tensor`.
    - ``"interaction"``, KNRM, ConvKNRM, TK, MatchPyramid, PACRR, ARCII, DRMMTKS, MVLSTM, POSITDRMM and ANMM: what each
      pair of a query word and a document word adds to the score, as a heat map, and the soft matches of each kernel;
      see :func:`~pt_neural.explain.models.interaction.explain_interaction`.
    - ``"words"``, ARCI: what each word of the query and of the document adds to the score; see
      :func:`~pt_neural.explain.models.text_vectors.explain_words`.
    - ``"word-pairs"``, SSI and TFIDF: what each pair of a query word and a document word adds to the score, as a heat
      map and a list of the strongest pairs; see
      :func:`~pt_neural.explain.models.word_pairs.explain_word_pairs` (option ``pairs``).
    - ``"likelihood"``, PLSA, LDA, BLTM and WordTranslation: how probable the document makes each word of the query,
      and which words or topics of the document make it so; see
      :func:`~pt_neural.explain.models.likelihood.explain_likelihood` (option ``sources``).
    - ``"drop"``, all rankers: how the score changes without a word. For rankers that represent query and document
      separately, all occurrences of a term are dropped at once; see :func:`~pt_neural.explain.dropping.explain_terms`.
      For interaction rankers, which know positions, and SSM with attention, one occurrence is dropped at a time, and a
      Duet's local and distributed model are explained side by side; see
      :func:`~pt_neural.explain.dropping.explain_occurrences` (both: option ``terms``).
    - ``"matches"``, interaction rankers such as the Duet: where the terms of the query stand in one or several
      documents; see :func:`~pt_neural.explain.models.matches.explain_matches` (option ``labels``).

    ``"drop"`` explains a mixture by the shares that both sides, and their words, have in the score; see
    :func:`~pt_neural.explain.models.mixture.explain_mixture` (options ``incoming`` and ``terms``).

    ``"expansion"`` explains Rocchio and LatentConceptExpansion, which expand queries, by the terms that they add; see
    :func:`~pt_neural.explain.models.expansion.explain_rocchio` and
    :func:`~pt_neural.explain.models.expansion.explain_concepts`.

    Several models are compared on one document, each by its default explanation or all by the given ``method``;
    ``method="drop"`` explains all of them in the same way. Contributions are scaled to shares.

    Args:
        model: A fitted ranker of pt_neural or your own subclass (``"matches"`` needs no fitting), a retriever, or a
            pipeline that has one; or several, in a list or by names of your own.
        query: The query's text; or a row of a result frame, with ``query``, ``docno`` and, unless the text is found by
            docno, the fields of the text. A mixture with an incoming score takes it from the row's ``score``: give the
            row that goes into the mixture. ``"matches"`` takes a frame of several rows, too.
        text: The document's text, or a dict of its fields, which lets ``"match-tensor"`` see where each field ends; for
            ``"matches"`` and Rocchio also a list of documents. Anything else, such as None or NaN, is an empty text.
            LatentConceptExpansion takes no text, and retrievers and pipelines need none.
        docno: The document, in place of its text. A ranker finds the text in ``index`` or in its own ``documents``.
        index: A :class:`~pt_neural.LuceneIndex` or a :class:`~pt_neural.ForwardIndex` with the document.
        method: How to explain; by default the first of the methods above that the model has.
        **options: Options of the method.

    Returns:
        An explanation: shaded text in a notebook, a frame by ``.to_frame()``, what each word contributes by
        ``.by_word()``, a figure by ``.plot()``; with ``.model``, ``.query``, ``.text`` and ``.score``. Several models
        give :class:`~pt_neural.explain.ComparedExplanations`.

    Raises:
        TypeError: If the model cannot be explained, if there is no document, or if there are several for a method that
            takes one.
        ValueError: If the model has no such method, if there is no model, or if the document is not in the index or
            not among a pipeline's results.

    Example::

        pn.explain(clsm, "pairwise distance", text)
        pn.explain(clsm, "pairwise distance", text, neurons=10).plot()
        pn.explain(clsm, "pairwise distance", text, method="drop").to_frame().head()
        pn.explain(clsm, results.iloc[0])
        pn.explain(clsm, "pairwise distance", docno="scipy.spatial.distance.pdist", index=index)
        pn.explain(index.bm25(), "pairwise distance", docno="scipy.spatial.distance.pdist").to_frame()
        pn.explain(bm25 >> index.text_loader() >> pn.Mixture(clsm, alpha=0.4), "pairwise distance").plot()
        pn.explain([dssm, clsm], "pairwise distance", text, method="drop").plot()
        pn.explain({"one word": narrow, "three words": wide}, "pairwise distance", text).to_frame()
        pn.explain(pn.Mixture(desm, alpha=0.4), "pairwise distance", text, incoming=row["score"]).sides
        pn.explain(pn.LatentConceptExpansion(index), "pairwise distance").plot()
        pn.explain(match_tensor, "pairwise distance", {"title": title, "text": text}).plot()
        pn.explain(ssi, "pairwise distance", text).to_frame().head()
        pn.explain(duet, "pairwise distance", [text, other], method="matches", labels=[1, 0]).plot()
        pn.explain(duet, results.head(3), method="matches").plot()
    """
    if isinstance(model, Mapping | list | tuple):
        again = partial(explain, query=query, text=text, docno=docno, index=index, method=method, **options)
        return compare(model, again)
    asked = _Asked.of(model, query, text, docno, index)
    if isinstance(model, pt.Compose) or _retrieves(model, asked):
        return _explain_pipeline(model, asked, method, options)
    return _explain_ranker(model, asked, method, options)


@dataclass(frozen=True)
class _Asked:
    """The query and the document of an explanation.

    Attributes:
        query: The query's text.
        text: The document's text or fields, or several; NO_TEXT if it is not known.
        docno: The document, None if it is not known; several for several rows.
        index: Where texts are found.
        row: The columns of the row that was given.
    """

    query: Any
    text: Any
    docno: Any = None
    index: Any = None
    row: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: pt.Transformer, query: Any, text: Any, docno: str | None, index: Any) -> "_Asked":
        """What was asked, from the arguments of :func:`explain`."""
        if isinstance(query, pd.DataFrame) and len(query) != 1:
            return cls._of_rows(model, query, index)
        if isinstance(query, pd.DataFrame):
            query = query.iloc[0]
        if not isinstance(query, Mapping | pd.Series):
            return cls(query, text, docno, index)
        row = dict(query)
        if "query" not in row:
            raise TypeError(f"a row of a result frame has a column query; this one has {', '.join(map(str, row))}")
        text = _text_in(row, model) if text is NO_TEXT else text
        return cls(row["query"], text, docno or row.get("docno"), index, row)

    @classmethod
    def _of_rows(cls, model: pt.Transformer, rows: pd.DataFrame, index: Any) -> "_Asked":
        if "query" not in rows or len(set(rows["query"])) != 1:
            raise TypeError("give a row of a result frame, or several rows of one query")
        texts = [_text_in(row, model) for row in rows.to_dict("records")]
        if NO_TEXT in texts:
            texts = [_text_by_docno(index, docno) for docno in rows["docno"]]
        labels = {"label": rows["label"].tolist()} if "label" in rows else {}
        return cls(rows["query"].iloc[0], texts, rows["docno"].tolist(), index, labels)

    def for_ranker(self, model: pt.Transformer) -> "_Asked":
        """The same, with the text that a ranker reads by docno if it is not known otherwise."""
        if self.text is not NO_TEXT or self.docno is None:
            return self
        index = self.index if self.index is not None else getattr(model, "documents", None)
        return self if index is None else replace(self, text=_text_by_docno(index, self.docno))


def _text_in(row: Mapping[str, Any], model: pt.Transformer) -> Any:
    """The fields of the text in a row: the model's, or else all columns that may be some; NO_TEXT if there are none."""
    texts = {name: value for name, value in row.items() if isinstance(value, str)}
    own = {name: texts[name] for name in getattr(_unwrapped(model), "fields", ()) if name in texts}
    return own or {name: value for name, value in texts.items() if not NOT_TEXT.fullmatch(name)} or NO_TEXT


def _text_by_docno(index: Any, docno: str) -> Document:
    """The text of a document in an index; of a forward index, its words."""
    if isinstance(index, ForwardIndex):
        terms = index.vocabulary.terms
        return " ".join(terms[term] for term in index.sequences([docno])[0])
    if not hasattr(index, "text_loader"):
        raise TypeError(
            f"index={index!r} cannot give the text of {docno!r}: give a LuceneIndex or a ForwardIndex, or text="
        )
    row = index.text_loader().transform(pd.DataFrame({"docno": [docno]})).iloc[0]
    return row.drop("docno").to_dict()


def _explain_ranker(
    model: pt.Transformer, asked: _Asked, method: str | None, options: dict[str, Any], side: Any = None
) -> Explanation:
    """Explain one transformer; ``side`` is what explains the incoming score of a mixture."""
    model = model.model if isinstance(model, Retriever) else model
    methods = methods_of(model)
    if not methods:
        raise TypeError(
            f"no explanation for {model!r}; give a ranker such as BM25, DESM, LSA, DSSM, CLSM, SSI, LDA, Duet or "
            "MatchTensor, or a pipeline of them, not a part of one"
        )
    method = method or next(iter(methods))
    if method not in methods:
        raise ValueError(f"{model!r} has no explanation {method!r}; method must be one of {', '.join(methods)}")
    if method == "terms":
        return _explain_lucene(model, asked, options)
    asked = asked.for_ranker(model)
    if asked.text is NO_TEXT and method != "expansion":
        raise TypeError(
            "give the text of the document whose score is to be explained, or its docno and an index; only expansions "
            "need neither"
        )
    if isinstance(model, Mixture):
        if model.b is None and side is None and "score" in asked.row:
            options = {"incoming": asked.row["score"], **options}
        options = {**options, "explain_side": partial(_explain_side, asked=asked, incoming=side)}
    if method == "matches" and asked.docno is not None:
        named = {"labels": asked.row["label"]} if isinstance(asked.row.get("label"), list) else {}
        docnos = asked.docno if isinstance(asked.docno, list) else [asked.docno]
        options = {"docnos": docnos, **named, **options}
    return _function(methods[method])(model, asked.query, *([] if asked.text is NO_TEXT else [asked.text]), **options)


def _explain_lucene(model: pt.Transformer, asked: _Asked, options: dict[str, Any]) -> Explanation:
    if not isinstance(asked.docno, str):
        raise TypeError(f"{model!r} scores documents of its index: give docno=, or a row of a result frame")
    text = None if asked.text is NO_TEXT else asked.text
    weights = asked.row.get("query_toks")
    options = {"query_toks": weights if isinstance(weights, Mapping) else None, **options}
    return _function(_LUCENE["terms"])(model, asked.query, text, docno=asked.docno, **options)


def _explain_side(
    side: pt.Transformer | None, text: Document, *, asked: _Asked, incoming: Any, **options: object
) -> TextExplanation | None:
    """Explain a side of a mixture; None if nothing is known about it but its score."""
    if side is None:
        return None if incoming is None else incoming(text, **options)
    methods = {} if isinstance(side, Mixture) else methods_of(side)
    if "terms" in methods:
        own = replace(asked, text=text)
        return _explain_lucene(side, own, {}) if isinstance(asked.docno, str) else None
    return _function(methods["drop"])(side, asked.query, text, **options) if "drop" in methods else None


class _Run(NamedTuple):
    """What a pipeline did for one query: the rows before and after the ranker to explain, and the document."""

    stages: list[pt.Transformer]
    place: int
    before: pd.DataFrame
    row: pd.Series
    docno: str


def _retrieves(model: pt.Transformer, asked: _Asked) -> bool:
    """Whether to run a model by itself: one that retrieves, for a document that is not known yet."""
    if isinstance(model, Mixture):
        return model.b is not None and asked.text is NO_TEXT
    return asked.docno is None and methods_of(model) == _LUCENE


def _explain_pipeline(
    pipeline: pt.Transformer, asked: _Asked, method: str | None, options: dict[str, Any]
) -> Explanation:
    """Explain the last ranker of a pipeline by what the stages before it give it."""
    stages = list(pipeline) if isinstance(pipeline, pt.Compose) else [pipeline]
    places = [place for place, stage in enumerate(stages) if methods_of(_unwrapped(stage))]
    if not places:
        raise TypeError(f"no explanation for {pipeline!r}: none of its stages is a ranker that can be explained")
    ranker = stages[places[-1]]
    if asked.text is not NO_TEXT and not asked.row:  # a text of one's own
        return _explain_ranker(ranker, asked, method, options)
    run = _run(pipeline, stages, places[-1], asked)
    row = dict(run.row)
    found = replace(asked, query=row["query"], docno=run.docno, row=row, text=_text_in(row, ranker))
    if not isinstance(ranker, Mixture):
        return _explain_ranker(ranker, found, method, options)
    own = run.before[run.before["docno"] == run.docno] if "docno" in run.before else run.before[:0]
    if found.text is NO_TEXT and asked.index is None:
        found = replace(found, index=_index_of(stages))
    scores = _sides_of(ranker, run)
    earlier = [place for place in places if place < places[-1]]
    before = None
    if ranker.b is None and earlier and len(own):
        scorer, score = _unwrapped(stages[earlier[-1]]), float(own["score"].iloc[0])
        before = partial(_explain_incoming, scorer, replace(found, row=dict(own.iloc[0])), score)
    return _explain_ranker(ranker, found, method, {"scores": scores, **options}, before)


def _unwrapped(stage: pt.Transformer) -> pt.Transformer:
    return stage.model if isinstance(stage, Retriever) else stage


def _explain_incoming(
    scorer: pt.Transformer, asked: _Asked, score: float, text: Document, **options: object
) -> TextExplanation | None:
    """Explain the score that comes into a mixture by the ranker before it, unless a stage between has changed it."""
    explanation = _explain_side(scorer, text, asked=asked, incoming=None, **options)
    return explanation if explanation is not None and np.isclose(explanation.score, score, rtol=1e-4) else None


def _run(pipeline: pt.Transformer, stages: list[pt.Transformer], place: int, asked: _Asked) -> _Run:
    """Run a pipeline for one query."""
    before = pd.DataFrame([{"qid": "1", "query": asked.query}])
    accepted = pt.inspect.transformer_inputs(stages[0], strict=False) or []
    if asked.row and not any(set(columns) <= {"qid", "query"} for columns in accepted):
        before = pd.DataFrame([{"qid": "1", **asked.row}])
    for stage in stages[:place]:
        before = stage.transform(before)
    results = after = stages[place].transform(before)
    for stage in stages[place + 1 :]:
        results = stage.transform(results)
    if results.empty:
        raise ValueError(f"{pipeline!r} finds nothing for {asked.query!r}")
    docno = asked.docno or results["docno"].iloc[int(np.argmax(results["score"]))]
    chosen = results if docno in set(results["docno"]) else after
    rows = chosen[chosen["docno"] == docno]
    if rows.empty:
        raise ValueError(f"{docno!r} is not among the {len(after):,} results of {pipeline!r} for {asked.query!r}")
    return _Run(stages, place, before, rows.iloc[0], docno)


class SideScore(NamedTuple):
    """The score of a side of a mixture, and the factor by which it was normalised."""

    score: float
    factor: float


def _sides_of(mixture: Mixture, run: _Run) -> tuple[SideScore, SideScore]:
    """The scores of both sides for the document of a run."""
    plain = copy(mixture)
    plain.normalise = None
    raw, mixed = plain.sides(run.before), mixture.sides(run.before)
    place = int(np.flatnonzero(mixed.rows["docno"] == run.docno)[0])
    sides = []
    for scores, scaled in ((raw.a, mixed.a), (raw.b, mixed.b)):
        low, high = np.argmin(scores), np.argmax(scores)
        spread = scores[high] - scores[low]
        factor = (scaled[high] - scaled[low]) / spread if spread > 0 else float(mixture.normalise is None)
        sides.append(SideScore(float(scaled[place]), float(factor)))
    return sides[0], sides[1]


def _index_of(stages: Sequence[pt.Transformer]) -> Any:
    """The first index that a pipeline, or a side of a mixture in it, retrieves from; None if there is none."""
    for stage in stages:
        index = getattr(stage, "index", None)
        if not hasattr(index, "text_loader"):
            inner = (stage.a, stage.b) if isinstance(stage, Mixture) else stage if isinstance(stage, pt.Compose) else ()
            index = _index_of([part for part in inner if part is not None])
        if index is not None:
            return index
    return None


def methods_of(model: pt.Transformer | type | None) -> dict[str, str]:
    """The explanations of a model, or of a class, as in :data:`EXPLANATIONS`; empty if it cannot be explained."""
    kind = model if isinstance(model, type) else type(model)
    names = [base.__name__ for base in kind.__mro__ if base.__module__.startswith("pt_neural.")]
    if "SSM" in names and getattr(model, "pooling", None) == "attention":
        return _DROP_OCCURRENCES  # document representations depend on the query
    return next((EXPLANATIONS[name] for name in names if name in EXPLANATIONS), {})


def _function(name: str) -> Method:
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"pt_neural.explain.{module}"), function)
