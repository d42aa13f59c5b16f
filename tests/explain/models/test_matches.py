"""Figure 2 of the Duet paper: where the terms of a query stand in documents."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.text import tokenise

QUERY = "City <b> university city river and more"  # the model reads four terms
TEXTS = [
    "Oxford is a University city & the home of the oldest university. É\u0301 city",  # and twelve of a document
    "No word of it.",
    "",
    "The river past the city: a river city.",
]
LABELS = [1, 0, 0, 2]
MODEL = pn.Duet(query_terms=4, document_terms=12, pooling=3)  # which need not be fitted


@pytest.fixture
def explanation():
    return pn.explain(MODEL, QUERY, TEXTS, method="matches", labels=LABELS)


def test_matches_equal_a_loop(explanation):
    terms = tokenise(QUERY)[:4]
    expected = [
        (term, number, LABELS[number], i, j)
        for number, text in enumerate(TEXTS)
        for i, term in enumerate(terms)
        for j, word in enumerate(tokenise(text)[:12])
        if term == word
    ]
    frame = explanation.to_frame()
    columns = ["word", "document", "label", "query_position", "position"]
    assert list(frame[columns].itertuples(index=False, name=None)) == expected
    assert list(frame.columns) == ["word", "start", "end", "document", "label", "query_position", "position"]
    assert frame.index.tolist() == list(range(len(expected)))
    for row in frame.itertuples():
        assert TEXTS[row.document][row.start : row.end].lower() == row.word


def titles_of(axes) -> list:
    return [text for text in axes.texts if text.get_text().startswith("document ")]


def test_one_block_a_document_with_a_short_line_for_each_match(explanation):
    axes = explanation.plot()
    frame = explanation.to_frame()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["city", "b", "university", "city"] * 4
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first term is uppermost
    rows = axes.get_yticks().reshape(4, 4)
    lines = [collection for collection in axes.collections if hasattr(collection, "get_segments")]
    segments = [segment.tolist() for collection in lines for segment in collection.get_segments()]
    drawn = sorted((round((low + high) / 2), start) for (start, low), (end, high) in segments if start == end)
    expected = sorted((rows[row.document, row.query_position], row.position) for row in frame.itertuples())
    assert drawn == expected
    assert [title.get_text() for title in titles_of(axes)] == [
        "document 0: relevant (1)",
        "document 1: not relevant (0)",
        "document 2: not relevant (0)",
        "document 3: relevant (2)",
    ]
    colours = [tuple(collection.get_colors()[0]) for collection in lines][::2]
    assert colours[0] == colours[3] != colours[1] == colours[2]
    assert [title.get_fontweight() for title in titles_of(axes)] == ["bold", "normal", "normal", "bold"]
    assert axes.get_xlabel() == "position in the document, in terms"


def test_nothing_overlaps():
    axes = pn.explain(MODEL, QUERY + " x" * 20, TEXTS * 2, method="matches").plot()
    axes.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in [*titles_of(axes), *axes.get_yticklabels()]]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_html_marks_the_matches_that_count(explanation):
    html = explanation._repr_html_()
    panels = html.split("<p>document")[1:]
    counts = [panel.count("font-weight: bold") for panel in panels]
    assert counts == [3, 0, 0, 2]  # "city" twice, of the query, is marked once
    assert "&lt;b&gt;" in html
    assert "city <b>" not in html
    assert "&amp; the home" in html
    assert panels[0].startswith(" 0: relevant (1), 3 matches")


def test_one_text_without_labels():
    explanation = pn.explain(pn.DuetLocal(query_terms=4), QUERY, TEXTS[3], method="matches")
    assert explanation.to_frame()["label"].isna().all()
    assert len(explanation.to_frame()) == 4
    assert [title.get_text() for title in titles_of(explanation.plot())] == ["document 0"]
    assert repr(explanation) == f"MatchesExplanation(DuetLocal(), {QUERY!r}, 1 documents, 4 matches)"


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_texts_in_any_row(kind):
    frame = pn.explain(MODEL, "river", kind([TEXTS[3], TEXTS[0]]), method="matches").to_frame()
    assert frame["document"].tolist() == [0, 0]


@pytest.mark.parametrize("query", ["", None, r"$\frac"])
def test_nothing_to_find_is_no_crash(query):
    explanation = pn.explain(MODEL, query, [*TEXTS, None, float("nan")], method="matches")
    frame = explanation.to_frame()
    assert len(frame) == 0
    assert frame.dtypes["position"] == np.int64
    explanation._repr_html_()
    explanation.plot().figure.draw_without_rendering()


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="one label for each of the 4 texts, not 1"):
        pn.explain(MODEL, QUERY, TEXTS, method="matches", labels=[1])
    with pytest.raises(ValueError, match="one docno for each of the 4 texts, not 1"):
        pn.explain(MODEL, QUERY, TEXTS, method="matches", docnos=["d1"])
    with pytest.raises(TypeError, match="labels must be numbers"):
        pn.explain(MODEL, QUERY, TEXTS[0], method="matches", labels=["good"])
    with pytest.raises(ValueError, match="at least one document"):
        pn.explain(MODEL, QUERY, [], method="matches")
