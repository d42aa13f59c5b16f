"""Which side of a mixture a score comes from, as a frame, as shaded panels, as a figure."""

from dataclasses import dataclass
from textwrap import wrap
from typing import ClassVar

import pandas as pd

from pt_neural.explain.explanation import TITLE_LENGTH, TextExplanation
from pt_neural.explain.parts import PartsExplanation


@dataclass(frozen=True, repr=False)
class MixtureExplanation(PartsExplanation):
    """How much of a mixture's score each side gives, and what each loses without a word.

    In :meth:`to_frame` a side has a column of its own if both read the text: what its part of the score loses.

    Attributes:
        sides: One row a side: ``side`` (its name), ``weight`` (alpha or 1 - alpha), ``score`` and ``contribution``, the
            product of both; contributions add up to the score.
        explanations: Those of the sides that read the text, by name.
    """

    sides: pd.DataFrame
    explanations: dict[str, TextExplanation]

    lost: ClassVar[str] = "lost by the mixture without the word"

    def _total(self) -> str:
        addends = " + ".join(f"{row.weight:g} × {row.score:.4g} ({row.side})" for row in self.sides.itertuples())
        return f"{super()._total()} = {addends}".replace("-", "−")

    def _title(self) -> list[str]:
        return [self.model, *wrap(self._total(), TITLE_LENGTH)]

    def _part_name(self, name: str) -> str:
        return name
