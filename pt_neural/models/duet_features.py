"""The parts of a Duet as transformers and as features."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._frames import with_scores
from pt_neural.models.duet_networks import joint_scores

if TYPE_CHECKING:
    from pt_neural.models.duet import Duet


class DuetParts(pt.Transformer):
    """Scores result frames by parts of a Duet: the outputs of the parts before their tanh.

    ``duet.local ** duet.distributed``, and such with ``duet`` itself, become features from one pass over the texts when
    the pipeline is compiled.

    Args:
        duet: The model.
        names: ``"local"``, ``"distributed"``, or ``"duet"`` for both together. One gives scores; several, like
            ``**``, a column ``features`` of float64 arrays.
    """

    def __init__(self, duet: "Duet", *names: str):
        self.duet = duet
        self.names = names
        self.schematic = {"label": f"Duet {', '.join(names)}", "help_url": None}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Re-rank by one part, or add the features of several."""
        self.duet.check_columns(inp, self)
        values = np.zeros((0, len(self.names))) if inp.empty else self._values(inp)
        if len(self.names) == 1:
            return with_scores(inp, values[:, 0])
        return inp.assign(features=pd.Series(list(values), index=inp.index, dtype=object))

    def _values(self, frame: pd.DataFrame) -> np.ndarray:
        """float64 of shape (rows, names)."""
        outputs = self.duet.part_outputs(frame)
        columns = dict(zip(self.duet.parts, outputs.unbind(1), strict=True))
        columns["duet"] = joint_scores(outputs)
        return np.stack([columns[name].numpy() for name in self.names], axis=1).astype(np.float64)

    def fuse_feature_union(self, other: pt.Transformer, is_left: bool) -> "DuetParts | None":
        """One transformer for this one and another of the same model; None for others."""
        if other is self.duet:
            names = ("duet",)
        elif isinstance(other, DuetParts) and other.duet is self.duet:
            names = other.names
        else:
            return None
        return DuetParts(self.duet, *self.names, *names) if is_left else DuetParts(self.duet, *names, *self.names)

    def __repr__(self) -> str:
        return f"{self.duet!r}.{'+'.join(self.names)}"
