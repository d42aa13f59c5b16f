"""Frames that are cut, transformed part by part and put together equal frames transformed whole."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt_neural.cluster.parts import cut, put_together, transform_part

STAGES = {
    "rows kept": [pt.apply.generic(lambda frame: frame.assign(score=frame["docno"].str.len() * 1.0))],
    "rows dropped": [pt.apply.generic(lambda frame: frame[frame["docno"] != "d1"])],
    "rows sorted by query": [pt.apply.generic(lambda frame: frame.sort_values(["qid", "docno"], kind="stable"))],
    "new rows": [pt.apply.generic(lambda frame: retrieve(frame, by="order"))],
    "new rows, sorted by query": [pt.apply.generic(lambda frame: retrieve(frame, by="qid"))],
    "new rows, some dropped": [
        pt.apply.generic(lambda frame: retrieve(frame, by="order")),
        pt.apply.generic(lambda frame: frame[frame["score"] > 1]),
    ],
    "nothing left": [pt.apply.generic(lambda frame: frame[frame["docno"] == "none"])],
}


def retrieve(frame, *, by):
    """Three results for each query."""
    queries = frame["qid"].drop_duplicates()
    if by == "qid":
        queries = queries.sort_values()
    rows = [{"qid": qid, "docno": f"{qid}-{i}", "score": 3.0 - i} for qid in queries for i in range(3)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def whole(stages, frame):
    for stage in stages:
        frame = stage.transform(frame)
    return frame


def by_parts(stages, frame, count):
    parts = cut(frame, count)
    results = [transform_part(stages, frame.take(part).reset_index(drop=True)) for part in parts]
    return put_together(frame, parts, results)


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("order", ["together", "queries shuffled", "rows shuffled"])
@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_parts_put_together_equal_the_whole(name, order, count):
    frame = pd.DataFrame({"qid": [f"q{i}" for i in range(11) for _ in range(i % 4)]})
    frame["docno"] = [f"d{i}" for i in range(len(frame))]
    if order == "rows shuffled":
        frame = frame.sample(frac=1, random_state=2)
    if order == "queries shuffled":
        names = frame["qid"].drop_duplicates().sample(frac=1, random_state=5)
        frame = pd.concat([frame[frame["qid"] == name] for name in names])
    expected = whole(STAGES[name], frame)
    pd.testing.assert_frame_equal(by_parts(STAGES[name], frame, count), expected, check_exact=True)


def test_queries_that_are_asked_twice():
    frame = pd.DataFrame({"qid": ["b", "a", "c", "a", "b"]})
    rows = pt.apply.generic(lambda queries: pd.concat([queries] * 2).sort_index(kind="stable").reset_index(drop=True))
    for count in (1, 2, 3, 9):
        expected = rows(frame)
        pd.testing.assert_frame_equal(by_parts([rows], frame, count), expected, check_exact=True)


@given(st.lists(st.sampled_from("abcdef"), max_size=30), st.integers(1, 8))
def test_a_query_is_never_cut_apart(qids, count):
    frame = pd.DataFrame({"qid": qids, "docno": "d"})
    parts = cut(frame, count)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(frame)))
    assert len(parts) <= max(count, 1)
    of_part = [set(frame["qid"].iloc[part]) for part in parts]
    assert sum(map(len, of_part)) == len(set(qids))


def test_parts_are_of_about_equal_size():
    frame = pd.DataFrame({"qid": np.repeat(np.arange(1000), 10), "docno": "d"})
    assert [len(part) for part in cut(frame, 4)] == [2500] * 4
    shuffled = frame.sample(frac=1, random_state=1)
    assert [len(part) for part in cut(shuffled, 4)] == [2500] * 4


def test_frames_without_queries_are_one_part():
    assert [part.tolist() for part in cut(pd.DataFrame({"text": ["a", "b"]}), 3)] == [[0, 1]]
    assert [part.tolist() for part in cut(pd.DataFrame({"qid": []}), 3)] == [[]]


def test_labels_and_attributes_come_back():
    frame = pd.DataFrame({"qid": ["a", "a", "b"], "docno": ["1", "2", "3"]}, index=["x", "y", "z"])
    frame.attrs["source"] = "here"
    result = by_parts(STAGES["rows kept"], frame, 2)
    assert result.index.tolist() == ["x", "y", "z"]
    assert result.attrs == {"source": "here"}
