"""What the explanations share that leave words out."""

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number

WORDS_A_BATCH = 1_000_000
LEAST_SHADE = 0.1
LEGEND = (
    "Blue: words whose loss lowers the score; purple and underlined: words whose loss raises it; the stronger the "
    "colour, the more, within each text."
)


def checked_terms(terms: int) -> int:
    """How many words to drop, or an error that says what is wrong with it."""
    return checked_number("terms", terms, int, least=1)


def shades(contributions: np.ndarray) -> np.ndarray:
    """From -1 to 1, relative to the strongest contribution; NaN for weak ones, which would colour the whole text."""
    shares = contributions / max(np.nan_to_num(np.abs(contributions)).max(initial=0), 1e-9)
    return np.where(np.abs(shares) >= LEAST_SHADE, shares, np.nan)


def side_shades(words: pd.DataFrame, column: str) -> np.ndarray:
    """Shades of a column of contributions, each text relative to its own strongest one."""
    result = np.full(len(words), np.nan)
    for rows in words.groupby("side", sort=False).indices.values():
        result[rows] = shades(words[column].to_numpy()[rows])
    return result


def left_out(side: str, there: int, dropped: int, what: str) -> str:
    """A sentence on what was not dropped; empty where all was."""
    if there <= dropped:
        return ""
    return f" Of the {there:,} {what} of the {side}, {dropped:,} were dropped in turn."
