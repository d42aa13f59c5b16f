import numpy as np
import pandas as pd
import pytest

from pt_neural.experiment import pca


@pytest.fixture
def values():
    """Four systems over three queries, which differ along two directions only: (1, 1, 0) and (1, -1, 0)."""
    rows = {"a": [4, 4, 7], "b": [-4, -4, 7], "c": [1, -1, 7], "d": [-1, 1, 7]}
    return pd.DataFrame(rows, index=pd.Index(["q1", "q2", "q3"], name="qid"), dtype=float)


def test_components_by_hand(values):
    components = pca(values, {"a": "exact", "b": "ours"})
    frame = components.to_frame().set_index("system")
    # The first direction holds 2 * 4² * 2 = 64 of the sum of squares, the second 2 * 2 = 4.
    np.testing.assert_allclose(components.explained, [64 / 68, 4 / 68])
    np.testing.assert_allclose(frame["first"].abs(), [4 * np.sqrt(2)] * 2 + [0, 0], atol=1e-12)
    np.testing.assert_allclose(frame["second"].abs(), [0, 0] + [np.sqrt(2)] * 2, atol=1e-12)
    assert frame["first"]["a"] == pytest.approx(-frame["first"]["b"])
    assert frame["kind"].tolist()[:2] == ["exact", "ours"]
    assert frame["kind"].isna().tolist() == [False, False, True, True]


def test_same_values_give_the_same_picture(values):
    pd.testing.assert_frame_equal(pca(values).to_frame(), pca(values.copy()).to_frame())


def test_systems_that_are_all_alike_stand_in_one_place(values):
    components = pca(values.assign(b=values["a"], c=values["a"], d=values["a"]))
    assert components.to_frame()[["first", "second"]].abs().to_numpy().max() < 1e-12
    assert components.explained.tolist() == [0, 0]


def test_picture_names_systems_and_kinds(values):
    axes = pca(values, {"a": "exact", "b": "ours", "c": "proximity"}).plot()
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c", "d"]
    assert [line.get_marker() for line in axes.lines] == ["^", "o", "s", "D"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "exact matches",
        "proximity",
        "ours",
        "others",
    ]
    assert "94% of the variance" in axes.get_xlabel()


def test_names_do_not_cover_each_other():
    random = np.random.default_rng(2)
    near = pd.DataFrame(random.normal(size=(50, 1)) + 0.1 * random.normal(size=(50, 12)))
    near.columns = [f"a system with number {number}" for number in near]
    axes = pca(near).plot()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 12
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:number])


def test_clear_errors(values):
    with pytest.raises(ValueError, match="at least three systems and two queries, not 2 and 3"):
        pca(values[["a", "b"]])
    with pytest.raises(ValueError, match="'exact', 'proximity', 'inexact', 'ours', not 'neural'"):
        pca(values, {"a": "neural"})
    with pytest.raises(ValueError, match="'b' has no value for query 'q1'"):
        pca(values.assign(b=values["b"].where(values.index != "q1")))
