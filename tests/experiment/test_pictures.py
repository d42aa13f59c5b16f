import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from pt_neural._pictures import legend_above, wrapped
from pt_neural.experiment import pca, scatter
from pt_neural.experiment.pictures import label_points


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def values():
    frame = pd.DataFrame(
        {"BM25": [0.5, 0.0, 0.0, 1.0, 0.2], "QL": 0.0, "Duet": [0.6, 0.0, 0.0, 0.3, 0.3]},
        index=pd.Index(["q1", "q2", "q3", "q4", "q5"], name="qid"),
    )
    return frame.rename_axis(columns="nDCG@10")


@pytest.fixture
def systems():
    """Four systems over three queries, which differ along two directions only: (1, 1, 0) and (1, -1, 0)."""
    rows = {"a": [4, 4, 7], "b": [-4, -4, 7], "c": [1, -1, 7], "d": [-1, 1, 7]}
    return pd.DataFrame(rows, index=pd.Index(["q1", "q2", "q3"], name="qid"), dtype=float)


@pytest.fixture
def ax():
    _, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
    return ax


def test_largest_differences_first(values):
    against = scatter(values, "Duet", "BM25")
    frame = against.to_frame()
    assert frame.columns.tolist() == ["qid", "Duet", "BM25", "difference"]
    assert frame["qid"].tolist()[2:] == ["q2", "q3", "q4"]
    np.testing.assert_allclose(frame["difference"], [0.1, 0.1, 0, 0, -0.7])
    assert (against.above, against.below, against.equal) == (2, 1, 2)
    assert repr(against) == "PerQueryScatter(Duet against BM25, nDCG@10: 2 queries above, 1 below, 2 equal)"
    rounding = scatter(pd.DataFrame({"one": [0.1 + 0.2], "two": [0.3]}), "one", "two")
    assert (rounding.above, rounding.below, rounding.equal) == (0, 0, 1)


def test_points_are_larger_where_queries_coincide(values):
    axes = scatter(values, "Duet", "BM25").plot()
    (points,) = axes.collections
    areas = dict(zip(map(tuple, points.get_offsets().tolist()), points.get_sizes(), strict=True))
    assert set(areas) == {(0.5, 0.6), (0.0, 0.0), (1.0, 0.3), (0.2, 0.3)}
    assert areas[0.0, 0.0] == 2 * areas[0.5, 0.6]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("nDCG@10 of BM25", "nDCG@10 of Duet")
    assert axes.get_title() == "2 queries above the line, 1 below, 2 on it"


def test_clear_errors_of_scatter(values):
    with pytest.raises(ValueError, match="no system 'SDM'; the systems are BM25, QL, Duet"):
        scatter(values, "SDM", "BM25")
    with pytest.raises(ValueError, match="two different systems, not 'BM25' twice"):
        scatter(values, "BM25", "BM25")


def test_components_by_hand(systems):
    components = pca(systems, {"a": "exact", "b": "ours"})
    frame = components.to_frame().set_index("system")
    # The first direction has 2 * 4² * 2 = 64 of the sum of squares, the second 2 * 2 = 4.
    np.testing.assert_allclose(components.explained, [64 / 68, 4 / 68])
    np.testing.assert_allclose(frame["first"].abs(), [4 * np.sqrt(2)] * 2 + [0, 0], atol=1e-12)
    np.testing.assert_allclose(frame["second"].abs(), [0, 0] + [np.sqrt(2)] * 2, atol=1e-12)
    assert frame["first"]["a"] == pytest.approx(-frame["first"]["b"])
    assert frame["kind"].tolist()[:2] == ["exact", "ours"]
    assert frame["kind"].isna().tolist() == [False, False, True, True]
    pd.testing.assert_frame_equal(pca(systems).to_frame(), pca(systems.copy()).to_frame())


def test_components_of_systems_that_are_all_alike(systems):
    components = pca(systems.assign(b=systems["a"], c=systems["a"], d=systems["a"]))
    assert components.to_frame()[["first", "second"]].abs().to_numpy().max() < 1e-12
    assert components.explained.tolist() == [0, 0]


def test_picture_of_components_names_systems_and_kinds(systems):
    axes = pca(systems, {"a": "exact", "b": "ours", "c": "proximity"}).plot()
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c", "d"]
    assert [line.get_marker() for line in axes.lines] == ["^", "o", "s", "D"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "exact matches",
        "proximity",
        "ours",
        "others",
    ]
    assert "94% of the variance" in axes.get_xlabel()


def test_clear_errors_of_components(systems):
    with pytest.raises(ValueError, match="at least three systems and two queries, not 2 and 3"):
        pca(systems[["a", "b"]])
    with pytest.raises(ValueError, match="'exact', 'proximity', 'inexact', 'ours', not 'neural'"):
        pca(systems, {"a": "neural"})
    with pytest.raises(ValueError, match="'b' has no value for query 'q1'"):
        pca(systems.assign(b=systems["b"].where(systems.index != "q1")))


def any_overlap(boxes):
    return any(
        min(one.x1, other.x1) > max(one.x0, other.x0) and min(one.y1, other.y1) > max(one.y0, other.y0)
        for number, one in enumerate(boxes)
        for other in boxes[:number]
    )


def test_labels_cover_neither_each_other_nor_the_frame(ax):
    rng = np.random.default_rng(8)
    points = np.vstack([0.15 * rng.random((9, 2)), [[1, 1], [0, 0]]])
    ax.plot(*points.T, "o")
    names = [wrapped(f"a system with a long name, number {number}", 26) for number in range(11)]
    label_points(ax, points, names)
    ax.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    assert [text.get_text() for text in ax.texts] == names
    assert not any_overlap(boxes)
    frame = ax.get_window_extent()
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)
    assert all(frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in boxes)


def test_labels_without_a_free_place_are_written_all_the_same(ax):
    points = np.zeros((30, 2))
    ax.plot(*points.T, "o")
    label_points(ax, points, ["the same place"] * 30)
    assert len(ax.texts) == 30
    assert any(text.arrow_patch for text in ax.texts), "a line joins distant labels to their points"


def test_a_label_that_is_nearer_to_another_point_is_joined_to_its_own(ax):
    points = np.random.default_rng(4).random((40, 2))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    label_points(ax, points, [f"system number {number}" for number in range(40)])
    ax.figure.draw_without_rendering()
    middles, nearer = ax.transData.transform(points), []
    for number, text in enumerate(ax.texts):
        box = Text.get_window_extent(text)
        outside = np.clip(middles, (box.x0, box.y0), (box.x1, box.y1)) - middles
        distances = np.hypot(*outside.T)
        if distances.min() < distances[number] - 0.5:
            nearer.append(text)
    assert nearer
    assert all(text.arrow_patch for text in nearer)


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
