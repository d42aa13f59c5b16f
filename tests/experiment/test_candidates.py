from collections import Counter
from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, R, Success, nDCG

from pt_neural.experiment import candidate_recall, keyword_queries, with_random_documents

DOCNOS = [f"d{number}" for number in range(50)]


@pytest.fixture
def qrels():
    """The second query's grade 2 is not found, the third query finds nothing, the fourth has no relevant document."""
    labels = {"q1": {"d1": 1, "d3": 2, "d9": 0}, "q2": {"d2": 1, "d8": 2}, "q3": {"d1": 1}, "q4": {"d1": 0}}
    rows = [(qid, docno, label) for qid, each in labels.items() for docno, label in each.items()]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


@pytest.fixture
def run():
    """Rows in no particular order; ranks agree with scores."""
    rows = [("q1", "d3", 1.0, 3), ("q1", "d9", 4.0, 0), ("q1", "d1", 3.0, 1), ("q1", "d0", 2.0, 2)]
    rows += [("q2", "d2", 2.0, 0), ("q2", "d7", 1.0, 1), ("q4", "d1", 1.0, 0), ("q9", "d1", 1.0, 0)]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])


def test_recall_by_hand(run, qrels):
    found = candidate_recall(run, qrels, [1, 2, 4])
    frame = found.to_frame()
    assert frame.columns.tolist() == ["depth", "recall", "success", "ceiling"]
    assert frame["depth"].tolist() == [1, 2, 4]
    # Shares of the relevant documents of q1 and q2; q3 and q4 have 0.
    np.testing.assert_allclose(frame["recall"], [(0 + 1 / 2) / 4, (1 / 2 + 1 / 2) / 4, (1 + 1 / 2) / 4])
    np.testing.assert_allclose(frame["success"], [1 / 4, 2 / 4, 2 / 4])
    best = 2 + 1 / np.log2(3)  # of a grade 2 before a grade 1
    np.testing.assert_allclose(frame["ceiling"], [(1 / best) / 4, (2 / best) / 4, (1 + 1 / best) / 4])
    assert found.queries == 4
    assert repr(found) == f"CandidateRecall(recall=0.375, ceiling of nDCG@10={frame['ceiling'][2]:.3f} " + (
        "at 4 candidates, 4 queries)"
    )


def test_as_an_experiment_measures_them(run, qrels):
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3", "q4"], "query": "words"})
    labels = run.merge(qrels, how="left").fillna({"label": 0})["label"]
    ideal = pt.model.add_ranks(run.assign(score=labels.to_numpy(dtype=float)))
    systems = [pt.Transformer.from_df(frame) for frame in (run, ideal)]
    measures = [R @ 2, Success @ 2, AP]
    first, best = pt.Experiment(systems, topics, qrels, measures)[["R@2", "Success@2", "AP"]].to_numpy()
    frame = candidate_recall(run, qrels, [2, 1000], AP).to_frame()
    np.testing.assert_allclose(frame[["recall", "success"]].iloc[0], first[:2])
    assert frame["ceiling"][1] == pytest.approx(best[2])


def dcg(labels):
    return labels[0] + labels[1] / np.log2(3)


def average_precision(labels):
    found = np.flatnonzero(np.array(labels) > 0)
    return sum((number + 1) / (place + 1) for number, place in enumerate(found))


def test_the_ceiling_is_the_best_of_all_orders():
    labels, missed = [0, 2, 0, 1, 1], [2, 0]  # of the candidates, and of other documents
    names = [f"d{number}" for number in range(7)]
    qrels = pd.DataFrame({"qid": "q1", "docno": names, "label": labels + missed})
    run = pd.DataFrame({"qid": "q1", "docno": names[:5], "score": [5.0, 4.0, 3.0, 2.0, 1.0]})
    orders = list(permutations(labels))
    expected = {nDCG @ 2: max(map(dcg, orders)) / dcg([2, 2]), AP: max(map(average_precision, orders)) / 4}
    for measure, best in expected.items():
        assert candidate_recall(run, qrels, 5, measure).to_frame()["ceiling"][0] == pytest.approx(best)


