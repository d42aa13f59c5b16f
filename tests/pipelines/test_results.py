"""The page of results, from folders as pipelines write them."""

import json
import re
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t, ttest_1samp, ttest_rel

from pipelines import classics, learning_curves
from pipelines.common.runs import SavedRuns, read_values
from pipelines.common.workspace import markdown
from pipelines.results import __main__ as results
from pipelines.results import again
from pipelines.results.choice import (
    choice_picture,
    choice_section,
    choice_table,
    choice_text,
    costs_by_collection,
    unfinished_rankers,
)
from pipelines.results.curves import curve_folders
from pipelines.results.findings import MAIN_FINDINGS, NEARER, count_table, finding_table, findings_of
from pipelines.results.folders import (
    UNFINISHED,
    ResultFolder,
    mean_by_query,
    mean_text,
    read_folder,
    result_folders,
)
from pipelines.results.keeping import KEPT, keep
from pipelines.results.orderings import (
    BY_SIZE,
    LEVEL,
    ORDERINGS,
    UNDECIDED,
    WITH_RECIPES,
    WITHOUT_SEED,
    Ordering,
    Outcome,
    outcome_of,
    pooled,
    trend_of,
    variance_of,
    with_queries,
)
from pipelines.results.papers import paper_figures
from pipelines.results.peers import peer_section, peer_table
from pipelines.results.pictures import paper_pictures
from pipelines.results.rates import rates_section
from pipelines.results.shown import shown_section
from pipelines.ssi import paper as ssi

ROOT = Path(__file__).parents[2]
QIDS = [f"q{number}" for number in range(30)]


@pytest.fixture(scope="module")
def kept_folders():
    """The kept results of the repository."""
    return list(result_folders(KEPT))


def save(out, pipeline, collection, runs, values):
    """A folder of results; ``values`` maps the name of each run to its per-query values."""
    folder = out / f"{pipeline}-{collection}"
    frames = [pd.DataFrame({"name": name, "qid": QIDS, "measure": "nDCG@10", "value": v}) for name, v in values.items()]
    SavedRuns(folder / runs, {}).save_values(pd.concat(frames))
    command = f"python -m pipelines.{pipeline}"
    settings = {"pipeline": pipeline, "collection": collection, "command": command, "seconds": 1.0}
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
        {
            **{f"Duet, seed {seed}": duet + 0.1 * seed for seed in range(3)},
            **{f"Local, seed {seed}": local for seed in range(3)},
            "Distributed, seed 0": local + 0.1,
            "Distributed, seed 1": local + 0.2,
        },
    )
    values = {"BM25": local, "QL": local - 0.1, "DSSM, seed 1": local + 0.1, "Duet, seed 1": local + 0.2 + 0.01 * duet}
    save(tmp_path, "duet", "neural:pydocs", "runs", values)
    gains = {"SSM & BM25": local * 1.5, "SSM": local, "Match-Tensor": duet, "Match-Tensor & BM25": duet * 1.1}
    save(tmp_path, "match-tensor", "cacm", "runs-ensembles", gains)
    return tmp_path


def ordering(says):
    return next(ordering for ordering in ORDERINGS if ordering.says == says)


def duet_values(out, collection):
    folders = result_folders(out)
    return next(each for each in folders if (each.pipeline, each.collection) == ("duet", collection)).values("runs")


def systems(**values):
    """What a folder has of one measure: one system's values by seed, with a row for each query."""
    return {"nDCG@10": {name: pd.DataFrame(by_seed, index=QIDS) for name, by_seed in values.items()}}


def test_an_ordering_is_tested_over_queries_and_seeds(out):
    values = duet_values(out, "cacm")
    outcome = outcome_of(ordering("the Duet is better than its local part"), values)
    columns = {name: by_seed.mean(axis=1) for name, by_seed in values["nDCG@10"].items()}
    differences = columns["Duet"] - columns["Local"]
    of_queries, of_seeds = differences.var() / 30, 0.1**2 / 3  # Local has the same values for all seeds
    freedom = (of_queries + of_seeds) ** 2 / (of_queries**2 / 29 + of_seeds**2 / 2)
    assert outcome.p == pytest.approx(2 * t.sf(abs(differences.mean()) / (of_queries + of_seeds) ** 0.5, freedom))
    assert outcome.better == pytest.approx(columns["Duet"].mean())
    first = columns["Duet"].mean() - 0.1 - columns["Local"].mean()
    assert outcome.seeds == pytest.approx([first, first + 0.1, first + 0.2])
    assert outcome_of(ordering("the Duet is better than BM25"), values) is None  # BM25 was not run


def test_what_is_learned_needs_three_seeds(out):
    """A test over queries does not see that another training gives another system."""
    values = duet_values(out, "neural:pydocs")
    outcome = outcome_of(ordering("the Duet is better than BM25"), values)
    assert outcome.p < 0.001
    assert outcome.verdict is None
    assert str(outcome) == f"one seed: {outcome.better:.4f} against {outcome.worse:.4f}"
    two = outcome_of(ordering("the distributed part is better than the local one"), duet_values(out, "cacm"))
    assert str(two).startswith("2 seeds: ")
    assert str(two).endswith(", over seeds +0.1000 to +0.2000")
    found = values["nDCG@10"]
    more = {"Duet": found["Duet"].assign(**{str(seed): found["Duet"]["1"] + 0.01 * seed for seed in (2, 3)})}
    outcome = outcome_of(ordering("the Duet is better than BM25"), {"nDCG@10": found | more})
    assert outcome.verdict == "yes"
    assert np.diff(outcome.seeds) == pytest.approx([0.02, 0.01])


def test_what_is_not_learned_needs_no_seeds(out):
    values = duet_values(out, "neural:pydocs")
    outcome = outcome_of(Ordering("x", "y", "z", "p", "r", "BM25", "QL"), values)
    assert (outcome.verdict, outcome.seeds) == ("yes", None)
    assert str(outcome).endswith(", p < 0.001")


def test_the_best_of_several_is_named(out):
    outcome = outcome_of(ordering("the Duet is better than the best baseline"), duet_values(out, "neural:pydocs"))
    assert outcome.of == "DSSM"
    assert str(outcome) == f"one seed: {outcome.better:.4f} against {outcome.worse:.4f} (DSSM)"
    assert outcome_of(ordering("the Duet is better than the best baseline"), duet_values(out, "cacm")) is None


def test_verdicts():
    noise = np.random.default_rng(1).normal(0, 0.01, 30)
    better = Ordering("x", "y", "z", "p", "r", "QL", "BM25")
    values = systems(QL={"": 0.5 + noise}, BM25={"": 0.4})
    assert outcome_of(better, values).verdict == "yes"
    assert outcome_of(replace(better, better="BM25", worse="QL"), values).verdict == "no"
    assert outcome_of(better, systems(QL={"": noise}, BM25={"": 0.0})).verdict == "level"
    equal = outcome_of(better, systems(QL={"": 0.3}, BM25={"": 0.3}))
    assert str(equal) == "level: 0.3000 against 0.3000, p = 1.000"
    by_query = 0.1 + 0.2 * np.arange(30)  # a mean over three equal values is rounded
    learned = systems(Duet={str(seed): by_query for seed in range(3)}, BM25={"": by_query + 1e-12})
    outcome = outcome_of(replace(better, better="Duet"), learned)
    assert outcome.verdict == "level"
    assert str(outcome).endswith("over seeds +0.0000 to +0.0000")
    assert outcome.difference == "level: +0.0000, p = 1.000"


