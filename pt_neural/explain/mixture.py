"""Which side of a mixture a score comes from, and which words of the document."""

from typing import Literal

import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.explain.comparison import distinct_names
from pt_neural.explain.dropping import LEGEND
from pt_neural.explain.explanation import TextExplanation
from pt_neural.explain.methods import Document, document_text, methods_of, query_text
from pt_neural.explain.mixture_explanation import MixtureExplanation
from pt_neural.rankers import Mixture
from pt_neural.rankers.retriever import Retriever

INCOMING = "incoming"
DROP = "drop"  # what a mixture loses without a word is what its sides lose, weighted; no other explanations add up so
NOTE = f"Bold: words that query and document share. {LEGEND} What a side gives and loses is told times its weight."
NOT_DROPPED = " Not all words were dropped in turn; a larger number of terms tries more."


def explain_mixture(
    model: Mixture,
    query: str,
    text: Document,
    *,
    method: Literal["drop"] | None = None,
    incoming: float | None = None,
    **options: object,
) -> MixtureExplanation:
    """Tell how much of a mixture's score each side gives, and what each loses without a word of query or document.

    The score is alpha * a + (1 - alpha) * b (DESM paper, equation 9). What is lost without a word is lost by one side
    or the other, so that a word's contribution is the sum of the weighted losses of the sides. A side that reads no
    text, such as BM25 by docno or a score that comes in, gives its part of the score and no words.

    Args:
        model: The mixture, its sides fitted. A retriever from vectors is explained as the ranker that made them, a
            pipeline as its last stage.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        incoming: The score of the side that reads no text, as the row of the document has it.
        method: ``"drop"``, the only one.
        **options: What ``method="drop"`` takes, such as ``terms``.

    Returns:
        An explanation of the words of both sides, with the explanation of each side in ``explanations``.

    Raises:
        TypeError: If no side is a ranker of texts, or if ``incoming`` is no number.
        ValueError: If the method is another, if the mixture normalises scores, if ``incoming`` is lacking or not
            needed, or if the sides read other fields of the document.

    Example::

        row = (bm25 >> index.text_loader()).search("pairwise distance").iloc[0]
        mixed = pn.Mixture(desm, alpha=0.4)
        explanation = pn.explain(mixed, "pairwise distance", row["text"], incoming=row["score"])
        explanation.sides
    """
    checked_choice("method", method, (None, DROP))
    if model.normalise is not None:
        raise ValueError(
            f"normalise={model.normalise!r} scales each score by those of the query's other candidates, which one "
            "document does not have; explain the sides by themselves, such as pn.explain([mixture.a, mixture.b], ...)"
        )
    sides = _sides(model)
    explanations = {
        name: methods_of(side)[DROP](side, query_text(query), document_text(side, text, DROP), **options)
        for name, side in sides.items()
        if methods_of(side)
    }
    scores = {name: explanation.score for name, explanation in explanations.items()}
    scores |= _of_incoming([name for name in sides if name not in scores], incoming)
    table = _table(model.alpha, {name: scores[name] for name in sides})
    weights = table.set_index("side")["weight"]
    words, any_side = _weighed(explanations, weights), next(iter(explanations.values()))
    return MixtureExplanation(
        model=repr(model),
        query=any_side.query,
        text=any_side.text,
        score=float(table["contribution"].sum()),
        note=NOTE + (NOT_DROPPED if words["contribution"].isna().any() else ""),
        words=words,
        parts=table.set_index("side")["contribution"][list(explanations)].to_dict() if len(explanations) > 1 else {},
        sides=table,
        explanations=explanations,
    )


def _sides(model: Mixture) -> dict[str, pt.Transformer | None]:
    """Both sides by distinct names; None for the score that comes in."""
    sides = [_ranker(side) for side in (model.a, model.b)]
    names = distinct_names([side for side in sides if side is not None])
    named = dict(zip([*names, INCOMING], sides, strict=False))
    if not any(map(methods_of, sides)):
        raise TypeError(f"no side of {model!r} is a ranker of texts that can be explained")
    return named


def _ranker(side: pt.Transformer | None) -> pt.Transformer | None:
    """What makes the scores of a side."""
    last = list(side)[-1] if isinstance(side, pt.Compose) else side
    return last.model if isinstance(last, Retriever) else last


def _table(alpha: float, scores: dict[str, float]) -> pd.DataFrame:
    table = pd.DataFrame({"side": list(scores), "weight": [alpha, 1 - alpha], "score": list(scores.values())})
    return table.assign(contribution=table["weight"] * table["score"])


def _of_incoming(names: list[str], incoming: float | None) -> dict[str, float]:
    """The score of the side that reads no text, by its name; none where both read texts."""
    if not names and incoming is not None:
        raise ValueError(f"incoming={incoming!r} is not needed, because both sides of the mixture score the text")
    if names and incoming is None:
        raise ValueError(
            f"the side {names[0]!r} of the mixture reads no text: give its score of the document, as the row that "
            "comes in has it, by incoming=row['score']"
        )
    return {name: checked_number("incoming", incoming, float) for name in names}


def _weighed(explanations: dict[str, TextExplanation], weights: pd.Series) -> pd.DataFrame:
    """The words of both texts, what the mixture loses without each, and what of that each of several sides loses."""
    words = {name: explanation.by_word() for name, explanation in explanations.items()}
    if len({explanation.text for explanation in explanations.values()}) > 1:
        raise ValueError("the sides of the mixture read other fields of the document: give its text as one string")
    losses = pd.DataFrame({name: weights[name] * frame["contribution"] for name, frame in words.items()})
    first = next(iter(words.values())).assign(contribution=losses.sum(axis=1, skipna=False))
    return pd.concat([first, losses], axis=1) if len(words) > 1 else first
