"""Rocchio against the expansion of a query by hand."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural._files import ArtifactError


@pytest.fixture
def tfidf(corpus) -> pn.TFIDF:
    return pn.TFIDF().fit_corpus(corpus, verbose=False)


@pytest.fixture
def candidates(corpus, topics) -> pd.DataFrame:
    return topics.merge(pd.DataFrame(corpus), how="cross")


def tfidf_vector(tfidf: pn.TFIDF):
    return lambda text: tfidf.represent_queries([text]).sparse


def by_hand(tfidf: pn.TFIDF, query: str, texts: dict[str, str], beta: float, feedback_docs: int) -> dict[str, float]:
    """TFIDF, the mean of the first documents, and TFIDF again."""
    q, *found = (vector.toarray()[0].astype(float) for vector in map(tfidf_vector(tfidf), [query, *texts.values()]))
    vectors = dict(zip(texts, found, strict=True))
    first = sorted((docno for docno in vectors if q @ vectors[docno] > 0), reverse=True)
    first = sorted(first, key=lambda docno: -round(q @ vectors[docno], 6))[:feedback_docs]
    if first:
        q = q + beta * sum(vectors[docno] for docno in first) / len(first)
        q = q / np.linalg.norm(q)
    return {docno: q @ d for docno, d in vectors.items()}


def texts(corpus) -> dict[str, str]:
    return {document["docno"]: f"{document['title']} {document['text']}" for document in corpus}


@pytest.mark.parametrize(("beta", "feedback_docs"), [(0.5, 2), (2.0, 1), (0.75, 100)])
def test_the_mean_of_the_first_documents_is_added(tfidf, corpus, topics, candidates, tmp_path, beta, feedback_docs):
    rocchio = pn.Rocchio(tfidf, beta=beta, feedback_docs=feedback_docs)
    expected = {
        (qid, docno): score
        for qid, query in topics.itertuples(index=False)
        for docno, score in by_hand(tfidf, query, texts(corpus), beta, feedback_docs).items()
    }
    scored = rocchio.transform(candidates)
    pairs = list(zip(scored["qid"], scored["docno"], strict=True))
    np.testing.assert_allclose(scored["score"], [expected[pair] for pair in pairs], atol=1e-6)
    vectors = tfidf.index(tmp_path / "vectors", corpus, verbose=False)
    found = rocchio.retriever(vectors).transform(topics)
    reranked = scored[scored["score"] > 0].sort_values(["qid", "rank"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(found[["qid", "docno", "rank"]], reranked[["qid", "docno", "rank"]])
    np.testing.assert_allclose(found["score"], reranked["score"], atol=1e-6)
    tfidf.vectors = vectors
    np.testing.assert_allclose(
        rocchio.transform(candidates[["qid", "query", "docno"]])["score"], scored["score"], atol=1e-6
    )


def test_a_document_is_found_by_words_that_the_query_lacks(tfidf, corpus, tmp_path):
    vectors = tfidf.index(tmp_path / "vectors", corpus, verbose=False)
    assert tfidf.retriever(vectors).search("tallest")["docno"].tolist() == ["d3"]
    assert pn.Rocchio(tfidf, feedback_docs=1).retriever(vectors).search("tallest")["docno"].tolist()[:2] == ["d3", "d4"]


def test_without_weight_it_is_tfidf(tfidf, corpus, topics, candidates, tmp_path):
    rocchio = pn.Rocchio(tfidf, beta=0)
    np.testing.assert_allclose(rocchio.transform(candidates)["score"], tfidf.transform(candidates)["score"], atol=1e-6)
    vectors = tfidf.index(tmp_path / "vectors", corpus, verbose=False)
    found, plain = (model.retriever(vectors).transform(topics) for model in (rocchio, tfidf))
    assert found["docno"].tolist() == plain["docno"].tolist()


def test_each_query_is_expanded_by_its_own_candidates(tfidf, candidates):
    rocchio = pn.Rocchio(tfidf, feedback_docs=1)
    one = candidates[candidates["qid"] == "q1"]
    few = one[one["docno"] != "d2"].assign(qid="again")  # the same query without its best document
    both = pd.concat([one, few], ignore_index=True)
    scored = rocchio.transform(both.sample(frac=1, random_state=1)).sort_index()
    np.testing.assert_allclose(scored["score"][:6], rocchio.transform(one)["score"], atol=1e-6)
    np.testing.assert_allclose(scored["score"][6:], rocchio.transform(few)["score"], atol=1e-6)
    assert not np.allclose(scored["score"][6:], scored["score"][:6][(one["docno"] != "d2").to_numpy()])


def test_a_document_that_comes_twice_counts_once(tfidf, candidates):
    rocchio = pn.Rocchio(tfidf, feedback_docs=2)
    twice = rocchio.transform(pd.concat([candidates, candidates], ignore_index=True))
    expected = rocchio.transform(candidates)["score"]
    np.testing.assert_allclose(twice["score"], [*expected, *expected], atol=1e-6)


def test_nothing_known_is_not_expanded(tfidf, corpus, candidates, tmp_path):
    rocchio = pn.Rocchio(tfidf)
    retriever = rocchio.retriever(tfidf.index(tmp_path / "vectors", corpus, verbose=False))
    for nothing in ("", "?!", "zebra", None, np.nan):
        assert (rocchio.transform(candidates.assign(query=nothing))["score"] == 0).all()
        text = candidates["text"].where(candidates["docno"] != "d1", nothing)
        scored = rocchio.transform(candidates.assign(title="", text=text))
        assert (scored["score"][scored["docno"] == "d1"] == 0).all()
        assert retriever.transform(pd.DataFrame({"qid": ["1"], "query": [nothing]})).empty


def test_scores_do_not_depend_on_blocks(tfidf, corpus, topics, tmp_path, monkeypatch):
    found = pn.Rocchio(tfidf).retriever(tfidf.index(tmp_path / "vectors", corpus, verbose=False))
    expected = found.transform(topics)
    monkeypatch.setattr("pt_neural.rankers.retriever.DOCUMENTS_PER_BLOCK", 1)
    pd.testing.assert_frame_equal(found.transform(topics), expected)


def test_what_may_differ_when_it_is_loaded(tfidf, tmp_path):
    pn.Rocchio(tfidf, beta=0.5, feedback_docs=3).save(tmp_path / "rocchio.pn")
    loaded = pn.Rocchio.load(tmp_path / "rocchio.pn", beta=1)
    assert (loaded.beta, loaded.feedback_docs, loaded.fingerprint()) == (1, 3, tfidf.fingerprint())
    with pytest.raises(ValueError, match="tfidf cannot be changed by loading"):
        pn.Rocchio.load(tmp_path / "rocchio.pn", tfidf=tfidf)
    for name in ("config.json", "tfidf/vocabulary/terms.txt"):
        path = tmp_path / "rocchio.pn" / name
        path.write_bytes(path.read_bytes()[:-2])
        with pytest.raises(ArtifactError, match=f"{path.name} is damaged"):
            pn.Rocchio.load(tmp_path / "rocchio.pn")
        path.unlink()
        with pytest.raises(ArtifactError, match=f"{path.name} is missing"):
            pn.Rocchio.load(tmp_path / "rocchio.pn")
        pn.Rocchio(tfidf).save(tmp_path / "rocchio.pn", overwrite=True)


def test_clear_errors(tfidf, corpus, candidates, tmp_path):
    with pytest.raises(TypeError, match="tfidf must be a fitted TFIDF"):
        pn.Rocchio(0.5)
    with pytest.raises(ValueError, match="beta must be at least 0"):
        pn.Rocchio(tfidf, beta=-1)
    with pytest.raises(ValueError, match="feedback_docs must be at least 1"):
        pn.Rocchio(tfidf, feedback_docs=0)
    for use in (
        lambda: pn.Rocchio(pn.TFIDF()).transform(candidates),
        lambda: pn.Rocchio(pn.TFIDF()).save(tmp_path / "unfitted.pn"),
    ):
        with pytest.raises(RuntimeError, match=r"call tfidf\.fit_corpus"):
            use()
    with pytest.raises(KeyError, match=r"no text for Rocchio\(TFIDF"):
        pn.Rocchio(tfidf).transform(candidates[["qid", "query", "docno"]])
    other = pn.TFIDF().fit_corpus(corpus[:3], verbose=False)
    with pytest.raises(ValueError, match="made by another model than this Rocchio"):
        pn.Rocchio(tfidf).retriever(other.index(tmp_path / "other", corpus, verbose=False))


def test_in_pipelines(tfidf, corpus, topics, candidates, tmp_path):
    rocchio = pn.Rocchio(tfidf)
    found = rocchio.retriever(tfidf.index(tmp_path / "vectors", corpus, verbose=False))
    assert (repr(rocchio), rocchio.fields) == ("Rocchio(TFIDF(), beta=0.75, feedback_docs=10)", ("title", "text"))
    qrels = pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": ["d1", "d3", "d5"], "label": 1})
    first = pt.Transformer.from_df(candidates.assign(score=0.0))
    table = pt.Experiment([found, first >> tfidf >> rocchio, first >> rocchio], topics, qrels, ["recip_rank"])
    assert table["recip_rank"].between(0.5, 1).all()
    assert pt.inspect.transformer_inputs(found) == [["qid", "query"]]
    assert pt.inspect.transformer_inputs(rocchio)[0] == ["qid", "docno", "query", "title", "text"]
    assert [attribute.name for attribute in pt.inspect.transformer_attributes(rocchio)] == [
        "tfidf",
        "beta",
        "feedback_docs",
    ]
    for pipeline in (rocchio, found % 2 >> rocchio):
        assert "Rocchio" in pt.schematic.draw(pipeline)
    assert "Retriever" in pt.schematic.draw(found)
    assert len(found.transform(topics)) == len((found % 10).transform(topics))
