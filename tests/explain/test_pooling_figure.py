import matplotlib.pyplot as plt
import pandas as pd
import pytest

from pt_neural.explain.pooling_figure import draw_winners


def winners(words: list[str]) -> pd.DataFrame:
    rows = range(len(words))
    return pd.DataFrame({"neuron": [280 + i for i in rows], "word": words, "activation": 0.5, "start": rows})


@pytest.mark.parametrize("given_axes", [False, True])
@pytest.mark.parametrize("count", [1, 5, 16])
@pytest.mark.parametrize("word", ["m", "estimate", "w" * 40])
def test_labels_neither_overlap_nor_leave_the_figure(word, count, given_axes):
    ax = plt.figure(figsize=(9, 4)).add_subplot() if given_axes else None
    words = [word + str(number) for number in range(count)]
    axes = draw_winners(ax, winners(words), winners(words[::-1]))
    axes.figure.canvas.draw()
    boxes = [text.get_bbox_patch().get_window_extent() for text in axes.texts if text.get_bbox_patch()]
    assert len(boxes) == 3 * count
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    width, height = axes.figure.canvas.get_width_height()
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)
    plt.close(axes.figure)


def test_neurons_stand_near_their_words():
    # Each neuron is won by the first, second or third word of both texts, whatever its number.
    both = winners(["b", "c", "a"]).assign(start=[20, 30, 10])
    axes = draw_winners(None, both, both)
    plt.close(axes.figure)
    neurons = sorted((text.get_position()[0], text.get_text()) for text in axes.texts if text.get_text().isdigit())
    assert [neuron for _, neuron in neurons] == ["282", "280", "281"]


def test_words_stand_in_the_order_of_the_text_once_each():
    query = winners(["late", "early", "late"]).assign(start=[9, 2, 9])
    axes = draw_winners(None, query, winners(["x", "y", "z"]))
    plt.close(axes.figure)
    top = sorted((text.get_position()[0], text.get_text()) for text in axes.texts if text.get_position()[1] == 2)
    assert [word for _, word in top if word != "query"] == ["early", "late"]