def test_without_seeds_the_test_is_the_paired_one(out):
    values = duet_values(out, "neural:pydocs")
    outcome = outcome_of(Ordering("x", "y", "z", "p", "r", "BM25", "Duet"), values)
    sides = [values["nDCG@10"][name].squeeze() for name in ("BM25", "Duet")]
    assert outcome.p == pytest.approx(ttest_rel(*sides).pvalue)


def outcome_from(differences, trainings):
    return Outcome(differences.mean(), 0.0, *variance_of(differences, trainings))


def test_trainings_that_differ_by_chance_are_seldom_different():
    """Two systems that are equal but for their trainings: a test over queries alone finds most pairs different."""
    random = np.random.default_rng(5)
    over_queries, over_both = [], []
    for _ in range(1000):
        seeds = random.normal(scale=0.03, size=(2, 3))  # what each training adds to all queries
        sides = [pd.DataFrame(random.normal(scale=0.1, size=(200, 3)) + side) for side in seeds]
        differences = sides[0].mean(axis=1) - sides[1].mean(axis=1)
        over_queries.append(outcome_from(differences, []).p)
        over_both.append(outcome_from(differences, [side.mean() for side in sides]).p)
    assert np.mean(np.array(over_queries) < LEVEL) > 0.4
    assert 0.01 < np.mean(np.array(over_both) < LEVEL) < 0.06


def test_gains_are_compared_relative_to_what_gains(out):
    folder = next(folder for folder in result_folders(out) if folder.pipeline == "match-tensor")
    outcome = outcome_of(ordering("SSM gains more from BM25 than Match-Tensor"), folder.values("runs-ensembles"))
    assert (outcome.better, outcome.worse) == (pytest.approx(0.5), pytest.approx(0.1))
    assert str(outcome) == "one seed: 0.5000 against 0.1000"


def test_pooled_collections_show_smaller_differences():
    """Against a Welch-like test written out for two collections of unequal sizes."""
    random = np.random.default_rng(8)
    noise = (random.normal(0, 0.1, size) for size in (60, 90))
    differences = [pd.Series(0.019 + each - each.mean()) for each in noise]
    outcomes = [outcome_from(each, []) for each in differences]
    assert [each.verdict for each in outcomes] == ["level", "level"]
    mean = pooled(outcomes)
    parts = [each.var() / len(each) / 4 for each in differences]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 59 + parts[1] ** 2 / 89)
    assert mean.better - mean.worse == pytest.approx(np.mean([each.mean() for each in differences]))
    assert mean.p == pytest.approx(2 * t.sf(abs(mean.better - mean.worse) / sum(parts) ** 0.5, freedom))
    assert mean.verdict == "yes"
    assert pooled(outcomes[:1]).p == pytest.approx(outcomes[0].p)


def written(out, monkeypatch, folder):
    """The page from these results."""
    page = folder / "RESULTS.md"
    arguments = {"--out": out, "--kept": folder / "kept", "--page": page, "--pictures": folder}
    monkeypatch.setattr(sys, "argv", ["results", *(str(part) for pair in arguments.items() for part in pair)])
    results.main()
    return page.read_text()


def test_the_page_has_ours_beside_the_papers(out, monkeypatch, tmp_path):
    text = written(out, monkeypatch, tmp_path)
    pictures = set(re.findall(r"duet-figure6-.*?\.png", text))
    assert pictures == {"duet-figure6-cacm.png", "duet-figure6-neural-pydocs.png"}
    assert all((tmp_path / name).exists() for name in pictures)
    header = text.index("| system | paper | neural:pydocs (30 queries) | cacm (30 queries) |")
    values = next(folder for folder in result_folders(out) if folder.collection == "neural:pydocs").values("runs")
    mean = values["nDCG@10"]["Duet"].to_numpy().mean()
    assert f"| Duet | 0.530 | {mean:.3f} | " in text[header:]
    assert "| SDM | 0.462 | – | – |" in text[header:]
    assert "| SSM & BM25 | +1.33 | +50.00 |" in text
    assert "DESM, Table 3" not in text  # none of it was run
    assert "python -m pipelines.duet  # 1 s\n" in text
    assert "torch 2.0" in text


def test_the_kept_results_have_all_figures(kept_folders):
    found = {name: draw for name, _, draw in paper_pictures(kept_folders)}
    assert {re.match(r".*?-(?:figure\d|precision-recall)", name)[0] for name in found} == {
        "ssi-figure1",
        "ssi-figure2",
        "clsm-figure2",
        "duet-figure6",
        "match-tensor-figure3",
        "match-tensor-precision-recall",
    }
    curves = next(draw for name, draw in found.items() if name.startswith("ssi-figure2"))
    assert len(curves().axes) == 8  # loss and dev rank loss for each of four shares of the links
    (ax,) = found["match-tensor-figure3-cpp-docs-keywords.png"]().axes
    assert [line.get_ydata()[-1] for line in ax.lines] == [100] * 4  # with all training queries


def test_reasons_stand_only_where_an_ordering_fails(out):
    (duet,) = (each for each in ORDERINGS if each.says.endswith("random ones for the Duet"))
    folders = [folder for folder in result_folders(out) if folder.collection == "cacm"]
    for better, worse, fails in (("Distributed", "Local", False), ("Local", "Duet", True)):
        outcomes = results.outcomes_of([replace(duet, better=better, worse=worse)], folders)
        section = "".join(results.ordering_section("Duet", outcomes))
        assert (duet.reason in section) == fails
        assert section.count("2 seeds: ") == (not fails)


def test_commands_say_how_long_they_took():
    found = [results.command_with_time({"command": "x", "seconds": seconds}) for seconds in (7.3, 90.1)]
    assert found == ["x  # 7 s", "x  # 2 min"]


def test_a_reason_of_several_orderings_stands_once():
    orderings = [finding(name, -0.2, reason="for want of words") for name in ("one", "another")]
    orderings += [finding(name, -0.2) for name in ("a third", "a fourth")]
    section = "".join(results.ordering_section("Duet", {each: {"cacm": outcome} for each, outcome in orderings}))
    reasons = [line for line in section.splitlines() if line.startswith("- ")]
    assert reasons == ["- *one*; *another*: for want of words", "- not known: *a third*; *a fourth*."]


def test_the_page_says_where_the_main_findings_come_nearer(kept_folders):
    outcomes = results.outcomes_of(ORDERINGS, kept_folders)
    nearer = [each for each in findings_of(outcomes, kept_folders) if each.main_in and each.status == NEARER]
    curves = [tuple(sorted(each.trends.items())) for each in nearer if each.orderings[0].paper != "DESM"]
    keywords, debian = ("cpp-docs/keywords", "rises"), ("debian/synopses", "rises")
    assert len(nearer) == 7
    assert Counter(curves) == {(debian,): 1, (keywords,): 1, (keywords, ("debian/synopses", "level")): 3}


def finding(name, mean, **options):
    """An ordering, and its outcome."""
    differences = pd.Series(mean + np.random.default_rng(4).normal(0, 0.1, 60))
    return Ordering("Duet", "Table 2", name, "duet", "runs", name, "BM25", **options), outcome_from(differences, [])


