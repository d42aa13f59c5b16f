import math
import threading
import time

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pt_neural.lucene.java.jvm import as_interface, in_java, java_class
from pt_neural.lucene.search.windows import UNITS, PlainWindows, Window, _count_all, count_windows


def windows(build, texts):
    """Scores by windows alone, of documents d0, d1, ... with the given texts."""
    index = build([{"docno": f"d{i}", "text": text} for i, text in enumerate(texts)])

    def scores(query, ordered, unordered, **options):
        full = index.sdm("bm25", weights=(1, ordered, unordered), b=0, **options).search(query)
        terms = index.bm25(b=0).search(query).set_index("docno")["score"]
        return {d: s - terms[d] for d, s in zip(full["docno"], full["score"], strict=True) if s - terms[d] > 1e-5}

    return scores


def test_ordered_windows_are_neighbours_in_order(build):
    scores = windows(build, ["river bank", "bank river", "river side bank", "river", "bank"])
    assert set(scores("river bank", 1, 0)) == {"d0"}
    assert set(scores("bank river", 1, 0)) == {"d1"}


def test_unordered_windows_span_so_many_positions(build):
    gap = {n: " ".join(["filler"] * n) for n in (5, 6, 7)}
    scores = windows(build, [f"river {gap[6]} bank", f"river {gap[7]} bank", f"bank {gap[5]} river"])
    assert set(scores("river bank", 0, 1)) == {"d0", "d2"}
    assert set(scores("river bank", 0, 1, window=9)) == {"d0", "d1", "d2"}
    assert set(scores("river bank", 0, 1, window=7)) == {"d2"}
    assert scores("river bank", 0, 1, window=2) == {}


def test_an_occurrence_makes_no_pair_with_itself(build):
    scores = windows(build, ["river bank", "river river", "river bank river", "bank"])
    assert set(scores("river river", 1, 0)) == {"d1"}
    assert set(scores("river river", 0, 1)) == {"d1", "d2"}


def test_windows_are_scored_by_their_own_statistics(build):
    texts = ["river bank", "river bank river bank", "river", "river bank is river", "bank", "bank bank"]
    scores = windows(build, texts)("river bank", 1, 0)
    idf = math.log(1 + (6 - 3 + 0.5) / (3 + 0.5))  # 3 of 6 documents have the window
    assert scores["d0"] == pytest.approx(idf * 1 / (1 + 0.9), rel=1e-4)
    assert scores["d1"] == pytest.approx(idf * 2 / (2 + 0.9), rel=1e-4)


def test_query_likelihood_of_windows(build):
    texts = ["river bank", "river bank river bank", "river cow", "cow"]
    index = build([{"docno": f"d{i}", "text": text} for i, text in enumerate(texts)])
    full = index.sdm(weights=(1, 1, 0), mu=10).search("river bank").set_index("docno")["score"]
    terms = index.ql(mu=10).search("river bank").set_index("docno")["score"]
    probability = (3 + 1) / (9 + 1)  # 3 windows, 9 tokens; Lucene adds one to both
    expected = math.log(1 + 2 / (10 * probability)) + math.log(10 / (4 + 10))
    assert full["d1"] - terms["d1"] == pytest.approx(expected, rel=1e-4)


def test_one_word_and_repeated_windows(build, index):
    found, terms = index.sdm().search("giraffe"), index.ql().search("giraffe")
    assert found[["docno", "score"]].equals(terms[["docno", "score"]])
    scores = windows(build, ["river bank", "cow"])
    once, twice = scores("river bank", 1, 0), scores("river bank cow river bank", 1, 0)
    assert twice["d0"] == pytest.approx(2 * once["d0"], rel=1e-4)


def test_weights_multiply_the_parts(build):
    scores = windows(build, ["river bank", "cow"])
    assert scores("river bank", 0.5, 0)["d0"] == pytest.approx(scores("river bank", 1, 0)["d0"] / 2, rel=1e-4)
    assert scores("river bank", 0, 0) == {}


def test_counts_as_weights_change_no_score(build):
    texts = ["river bank", "bank river bank cow", "cow river side bank", "river", "cow"]
    index = build([{"docno": f"d{i}", "text": text} for i, text in enumerate(texts)])
    topics = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["river bank river", "cow", ""]})
    weights = [{"bank": 1.0, "river": 2.0}, {"cow": 1}, {}]
    for sdm in (index.sdm(), index.sdm("bm25")):
        plain, weighted = sdm(topics), sdm(topics.assign(query_toks=weights))
        pd.testing.assert_frame_equal(weighted[plain.columns], plain)
        pd.testing.assert_frame_equal(sdm(weighted)[plain.columns], plain)


