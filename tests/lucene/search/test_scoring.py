"""Batches of queries: cut-offs in ties, scores of given documents, threads."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.linalg


@pytest.fixture
def transformers(index):
    return [index.bm25(), index.ql(mu=20), index.sdm(), index.sdm("bm25"), index.rm3(fb_docs=2, fb_terms=3)]


@pytest.fixture(scope="module")
def tied(build):
    """900 documents with equal scores for okapi, but for one."""
    docnos = [f"d{number:03}" for number in range(900)]
    random.Random(5).shuffle(docnos)
    return build([{"docno": docno, "text": "okapi" if docno != "d050" else "okapi okapi"} for docno in docnos])


@pytest.mark.parametrize("num_results", [1, 2, 3, 60, 1000])  # 2: the tie is longer than the first search
def test_ties_are_in_order_of_docno_also_at_the_cut(tied, num_results):
    found = tied.bm25(num_results=num_results).search("okapi")
    expected = ["d050", *(f"d{number:03}" for number in reversed(range(900)) if number != 50)]
    assert found["docno"].tolist() == expected[:num_results]
    assert found["rank"].tolist() == list(range(len(found)))


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


def test_docnos_that_were_read_as_numbers_are_explained(transformers, index):
    message = r"2 docnos are not in .*, such as 7, 8; docnos are strings, .*dtype=\{'docno': str\}.*astype\(str\)"
    frame = pd.DataFrame({"qid": "q1", "query": "okapi", "docno": [7, 8], "score": [2.0, 1.0]})
    for transformer in [*transformers, index.text_loader()]:
        for column in (frame["docno"], frame["docno"].astype(object)):
            with pytest.raises(ValueError, match=message):
                transformer(frame.assign(docno=column))
    with pytest.raises(ValueError, match=r"2 docnos .*, such as 7\.0, nan; docnos are strings, not numbers"):
        index.bm25()(frame.assign(docno=[7.0, None]))
    with pytest.raises(ValueError, match=r"docno nan is not in .*; use the index that holds these documents"):
        index.bm25()(frame.assign(docno=float("nan")))


def test_more_queries_than_a_chunk(index):
    frame = pd.DataFrame({"qid": [str(i) for i in range(450)], "query": ["okapi", "giraffe", ""] * 150})
    found = index.bm25()(frame)
    assert len(found) == 150 * 1 + 150 * 2
    assert index.bm25()(found)["score"].tolist() == found["score"].tolist()


def test_threads_with_different_settings_do_not_disturb_each_other(index, topics):
    """SciPy works beside them: a crash was once seen in a process that used Java and much of SciPy."""
    settings = [{"k1": k1, "b": b} for k1 in (0.1, 0.9, 2.0) for b in (0.0, 0.8)]
    expected = [index.bm25(**setting)(topics) for setting in settings]
    matrix = np.random.default_rng(7).normal(size=(120, 120))
    largest = scipy.linalg.svdvals(matrix)[0]

    def work(i):
        if i % 3 == 2:
            assert np.isclose(scipy.linalg.svdvals(matrix)[0], largest)
        else:
            pd.testing.assert_frame_equal(index.bm25(**settings[i % 6])(topics), expected[i % 6])

    with ThreadPoolExecutor(6) as pool:
        assert len(list(pool.map(work, range(60)))) == 60