def test_each_finding_has_one_verdict():
    orderings = [
        finding("holds", 0.2),
        finding("holds", -0.2, how="with recipes"),  # the setting of the paper counts where both were run
        finding("by MAP", 0.2, measure="MAP"),
        finding("by MAP", -0.2, how="with recipes"),  # by nDCG@10, which has no common mean with MAP
        finding("fails", -0.2),
        finding("explained", 0.0, reason="a run shows it"),
        finding("rises", 0.0),
    ]
    outcomes = {each: {"cacm": outcome, "vaswani": outcome} for each, outcome in orderings}
    outcomes[orderings[3][0]] = {"debian/synopses": orderings[3][1]}
    few = replace(orderings[0][1], seeds=(0.1, 0.2))
    outcomes[finding("few", 0.2)[0]] = {"cacm": few}
    findings = findings_of(outcomes, [])
    findings[4] = replace(findings[4], trends={"cacm": "rises"})
    assert [each.status for each in findings] == ["holds", "holds", "not known", "cause shown", "nearer with more data"]
    table = finding_table(findings).set_index("finding")
    assert table.loc[["holds (Table 2)", "by MAP (Table 2)"], "collections"].tolist() == ["2 yes"] * 2
    assert table.loc["rises (Table 2)", "more data"] == "cacm: rises"
    counts = count_table(findings).set_index("paper")
    assert counts.loc["Duet"].tolist() == counts.loc["all"].tolist() == [5, 2, 1, 1, 0, 1]
    assert counts.loc["main findings, all papers"].tolist() == [0, 0, 0, 0, 0, 0]


def test_main_findings_are_counted_apart():
    (says, *_) = MAIN_FINDINGS["Duet"]["abstract"]
    orderings = [finding(says, 0.2), finding("other", 0.2)]
    found = findings_of({each: {"cacm": outcome} for each, outcome in orderings}, [])
    assert finding_table(found)["main"].tolist() == ["abstract", "–"]
    assert count_table(found).set_index("paper").loc["main findings, all papers"].tolist() == [1, 1, 0, 0, 0, 0]
    reported = {(each.paper, each.says) for each in ORDERINGS if each.reported}
    assert {(paper, says) for paper, by in MAIN_FINDINGS.items() for place in by.values() for says in place} <= reported


def papers_difference(finding):
    """The difference that the paper reports, in the measure of the finding; None if it has no figures."""
    text = paper_figures(finding.orderings[0])
    figures = [float(part.partition("±")[0].rstrip(" %")) for part in text.split(" against ") if part != "–"]
    if len(figures) == 1:  # a gain of one over the other
        return figures[0] / 100 * finding.mean.worse
    return (figures[0] - figures[1]) / (100 if "%" in text else 1) if figures else None


def test_a_finding_is_undecided_only_if_zero_and_the_papers_difference_are_in_the_interval(kept_folders):
    found = findings_of(results.outcomes_of(ORDERINGS, kept_folders), kept_folders)
    assert {each.status for each in found} >= {"undecided", "not known"}
    for each in found:
        reason, (low, high), difference = each.orderings[0].reason, each.mean.interval, papers_difference(each)
        assert (each.status == "undecided") == reason.startswith(UNDECIDED), each.orderings[0].says
        if each.status == "not known":
            assert difference is None or not (low < difference < high and low < 0 < high), each.orderings[0].says
        if each.status == "undecided":
            assert low < difference < high
            assert low < 0 < high
            for times in re.findall(r"interval is (\d+) times as wide", reason):
                assert round((high - low) / difference) == int(times)
            for times in re.findall(r"some (\d+) times as many", reason):
                needed = ((high - low) / 2 / difference) ** 2  # the difference is half of the interval
                assert needed == pytest.approx(int(times), rel=0.1)


def test_the_interval_is_that_of_the_paired_t_test():
    differences = np.random.default_rng(5).normal(0.1, 1, 40)
    interval = ttest_1samp(differences, 0).confidence_interval(0.95)
    np.testing.assert_allclose(outcome_from(pd.Series(differences), []).interval, tuple(interval))


def test_more_text_may_bring_a_finding_nearer(tmp_path):
    random = np.random.default_rng(6)
    bm25, little = random.random(30) + 1, random.random(30) / 4
    runs = {f"DESM, seed {seed}": little + 0.3 + 0.01 * random.random(30) for seed in range(3)}
    runs |= {f"DESM of a sample, seed {seed}": little for seed in range(3)}
    save(tmp_path, "desm", "cacm", "runs-telescoped", {"BM25": bm25, **runs})
    one = Ordering("DESM", "Table 3", "DESM is better", "desm", "runs-telescoped", "DESM", "BM25")
    folders = list(result_folders(tmp_path))
    for with_less, status in (
        (("DESM of a sample", "BM25"), "nearer with more data"),
        (("DESM of nothing", "BM25"), "not known"),
        (None, "not known"),
    ):
        outcomes = results.outcomes_of([replace(one, with_less=with_less)], folders)
        (found,) = findings_of(outcomes, folders)
        assert found.status == status


def test_orderings_name_rows_of_the_tables_they_cite():
    values = [read_folder(path).values("runs-collection") for path in KEPT.glob("ssi-*")]
    own = {name for measures in values for by_system in measures.values() for name in by_system}
    for each in ORDERINGS:
        if each.paper == "SSI":
            for side in (each.better, *([each.worse] if isinstance(each.worse, str) else each.worse)):
                number, _, row = side.partition(": ")
                if number == "SSI":  # a system by its own name
                    assert side in own, side
                else:
                    assert row in ssi.TABLES[number], side
                    assert row in ssi.NAMES
    assert {"BM25", "tfidf"} <= WITHOUT_SEED
    assert not {"Duet", "DSSM", "low-rank"} & WITHOUT_SEED


def test_without_results_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["results", "--out", str(tmp_path), "--kept", str(tmp_path / "kept")])
    with pytest.raises(SystemExit, match="run pipelines first"):
        results.main()


def test_what_was_learned_stands_beside_bm25(tmp_path):
    bm25 = np.random.default_rng(3).random(30) / 2
    better = {f"BM25 + DSSM, seed {seed}": bm25 + 0.1 * seed + 0.01 * bm25 for seed in (1, 2)}
    save(
        tmp_path, "classics", "cacm", "runs", {"BM25": bm25, **better, "DSSM, seed 1": bm25[::-1], "DSSM, seed 2": bm25}
    )
    save(tmp_path, "pretraining", "cacm", "runs", {"BM25": bm25, "DSSM, untrained": bm25 / 2})
    page = "\n".join(results.learned(list(result_folders(tmp_path))))
    means = f"{bm25.mean():.3f}", f"{1.01 * bm25.mean() + 0.15:.3f} ± 0.071*", f"{bm25.mean():.3f} ± 0.000"
    for name, cell in zip(("BM25", "BM25 + DSSM", "DSSM"), means, strict=True):
        assert f"| {name} | {cell} |" in page
    assert "| system | cacm (30 queries, 2 seeds) |" in page
    assert "| system | cacm (30 queries, 1 seed) |" in page
    assert f"| DSSM, untrained | {bm25.mean() / 2:.3f}* |" in page
    assert not list(results.learned([]))
    assert not list(results.learned([ResultFolder(tmp_path / "costs", {"pipeline": "classics", "collection": "cacm"})]))


def test_results_are_kept_without_what_names_a_machine(out, monkeypatch, tmp_path):
    written(out, monkeypatch, tmp_path)
    for folder in result_folders(out):
        kept = tmp_path / "kept" / folder.path.name
        (made_by,) = json.loads((kept / "settings.json").read_text())["made_by"]
        assert made_by == {name: folder.settings[name] for name in ("command", "seconds", "packages")}
        for values in folder.path.glob("*/values.csv.gz"):
            found = read_values(kept / values.parent.name / values.name)
            pd.testing.assert_frame_equal(found, read_values(values), atol=1e-5)


