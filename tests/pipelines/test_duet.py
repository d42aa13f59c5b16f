import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pipelines.common.collection import load
from pipelines.duet import __main__ as duet
from pipelines.duet import figures
from pipelines.duet.rankers import TWO_TOWERS

SMALL = ["--epochs", "1", "--batch-size", "8", "--dim", "8", "--depth", "20", "--groups", "12", "--sizes", "2"]
NETWORK = ["--document-terms", "30", "--filters", "4", "--pooling", "5", "--ngrams", "50"]


@pytest.fixture(scope="module")
def results(run):
    """All rows and figures, with small networks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TWO_TOWERS, "dssm", partial(pn.DSSM, layers=(16, 8)))
        patch.setitem(TWO_TOWERS, "cdssm", partial(pn.CDSSM, filters=16, dim=8))
        return run(duet, *SMALL, *NETWORK)


def means(table):
    return table.set_index("system")[["nDCG@1", "nDCG@10"]]


@pytest.mark.long
def test_table_2_has_the_rows_of_the_paper(results):
    table = pd.read_csv(results / "table2.csv")
    assert table.columns.tolist() == [
        "system",
        *("nDCG@1", "nDCG@1, p against Duet"),
        *("nDCG@10", "nDCG@10, p against Duet"),
    ]
    assert table["system"].tolist() == [
        *("LSA", "BM25", "SDM", "QL", "DRMM", "DSSM", "CDSSM", "DESM IN-OUT"),
        *("Local", "Distributed", "Duet"),
    ]
    assert (results / "table2.md").read_text().startswith("Table 2; * differs from Duet")


@pytest.mark.long
def test_the_duet_is_compared_with_its_parts_and_the_best_baseline(results):
    table, frame = means(pd.read_csv(results / "table2.csv")), pd.read_csv(results / "table2-differences.csv")
    for measure, rows in frame.groupby("measure"):
        best = table[measure].drop(["Local", "Distributed", "Duet"]).idxmax()
        assert sorted(rows["against"]) == sorted(["Local", "Distributed", best])
        np.testing.assert_allclose(rows["difference"], rows["Duet"] - rows["mean"], atol=2e-4)
        np.testing.assert_allclose(rows["corrected"], np.minimum(1, 10 * rows["p"]), rtol=0.01)  # both are rounded


@pytest.mark.long
def test_figure_4_compares_negatives(results):
    table, frame = means(pd.read_csv(results / "table2.csv")), pd.read_csv(results / "figure4.csv")
    assert frame["system"].tolist() == ["Local", "Distributed", "Duet"] * 2
    assert "retrieved" in frame  # no document was judged not relevant
    ten = frame[frame["measure"] == "nDCG@10"].set_index("system")
    np.testing.assert_allclose(ten["retrieved"], table["nDCG@10"][ten.index], atol=2e-4)
    np.testing.assert_allclose(ten["difference"], ten["retrieved"] - ten["random"], atol=2e-4)
    assert (ten["retrieved"] != ten["random"]).any()
    assert list((results / "runs").glob("Duet, random negatives, seed 13*"))


@pytest.mark.long
def test_figure_5_has_all_test_queries(results, folder):
    test = load(f"neural:folder:{folder}").test
    for part in ("length", "rarity"):
        frame = pd.read_csv(results / f"figure5-{part}.csv")
        assert frame["queries"].sum() == len(test.topics)
        assert frame.columns.tolist()[2:] == ["Local", "Distributed", "Duet"]
        table = means(pd.read_csv(results / "table2.csv"))["nDCG@10"]
        averages = [np.average(frame[name], weights=frame["queries"]) for name in ("Local", "Distributed", "Duet")]
        np.testing.assert_allclose(averages, table[["Local", "Distributed", "Duet"]], atol=3e-4)


@pytest.mark.long
def test_figure_6_has_all_rows_with_their_kinds(results):
    frame = pd.read_csv(results / "figure6.csv").set_index("system")
    assert frame["kind"].value_counts().to_dict() == {"inexact": 5, "exact": 2, "proximity": 1, "ours": 3}
    np.testing.assert_allclose(frame[["first", "second"]].mean(), 0, atol=1e-3)


@pytest.mark.long
def test_figure_7_doubles_the_queries(results):
    frame = pd.read_csv(results / "figure7.csv")
    once = frame[frame["training"] == "one epoch"]
    assert once["queries"].tolist() == [6, 12] * 3
    assert once["epochs"].tolist() == [1] * 6
    more = frame[frame["training"] == "same number of groups seen"]
    assert (more["queries"] * more["epochs"]).tolist() == [12] * 6
    largest = frame[frame["queries"] == 12].groupby("system")["nDCG@10"].nunique()
    assert largest.tolist() == [1, 1, 1]  # which is one model


@pytest.mark.long
def test_the_folder_tells_how_the_results_were_made(results):
    settings = json.loads((results / "settings.json").read_text())
    assert settings["chosen"]["negatives"] == "retrieved"
    assert settings["chosen"]["grades"] is None
    assert settings["arguments"]["seeds"] == [13]
    histories = pd.read_csv(results / "histories.csv")
    assert histories["system"].nunique() == 3 + 3 * 2  # those of Figure 7 are not among them
    for number in (4, 5, 6, 7):
        assert (results / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")


def test_without_training_queries_untrained_rows_remain(run, test_only):
    with pytest.raises(SystemExit, match=r"which local, duet learn from.*--models lsa sdm ql desm"):
        run(duet, "--models", "local", "duet", "ql", dataset=test_only)
    options = ["--depth", "20", "--dim", "8", "--models", "ql", "sdm", "lsa", "desm", "--seeds", "13", "14"]
    results = run(duet, *options, dataset=test_only)
    names = ["LSA", "BM25", "SDM", "QL", "DESM IN-OUT"]
    assert pd.read_csv(results / "table2.csv")["system"].tolist() == names
    assert pd.read_csv(results / "figure5-length.csv").columns.tolist()[2:] == names
    assert len(list((results / "runs").glob("DESM IN-OUT, seed *"))) == 2
    assert sorted(path.name for path in results.glob("*.png")) == ["figure5.png", "figure6.png", "table2.png"]


def test_bars_of_figure_4():
    rows = [("Duet", "nDCG@10", 0.5, 0.4, 0.0004), ("Local", "nDCG@10", 0.3, 0.2, 0.2)]
    frame = pd.DataFrame(rows, columns=["system", "measure", "judged", "random", "corrected"])
    (axes,) = figures.negatives(frame, "judged").axes
    assert [bar.get_height() for bar in axes.patches] == [0.5, 0.3, 0.4, 0.2]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Duet\np < 0.001", "Local\np = 0.200"]


def test_lines_of_figure_7():
    rows = [("Duet", kind, size, size / 100) for kind in ("one", "more") for size in (8, 16)]
    frame = pd.DataFrame(rows, columns=["system", "training", "queries", "nDCG@10"])
    axes = figures.learning_curves(frame).axes
    assert [ax.get_title() for ax in axes] == ["one", "more"]
    assert axes[1].lines[0].get_xydata().tolist() == [[8, 0.08], [16, 0.16]]
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["8", "16"]
