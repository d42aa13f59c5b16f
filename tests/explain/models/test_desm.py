import numpy as np
import pytest

import pt_neural as pn
from pt_neural.text import Vocabulary
from tests.explain.reference import scored, without_key

PASSAGE = "Albuquerque is a <populous> city; the city's population grew."


@pytest.fixture(scope="module")
def desm() -> pn.DESM:
    words = ["albuquerque", "city", "population", "populous", "is", "grew"]
    vectors = np.random.default_rng(3).normal(size=(2, len(words), 4)).astype("f4")
    counts = np.arange(6, 0, -1)
    return pn.DESM(pn.EmbeddingSpaces.from_vectors(Vocabulary(words, counts, counts, 9), *vectors))


@pytest.mark.parametrize("centre", ["none", "document", "both"])
def test_contributions_add_up_to_the_score(desm, centre):
    desm = pn.DESM(desm.spaces, centre=centre)
    explanation = pn.explain(desm, "albuquerque city", PASSAGE)
    score = scored(desm, "albuquerque city", PASSAGE)
    assert explanation.to_frame()["contribution"].sum() == pytest.approx(score, abs=1e-6)
    assert explanation.score == pytest.approx(score, abs=1e-6)


def test_similarity_is_the_mean_cosine_with_the_query(desm):
    frame = pn.explain(desm, "albuquerque city", PASSAGE).to_frame().set_index("word")
    query = desm.spaces.unit_vectors("in")[desm.spaces.ids(["albuquerque", "city"])]
    word = desm.spaces.unit_vectors("out")[desm.spaces.ids(["population"])[0]]
    assert frame.loc["population", "similarity"] == pytest.approx(float((query @ word).mean()), abs=1e-6)
    assert np.isnan(frame.loc["the", "similarity"])
    assert frame.index[frame["match"]].tolist() == ["albuquerque", "city", "city"]


def test_centred_similarity_is_that_of_the_word_less_that_of_the_mean(desm):
    plain, centred = (
        pn.explain(pn.DESM(desm.spaces, centre=centre), "albuquerque city", PASSAGE).to_frame()["similarity"]
        for centre in ("none", "document")
    )
    units, counts = desm.spaces.unit_vectors("out"), desm.spaces.vocabulary.collection_frequency
    mean = np.average(units, axis=0, weights=counts) @ desm.encode_queries(["albuquerque city"])[0]
    np.testing.assert_allclose(centred, plain - mean, atol=1e-6)


def test_html_escapes_and_shades(desm):
    html = without_key(pn.explain(desm, "city & <b>", PASSAGE, threshold=-1.0)._repr_html_())
    assert "<populous>" not in html
    assert '<b>"' not in html
    assert html.count("font-weight: bold") == 2  # the query's word, twice
    assert html.count("color-mix") == 7  # the known words that are above
    assert "color-mix" not in pn.explain(desm, "city", PASSAGE, threshold=2.0)._repr_html_()


@pytest.mark.parametrize(
    ("query", "text", "score"), [("", PASSAGE, 0), ("zzz", PASSAGE, 0), ("city", "", -1), ("city", "???", -1)]
)
def test_nothing_to_explain_has_the_score_of_nothing(desm, query, text, score):
    explanation = pn.explain(desm, query, text)
    assert explanation.score == score
    assert f"{score}.0000" in explanation._repr_html_()
    explanation.plot()


def test_the_picture_shows_the_contributions(desm):
    axes = pn.explain(desm, "city", PASSAGE).plot(words=3)
    assert len(axes.get_yticklabels()) == 3
    assert "contribution" in axes.get_xlabel()