def test_systems_of_several_runs_are_kept_side_by_side(tmp_path):
    first, second, kept = (tmp_path / name for name in ("first", "second", "kept"))
    values, history = np.linspace(0, 1, 30), pd.DataFrame({"system": ["Duet", "Local"], "seed": 1, "loss": [1.0, 2.0]})
    folder = save(first, "duet", "cacm", "runs", {"Duet, seed 1": values, "Local, seed 1": values / 2})
    history.to_csv(folder / "histories.csv", index=False)
    for name, systems in (("figure4", "Duet,Local"), ("figure5-length", "Duet & Local"), ("figure6", "Duet")):
        (folder / f"{name}.csv").write_text(f"system,kind\n{systems}\n")
        (folder / f"{name}.md").write_text("of both")
    assert keep(first, kept) == ["duet-cacm"]
    folder = save(second, "duet", "cacm", "runs", {"Local, seed 1": values / 4, "DRMM, seed 1": values / 3})
    settings = json.loads((folder / "settings.json").read_text())
    settings["command"] += " --models local drmm"
    (folder / "settings.json").write_text(json.dumps(settings))
    history.assign(system=["Local", "DRMM"], loss=3.0).to_csv(folder / "histories.csv", index=False)
    (folder / "figure4.csv").write_text("system,kind\nLocal,DRMM\n")
    (folder / "figure4.md").write_text("of two")
    for _ in range(2):  # again changes nothing
        keep(second, kept)
        (found,) = result_folders(kept)
        assert {path.name for path in found.path.glob("figure*.csv")} == {"figure4.csv", "figure6.csv"}
        means = {name: by_seed.to_numpy().mean() for name, by_seed in found.values("runs")["nDCG@10"].items()}
        assert means == pytest.approx({"Duet": 0.5, "Local": 0.125, "DRMM": 1 / 6}, abs=1e-4)
        losses = pd.read_csv(found.path / "histories.csv").set_index("system")["loss"]
        assert losses.to_dict() == {"Duet": 1.0, "Local": 3.0, "DRMM": 3.0}
        commands = [each["command"] for each in found.made_by]
        assert commands == ["python -m pipelines.duet", "python -m pipelines.duet --models local drmm"]
        assert (found.path / "figure4.md").read_text() == "of two"  # that of both showed earlier values of Local
        assert not (found.path / "figure5-length.md").exists()
    values = pd.DataFrame({"name": "QL", "qid": ["q1"], "measure": "nDCG@10", "value": 1.0})
    SavedRuns(folder / "runs", {"other": "queries"}).save_values(values)
    keep(second, kept)
    (found,) = result_folders(kept)
    assert read_values(found.path / "runs" / "values.csv.gz")["name"].tolist() == ["QL"]
    assert len(found.made_by) == 1


def test_a_table_stays_where_systems_have_the_same_values_and_where_the_new_one_shows_fewer(tmp_path):
    first, second, kept = (tmp_path / name for name in ("first", "second", "kept"))
    bm25 = {"BM25": np.linspace(0, 1, 30), "SDM": np.linspace(1, 0, 30)}
    folder = save(first, "duet", "cacm", "runs", bm25 | {"DRMM, seed 1": bm25["BM25"] / 3})
    (folder / "table2-differences.csv").write_text("system,baseline\nDRMM,SDM\nDRMM,BM25\n")
    (folder / "grades.csv").write_text("DRMM \\ BM25,0\n0,7\n")
    assert keep(first, kept) == ["duet-cacm"]
    folder = save(second, "duet", "cacm", "runs", bm25 | {"Local, seed 1": bm25["BM25"] / 2})
    settings = json.loads((folder / "settings.json").read_text())
    (folder / "settings.json").write_text(json.dumps(settings | {"command": "python -m pipelines.duet --models local"}))
    (folder / "table2-differences.csv").write_text("system,baseline\nLocal,BM25\n")
    (folder / "grades.csv").write_text("Local \\ BM25,0\n0,8\n")
    for _ in range(2):  # the second time, the command is known
        keep(second, kept)
        assert (kept / "duet-cacm" / "table2-differences.csv").read_text().endswith("DRMM,SDM\nDRMM,BM25\n")
        assert (kept / "duet-cacm" / "grades.csv").read_text().endswith("0,7\n")


def test_the_page_of_the_repository_is_that_of_its_kept_results(tmp_path, kept_folders):
    """Who changes a figure by hand, or keeps results without writing the page, sees it here."""
    assert (ROOT / "RESULTS.md").read_text(encoding="utf-8") == "\n".join(results.page(kept_folders))
    costs, path = costs_by_collection(kept_folders), ROOT / "pt_neural" / "pt_docs" / "rankers.csv"
    assert path.exists() == bool(costs)
    if costs:
        table = choice_text(choice_table(costs), unfinished_rankers(kept_folders))
        pd.testing.assert_frame_equal(pd.read_csv(path, dtype=str), table, check_dtype=False)


def test_the_advice_is_what_the_table_of_all_rankers_shows(kept_folders):
    costs = costs_by_collection(kept_folders)
    table = choice_table(costs)
    gains = {
        kind: table.filter(like=f", {kind}").drop("BM25").to_numpy()
        - table.filter(like=", alone").loc["BM25"].to_numpy()
        for kind in ("alone", "mixed")
    }
    rankers = table.index.drop("BM25")
    assert set(rankers[(gains["alone"] > 0).all(axis=1)]) == {"TK", "WordTranslation", "PhraseTranslation"}
    assert set(rankers[:6]) == {"MatchTensor", "MatchTensorSSM", "TK", "MatchPyramid", "KNRM", "Duet"}
    with_ssm = table.loc["MatchTensorSSM"] - table.loc["MatchTensor"]
    assert abs(with_ssm.filter(like=", mixed").mean()) < 0.005
    quick = table.loc[["WordTranslation", "PhraseTranslation", "DSSM"], "fit, s"]
    assert (quick < 20).all()
    above = f"{(gains['mixed'] > 0).all(axis=1).sum()} of {len(rankers)} rankers"
    overview = (ROOT / "pt_neural" / "pt_docs" / "overview.rst").read_text(encoding="utf-8")
    for text in ((ROOT / "RESULTS.md").read_text(encoding="utf-8"), overview):
        text = " ".join(text.split())
        assert "only TK and the two translation models are above" in text
        assert above in text
    best = ["TK", "MatchTensor", "MatchPyramid", "KNRM", "Duet"]
    *times, last = (f"{each:.0f}" for each in table.loc[best, "ms a query"] / table.loc["DSSM", "ms a query"])
    overview = " ".join(overview.split())
    assert f"{', '.join(f'``pn.{each}``' for each in best[:-1])} or ``pn.Duet`` mixed with BM25. " in overview
    assert f"{', '.join(times)} and {last} times as long as DSSM to re-rank for a query" in overview
    assert f"{table.loc[best, 'fit, s'].min():.0f} seconds to five minutes to train here" in overview
    assert f"{table.loc[best, 'fit, s'].max() / 60:.0f}" == "5"


def test_the_overview_names_the_mixtures_that_gain_significantly():
    _, _, rest = (ROOT / "RESULTS.md").read_text(encoding="utf-8").partition("### Rankers of `pipelines.classics`")
    rows = re.findall(r"^\| BM25 \+ (\w+)[^|]*\|(.*)", rest.partition("###")[0], re.MULTILINE)
    found = {number: {name for name, cells in rows if cells.count("*") == number} for number in (2, 3)}
    assert found[3] == {"TK", "MatchPyramid", "KNRM", "ConvKNRM"}
    assert found[2] == {"MatchTensor", "MatchTensorSSM", "Duet", "PACRR", "DRMMTKS", "POSITDRMM"}
    overview = " ".join((ROOT / "pt_neural" / "pt_docs" / "overview.rst").read_text(encoding="utf-8").split())
    assert (
        "those of TK, MatchPyramid, KNRM and ConvKNRM significantly on all three, and those of both Match-Tensors, the "
        "Duet, PACRR, DRMMTKS and POSITDRMM on two"
    ) in overview


