"""The words that win CLSM's max pooling: against a loop over windows, from the weights as they are saved."""

import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.explain.models.clsm import draw_winners, pooling_winners
from pt_neural.text import tokenise
from tests.explain.reference import scored, with_random_weights

QUERY = "auto body repair & <calculator>"
TEXT = "Free online CAR body shop, repair estimates; straße naïve I\u0307 repair"
TEXTS = ["auto body repair cost calculator vitamin d", "free online car body shop repair estimates straße"]


def make_clsm(window: int = 3, padding: str = "word", max_terms: int | None = 499) -> pn.CLSM:
    model = pn.CLSM(window, filters=12, dim=4, padding=padding, max_terms=max_terms, device="cpu")
    return with_random_weights(model, TEXTS, scale=0.2)


@pytest.fixture(scope="module")
def clsm() -> pn.CLSM:
    return make_clsm()


def naive_pooling(model: pn.CLSM, side: str, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Equations 1 and 2 and the maximum, word by word."""
    weights = model.network.state_dict()[f"{side}.hashing.weight"].numpy().astype(float)
    weights = weights.reshape(len(weights), model.window, model.filters)
    ngrams = model.reader.hashing.ngrams

    def project(word: str) -> np.ndarray:
        grams = [f"#{word}#"[i : i + 3] for i in range(len(word))]
        return weights[[ngrams.index(gram) for gram in grams if gram in ngrams]].sum(axis=0)

    words = [project(word) for word in tokenise(text)]
    if model.max_terms is not None and len(words) > model.max_terms:
        words[model.max_terms :] = [sum(words[model.max_terms :])]
    half = model.window // 2
    words = [project("<s>")] * half + words + [project("<s>")] * half
    windows = [sum(words[t + i][i] for i in range(model.window)) for t in range(len(words) - 2 * half)]
    values = np.tanh(windows)
    return values.max(axis=0), values.argmax(axis=0)


@pytest.mark.parametrize(
    ("window", "padding", "max_terms"), [(1, "word", None), (3, "word", 4), (3, "zero", None), (5, "word", 4)]
)
def test_winners_are_those_of_a_loop_over_windows(window, padding, max_terms):
    model = make_clsm(window, padding, max_terms)
    for side, text in (("query", QUERY), ("document", TEXT)):
        won = pooling_winners(model, side, text)
        activations, places = naive_pooling(model, side, text)
        tokens = tokenise(text)
        expected = ["[rest]" if place == max_terms and len(tokens) > place else tokens[place] for place in places]
        assert won["word"].tolist() == expected
        np.testing.assert_allclose(won["activation"], activations, atol=1e-6)
        assert won["neuron"].tolist() == list(range(12))


def test_the_rest_of_a_long_text_is_one_winner_from_its_first_word_to_its_last():
    model = make_clsm(max_terms=2)
    won = pooling_winners(model, "document", TEXT)
    rest = won[won["word"] == "[rest]"]
    assert len(rest) > 0
    assert {TEXT[row.start : row.end] for row in rest.itertuples()} == {TEXT[TEXT.index("CAR") :]}
    html = pn.explain(model, QUERY, TEXT, neurons=12)._repr_html_()
    assert "[rest]<sup>" in html
    assert "[rest]: the words after the first 2" in html
    assert "estimates" in html  # the words themselves are shown as well


@pytest.mark.parametrize("max_terms", [499, 2])
def test_words_get_the_products_of_the_neurons_that_they_win(max_terms):
    model = make_clsm(max_terms=max_terms)
    words = pn.explain(model, QUERY, TEXT, neurons=1).by_word()
    query, query_places = naive_pooling(model, "query", QUERY)
    document, document_places = naive_pooling(model, "document", TEXT)
    products = np.where((query > 0) & (document > 0), query * document, 0)
    for side, text, places in (("query", QUERY, query_places), ("document", TEXT, document_places)):
        expected = np.zeros(len(tokenise(text)))
        for product, place in zip(products, places, strict=True):
            won = slice(place, None) if place == max_terms else place
            expected[won] += product / np.size(expected[won])
        np.testing.assert_allclose(words[words["side"] == side]["contribution"], expected, atol=1e-6)
        assert expected.max() > 0


def test_shared_neurons_are_active_in_both_and_ranked_by_the_product(clsm):
    query, query_places = naive_pooling(clsm, "query", QUERY)
    document, document_places = naive_pooling(clsm, "document", TEXT)
    products = np.where((query > 0) & (document > 0), query * document, -1)
    expected = [neuron for neuron in np.argsort(-products) if products[neuron] > 0][:4]
    explanation = pn.explain(clsm, QUERY, TEXT, neurons=4)
    frame = explanation.to_frame()
    assert frame["neuron"].tolist() == expected
    assert frame["query_word"].tolist() == [tokenise(QUERY)[query_places[neuron]] for neuron in expected]
    assert frame["document_word"].tolist() == [tokenise(TEXT)[document_places[neuron]] for neuron in expected]
    np.testing.assert_allclose(frame["product"], products[expected], atol=1e-6)
    np.testing.assert_allclose(frame["product"], frame["query_activation"] * frame["document_activation"])
    assert explanation.score == pytest.approx(scored(clsm, QUERY, TEXT), abs=1e-6)


def test_two_inactive_neurons_do_not_count_as_shared():
    model = make_clsm()
    for weight in (model.network.query.hashing.weight, model.network.document.hashing.weight):
        weight.data[:, 0::12] = -1.0  # neuron 0 is far below zero in every window
    explanation = pn.explain(model, QUERY, TEXT, neurons=12)
    assert 0 not in explanation.to_frame()["neuron"].tolist()
    assert 0 not in explanation.to_frame("query")["neuron"].tolist()
    assert len(explanation.to_frame()) > 0


@pytest.mark.parametrize(("side", "text"), [("query", QUERY), ("document", TEXT)])
def test_one_side_alone_gives_its_most_active_neurons(clsm, side, text):
    activations, places = naive_pooling(clsm, side, text)
    expected = np.argsort(-activations)[:5]
    frame = pn.explain(clsm, QUERY, TEXT).to_frame(side)
    assert frame["neuron"].tolist() == expected.tolist()
    assert frame["word"].tolist() == [tokenise(text)[places[neuron]] for neuron in expected]


def test_spans_are_characters_of_the_text_as_written(clsm):
    won = pooling_winners(clsm, "document", TEXT)
    assert all(tokenise(TEXT[row.start : row.end]) == [row.word] for row in won.itertuples())
    won = pooling_winners(clsm, "document", "İİ ✓ STRASSE Straße")
    assert {"İİ ✓ STRASSE Straße"[row.start : row.end] for row in won.itertuples()} <= {"İİ", "STRASSE", "Straße"}


def test_html_marks_winners_and_escapes(clsm):
    explanation = pn.explain(clsm, QUERY, "<script> " + TEXT, neurons=2)
    html = explanation._repr_html_()
    assert "<script>" not in html
    assert " &amp; " in html
    for row in explanation.to_frame().itertuples():
        assert f"neuron {row.neuron}: {row.query_activation:.3f}" in html
        assert f"neuron {row.neuron}: {row.document_activation:.3f}" in html
    for side in re.split("pre-wrap", html):
        numbers = " ".join(re.findall(r"<sup>([\d ]+)</sup>", side)).split()
        assert sorted(map(int, numbers)) == sorted(explanation.to_frame()["neuron"])
    own = {row.start for row in explanation.to_frame("document").itertuples()}
    document = html.split("pre-wrap")[1]
    assert document.count("2px dotted") == len(own)
    words = explanation.by_word().query("side == 'document'")
    assert document.count("font-weight: bold") == words["match"].sum()


@pytest.mark.parametrize(
    ("query", "text", "score"), [("", TEXT, 0), (QUERY, "", -1), ("日本語", TEXT, 0), (QUERY, "日本", -1)]
)
def test_nothing_to_explain_is_an_empty_frame_and_a_picture_that_says_so(clsm, query, text, score):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = pn.explain(clsm, query, text)
        frames = {side: explanation.to_frame(side) for side in (None, "query", "document")}
        html = explanation._repr_html_()
    assert {side: len(frame) for side, frame in frames.items()} == {
        None: 0,
        "query": 5 * (query == QUERY),
        "document": 5 * (text == TEXT),
    }
    assert all("neuron" in frame for frame in frames.values())
    assert explanation.score == score
    assert f"{score}.0000" in html
    assert "No neuron is active" in html
    assert "no neuron is active" in explanation.plot().texts[0].get_text()


def test_the_picture_joins_each_neuron_to_both_its_words(clsm):
    explanation = pn.explain(clsm, QUERY, TEXT, neurons=3)
    axes, frame = explanation.plot(), explanation.to_frame()
    labels = {text.get_position(): text.get_text() for text in axes.texts}
    lines = {tuple(labels[point] for point in zip(*line.get_data(), strict=True)) for line in axes.lines}
    expected = {(row.query_word, str(row.neuron)) for row in frame.itertuples()}
    expected |= {(row.document_word, str(row.neuron)) for row in frame.itertuples()}
    assert lines == expected


def winners(words: list[str]) -> pd.DataFrame:
    rows = range(len(words))
    return pd.DataFrame({"neuron": [280 + i for i in rows], "word": words, "activation": 0.5, "start": rows})


@pytest.mark.parametrize(
    ("word", "count", "given_axes"),
    [("m", 1, False), ("m", 16, True), ("estimate", 5, True), ("w" * 40, 5, False), ("w" * 40, 16, True)],
)
def test_labels_neither_overlap_nor_leave_the_figure(word, count, given_axes):
    ax = plt.figure(figsize=(9, 4)).add_subplot() if given_axes else None
    words = [word + str(number) for number in range(count)]
    axes = draw_winners(ax, winners(words), winners(words[::-1]))
    axes.figure.draw_without_rendering()
    boxes = [text.get_bbox_patch().get_window_extent() for text in axes.texts if text.get_bbox_patch()]
    assert len(boxes) == 3 * count
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    width, height = axes.figure.canvas.get_width_height()
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)


def test_words_stand_in_the_order_of_the_text_once_each_and_neurons_near_them():
    query = winners(["late", "early", "late"]).assign(start=[9, 2, 9])
    axes = draw_winners(None, query, query)
    top = sorted((text.get_position()[0], text.get_text()) for text in axes.texts if text.get_position()[1] == 2)
    assert [word for _, word in top if word != "query"] == ["early", "late"]
    both = winners(["b", "c", "a"]).assign(start=[20, 30, 10])
    axes = draw_winners(None, both, both)
    neurons = sorted((text.get_position()[0], text.get_text()) for text in axes.texts if text.get_text().isdigit())
    assert [neuron for _, neuron in neurons] == ["282", "280", "281"]


def test_wrong_arguments_are_refused(clsm):
    with pytest.raises(ValueError, match="neurons must be at least 1"):
        pn.explain(clsm, QUERY, TEXT, neurons=0)
    with pytest.raises(ValueError, match="side must be"):
        pn.explain(clsm, QUERY, TEXT).to_frame("both")
