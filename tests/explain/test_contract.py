"""What every explanation keeps, whatever the model."""

import inspect
import warnings

import pandas as pd
import pytest
from matplotlib.axes import Axes

import pt_neural as pn
from pt_neural.explain import Explanation, TextExplanation
from pt_neural.rankers.ranker import Ranker
from pt_neural.text import tokenise

KINDS = {name: kind for name in pn.__all__ if inspect.isclass(kind := getattr(pn, name)) and issubclass(kind, Ranker)}
RANKERS = [name for name, kind in KINDS.items() if kind.__name__ == name]  # CDSSM is another name of CLSM
QUERY = "university city <b> city"
TEXT = "Oxford is a University city & the <home> of the oldest university. É\u0301 İs straße"
COLUMNS = ["word", "start", "end", "side", "match", "contribution"]
HOSTILE = {
    "empty query": ("", TEXT),
    "no known word": ("zzz", "qqq ??? \U0001f992"),
    "nothing": (None, float("nan")),
    "one word": ("city", "city"),
    "one word, many times": ("city $x_1$", "city " * 300),
    "long": (QUERY, " ".join(f"w{number} city" for number in range(2500))),
    "dollars": (r"$\frac{city}$", r"\alpha $ city $"),
}


def score(model, query: str, text: str) -> float:
    pair = pd.DataFrame({"qid": ["1"], "query": [query], "docno": ["d"], "text": [text]})
    return float(model.transform(pair)["score"].iloc[0])


def test_all_public_rankers_are_here():
    assert {"DESM", "SSI", "Duet", "MatchTensor", "LDA", "PhraseTranslation", "TopicCosine"} <= set(RANKERS)


@pytest.mark.parametrize("name", RANKERS)
def test_an_explanation_says_what_it_explains(rankers, name):
    model = rankers(name)
    explanation = pn.explain(model, QUERY, TEXT)
    assert isinstance(explanation, Explanation)
    assert isinstance(explanation, TextExplanation)
    assert (explanation.model, explanation.query, explanation.text) == (repr(model), QUERY, TEXT)
    assert explanation.score == pytest.approx(score(model, QUERY, TEXT), abs=1e-4)
    assert len(repr(explanation)) < 250
    assert f"{explanation.score:.4f}" in repr(explanation)
    html = explanation._repr_html_()
    assert "<home>" not in html
    assert "<b> city" not in html


@pytest.mark.parametrize("name", RANKERS)
def test_words_are_told_alike(rankers, name):
    explanation = pn.explain(rankers(name), QUERY, TEXT)
    words = explanation.by_word()
    assert words.columns.tolist() == COLUMNS
    assert words["contribution"].dtype == float
    for row in words.itertuples():
        own, other = (QUERY, TEXT) if row.side == "query" else (TEXT, QUERY)
        assert tokenise(own[row.start : row.end]) == [row.word]
        assert row.match == (row.word in tokenise(other))
    for side, text in (("query", QUERY), ("document", TEXT)):
        told = words.loc[words["side"] == side, "word"].tolist()
        assert told == tokenise(text)[: len(told)]
    assert words["contribution"].abs().max() > 0
    frame = explanation.to_frame()
    if "side" in frame:
        assert frame.columns.tolist()[: len(COLUMNS)] == COLUMNS
    elif "document_word" in frame and "contribution" in frame:
        assert frame.columns.tolist()[:4] == ["query_word", "document_word", "match", "contribution"]


@pytest.mark.parametrize("name", RANKERS)
def test_a_picture_is_drawn_where_it_is_wanted(rankers, name):
    import matplotlib.pyplot as plt

    explanation = pn.explain(rankers(name), QUERY, TEXT)
    assert isinstance(explanation.plot(), Axes)
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5), layout="constrained")
    assert explanation.plot(ax=right) is right
    assert figure.number == plt.gcf().number
    assert not left.has_data()
    assert right.has_data()
    assert right.get_title() + right.get_title(loc="left")


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("texts", HOSTILE.values(), ids=HOSTILE)
def test_whatever_the_texts_there_is_a_picture_without_a_warning(rankers, name, texts):
    model = rankers(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = pn.explain(model, *texts)
        assert explanation.by_word().columns.tolist() == COLUMNS
        explanation.to_frame()
        assert "<div" in explanation._repr_html_()
        explanation.plot().figure.canvas.draw()


@pytest.mark.parametrize("name", RANKERS)
def test_dropping_words_explains_all_rankers(rankers, name):
    explanation = pn.explain(rankers(name), QUERY, TEXT, method="drop")
    frame = explanation.to_frame()
    assert frame.columns.tolist()[: len(COLUMNS)] == COLUMNS
    assert frame["contribution"].abs().max() > 0


def test_what_occurrences_add_together_is_divided_among_them(rankers):
    explanation = pn.explain(rankers("LSA"), QUERY, TEXT)
    together = explanation.to_frame().query("side == 'query'").set_index("word")["contribution"]
    divided = explanation.by_word().query("side == 'query'").set_index("word")["contribution"]
    assert divided["city"].tolist() == pytest.approx([together["city"].iloc[0] / 2] * 2)
    assert divided["university"] == pytest.approx(together["university"])