def test_the_page_of_the_later_classics_says_which_rank_best(kept_folders):
    classics = ["KNRM", "ConvKNRM", "TK", "MatchPyramid", "PACRR", "ARCI", "ARCII", "DRMMTKS", "MVLSTM", "ANMM"]
    table = choice_table(costs_by_collection(kept_folders)).loc[[*classics, "POSITDRMM"]]
    alone, mixed = (table.filter(like=f", {kind}") for kind in ("alone", "mixed"))
    text = " ".join((ROOT / "pt_neural" / "pt_docs" / "classics.rst").read_text(encoding="utf-8").split())
    best = [f"{value:.3f}".removeprefix("0") for value in (*mixed.max(), *alone.max())]
    assert f"mixture with BM25 on all three collections that we tried ({best[0]}, {best[1]} and {best[2]})" in text
    assert f"TK alone on two ({best[4]} and {best[5]}), while PACRR was .003 ahead on the other ({best[3]})" in text
    assert table["fit, s"].nlargest(2).index.tolist() == ["POSITDRMM", "TK"]
    assert set(mixed.idxmax()) == {"TK"}
    assert alone.idxmax().tolist() == ["PACRR", "TK", "TK"]
    assert f"{(alone.max() - alone.loc['TK']).iloc[0]:.3f}" == "0.003"


def test_the_page_of_the_later_classics_has_the_ends_of_their_learning_curves(kept_folders):
    (folder,) = (each for each in curve_folders(kept_folders) if each.collection == "debian/synopses")
    curves = (
        pd.read_csv(folder.path / "curves.csv").query("kind == 'alone'").set_index(["system", "queries"])["nDCG@10"]
    )
    few, many = (
        {name: f"{curves[name, queries]:.3f}".removeprefix("0") for name in ("ARCII", "MVLSTM", "ARCI")}
        for queries in (1_000, 26_000)
    )
    text = " ".join((ROOT / "pt_neural" / "pt_docs" / "classics.rst").read_text(encoding="utf-8").split())
    assert f"had {few['ARCII']} and {few['MVLSTM']} with 1,000 of them" in text
    assert (
        f"and {many['ARCII']} and {many['MVLSTM']} with 26,000. ARCI went only from {few['ARCI']} to {many['ARCI']}."
        in text
    )


def test_the_sentence_on_learning_curves_is_what_they_show(kept_folders):
    low, high = {}, {}
    for folder in curve_folders(kept_folders):
        curves = pd.read_csv(folder.path / "curves.csv")
        bm25 = folder.values("runs")["nDCG@10"]["BM25"].to_numpy().mean()
        curves["above"] = curves["nDCG@10"] > bm25
        mixed, alone = curves[curves["kind"] == "mixed"], curves[curves["kind"] == "alone"]
        fewest, most = curves["queries"].min(), curves["queries"].max()
        assert fewest == 1000
        assert not alone.loc[alone["queries"] == fewest, "above"].any()
        low[folder.collection] = set(mixed.loc[(mixed["queries"] == fewest) & ~mixed["above"], "system"])
        high[folder.collection] = set(alone.loc[(alone["queries"] == most) & alone["above"], "system"])
    assert low == {
        "cpp-docs/keywords": set(),
        "debian/synopses": {"SSI", "ARCI", "ARCII", "MVLSTM", "Duet, distributed"},
    }
    networks = {"KNRM", "MatchTensor", "DSSM", "DSSM, two networks", "Duet"}
    assert high == {"cpp-docs/keywords": networks, "debian/synopses": {"WordTranslation", "PhraseTranslation"}}


def test_ssi_is_level_with_its_untrained_start_where_it_does_not_learn(kept_folders):
    """What the sections on learning curves and on what was learned say of debian/synopses."""
    trained, kept = {}, {folder.path.name: folder for folder in kept_folders}
    for name in ("learning-curves-debian-synopses", "classics-debian-synopses"):
        histories = pd.read_csv(kept[name].path / "histories.csv").query("system.str.startswith('SSI')")
        best = histories.groupby(["system", "seed"])["dev nDCG@10"].transform("max")
        first = histories[histories["dev nDCG@10"] == best].drop_duplicates(["system", "seed"])
        trained[name] = sorted(first.loc[first["epoch"] > 0, "system"])
    fewest, most = (f"SSI, {number:,} queries" for number in (1_000, 26_000))
    assert trained == {
        "learning-curves-debian-synopses": [fewest, fewest, most],
        "classics-debian-synopses": [],
    }
    means = mean_by_query(kept["learning-curves-debian-synopses"].values("runs")["nDCG@10"])
    start = means["SSI, 10,000 queries"]  # where no training was kept
    found = [f"{means[name].mean():.3f} {ttest_rel(means[name], start).pvalue:.3f}" for name in (fewest, most)]
    assert [f"{start.mean():.3f}", *found] == ["0.432", "0.424 0.159", "0.430 0.527"]


def test_training_losses_by_learning_rate(tmp_path):
    assert list(rates_section([])) == []
    full = "SSI: W unconstrained"
    kept = {f"{full}, 10,000 words": 0.2, f"{full}, learning rate 3, 10,000 words": 0.1}
    kept |= {f"{full}, learning rate 0.3, trained longer, 10,000 words": 0.4, f"{full}, 30,000 words": 9.0}
    kept |= {"SSI: W = U'V + I, N = 200, 10,000 words": 0.3}
    losses = {name: [np.nan, *([loss] * 10), 0.0] for name, loss in kept.items()}
    histories = [
        pd.DataFrame({"epoch": range(12), "loss": loss, "system": name, "seed": seed, "dev AP": 0.5})
        for name, loss in losses.items()
        for seed in (1, 2)
    ]
    folder = save(tmp_path, "ssi", "links", "runs-collection", {"TFIDF": np.zeros(30)})
    pd.concat(histories).to_csv(folder / "histories.csv")
    (_, table) = rates_section(list(result_folders(tmp_path)))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    rates = {"0.3": "400.00", "1": "200.00", "3": "100.00"}  # without U'V + I, which has one rate only
    assert rows == [["W unconstrained", rate, loss] for rate, loss in rates.items()]


def test_what_may_have_been_trained_too_shortly_is_marked(tmp_path):
    values = np.random.default_rng(3).random(30)
    runs = {f"{name}, seed 1": values for name in ("DSSM", "BM25 + DSSM", "TK", "BM25 + TK", "SSI")}
    folder = save(tmp_path, "classics", "cacm", "runs", {"BM25": values, **runs})
    measured = {"DSSM": [0.1, 0.5, 0.4, 0.4, 0.4], "TK": [0.1, 0.2, 0.3, 0.2], "SSI": [0.5, 0.1, 0.2, 0.3, 0.3]}
    histories = [
        pd.DataFrame({"epoch": range(len(dev)), "system": name, "seed": 1, f"dev {measure}": dev})
        for (name, dev), measure in zip(measured.items(), ("nDCG@10", "nDCG@10", "RankLoss"), strict=True)
    ]
    without_dev = pd.DataFrame({"epoch": [0, 1], "system": "LSA", "seed": 1})
    pd.concat([*histories, without_dev]).to_csv(folder / "histories.csv")
    folders = list(result_folders(tmp_path))
    assert unfinished_rankers(folders) == {"TK"}
    page = "\n".join(results.learned(folders))
    mean = f"{values.mean():.3f}"
    for name, cell in (("TK", f"{mean} †"), ("BM25 + TK", f"{mean} †"), ("DSSM", mean), ("SSI", mean)):
        assert f"| {name} | {cell} |" in page
    assert page.endswith(UNFINISHED)


