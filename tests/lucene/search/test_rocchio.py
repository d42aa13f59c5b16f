"""Rocchio over Lucene against its formula, and in the same forms as RM3."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn

QUERIES = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["okapi forest okapi", "congo", "unheard"]})
OTHERS = [{"docno": f"x{number}", "text": f"other words here {number}"} for number in range(40)]
OKAPIS = [
    {"docno": "d1", "text": "okapi forest forest congo"},
    {"docno": "d2", "text": "okapi forest ituri"},
    {"docno": "d3", "text": "forest congo ituri"},
]


@pytest.fixture
def okapis(build):
    return build([*OKAPIS, *OTHERS])


def unit(counts):
    length = np.sqrt(sum(count**2 for count in counts.values()))
    return {term: count / length for term, count in counts.items()}


def test_the_expanded_query_is_that_of_the_formula(okapis):
    rewriter = okapis.rocchio(fb_docs=2, fb_terms=2, alpha=0.7, beta=0.4).rewriter()
    best = okapis.bm25().transform(QUERIES[:1])["docno"].head(2)
    mean = Counter()
    for document in OKAPIS:
        if document["docno"] in best.tolist():
            for term, weight in unit(Counter(document["text"].split())).items():
                mean[term] += weight / 2
    mean = unit(dict(mean.most_common(2)))
    query = unit({"okapi": 2, "forest": 1})
    expected = {term: 0.7 * query.get(term, 0) + 0.4 * mean.get(term, 0) for term in {*query, *mean}}
    assert rewriter.transform(QUERIES[:1])["query_toks"].iloc[0] == pytest.approx(expected, rel=1e-5)


def test_the_rewriter_between_two_retrievals_is_rocchio_written_out(okapis):
    bm25, rocchio = okapis.bm25(), okapis.rocchio(fb_terms=3)
    expected = rocchio.transform(QUERIES)
    assert expected["docno"].tolist() != bm25.transform(QUERIES)["docno"].tolist()
    for pipeline in (bm25 >> rocchio.rewriter() >> bm25, rocchio.rewriter() >> bm25):
        pd.testing.assert_frame_equal(pipeline.transform(QUERIES)[list(expected)], expected)
    kept = rocchio.rewriter(keep_documents=True)
    assert pickle.loads(pickle.dumps(kept)) == kept != okapis.rm3().rewriter(keep_documents=True)
    assert repr(kept) == f"RocchioRewriter({rocchio!r}, keep_documents=True)"
    assert rocchio.rewriter().transform(QUERIES)["query_toks"].iloc[2] == {"unheard": 1}


def test_stages_that_lose_an_expansion_warn(okapis):
    bm25 = okapis.bm25()
    with pytest.warns(UserWarning, match=r"so is lost.*index.rocchio\(\).rewriter\(\)"):
        (okapis.rocchio() >> bm25).transform(QUERIES)
    tfidf = pn.TFIDF().fit_corpus([*OKAPIS, *OTHERS], verbose=False)
    reranked = bm25 >> okapis.text_loader() >> pn.Rocchio(tfidf)
    with pytest.warns(UserWarning, match=r"so is lost.*index.rocchio\(\).rewriter\(\)"):
        (reranked >> bm25).transform(QUERIES)


def test_impossible_settings_are_refused(okapis):
    for settings, message in (
        ({"alpha": -1}, "alpha must be at least 0"),
        ({"beta": -1}, "beta must be at least 0"),
        ({"alpha": 0, "beta": 0}, "leaves no query"),
        ({"fb_terms": 0}, "fb_terms must be at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            okapis.rocchio(**settings)
    assert "Rocchio" in pt.schematic.draw(okapis.bm25() >> okapis.rocchio().rewriter() >> okapis.bm25())
