"""What terms and windows add to Lucene's scores, and the models, rows and pipelines that pn.explain takes."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from tests.explain.reference import COLUMNS, QUERY
from tests.rankers.fitted import CORPUS, fitted, forward, vectors

TERMS = "the university city of a river zzz university"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return pn.LuceneIndex(tmp_path_factory.mktemp("explain") / "index").index(CORPUS, verbose=False)


def retrievers(index):
    options = {"base": "bm25"}
    return [index.bm25(k1=1.2, b=0.7), index.ql(mu=3), index.sdm(mu=3), index.sdm(**options), index.bm25(phrases=True)]


@pytest.mark.parametrize("number", range(5))
def test_contributions_add_up_to_lucenes_score(index, number):
    model = retrievers(index)[number]
    query = TERMS + ' "university city" "long neck"'
    found = model.search(query)
    assert len(found) > 3
    for row in found.itertuples():
        explanation = pn.explain(model, query, docno=row.docno)
        assert explanation.score == pytest.approx(row.score, rel=1e-5)
        assert explanation.to_frame()["contribution"].sum() == pytest.approx(row.score, rel=1e-5)
        assert explanation.by_word().columns.tolist() == COLUMNS
        assert f"{explanation.score:.4f}" in explanation._repr_html_()


def test_tf_idf_and_length_give_the_contributions_by_the_formulas(index):
    bm25, ql, *_ = retrievers(index)
    mean = index.reader.collection_length("contents") / (len(CORPUS) - 1)  # one document has no term
    frame = pn.explain(bm25, TERMS, docno="d2").to_frame()
    assert frame["term"].tolist() == ["univers", "citi", "river", "zzz"]
    assert frame["tf"].tolist() == [2, 1, 0, 0]
    assert frame["weight"].tolist() == [2, 1, 1, 1]
    assert frame["df"].tolist() == [2, 3, 2, 0]
    norm = 1.2 * (1 - 0.7 + 0.7 * frame["length"] / mean)
    expected = frame["weight"] * frame["idf"] * frame["tf"] / (frame["tf"] + norm)
    np.testing.assert_allclose(frame["contribution"], expected, rtol=1e-5)
    frame = pn.explain(ql, TERMS, docno="d2").to_frame()
    log = np.log(1 + frame["tf"] / (3 * frame["probability"])) + np.log(3 / (frame["length"] + 3))
    expected = (frame["weight"] * log).clip(lower=0) * (frame["tf"] > 0)
    np.testing.assert_allclose(frame["contribution"], expected, rtol=1e-5)


def test_windows_are_rows_of_their_own(index):
    model = index.sdm(mu=3)
    frame = pn.explain(model, "university city", docno="d2").to_frame().set_index("kind")
    assert frame.index.tolist() == ["term", "term", "neighbours", "near each other"]
    assert frame.loc["neighbours", ["term", "tf", "df"]].tolist() == ["univers citi", 1, 2]
    assert (frame["contribution"] > 0).all()


def test_words_of_a_stem_share_its_contribution(index):
    explanation = pn.explain(index.bm25(), "universities", docno="d2")
    words = explanation.by_word().query("side == 'document' and match")
    assert words["word"].tolist() == ["university", "university"]
    np.testing.assert_allclose(words["contribution"], explanation.score / 2)
    assert "Oxford is a university city" in explanation.text


def test_weights_of_terms_take_the_place_of_the_query(index):
    row = {"query": "x", "docno": "d2", "query_toks": {"citi": 2.0, "univers": 0.5}}
    frame = pn.explain(index.bm25(), row).to_frame()
    assert dict(zip(frame["term"], frame["weight"], strict=True)) == {"citi": 2.0, "univers": 0.5}
    scored = index.bm25().transform(pd.DataFrame([{"qid": "1", **row}]))["score"].iloc[0]
    assert frame["contribution"].sum() == pytest.approx(scored)


def test_an_index_without_text_explains_its_terms(tmp_path):
    index = pn.LuceneIndex(tmp_path / "bare").index(CORPUS, verbose=False, store_text=False)
    explanation = pn.explain(index.bm25(), "city", docno="d2")
    assert explanation.text == ""
    assert explanation.score > 0
    assert "<table" in explanation._repr_html_()


@pytest.mark.parametrize("query", ["", "zzz", None])
def test_nothing_to_explain_is_no_crash(index, query):
    explanation = pn.explain(index.sdm(), query, docno="d7")
    assert explanation.score == 0
    explanation.plot().figure.draw_without_rendering()
    explanation._repr_html_()


def test_a_document_is_a_row_a_docno_or_a_text(index):
    lsa, query = fitted("LSA"), "university city"
    row = (index.bm25() >> index.text_loader()).search(query).iloc[0]
    text = {"title": "Oxford", "text": "Oxford is a university city, home of the oldest university."}
    expected = pn.explain(lsa, query, text).to_frame()
    for given in (row, row.to_dict(), row.to_frame().T):
        pd.testing.assert_frame_equal(pn.explain(lsa, given).to_frame(), expected)
    pd.testing.assert_frame_equal(pn.explain(lsa, query, docno="d2", index=index).to_frame(), expected)
    by_words = pn.explain(lsa, query, docno="d2", index=forward())
    assert by_words.by_word()["contribution"].tolist() == pytest.approx(expected_by_word(lsa, query, text))
    compared = pn.explain([lsa, index.bm25()], row)
    assert compared.score.tolist() == pytest.approx([by_words.score, row["score"]])


def expected_by_word(model, query, text):
    return pn.explain(model, query, text).by_word()["contribution"].tolist()


def test_rows_of_a_query_show_where_its_terms_stand(index):
    found = (index.bm25() >> index.text_loader()).search("university city")
    explanation = pn.explain(fitted("Duet"), found.assign(label=[1, 0, 0]), method="matches")
    assert explanation.docnos == found["docno"].tolist() == ["d2", "d1", "d6"]
    names = [text.get_text() for text in explanation.plot().texts]
    assert names == ["d2: relevant (1)", "d1: not relevant (0)", "d6: not relevant (0)"]


def pipelines(index):
    lsa, first = fitted("LSA"), index.bm25() >> index.text_loader()
    return {
        "retrieval": index.bm25() % 2 >> index.text_loader(),
        "re-ranking": first >> lsa,
        "mixture": first >> pn.Mixture(lsa, alpha=0.4),
        "normalised": first >> pn.Mixture(lsa, alpha=0.4, normalise="minmax") % 2,
        "z-scores": first >> pn.Mixture(lsa, alpha=0.4, normalise="zscore"),
        "two retrievers": pn.Mixture(lsa.retriever(vectors("LSA")), index.bm25(), alpha=0.3),
    }


@pytest.mark.parametrize("name", ["retrieval", "re-ranking", "mixture", "normalised", "z-scores", "two retrievers"])
def test_a_pipeline_is_explained_by_its_last_ranker(index, name):
    pipeline = pipelines(index)[name]
    for row in pipeline.search("university city").itertuples():
        explanation = pn.explain(pipeline, "university city", docno=row.docno)
        assert explanation.score == pytest.approx(row.score, rel=1e-5)
        if row.rank == 0:
            assert pn.explain(pipeline, "university city").score == explanation.score
            assert pn.explain(pipeline, {"query": "university city", "docno": row.docno}).score == explanation.score


@pytest.mark.parametrize("name", ["mixture", "normalised", "z-scores", "two retrievers"])
def test_shares_of_both_sides_add_up(index, name):
    explanation = pn.explain(pipelines(index)[name], "university city", docno="d1")
    assert explanation.sides["side"].tolist() == ["LSA", "BM25"]
    shares = explanation.shares()
    assert shares[["LSA", "BM25"]].abs().sum().sum() == pytest.approx(1)
    by_side = shares[["LSA", "BM25"]].abs().sum()
    parts = explanation.sides.set_index("side")["contribution"].abs()
    np.testing.assert_allclose(by_side, parts / parts.sum())
    assert shares.loc["city", "BM25"] > 0
    axes = explanation.plot(words=3)
    drawn = sum(abs(bar.get_width()) for bar in axes.patches)
    assert drawn == pytest.approx(100)
    assert [text.get_text().split(":")[0] for text in axes.get_legend().get_texts()] == ["LSA", "BM25"]


def test_a_score_of_which_nothing_is_known_has_a_row_of_its_own():
    shares = pn.explain(pn.Mixture(fitted("LSA"), alpha=0.5), QUERY, "city", incoming=2.0).shares()
    assert shares["incoming"].tolist().count(0) == len(shares) - 1
    assert shares[["LSA", "incoming"]].abs().sum().sum() == pytest.approx(1)


def test_errors_say_what_to_do(index):
    first = index.bm25() >> index.text_loader()
    with pytest.raises(ValueError, match="'d3' is not among the 3 results"):
        pn.explain(first >> fitted("LSA"), "university city", docno="d3")
    with pytest.raises(ValueError, match="finds nothing for 'zzz'"):
        pn.explain(first >> fitted("LSA"), "zzz")
    with pytest.raises(ValueError, match="docno 'd99' is not in"):
        pn.explain(index.bm25(), "city", docno="d99")
    with pytest.raises(TypeError, match="has a column query"):
        pn.explain(fitted("LSA"), {"docno": "d1"})
    with pytest.raises(TypeError, match="several rows of one query"):
        pn.explain(fitted("Duet"), pd.DataFrame({"query": ["a", "b"], "docno": ["d1", "d2"]}), method="matches")
    with pytest.raises(TypeError, match="give a LuceneIndex or a ForwardIndex"):
        pn.explain(fitted("LSA"), "city", docno="d1", index="index")
    with pytest.raises(TypeError, match="or its docno and an index"):
        pn.explain(fitted("LSA"), "city", docno="d1")
    with pytest.raises(ValueError, match="explain the pipeline that ends with the mixture"):
        pn.explain(pn.Mixture(fitted("LSA"), normalise="minmax"), "city", "city", incoming=1.0)