def test_each_stage_of_a_training_is_marked_by_itself(tmp_path):
    folder = save(tmp_path, "ssi", "cacm", "runs", {"BM25": np.ones(30)})
    stages = {"words": [0.1, 0.4, 0.3, 0.3, 0.3], "hashed": [0.1, 0.2, 0.3], "mixing": [0.5, 0.6]}
    histories = [
        pd.DataFrame({"epoch": range(len(dev)), "system": system, "seed": 1, "model": stage, "dev AP": dev})
        for system, names in {"long": ("words", "mixing"), "short": ("words", "hashed", "mixing")}.items()
        for stage, dev in stages.items()
        if stage in names
    ]
    pd.concat(histories).to_csv(folder / "histories.csv")
    (found,) = result_folders(tmp_path)
    assert found.unfinished() == {"short"}


def test_a_run_without_seeds_goes_where_the_system_has_them_now(tmp_path):
    kept, values = tmp_path / "kept", np.linspace(0, 1, 30)
    for number, names in enumerate((["LDA", "LDA, seed 14", "QL"], ["LDA, seed 13"], ["QL, seed 13", "LDA, seed 15"])):
        out = tmp_path / str(number)
        save(out, "duet", "cacm", "runs", dict.fromkeys(names, values))
        keep(out, kept)
    names = read_values(kept / "duet-cacm" / "runs" / "values.csv.gz")["name"].unique()
    assert sorted(names) == ["LDA, seed 13", "LDA, seed 14", "LDA, seed 15", "QL, seed 13"]


def ssi_results(out, means, best):
    """Table 1 of two systems, with their means and their best epoch of ten."""
    values = np.linspace(0, 2, 30)
    folder = save(
        out, "ssi", "cacm", "runs-collection", {f"{run}, seed 1": mean * values for run, mean in means.items()}
    )
    frame = read_values(folder / "runs-collection" / "values.csv.gz").assign(measure="MAP")
    SavedRuns(folder / "runs-collection", {}).save_values(frame)
    rows = [{"system": name, "row": name, "run": name} for name in means]
    pd.DataFrame(rows).to_csv(folder / "table1-collection.csv", index=False)
    histories = [
        pd.DataFrame({"epoch": range(11), "system": name, "seed": 1, "dev AP": -abs(np.arange(11) - best)})
        for name in means
    ]
    pd.concat(histories).to_csv(folder / "histories.csv", index=False)


def test_rows_of_several_runs_stand_in_one_table_of_ssi(tmp_path):
    first, second, kept = (tmp_path / name for name in ("first", "second", "kept"))
    ssi_results(first, {"full": 0.1, "low-rank": 0.2}, best=9)
    ssi_results(second, {"low-rank": 0.3, "symmetric": 0.4}, best=5)
    for out in (first, second):
        keep(out, kept)
    section = "".join(results.ssi_section("1", "Table 1", "collection", list(result_folders(kept))))
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    cells = {row[0]: row[2] for row in rows}
    assert cells["SSI: W unconstrained"] == "0.100 †"
    assert (cells["SSI: U'V + I"], cells["SSI: U'U + I"]) == ("0.300", "0.400")
    assert cells["TFIDF"] == "–"


def test_a_run_may_stand_in_two_rows_of_a_table(tmp_path):
    ssi_results(tmp_path, {"full": 0.1}, best=9)
    path = tmp_path / "ssi-cacm" / "table1-collection.csv"
    table = pd.read_csv(path)
    pd.concat([table, table.assign(row="full, again")]).to_csv(path, index=False)
    (found,) = result_folders(tmp_path)
    values = found.values("runs-collection")["MAP"]
    assert {name: by_seed.to_numpy().mean().round(3) for name, by_seed in values.items()} == {
        "full": 0.1,
        "1: full": 0.1,
        "1: full, again": 0.1,
    }
    assert found.unfinished() == {"full", "1: full", "1: full, again"}


def test_a_mean_stands_beside_its_deviation_over_seeds():
    values = {"a": pd.DataFrame({"1": [0, 2], "2": [2, 4]}), "b": pd.DataFrame({"": [0.5]})}
    assert [mean_text(values, name) for name in "abc"] == ["2.000 ± 1.414", "0.500", "–"]  # of 1 and 3


@pytest.fixture
def costs():
    tables = {}
    for name, bm25 in (("cacm", 0.5), ("vaswani", 0.4)):
        rows = [("BM25", bm25, *[None] * 4), ("DSSM", bm25 - 0.1, bm25 + 0.1, 60.0, 4.0, 20.0)]
        rows += [("Duet", bm25 + 0.1, bm25 + 0.2, 100.0, 30.0, 5.0)]
        tables[name] = pd.DataFrame(rows, columns=["system", "alone", "mixed", "fit, s", "ms a query", "MB"])
    return {name: table.set_index("system") for name, table in tables.items()}


def test_the_choice_is_in_the_order_of_gains(costs):
    table = choice_table({**costs, "vaswani": costs["vaswani"].drop("Duet")})
    assert table.index.tolist() == ["BM25", "Duet", "DSSM"]
    assert table.loc["DSSM", ["cacm, mixed", "vaswani, mixed", "fit, s"]].tolist() == pytest.approx([0.6, 0.5, 60])
    text = choice_text(table, {"Duet"}).set_index("ranker")
    assert text.loc["Duet †"].tolist() == ["0.600", "0.700", "–", "–", "100", "30.0", "5"]


def test_costs_of_reranking_are_those_of_one_run_if_there_is_one(tmp_path, costs):
    folder = save(tmp_path, "classics", "cacm", "runs", {"BM25": np.zeros(30)})
    costs["cacm"].to_csv(folder / "costs.csv")
    pd.DataFrame({"system": ["DSSM"], "ms a query": [9.0], "MB": [21.0]}).to_csv(folder / "reranking.csv", index=False)
    table = costs_by_collection(list(result_folders(tmp_path)))["cacm"]
    assert table.loc["DSSM", ["fit, s", "ms a query", "MB"]].tolist() == [60, 9, 21]
    assert table.loc["Duet", ["fit, s", "ms a query", "MB"]].tolist() == [100, 30, 5]


@pytest.mark.parametrize("epochs", [2, 5])
def test_the_choice_explains_its_marks_if_there_are_any(tmp_path, costs, epochs):
    folder = save(tmp_path, "classics", "cacm", "runs", {"BM25": np.zeros(30)})
    costs["cacm"].to_csv(folder / "costs.csv")
    dev = [0.5, *[0.1] * epochs]
    history = pd.DataFrame({"epoch": range(len(dev)), "system": "Duet", "seed": 1, "dev nDCG@10": dev})
    history.to_csv(folder / "histories.csv", index=False)
    section = "".join(choice_section(list(result_folders(tmp_path)), Path("pictures")))
    assert ("| Duet † |" in section) == (UNFINISHED in section) == (epochs == 2)


def test_the_picture_of_the_choice_names_each_ranker(costs):
    alone, mixed = choice_picture(costs).axes
    assert {text.get_text() for text in mixed.texts} == {"DSSM", "Duet"}
    assert mixed.collections[0].get_offsets()[:, 1].tolist() == pytest.approx([0.1, 0.2])
    assert alone.get_xscale() == "log"


def test_points_grow_with_the_time_of_fitting_but_do_not_cover_the_picture(costs):
    days = {name: table.assign(**{"fit, s": table["fit, s"] * 1e4}) for name, table in costs.items()}
    for table in (costs, days):
        small, large = choice_picture(table).axes[0].collections[0].get_sizes()
        assert 0 < small < large < 300


