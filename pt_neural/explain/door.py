"""The function that explains any model's score."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import pyterrier as pt

from pt_neural.explain.comparison import compare
from pt_neural.explain.explanation import Document, Explanation
from pt_neural.rankers.mixture import Mixture

Method = Callable[..., Explanation]

_DROP_TERMS = {"drop": "dropping.explain_terms"}
_DROP_OCCURRENCES = {"drop": "dropping.explain_occurrences"}
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
    "ARCI": {**_DROP_OCCURRENCES, **_MATCHES},  # which compares a vector of each text
    "MatchingRanker": {
        "interaction": "models.interaction.explain_interaction",
        **_DROP_OCCURRENCES,
        **_MATCHES,
    },
    "InteractionRanker": {**_DROP_OCCURRENCES, **_MATCHES},
    "Mixture": {"drop": "models.mixture.explain_mixture"},
    "Rocchio": {"expansion": "models.expansion.explain_rocchio"},
    "LatentConceptExpansion": {"expansion": "models.expansion.explain_concepts"},
}
NO_TEXT: Any = object()  # None is an empty text


def explain(
    model: pt.Transformer | Sequence[pt.Transformer] | Mapping[str, pt.Transformer],
    query: str,
    text: Document | Sequence[Document] = NO_TEXT,
    *,
    method: str | None = None,
    **options: object,
) -> Explanation:
    """Explain why a model gives a document its score for a query, or how it expands the query.

    The methods depend on the model:

    - ``"similarity"``, DESM: how close each word of the document is to the query; see
      :func:`~pt_neural.explain.models.desm.explain_desm` (option ``threshold``).
    - ``"max-pooling"``, CLSM: which words win the max pooling at the neurons that are most active in query and
      document; see :func:`~pt_neural.explain.models.clsm.explain_clsm` (option ``neurons``).
    - ``"match-tensor"``, MatchTensor and MatchTensorSSM: which cells and channels of the match tensor made the score,
      as a heat map of query words by document words; see
      :func:`~pt_neural.explain.models.match_tensor.explain_match_tensor`.
    - ``"interaction"``, KNRM, ConvKNRM, TK, MatchPyramid, PACRR, ARCII, DRMMTKS, MVLSTM and ANMM: what each pair of a
      query word and a document word adds to the score, as a heat map, and the soft matches of each kernel; see
      :func:`~pt_neural.explain.models.interaction.explain_interaction`.
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

    ``"drop"`` explains a mixture by what each side contributes to the score and what it loses without a word; see
    :func:`~pt_neural.explain.models.mixture.explain_mixture` (options ``incoming`` and ``terms``).

    ``"expansion"`` explains Rocchio and LatentConceptExpansion, which expand queries, by the terms that they add; see
    :func:`~pt_neural.explain.models.expansion.explain_rocchio` and
    :func:`~pt_neural.explain.models.expansion.explain_concepts`.

    Several models are compared on one document, each by its default explanation or all by the given ``method``;
    ``method="drop"`` explains all of them in the same way. Contributions are scaled to shares.

    Args:
        model: A fitted ranker of pt_neural or your own subclass (``"matches"`` needs no fitting); or several, in a list
            or by names of your own.
        query: The query's text.
        text: The document's text, or a dict of its fields, which lets ``"match-tensor"`` see where each field ends; for
            ``"matches"`` and Rocchio also a list of documents. Anything else, such as None or NaN, is an empty text.
            Only LatentConceptExpansion takes no text.
        method: How to explain; by default the first of the methods above that the model has.
        **options: Options of the method.

    Returns:
        An explanation: shaded text in a notebook, a frame by ``.to_frame()``, what each word contributes by
        ``.by_word()``, a figure by ``.plot()``; with ``.model``, ``.query``, ``.text`` and ``.score``. Several models
        give :class:`~pt_neural.explain.ComparedExplanations`.

    Raises:
        TypeError: If the model cannot be explained, or if there are several texts for a method that takes one.
        ValueError: If the model has no such method, or if there is no model.

    Example::

        pn.explain(clsm, "pairwise distance", text)
        pn.explain(clsm, "pairwise distance", text, neurons=10).plot()
        pn.explain(clsm, "pairwise distance", text, method="drop").to_frame().head()
        pn.explain([dssm, clsm], "pairwise distance", text, method="drop").plot()
        pn.explain({"one word": narrow, "three words": wide}, "pairwise distance", text).to_frame()
        pn.explain(pn.Mixture(desm, alpha=0.4), "pairwise distance", text, incoming=row["score"]).sides
        pn.explain(pn.LatentConceptExpansion(index), "pairwise distance").plot()
        pn.explain(match_tensor, "pairwise distance", {"title": title, "text": text}).plot()
        pn.explain(ssi, "pairwise distance", text).to_frame().head()
        pn.explain(duet, "pairwise distance", [text, other], method="matches", labels=[1, 0]).plot()
    """
    if isinstance(model, Mapping | list | tuple):
        return compare(model, partial(explain, query=query, text=text, method=method, **options))
    methods = methods_of(model)
    if not methods:
        raise TypeError(
            f"no explanation for {model!r}; give the ranker itself, such as DESM, LSA, DSSM, CLSM, SSI, LDA, Duet "
            "or MatchTensor, not the pipeline around it or a part of it"
        )
    method = method or next(iter(methods))
    if method not in methods:
        raise ValueError(f"{model!r} has no explanation {method!r}; method must be one of {', '.join(methods)}")
    if text is NO_TEXT and method != "expansion":
        raise TypeError("give the text of the document whose score is to be explained; only expansions need no text")
    if isinstance(model, Mixture):
        options["drop_of"] = _drop_of
    return _function(methods[method])(model, query, *([] if text is NO_TEXT else [text]), **options)


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


def _drop_of(side: pt.Transformer | None) -> Method | None:
    """How a side of a mixture is explained; None if it does not score texts by itself."""
    methods = {} if isinstance(side, Mixture) else methods_of(side)
    return _function(methods["drop"]) if "drop" in methods else None
