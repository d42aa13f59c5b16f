"""What the pictures of explanations share: marked text for notebooks, bars of words, heat maps."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from pt_neural.text import token_spans

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Okabe and Ito's orange, blue and reddish purple, which remain distinct in all common forms of colour blindness.
MATCH_COLOUR = "#E69F00"
SUPPORT_COLOUR = "#0072B2"
AGAINST_COLOUR = "#CC79A7"
MODEL_COLOURS = (SUPPORT_COLOUR, "#D55E00", "#009E73", "#56B4E9", "#000000", "#999999")  # where models are compared
HIGHLIGHT = f"background: {MATCH_COLOUR}; color: black; font-weight: bold"

WORDS_SHOWN = 2000  # of a text in a notebook
LEAST_SHADE = 0.1

TITLE_LENGTH = 60  # characters of a line
WORD_LENGTH = 25
LINE = 0.28  # inches per word

CELL_WORD_LENGTH = 16
BAR_NAME_LENGTH = 2 * CELL_WORD_LENGTH + 3  # a pair of words
CELL = 0.25  # inches
FEWEST_COLUMNS, FEWEST_BARS = 16, 4  # that there is room for at least
FEW_ROWS, TALL_CELL = 3, 1.5  # with this few rows, cells are this many times as high as wide
AROUND = 2.6  # inches for words, colour bar and gaps
LEFT_OUT = "…"


def shortened(text: str, length: int = 45) -> str:
    """A text on one line, cut to ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def paragraph(html: str) -> str:
    """A paragraph that keeps the line breaks of its text."""
    return f'<p style="white-space: pre-wrap">{html}</p>'


class Mark(NamedTuple):
    """A marked piece of a text.

    Attributes:
        start: Where it starts in the text.
        end: Where the text continues after it.
        shown: What is shown in its place, as plain text.
        style: CSS declarations.
        hint: What the pointer shows over it.
        label: A small superscript after it.
    """

    start: int
    end: int
    shown: str
    style: str
    hint: str
    label: str = ""

    def to_html(self) -> str:
        """The piece as an HTML element."""
        label = f"<sup>{escape(self.label)}</sup>" if self.label else ""
        style = f"{self.style}; border-radius: 3px; padding: 1px 2px"
        return f'<span title="{escape(self.hint)}" style="{style}">{escape(self.shown)}{label}</span>'


def marked(text: str, marks: Iterable[Mark]) -> str:
    """A text as escaped HTML with its marks; a long text is cut after :data:`WORDS_SHOWN` words.

    Args:
        text: The text.
        marks: Pieces that do not overlap, in the order of the text.
    """
    spans = token_spans(text)
    end = spans[WORDS_SHOWN - 1][2] if len(spans) > WORDS_SHOWN else len(text)
    pieces, position = [], 0
    for mark in marks:
        if mark.start >= end:
            break
        pieces += [escape(text[position : mark.start]), mark.to_html()]
        position = mark.end
    pieces.append(escape(text[position:end]))
    if len(spans) > WORDS_SHOWN:
        pieces.append(f" … ({len(spans) - WORDS_SHOWN:,} more words)")
    return "".join(pieces)


def background(colour: str, strength: int) -> str:
    """CSS for a background from 0 (transparent) to 100 (the pure colour)."""
    return f"background: color-mix(in srgb, {colour} {strength}%, transparent)"


def shades(contributions: np.ndarray) -> np.ndarray:
    """Contributions relative to the strongest one, from -1 to 1; NaN for those too weak to colour."""
    shares = contributions / max(np.nan_to_num(np.abs(contributions)).max(initial=0), 1e-9)
    return np.where(np.abs(shares) >= LEAST_SHADE, shares, np.nan)


def word_marks(
    text: str, words: pd.DataFrame, column: str = "contribution", *, hint: str = "contribution"
) -> list[Mark]:
    """Mark the words of a text: bold if both texts have them, and coloured by what they contribute.

    Args:
        text: The text.
        words: Its words in order: ``start``, ``end``, ``match`` and the column.
        column: The contributions.
        hint: What the pointer over a word shows before the number.
    """
    values = words[column].to_numpy()
    rows = zip(words["start"], words["end"], words["match"], values, shades(values), strict=True)
    return [
        Mark(start, end, text[start:end], word_style(match, shade), f"{hint} {value:.4f}")
        for start, end, match, value, shade in rows
        if match or not np.isnan(shade)
    ]


