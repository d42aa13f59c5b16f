import argparse
import json

import numpy as np
import pandas as pd
import pytest

from pipelines import duet, duet_figures
from pipelines.common import load
from pipelines.reranking import chosen_grades, grade_scheme, hard_negatives

SMALL = ["--epochs", "1", "--batch-size", "8", "--dim", "8", "--depth", "20", "--groups", "12", "--sizes", "2"]
NETWORK = ["--document-terms", "30", "--filters", "4", "--pooling", "5", "--ngrams", "50"]


@pytest.fixture(scope="module")
def results(run_in, tmp_path_factory):
    """All rows and figures, with two seeds."""
    return run_in(tmp_path_factory.mktemp("duet"), duet, *SMALL, *NETWORK, "--seeds", "13", "14")


def means(table):
    return table.set_index("system")[["nDCG@1", "nDCG@10"]]


def test_table_2_has_the_rows_of_the_paper(results):
    table = pd.read_csv(results / "table2.csv")
    assert table.columns.tolist() == [
        "system",
        *("nDCG@1", "nDCG@1, deviation", "nDCG@1, p against Duet"),
        *("nDCG@10", "nDCG@10, deviation", "nDCG@10, p against Duet"),
    ]
    assert table["system"].tolist() == [
        *("LSA", "BM25", "SDM", "QL", "DRMM", "DSSM", "CDSSM", "DESM IN-OUT"),
        *("Local", "Distributed", "Duet"),
    ]
    assert table["nDCG@10, deviation"].notna().tolist() == [False] * 4 + [True] * 3 + [False] + [True] * 3
    assert (results / "table2.md").read_text().startswith("Table 2; * differs from Duet")


def test_the_duet_is_compared_with_its_parts_and_the_best_baseline(results):
    table, frame = means(pd.read_csv(results / "table2.csv")), pd.read_csv(results / "table2-differences.csv")
    for measure, rows in frame.groupby("measure"):
        best = table[measure].drop(["Local", "Distributed", "Duet"]).idxmax()
        assert sorted(rows["against"]) == sorted(["Local", "Distributed", best])
        np.testing.assert_allclose(rows["difference"], rows["Duet"] - rows["mean"], atol=2e-4)
        np.testing.assert_allclose(rows["corrected"], np.minimum(1, 10 * rows["p"]), rtol=0.01)  # both are rounded


def test_figure_4_compares_negatives(results):
    table, frame = means(pd.read_csv(results / "table2.csv")), pd.read_csv(results / "figure4.csv")
    assert frame["system"].tolist() == ["Local", "Distributed", "Duet"] * 2
    assert "retrieved" in frame  # nothing was judged not relevant
    ten = frame[frame["measure"] == "nDCG@10"].set_index("system")
    np.testing.assert_allclose(ten["retrieved"], table["nDCG@10"][ten.index], atol=2e-4)
    np.testing.assert_allclose(ten["difference"], ten["retrieved"] - ten["random"], atol=2e-4)
    assert (ten["retrieved"] != ten["random"]).any()
    assert list((results / "runs").glob("Duet, random negatives, seed 14*"))


def test_figure_5_has_all_test_queries(results, folder):
    test = load(f"neural:folder:{folder}").test
    for part in ("length", "rarity"):
        frame = pd.read_csv(results / f"figure5-{part}.csv")
        assert frame["queries"].sum() == len(test.topics)
        assert frame.columns.tolist()[2:] == ["Local", "Distributed", "Duet"]
        table = means(pd.read_csv(results / "table2.csv"))["nDCG@10"]
        averages = [np.average(frame[name], weights=frame["queries"]) for name in ("Local", "Distributed", "Duet")]
        np.testing.assert_allclose(averages, table[["Local", "Distributed", "Duet"]], atol=3e-4)


def test_figure_6_has_all_rows_with_their_kinds(results):
    frame = pd.read_csv(results / "figure6.csv").set_index("system")
    assert frame["kind"].value_counts().to_dict() == {"inexact": 5, "exact": 2, "proximity": 1, "ours": 3}
    np.testing.assert_allclose(frame[["first", "second"]].mean(), 0, atol=1e-3)


