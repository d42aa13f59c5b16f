"""What several models see in one document, side by side."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Explanation, Side, TextExplanation, checked_side, quoted
from pt_neural.explain.pictures import IN_BOTH, MODEL_COLOURS, WORD_LENGTH, draw_words, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTE = (
    "Each model reads the document in its own way, as described above each text; colours are relative to the model's "
    "strongest word."
)


@dataclass(frozen=True, repr=False)
class ComparedExplanations(Explanation):
    """What several models see in one document for one query.

    Models score on different scales, so words are compared by shares: a word's contribution, divided by the sum of the
    absolute contributions of all words of that text.

    Attributes:
        explanations: The explanation of each model, by name.
    """

    explanations: dict[str, TextExplanation]

    @property
    def text(self) -> str:
        """The document's text as the first model reads it."""
        return next(iter(self.explanations.values())).text

    @property
    def score(self) -> pd.Series:
        """The score of each model, by name."""
        scores = {name: explanation.score for name, explanation in self.explanations.items()}
        return pd.Series(scores, name="score", dtype=float)

    def to_frame(self) -> pd.DataFrame:
        """One row per model and occurrence of a word, in the order of the models and the texts.

        Returns:
            Frame with ``model``; with ``word``, ``start``, ``end``, ``side``, ``match`` and ``contribution`` from the
            model's :meth:`~pt_neural.explain.TextExplanation.by_word`; and with ``share``, NaN where a word was not
            tried.
        """
        frames = {name: _with_shares(explanation.by_word()) for name, explanation in self.explanations.items()}
        frame = pd.concat([words.assign(model=name) for name, words in frames.items()], ignore_index=True)
        return frame[["model", *frame.columns.drop("model")]]

    def shares(self, side: Side = "document") -> pd.DataFrame:
        """The share of each distinct word of a text, the word with the largest share first.

        Args:
            side: Which text: ``"query"`` or ``"document"``.

        Returns:
            Frame indexed by ``word``, with ``match`` (whether the other text has the word) and a column per model; 0
            for words that a model does not read or that were not tried.

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
        """Draw the words with the largest shares, with a bar for each model.

        Args:
            ax: Axes to draw on; None for a new figure.
            words: Number of distinct words to show.
            side: Which text's words.

        Raises:
            ValueError: If the side is neither ``"query"`` nor ``"document"``, if ``words`` is below 1, or if there are
                more than six models.
        """
        if len(self.explanations) > len(MODEL_COLOURS):
            raise ValueError(f"a picture has room for {len(MODEL_COLOURS)} models, not for {len(self.explanations)}")
        shares = self.shares(side).head(checked_number("words", words, int, least=1)).iloc[::-1]
        percent = 100 * shares.iloc[:, 1:]
        colours = dict(zip(percent, MODEL_COLOURS, strict=False))
        legend = {colours[name]: f"{shortened(name, WORD_LENGTH)}: {self.score[name]:.4g}" for name in percent}
        return draw_words(
            ax,
            percent,
            colours,
            legend,
            title=[quoted(self.query)],
            label=f"share of all that a model gives to words of the {side}, in percent ({IN_BOTH})",
            nothing=f"no word of the {side} to show",
            matches=shares.iloc[:, 0],
        )

    def _repr_html_(self) -> str:
        columns = "".join(
            f'<div style="flex: 1 1 20em; min-width: 0; overflow-x: auto">{explanation._repr_html_()}</div>'
            for explanation in self.explanations.values()
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
        models: The models by name, or a sequence of models, which are named after their classes.
        explain: Explains the document by one model.

    Raises:
        ValueError: If there is no model.
        TypeError: If an explanation is not about the words of one document.
    """
    if not isinstance(models, Mapping):
        models = dict(zip(numbered([type(model).__name__ for model in models]), models, strict=True))
    if not models:
        raise ValueError("there is no model to explain: give at least one, or two to compare")
    explanations = {}
    for name, model in models.items():
        explanation = explain(model)
        if not isinstance(explanation, TextExplanation):
            raise TypeError(
                f"models are compared by the words of one document, but this explanation of {name} is not about words"
            )
        explanations[name] = replace(explanation, model=str(name))
    query = next(iter(explanations.values())).query
    return ComparedExplanations(
        model=", ".join(map(str, explanations)), query=query, note=NOTE, explanations=explanations
    )


def numbered(names: Sequence[str]) -> list[str]:
    """Names, numbered from 1 where one occurs several times: ``["CLSM 1", "CLSM 2"]``."""
    total, seen = Counter(names), Counter()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(f"{name} {seen[name]}" if total[name] > 1 else name)
    return distinct


def _with_shares(words: pd.DataFrame) -> pd.DataFrame:
    """Words with the share of each occurrence in its text; 0 if the model gives nothing to any word."""
    totals = words.groupby(["side", "word"], sort=False)["contribution"].sum().abs().groupby("side").sum()
    return words.assign(share=words["contribution"] / words["side"].map(totals).clip(lower=1e-12).astype(float))