def test_the_papers_figures_stand_beside_their_orderings():
    figures = {each.full: paper_figures(each) for each in ORDERINGS}
    assert figures["the Duet is better than its local part"] == "0.530 against 0.451"
    assert figures["the Duet is better than the best baseline"] == "0.530 against 0.483"
    assert figures["a window of 3 is better than one of 1"] == "0.449 against 0.443"
    assert figures["SSM gains more from BM25 than Match-Tensor"] == "+1.33 % against +0.54 %"
    assert figures["U'V + I is better than TFIDF"] == "0.517±0.011 against 0.329±0.010"
    assert figures["bi-LSTMs are better than convolutions for SSM"] == "+0.67 %"
    assert figures["Match-Tensor is better than SSM"] == "–"
    assert figures["CLSM is better than DSSM, in-batch negatives"] == "0.449 against 0.438"  # with J = 50
    assert figures["DSSM is better than BM25, over the same words"] == "0.438 against 0.388"
    assert figures["with all words, U'V + I is better with correlated hashing of 2-grams"] == (
        "0.559±0.012 against 0.547±0.012"
    )
    assert figures["CLSM is better than BM25, over their stems"] == "–"  # a check of ours


def test_orderings_of_recipes_name_rankers_of_their_pipelines():
    names = {"BM25", *classics.MODELS}
    assert all({each.better, each.worse} <= names for each in WITH_RECIPES)
    names = {"BM25", *(spec.name for spec in learning_curves.ALL.values())}
    sides = [side for each in BY_SIZE for side in (each.better, each.worse)]
    assert names.issuperset(chain.from_iterable(side if isinstance(side, frozenset) else [side] for side in sides))


@pytest.fixture
def curves(tmp_path):
    """Learning curves of two rankers, of which CLSM gains with more queries."""
    random, runs, rows = np.random.default_rng(4), {"BM25": np.full(30, 0.5)}, []
    for system, values in {"DSSM": (0.3, 0.4), "CLSM": (0.2, 0.5)}.items():
        for size, mean in zip((1000, 3000), values, strict=True):
            for seed in (1, 2, 3):
                noise = random.normal(scale=0.01, size=30)
                runs[f"{system}, {size:,} queries, seed {seed}"] = mean + noise
            rows += [
                {"system": system, "kind": kind, "queries": size, "nDCG@10": mean, "sd": 0.01}
                for kind in ("alone", "mixed")
            ]
    folder = save(tmp_path, "learning-curves", "cacm", "runs", runs)
    pd.DataFrame(rows).to_csv(folder / "curves.csv", index=False)
    epochs = {"epoch": range(3), "dev nDCG@10": [0.1, 0.2, 0.3], "seconds": 0.1}
    pd.DataFrame({"system": "CLSM, 3,000 queries", "seed": 1, **epochs}).to_csv(folder / "histories.csv")
    return tmp_path


def test_learning_curves_show_whether_a_difference_rises(curves, monkeypatch):
    page = written(curves, monkeypatch, curves)
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in page.splitlines() if line.startswith("| ")}
    assert rows["| BM25"] == ["0.500", "0.500 |"]
    assert rows["| DSSM"] == ["0.300 ± 0.010", "0.400 ± 0.010 |"]
    assert rows["| BM25 + CLSM †"] == ["0.200 ± 0.010", "0.500 ± 0.010 |"]
    first, last, trend = rows["| CLSM is better than DSSM (CLSM, Table 5)"]
    assert first.startswith("no: -0.")
    assert last.startswith("yes: +0.")
    assert trend == "rises |"
    assert "| CLSM is better than BM25 (CLSM, Table 5)" in rows
    assert "| the Duet is better than BM25 (Duet, Table 2)" not in rows
    # Of the models that DSSM is compared with, only BM25 was run.
    assert "| DSSM is better than all models without a network (CLSM, section 5.2)" not in rows
    assert (curves / "learning-curves-cacm.png").stat().st_size > 10_000


def test_a_trend_is_tested_over_seeds():
    """Two seeds are too few, and a difference that one training of three makes is no trend."""
    ordering = Ordering("x", "y", "z", "p", "r", "DSSM", "BM25")
    first, last = with_queries(ordering, 1000), with_queries(ordering, 3000)
    assert (last.better, last.worse) == ("DSSM, 3,000 queries", "BM25")
    noise = np.random.default_rng(6).normal(scale=0.01, size=30)

    def trend(rises):
        few = {str(seed): 0.3 + noise for seed in range(len(rises))}
        many = {str(seed): 0.3 + rise - noise for seed, rise in enumerate(rises)}
        values = systems(**{"BM25": {"": 0.3}, "DSSM, 1,000 queries": few, "DSSM, 3,000 queries": many})
        return trend_of(first, last, values)

    assert trend([0.1, 0.11, 0.1]) == "rises"
    assert trend([-0.1, -0.11, -0.1]) == "falls"
    assert trend([0.0, 0.0, 0.3]) == "level"
    assert trend([0.1, 0.11]) is None
    assert trend_of(first, with_queries(ordering, 9), {}) is None


def test_peers_stand_beside_ours(tmp_path):
    ours, theirs = np.random.default_rng(7).random((2, 30))
    runs = {"BM25": ours, "KNRM, ours, seed 1": ours, "KNRM, ours, seed 2": ours + 0.1, "ANMM, ours, seed 1": ours}
    runs |= {f"KNRM, matchzoo-py, seed {seed}": theirs for seed in (1, 2)}
    save(tmp_path, "peers", "cacm", "runs", runs)
    section = "".join(peer_section(list(result_folders(tmp_path))))
    means = f"{ours.mean() + 0.05:.3f} ± 0.071", f"{theirs.mean():.3f} ± 0.000"
    assert f"| KNRM | {' | '.join(means)} | {ours.mean() + 0.05 - theirs.mean():+.3f}, p = " in section
    assert "ANMM" not in section  # matchzoo-py's was not run
    assert "cacm (30 queries; BM25 " in section
    assert not list(peer_section([]))


def test_the_sentences_on_matchzoo_are_what_the_kept_results_show(kept_folders):
    values = next(folder for folder in kept_folders if folder.pipeline == "peers").values("runs")
    rows = peer_table(values)
    difference, p = (rows["difference"].str.split(", ").str[part] for part in (0, 1))
    significant = p.str.split().str[-1].astype(float) < 0.05
    difference = difference.astype(float)
    section = " ".join("".join(peer_section(kept_folders)).split())
    assert significant.sum() == 5
    assert (difference[significant] > 0).all()
    assert "Five differences are significant, all in our favour" in section
    level = rows.loc[difference.abs() < 0.01, "ranker"].tolist()
    assert level == ["KNRM", "MatchPyramid", "MVLSTM", "ConvKNRM"]
    assert "for KNRM, MatchPyramid, MV-LSTM and ConvKNRM, the two are within .01" in section
    constant = values["nDCG@10"]["ARCI, matchzoo-py"]["13"]
    one_score = []
    for ranker in rows["ranker"]:
        found = values["nDCG@10"][f"{ranker}, matchzoo-py"]
        one_score += [ranker for seed in found if found[seed].equals(constant)]
    assert sorted(one_score) == ["ARCI", "Duet", "MVLSTM"]
    page = " ".join((ROOT / "pt_neural" / "pt_docs" / "classics.rst").read_text(encoding="utf-8").split())
    assert rows.loc[significant & rows["ranker"].isin(["ARCI", "ARCII", "MVLSTM"]), "ranker"].tolist() == ["ARCII"]
    assert "only that of ARCII is significant, in our favour" in page


