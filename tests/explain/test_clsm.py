import re
import warnings
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

import pt_neural as pn
from pt_neural.explain.clsm import pooling_winners
from pt_neural.text import tokenise

QUERY = "auto body repair & <calculator>"
TEXT = "Free online CAR body shop, repair estimates; straße naïve I\u0307 repair"
TRAINING = pd.DataFrame(
    {
        "qid": ["1", "2"],
        "query": ["auto body repair cost calculator", "vitamin d"],
        "docno": ["a", "b"],
        "text": ["free online car body shop repair estimates straße", "calcium supplements and vitamin d discussion"],
    }
)
QRELS = pd.DataFrame({"qid": ["1", "2"], "docno": ["a", "b"], "label": [1, 1]})


def trained(window: int = 3, padding: str = "word", max_terms: int | None = 499) -> pn.CLSM:
    training = pn.Training(epochs=1, verbose=False)
    model = pn.CLSM(window, filters=12, dim=4, padding=padding, max_terms=max_terms, training=training)
    model.fit(TRAINING, QRELS)
    generator = torch.Generator().manual_seed(7)
    for weight in model.network.parameters():  # as after long training: what stands beside a word matters as well
        weight.data.uniform_(-0.3, 0.3, generator=generator)
    return model


@pytest.fixture(scope="module")
def clsm() -> pn.CLSM:
    return trained()


