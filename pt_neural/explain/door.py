"""The function that explains any model's score."""

import pyterrier as pt

from pt_neural.explain.desm import explain_desm
from pt_neural.explain.explanation import Explanation
from pt_neural.models import DESM

_EXPLAINERS = {DESM: explain_desm}


def explain(model: pt.Transformer, query: str, text: str, **options: object) -> Explanation:
    """Explain why a model gives a document its score for a query.

    Args:
        model: A ranker of pt_neural.
        query: The query's text.
        text: The document's text.
        **options: What the model's explanation takes; for :class:`~pt_neural.DESM` see
            :func:`~pt_neural.explain.desm.explain_desm`.

    Returns:
        An explanation: shaded text in a notebook, a frame by ``.to_frame()``, a figure by ``.plot()``.

    Raises:
        TypeError: If the model is none that can be explained.

    Example::

        pn.explain(desm, "albuquerque", passage)
        pn.explain(desm, "albuquerque", passage).to_frame().head()
        pn.explain(desm, "albuquerque", passage).plot()
    """
    for kind, explainer in _EXPLAINERS.items():
        if isinstance(model, kind):
            return explainer(model, query, text, **options)
    known = ", ".join(kind.__name__ for kind in _EXPLAINERS)
    raise TypeError(f"no explanation for {model!r}; give the ranker itself, not the pipeline around it ({known})")
