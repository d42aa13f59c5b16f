"""The function that explains any model's score."""

import pyterrier as pt

from pt_neural.explain.clsm import explain_clsm
from pt_neural.explain.desm import explain_desm
from pt_neural.explain.drop import explain_drop
from pt_neural.explain.explanation import Explanation
from pt_neural.models import CLSM, DESM
from pt_neural.rankers import TwoTower

# The first kind that a model is; the first method is the default.
_EXPLAINERS = {
    DESM: {"similarity": explain_desm, "drop": explain_drop},
    CLSM: {"max-pooling": explain_clsm, "drop": explain_drop},
    TwoTower: {"drop": explain_drop},
}


def explain(
    model: pt.Transformer, query: str, text: str, *, method: str | None = None, **options: object
) -> Explanation:
    """Explain why a model gives a document its score for a query.

    What there is to explain depends on the model:

    - ``"similarity"``, DESM only: how near each word of the document is to the query; see
      :func:`~pt_neural.explain.desm.explain_desm` (option ``threshold``).
    - ``"max-pooling"``, CLSM only: which words win the max pooling at the neurons that are most active in query and
      document; see :func:`~pt_neural.explain.clsm.explain_clsm` (option ``neurons``).
    - ``"drop"``, all two-tower rankers: how the score changes when a term is dropped; see
      :func:`~pt_neural.explain.drop.explain_drop` (option ``terms``).

    Args:
        model: A two-tower ranker of pt_neural, fitted.
        query: The query's text.
        text: The document's text. Anything but a string, such as None or NaN, is an empty text.
        method: How to explain; by default ``"similarity"`` for DESM, ``"max-pooling"`` for CLSM, else ``"drop"``.
        **options: What the method takes.

    Returns:
        An explanation: shaded text in a notebook, a frame by ``.to_frame()``, a figure by ``.plot()``.

    Raises:
        TypeError: If the model is none that can be explained.
        ValueError: If the model has no such method.

    Example::

        pn.explain(clsm, "pairwise distance", text)
        pn.explain(clsm, "pairwise distance", text, neurons=10).plot()
        pn.explain(clsm, "pairwise distance", text, method="drop").to_frame().head()
    """
    methods = _methods(model)
    method = method or next(iter(methods))
    if method not in methods:
        raise ValueError(f"{model!r} has no explanation {method!r}; method must be one of {', '.join(methods)}")
    query, text = (value if isinstance(value, str) else "" for value in (query, text))
    return methods[method](model, query, text, **options)


def _methods(model: pt.Transformer) -> dict:
    for kind, methods in _EXPLAINERS.items():
        if isinstance(model, kind):
            return methods
    raise TypeError(
        f"no explanation for {model!r}; give the ranker itself, a two-tower one such as DESM, LSA, DSSM or CLSM, not "
        "the pipeline around it"
    )
