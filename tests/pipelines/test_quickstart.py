import json

import pandas as pd
import pytest

from pipelines import quickstart


@pytest.fixture(scope="module")
def results(run):
    return run(quickstart, "--epochs", "1")


def test_it_writes_table_runs_settings_and_pictures(results):
    table = pd.read_csv(results / "table.csv")
    first_stages = ["BM25", "BM25 (k1 0.9, b 0.4)", "BM25 + length prior", "query likelihood", "SDM"]
    assert table["system"].tolist()[:5] == first_stages
    assert len(table) == 21
    assert table["system"].tolist()[-2:] == ["all documents, DSSM", "all documents, BM25 + DSSM"]
    assert {"table.md", "alpha.png", "settings.json", "table.png"} <= {path.name for path in results.iterdir()}
    assert len(list((results / "runs").glob("*.res.gz"))) == 21
    settings = json.loads((results / "settings.json").read_text())
    assert settings["arguments"]["seeds"] == [13]
    assert len(settings["chosen"]["alpha"]) == 9
    assert settings["chosen"]["bm25"].startswith("BM25(")
    assert "torch" in settings["packages"]
    assert settings["command"].startswith("python -m pipelines.quickstart --dataset neural:folder:")
    assert settings["command"].endswith(" --epochs 1")


def test_a_second_run_builds_nothing_unless_a_setting_differs(run, results, capsys):
    first = pd.read_csv(results / "table.csv")
    run(quickstart, "--epochs", "1")
    printed = capsys.readouterr().out
    assert "BM25 + DESM IN-OUT" in printed
    assert "building" not in printed
    pd.testing.assert_frame_equal(pd.read_csv(results / "table.csv"), first)


@pytest.mark.long
def test_without_training_and_dev_queries_alpha_is_chosen_by_folds(run, test_only):
    table = pd.read_csv(run(quickstart, dataset=test_only) / "table.csv")
    assert len(table) == 17
    assert not table["system"].str.contains("DSSM").any()
