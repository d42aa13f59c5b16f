import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural.text import Vocabulary

PASSAGE = "Albuquerque is a <populous> city; the city's population grew."


@pytest.fixture
def desm() -> pn.DESM:
    words = ["albuquerque", "city", "population", "populous", "is", "grew"]
    random = np.random.default_rng(3)
    vectors = random.normal(size=(2, len(words), 4)).astype("f4")
    return pn.DESM(pn.EmbeddingSpaces.from_vectors(Vocabulary(words), *vectors))


def test_contributions_add_up_to_the_score(desm):
    explanation = pn.explain(desm, "albuquerque city", PASSAGE)
    frame = explanation.to_frame()
    pair = pd.DataFrame({"qid": ["1"], "query": ["albuquerque city"], "docno": ["d"], "text": [PASSAGE]})
    scored = desm.transform(pair)
    assert frame["contribution"].sum() == pytest.approx(scored["score"].iloc[0], abs=1e-6)
    assert explanation.score == pytest.approx(scored["score"].iloc[0], abs=1e-6)


def test_similarity_is_the_mean_cosine_with_the_query(desm):
    frame = pn.explain(desm, "albuquerque city", PASSAGE).to_frame().set_index("word")
    query = desm.spaces.unit_vectors("in")[desm.spaces.ids(["albuquerque", "city"])]
    word = desm.spaces.unit_vectors("out")[desm.spaces.ids(["population"])[0]]
    assert frame.loc["population", "similarity"] == pytest.approx(float((query @ word).mean()), abs=1e-6)
    assert np.isnan(frame.loc["the", "similarity"])


def test_words_stand_where_the_frame_says(desm):
    frame = pn.explain(desm, "city", PASSAGE).to_frame()
    assert [PASSAGE[row.start : row.end].lower() for row in frame.itertuples()] == frame["word"].tolist()
    assert frame.loc[frame["match"], "word"].tolist() == ["city", "city"]


def test_html_escapes_and_shades(desm):
    html = pn.explain(desm, "city & <b>", PASSAGE, threshold=-1.0)._repr_html_()
    assert "&lt;" in html
    assert "<populous>" not in html
    assert '<b>"' not in html
    assert html.count("#E69F00") == 2  # the query's word, twice
    assert html.count("color-mix") == 5  # the other known words


def test_threshold_decides_what_is_shaded(desm):
    assert "color-mix" not in pn.explain(desm, "city", PASSAGE, threshold=2.0)._repr_html_()


def test_long_documents_are_cut_in_html_only(desm):
    explanation = pn.explain(desm, "city", "population " * 5000)
    assert "3,000 more words" in explanation._repr_html_()
    assert len(explanation.to_frame()) == 5000


@pytest.mark.parametrize(
    ("query", "text", "score"), [("", PASSAGE, 0), ("zzz", PASSAGE, 0), ("city", "", -1), ("city", "???", -1)]
)
def test_nothing_to_explain_is_no_crash(desm, query, text, score):
    explanation = pn.explain(desm, query, text)
    assert explanation.score == score
    assert f"{score}.0000" in explanation._repr_html_()
    explanation.plot()


def test_plot_shows_the_contributions(desm):
    axes = pn.explain(desm, "city", PASSAGE).plot(words=3)
    assert len(axes.get_yticklabels()) == 3
    assert "contribution" in axes.get_xlabel()


def test_pipelines_are_refused_with_advice():
    with pytest.raises(TypeError, match="the ranker itself"):
        pn.explain(pt.RankCutoff(3), "query", "text")
