import pickle
import warnings

import pandas as pd
import pytest


@pytest.fixture
def okapis(build):
    return build(
        [
            {"docno": "d1", "text": "okapi forest congo"},
            {"docno": "d2", "text": "okapi forest ituri"},
            {"docno": "d3", "text": "forest congo ituri"},
            *({"docno": f"x{number}", "text": f"other words here {number}"} for number in range(40)),
        ]
    )


def test_feedback_finds_what_the_query_does_not_say(okapis):
    assert okapis.bm25().search("okapi")["docno"].tolist() == ["d2", "d1"]
    found = okapis.rm3(fb_docs=2, fb_terms=4).search("okapi")
    assert found["docno"].tolist() == ["d2", "d1", "d3"]
    assert okapis.rm3(fb_docs=2, fb_terms=4, original_weight=1).search("okapi")["docno"].tolist()[:2] == ["d2", "d1"]


def test_an_index_without_vectors_says_how_to_get_them(build, corpus):
    index = build(corpus, positions=False, vectors=False, store_text=False)
    with pytest.raises(ValueError, match=r"without term vectors.*indexer\(vectors=True, overwrite=True\)"):
        index.rm3().search("okapi")


@pytest.fixture
def animals(build, corpus):
    return build(corpus)


QUERIES = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["university city", "giraffe", "unheard"]})


@pytest.mark.parametrize("base", ["bm25", "ql"])
def test_the_rewriter_between_two_retrievals_is_rm3_written_out(animals, base):
    first, settings = getattr(animals, base)(), {"fb_docs": 5, "fb_terms": 6, "original_weight": 0.4}
    rm3 = animals.rm3(base, **settings)
    expected = rm3.transform(QUERIES)
    for pipeline in (first >> rm3.rewriter() >> first, rm3.rewriter() >> first):
        found = pipeline.transform(QUERIES)
        assert found["docno"].tolist() == expected["docno"].tolist()
        assert found["score"].to_numpy() == pytest.approx(expected["score"].to_numpy(), rel=1e-4)


def test_feedback_documents_are_the_best_that_come_in(okapis):
    rewriter = okapis.rm3(fb_docs=1, fb_terms=5).rewriter()
    results = okapis.bm25().search("okapi")  # d2, with ituri, before d1, with congo
    others = results.assign(score=[1.0, 2.0])
    first, second = (set(rewriter.transform(frame)["query_toks"].iloc[0]) for frame in (results, others))
    assert first - second == {"ituri"}
    assert second - first == {"congo"}


def test_the_rewriter_keeps_queries_and_if_asked_documents(animals):
    results = animals.bm25(num_results=3).transform(QUERIES)
    queries = animals.rm3().rewriter().transform(results)
    assert queries["qid"].tolist() == results["qid"].unique().tolist()
    assert "docno" not in queries
    kept = animals.rm3().rewriter(keep_documents=True)
    assert kept.transform(results)["docno"].tolist() == results["docno"].tolist()
    assert animals.rm3().rewriter().transform(QUERIES)["query_toks"].iloc[2] == {"unheard": 1}
    assert animals.rm3().rewriter().transform(QUERIES[:0])["query_toks"].tolist() == []
    assert pickle.loads(pickle.dumps(kept)) == kept != animals.rm3().rewriter()
    assert repr(kept) == f"RM3Rewriter({animals.rm3()!r}, keep_documents=True)"


def test_a_stage_that_loses_the_expansion_warns(animals):
    bm25, rm3 = animals.bm25(), animals.rm3()
    with pytest.warns(UserWarning, match=r"without its expansion.*index.rm3\(\).rewriter\(\)"):
        (bm25 >> rm3 >> bm25).transform(QUERIES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (bm25 >> rm3.rewriter() >> bm25 >> animals.ql()).transform(QUERIES)
        (bm25 >> rm3 % 2 >> rm3).transform(QUERIES)


def feedback(docnos, scores):
    return pd.DataFrame({"qid": "1", "query": "okapi", "docno": docnos, "score": scores})


@pytest.mark.parametrize("scores", [[-1.0, -2.0], [3.0, -1.0]])
def test_rm3_refuses_feedback_that_it_cannot_weigh(okapis, scores):
    results = feedback(["d1", "d2"], scores)
    with pytest.raises(ValueError, match=rf"score {min(scores):g},.*not be negative; re-score.*bm25.*rocchio"):
        okapis.rm3().rewriter().transform(results)
    rescored = okapis.bm25() >> okapis.rm3().rewriter()
    for rewriter in (rescored, okapis.rocchio().rewriter()):
        assert {"congo", "ituri"} <= set(rewriter.transform(results)["query_toks"].iloc[0])


def test_feedback_documents_that_score_0_are_left_out(okapis):
    rewriter = okapis.rm3().rewriter()
    both, one, none = (
        rewriter.transform(feedback(*results))["query_toks"].iloc[0]
        for results in ((["d1", "d2"], [2.0, 0.0]), (["d1"], [2.0]), (["d1", "d2"], [0.0, 0.0]))
    )
    assert both == one
    assert none == {"okapi": 1}


def test_equal_scores_are_cut_off_by_docno_in_anserinis_order_or_that_of_results(okapis):
    rewriter = okapis.rm3(fb_docs=1, fb_terms=5).rewriter()
    retrieved, given = (
        set(pipeline.search("okapi")["query_toks"].iloc[0]) for pipeline in (rewriter, okapis.bm25() >> rewriter)
    )
    assert retrieved - given == {"congo"}  # of d1
    assert given - retrieved == {"ituri"}  # of d2


@pytest.mark.parametrize("maker", ["rm3", "rocchio"])
def test_feedback_documents_without_terms_are_left_out(build, maker):
    okapis = [{"docno": "d1", "text": "okapi forest congo", "title": "okapi"}, {"docno": "d2", "text": "okapi ituri"}]
    others = [{"docno": f"x{number}", "text": f"other words here {number}"} for number in range(40)]
    index = build([*okapis, {"docno": "empty", "text": ""}, *others], separate_fields=["title"])
    for field, bare in (("contents", "empty"), ("title", "d2")):
        rewriter = getattr(index, maker)(field=field).rewriter()
        both, one, none = (
            rewriter.transform(feedback(docnos, 2.0))["query_toks"].iloc[0] for docnos in (["d1", bare], ["d1"], [bare])
        )
        assert both == one
        assert none == {"okapi": 1}
