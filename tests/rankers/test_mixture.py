import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pt_neural as pn

TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["one", "two"]})


def results(*rows: tuple[str, str, float], **columns: list) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    frame["query"] = frame["qid"].map({"q1": "one", "q2": "two"})
    return pt.model.add_ranks(frame.assign(**columns))


def fixed(frame: pd.DataFrame) -> pt.Transformer:
    """A retriever that returns its frame for the queries asked."""
    return pt.apply.generic(lambda topics: frame[frame["qid"].isin(topics["qid"])].reset_index(drop=True))


def rescored(scores: dict[str, float]) -> pt.Transformer:
    return pt.apply.doc_score(lambda row: scores[row["docno"]])


def scores_of(frame: pd.DataFrame) -> dict[tuple[str, str], float]:
    return {(row.qid, row.docno): round(row.score, 9) for row in frame.itertuples()}


LEXICAL = results(("q1", "a", 10.0), ("q1", "b", 8.0), ("q2", "c", 5.0))
DENSE = results(("q1", "b", -0.1), ("q1", "d", -0.2), ("q2", "c", 0.3))


def test_equation_9_on_incoming_scores():
    mixed = pn.Mixture(rescored({"a": 0.5, "b": 1.0, "c": 2.0}), alpha=0.25).transform(LEXICAL)
    assert scores_of(mixed) == {("q1", "a"): 7.625, ("q1", "b"): 6.25, ("q2", "c"): 4.25}
    assert mixed["docno"].tolist() == ["a", "b", "c"]
    assert mixed["rank"].tolist() == [0, 1, 0]


def test_union_gives_a_missing_document_that_sides_minimum():
    mixed = pn.Mixture(fixed(DENSE), fixed(LEXICAL), alpha=0.5).transform(TOPICS)
    assert scores_of(mixed) == {
        ("q1", "a"): 0.5 * -0.2 + 0.5 * 10,
        ("q1", "b"): 0.5 * -0.1 + 0.5 * 8,
        ("q1", "d"): 0.5 * -0.2 + 0.5 * 8,
        ("q2", "c"): 0.5 * 0.3 + 0.5 * 5,
    }
    assert mixed["docno"].tolist() == ["a", "b", "d", "c"]
    assert mixed["query"].tolist() == ["one", "one", "one", "two"]


def test_two_retrievers_return_so_many_documents_a_query():
    a, b = fixed(DENSE), fixed(LEXICAL)
    every, two = pn.Mixture(a, b, num_results=None).transform(TOPICS), pn.Mixture(a, b, num_results=2).transform(TOPICS)
    assert every["docno"].tolist() == ["a", "b", "d", "c"]
    assert two["docno"].tolist() == ["a", "b", "c"]
    assert two["rank"].tolist() == [0, 1, 0]
    rescoring = rescored({"a": 1, "b": 2, "c": 3})
    assert len(pn.Mixture(rescoring, rescoring, num_results=1).transform(LEXICAL)) == len(LEXICAL)
    with pytest.raises(ValueError, match="num_results"):
        pn.Mixture(a, b, num_results=0)


def test_missing_zero_is_pyterriers_sum():
    a, b = fixed(DENSE), fixed(LEXICAL)
    ours = pn.Mixture(a, b, alpha=0.4, missing="zero").transform(TOPICS)
    theirs = (0.4 * a + 0.6 * b).transform(TOPICS)
    assert scores_of(ours) == scores_of(theirs)


def test_negative_scores_the_unseen_document_does_not_win():
    log_likelihood = results(("q1", "a", -5.0), ("q1", "b", -6.0))
    dense = results(("q1", "a", 0.9), ("q1", "z", 0.1))
    mixed = pn.Mixture(fixed(dense), fixed(log_likelihood), alpha=0.5).transform(TOPICS)
    assert mixed["docno"].iloc[0] == "a"
    theirs = (0.5 * fixed(dense) + 0.5 * fixed(log_likelihood)).transform(TOPICS)
    assert theirs.sort_values("score", ascending=False)["docno"].iloc[0] == "z"  # what the minimum guards against