def naive_pooling(model: pn.CLSM, side: str, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Equations 1 and 2 and the maximum, word by word, from the weights as they are saved."""
    weights = model.network.state_dict()[f"{side}.hashing.weight"].numpy().astype(float)
    weights = weights.reshape(len(weights), model.window, model.filters)

    def project(word: str) -> np.ndarray:
        grams = [f"#{word}#"[i : i + 3] for i in range(len(word))]
        known = [model.hashing.ngrams.index(gram) for gram in grams if gram in model.hashing.ngrams]
        return weights[known].sum(axis=0)

    words = [project(word) for word in tokenise(text)]
    if model.max_terms is not None and len(words) > model.max_terms:
        words[model.max_terms :] = [sum(words[model.max_terms :])]
    half = model.window // 2
    words = [project("<s>")] * half + words + [project("<s>")] * half
    windows = [sum(words[t + i][i] for i in range(model.window)) for t in range(len(words) - 2 * half)]
    values = np.tanh(windows)
    return values.max(axis=0), values.argmax(axis=0)


@pytest.mark.parametrize(("window", "padding", "max_terms"), list(product([1, 3, 5], ["word", "zero"], [None, 4])))
def test_winners_are_those_of_a_loop_over_windows(window, padding, max_terms):
    model = trained(window, padding, max_terms)
    for side, text in (("query", QUERY), ("document", TEXT)):
        won = pooling_winners(model, side, text)
        activations, places = naive_pooling(model, side, text)
        tokens = tokenise(text)
        expected = ["[rest]" if place == max_terms and len(tokens) > place else tokens[place] for place in places]
        assert won["word"].tolist() == expected
        np.testing.assert_allclose(won["activation"], activations, atol=1e-6)
        assert won["neuron"].tolist() == list(range(12))


def test_the_rest_of_a_long_text_is_one_winner_from_its_first_word_to_its_last():
    model = trained(max_terms=2)
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
    model = trained(max_terms=max_terms)
    words = pn.explain(model, QUERY, TEXT, neurons=1).by_word()
    query, query_places = naive_pooling(model, "query", QUERY)
    document, document_places = naive_pooling(model, "document", TEXT)
    products = np.where((query > 0) & (document > 0), query * document, 0)
    for side, text, places in (("query", QUERY, query_places), ("document", TEXT, document_places)):
        expected = np.zeros(len(tokenise(text)))
        for product_, place in zip(products, places, strict=True):
            won = slice(place, None) if place == max_terms else place
            expected[won] += product_ / np.size(expected[won])
        np.testing.assert_allclose(words[words["side"] == side]["contribution"], expected, atol=1e-6)
        assert expected.max() > 0


def test_shared_neurons_are_active_in_both_and_ranked_by_the_product(clsm):
    query, query_places = naive_pooling(clsm, "query", QUERY)
    document, document_places = naive_pooling(clsm, "document", TEXT)
    products = np.where((query > 0) & (document > 0), query * document, -1)
    expected = [neuron for neuron in np.argsort(-products) if products[neuron] > 0][:4]
    frame = pn.explain(clsm, QUERY, TEXT, neurons=4).to_frame()
    assert frame["neuron"].tolist() == expected
    assert frame["query_word"].tolist() == [tokenise(QUERY)[query_places[neuron]] for neuron in expected]
    assert frame["document_word"].tolist() == [tokenise(TEXT)[document_places[neuron]] for neuron in expected]
    np.testing.assert_allclose(frame["product"], products[expected], atol=1e-6)
    np.testing.assert_allclose(frame["product"], frame["query_activation"] * frame["document_activation"])


def test_two_inactive_neurons_do_not_count_as_shared():
    model = trained()
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


def test_the_score_is_the_models(clsm):
    pair = pd.DataFrame({"qid": ["1"], "query": [QUERY], "docno": ["d"], "text": [TEXT]})
    assert pn.explain(clsm, QUERY, TEXT).score == pytest.approx(clsm.transform(pair)["score"].iloc[0], abs=1e-6)


def test_html_marks_winners_and_escapes(clsm):
    explanation = pn.explain(clsm, QUERY, "<script> " + TEXT, neurons=2)
    html = explanation._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert " &amp; " in html
    for row in explanation.to_frame().itertuples():
        assert f"neuron {row.neuron}: {row.query_activation:.3f}" in html
        assert f"neuron {row.neuron}: {row.document_activation:.3f}" in html
    for side in re.split("pre-wrap", html):
        numbers = " ".join(re.findall(r"<sup>([\d ]+)</sup>", side)).split()
        assert sorted(map(int, numbers)) == sorted(explanation.to_frame()["neuron"])
    bold = {row.start for row in explanation.to_frame("document").itertuples()}
    document = html.split("pre-wrap")[1]
    assert document.count("font-weight: bold") == len(bold)


@pytest.mark.parametrize(
    ("query", "text", "score"),
    [("", TEXT, 0), (QUERY, "", -1), ("", "", -1), ("???", TEXT, 0), ("日本語", TEXT, 0), (QUERY, "日本", -1)],
)
@pytest.mark.parametrize("side", [None, "query", "document"])
def test_nothing_to_explain_is_an_empty_frame_and_a_picture_that_says_so(clsm, query, text, score, side):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = pn.explain(clsm, query, text)
        frame = explanation.to_frame(side)
        html = explanation._repr_html_()
    known = side is not None and {"query": query, "document": text}[side] in (QUERY, TEXT)
    assert len(frame) == (5 if known else 0)
    assert "neuron" in frame
    assert explanation.score == score
    assert f"{score}.0000" in html
    assert "No neuron is active" in html
    axes = explanation.plot()
    assert "no neuron is active" in axes.texts[0].get_text()
    plt.close(axes.figure)


def test_plot_joins_each_neuron_to_both_its_words(clsm):
    explanation = pn.explain(clsm, QUERY, TEXT, neurons=3)
    axes = explanation.plot()
    frame = explanation.to_frame()
    shown = {text.get_text() for text in axes.texts}
    assert {*frame["query_word"], *frame["document_word"], *map(str, frame["neuron"])} <= shown
    ends = {text.get_position(): text.get_text() for text in axes.texts}
    lines = {tuple(ends[point] for point in zip(*line.get_data(), strict=True)) for line in axes.lines}
    expected = {(row.query_word, str(row.neuron)) for row in frame.itertuples()}
    expected |= {(row.document_word, str(row.neuron)) for row in frame.itertuples()}
    assert lines == expected
    plt.close(axes.figure)


def test_errors_say_what_to_do(clsm):
    with pytest.raises(RuntimeError, match="not trained yet"):
        pn.explain(pn.CLSM(), QUERY, TEXT)
    with pytest.raises(ValueError, match="neurons must be at least 1"):
        pn.explain(clsm, QUERY, TEXT, neurons=0)
    with pytest.raises(ValueError, match="side must be"):
        pn.explain(clsm, QUERY, TEXT).to_frame("both")
    with pytest.raises(ValueError, match="max-pooling, drop"):
        pn.explain(clsm, QUERY, TEXT, method="shap")
