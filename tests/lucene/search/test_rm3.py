import pytest


def test_feedback_finds_what_the_query_does_not_say(build):
    index = build(
        [
            {"docno": "d1", "text": "okapi forest congo"},
            {"docno": "d2", "text": "okapi forest ituri"},
            {"docno": "d3", "text": "forest congo ituri"},
            *({"docno": f"x{number}", "text": f"other words here {number}"} for number in range(40)),
        ]
    )
    assert index.bm25().search("okapi")["docno"].tolist() == ["d2", "d1"]
    found = index.rm3(fb_docs=2, fb_terms=4).search("okapi")
    assert found["docno"].tolist() == ["d2", "d1", "d3"]
    assert index.rm3(fb_docs=2, fb_terms=4, original_weight=1).search("okapi")["docno"].tolist()[:2] == ["d2", "d1"]


def test_an_index_without_vectors_says_how_to_get_them(build, corpus):
    index = build(corpus, positions=False, vectors=False, store_text=False)
    with pytest.raises(ValueError, match=r"without term vectors.*indexer\(vectors=True, overwrite=True\)"):
        index.rm3().search("okapi")