def test_terms_come_from_the_weights_and_windows_from_the_text(build):
    index = build([{"docno": "d0", "text": "river bank"}, {"docno": "d1", "text": "cow"}, {"docno": "d2", "text": "x"}])
    sdm = index.sdm("bm25", weights=(0.8, 0.1, 0.05))
    topics = pd.DataFrame({"qid": ["1"], "query": ["river bank"]})
    plain = sdm(topics)["score"][0]
    found = sdm(topics.assign(query_toks=[{"river": 1, "bank": 1, "cow": 0.5}])).set_index("docno")["score"]
    assert found["d0"] == pytest.approx(plain)
    assert found["d1"] == pytest.approx(0.8 * 0.5 * index.bm25().search("cow")["score"][0])
    windows = sdm(topics.assign(query_toks=[{}]))
    terms = index.bm25()(topics)["score"][0]
    assert windows["score"].tolist() == pytest.approx([plain - 0.8 * terms], rel=1e-4)


def test_weights_need_the_text_too_and_are_not_negative(index):
    with pytest.raises(pt.validate.InputValidationError, match="query"):
        index.sdm()(pd.DataFrame({"qid": ["1"], "query_toks": [{"okapi": 1.0}]}))
    with pytest.raises(ValueError, match="column 'query_toks': the weight of 'okapi' is -1"):
        index.sdm()(pd.DataFrame({"qid": ["1"], "query": ["okapi"], "query_toks": [{"okapi": -1}]}))


def test_an_index_without_positions_says_how_to_get_them(build, corpus):
    index = build(corpus, positions=False, vectors=False, store_text=False)
    with pytest.raises(ValueError, match=r"without positions.*indexer\(positions=True, overwrite=True\)"):
        index.sdm().search("river city")
    assert len(index.bm25().search("river city")) == 3


def count_window(reader, window):
    return count_windows(reader, "contents", [window])[window]


def unordered_frequency(terms, first, second, width):
    """The sum of 1 / (3 + g) over pairs of occurrences with g terms between them, by looking at every pair."""
    gaps = (
        abs(i - j) - 1 for i, one in enumerate(terms) for j, two in enumerate(terms) if (one, two) == (first, second)
    )
    return sum(1 / (3 + gap) for gap in gaps if gap <= width - 2)


def test_windows_are_counted_document_by_document(build):
    texts = [f"river{' x' * gap} bank" for gap in range(8)] * 3 + ["bank x river", "river", "cow"]
    index = build([{"docno": f"d{i}", "text": text} for i, text in enumerate(texts)], stopwords="none")
    documents, units = count_window(index.reader, Window("river", "bank", ordered=False, width=8))
    expected = [unordered_frequency(text.split(), "river", "bank", 8) for text in texts]
    assert documents == sum(frequency > 0 for frequency in expected) == 22
    assert units == sum(round(float(np.float32(frequency)) * UNITS) for frequency in expected)
    assert count_window(index.reader, Window("river", "giraff", ordered=True)) == (0, 0)


def test_counts_of_parts_add_up_to_those_of_the_whole(build):
    texts = [f"river{' x' * (i % 7)} bank {'river ' * (i % 3)}" for i in range(60)]
    documents = [{"docno": f"d{i}", "text": text} for i, text in enumerate(texts)]
    window = Window("river", "bank", ordered=False, width=8)
    whole = count_window(build(documents).reader, window)
    for number in (2, 7):
        parts = [count_window(build(documents[i::number]).reader, window) for i in range(number)]
        assert tuple(map(sum, zip(*parts, strict=True))) == whole


@in_java
def allocated(work):
    """The number of bytes of Java's heap that this thread asks for while it works."""
    threads = java_class("java.lang.management.ManagementFactory").getThreadMXBean()
    bean = as_interface("com.sun.management.ThreadMXBean", threads)
    before = bean.getCurrentThreadAllocatedBytes()
    work()
    after = bean.getCurrentThreadAllocatedBytes()
    return after - before


def test_counting_a_window_keeps_no_documents(build):
    index = build([{"docno": str(i), "text": "river bank river cow"} for i in range(20_000)])
    reader = index.reader

    def count(first, second):
        in_java(
            lambda: _count_all(reader).apply(PlainWindows("contents").build([Window(first, second, ordered=True)]))
        )()

    count("bank", "river")
    assert allocated(lambda: count("river", "bank")) < 5 * 20_000


def test_long_queries_leave_other_threads_their_turns(build):
    texts = [" ".join(f"word{(i * j) % 97}" for j in range(40)) for i in range(1_000)]
    index = build([{"docno": str(i), "text": text} for i, text in enumerate(texts)])
    bm25, sdm = index.bm25(num_results=5), index.sdm(num_results=5)
    query = " ".join(f"word{i % 97} word{i // 97}" for i in range(300))
    expected, other = bm25.search("word3"), threading.Thread(target=sdm.search, args=(query,))
    other.start()
    waits = []
    while other.is_alive():
        start = time.perf_counter()
        found = bm25.search("word3")
        waits.append(time.perf_counter() - start)
        assert found.equals(expected)
    assert len(waits) > 10
    assert np.median(waits) < 0.1
