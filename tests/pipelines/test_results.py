"""The page of results, from folders as pipelines write them."""

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from pipelines.common.runs import SavedRuns
from pipelines.results import __main__ as results
from pipelines.results.folders import result_folders
from pipelines.results.orderings import ORDERINGS, Ordering, outcome_of

QIDS = [f"q{number}" for number in range(30)]


def save(out, pipeline, collection, runs, values):
    """A folder of results; ``values`` maps the name of each run to its per-query values."""
    folder = out / f"{pipeline}-{collection}"
    frames = [pd.DataFrame({"name": name, "qid": QIDS, "measure": "nDCG@10", "value": v}) for name, v in values.items()]
    SavedRuns(folder / runs, {}).save_values(pd.concat(frames))
    settings = {"pipeline": pipeline, "collection": collection, "command": f"python -m pipelines.{pipeline}"}
    (folder / "settings.json").write_text(json.dumps({**settings, "packages": {"torch": "2.0"}}))
    return folder


@pytest.fixture
def out(tmp_path):
    random = np.random.default_rng(2)
    duet, local = random.random(30), random.random(30)
    save(
        tmp_path,
        "duet",
        "cacm",
        "runs",
        {"Duet, seed 1": duet, "Duet, seed 2": duet + 0.1, "Local, seed 1": local, "Local, seed 2": local},
    )
    save(tmp_path, "duet", "neural:pydocs", "runs", {"BM25": local, "Duet, seed 1": local + 0.2 + 0.01 * duet})
    gains = {"SSM & BM25": local * 1.5, "SSM": local, "Match-Tensor": duet, "Match-Tensor & BM25": duet * 1.1}
    save(tmp_path, "match-tensor", "cacm", "runs-ensembles", gains)
    return tmp_path


def ordering(says):
    return next(ordering for ordering in ORDERINGS if ordering.says == says)


def test_an_ordering_is_tested_on_means_over_seeds(out):
    cacm = next(folder for folder in result_folders(out) if folder.collection == "cacm" and folder.pipeline == "duet")
    values = cacm.values("runs")
    outcome = outcome_of(ordering("the Duet is better than its local part"), values)
    columns = {name: rows.groupby("qid")["value"].mean() for name, rows in values.groupby("system")}
    assert outcome.p == pytest.approx(ttest_rel(columns["Duet"], columns["Local"]).pvalue)
    assert outcome.better == pytest.approx(columns["Duet"].mean())
    first = columns["Duet"].mean() - 0.05 - columns["Local"].mean()
    assert outcome.seeds == pytest.approx([first, first + 0.1])
    assert outcome_of(ordering("the Duet is better than BM25"), values) is None  # BM25 was not run


def test_verdicts():
    values = pd.DataFrame({"system": ["a"] * 30 + ["b"] * 30, "seed": "", "qid": QIDS * 2, "measure": "nDCG@10"})
    noise = np.random.default_rng(1).normal(0, 0.01, 30)
    better = Ordering("x", "y", "z", "p", "r", "a", "b")
    values["value"] = np.r_[0.5 + noise, np.full(30, 0.4)]
    assert outcome_of(better, values).verdict == "yes"
    assert outcome_of(replace(better, better="b", worse="a"), values).verdict == "no"
    values["value"] = np.r_[noise, np.zeros(30)]
    assert outcome_of(better, values).verdict == "level"
    values["value"] = 0.3
    assert str(outcome_of(better, values)) == "level: 0.3000 against 0.3000, p = 1.000"


def test_gains_are_compared_relative_to_what_gains(out):
    folder = next(folder for folder in result_folders(out) if folder.pipeline == "match-tensor")
    outcome = outcome_of(ordering("SSM gains more from BM25 than Match-Tensor"), folder.values("runs-ensembles"))
    assert (outcome.better, outcome.worse) == (pytest.approx(0.5), pytest.approx(0.1))
    assert outcome.verdict == "yes"


def test_the_page_has_ours_beside_the_papers(out, monkeypatch, tmp_path):
    page = tmp_path / "RESULTS.md"
    monkeypatch.setattr(sys, "argv", ["results", "--out", str(out), "--page", str(page)])
    results.main()
    text = page.read_text()
    header = text.index("| system | paper | neural:pydocs (30 queries) | cacm (30 queries) |")
    values = next(folder for folder in result_folders(out) if folder.collection == "neural:pydocs").values("runs")
    mean = values.loc[values["system"] == "Duet", "value"].mean()
    assert f"| Duet | 0.530 | {mean:.3f} | " in text[header:]
    assert "| QL | 0.463 | – | – |" in text[header:]
    assert "| SSM & BM25 | +1.33 | +50.00 |" in text
    assert "DESM, Table 3" not in text  # none of it was run
    assert "python -m pipelines.duet\n" in text
    assert "torch 2.0" in text


def test_without_results_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["results", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="run pipelines first"):
        results.main()
