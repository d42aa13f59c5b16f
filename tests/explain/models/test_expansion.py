"""Terms that come into a query: against weights by hand and the expansions themselves."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.explain import Explanation

TEXTS = ["okapi <forest> congo", "okapi forest ituri", *(f"word{i}" for i in range(30))]


@pytest.fixture(scope="module")
def rocchio() -> pn.Rocchio:
    corpus = [{"docno": str(number), "text": text} for number, text in enumerate(TEXTS)]
    return pn.Rocchio(pn.TFIDF().fit_corpus(corpus, verbose=False), beta=0.5, feedback_docs=2)


@pytest.fixture(scope="module")
def concepts(tmp_path_factory) -> pn.LatentConceptExpansion:
    index = pn.LuceneIndex(tmp_path_factory.mktemp("expansion") / "okapi.lucene")
    index.index({"docno": str(number), "text": text} for number, text in enumerate(TEXTS))
    return pn.LatentConceptExpansion(index, fb_docs=2, fb_terms=3)


def vector(model: pn.TFIDF, text: str) -> pd.Series:
    return pd.Series(model.represent_texts([text]).sparse.toarray()[0], index=model.vocabulary.terms).astype(float)


def test_rocchio_adds_the_mean_of_the_best_documents(rocchio):
    explanation = pn.explain(rocchio, "okapi", TEXTS)
    assert isinstance(explanation, Explanation)
    query = vector(rocchio.tfidf, "okapi")
    expected = query + 0.5 * (vector(rocchio.tfidf, TEXTS[0]) + vector(rocchio.tfidf, TEXTS[1])) / 2
    expected /= np.linalg.norm(expected)
    frame = explanation.to_frame()
    assert frame.columns.tolist() == ["word", "match", "weight", "original"]
    assert frame["weight"].is_monotonic_decreasing
    assert set(frame["word"]) == {"okapi", "forest", "congo", "ituri"}
    np.testing.assert_allclose(frame["weight"], expected[frame["word"]], atol=1e-6)
    assert frame.set_index("word")["original"].to_dict() == {"okapi": 1, "forest": 0, "congo": 0, "ituri": 0}
    assert frame.loc[frame["match"], "word"].tolist() == ["okapi"]


def test_one_text_and_none(rocchio):
    assert set(pn.explain(rocchio, "okapi", TEXTS[0]).to_frame()["word"]) == {"okapi", "forest", "congo"}
    assert pn.explain(rocchio, "okapi", ["word1"]).to_frame()["word"].tolist() == ["okapi"]
    with pytest.raises(TypeError, match="give the texts of its candidates"):
        pn.explain(rocchio, "okapi")
    with pytest.raises(ValueError, match="must be one of expansion"):
        pn.explain(rocchio, "okapi", TEXTS, method="drop")


def test_latent_concepts_are_those_of_the_expander(concepts):
    frame = pn.explain(concepts, "okapi okapi").to_frame().set_index("word")
    toks = concepts.transform(pd.DataFrame({"qid": ["1"], "query": ["okapi okapi"]}))["query_toks"].iloc[0]
    assert frame["weight"].to_dict() == toks
    assert frame["original"]["okapi"] == 2
    found = concepts.concepts("okapi okapi").set_index("term")["weight"]
    mass = 2 * 0.3 / 0.7  # original_weight of 0.7
    added = (frame["weight"] - frame["original"])[found.index]
    np.testing.assert_allclose(added, mass * found, atol=1e-9)
    with pytest.raises(TypeError, match="leave out the text"):
        pn.explain(concepts, "okapi", TEXTS)


def test_html_and_picture_show_the_terms(rocchio):
    explanation = pn.explain(rocchio, "okapi <b>", TEXTS)
    html = explanation._repr_html_()
    assert '<b>"' not in html
    assert html.count("font-weight: bold") == 1
    assert html.count("#0072B2") == 4
    axes = explanation.plot(words=3)
    assert [label.get_text() for label in axes.get_yticklabels()] == explanation.to_frame()["word"].tolist()[2::-1]
    bars = [bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(bars, explanation.to_frame()["weight"].tolist()[2::-1])
    assert repr(explanation).endswith("'okapi <b>', 4 terms)")


@pytest.mark.parametrize("query", ["zzz", None, r"$\frac"])
def test_nothing_to_expand_is_no_crash(rocchio, query):
    explanation = pn.explain(rocchio, query, TEXTS)
    assert explanation.to_frame().empty
    assert "<div" in explanation._repr_html_()
    explanation.plot().figure.draw_without_rendering()