def test_the_order_is_that_of_ranks_or_else_scores(run, qrels):
    frame = candidate_recall(run, qrels).to_frame()
    spam = qrels.assign(label=qrels["label"].where(qrels["label"] > 0, -2))
    for same, judged in (
        (run.drop(columns="rank"), qrels),
        (run.assign(rank=run["rank"] + 1, score=0), qrels),
        (pd.concat([run, run]), pd.concat([qrels, qrels])),
        (run, spam),
    ):
        pd.testing.assert_frame_equal(candidate_recall(same, judged).to_frame(), frame)
    np.testing.assert_allclose(candidate_recall(run, qrels, 4, rel=2).to_frame()["recall"], 1 / 4)


def test_default_depths(qrels):
    run = pd.DataFrame({"qid": "q1", "docno": [f"d{number}" for number in range(110)], "rank": range(110)})
    assert candidate_recall(run, qrels).to_frame()["depth"].tolist() == [1, 2, 5, 10, 20, 50, 110]
    assert candidate_recall(run.head(1), qrels).to_frame()["depth"].tolist() == [1]
    assert candidate_recall(run, qrels, [20, 5, 20]).to_frame()["depth"].tolist() == [5, 20]


def test_picture_of_recall_names_the_curves(run, qrels):
    axes = candidate_recall(run, qrels, [1, 2, 4], "AP").plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "queries with a relevant candidate",
        "AP of the best re-ranking",
        "recall",
    ]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    np.testing.assert_allclose(axes.lines[2].get_ydata(), [1 / 8, 1 / 4, 3 / 8])
    assert axes.get_ylabel() == "mean over 4 queries"
    crowded = candidate_recall(run, qrels, range(1, 41)).plot()
    assert [label.get_text() for label in crowded.get_xticklabels()][-1] == "40"
    assert len(crowded.get_xticklabels()) < 15
    assert len(candidate_recall(run, qrels, 4).plot().get_xticklabels()) == 1
    plt.close("all")


def test_clear_errors_of_recall(run, qrels):
    with pytest.raises(ValueError, match="run lacks score; it has qid, docno"):
        candidate_recall(run[["qid", "docno"]], qrels)
    with pytest.raises(TypeError, match="run must be a frame"):
        candidate_recall("bm25.res", qrels)
    with pytest.raises(ValueError, match="the run is empty"):
        candidate_recall(run.head(0), qrels)
    with pytest.raises(ValueError, match="no query of the run has a judgement"):
        candidate_recall(run[run["qid"] == "q9"], qrels)
    with pytest.raises(ValueError, match="qrels lacks label"):
        candidate_recall(run, qrels.drop(columns="label"))
    with pytest.raises(ValueError, match="each number of depths must be at least 1"):
        candidate_recall(run, qrels, [0, 5])
    with pytest.raises(ValueError, match="'nonsense' is not a measure"):
        candidate_recall(run, qrels, measure="nonsense")


@pytest.fixture
def topics():
    return pd.DataFrame({"qid": ["q2", "q1", "q3"], "query": ["a river", "a city", "nothing"], "split": "test"})


@pytest.fixture
def links():
    rows = [("q1", "d3", 1), ("q1", "d40", 2), ("q1", "d5", 0), ("q2", "d7", 1), ("q2", "elsewhere", 1)]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def docnos_of(frame, qid):
    return frame.loc[frame["qid"] == qid, "docno"].tolist()


def test_relevant_documents_and_as_many_others_as_asked_for(topics, links):
    frame = with_random_documents(topics, links, DOCNOS, 10)
    assert frame.columns.tolist() == ["qid", "query", "split", "docno"]
    assert frame["qid"].drop_duplicates().tolist() == ["q2", "q1", "q3"]
    assert frame.index.tolist() == list(range(12 + 11 + 10))
    assert not frame.duplicated(["qid", "docno"]).any()
    assert set(frame["docno"]) <= set(DOCNOS)
    assert {"d3", "d40"} < set(docnos_of(frame, "q1"))
    assert "d7" in docnos_of(frame, "q2")
    assert frame.groupby("qid")["query"].unique().str[0].to_dict() == topics.set_index("qid")["query"].to_dict()
    for qid in topics["qid"]:  # so that the order does not tell which are relevant
        numbers = [int(docno[1:]) for docno in docnos_of(frame, qid)]
        assert numbers == sorted(numbers)
    none = with_random_documents(topics, links, DOCNOS, 0)
    assert list(zip(none["qid"], none["docno"], strict=True)) == [("q2", "d7"), ("q1", "d3"), ("q1", "d40")]