def test_the_runs_are_repeated_where_their_collections_are(tmp_path, monkeypatch, capsys):
    values = {"BM25": np.ones(30)}
    for collection, command in (
        ("cacm", "python -m pipelines.quickstart --dataset neural:folder:$PT_NEURAL_COLLECTIONS/cacm"),
        ("neural:pydocs", "python -m pipelines.quickstart --dataset neural:pydocs"),
    ):
        folder = save(tmp_path, "quickstart", collection, "runs", values)
        settings = json.loads((folder / "settings.json").read_text())
        (folder / "settings.json").write_text(json.dumps({**settings, "command": command}))
    ran = []
    monkeypatch.setattr(again.subprocess, "run", lambda words, check: ran.append(words) or CompletedProcess(words, 1))
    monkeypatch.delenv("PT_NEURAL_COLLECTIONS", raising=False)
    folders = list(result_folders(tmp_path))
    again.run_again(folders, Path("out"))
    (words,) = ran
    assert words[1:] == ["-m", "pipelines.quickstart", "--dataset", "neural:pydocs", "--out", "out"]
    printed = capsys.readouterr().out
    assert "set PT_NEURAL_COLLECTIONS to a folder" in printed
    assert "failed: run it again" in printed
    monkeypatch.setenv("PT_NEURAL_COLLECTIONS", "/collections")
    again.run_again(folders, Path("out"))
    assert "neural:folder:/collections/cacm" in ran[-1]


def test_rows_of_a_repeated_command_are_kept_before_the_next_one(tmp_path, monkeypatch):
    """Both commands write the same table, each with a row of its own."""
    folder, kept, out = tmp_path / "first", tmp_path / "kept", tmp_path / "out"
    commands = [f"python -m pipelines.ssi --rows {row}" for row in ("full", "low-rank")]

    def write(place, command, value):
        path = save(place, "ssi", "cacm", "runs-collection", {command: np.ones(30)})
        settings = json.loads((path / "settings.json").read_text())
        (path / "settings.json").write_text(json.dumps({**settings, "command": command}))
        rows = pd.DataFrame({"MAP": [value], "row": [command.split()[-1]], "run": [command]})
        rows.to_csv(path / "table1-collection.csv", index=False)

    for command in commands:
        write(folder, command, 0.1)
        keep(folder, kept)

    def run(words, check):
        write(out, " ".join(["python", *words[1:-2]]), 0.2)
        return CompletedProcess(words, 0)

    monkeypatch.setattr(again.subprocess, "run", run)
    again.run_again(list(result_folders(kept)), out, kept)
    (found,) = result_folders(kept)
    assert [each["command"] for each in found.made_by] == commands
    table = pd.read_csv(found.path / "table1-collection.csv")
    assert table.set_index("row")["MAP"].to_dict() == {"full": 0.2, "low-rank": 0.2}


@pytest.mark.parametrize("ends", [KeyboardInterrupt, None])
def test_commands_keep_their_order_whatever_ends_a_repetition(ends, tmp_path, monkeypatch):
    """The second command has a system of the first one anew, whose value is the one to keep."""
    kept, out, later = tmp_path / "kept", tmp_path / "out", {"python -m pipelines.duet": 0.1}
    later |= {f"python -m pipelines.duet --epochs {epochs}": 0.5 + epochs / 1000 for epochs in (100, 200)}

    def write(command):
        path = save(out, "duet", "cacm", "runs", {"Duet, seed 1": np.full(30, later[command])})
        settings = json.loads((path / "settings.json").read_text())
        (path / "settings.json").write_text(json.dumps({**settings, "command": command}))

    for command in later:
        write(command)
        keep(out, kept)
    calls = []

    def run(words, check):
        command = " ".join(["python", *words[1:-2]])
        calls.append(command)
        if len(calls) == 2 and ends is not None:
            raise ends
        write(command)
        return CompletedProcess(words, len(calls) == 2)

    monkeypatch.setattr(again.subprocess, "run", run)
    for _ in range(2):
        with suppress(KeyboardInterrupt):
            again.run_again(list(result_folders(kept)), out, kept)
    (found,) = result_folders(kept)
    assert [each["command"] for each in found.made_by] == list(later)
    assert calls[-1] == list(later)[-1]
    assert read_values(found.path / "runs" / "values.csv.gz")["value"].unique().tolist() == [0.7]


def test_a_shown_table_gets_the_rows_of_later_runs(tmp_path):
    kept, caption = tmp_path / "kept", "Figure 4, difference from BM25 in percent. cacm"
    for number, gains in enumerate(({"BM25": 0.0, "SSM": -3.5}, {"SSM": -6.0, "Match-Tensor": 2.25})):
        values = {name: np.full(30, 1 + gain) for name, gain in gains.items()}
        path = save(tmp_path / str(number), "match-tensor", "cacm", "runs", values)
        rows = pd.DataFrame({"system": list(gains), "nDCG@10": list(gains.values())})
        rows.to_csv(path / "figure4-gains.csv", index=False)
        (path / "figure4-gains.md").write_text(f"{caption}\n\n{markdown(rows)}\n")
        keep(tmp_path / str(number), kept)
    _, details = shown_section(list(result_folders(kept)))
    assert caption in details
    for row in ("| BM25 | 0.0 |", "| SSM | -6.0 |", "| Match-Tensor | 2.25 |"):
        assert row in details
    assert details.count("SSM") == 1


def test_a_learning_curve_gets_the_sizes_and_systems_of_later_runs(tmp_path):
    kept = tmp_path / "kept"
    for number, (system, areas) in enumerate(
        [("SSM", {500: 0.6, 1000: 0.7}), ("Match-Tensor", {500: 0.8}), ("SSM", {1000: 0.75, 2000: 0.9})]
    ):
        values = {f"{system}, {queries} queries": np.full(30, area) for queries, area in areas.items()}
        path = save(tmp_path / str(number), "match-tensor", "cacm", "runs", values)
        rows = pd.DataFrame({"system": system, "queries": areas.keys(), "AUC": areas.values()})
        rows.to_csv(path / "figure3.csv", index=False)
        (path / "figure3.md").write_text(f"Figure 3. cacm\n\n{markdown(rows)}\n")
        keep(tmp_path / str(number), kept)
    found = pd.read_csv(kept / "match-tensor-cacm" / "figure3.csv").set_index(["system", "queries"])["AUC"].to_dict()
    assert found == {("SSM", 500): 0.6, ("SSM", 1000): 0.75, ("SSM", 2000): 0.9, ("Match-Tensor", 500): 0.8}


def test_some_tables_stand_as_they_were_written(out, monkeypatch, tmp_path):
    folder = next(each.path for each in result_folders(out) if each.pipeline == "duet")
    (folder / "figure4.md").write_text("Figure 4. A caption\n\n| a |\n| --- |\n| 1 |\n")
    (folder / "figure9.md").write_text("Not shown\n\n| a |\n")
    page = written(out, monkeypatch, tmp_path)
    assert "<details><summary>Figure 4. A caption</summary>\n\n| a |\n| --- |\n| 1 |\n\n</details>" in page
    assert "Not shown" not in page


def test_the_folder_of_collections_may_have_spaces_in_its_name(tmp_path, monkeypatch):
    command = "python -m pipelines.duet --dataset neural:folder:$PT_NEURAL_COLLECTIONS/cacm --grades 'all grades'"
    ran = []
    monkeypatch.setattr(again.subprocess, "run", lambda words, check: ran.append(words) or CompletedProcess(words, 1))
    monkeypatch.setenv("PT_NEURAL_COLLECTIONS", "/home/me/my data")
    again.run_again([ResultFolder(tmp_path, {"command": command})], Path("out"))
    (words,) = ran
    dataset = "neural:folder:/home/me/my data/cacm"
    assert words[1:] == ["-m", "pipelines.duet", "--dataset", dataset, "--grades", "all grades", "--out", "out"]
