"""What the sides of a mixture give to its score, and lose without a word."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural.explain import TextExplanation
from pt_neural.text import tokenise

QUERY = "university city"
TEXT = "Oxford is a city & the <home> of the oldest university, a river city."


def scored(model, query: str, text: str, incoming: float = 0.0) -> float:
    pair = pd.DataFrame({"qid": ["1"], "query": [query], "docno": ["d"], "text": [text], "score": [incoming]})
    return float(model.transform(pair)["score"].iloc[0])


def without(text: str, word: str) -> str:
    return " ".join(one for one in tokenise(text) if one != word)


def test_with_a_score_that_comes_in(rankers):
    mixture = pn.Mixture(rankers("LSA"), alpha=0.3)
    explanation = pn.explain(mixture, QUERY, TEXT, incoming=7.5)
    assert isinstance(explanation, TextExplanation)
    assert explanation.score == pytest.approx(scored(mixture, QUERY, TEXT, 7.5), abs=1e-6)
    own = scored(rankers("LSA"), QUERY, TEXT)
    assert explanation.sides["side"].tolist() == ["LSA", "incoming"]
    np.testing.assert_allclose(explanation.sides["weight"], [0.3, 0.7])
    np.testing.assert_allclose(explanation.sides["score"], [own, 7.5], atol=1e-6)
    np.testing.assert_allclose(explanation.sides["contribution"], [0.3 * own, 0.7 * 7.5], atol=1e-6)
    words = explanation.to_frame()
    assert words.columns.tolist() == ["word", "start", "end", "side", "match", "contribution"]
    lost = words[(words["side"] == "document") & (words["word"] == "city")]["contribution"].sum()
    expected = explanation.score - scored(mixture, QUERY, without(TEXT, "city"), 7.5)
    assert lost == pytest.approx(expected, abs=1e-6)
    assert f"{explanation.score:.4f} = 0.3 × {own:.4g} (LSA) + 0.7 × 7.5 (incoming)" in explanation._repr_html_()
    assert "LSA" in explanation.plot().get_title(loc="left")


def test_with_two_rankers_of_texts(rankers):
    mixture = pn.Mixture(rankers("DESM"), rankers("LSA"), alpha=0.6)
    explanation = pn.explain(mixture, QUERY, TEXT)
    assert explanation.score == pytest.approx(scored(mixture, QUERY, TEXT), abs=1e-6)
    assert explanation.explanations["DESM"].score == pytest.approx(scored(rankers("DESM"), QUERY, TEXT), abs=1e-6)
    words = explanation.to_frame()
    assert words.columns.tolist()[-3:] == ["contribution", "DESM", "LSA"]
    np.testing.assert_allclose(words["DESM"] + words["LSA"], words["contribution"])
    for word in ("city", "the", "oxford"):
        lost = words[(words["side"] == "document") & (words["word"] == word)][["DESM", "LSA"]].sum()
        rest = without(TEXT, word)
        for name, weight in (("DESM", 0.6), ("LSA", 0.4)):
            model = rankers(name)
            expected = weight * (scored(model, QUERY, TEXT) - scored(model, QUERY, rest))
            assert lost[name] == pytest.approx(expected, abs=1e-6)
    assert "Not all words" not in explanation.note
    assert "Not all words" in pn.explain(mixture, QUERY, TEXT, terms=2).note
    html = explanation._repr_html_()
    assert "<b>DESM</b>: " in html
    assert "<b>LSA</b>: " in html
    assert "<home>" not in html
    axes = explanation.plot(words=4)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["score", "DESM", "LSA"]
    explanation.plot(side="query").figure.canvas.draw()


def test_the_first_stage_may_be_a_side(rankers):
    first = pt.Transformer.from_df(pd.DataFrame({"qid": ["1"], "query": [QUERY], "docno": ["d"], "score": [3.0]}))
    explanation = pn.explain(pn.Mixture(rankers("DSSM"), first, alpha=0.5), QUERY, TEXT, incoming=3.0)
    assert explanation.score == pytest.approx(0.5 * scored(rankers("DSSM"), QUERY, TEXT) + 1.5, abs=1e-6)
    behind = pn.Mixture(first, first >> rankers("DSSM"), alpha=0.5)
    assert pn.explain(behind, QUERY, TEXT, incoming=3.0).score == pytest.approx(explanation.score)


def test_a_side_that_reads_positions_and_one_that_does_not(rankers):
    explanation = pn.explain(pn.Mixture(rankers("DuetLocal"), rankers("TFIDF")), QUERY, TEXT)
    words = explanation.to_frame()
    of_text = words[words["side"] == "document"]
    assert of_text["word"].tolist() == tokenise(TEXT)
    cities = of_text[of_text["word"] == "city"]["TFIDF"]
    assert cities.tolist() == [cities.iloc[0]] * 2
    rest = scored(rankers("TFIDF"), QUERY, without(TEXT, "city"))
    assert cities.sum() == pytest.approx(0.5 * (scored(rankers("TFIDF"), QUERY, TEXT) - rest), abs=1e-6)


def test_a_retriever_is_explained_by_its_ranker(rankers, tmp_path):
    lsa = rankers("LSA")
    corpus = [{"docno": "d", "text": TEXT}, {"docno": "e", "text": "A river."}]
    retriever = lsa.retriever(lsa.index(tmp_path / "lsa.flex", corpus))
    explanation = pn.explain(pn.Mixture(retriever, rankers("TFIDF"), alpha=1), QUERY, TEXT)
    assert explanation.score == pytest.approx(scored(lsa, QUERY, TEXT), abs=1e-6)


def test_two_of_a_kind_and_compared_models(rankers):
    both = pn.Mixture(rankers("LSA"), rankers("LSA"))
    assert pn.explain(both, QUERY, TEXT).sides["side"].tolist() == ["LSA 1", "LSA 2"]
    compared = pn.explain([both, rankers("LSA")], QUERY, TEXT)
    np.testing.assert_allclose(compared.shares()["Mixture"], compared.shares()["LSA"], atol=1e-6)


@pytest.mark.parametrize(("query", "text"), [("", TEXT), ("zzz", "?!"), (None, float("nan"))])
def test_nothing_to_explain_is_no_crash(rankers, query, text):
    explanation = pn.explain(pn.Mixture(rankers("DESM"), rankers("Duet")), query, text)
    assert "Duet" in explanation._repr_html_()
    explanation.plot().figure.canvas.draw()


def test_errors_say_what_to_do(rankers):
    lsa = rankers("LSA")
    with pytest.raises(ValueError, match="scales each score by those of the query's other candidates"):
        pn.explain(pn.Mixture(lsa, normalise="minmax"), QUERY, TEXT, incoming=1.0)
    with pytest.raises(ValueError, match=r"'incoming' of the mixture reads no text.*incoming=row"):
        pn.explain(pn.Mixture(lsa), QUERY, TEXT)
    with pytest.raises(ValueError, match="is not needed"):
        pn.explain(pn.Mixture(lsa, rankers("DESM")), QUERY, TEXT, incoming=1.0)
    with pytest.raises(TypeError, match="incoming must be a number"):
        pn.explain(pn.Mixture(lsa), QUERY, TEXT, incoming="high")
    with pytest.raises(TypeError, match="no side of"):
        pn.explain(pn.Mixture(pt.RankCutoff(3)), QUERY, TEXT, incoming=1.0)
    with pytest.raises(ValueError, match="method must be one of"):
        pn.explain(pn.Mixture(lsa), QUERY, TEXT, incoming=1.0, method="similarity")
    of_titles = pn.DESM(rankers("DESM").spaces, fields="title")
    with pytest.raises(ValueError, match="give its text as one string"):
        pn.explain(pn.Mixture(lsa, of_titles), QUERY, {"title": "Oxford", "text": TEXT})
