import time
import tracemalloc

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR

from pt_neural._frames import (
    check_values,
    numbers_in,
    ranks,
    require_columns,
    tie_order,
    vectors_in,
    with_numeric_labels,
    with_scores,
)

rows = st.lists(
    st.tuples(st.sampled_from(["q1", "q2", "q10"]), st.sampled_from("abcdé"), st.sampled_from([-1.0, 0.0, 0.5, 2.0])),
    max_size=30,
)


@settings(max_examples=40)
@given(rows)
def test_ranks_against_sorting_each_query(rows):
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    found = ranks(frame["qid"], frame["score"].to_numpy(dtype=float), frame["docno"])
    for qid in set(frame["qid"]):
        mine = [i for i in range(len(rows)) if rows[i][0] == qid]
        best_first = sorted(mine, key=lambda i: (rows[i][2], rows[i][1], -i), reverse=True)
        assert [int(found[i]) for i in best_first] == list(range(len(mine)))


@settings(max_examples=40)
@given(rows)
def test_the_first_document_is_the_first_one_of_a_measure(rows):
    frame = pd.DataFrame(dict.fromkeys([("q1", *row[1:]) for row in rows]), columns=["qid", "docno", "score"])
    frame = frame.drop_duplicates("docno", ignore_index=True)
    qrels = pd.DataFrame({"query_id": ["q1"], "doc_id": ["a"], "relevance": [1]})
    frame = with_scores(frame, frame["score"].to_numpy(dtype=float))
    run = frame.rename(columns={"qid": "query_id", "docno": "doc_id"}).sample(frac=1, random_state=3)
    reciprocal = ir_measures.calc_aggregate([RR], qrels, run)[RR]
    expected = [1 / (1 + rank) for rank in frame.loc[frame["docno"] == "a", "rank"]]
    assert [reciprocal] == pytest.approx(expected or [0])


def test_ties_are_in_descending_order_of_docno():
    docnos = np.array(["d2", "d10", "é", "d2", "z"], dtype=object)
    assert docnos[np.argsort(tie_order(docnos), kind="stable")].tolist() == ["é", "z", "d2", "d2", "d10"]


def test_nan_ranks_last():
    frame = pd.DataFrame({"qid": ["q"] * 3, "docno": ["a", "b", "c"]})
    assert ranks(frame["qid"], np.array([np.nan, 1.0, 2.0]), frame["docno"]).tolist() == [2, 1, 0]


def test_scores_keep_rows_order_index_and_columns():
    frame = pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "rank": [0, 1], "x": [7, 8]}, index=[5, 3])
    scored = with_scores(frame, np.array([1, 2], dtype=np.float32))
    assert scored.index.tolist() == [5, 3]
    assert scored["rank"].tolist() == [1, 0]
    assert scored["x"].tolist() == [7, 8]
    assert "score" not in frame


def test_empty_frame_gets_typed_columns():
    scored = with_scores(pd.DataFrame(columns=["qid", "docno"]), np.zeros(0))
    assert scored["score"].dtype == np.float64
    assert scored["rank"].dtype == np.int64


def test_columns_and_labels_are_checked():
    with pytest.raises(TypeError, match=r"qrels must be a frame with qid, docno, label, not \[\]"):
        with_numeric_labels([], "qrels")
    with pytest.raises(ValueError, match="topics lacks query; it has qid"):
        require_columns(pd.DataFrame({"qid": []}), ["qid", "query"], "topics")
    qrels = pd.DataFrame({"qid": "q", "docno": "d", "label": ["1", 2.0, True]})
    assert with_numeric_labels(qrels, "qrels")["label"].tolist() == [1, 2, 1]
    with pytest.raises(ValueError, match="qrels has 2 rows whose label is not a number"):
        with_numeric_labels(qrels.assign(label=[None, "good", 1]), "qrels")
    with pytest.raises(TypeError, match=r"qrels: row 1 \(from 0\) of column 'label' holds \[1\]"):
        with_numeric_labels(qrels.assign(label=[1, [1], 1]), "qrels")


PLAIN = pd.DataFrame({"qid": ["q1", "q1", "q2"], "query": ["a", "a", None], "docno": [1, None, 3], "score": 1.0})


