"""What the sides of a mixture give to its score, and lose without a word."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural.explain import TextExplanation
from pt_neural.text import tokenise
from tests.explain.reference import COLUMNS, scored, without
from tests.rankers.fitted import fitted, vectors

QUERY = "university city"
TEXT = "Oxford is a city & the <home> of the oldest university, a river city."


def test_with_a_score_that_comes_in():
    mixture = pn.Mixture(fitted("LSA"), alpha=0.3)
    explanation = pn.explain(mixture, QUERY, TEXT, incoming=7.5)
    assert isinstance(explanation, TextExplanation)
    assert explanation.score == pytest.approx(scored(mixture, QUERY, TEXT, score=7.5), abs=1e-6)
    own = scored(fitted("LSA"), QUERY, TEXT)
    assert explanation.sides["side"].tolist() == ["LSA", "incoming"]
    np.testing.assert_allclose(explanation.sides["weight"], [0.3, 0.7])
    np.testing.assert_allclose(explanation.sides["score"], [own, 7.5], atol=1e-6)
    np.testing.assert_allclose(explanation.sides["contribution"], [0.3 * own, 0.7 * 7.5], atol=1e-6)
    words = explanation.to_frame()
    assert words.columns.tolist() == COLUMNS
    lost = words[(words["side"] == "document") & (words["word"] == "city")]["contribution"].sum()
    expected = explanation.score - scored(mixture, QUERY, without(TEXT, "city"), score=7.5)
    assert lost == pytest.approx(expected, abs=1e-6)
    assert f"{explanation.score:.4f} = 0.3 × {own:.4g} (LSA) + 0.7 × 7.5 (incoming)" in explanation._repr_html_()
    assert "LSA" in explanation.plot().figure.get_suptitle()


def test_with_two_rankers_of_texts():
    mixture = pn.Mixture(fitted("DESM"), fitted("LSA"), alpha=0.6)
    explanation = pn.explain(mixture, QUERY, TEXT)
    assert explanation.score == pytest.approx(scored(mixture, QUERY, TEXT), abs=1e-6)
    assert explanation.explanations["DESM"].score == pytest.approx(scored(fitted("DESM"), QUERY, TEXT), abs=1e-6)
    words = explanation.to_frame()
    assert words.columns.tolist() == [*COLUMNS, "DESM", "LSA"]
    np.testing.assert_allclose(words["DESM"] + words["LSA"], words["contribution"])
    for word in ("city", "the", "oxford"):
        lost = words[(words["side"] == "document") & (words["word"] == word)][["DESM", "LSA"]].sum()
        for name, weight in (("DESM", 0.6), ("LSA", 0.4)):
            difference = scored(fitted(name), QUERY, TEXT) - scored(fitted(name), QUERY, without(TEXT, word))
            assert lost[name] == pytest.approx(weight * difference, abs=1e-6)
    assert "Not all words" not in explanation.note
    assert "Not all words" in pn.explain(mixture, QUERY, TEXT, terms=2).note
    html = explanation._repr_html_()
    assert "<p>DESM: " in html
    assert "<p>LSA: " in html
    assert "<home>" not in html
    axes = explanation.plot(words=4)
    assert [text.get_text().split(":")[0] for text in axes.get_legend().get_texts()] == ["DESM", "LSA"]
    explanation.plot(side="query").figure.draw_without_rendering()


def test_the_first_stage_may_be_a_side():
    first = pt.Transformer.from_df(pd.DataFrame({"qid": ["1"], "query": [QUERY], "docno": ["d"], "score": [3.0]}))
    explanation = pn.explain(pn.Mixture(fitted("DSSM"), first, alpha=0.5), QUERY, TEXT, incoming=3.0)
    assert explanation.score == pytest.approx(0.5 * scored(fitted("DSSM"), QUERY, TEXT) + 1.5, abs=1e-6)
    behind = pn.Mixture(first, first >> fitted("DSSM"), alpha=0.5)
    assert pn.explain(behind, QUERY, TEXT, incoming=3.0).score == pytest.approx(explanation.score)


def test_a_side_that_reads_positions_and_one_that_does_not():
    words = pn.explain(pn.Mixture(fitted("DuetLocal"), fitted("TFIDF")), QUERY, TEXT).to_frame()
    document = words[words["side"] == "document"]
    assert document["word"].tolist() == tokenise(TEXT)
    cities = document[document["word"] == "city"]["TFIDF"]
    assert cities.tolist() == [cities.iloc[0]] * 2
    difference = scored(fitted("TFIDF"), QUERY, TEXT) - scored(fitted("TFIDF"), QUERY, without(TEXT, "city"))
    assert cities.sum() == pytest.approx(0.5 * difference, abs=1e-6)


def test_a_retriever_is_explained_by_its_ranker():
    retriever = fitted("LSA").retriever(vectors("LSA"))
    explanation = pn.explain(pn.Mixture(retriever, fitted("TFIDF"), alpha=1), QUERY, TEXT)
    assert explanation.score == pytest.approx(scored(fitted("LSA"), QUERY, TEXT), abs=1e-6)


def test_two_of_a_kind_and_compared_models():
    both = pn.Mixture(fitted("LSA"), fitted("LSA"))
    assert pn.explain(both, QUERY, TEXT).sides["side"].tolist() == ["LSA 1", "LSA 2"]
    compared = pn.explain([both, fitted("LSA")], QUERY, TEXT)
    np.testing.assert_allclose(compared.shares()["Mixture"], compared.shares()["LSA"], atol=1e-6)


@pytest.mark.parametrize(("query", "text"), [("", TEXT), (None, float("nan"))])
def test_nothing_to_explain_is_no_crash(query, text):
    explanation = pn.explain(pn.Mixture(fitted("DESM"), fitted("Duet")), query, text)
    assert "Duet" in explanation._repr_html_()
    explanation.plot().figure.draw_without_rendering()


def test_errors_say_what_to_do():
    lsa = fitted("LSA")
    with pytest.raises(ValueError, match="scales each score by those of the query's other candidates"):
        pn.explain(pn.Mixture(lsa, normalise="minmax"), QUERY, TEXT, incoming=1.0)
    with pytest.raises(ValueError, match=r"'incoming' of the mixture reads no text.*incoming=row"):
        pn.explain(pn.Mixture(lsa), QUERY, TEXT)
    with pytest.raises(ValueError, match="is not needed"):
        pn.explain(pn.Mixture(lsa, fitted("DESM")), QUERY, TEXT, incoming=1.0)
    with pytest.raises(TypeError, match="incoming must be a number"):
        pn.explain(pn.Mixture(lsa), QUERY, TEXT, incoming="high")
    for side in (pt.RankCutoff(3), pn.Mixture(lsa)):
        with pytest.raises(TypeError, match="no side of"):
            pn.explain(pn.Mixture(side), QUERY, TEXT, incoming=1.0)
    with pytest.raises(ValueError, match="method must be one of drop"):
        pn.explain(pn.Mixture(lsa), QUERY, TEXT, incoming=1.0, method="similarity")
    title_only = pn.DESM(fitted("DESM").spaces, fields="title")
    with pytest.raises(ValueError, match="give its text as one string"):
        pn.explain(pn.Mixture(lsa, title_only), QUERY, {"title": "Oxford", "text": TEXT})
