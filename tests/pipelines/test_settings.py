import pandas as pd
import pytest

from pipelines import settings


def test_one_table_per_model(run, monkeypatch):
    monkeypatch.setattr(settings, "CHANGES", [{}, {"window": 20, "epochs": 1}])
    results = run(settings, "--dims", "3", "5")
    lsa = pd.read_csv(results / "lsa.csv")
    assert lsa[["dim", "tf"]].to_numpy().tolist() == [[3, "tf"], [3, "1 + ln tf"], [5, "tf"], [5, "1 + ln tf"]]
    assert lsa[["U", "U/Σ"]].to_numpy().min() > 0
    desm = pd.read_csv(results / "desm.csv")
    assert desm["settings"].tolist() == ["window=5, epochs=5, subsample=0.001", "window=20, epochs=1, subsample=0.001"]
    assert (desm["in-out mixed"] >= desm["BM25"]).all()


def test_they_need_dev_queries(run, test_only):
    with pytest.raises(SystemExit, match="no dev queries"):
        run(settings, dataset=test_only)
