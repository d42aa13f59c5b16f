"""The function that explains any model's score."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_choice
from pt_neural.explain.comparison import compare
from pt_neural.explain.expansion import explain_expansion
from pt_neural.explain.explanation import Explanation
from pt_neural.explain.methods import OF_SEVERAL_TEXTS, Document, document_text, methods_of, query_text
from pt_neural.explain.mixture import explain_mixture
from pt_neural.lucene import LatentConceptExpansion
from pt_neural.models import Rocchio
from pt_neural.rankers import Mixture

NOT_GIVEN: Any = object()  # None is an empty text


def explain(
    model: pt.Transformer | Sequence[pt.Transformer] | Mapping[str, pt.Transformer],
    query: str,
    text: Document | Sequence[Document] = NOT_GIVEN,
    *,
    method: str | None = None,
    **options: object,
) -> Explanation:
    """Explain why a model gives a document its score for a query, or how it expands the query.

    What there is to explain depends on the model:

    - ``"similarity"``, DESM only: how near each word of the document is to the query; see
      :func:`~pt_neural.explain.desm.explain_desm` (option ``threshold``).
    - ``"max-pooling"``, CLSM only: which words win the max pooling at the neurons that are most active in query and
      document; see :func:`~pt_neural.explain.clsm.explain_clsm` (option ``neurons``).
    - ``"match-tensor"``, MatchTensor and MatchTensorSSM only: which cells and channels of the match tensor carried the
      score, as a heat map of query words by document words; see
      :func:`~pt_neural.explain.match_tensor.explain_match_tensor`.
    - ``"word-pairs"``, SSI and TFIDF only: what each word of the query adds to the score together with each word of
      the document, as a heat map and by the strongest pairs; see
      :func:`~pt_neural.explain.word_pairs.explain_word_pairs` (option ``pairs``).
    - ``"likelihood"``, PLSA, LDA, BLTM and WordTranslation only: how probable the document makes each word of the
      query, and which of its words or topics make it so; see
      :func:`~pt_neural.explain.likelihood.explain_likelihood` (option ``sources``).
    - ``"drop"``, all rankers: how the score changes without a word. Two-tower rankers, SSI, TFIDF and those that score
      by query likelihood lose all occurrences of a term at once; see
      :func:`~pt_neural.explain.drop_terms.explain_terms`. Interaction rankers, which know positions, and SSM with
      attention lose one occurrence at a time, and a Duet's local and distributed model are explained side by side; see
      :func:`~pt_neural.explain.drop_occurrences.explain_occurrences` (both: option ``terms``).
    - ``"matches"``, interaction rankers such as the Duet: where the terms of the query stand in one or several
      documents; see :func:`~pt_neural.explain.matches.explain_matches` (option ``labels``).

    A mixture is explained by what each side gives to the score and loses without a word, which is ``"drop"`` for it;
    see :func:`~pt_neural.explain.mixture.explain_mixture` (options ``incoming`` and ``terms``).

    Rocchio and LatentConceptExpansion, which expand queries, are explained by the terms that come in; see
    :func:`~pt_neural.explain.expansion.explain_expansion`.

    Several models are compared on one document, each by its usual explanation or all by the ``method`` that is given;
    ``method="drop"`` asks all of them the same. What they give to each word is scaled to shares.

    Args:
        model: A ranker of pt_neural, fitted; ``"matches"`` does without fitting. Or several of them, in a list or by
            names of your own.
        query: The query's text.
        text: The document's text, or a dict of its fields, of which ``"match-tensor"`` sees where each ends; for
            ``"matches"`` and Rocchio also a list of documents. Anything else, such as None or NaN, is an empty text.
            Only LatentConceptExpansion does without.
        method: How to explain; by default ``"similarity"`` for DESM, ``"max-pooling"`` for CLSM, ``"match-tensor"`` for
            MatchTensor and MatchTensorSSM, ``"word-pairs"`` for SSI and TFIDF, ``"likelihood"`` for topic models and
            WordTranslation, else ``"drop"``.
        **options: What the method takes.

    Returns:
        An explanation: shaded text in a notebook, a frame by ``.to_frame()``, what each word adds by ``.by_word()``,
        a figure by ``.plot()``; with ``.model``, ``.query``, ``.text`` and ``.score``. That of several models is a
        :class:`~pt_neural.explain.comparison.ComparedExplanations`.

    Raises:
        TypeError: If the model is none that can be explained, or if there are several texts for a method of one.
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
    if isinstance(model, Rocchio | LatentConceptExpansion):
        checked_choice("method", method, (None,))
        return explain_expansion(model, query, None if text is NOT_GIVEN else text, **options)
    if text is NOT_GIVEN:
        raise TypeError("give the text of the document whose score is to be explained; only expansions do without")
    if isinstance(model, Mixture):
        return explain_mixture(model, query, text, method=method, **options)
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
    if isinstance(text, list | tuple | np.ndarray | pd.Series):
        if method not in OF_SEVERAL_TEXTS:
            raise TypeError(f"method {method!r} explains one text, not {len(text)}: call pn.explain for each of them")
        texts = [document_text(model, one, method) for one in text]
        return methods[method](model, query_text(query), texts, **options)
    return methods[method](model, query_text(query), document_text(model, text, method), **options)
