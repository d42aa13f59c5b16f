"""What all pictures share: colours, resolution, and text that fits: names, axis labels, titles and legends."""

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Colours that colour-blind readers can tell apart (Okabe and Ito).
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999999")
LINES = ("-", "--", ":", "-.")  # so that curves differ by more than their colours
DPI = 200

LETTERS_PER_INCH, HANDLE, LINE = 16.0, 6, 0.17  # small letters; letters as wide as a handle; inches between lines
OVERHANG = 1.12  # width of a legend relative to its axes, which grow once they are laid out
MANY_TICKS = 8  # of long numbers; more stand upright
MARGIN = 0.06  # inches between a title and the edges of a figure
TITLE_LINE = 0.2  # inches


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: object) -> "Figure":
    """A figure of that many inches with axes in rows and columns; ``options`` are those of ``plt.subplots``."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), dpi=DPI, layout="constrained", **options)[0]


def new_axes(width: float, height: float) -> "Axes":
    """The axes of a new figure of that many inches."""
    return new_figure(width, height).axes[0]


def plot_curve(ax: "Axes", x: "pd.Series", y: "pd.Series", number: int, *, label: str) -> None:
    """Draw the curve of a system, which differs from others by more than its colour.

    What does not change, such as a baseline that learns nothing, is a line without marks.

    Args:
        ax: Where to draw.
        x: Where the system was measured.
        y: Its values.
        number: Which of the systems it is.
        label: Its name.
    """
    constant = len(y) > 1 and len(set(y)) == 1
    style = {"color": COLOURS[number % len(COLOURS)], "linestyle": LINES[number % len(LINES)], "linewidth": 1.3}
    ax.plot(x, y, label=label, marker="" if constant else "osD^v"[number % 5], markersize=5, **style)


def wrapped(text: object, width: int) -> str:
    """A name in lines of at most ``width`` letters, not broken at hyphens."""
    return fill(str(text), width, break_on_hyphens=False)


def settle(figure: "Figure") -> None:
    """Settle where everything in a figure is, so that its room can be measured."""
    layout = figure.get_layout_engine()
    if layout is None:
        figure.draw_without_rendering()
    else:
        layout.execute(figure)  # as drawing begins


def fit_labels(*panels: "Axes") -> None:
    """Break the labels and titles of axes into lines that fit their room, once everything else is drawn."""
    figure = panels[0].figure
    settle(figure)
    canvas = figure.bbox
    for ax in panels:
        box = ax.get_window_extent()
        beside = min(box.x0 - canvas.x0, canvas.x1 - box.x1) if len(figure.axes) == 1 else 0.0
        _fit(ax.xaxis.label, box.width + 2 * max(0.0, beside - 4), "width")
        _fit(ax.yaxis.label, box.height, "height")
        _fit(ax.title, box.width + 2 * max(0.0, beside - 4), "width")


def _fit(text: "Text", room: float, side: str) -> None:
    """Break a text into lines of at most so many pixels, where it is longer."""
    taken = getattr(text.get_window_extent(), side)
    if text.get_text() and taken > room:
        longest = max(map(len, text.get_text().split("\n")))
        width = max(12, int(0.97 * longest * room / taken))
        text.set_text("\n".join(wrapped(line, width) for line in text.get_text().split("\n")))


def set_title(ax: "Axes", title: str, **options: object) -> None:
    """Set a title that may contain dollar signs."""
    ax.set_title(title, fontsize="medium", parse_math=False, **options)


def title_of(figure: "Figure", lines: Sequence[str], most: int = 3) -> None:
    """Write a title over a figure, which grows by its lines.

    Args:
        figure: The figure.
        lines: What to write; each is broken where it does not fit, and ends with "…" after ``most`` lines.
        most: Largest number of lines for each.
    """
    room = (figure.get_figwidth() - 2 * MARGIN) * figure.dpi
    text = figure.suptitle("", x=MARGIN / figure.get_figwidth(), ha="left", fontsize="medium", parse_math=False)
    shown = []
    for line in lines:
        text.set_text(line)
        taken = text.get_window_extent().width
        width = len(line) if taken <= room else max(12, int(0.95 * len(line) * room / taken))
        shown += fill(line, max(1, width), max_lines=most, placeholder=" …", break_on_hyphens=False).split("\n")
    text.set_text("\n".join(shown))
    figure.set_figheight(figure.get_figheight() + TITLE_LINE * len(shown))


def legend_outside(figure: "Figure", columns: int = 3) -> None:
    """Put one legend above all axes of a figure, which grows by its lines.

    Args:
        figure: A figure whose first axes have all labelled lines or bars.
        columns: The largest number of columns.
    """
    handles, names = figure.axes[0].get_legend_handles_labels()
    for legend in filter(None, (ax.get_legend() for ax in figure.axes)):
        legend.remove()
    room = int(LETTERS_PER_INCH * figure.get_figwidth())
    names = [wrapped(name, room - HANDLE) for name in names]
    longest = max(len(line) for name in names for line in name.split("\n"))
    columns = max(1, min(columns, len(names), room // (longest + HANDLE)))
    figure.legend(handles, names, ncols=columns, loc="outside upper center", fontsize="small", frameon=False)
    lines = -(-len(names) // columns) * max(name.count("\n") + 1 for name in names)
    figure.set_figheight(figure.get_figheight() + LINE * (lines - 1))


def legend_above(
    ax: "Axes",
    columns: int = 4,
    *,
    handles: Sequence["Artist"] | None = None,
    names: Iterable[str] = (),
    left: bool = False,
) -> float:
    """Put the legend above the axes, in as many columns as fit.

    Args:
        ax: Axes with labelled lines.
        columns: The largest number of columns.
        handles: What to explain in place of the labelled lines.
        names: What each of these means.
        left: Whether the legend begins where the axes do, rather than standing in the middle.

    Returns:
        The height of all its lines but the first, in inches.
    """
    if handles is None:
        handles, names = ax.get_legend_handles_labels()
    room = ax.get_window_extent().width
    names = [wrapped(name, max(20, int(LETTERS_PER_INCH * room / ax.figure.dpi) - HANDLE)) for name in names]
    place = {"loc": "lower left" if left else "lower center", "bbox_to_anchor": (0.0 if left else 0.5, 1.0)}
    style = {"fontsize": "small", "frameon": False, "borderaxespad": 0.2, "columnspacing": 1.2, "handlelength": 1.8}
    for number in range(min(columns, len(names)), 0, -1):
        legend = ax.legend(handles, names, ncols=number, **place, **style)
        if legend.get_window_extent().width <= OVERHANG * room:
            break
    rows = -(-len(names) // number)
    return LINE * (rows * max(name.count("\n") + 1 for name in names) - 1)