def word_style(match: bool, shade: float, *, match_style: str = "font-weight: bold") -> str:
    """CSS for a word.

    Args:
        match: Whether both texts have the word.
        shade: From -1 (it lowers the score) to 1 (it raises it); NaN for no colour.
        match_style: CSS for words that both texts have.
    """
    styles = [match_style] if match else []
    if not np.isnan(shade):
        styles.append(background(AGAINST_COLOUR if shade < 0 else SUPPORT_COLOUR, 10 + round(50 * abs(shade))))
    if shade < 0:
        styles.append("text-decoration: underline dashed")  # colour is not the only sign
    return "; ".join(styles)


def new_axes(width: float, height: float) -> "Axes":
    """The axes of a new figure of that many inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def set_title(ax: "Axes", title: str, **options: object) -> None:
    """Set a title that may contain dollar signs."""
    ax.set_title(title, fontsize="medium", parse_math=False, **options)


def write_instead(ax: "Axes", message: str) -> None:
    """Write a message where there is nothing to draw."""
    ax.text(0.5, 0.5, message, ha="center", va="center", transform=ax.transAxes)


def swatch(colour: str) -> "Artist":
    """A rectangle of a colour, for a legend."""
    import matplotlib.pyplot as plt

    return plt.Rectangle((0, 0), 1, 1, color=colour)


def outline(corner: tuple[float, float] = (0, 0), side: float = 1) -> "Artist":
    """An empty square, around a matching pair or for a legend."""
    import matplotlib.pyplot as plt

    return plt.Rectangle(corner, side, side, fill=False, color=MATCH_COLOUR, linewidth=2)


def legend_above(ax: "Axes", handles: list["Artist"], labels: Iterable[str], *, columns: int) -> None:
    """Draw a legend between the axes and their title."""
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    ax.legend(handles, labels, **place, ncols=columns, columnspacing=1, handlelength=1, frameon=False, fontsize="small")


def draw_words(
    ax: "Axes | None",
    values: pd.DataFrame,
    colours: dict[str, list[str] | str],
    legend: dict[str, str],
    *,
    label: str,
    nothing: str,
    length: int = WORD_LENGTH,
) -> "Axes":
    """Draw horizontal bars, the last word at the top.

    Args:
        ax: Axes to draw on; None for a new figure.
        values: One row per word, indexed by it, and a column for each of its bars, from top to bottom.
        colours: Colour of the bars of each column, or a list with one for each word.
        legend: Meaning of each colour.
        label: What the bars measure.
        nothing: What to write if there are no words.
        length: Characters of a word; longer ones are cut.
    """
    if ax is None:
        ax = new_axes(6, 1.4 + LINE * max(1.0, 0.6 * len(colours)) * len(values))
    places, height = np.arange(len(values)), 0.8 / len(colours)
    for number, (column, colour) in enumerate(colours.items()):
        shift = ((len(colours) - 1) / 2 - number) * height
        ax.barh(places + shift, values[column], height=height, color=colour)
    ax.set_yticks(places, [shortened(word, length) for word in values.index], parse_math=False)
    if values.empty:
        ax.set_xticks([])
        write_instead(ax, nothing)
    else:
        ax.axvline(0, color="0.3", linewidth=0.8)
    ax.set_xlabel(label)
    if legend:
        legend_above(ax, list(map(swatch, legend)), legend.values(), columns=min(3, len(legend)))
    return ax


def embolden(ax: "Axes", matches: pd.Series) -> None:
    """Write the words that both texts have in bold, given one boolean per bar from the bottom up."""
    for word, match in zip(ax.get_yticklabels(), matches, strict=True):
        word.set_fontweight("bold" if match else "normal")


def strongest(words: pd.DataFrame, columns: list[str], aggregate: str, count: int) -> pd.DataFrame:
    """The words with the largest contributions, one row each, in ascending order of the first column.

    Args:
        words: Occurrences: ``word``, ``match`` and the columns; NaN in the first one for what was not tried.
        columns: Columns of contributions.
        aggregate: How the occurrences of a word become one row, such as ``"sum"``.
        count: Number of words at most.
    """
    tried = words[words[columns[0]].notna()].groupby("word", sort=False)
    totals = tried[columns].agg(aggregate).assign(match=tried["match"].any())
    order = totals[columns].abs().max(axis=1).sort_values(ascending=False, kind="stable").index[:count]
    return totals.loc[order].sort_values(columns[0], kind="stable")


@dataclass(frozen=True)
class HeatMap:
    """What a heat map shows.

    Attributes:
        rows: Words of the query, from top to bottom.
        columns: Words of the document, from left to right.
        cells: What each pair adds to the score, of shape (rows, columns); NaN for gaps.
        outlined: Whether a pair is a word with itself, bool of that shape.
        labels: What the rows are, and what the columns are.
        legend: What an outline means.
        boundaries: Whether each column is a boundary and not a word; None if all are words.
    """

    rows: list[str]
    columns: list[str]
    cells: np.ndarray
    outlined: np.ndarray
    labels: tuple[str, str]
    legend: str
    boundaries: np.ndarray | None = None


def draw_heat_map(
    ax: "Axes | None", heat_map: HeatMap, bars: pd.DataFrame, *, title: str, width: float, nothing: str
) -> "Axes":
    """Draw a heat map and, in a new figure, bars beside it.

    Args:
        ax: Axes to draw the heat map on, without the bars; None for a new figure.
        heat_map: The cells.
        bars: ``contribution`` by name, the strongest first.
        title: Title of the figure.
        width: Inches for the bars with their names.
        nothing: What to write if there are no bars.

    Returns:
        The axes of the heat map.
    """
    import matplotlib.pyplot as plt

    if ax is not None:
        _draw_cells(ax, heat_map)
        set_title(ax, title, pad=26, loc="left")
        return ax
    room = CELL * max(FEWEST_COLUMNS, len(heat_map.columns))
    height = 2.4 + CELL * max(len(heat_map.rows), len(bars))
    figure, (heat, beside) = plt.subplots(
        1, 2, figsize=(AROUND + room + width, height), width_ratios=[room + 1, width], layout="constrained"
    )
    figure.suptitle(title, fontsize="medium", parse_math=False)
    _draw_cells(heat, heat_map)
    _draw_bars(beside, bars, nothing)
    return heat


def _draw_bars(ax: "Axes", bars: pd.DataFrame, nothing: str) -> None:
    from matplotlib.ticker import MaxNLocator

    bars = bars[["contribution"]].iloc[::-1]
    colours = np.where(bars["contribution"] < 0, AGAINST_COLOUR, SUPPORT_COLOUR).tolist()
    draw_words(ax, bars, {"contribution": colours}, {}, label="contribution", nothing=nothing, length=BAR_NAME_LENGTH)
    if len(bars):
        ax.xaxis.set_major_locator(MaxNLocator(3))
    ax.set_ylim(len(bars) - max(FEWEST_BARS, len(bars)) - 0.5, len(bars) - 0.5)


def _draw_cells(ax: "Axes", heat_map: HeatMap) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    row_label, column_label = heat_map.labels
    ax.set(xlabel=column_label, ylabel=row_label)
    if not heat_map.cells.size:
        ax.set(xticks=[], yticks=[])
        write_instead(ax, "no cell to show")
        return
    colours = LinearSegmentedColormap.from_list("contributions", [AGAINST_COLOUR, "white", SUPPORT_COLOUR])
    colours = colours.with_extremes(bad="0.88")  # gaps
    most = max(np.nanmax(np.abs(heat_map.cells)), 1e-9)
    image = ax.imshow(heat_map.cells, cmap=colours, vmin=-most, vmax=most)
    ax.set_aspect("auto" if len(heat_map.rows) > FEW_ROWS else TALL_CELL)
    ax.figure.colorbar(image, ax=ax, label="contribution to the score", aspect=12, pad=0.02)
    for row, column in zip(*np.nonzero(heat_map.outlined), strict=True):
        ax.add_patch(outline(corner=(column - 0.42, row - 0.42), side=0.84))
    rows, columns = (
        [shortened(word, CELL_WORD_LENGTH) for word in words] for words in (heat_map.rows, heat_map.columns)
    )
    ax.set_xticks(np.arange(len(columns)), columns, rotation=90, fontsize="small", parse_math=False)
    ax.set_yticks(np.arange(len(rows)), rows, parse_math=False)
    if heat_map.boundaries is not None:
        for label, boundary in zip(ax.get_xticklabels(), heat_map.boundaries, strict=True):
            label.set_fontstyle("italic" if boundary else "normal")
    if heat_map.outlined.any():
        legend_above(ax, [outline()], [heat_map.legend], columns=1)
