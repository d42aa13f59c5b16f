"""What several models see in one document, side by side."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Explanation, Side, TextExplanation, checked_side, shortened
from pt_neural.explain.marking import MODEL_COLOURS
from pt_neural.explain.word_figure import WORD_LENGTH, draw_words, embolden

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTE = (
    "Each model reads the document in its own way, told above each text; colours are relative to the strongest word "
    "of each."
)


@dataclass(frozen=True, repr=False)
class ComparedExplanations(Explanation):
    """What several models see in one document for one query.

    Models score on scales of their own, so that what they give to words is compared by shares: what a model gives to a
    word, divided by the sum of what it gives to all words of that text, regardless of signs.

    Attributes:
        explanations: That of each model, by its name.
    """

    explanations: dict[str, TextExplanation]

    @property
    def text(self) -> str:
        """The document's text, as the first model reads it."""
        return next(iter(self.explanations.values())).text

    @property
    def score(self) -> pd.Series:
        """The score of each model, by its name."""
        return pd.Series({name: one.score for name, one in self.explanations.items()}, name="score", dtype=float)

    def to_frame(self) -> pd.DataFrame:
        """One row a model and word occurrence, by model and in the order of the texts.

        Returns:
            Frame with ``model``, with ``word``, ``start``, ``end``, ``side``, ``match`` and ``contribution`` as the
            model's own :meth:`~pt_neural.explain.explanation.TextExplanation.by_word` has them, and with ``share``, of
            all that the model gives to words of that text; NaN where a word was not tried.
        """
        frames = [_with_shares(one.by_word()).assign(model=name) for name, one in self.explanations.items()]
        both = pd.concat(frames, ignore_index=True)
        return both[["model", *both.columns.drop("model")]]

    def shares(self, side: Side = "document") -> pd.DataFrame:
        """What share each model gives to each distinct word of a text, the word with the largest one first.

        Args:
            side: Which text: ``"query"`` or ``"document"``.

        Returns:
            Frame indexed by ``word``, with ``match`` (whether the other text has the word) and a column for each
            model; 0 for words that a model does not read or that were not tried.

        Raises:
            ValueError: If the side is neither.
        """
        frame = self.to_frame()
        frame = frame[frame["side"] == checked_side(side)]
        by_model = frame.pivot_table("share", "word", "model", aggfunc="sum", sort=False).fillna(0.0)
        by_model = by_model.reindex(columns=list(self.explanations), fill_value=0.0).rename_axis(columns=None)
        order = by_model.abs().max(axis=1).sort_values(ascending=False, kind="stable").index
        by_model.insert(0, "match", frame.groupby("word")["match"].any(), allow_duplicates=True)
        return by_model.loc[order]

    def plot(self, ax: "Axes | None" = None, *, words: int = 12, side: Side = "document") -> "Axes":
        """Draw the words that get the largest shares from any model, with a bar for each model.

        Args:
            ax: Axes to draw on; a new figure by default.
            words: How many distinct words to show.
            side: Of which text.

        Raises:
            ValueError: If the side is neither ``"query"`` nor ``"document"``, if ``words`` is below 1, or if there are
                more than six models.
        """
        if len(self.explanations) > len(MODEL_COLOURS):
            raise ValueError(f"a picture has room for {len(MODEL_COLOURS)} models, not for {len(self.explanations)}")
        shares = self.shares(side).head(checked_number("words", words, int, least=1))
        matches, percent = shares.iloc[::-1, 0], 100 * shares.iloc[::-1, 1:]
        colours = dict(zip(percent, MODEL_COLOURS, strict=False))
        legend = {colours[name]: f"{shortened(name, WORD_LENGTH)}: {self.score[name]:.4g}" for name in percent}
        ax = draw_words(
            ax,
            percent,
            colours,
            legend,
            label=f"share of all that a model gives to words of the {side}, in percent\n(bold: in query and document)",
            nothing=f"no word of the {side} to show",
        )
        embolden(ax, matches)
        rows = -(-len(legend) // 3)
        ax.set_title(f'"{shortened(self.query)}"', fontsize="medium", parse_math=False, loc="left", pad=10 + 16 * rows)
        return ax

    def _repr_html_(self) -> str:
        columns = "".join(
            f'<div style="flex: 1 1 20em; min-width: 0; overflow-x: auto">{one._repr_html_()}</div>'
            for one in self.explanations.values()
        )
        return f'<div style="display: flex; flex-wrap: wrap; gap: 2em; align-items: flex-start">{columns}</div>'

    def __repr__(self) -> str:
        scores = ", ".join(f"{name}: {score:.4f}" for name, score in self.score.items())
        return f"{type(self).__name__}({shortened(self.query)!r}, {scores})"


def compare(
    models: Mapping[str, pt.Transformer] | Sequence[pt.Transformer], explain: Callable[[pt.Transformer], Explanation]
) -> ComparedExplanations:
    """Explain one document by several models.

    Args:
        models: The models, by their names; those without are named after their kind.
        explain: Explains it by one of them.

    Raises:
        ValueError: If there is no model.
        TypeError: If the explanation is not one of a document's words.
    """
    named = dict(models) if isinstance(models, Mapping) else dict(zip(distinct_names(models), models, strict=True))
    if not named:
        raise ValueError("there is no model to explain: give at least one, or two to compare")
    found = {}
    for name, model in named.items():
        explanation = explain(model)
        if not isinstance(explanation, TextExplanation):
            raise TypeError(f"this explanation of {name} is none of a document's words, by which models are compared")
        found[name] = replace(explanation, model=str(name))
    return ComparedExplanations(
        model=", ".join(map(str, found)), query=next(iter(found.values())).query, note=NOTE, explanations=found
    )


def distinct_names(models: Sequence[pt.Transformer]) -> list[str]:
    """The kind of each model, such as ``"CLSM"``; numbered from 1 where there are several of a kind."""
    kinds = [type(model).__name__ for model in models]
    several, seen = Counter(kinds), Counter()
    names = []
    for kind in kinds:
        seen[kind] += 1
        names.append(f"{kind} {seen[kind]}" if several[kind] > 1 else kind)
    return names


def _with_shares(words: pd.DataFrame) -> pd.DataFrame:
    """Words with what share of all each occurrence has, by side; 0 where the model gives nothing to any."""
    totals = words.groupby(["side", "word"], sort=False)["contribution"].sum().abs().groupby("side").sum()
    return words.assign(share=words["contribution"] / words["side"].map(totals).clip(lower=1e-12).astype(float))
