import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text

from pt_neural.experiment.labels import label_points, legend_above, wrapped


@pytest.fixture
def ax():
    figure, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    yield ax
    plt.close(figure)


def share_of_overlap(boxes):
    """Whether any two boxes share an area."""
    return any(
        min(one.x1, other.x1) > max(one.x0, other.x0) and min(one.y1, other.y1) > max(one.y0, other.y0)
        for number, one in enumerate(boxes)
        for other in boxes[:number]
    )


@pytest.mark.parametrize("close", [1.0, 0.15])
def test_names_cover_neither_each_other_nor_the_frame(ax, close):
    rng = np.random.default_rng(8)
    points = np.vstack([close * rng.random((9, 2)), [[1, 1], [0, 0]]])
    ax.plot(*points.T, "o")
    names = [wrapped(f"a system with a long name, number {number}", 26) for number in range(11)]
    label_points(ax, points, names)
    ax.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    assert [text.get_text() for text in ax.texts] == names
    assert not share_of_overlap(boxes)
    frame = ax.get_window_extent()
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)
    assert all(frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in boxes)


def test_names_without_a_free_place_are_written_all_the_same(ax):
    points = np.zeros((50, 2))
    ax.plot(*points.T, "o")
    label_points(ax, points, ["the same place"] * 50)
    assert len(ax.texts) == 50
    assert any(text.arrow_patch for text in ax.texts), "a line joins those that stand away"


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["BM25", "QL", "SDM", "RM3"], 4),
        ([f"a name of a system that is rather long, number {number}" for number in range(4)], 1),
    ],
)
def test_legends_have_the_columns_that_fit(ax, names, columns):
    for name in names:
        ax.plot([0, 1], label=name)
    height = legend_above(ax)
    ax.figure.draw_without_rendering()
    legend, figure = ax.get_legend().get_window_extent(), ax.figure.bbox
    assert legend.y0 >= ax.get_window_extent().y1
    assert figure.x0 <= legend.x0
    assert legend.x1 <= figure.x1
    assert legend.y1 <= figure.y1
    lefts = {round(text.get_window_extent().x0) for text in ax.get_legend().get_texts()}
    assert len(lefts) == columns
    assert (height > 0) == (columns < len(names))


def test_names_are_broken_at_blanks():
    assert wrapped("bi-directional LSTM of two layers", 15) == "bi-directional\nLSTM of two\nlayers"
    assert wrapped(7, 15) == "7"
