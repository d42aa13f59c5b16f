import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR

from pt_neural._frames import ranks, require_columns, tie_order, with_numeric_labels, with_scores

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