@pytest.mark.parametrize(
    "frame",
    [
        PLAIN,
        PLAIN[:0],
        pd.DataFrame(),
        PLAIN.astype({"qid": "category", "query": "string[pyarrow]", "docno": "Int64"}),
        PLAIN.assign(qid=[1, 2.5, "x"], query=[np.float32(1), np.nan, pd.NA], docno=pd.NaT),
        PLAIN.assign(title=[[], {}, b""]).set_index(["qid", "docno"], drop=False),
    ],
)
def test_strings_numbers_and_what_is_missing_are_fine(frame):
    check_values(frame, "the frame")


@pytest.mark.parametrize(
    ("frame", "kind", "message"),
    [
        (PLAIN.assign(qid=["q1", ["q"], "q2"]), TypeError, r"BM25: row 1 \(from 0\) of column 'qid' holds \['q'\]"),
        (PLAIN.assign(docno=["a", "b", {}]), TypeError, r"row 2 \(from 0\) of column 'docno' holds {} \(dict\)"),
        (PLAIN.assign(query=[{1}] * 3), TypeError, r"row 0 .* 'query' holds [{]1} .set., but it takes strings"),
        (PLAIN.assign(query=b"\xff"), TypeError, r"row 0 .* 'query' holds b'\\xff' \(bytes\)"),
        (PLAIN.assign(docno=pd.Timestamp("2020")), TypeError, r"'docno' holds Timestamp"),
        (PLAIN.assign(qid=["q1", pd.NA, "q2"]), ValueError, r"row 1 \(from 0\) of column 'qid' is missing"),
        (PLAIN.assign(qid=np.nan), ValueError, r"row 0 \(from 0\) of column 'qid' is missing"),
        (PLAIN.iloc[:, [0, 1, 2, 1]], ValueError, "column 'query' occurs twice"),
        (pd.concat({"a": PLAIN}, axis=1), ValueError, "columns have 2 levels"),
        ([{"qid": "q1"}], TypeError, "a frame is needed"),
    ],
)
def test_what_no_transformer_can_use_is_named(frame, kind, message):
    with pytest.raises(kind, match=message):
        check_values(frame, "BM25")


def test_numbers_of_a_column():
    values = [1, 2.5, None, pd.NA, np.float32(3), True]
    found = numbers_in(pd.DataFrame({"score": pd.Series(values, dtype=object)}), "score", "run")
    np.testing.assert_array_equal(found, [1, 2.5, np.nan, np.nan, 3, 1])
    for column in ([1, 2], pd.array([1, 2], dtype="Int8"), pd.Categorical([1, 2])):
        assert numbers_in(pd.DataFrame({"score": column}), "score", "run").tolist() == [1, 2]
    for values, kind in (([1, "high"], TypeError), ([1, 2j], TypeError), ([1, 10**400], ValueError)):
        with pytest.raises(kind, match=r"run: row 1 \(from 0\) of column 'score'"):
            numbers_in(pd.DataFrame({"score": pd.Series(values, dtype=object)}), "score", "run")


def test_vectors_of_a_column():
    good = np.ones(2, dtype=np.float32)
    matrix = vectors_in(pd.DataFrame({"doc_vec": [good, good]}), "doc_vec", "DSSM")
    assert (matrix.shape, matrix.dtype) == ((2, 2), np.float32)
    for bad in (np.ones(3), None, "text", good * np.nan, np.ones((1, 2)), np.array(["a", "b"]), 1.5):
        with pytest.raises(ValueError, match=r"DSSM: row 1 .* column 'doc_vec' .* array of 2 finite numbers"):
            vectors_in(pd.DataFrame({"doc_vec": pd.Series([good, bad], dtype=object)}), "doc_vec", "DSSM")


def test_the_check_is_fast():
    small = PLAIN.astype(object)
    check_values(small, "")
    start = time.process_time()  # a busy machine lets this process wait
    for _ in range(100):
        check_values(small, "")
    assert time.process_time() - start < 0.1  # a millisecond each; it takes a fifth to a third of that


def test_long_docnos_that_tie_take_no_table_of_letters():
    docnos = pd.Series([f"d{number}" for number in range(2000)] + ["x" * 10_000])
    tracemalloc.start()
    found = ranks(pd.Series(["q"] * len(docnos)), np.zeros(len(docnos)), docnos)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.argmin() == 2000
    assert peak < 5e6  # 80 MB with as many letters for each docno
