import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import RR, nDCG
from scipy.stats import ttest_rel

from pipelines.common import Split
from pipelines.comparison import Comparison
from pipelines.kept import KeptRuns

QIDS = [f"q{number}" for number in range(12)]


def ranker(places):
    """Retrieves ten documents a query, the relevant one at the given place; none for a place of None."""
    rows = []
    for qid, place in zip(QIDS, places, strict=True):
        if place is not None:
            documents = [f"x{i}" for i in range(9)]
            documents.insert(place - 1, f"d{qid}")
            rows += [(qid, "words", docno, 10.0 - rank, rank) for rank, docno in enumerate(documents)]
    return pt.Transformer.from_df(pd.DataFrame(rows, columns=["qid", "query", "docno", "score", "rank"]))


@pytest.fixture
def split():
    topics = pd.DataFrame({"qid": QIDS, "query": "words"})
    return Split(topics, pd.DataFrame({"qid": QIDS, "docno": [f"d{qid}" for qid in QIDS], "label": 1}))


def compared(systems, split, measures, folder, baselines=()):
    comparison = Comparison(split, measures, KeptRuns(folder, {}))
    comparison.add(systems)
    return comparison.table(list(systems), dict(baselines))


def test_marks_are_those_of_an_experiment_with_a_baseline(split, tmp_path):
    random = np.random.default_rng(5)
    places = {f"up to {most}": random.integers(1, most + 1, len(QIDS)).tolist() for most in (2, 4, 6, 10)}
    systems = {name: ranker(value) for name, value in places.items()}
    measures = [RR, nDCG @ 10]
    table = compared(systems, split, measures, tmp_path, {"up to 4": "*", "up to 10": "+"})
    for baseline, mark in (("up to 4", "*"), ("up to 10", "+")):
        expected = pt.Experiment(systems, split.topics, split.qrels, measures, baseline=baseline, correction="holm")
        for measure in map(str, measures):
            marked = table[measure].str.contains(mark, regex=False).tolist()
            assert marked == (expected[f"{measure} p-value corrected"] < 0.05).tolist()
            assert any(marked)
            assert not all(marked)


def test_seeds_give_mean_and_deviation_and_a_run_each(split, tmp_path):
    seeds = {13: ranker([1] * 12), 14: ranker([2] * 12)}
    table = compared({"one": ranker([4] * 12), "two": seeds}, split, [RR], tmp_path)
    assert table["RR"].tolist() == ["0.2500", "0.7500 ± 0.3536"]  # the root of 2 * 0.25 ** 2
    runs = sorted(path.name for path in tmp_path.glob("*.res.gz"))
    assert runs == ["one.res.gz", "two, seed 13.res.gz", "two, seed 14.res.gz"]


def test_one_seed_has_no_deviation(split, tmp_path):
    table = compared({"one": {13: ranker([2] * 12)}}, split, [RR], tmp_path, {"one": "*"})
    assert table["RR"].tolist() == ["0.5000"]
    assert (tmp_path / "one, seed 13.res.gz").exists()


def test_the_frame_has_means_deviations_and_p_values_as_numbers(split, tmp_path):
    systems = {"one": ranker([4] * 12), "two": {13: ranker([1] * 12), 14: ranker([2] * 11 + [1])}}
    comparison = Comparison(split, [RR], KeptRuns(tmp_path, {}))
    comparison.add(systems)
    frame = comparison.frame(["one", "two"], ["one"]).set_index("system")
    means = [1.0, (11 * 0.5 + 1) / 12]
    np.testing.assert_allclose(frame["RR"], [0.25, np.mean(means)])
    np.testing.assert_allclose(frame["RR, deviation"], [np.nan, np.std(means, ddof=1)])
    p_value = ttest_rel([0.75] * 11 + [1.0], [0.25] * 12).pvalue
    np.testing.assert_allclose(frame["RR, p against one"], [np.nan, p_value])


def test_kept_runs_are_not_run_again(split, tmp_path):
    class Counted(pt.Transformer):
        calls = 0

        def transform(self, frame):
            Counted.calls += 1
            return ranker([1, None] * 6).transform(frame)

    first = compared({"one": Counted(), "two": ranker([2] * 12)}, split, [RR], tmp_path)
    again = compared({"one": Counted(), "three": ranker([3] * 12)}, split, [RR], tmp_path)
    assert Counted.calls == 1
    assert first["RR"].tolist() == ["0.5000", "0.5000"]
    assert again["RR"].tolist() == ["0.5000", "0.3333"]
    values = KeptRuns(tmp_path, {}).values()
    assert sorted(values["name"].unique()) == ["one", "three", "two"]
    assert values.groupby("name")["qid"].nunique().tolist() == [12, 12, 12]


def test_runs_of_other_settings_are_made_anew(split, tmp_path):
    KeptRuns(tmp_path, {"depth": 10}).run("one", lambda: ranker([1] * 12).transform(split.topics))
    run = KeptRuns(tmp_path, {"depth": 20}).run("one", lambda: ranker([2] * 12).transform(split.topics))
    assert run["rank"][run["docno"] == "dq0"].tolist() == [1]
    assert len(list(tmp_path.glob("*.res.gz"))) == 1


def test_an_interrupted_run_leaves_no_file(split, tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    runs = KeptRuns(tmp_path, {})
    with pytest.raises(KeyboardInterrupt):
        runs.run("one", interrupted)
    assert not list(tmp_path.glob("*.res.gz"))


def test_names_and_scores_come_back_as_they_were(tmp_path):
    frame = pd.DataFrame(
        {
            "qid": ["01", "01", "nan"],
            "docno": ["a b", "null", 'quoted "c"'],
            "score": [1 / 3, -1e-17, 2.0],
            "rank": [0, 1, 0],
        }
    )
    runs = KeptRuns(tmp_path, {})
    made = runs.run("a/b: c", lambda: frame)
    pd.testing.assert_frame_equal(
        made[["qid", "docno", "score"]].astype({"qid": object, "docno": object}),
        frame[["qid", "docno", "score"]].astype({"qid": object, "docno": object}),
    )


def test_significance_is_of_the_mean_over_seeds(split, tmp_path):
    always, once = ranker([1] * 12), ranker([None] * 11 + [1])
    systems = {"half": ranker([2] * 12), "one": always, "two": {13: always, 14: once}}
    table = compared(systems, split, [RR], tmp_path, {"half": "*"})
    assert table["RR"].tolist() == ["0.5000", "1.0000*", "0.5417 ± 0.6482"]  # the means differ in one query


def test_queries_without_results_count_nothing(split, tmp_path):
    table = compared({"one": ranker([1] * 9 + [None] * 3)}, split, [RR], tmp_path)
    assert table["RR"].tolist() == ["0.7500"]
