import pandas as pd
import pytest


@pytest.fixture
def transformers(index):
    return [index.bm25(), index.ql(mu=20), index.sdm(), index.sdm("bm25"), index.rm3(fb_docs=2, fb_terms=3)]


def test_scores_are_those_of_retrieval(transformers, topics):
    for transformer in transformers:
        found = transformer(topics)
        shuffled = found.sample(frac=1, random_state=3).assign(extra=1, text="kept")
        scored = transformer(shuffled)
        assert list(scored.index) == list(shuffled.index)
        assert {"extra", "text"} <= set(scored.columns)
        pd.testing.assert_frame_equal(scored[found.columns].sort_index(), found)


def test_documents_without_a_term_of_the_query_score_zero(transformers):
    frame = pd.DataFrame({"qid": "q1", "query": "okapi", "docno": ["d5", "d4", "d6"]})
    for transformer in transformers:
        scored = transformer(frame)
        assert scored["score"].iloc[[0, 2]].tolist() == [0.0, 0.0] or transformer.label == "RM3"
        assert scored["rank"].iloc[1] == 0


def test_rows_may_repeat_and_qids_may_have_several_queries(index):
    frame = pd.DataFrame(
        {
            "qid": ["q", "q", "q", "p"],
            "query": ["okapi", "giraffe", "okapi", None],
            "docno": ["d4", "d4", "d4", "d4"],
        }
    )
    scored = index.bm25()(frame)["score"].tolist()
    okapi, giraffe = (index.bm25().search(query).set_index("docno")["score"]["d4"] for query in ("okapi", "giraffe"))
    assert scored == [okapi, giraffe, okapi, 0.0]


def test_unknown_docnos_are_named(transformers):
    frame = pd.DataFrame({"qid": "q1", "query": "okapi", "docno": ["d4", "nowhere", None]})
    for transformer in transformers:
        with pytest.raises(ValueError, match=r"2 docnos are not in .*'nowhere'"):
            transformer(frame)


def test_many_queries(index):
    frame = pd.DataFrame({"qid": [str(i) for i in range(450)], "query": ["okapi", "giraffe", ""] * 150})
    found = index.bm25()(frame)
    assert index.bm25()(found)["score"].tolist() == found["score"].tolist()