def test_a_side_without_results_counts_zero():
    nothing = LEXICAL.iloc[:0]
    mixed = pn.Mixture(fixed(nothing), fixed(LEXICAL), alpha=0.5).transform(TOPICS)
    assert scores_of(mixed) == {("q1", "a"): 5.0, ("q1", "b"): 4.0, ("q2", "c"): 2.5}
    assert mixed["query"].notna().all()


@pytest.mark.parametrize(
    ("normalise", "expected"),
    [
        ("minmax", {"a": 0.5 * 0 + 0.5 * 1, "b": 0.5 * 1 + 0.5 * 0, "d": 0.0}),
        ("zscore", {"a": 0.5 * -1 + 0.5 * 1, "b": 0.5 * 1 + 0.5 * -1, "d": -1.0}),
    ],
)
def test_normalisation_is_per_query_and_side(normalise, expected):
    mixed = pn.Mixture(fixed(DENSE), fixed(LEXICAL), alpha=0.5, normalise=normalise).transform(TOPICS)
    first = mixed[mixed["qid"] == "q1"]
    assert dict(zip(first["docno"], first["score"], strict=True)) == pytest.approx(expected)
    assert mixed[mixed["qid"] == "q2"]["score"].tolist() == [0.0]  # one document has no spread


def test_columns_of_both_sides_survive():
    left = results(("q1", "a", 1.0), text=["from the left"])
    right = results(("q1", "a", 1.0), ("q1", "b", 0.5), title=["A", "B"], text=["right a", "right b"])
    mixed = pn.Mixture(fixed(left), fixed(right)).transform(TOPICS).set_index("docno")
    assert mixed.loc["a", ["text", "title"]].tolist() == ["from the left", "A"]
    assert mixed.loc["b", ["text", "title"]].tolist() == ["right b", "B"]


def test_duplicate_rows_are_scored_each():
    twice = pd.concat([LEXICAL, LEXICAL.iloc[:1]], ignore_index=True)
    mixed = pn.Mixture(rescored({"a": 1.0, "b": 1.0, "c": 1.0}), alpha=0.5).transform(twice)
    assert len(mixed) == 4
    assert mixed["score"].iloc[0] == mixed["score"].iloc[3]


def test_empty_frames_keep_their_columns():
    mixture = pn.Mixture(rescored({}), alpha=0.5)
    out = mixture.transform(LEXICAL.iloc[:0])
    assert len(out) == 0
    assert {"qid", "docno", "query", "score", "rank"} <= set(out.columns)


def test_missing_score_column_is_named():
    with pytest.raises(KeyError, match="score"):
        pn.Mixture(rescored({})).transform(pd.DataFrame({"qid": ["q"], "docno": ["d"], "query": ["x"]}))


@pytest.mark.parametrize("settings", [{"alpha": 1.5}, {"alpha": -0.1}, {"normalise": "max"}, {"missing": "nan"}])
def test_wrong_settings_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        pn.Mixture(fixed(LEXICAL), **settings)


def test_incoming_rows_keep_their_order_when_a_drops_and_shuffles():
    candidates = results(("q1", "d", 4.0), ("q1", "b", 3.0), ("q1", "c", 2.0), ("q1", "a", 1.0))
    shuffled = pt.apply.generic(lambda frame: frame.iloc[[3, 0, 1]].assign(score=[5.0, 6.0, 7.0]))
    mixed = pn.Mixture(shuffled, alpha=0.5).transform(candidates)
    assert mixed["docno"].tolist() == ["d", "b", "c", "a"]
    assert mixed["score"].tolist() == [5.0, 5.0, 3.5, 3.0]  # c is missing on the left, whose lowest score is 5


