"""Which side of a mixture, and which words of the document, a score comes from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural.explain.comparison import distinct_names
from pt_neural.explain.dropping import PartsExplanation
from pt_neural.explain.explanation import Document, TextExplanation
from pt_neural.explain.pictures import SHADES_NOTE
from pt_neural.rankers.mixture import Mixture
from pt_neural.rankers.retriever import Retriever

INCOMING = "incoming"
NOTE = f"What the mixture loses without a word. {SHADES_NOTE} The figures of a side are multiplied by its weight."
NOT_DROPPED = " Not all words were dropped in turn; give a larger number of terms to try more."

Drop = Callable[..., TextExplanation]


def explain_mixture(
    model: Mixture,
    query: str,
    text: Document,
    *,
    drop_of: Callable[[pt.Transformer | None], Drop | None],
    incoming: float | None = None,
    **options: object,
) -> "MixtureExplanation":
    """Show how much each side of a mixture contributes to the score, and how much each loses without a word.

    The score is alpha * a + (1 - alpha) * b (DESM paper, equation 9). What is lost without a word is lost by one side
    or the other, so a word's contribution is the sum of the weighted losses of the sides. A side that reads no text,
    such as BM25 by docno or an incoming score, contributes to the score but not to words.

    Args:
        model: The mixture, its sides fitted. A retriever is explained as the ranker that made its vectors, a pipeline
            as its last stage.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        drop_of: Gives the ``"drop"`` explanation of a side, as a function; None if it reads no text.
        incoming: The score of the side that reads no text.
        **options: Options of ``method="drop"``, such as ``terms``.

    Returns:
        An explanation of the words of both sides, with the explanation of each side in ``explanations``.

    Raises:
        TypeError: If no side is a ranker of texts, or if ``incoming`` is not a number.
        ValueError: If the mixture normalises scores, if ``incoming`` is missing or not needed, or if the sides read
            different fields of the document.

    Example::

        row = (bm25 >> index.text_loader()).search("pairwise distance").iloc[0]
        mixed = pn.Mixture(desm, alpha=0.4)
        explanation = pn.explain(mixed, "pairwise distance", row["text"], incoming=row["score"])
        explanation.sides
    """
    if model.normalise is not None:
        raise ValueError(
            f"normalise={model.normalise!r} scales each score by those of the query's other candidates, which one "
            "document does not have; explain the sides by themselves, such as pn.explain([mixture.a, mixture.b], ...)"
        )
    rankers = [_ranker(side) for side in (model.a, model.b)]
    names = [*distinct_names([ranker for ranker in rankers if ranker is not None]), INCOMING]
    by_name = dict(zip(names, rankers, strict=False))
    drops = {name: drop for name, ranker in by_name.items() if (drop := drop_of(ranker))}
    if not drops:
        raise TypeError(f"no side of {model!r} is a ranker of texts that can be explained")
    explanations = {name: drop(by_name[name], query, text, **options) for name, drop in drops.items()}
    scores = {name: explanation.score for name, explanation in explanations.items()}
    scores |= _incoming_score([name for name in by_name if name not in scores], incoming)
    sides = pd.DataFrame({"side": list(by_name), "weight": [model.alpha, 1 - model.alpha]})
    sides["score"] = sides["side"].map(scores)
    sides["contribution"] = sides["weight"] * sides["score"]
    by_side = sides.set_index("side")
    words, first = _weighted_words(explanations, by_side["weight"]), next(iter(explanations.values()))
    return MixtureExplanation(
        model=repr(model),
        query=first.query,
        text=first.text,
        score=float(sides["contribution"].sum()),
        note=NOTE + (NOT_DROPPED if words["contribution"].isna().any() else ""),
        words=words,
        parts=by_side["contribution"][list(explanations)].to_dict() if len(explanations) > 1 else {},
        sides=sides,
        explanations=explanations,
    )


def _ranker(side: pt.Transformer | None) -> pt.Transformer | None:
    """The ranker that scores a side; None for the incoming score."""
    last = list(side)[-1] if isinstance(side, pt.Compose) else side
    return last.model if isinstance(last, Retriever) else last


def _incoming_score(names: list[str], incoming: float | None) -> dict[str, float]:
    """The score of the side that reads no text, by its name; empty if both sides read texts."""
    if not names and incoming is not None:
        raise ValueError(f"incoming={incoming!r} is not needed, because both sides of the mixture score the text")
    if names and incoming is None:
        raise ValueError(
            f"the side {names[0]!r} of the mixture reads no text: give its score of the document, as in the incoming "
            "row, by incoming=row['score']"
        )
    return {name: checked_number("incoming", incoming, float) for name in names}


def _weighted_words(explanations: dict[str, TextExplanation], weights: pd.Series) -> pd.DataFrame:
    """The words of both texts, what the mixture loses without each and, if both sides read texts, what each loses."""
    words = {name: explanation.by_word() for name, explanation in explanations.items()}
    if len({explanation.text for explanation in explanations.values()}) > 1:
        raise ValueError("the sides of the mixture read different fields of the document: give its text as one string")
    losses = pd.DataFrame({name: weights[name] * frame["contribution"] for name, frame in words.items()})
    first = next(iter(words.values())).assign(contribution=losses.sum(axis=1, skipna=False))
    return pd.concat([first, losses], axis=1) if len(words) > 1 else first


@dataclass(frozen=True, repr=False)
class MixtureExplanation(PartsExplanation):
    """How much each side of a mixture contributes to the score, and how much each loses without a word.

    If both sides read the text, :meth:`to_frame` has a column for each: how much its part of the score loses.

    Attributes:
        sides: One row per side: ``side`` (its name), ``weight`` (alpha or 1 - alpha), ``score`` and ``contribution``,
            the product of both; contributions add up to the score.
        explanations: The explanations of the sides that read the text, by name.
    """

    sides: pd.DataFrame
    explanations: dict[str, TextExplanation]

    lost: ClassVar[str] = "lost by the mixture without the word"

    def _total(self) -> str:
        addends = " + ".join(f"{row.weight:g} × {row.score:.4g} ({row.side})" for row in self.sides.itertuples())
        return f"{super()._total()} = {addends}".replace("-", "−")

    def _part_name(self, name: str) -> str:
        return name