def test_excluded_documents_are_not_candidates_even_if_relevant(topics, links):
    rows = [("q1", "d3"), ("q1", "d9"), ("q2", "d0"), ("q2", "unknown")]
    exclude = pd.DataFrame(rows, columns=["qid", "docno"])
    frame = with_random_documents(topics, links, DOCNOS, 1000, exclude=exclude)
    assert set(docnos_of(frame, "q1")) == set(DOCNOS) - {"d3", "d9"}
    assert set(docnos_of(frame, "q2")) == set(DOCNOS) - {"d0"}
    assert set(docnos_of(frame, "q3")) == set(DOCNOS)
    few = with_random_documents(topics, links, DOCNOS, 46, exclude=exclude)
    assert few.groupby("qid").size().to_dict() == {"q1": 46 + 1, "q2": 46 + 1, "q3": 46}


def test_repeatable_by_seed(topics, links):
    first, second, other = (with_random_documents(topics, links, DOCNOS, 10, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, second)
    assert docnos_of(first, "q3") != docnos_of(other, "q3")
    long = pd.DataFrame({"qid": ["q1"], "query": [" ".join(DOCNOS)]})
    first, second, other = (keyword_queries(long, 5, seed=seed)["query"][0] for seed in (1, 1, 2))
    assert first == second != other


def test_random_documents_are_equally_likely():
    """500 draws of 5 out of the 9 documents that are not relevant: each about 278 times, with a deviation of 11."""
    topics = pd.DataFrame({"qid": [f"q{number}" for number in range(500)], "query": "x"})
    qrels = topics[["qid"]].assign(docno="d4", label=1)
    drawn = Counter(with_random_documents(topics, qrels, DOCNOS[:10], 5)["docno"])
    assert drawn.pop("d4") == 500
    assert len(drawn) == 9
    assert all(abs(count - 500 * 5 / 9) < 5 * 11.1 for count in drawn.values())


def test_clear_errors_of_random_documents(topics, links):
    with pytest.raises(ValueError, match="'q1' occurs twice"):
        with_random_documents(pd.concat([topics, topics[1:2]]), links, DOCNOS)
    with pytest.raises(ValueError, match="docnos is empty"):
        with_random_documents(topics, links, [])
    with pytest.raises(ValueError, match="qrels lacks label"):
        with_random_documents(topics, links.drop(columns="label"), DOCNOS)
    with pytest.raises(ValueError, match="exclude lacks docno"):
        with_random_documents(topics, links, DOCNOS, exclude=topics)
    with pytest.raises(ValueError, match="num_random"):
        with_random_documents(topics, links, DOCNOS, -1)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        with_random_documents(topics, links, DOCNOS, seed=-1)
    for wrong in ("d1", iter([{"docno": "d1", "text": "a river"}])):
        with pytest.raises(TypeError, match=r"docnos must be the docnos .* documents\.docnos"):
            with_random_documents(topics, links, wrong)
    with pytest.raises(TypeError, match="qrels must be a frame with qid, docno, label, not None"):
        with_random_documents(topics, None, DOCNOS)
    assert with_random_documents(topics[:0], links, DOCNOS).empty


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


def test_clear_errors_of_keyword_queries(topics):
    with pytest.raises(ValueError, match="k must be at least 1"):
        keyword_queries(topics, 0)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        keyword_queries(topics, 3, seed=-1)
    with pytest.raises(ValueError, match="topics lacks query"):
        keyword_queries(topics.drop(columns="query"), 3)
