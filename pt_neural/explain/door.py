"""The function that explains any model's score."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.explain.clsm import explain_clsm
from pt_neural.explain.desm import explain_desm
from pt_neural.explain.drop_occurrences import explain_occurrences
from pt_neural.explain.drop_terms import explain_terms
from pt_neural.explain.explanation import Explanation
from pt_neural.explain.likelihood import explain_likelihood
from pt_neural.explain.match_tensor import explain_match_tensor
from pt_neural.explain.matches import explain_matches
from pt_neural.explain.word_pairs import explain_word_pairs
from pt_neural.models import CLSM, DESM, SSI, SSM, TFIDF, PhraseTranslation
from pt_neural.models.match_tensor_ranker import MatchTensorRanker
from pt_neural.rankers import TwoTower
from pt_neural.rankers.interaction import Interaction
from pt_neural.rankers.language_model import LanguageModelRanker
from pt_neural.text.fields import FIELD_END

# The first kind that a model is; the first method is the default.
_EXPLAINERS = {
    DESM: {"similarity": explain_desm, "drop": explain_terms},
    CLSM: {"max-pooling": explain_clsm, "drop": explain_terms},
    TwoTower: {"drop": explain_terms},
    SSI: {"word-pairs": explain_word_pairs, "drop": explain_terms},
    TFIDF: {"word-pairs": explain_word_pairs, "drop": explain_terms},
    PhraseTranslation: {"drop": explain_terms},
    LanguageModelRanker: {"likelihood": explain_likelihood, "drop": explain_terms},
    MatchTensorRanker: {
        "match-tensor": explain_match_tensor,
        "drop": explain_occurrences,
        "matches": explain_matches,
    },
    Interaction: {"drop": explain_occurrences, "matches": explain_matches},
}
_OF_SEVERAL_TEXTS = ("matches",)
_OF_FIELDS = ("match-tensor",)

Document = str | Mapping[str, str]


def explain(
    model: pt.Transformer,
    query: str,
    text: Document | Sequence[Document],
    *,
    method: str | None = None,
    **options: object,
) -> Explanation:
    """Explain why a model gives a document its score for a query.

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

    Args:
        model: A ranker of pt_neural, fitted; ``"matches"`` does without fitting.
        query: The query's text.
        text: The document's text, or a dict of its fields, of which ``"match-tensor"`` sees where each ends; for
            ``"matches"`` also a list of documents. Anything else, such as None or NaN, is an empty text.
        method: How to explain; by default ``"similarity"`` for DESM, ``"max-pooling"`` for CLSM, ``"match-tensor"`` for
            MatchTensor and MatchTensorSSM, ``"word-pairs"`` for SSI and TFIDF, ``"likelihood"`` for topic models and
            WordTranslation, else ``"drop"``.
        **options: What the method takes.

    Returns:
        An explanation: shaded text in a notebook, a frame by ``.to_frame()``, a figure by ``.plot()``.

    Raises:
        TypeError: If the model is none that can be explained, or if there are several texts for a method of one.
        ValueError: If the model has no such method.

    Example::

        pn.explain(clsm, "pairwise distance", text)
        pn.explain(clsm, "pairwise distance", text, neurons=10).plot()
        pn.explain(clsm, "pairwise distance", text, method="drop").to_frame().head()
        pn.explain(match_tensor, "pairwise distance", {"title": title, "text": text}).plot()
        pn.explain(ssi, "pairwise distance", text).to_frame().head()
        pn.explain(duet, "pairwise distance", [text, other], method="matches", labels=[1, 0]).plot()
    """
    methods = _methods(model)
    method = method or next(iter(methods))
    if method not in methods:
        raise ValueError(f"{model!r} has no explanation {method!r}; method must be one of {', '.join(methods)}")
    if isinstance(text, list | tuple | np.ndarray | pd.Series):
        if method not in _OF_SEVERAL_TEXTS:
            raise TypeError(f"method {method!r} explains one text, not {len(text)}: call pn.explain for each of them")
        return methods[method](model, _text(query), [_document_text(model, one, method) for one in text], **options)
    return methods[method](model, _text(query), _document_text(model, text, method), **options)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _document_text(model: pt.Transformer, value: object, method: str) -> str:
    text = model.document_text(value) if isinstance(value, Mapping) else _text(value)
    return text if method in _OF_FIELDS else text.replace(FIELD_END, "\n")


def _methods(model: pt.Transformer) -> dict:
    if isinstance(model, SSM) and model.pooling == "attention":
        return {"drop": explain_occurrences}  # its documents have no vectors of their own
    for kind, methods in _EXPLAINERS.items():
        if isinstance(model, kind):
            return methods
    raise TypeError(
        f"no explanation for {model!r}; give the ranker itself, such as DESM, LSA, DSSM, CLSM, SSI, LDA, Duet "
        "or MatchTensor, not the pipeline around it or a part of it"
    )
