"""The rate of storing document representations, and their size."""

import itertools
from pathlib import Path
from typing import Any

import pandas as pd
from parts.rates import Rate, rate


def keep(model: Any, frame: pd.DataFrame, dtype: str, folder: Path) -> tuple[Any, dict[str, Rate | float]]:
    """The stored representations of a frame's documents, the rate of making them, and their bytes per document."""
    paths = (folder / f"{dtype}-{number}" for number in itertools.count())
    corpus = frame[["docno", "text"]].to_dict("records")
    keeping = rate(lambda: model.index(next(paths), corpus, dtype=dtype, verbose=False), len(corpus), repeats=2)
    path = next(paths)
    kept = model.index(path, corpus, dtype=dtype, verbose=False)
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file()) / len(corpus)
    return kept, {"keeping": keeping, "bytes": size}
