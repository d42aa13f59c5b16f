from collections import Counter

import numpy as np
import pandas as pd
import pytest

from pt_neural.experiment import keyword_queries, with_random_documents

DOCNOS = [f"d{number}" for number in range(50)]


@pytest.fixture
def topics():
    return pd.DataFrame({"qid": ["q2", "q1", "q3"], "query": ["a river", "a city", "nothing"], "split": "test"})


@pytest.fixture
def qrels():
    rows = [("q1", "d3", 1), ("q1", "d40", 2), ("q1", "d5", 0), ("q2", "d7", 1), ("q2", "elsewhere", 1)]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def of(frame, qid):
    return frame.loc[frame["qid"] == qid, "docno"].tolist()


def test_relevant_documents_and_as_many_others_as_asked_for(topics, qrels):
    frame = with_random_documents(topics, qrels, DOCNOS, 10)
    assert frame.columns.tolist() == ["qid", "query", "split", "docno"]
    assert frame["qid"].drop_duplicates().tolist() == ["q2", "q1", "q3"]
    assert frame.index.tolist() == list(range(12 + 11 + 10))
    assert not frame.duplicated(["qid", "docno"]).any()
    assert set(frame["docno"]) <= set(DOCNOS)
    assert {"d3", "d40"} < set(of(frame, "q1"))
    assert "d7" in of(frame, "q2")
    assert frame.groupby("qid")["query"].unique().str[0].to_dict() == topics.set_index("qid")["query"].to_dict()


def test_the_order_of_candidates_does_not_tell_which_are_relevant(topics, qrels):
    for qid in topics["qid"]:
        numbers = [int(docno[1:]) for docno in of(with_random_documents(topics, qrels, DOCNOS, 10), qid)]
        assert numbers == sorted(numbers)


def test_what_is_excluded_is_no_candidate_even_if_relevant(topics, qrels):
    rows = [("q1", "d3"), ("q1", "d9"), ("q2", "d0"), ("q2", "unknown")]
    exclude = pd.DataFrame(rows, columns=["qid", "docno"])
    frame = with_random_documents(topics, qrels, DOCNOS, 1000, exclude=exclude)
    assert set(of(frame, "q1")) == set(DOCNOS) - {"d3", "d9"}
    assert set(of(frame, "q2")) == set(DOCNOS) - {"d0"}
    assert set(of(frame, "q3")) == set(DOCNOS)
    few = with_random_documents(topics, qrels, DOCNOS, 46, exclude=exclude)
    assert few.groupby("qid").size().to_dict() == {"q1": 46 + 1, "q2": 46 + 1, "q3": 46}


def test_no_random_documents_leaves_the_relevant_ones(topics, qrels):
    frame = with_random_documents(topics, qrels, DOCNOS, 0)
    assert list(zip(frame["qid"], frame["docno"], strict=True)) == [("q2", "d7"), ("q1", "d3"), ("q1", "d40")]


def test_repeatable_by_seed(topics, qrels):
    first, second, other = (with_random_documents(topics, qrels, DOCNOS, 10, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, second)
    assert of(first, "q3") != of(other, "q3")


def test_each_document_is_as_likely_as_the_others():
    """500 draws of 5 out of the 9 documents that are not relevant: each about 278 times, with a deviation of 11."""
    topics = pd.DataFrame({"qid": [f"q{number}" for number in range(500)], "query": "x"})
    qrels = topics[["qid"]].assign(docno="d4", label=1)
    drawn = Counter(with_random_documents(topics, qrels, DOCNOS[:10], 5)["docno"])
    assert drawn.pop("d4") == 500
    assert len(drawn) == 9
    assert all(abs(count - 500 * 5 / 9) < 5 * 11.1 for count in drawn.values())


def test_clear_errors_of_candidates(topics, qrels):
    with pytest.raises(ValueError, match="'q1' occurs twice"):
        with_random_documents(pd.concat([topics, topics[1:2]]), qrels, DOCNOS)
    with pytest.raises(ValueError, match="docnos is empty"):
        with_random_documents(topics, qrels, [])
    with pytest.raises(ValueError, match="qrels lacks label"):
        with_random_documents(topics, qrels.drop(columns="label"), DOCNOS)
    with pytest.raises(ValueError, match="exclude lacks docno"):
        with_random_documents(topics, qrels, DOCNOS, exclude=topics)
    with pytest.raises(ValueError, match="num_random"):
        with_random_documents(topics, qrels, DOCNOS, -1)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        with_random_documents(topics, qrels, DOCNOS, seed=-1)
    for wrong in ("d1", iter([{"docno": "d1", "text": "a river"}])):
        with pytest.raises(TypeError, match=r"docnos must be the docnos .* documents\.docnos"):
            with_random_documents(topics, qrels, wrong)
    with pytest.raises(TypeError, match="qrels must be a frame with qid, docno, label, not None"):
        with_random_documents(topics, None, DOCNOS)
    assert with_random_documents(topics[:0], qrels, DOCNOS).empty


def test_keyword_queries_are_words_of_the_text_in_its_order():
    text = "One two, two THREE four five six; seven eight nine ten two"
    topics = pd.DataFrame({"qid": [f"q{number}" for number in range(300)], "query": text, "split": "test"})
    queries = keyword_queries(topics, 4)
    assert queries.drop(columns="query").equals(topics.drop(columns="query"))
    order = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    kept = [[order.index(word) for word in query.split()] for query in queries["query"]]
    assert all(places == sorted(set(places)) and len(places) == 4 for places in kept)
    counts = np.bincount(np.concatenate(kept), minlength=10)
    assert (abs(counts - 120) < 5 * 8.5).all()  # 300 draws with probability 0.4; "two" is no likelier


def test_short_texts_keep_all_their_words():
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["a River; a city", "", None]})
    assert keyword_queries(topics, 5)["query"].tolist() == ["a river city", "", ""]
    assert topics["query"].tolist()[0] == "a River; a city"


def test_keyword_queries_are_repeatable_by_seed():
    topics = pd.DataFrame({"qid": ["q1"], "query": [" ".join(DOCNOS)]})
    first, second, other = (keyword_queries(topics, 5, seed=seed)["query"][0] for seed in (1, 1, 2))
    assert first == second != other


def test_clear_errors_of_keyword_queries(topics):
    with pytest.raises(ValueError, match="k must be at least 1"):
        keyword_queries(topics, 0)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        keyword_queries(topics, 3, seed=-1)
    with pytest.raises(ValueError, match="topics lacks query"):
        keyword_queries(topics.drop(columns="query"), 3)
