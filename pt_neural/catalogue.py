"""All rankers of the package in one frame."""

import pandas as pd

from pt_neural.explain.door import methods_of
from pt_neural.rankers.options import option_names
from pt_neural.rankers.registry import RANKERS

COMPONENTS = {"tfidf": "TFIDF", "topics": "topic model"}


def rankers() -> pd.DataFrame:
    """All rankers, those of your own that are registered included; ``pn.rankers()`` calls this.

    Returns:
        Frame with ``name``; ``family``, the folder of models that has the ranker; ``paper`` (its authors) and ``year``
        (missing if unknown); ``needs``, what it must be given: ``"embeddings"``, a model that is fitted before,
        ``"judgements"`` to train on, or ``"documents"`` to learn from; ``retrieves``, whether it can search a whole
        collection; ``keeps``, whether its work on documents can be done beforehand; and ``explains``, its default
        explanation. Every ranker re-ranks, by text or, with a forward index, by docno.

    Example::

        pn.rankers().query("not retrieves and needs == 'embeddings, judgements'")
    """
    rows = []
    for row in RANKERS:
        kind = row.ranker()
        retrieves = hasattr(kind, "retriever")
        rows.append(
            {
                "name": row.name,
                "family": row.family,
                "paper": row.paper,
                "year": row.year,
                "needs": ", ".join(_needs(kind)),
                "retrieves": retrieves,
                "keeps": retrieves or "representations" in option_names(kind.options_type),
                "explains": next(iter(methods_of(kind)), ""),
            }
        )
    return pd.DataFrame(rows).astype({"year": "Int64"})


def _needs(kind: type) -> list[str]:
    """What a ranker of a class must be given."""
    components = ["embeddings" if name == "spaces" else f"a fitted {COMPONENTS[name]}" for name in kind.components]
    if hasattr(kind, "fit_corpus"):
        return [*components, "documents"]
    return [*components, "judgements"] if hasattr(kind, "fit") else components