def test_incoming_rows_keep_their_order_where_some_stand_twice():
    candidates = results(("q1", "a", 1.0), ("q1", "b", 3.0), ("q2", "z", 9.0), ("q1", "c", 2.0), ("q1", "a", 4.0))
    without_c = pt.apply.generic(lambda frame: frame[frame["docno"] != "c"])
    mixed = pn.Mixture(without_c, alpha=0.5).transform(candidates)
    assert mixed[["qid", "docno"]].to_numpy().tolist() == [["q1", "b"], ["q2", "z"], ["q1", "c"], ["q1", "a"]]
    assert mixed["score"].tolist()[-1] == 4.0  # the best row of a, which stands last


@pytest.mark.parametrize("alpha", [2, float("nan"), None, "x"])
def test_alpha_is_checked_when_it_is_set(alpha):
    mixture = pn.Mixture(fixed(LEXICAL))
    with pytest.raises(ValueError, match="alpha must be a number between 0 and 1"):
        mixture.alpha = alpha


def test_sides_must_be_rankers_with_finite_scores():
    with pytest.raises(TypeError, match=r"did you mean alpha=0\.3"):
        pn.Mixture(fixed(LEXICAL), 0.3)
    with pytest.raises(TypeError, match="a mixture needs rankers"):
        pn.Mixture(LEXICAL)
    with pytest.raises(ValueError, match="infinite"):
        pn.Mixture(rescored({"a": np.inf, "b": 1.0, "c": 1.0})).transform(LEXICAL)


def test_grid_search_tunes_alpha():
    relevant = pd.DataFrame({"qid": ["q1"], "docno": ["d"], "label": [1]})
    mixture = pn.Mixture(fixed(results(("q1", "d", 1.0))), fixed(LEXICAL), alpha=0.0, normalise="minmax")
    pt.GridSearch(mixture, {mixture: {"alpha": [0.0, 0.5, 1.0]}}, TOPICS, relevant, "map", verbose=False)
    assert mixture.alpha == 1.0


@given(st.floats(0, 1), st.lists(st.floats(-10, 10), min_size=3, max_size=3))
def test_mixing_equal_rows_is_the_formula(alpha, given_scores):
    scores = dict(zip("abc", given_scores, strict=True))
    mixed = pn.Mixture(rescored(scores), alpha=alpha).transform(LEXICAL)
    expected = [alpha * scores[d] + (1 - alpha) * s for d, s in zip("abc", LEXICAL["score"], strict=True)]
    np.testing.assert_allclose(mixed["score"], expected)


def test_repr_is_short():
    assert repr(pn.Mixture(pt.RankCutoff(3), alpha=0.25)).endswith("alpha=0.25)")


class TestContract(pt.testing.transformer_test_class(lambda: pn.Mixture(rescored({}), alpha=0.5))):
    pass


def test_scores_that_cannot_be_mixed_are_named():
    identity = pt.Transformer.identity()
    for score, kind, message in (
        ("high", TypeError, "row 1 .* 'score' holds 'high'"),
        (np.inf, ValueError, "row 1 .* 'score' is infinite"),
        ([1.0], TypeError, r"row 1 .* 'score' holds \[1.0\]"),
    ):
        frame = LEXICAL.assign(score=pd.Series([1.0, score, 2.0], dtype=object))
        with pytest.raises(kind, match=message):
            pn.Mixture(identity).transform(frame)
    with pytest.raises(ValueError, match=r"row 2 \(from 0\) of column 'qid' is missing"):
        pn.Mixture(identity).transform(LEXICAL.assign(qid=["q1", "q1", pd.NA]))
    with pytest.raises(ValueError, match=r"the result of .* lacks docno, score"):
        pn.Mixture(fixed(TOPICS), fixed(LEXICAL)).transform(TOPICS)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_documents_without_a_name_are_mixed_row_by_row(missing):
    frame = LEXICAL.assign(docno=pd.Series(["a", missing, "c"], dtype=object), score=[3, pd.NA, 1])
    mixed = pn.Mixture(pt.Transformer.identity(), alpha=0.5).transform(frame)
    assert mixed["score"].tolist() == [3, 3, 1]  # what is missing counts as the query's lowest
