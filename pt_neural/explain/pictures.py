"""The building blocks of pictures of explanations: marked text for notebooks, bars of words, heat maps."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from pt_neural._pictures import COLOURS, fit_labels, legend_above, new_axes, new_figure, set_title, title_of
from pt_neural.text import token_spans

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text

# One code for all pictures and all HTML of explanations: blue raises the score, vermilion lowers it, and words in bold
# are in query and document. Bars of several models or parts have the other colours.
SUPPORT_COLOUR, AGAINST_COLOUR = COLOURS[0], COLOURS[5]
MODEL_COLOURS = ("#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#999999")  # to compare models
DIRECTIONS = {SUPPORT_COLOUR: "raises the score", AGAINST_COLOUR: "lowers it"}
IN_BOTH = "bold: in query and document"

BOLD = "font-weight: bold"
UNREAD = "color: color-mix(in srgb, currentColor 70%, transparent)"  # grey on any page, with a contrast of 4.5 and more
FAINTEST, STRONGEST = 12, 55  # percent of a colour behind a word; text is read easily on the strongest, too

SHADES_NOTE = "The stronger the colour, the more, within each text."

WORDS_SHOWN = 2000  # of a text in a notebook
LEAST_SHADE = 0.1

WORD_LENGTH = 25
LINE = 0.28  # inches per word
AXIS_LINES = 0.75  # inches below bars, for their scale and what they measure

CELL_WORD_LENGTH = 16
BAR_NAME_LENGTH = 2 * CELL_WORD_LENGTH + 3  # a pair of words
CELL = 0.25  # inches
FEWEST_COLUMNS, FEWEST_BARS = 16, 4  # a figure has room for at least so many
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
        end: Where it ends.
        shown: The plain text to show in its place.
        style: CSS declarations.
        hint: The text to show when the pointer is over it.
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


def marked(text: str, marks: Iterable[Mark], read: int | None = None) -> str:
    """A text as escaped HTML with its marks; a long text is cut after :data:`WORDS_SHOWN` words.

    Args:
        text: The text.
        marks: Pieces that do not overlap, in the order of the text.
        read: Where the part of the text ends that the model reads, in characters; the rest is grey. None for all of it.
    """
    if read is not None and token_spans(text[read:]):
        head = marked(text[:read], (mark for mark in marks if mark.start < read))
        return f'{head}<span style="{UNREAD}">{marked(text[read:], [])}</span>'
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


def key(html: str) -> str:
    """What the colours and letters of marked texts mean, as an HTML paragraph of those that occur in them."""
    samples = {
        SUPPORT_COLOUR: (word_style(False, 1.0), "raises the score"),
        AGAINST_COLOUR: (word_style(False, -1.0), "lowers it"),
        BOLD: (BOLD, "in query and document"),
        UNREAD: (UNREAD, "not read"),
    }
    shown = [sample for sign, sample in samples.items() if sign in html]
    pieces = (f'<span style="{style}; border-radius: 3px; padding: 1px 4px">{name}</span>' for style, name in shown)
    return f"<p><small>{' '.join(pieces)}</small></p>" if shown else ""


def word_marks(
    text: str, words: pd.DataFrame, column: str = "contribution", *, hint: str = "contribution"
) -> list[Mark]:
    """Mark the words of a text: bold if both texts have them, and coloured by their contribution.

    Args:
        text: The text.
        words: Its words in order: ``start``, ``end``, ``match`` and the column.
        column: The contributions.
        hint: The text before the number that is shown when the pointer is over a word.
    """
    values = words[column].to_numpy()
    rows = zip(words["start"], words["end"], words["match"], values, shades(values), strict=True)
    return [
        Mark(start, end, text[start:end], word_style(match, shade), f"{hint} {value:.4f}")
        for start, end, match, value, shade in rows
        if match or not np.isnan(shade)
    ]


def word_style(match: bool, shade: float) -> str:
    """CSS for a word.

    Args:
        match: Whether both texts have the word.
        shade: From -1 (it lowers the score) to 1 (it raises it); NaN for no colour.
    """
    styles = [BOLD] if match else []
    if not np.isnan(shade):
        strength = FAINTEST + round((STRONGEST - FAINTEST) * abs(shade))
        styles.append(background(AGAINST_COLOUR if shade < 0 else SUPPORT_COLOUR, strength))
    if shade < 0:
        styles.append("text-decoration: underline dashed")  # colour is not the only sign
    return "; ".join(styles)


def directions(contributions: pd.Series | np.ndarray) -> list[str]:
    """The colour of each contribution: one for what raises the score, one for what lowers it."""
    return np.where(np.asarray(contributions) < 0, AGAINST_COLOUR, SUPPORT_COLOUR).tolist()


def titled_axes(ax: "Axes | None", title: list[str], width: float, height: float, *, above: int = 0) -> "Axes":
    """Axes with a title: those that are given, or those of a new figure.

    Args:
        ax: Axes to draw on; None for a new figure.
        title: The lines of the title.
        width: Inches of a new figure.
        height: The same, without the title.
        above: Lines of a legend between axes and title.
    """
    if ax is None:
        ax = new_axes(width, height + 0.2 * above)
        title_of(ax.figure, title)
    else:
        room = max(20, int(14 * ax.get_window_extent().width / ax.figure.dpi))
        set_title(ax, "\n".join(shortened(line, room) for line in title), loc="left", pad=6 + 18 * above)
    return ax


def write_instead(ax: "Axes", message: str) -> None:
    """Write a message where there is nothing to draw."""
    ax.text(0.5, 0.5, message, ha="center", va="center", transform=ax.transAxes)


def swatch(colour: str) -> "Artist":
    """A rectangle of a colour, for a legend."""
    import matplotlib.pyplot as plt

    return plt.Rectangle((0, 0), 1, 1, color=colour)


def draw_words(
    ax: "Axes | None",
    values: pd.DataFrame,
    colours: dict[str, list[str] | str],
    legend: dict[str, str],
    *,
    title: list[str],
    label: str,
    nothing: str,
    matches: pd.Series | None = None,
    stacked: bool = False,
    length: int = WORD_LENGTH,
) -> "Axes":
    """Draw horizontal bars, the last word at the top.

    Args:
        ax: Axes to draw on; None for a new figure.
        values: One row per word, indexed by it, and a column for each of its bars, from top to bottom.
        colours: Colour of the bars of each column, or a list with one for each word.
        legend: Meaning of each colour.
        title: The lines of the title.
        label: What the bars measure.
        nothing: What to write if there are no words.
        matches: Whether both texts have each word, to write it in bold.
        stacked: Whether the bars of a word follow each other on one line, those below 0 to the left.
        length: Characters of a word; longer ones are cut.
    """
    from matplotlib.ticker import MaxNLocator

    lines = 1.0 if stacked else max(1.0, 0.45 * len(colours))
    height = AXIS_LINES + 0.35 + LINE * lines * max(1, len(values))
    ax = titled_axes(ax, title, 6, height, above=-(-len(legend) // 2))
    draw_bars(ax, values, colours, nothing=nothing, stacked=stacked, length=length)
    if matches is not None:
        embolden(ax.get_yticklabels(), matches)
    ax.set_xlabel(label)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    # Matplotlib's own formatter may write a power of ten beside the axis, over its label.
    ax.xaxis.set_major_formatter(lambda value, place: f"{value:.3g}".replace("-", "−"))
    if legend:
        legend_above(ax, 3, handles=[swatch(colour) for colour in legend], names=legend.values(), left=True)
    fit_labels(ax)
    return ax


def draw_bars(
    ax: "Axes",
    values: pd.DataFrame,
    colours: dict[str, list[str] | str],
    *,
    nothing: str,
    length: int = WORD_LENGTH,
    stacked: bool = False,
) -> None:
    """Draw the bars of :func:`draw_words` and the names beside them, cut after ``length`` characters."""
    places, height = np.arange(len(values)), 0.8 / (1 if stacked else len(colours))
    ends = {sign: np.zeros(len(values)) for sign in (-1, 1)}  # of the bars that are stacked so far
    for number, (column, colour) in enumerate(colours.items()):
        widths = values[column].to_numpy(float)
        shift = 0.0 if stacked else ((len(colours) - 1) / 2 - number) * height
        left = np.where(widths < 0, ends[-1], ends[1]) if stacked else 0.0
        ax.barh(places + shift, widths, height=height, left=left, color=colour)
        for sign, end in ends.items():
            end += np.where(sign * widths > 0, widths, 0.0)
    ax.set_yticks(places, [shortened(word, length) for word in values.index], parse_math=False)
    if values.empty:
        ax.set_xticks([])
        write_instead(ax, nothing)
    else:
        ax.axvline(0, color="0.3", linewidth=0.8)


def embolden(labels: Iterable["Text"], matches: Iterable[bool]) -> None:
    """Write the words that both texts have in bold, given one boolean for each."""
    for word, match in zip(labels, matches, strict=True):
        word.set_fontweight("bold" if match else "normal")


def strongest(words: pd.DataFrame, columns: list[str], aggregate: str, count: int) -> pd.DataFrame:
    """The words with the largest contributions, one row each, the strongest last.

    Args:
        words: Occurrences: ``word``, ``match`` and the columns; NaN in the first one for what was not tried.
        columns: Columns of contributions; the first one says how strong a word is.
        aggregate: How to combine the occurrences of a word, such as ``"sum"``.
        count: Largest number of words.
    """
    tried = words[words[columns[0]].notna()].groupby("word", sort=False)
    totals = tried[columns].agg(aggregate).assign(match=tried["match"].any())
    kept = totals[columns].abs().max(axis=1).sort_values(ascending=False, kind="stable").index[:count]
    return totals.loc[kept].sort_values(columns[0], key=np.abs, ascending=False, kind="stable")[::-1]


@dataclass(frozen=True)
class HeatMap:
    """The contents of a heat map.

    Attributes:
        rows: Words of the query, from top to bottom.
        columns: Words of the document, from left to right.
        cells: What each pair adds to the score, of shape (rows, columns); NaN for gaps.
        matches: Whether the other text has each word of the rows, and each of the columns.
        labels: What the rows are, and what the columns are.
        boundaries: Whether each column is a boundary and not a word; None if all are words.
    """

    rows: list[str]
    columns: list[str]
    cells: np.ndarray
    matches: tuple[np.ndarray, np.ndarray]
    labels: tuple[str, str]
    boundaries: np.ndarray | None = None


def draw_heat_map(
    ax: "Axes | None", heat_map: HeatMap, bars: pd.DataFrame, *, title: list[str], width: float, nothing: str
) -> "Axes":
    """Draw a heat map and, in a new figure, bars beside it.

    Args:
        ax: Axes to draw the heat map on, without the bars; None for a new figure.
        heat_map: The cells.
        bars: ``contribution`` by name, the strongest first.
        title: The lines of the title.
        width: Inches for the bars with their names.
        nothing: What to write if there are no bars.

    Returns:
        The axes of the heat map.
    """
    if ax is not None:
        titled_axes(ax, title, 0, 0)
        _draw_cells(ax, heat_map)
        fit_labels(ax)
        return ax
    room = CELL * max(FEWEST_COLUMNS, len(heat_map.columns))
    height = 2.0 + CELL * max(len(heat_map.rows), len(bars), FEWEST_BARS)
    figure = new_figure(AROUND + room + width, height, columns=2, width_ratios=[room + 1, width])
    heat, beside = figure.axes
    title_of(figure, title)
    _draw_cells(heat, heat_map)
    _draw_bars(beside, bars, nothing)
    fit_labels(heat, beside)
    return heat


def _draw_bars(ax: "Axes", bars: pd.DataFrame, nothing: str) -> None:
    from matplotlib.ticker import MaxNLocator

    bars = bars[["contribution"]].iloc[::-1]
    draw_bars(ax, bars, {"contribution": directions(bars["contribution"])}, nothing=nothing, length=BAR_NAME_LENGTH)
    ax.set_xlabel("contribution")
    if len(bars):
        ax.xaxis.set_major_locator(MaxNLocator(2))
    ax.set_ylim(len(bars) - max(FEWEST_BARS, len(bars)) - 0.5, len(bars) - 0.5)


def _draw_cells(ax: "Axes", heat_map: HeatMap) -> None:
    from matplotlib.colors import FuncNorm, LinearSegmentedColormap

    row_label, column_label = heat_map.labels
    ax.set(xlabel=f"{column_label}\n({IN_BOTH})", ylabel=row_label)
    if not heat_map.cells.size:
        ax.set(xticks=[], yticks=[])
        write_instead(ax, "no cell to show")
        return
    colours = LinearSegmentedColormap.from_list("contributions", [AGAINST_COLOUR, "white", SUPPORT_COLOUR])
    colours = colours.with_extremes(bad="0.88")  # gaps
    most = max(np.nanmax(np.abs(heat_map.cells)), 1e-9)
    # By the square root, so that weaker cells are not lost beside the strongest one.
    norm = FuncNorm((lambda x: np.sign(x) * np.sqrt(np.abs(x)), lambda x: np.sign(x) * x**2), -most, most)
    image = ax.imshow(heat_map.cells, cmap=colours, norm=norm, aspect="auto")
    bar = ax.figure.colorbar(image, ax=ax, label="contribution to the score", aspect=12, pad=0.02)
    ticks = most * np.array([-1, -0.25, 0, 0.25, 1])
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    rows, columns = (
        [shortened(word, CELL_WORD_LENGTH) for word in words] for words in (heat_map.rows, heat_map.columns)
    )
    ax.set_xticks(np.arange(len(columns)), columns, rotation=90, fontsize="small", parse_math=False)
    ax.set_yticks(np.arange(len(rows)), rows, parse_math=False)
    for labels, matches in zip((ax.get_yticklabels(), ax.get_xticklabels()), heat_map.matches, strict=True):
        embolden(labels, matches)
    if heat_map.boundaries is not None:
        for label, boundary in zip(ax.get_xticklabels(), heat_map.boundaries, strict=True):
            label.set_fontstyle("italic" if boundary else "normal")
