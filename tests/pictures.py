"""Whether the text of a picture can be read: it stays on the canvas, and no piece of it covers another."""

from itertools import combinations

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SLACK = 1.0  # points that boxes, which have empty edges, may share


def illegible(figure: Figure) -> list[str]:
    """What is wrong with the text of a picture: a line for each piece outside, and for each pair that overlaps."""
    figure.draw_without_rendering()
    slack = SLACK * figure.dpi / 72
    texts = {text: _box(text, slack) for text in _shown(figure)}
    canvas = figure.bbox.padded(slack)
    outside = [f"outside: {text.get_text()!r}" for text, box in texts.items() if not _within(box, canvas)]
    pairs = combinations(texts.items(), 2)
    overlaps = [f"{a.get_text()!r} overlaps {b.get_text()!r}" for (a, box), (b, other) in pairs if box.overlaps(other)]
    return outside + overlaps


def _shown(figure: Figure) -> list[Text]:
    """The pieces of text that are drawn: no empty ones, and no labels of ticks beyond the ends of their axis."""
    hidden = set()
    for axis in figure.findobj(Axis):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks() + axis.get_minor_ticks():
            if not (tick.get_visible() and low <= tick.get_loc() <= high):
                hidden |= {tick.label1, tick.label2}
    off = {text for ax in figure.axes if not ax.axison for axis in (ax.xaxis, ax.yaxis) for text in axis.findobj(Text)}
    texts = figure.findobj(Text)
    return [text for text in texts if text.get_text().strip() and text.get_visible() and text not in hidden | off]


def _box(text: Text, slack: float) -> Bbox:
    box = text.get_window_extent()
    shared = min(slack, box.width / 2, box.height / 2)
    return box.padded(-shared)


def _within(box: Bbox, canvas: Bbox) -> bool:
    return canvas.x0 <= box.x0 and canvas.y0 <= box.y0 and box.x1 <= canvas.x1 and box.y1 <= canvas.y1
