import numpy as np
import pandas as pd
import pytest

from pt_neural.experiment import by_length, by_rarity, count_terms

QUERIES = ["river", "city", "river city", "Old-city", "an old city", "a very old city on a river", "..."]
QIDS = [f"q{number}" for number in range(len(QUERIES))]


@pytest.fixture
def topics():
    """In another order than the values."""
    return pd.DataFrame({"qid": QIDS, "query": QUERIES}).iloc[::-1]


@pytest.fixture
def values():
    frame = pd.DataFrame({"one": np.arange(7) / 10, "two": 0.5}, index=pd.Index(QIDS, name="qid"))
    return frame.rename_axis(columns="nDCG@10")


def classes(frame):
    return dict(zip(frame.iloc[:, 0], frame["queries"], strict=True))


def test_lengths_and_means_by_hand(values, topics):
    frame = by_length(values, topics, min_queries=1).to_frame()
    assert frame.columns.tolist() == ["terms of the query", "queries", "one", "two"]
    assert classes(frame) == {"0": 1, "1": 2, "2": 2, "3": 1, "4+": 1}
    np.testing.assert_allclose(frame["one"], [0.6, (0.0 + 0.1) / 2, (0.2 + 0.3) / 2, 0.4, 0.5])
    np.testing.assert_allclose(frame["two"], 0.5)


def test_small_classes_join_their_neighbours(values, topics):
    assert classes(by_length(values, topics, min_queries=2).to_frame()) == {"0–1": 3, "2": 2, "3+": 2}
    assert classes(by_length(values, topics, min_queries=3).to_frame()) == {"0–1": 3, "2+": 4}
    assert classes(by_length(values, topics, min_queries=20).to_frame()) == {"0+": 7}
    assert classes(by_length(values, topics, longest=2, min_queries=1).to_frame()) == {"0": 1, "1": 2, "2+": 4}


def test_rarest_term_by_hand(values, topics):
    counts = {"river": 9, "city": 4, "old": 2, "an": 1}
    frame = by_rarity(values, topics, counts, classes=[1, 2, 5]).to_frame()
    # The rarest terms: river 9; city 4; city 4; old 2; an 1; a, unseen; and no term at all.
    assert classes(frame) == {"0": 2, "1": 1, "2–4": 3, "5+": 1}
    assert frame.columns[0] == "occurrences of the rarest query term"
    np.testing.assert_allclose(frame["one"], [(0.5 + 0.6) / 2, 0.4, (0.1 + 0.2 + 0.3) / 3, 0.0])


def test_texts_are_counted(values, topics):
    texts = ["River, river, city", "the old city"]
    assert dict(count_terms(texts)) == {"river": 2, "city": 2, "the": 1, "old": 1}
    frames = [by_rarity(values, topics, each, classes=[1, 2]).to_frame() for each in (texts, count_terms(texts))]
    pd.testing.assert_frame_equal(*frames)
    assert classes(frames[0]) == {"0": 3, "1": 1, "2+": 3}


def test_rarity_classes_are_about_equal():
    qids = [f"q{number}" for number in range(100)]
    topics = pd.DataFrame({"qid": qids, "query": [f"w{number}" for number in range(100)]})
    values = pd.DataFrame({"one": 0.0}, index=pd.Index(qids, name="qid"))
    counts = {f"w{number}": number for number in range(100)}  # w0 is never seen
    sizes = classes(by_rarity(values, topics, counts).to_frame())
    assert len(sizes) == 6
    assert sizes.pop("0") == 1
    assert all(18 <= size <= 22 for size in sizes.values())
    assert classes(by_rarity(values, topics, dict.fromkeys(counts, 3)).to_frame()) == {"3+": 100}
    assert classes(by_rarity(values, topics, {}).to_frame()) == {"0": 100}


def test_plot_draws_means_intervals_and_sizes(values, topics):
    axes = by_length(values, topics, min_queries=2).plot()
    lines, _, (bars,) = axes.containers[0]
    np.testing.assert_allclose(lines.get_ydata(), [(0.0 + 0.1 + 0.6) / 3, 0.25, 0.45])
    assert np.isnan(bars.get_segments()).all() or not any(map(len, bars.get_segments()))  # too few queries
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0–1\n(3)", "2\n(2)", "3+\n(2)"]
    assert axes.get_ylabel() == "nDCG@10"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]


def test_intervals_by_hand():
    qids = [f"q{number}" for number in range(16)]
    topics = pd.DataFrame({"qid": qids, "query": ["a river"] * 12 + ["river"] * 4})
    values = pd.DataFrame({"one": [0.2, 0.4] * 8}, index=pd.Index(qids, name="qid"))
    _, _, (bars,) = by_length(values, topics, min_queries=1).plot().containers[0]
    (segment,) = [segment for segment in bars.get_segments() if len(segment) and not np.isnan(segment).any()]
    half = 1.96 * np.sqrt(12 * 0.1**2 / 11) / np.sqrt(12)
    np.testing.assert_allclose(segment[:, 1], [0.3 - half, 0.3 + half])
    assert segment[0, 0] == 1  # the second class


def test_intervals_of_many_systems_are_left_out_unless_asked_for(values, topics):
    many = pd.DataFrame({f"system {number}": values["one"] for number in range(12)})
    breakdown = by_length(many, topics, min_queries=7)
    assert not any(container.has_yerr for container in breakdown.plot().containers)
    assert all(container.has_yerr for container in breakdown.plot(interval=True).containers)
    lines = [container.lines[0] for container in breakdown.plot().containers]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12


def test_clear_errors(values, topics):
    with pytest.raises(ValueError, match="topics lack query 'q6' \\(1 queries"):
        by_length(values, topics[topics["qid"] != "q6"])
    with pytest.raises(ValueError, match="counts in ascending order from 1"):
        by_rarity(values, topics, {}, classes=[2, 5])
    with pytest.raises(ValueError, match="topics lacks query; it has qid"):
        by_length(values, topics[["qid"]])
    with pytest.raises(ValueError, match="query 'q0' occurs twice in values"):
        by_length(pd.concat([values, values]), topics)
    with pytest.raises(ValueError, match="values has no query"):
        by_rarity(values.iloc[:0], topics, {})
    with pytest.raises(TypeError, match="iterable of strings"):
        by_rarity(values, topics, "one text")