def test_figure_7_doubles_the_queries(results):
    frame = pd.read_csv(results / "figure7.csv")
    once = frame[frame["training"] == "one epoch"]
    assert once["queries"].tolist() == [6, 12] * 3
    assert once["epochs"].tolist() == [1] * 6
    more = frame[frame["training"] == "same number of groups seen"]
    assert (more["queries"] * more["epochs"]).tolist() == [12] * 6
    largest = frame[frame["queries"] == 12].groupby("system")["nDCG@10"].nunique()
    assert largest.tolist() == [1, 1, 1]  # one model is both


def test_the_folder_tells_what_made_the_results(results):
    settings = json.loads((results / "settings.json").read_text())
    assert settings["chosen"]["negatives"] == "retrieved"
    assert settings["chosen"]["grades"] is None
    assert settings["arguments"]["seeds"] == [13, 14]
    histories = pd.read_csv(results / "histories.csv")
    assert histories["system"].nunique() == 3 + 3 * 2  # figure 7's are not among them
    for number in (4, 5, 6, 7):
        assert (results / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")


def test_an_interrupted_run_goes_on(run, capsys):
    options = [*SMALL, *NETWORK, "--models", "local", "--figures"]
    run(duet, *options)
    assert "/duet-local-" in capsys.readouterr().out
    run(duet, *options)
    assert "building" not in capsys.readouterr().out
    run(duet, *options, "--filters", "5")
    assert "/duet-local-" in capsys.readouterr().out


def test_without_training_queries_untrained_rows_remain(run_in, folder, tmp_path):
    place = tmp_path / "test-only"
    (place / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (place / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(SystemExit, match=r"which local, duet learn from.*--models lsa sdm ql desm"):
        run_in(tmp_path / "one", duet, *SMALL, "--models", "local", "duet", "ql", dataset=place)
    results = run_in(tmp_path / "two", duet, *SMALL, "--models", "ql", "sdm", "lsa", dataset=place)
    assert pd.read_csv(results / "table2.csv")["system"].tolist() == ["LSA", "BM25", "SDM", "QL"]
    assert pd.read_csv(results / "figure5-length.csv").columns.tolist()[2:] == ["LSA", "BM25", "SDM", "QL"]
    assert sorted(path.name for path in results.glob("*.png")) == ["figure5.png", "figure6.png", "table2.png"]


def test_graded_judgements_choose_negatives_and_grades():
    graded = pd.DataFrame({"label": [0, 1, 2, 3, 4, 1]})
    assert hard_negatives(graded) == "judged"
    assert hard_negatives(graded[graded["label"] > 0]) == "retrieved"
    assert chosen_grades("auto", graded, "judged") == {1: [0], 2: [0], 3: [1, 0], 4: [2, 1, 0]}
    assert chosen_grades("auto", graded, "retrieved") is None
    assert chosen_grades("auto", graded[graded["label"] < 2], "judged") is None
    assert chosen_grades("all", graded, "judged") is None
    assert chosen_grades({2: [0]}, graded, "retrieved") == {2: [0]}


def test_a_scheme_of_grades_is_read():
    assert grade_scheme('{"3": [1, 0], "2": [0]}') == {3: [1, 0], 2: [0]}
    assert grade_scheme("auto") == "auto"
    for wrong in ("automatic", "[1]", '{"a": [0]}', '{"1": 0}'):
        with pytest.raises(argparse.ArgumentTypeError, match="auto, all, or such as"):
            grade_scheme(wrong)


def test_bars_of_figure_4():
    rows = [("Duet", "nDCG@10", 0.5, 0.4, 0.0004), ("Local", "nDCG@10", 0.3, 0.2, 0.2)]
    frame = pd.DataFrame(rows, columns=["system", "measure", "judged", "random", "corrected"])
    (axes,) = duet_figures.negatives(frame, "judged").axes
    assert [bar.get_height() for bar in axes.patches] == [0.5, 0.3, 0.4, 0.2]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Duet\np < 0.001", "Local\np = 0.200"]


def test_lines_of_figure_7():
    rows = [("Duet", kind, size, size / 100) for kind in ("one", "more") for size in (8, 16)]
    frame = pd.DataFrame(rows, columns=["system", "training", "queries", "nDCG@10"])
    axes = duet_figures.learning_curves(frame).axes
    assert [ax.get_title() for ax in axes] == ["one", "more"]
    assert axes[1].lines[0].get_xydata().tolist() == [[8, 0.08], [16, 0.16]]
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["8", "16"]
