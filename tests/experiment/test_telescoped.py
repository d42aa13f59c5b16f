import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pt_neural.experiment import telescoped_against_full


@pytest.fixture
def frames():
    rng = np.random.default_rng(4)
    qids = pd.Index([f"q{number}" for number in range(12)], name="qid")
    telescoped, full = (
        pd.DataFrame(rng.random((12, 3)), qids, ["BM25", "DESM", "mixture"]).rename_axis(columns="AP") for _ in "ab"
    )
    return telescoped, full.assign(BM25=telescoped["BM25"])


def test_means_and_tests_of_both_settings(frames):
    telescoped, full = frames
    frame = telescoped_against_full(telescoped, full, correction="bonferroni")
    assert frame.columns.tolist() == ["system", "telescoped", "full", "difference", "p", "corrected"]
    assert frame["system"].tolist() == ["BM25", "DESM", "mixture"]
    assert frame["p"][0] == 1, "the first stage is the same in both settings"
    for row in frame.itertuples():
        assert row.telescoped == pytest.approx(telescoped[row.system].mean())
        assert row.full == pytest.approx(full[row.system].mean())
        assert row.difference == pytest.approx(row.full - row.telescoped)
        assert row.corrected == pytest.approx(min(1, 3 * row.p))
    for name in ("DESM", "mixture"):
        p = stats.ttest_rel(full[name], telescoped[name]).pvalue
        assert frame.set_index("system")["p"][name] == pytest.approx(p)


def test_queries_and_systems_are_aligned(frames):
    telescoped, full = frames
    shuffled = full.iloc[::-1, ::-1]
    expected = telescoped_against_full(telescoped, full, test="randomisation")
    pd.testing.assert_frame_equal(telescoped_against_full(telescoped, shuffled, test="randomisation"), expected)


def test_what_is_missing_is_named(frames):
    telescoped, full = frames
    with pytest.raises(ValueError, match="full lacks system 'DESM', which the other frame has"):
        telescoped_against_full(telescoped, full.drop(columns="DESM"))
    with pytest.raises(ValueError, match=r"telescoped lacks query 'q0' \(and 2 more\)"):
        telescoped_against_full(telescoped.iloc[3:], full)
    with pytest.raises(ValueError, match=r"full lacks query 'q0' \(and 11 more\)"):
        telescoped_against_full(telescoped, full.rename(index=lambda qid: f"other {qid}"))
    with pytest.raises(ValueError, match="telescoped holds values of AP, full of RR"):
        telescoped_against_full(telescoped, full.rename_axis(columns="RR"))
    with pytest.raises(ValueError, match="'DESM' has no value for query 'q1' in full"):
        telescoped_against_full(telescoped, full.assign(DESM=full["DESM"].where(full.index != "q1")))
    with pytest.raises(ValueError, match="query 'q0' occurs twice in telescoped"):
        telescoped_against_full(pd.concat([telescoped, telescoped.head(1)]), full)
