import numpy as np
import pandas as pd
import pytest

from pt_neural.experiment import significance
from pt_neural.experiment.differences import corrected


def test_paired_t_test_by_hand():
    values = pd.DataFrame({"base": [0.0, 0.0, 0.0, 0.0], "other": [0.1, 0.3, 0.2, 0.4]})
    row = significance(values, "base").iloc[0]
    assert row["mean"] == pytest.approx(0.25)
    assert row["difference"] == pytest.approx(0.25)
    # t = 0.25 / (sd / 2) with sd² = (0.15² + 0.05² + 0.05² + 0.15²) / 3, so t² = 15; for three degrees of freedom the
    # distribution function is 1/2 + (atan(x) + x / (1 + x²)) / π with x = t / √3.
    x = np.sqrt(5)
    assert row["p"] == pytest.approx(1 - 2 * (np.arctan(x) + x / (1 + x**2)) / np.pi)
    assert row["corrected"] == row["p"]


def test_corrections_by_hand():
    p_values = np.array([0.02, 0.01, 0.6, 0.021])
    np.testing.assert_allclose(corrected(p_values, "bonferroni"), [0.08, 0.04, 1.0, 0.084])
    np.testing.assert_allclose(corrected(p_values, "holm"), [0.06, 0.04, 0.6, 0.06])  # 0.021 * 2 is below 0.02 * 3
    np.testing.assert_allclose(corrected(p_values, None), p_values)


def test_equal_systems_do_not_differ():
    values = pd.DataFrame({"base": [0.5, 0.2], "same": [0.5, 0.2]})
    assert significance(values, "base")["p"].tolist() == [1.0]
    assert significance(values[["base"]], "base").empty


def test_clear_errors():
    values = pd.DataFrame({"base": [0.5, 0.2], "same": [0.5, 0.2]})
    with pytest.raises(ValueError, match="no system 'BM25'; there are base, same"):
        significance(values, "BM25")
    with pytest.raises(ValueError, match="correction must be one of 'holm', 'bonferroni'"):
        significance(values, "base", correction="fdr")
