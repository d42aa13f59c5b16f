"""Which share each side of a mixture, and each word, has in a score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural.explain.comparison import numbered
from pt_neural.explain.dropping import PartsExplanation
from pt_neural.explain.explanation import SIDES, Document, Side, TextExplanation, checked_side
from pt_neural.explain.models.lucene import LuceneExplanation
from pt_neural.explain.pictures import IN_BOTH, MODEL_COLOURS, SHADES_NOTE, draw_words
from pt_neural.rankers.mixture import Mixture
from pt_neural.rankers.retriever import Retriever

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INCOMING = "incoming"
NOTE = f"What each side loses without a word, or what the word's stem adds, times its weight. {SHADES_NOTE}"
NOT_DROPPED = " Not all words were dropped in turn; give a larger number of terms to try more."
NO_WORDS = "(of no known word)"  # a row of shares


def explain_mixture(
    model: Mixture,
    query: str,
    text: Document,
    *,
    explain_side: Callable[..., TextExplanation | None],
    incoming: float | None = None,
    scores: Sequence[tuple[float, float]] | None = None,
    **options: object,
) -> "MixtureExplanation":
    """Show which share each side of a mixture, and each word, has in the score.

    The score is alpha * a + (1 - alpha) * b (DESM paper, equation 9). What is lost without a word is lost by one side
    or the other, so a word's contribution is the sum of the weighted losses of the sides; a side that is a retriever
    of Lucene contributes its terms. A side of which only the score is known, such as one that comes in, contributes to
    the score but not to words.

    Shares add up to 1: each side has the share of its part of the score, and divides it among the words in proportion
    to what they contribute.

    Args:
        model: The mixture, its sides fitted. A retriever is explained as the ranker that made its vectors, a pipeline
            as its last stage.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        explain_side: Explains a side by a function of the side, the text and ``options``; None if only its score is
            known.
        incoming: The score of the side that cannot be explained.
        scores: The score of each side, as a pipeline gave it, and the factor by which it was normalised.
        **options: Options of ``method="drop"``, such as ``terms``.

    Returns:
        An explanation of the words of both sides, with the explanation of each side in ``explanations``.

    Raises:
        TypeError: If no side can be explained, or if ``incoming`` is not a number.
        ValueError: If the mixture normalises scores and there are no ``scores``, if ``incoming`` is missing or not
            needed, or if the sides read different fields of the document.

    Example::

        row = (bm25 >> index.text_loader()).search("pairwise distance").iloc[0]
        pn.explain(pn.Mixture(desm, alpha=0.4), row).shares()
        pn.explain(bm25 >> index.text_loader() >> pn.Mixture(desm, alpha=0.4), "pairwise distance").plot()
    """
    if model.normalise is not None and scores is None:
        raise ValueError(
            f"normalise={model.normalise!r} scales each score by those of the query's other candidates, which one "
            "document does not have: explain the pipeline that ends with the mixture, such as "
            "pn.explain(bm25 >> mixture, query), or the sides by themselves"
        )
    rankers = [_ranker(side) for side in (model.a, model.b)]
    explained = [explain_side(ranker, text, **options) for ranker in rankers]
    if explained == [None, None]:
        raise TypeError(f"no side of {model!r} is a ranker that can be explained by words")
    for own, other in ((0, 1), (1, 0)):  # Lucene's side counts the words of the text that the other one reads
        if explained[other] is not None and isinstance(explained[own], LuceneExplanation):
            explained[own] = explain_side(rankers[own], explained[other].text, **options)
    names = numbered([_name(ranker, explanation) for ranker, explanation in zip(rankers, explained, strict=True)])
    explanations = {name: found for name, found in zip(names, explained, strict=True) if found is not None}
    sides = pd.DataFrame({"side": names, "weight": [model.alpha, 1 - model.alpha]})
    if scores is None:
        found = {name: explanation.score for name, explanation in explanations.items()}
        found |= _incoming_score([name for name in names if name not in found], incoming)
        scores = [(found[name], 1.0) for name in names]
    sides["score"] = [score for score, _ in scores]
    sides["contribution"] = sides["weight"] * sides["score"]
    factors = {name: weight * factor for name, weight, (_, factor) in zip(names, sides["weight"], scores, strict=True)}
    words, first = _weighted_words(explanations, factors), next(iter(explanations.values()))
    by_side = sides.set_index("side")["contribution"]
    return MixtureExplanation(
        model=repr(model),
        query=first.query,
        text=first.text,
        score=float(sides["contribution"].sum()),
        note=NOTE + (NOT_DROPPED if words["contribution"].isna().any() else ""),
        words=words,
        parts=by_side[list(explanations)].to_dict() if len(explanations) > 1 else {},
        read=_read_by_all(list(explanations.values())),
        sides=sides,
        explanations=explanations,
    )


def _ranker(side: pt.Transformer | None) -> pt.Transformer | None:
    """The ranker that scores a side; None for the incoming score."""
    last = list(side)[-1] if isinstance(side, pt.Compose) else side
    return last.model if isinstance(last, Retriever) else last


def _name(ranker: pt.Transformer | None, explanation: TextExplanation | None) -> str:
    """The name of a side: that of its class, or of what explains the incoming score."""
    if ranker is not None:
        return type(ranker).__name__
    return INCOMING if explanation is None else explanation.model.partition("(")[0]


def _incoming_score(names: list[str], incoming: float | None) -> dict[str, float]:
    """The score of the side that cannot be explained, by its name; empty if both can."""
    if not names and incoming is not None:
        raise ValueError(f"incoming={incoming!r} is not needed, because both sides of the mixture score the text")
    if names and incoming is None:
        raise ValueError(
            f"the side {names[0]!r} of the mixture reads no text: give its score of the document, as in the incoming "
            "row, by incoming=row['score'], or explain the whole pipeline, which knows it"
        )
    return {name: checked_number("incoming", incoming, float) for name in names}


def _weighted_words(explanations: dict[str, TextExplanation], factors: dict[str, float]) -> pd.DataFrame:
    """The words of both texts, what the mixture loses without each, and what each explained side loses."""
    words = {name: explanation.by_word() for name, explanation in explanations.items()}
    if len({explanation.text for explanation in explanations.values()}) > 1:
        raise ValueError("the sides of the mixture read different fields of the document: give its text as one string")
    losses = pd.DataFrame({name: factors[name] * frame["contribution"] for name, frame in words.items()})
    first = next(iter(words.values())).assign(contribution=losses.sum(axis=1, skipna=False))
    first["match"] = np.logical_or.reduce([frame["match"] for frame in words.values()])
    return pd.concat([first, losses], axis=1) if len(words) > 1 else first


def _read_by_all(explanations: list[TextExplanation]) -> dict[Side, int | None]:
    """Where the part of each text ends that any side reads; None if one reads all."""
    ends = {side: [explanation._read(side) for explanation in explanations] for side in SIDES}
    return {side: None if None in found else max(found) for side, found in ends.items()}


@dataclass(frozen=True, repr=False)
class MixtureExplanation(PartsExplanation):
    """Which share each side of a mixture, and each word, has in the score.

    If both sides are explained, :meth:`to_frame` has a column for each: how much its part of the score loses.

    Attributes:
        sides: One row per side: ``side`` (its name), ``weight`` (alpha or 1 - alpha), ``score`` (normalised, if the
            mixture does that) and ``contribution``, the product of both; contributions add up to the score.
        explanations: The explanations of the sides whose words are known, by name.
    """

    sides: pd.DataFrame
    explanations: dict[str, TextExplanation]

    lost: ClassVar[str] = "lost by the mixture without the word"

    def shares(self, side: Side = "document") -> pd.DataFrame:
        """The share of each side and word in the score; the absolute values of all shares add up to 1.

        A side has the share of its part of the score. It is divided among the words of a text in proportion to what
        each contributes to that side; a word that lowers the side's score has a share below 0. What is known of no
        word, such as a score that came in, is in a row of its own.

        Args:
            side: Which text's words: ``"query"`` or ``"document"``.

        Returns:
            Frame indexed by ``word``, the largest share first, with ``match`` (whether both texts have it) and a column
            per side of the mixture.

        Raises:
            ValueError: If the side is neither.
        """
        rows = self.words[self.words["side"] == checked_side(side)]
        words = rows.groupby("word", sort=False)
        shares = words["match"].any().to_frame()
        total = max(self.sides["contribution"].abs().sum(), 1e-12)
        rest = {}
        for name, part in zip(self.sides["side"], self.sides["contribution"].abs() / total, strict=True):
            column = name if name in rows else "contribution" if name in self.explanations else None
            lost = words[column].sum() if column else pd.Series(0.0, index=shares.index)
            divisor = float(lost.abs().sum())
            shares[name] = part * lost / divisor if divisor > 0 else 0.0
            rest[name] = 0.0 if divisor > 0 else part
        if any(rest.values()):
            undivided = pd.DataFrame({"match": False, **rest}, index=[NO_WORDS])
            shares = pd.concat([shares, undivided]) if len(shares) else undivided
        names = self.sides["side"].tolist()
        order = shares[names].abs().sum(axis=1).sort_values(ascending=False, kind="stable").index
        return shares.loc[order].rename_axis(index="word").astype(dict.fromkeys(names, float))

    def plot(self, ax: "Axes | None" = None, *, words: int = 15, side: Side = "document") -> "Axes":
        """Draw the words with the largest shares, with what each side gives them; all bars together make 100 percent.

        Args:
            ax: Axes to draw on; None for a new figure.
            words: Number of distinct words to show; the others have one bar together.
            side: Which text's words.

        Raises:
            ValueError: If the side is neither ``"query"`` nor ``"document"``, or if ``words`` is below 1.
        """
        count, shares = checked_number("words", words, int, least=1), self.shares(side)
        names = self.sides["side"].tolist()
        kept = shares.index[:count].union(shares.index.intersection([NO_WORDS]), sort=False)
        shown, rest = shares.loc[kept], shares.drop(kept)
        if len(rest):
            others = pd.DataFrame({"match": False, **rest[names].abs().sum()}, index=[f"{len(rest):,} other words"])
            shown = pd.concat([shown, others])
        parts = 100 * self.sides["contribution"].abs() / max(self.sides["contribution"].abs().sum(), 1e-12)
        legend = dict(zip(MODEL_COLOURS, map("{}: {:.0f}%".format, names, parts), strict=False))
        return draw_words(
            ax,
            100 * shown[names][::-1],
            dict(zip(names, MODEL_COLOURS, strict=False)),
            legend,
            title=self._title(),
            label=f"share of the score, in percent; all bars make 100 ({IN_BOTH})",
            nothing=f"no word of the {side} to show",
            matches=shown["match"][::-1],
            stacked=True,
        )

    def _total(self) -> str:
        addends = " + ".join(f"{row.weight:g} × {row.score:.4g} ({row.side})" for row in self.sides.itertuples())
        return f"{super()._total()} = {addends}".replace("-", "−")

    def _part_name(self, name: str) -> str:
        return name
