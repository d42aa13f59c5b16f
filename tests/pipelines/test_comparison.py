import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import RR, nDCG
from scipy.stats import ttest_rel

from pipelines.common import Split
from pipelines.comparison import compare, different

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


def test_marks_are_those_of_an_experiment_with_a_baseline(split, tmp_path):
    random = np.random.default_rng(5)
    places = {f"up to {most}": random.integers(1, most + 1, len(QIDS)).tolist() for most in (2, 4, 6, 10)}
    systems = {name: ranker(value) for name, value in places.items()}
    measures = [RR, nDCG @ 10]
    table = compare(systems, split, measures, baselines={"up to 4": "*", "up to 10": "+"}, runs=tmp_path)
    for baseline, mark in (("up to 4", "*"), ("up to 10", "+")):
        expected = pt.Experiment(systems, split.topics, split.qrels, measures, baseline=baseline, correction="holm")
        for measure in map(str, measures):
            marked = table[measure].str.contains(mark, regex=False).tolist()
            assert marked == (expected[f"{measure} p-value corrected"] < 0.05).tolist()
            assert any(marked)
            assert not all(marked)


def test_seeds_give_mean_and_deviation_and_a_run_each(split, tmp_path):
    seeds = {13: ranker([1] * 12), 14: ranker([2] * 12)}
    table = compare({"one": ranker([4] * 12), "two": seeds}, split, [RR], baselines={}, runs=tmp_path)
    assert table["RR"].tolist() == ["0.2500", "0.7500 ± 0.3536"]  # the root of 2 * 0.25 ** 2
    runs = sorted(path.name for path in tmp_path.glob("*.res.gz"))
    assert runs == ["one.res.gz", "two, seed 13.res.gz", "two, seed 14.res.gz"]


def test_one_seed_is_like_none(split, tmp_path):
    table = compare({"one": {13: ranker([2] * 12)}}, split, [RR], baselines={"one": "*"}, runs=tmp_path)
    assert table["RR"].tolist() == ["0.5000"]
    assert (tmp_path / "one.res.gz").exists()


def test_significance_is_of_the_mean_over_seeds(split, tmp_path):
    always, once = ranker([1] * 12), ranker([None] * 11 + [1])
    systems = {"half": ranker([2] * 12), "one": always, "two": {13: always, 14: once}}
    table = compare(systems, split, [RR], baselines={"half": "*"}, runs=tmp_path)
    assert table["RR"].tolist() == ["0.5000", "1.0000*", "0.5417 ± 0.6482"]  # the means differ in one query


def test_queries_without_results_count_nothing(split, tmp_path):
    table = compare({"one": ranker([1] * 9 + [None] * 3)}, split, [RR], baselines={}, runs=tmp_path)
    assert table["RR"].tolist() == ["0.7500"]


def test_holm_corrects_over_the_other_systems():
    random = np.random.default_rng(1)
    base = random.random(50)
    values = pd.DataFrame({"base": base, "far": base + 0.2, "near": base + 0.035, "same": base})
    values[["far", "near"]] += random.normal(0, 0.1, (2, 50)).T
    p_values = [ttest_rel(values[name], base).pvalue for name in ("far", "near")]
    assert p_values[0] < 0.05 / 3
    assert 0.05 / 2 < p_values[1] < 0.05  # so that one more system decides
    assert different(values[["base", "far", "near"]], "base") == ["far", "near"]
    assert different(values, "base") == ["far"]
    assert different(values[["base"]], "base") == []
