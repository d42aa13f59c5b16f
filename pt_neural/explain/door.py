"""The function that explains any model's score."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.explain.clsm import explain_clsm
from pt_neural.explain.desm import explain_desm
from pt_neural.explain.drop_occurrences import explain_occurrences
from pt_neural.explain.drop_terms import explain_terms
from pt_neural.explain.explanation import Explanation
from pt_neural.explain.matches import explain_matches
from pt_neural.models import CLSM, DESM
from pt_neural.rankers import TwoTower
from pt_neural.rankers.interaction import Interaction

# The first kind that a model is; the first method is the default.
_EXPLAINERS = {
    DESM: {"similarity": explain_desm, "drop": explain_terms},
    CLSM: {"max-pooling": explain_clsm, "drop": explain_terms},
    TwoTower: {"drop": explain_terms},
    Interaction: {"drop": explain_occurrences, "matches": explain_matches},
}
_OF_SEVERAL_TEXTS = ("matches",)


def explain(
    model: pt.Transformer, query: str, text: str | Sequence[str], *, method: str | None = None, **options: object
) -> Explanation:
    """Explain why a model gives a document its score for a query.

    What there is to explain depends on the model:

    - ``"similarity"``, DESM only: how near each word of the document is to the query; see
      :func:`~pt_neural.explain.desm.explain_desm` (option ``threshold``).
    - ``"max-pooling"``, CLSM only: which words win the max pooling at the neurons that are most active in query and
      document; see :func:`~pt_neural.explain.clsm.explain_clsm` (option ``neurons``).
    - ``"drop"``, all rankers: how the score changes without a word. Two-tower rankers lose all occurrences of a term
      at once; see :func:`~pt_neural.explain.drop_terms.explain_terms`. Interaction rankers, which know positions, lose
      one occurrence at a time, and a Duet's local and distributed model are explained side by side; see
      :func:`~pt_neural.explain.drop_occurrences.explain_occurrences` (both: option ``terms``).
    - ``"matches"``, interaction rankers such as the Duet: where the terms of the query stand in one or several
      documents; see :func:`~pt_neural.explain.matches.explain_matches` (option ``labels``).

    Args:
        model: A ranker of pt_neural, fitted; ``"matches"`` does without fitting.
        query: The query's text.
        text: The document's text, for ``"matches"`` also a list of texts. Anything but a string, such as None or NaN,
            is an empty text.
        method: How to explain; by default ``"similarity"`` for DESM, ``"max-pooling"`` for CLSM, else ``"drop"``.
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
        pn.explain(duet, "pairwise distance", [text, other], method="matches", labels=[1, 0]).plot()
    """
    methods = _methods(model)
    method = method or next(iter(methods))
    if method not in methods:
        raise ValueError(f"{model!r} has no explanation {method!r}; method must be one of {', '.join(methods)}")
    if isinstance(text, list | tuple | np.ndarray | pd.Series):
        if method not in _OF_SEVERAL_TEXTS:
            raise TypeError(f"method {method!r} explains one text, not {len(text)}: call pn.explain for each of them")
        return methods[method](model, _text(query), [_text(one) for one in text], **options)
    return methods[method](model, _text(query), _text(text), **options)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _methods(model: pt.Transformer) -> dict:
    for kind, methods in _EXPLAINERS.items():
        if isinstance(model, kind):
            return methods
    raise TypeError(
        f"no explanation for {model!r}; give the ranker itself, such as DESM, LSA, DSSM, CLSM or Duet, not the "
        "pipeline around it or a part of it"
    )
