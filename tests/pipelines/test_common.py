import argparse
import gzip
import json
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import RR, nDCG
from scipy.stats import ttest_rel

import pt_neural as pn
from pipelines import __main__ as listing
from pipelines import checkpoints, recipes, settings
from pipelines.common.arguments import command, grade_scheme
from pipelines.common.collection import Split, load
from pipelines.common.comparison import Comparison
from pipelines.common.runs import SavedRuns, write_whole
from pipelines.common.trained import chosen_grades, hard_negatives
from pipelines.common.workspace import Workspace, _digest, markdown
from pt_neural.experiment import AlphaCurve
from tests.pipelines.conftest import write_collection

QIDS = [f"q{number}" for number in range(12)]


def ranker(places):
    """Retrieves ten documents per query, the relevant one at the given place; none if the place is None."""
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
    comparison = Comparison(split, measures, SavedRuns(folder, {}))
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
    table = compared({"one": ranker([4] * 9 + [None] * 3), "two": seeds}, split, [RR], tmp_path)
    assert table["RR"].tolist() == ["0.1875", "0.7500 ± 0.3536"]  # 0.25 * 9 / 12; the root of 2 * 0.25 ** 2
    runs = sorted(path.name for path in tmp_path.glob("*.res.gz"))
    assert runs == ["one.res.gz", "two, seed 13.res.gz", "two, seed 14.res.gz"]
    table = compared({"one": {13: ranker([2] * 12)}}, split, [RR], tmp_path, {"one": "*"})
    assert table["RR"].tolist() == ["0.5000"]


def test_the_frame_has_means_deviations_and_p_values_as_numbers(split, tmp_path):
    systems = {"one": ranker([4] * 12), "two": {13: ranker([1] * 12), 14: ranker([2] * 11 + [1])}}
    comparison = Comparison(split, [RR], SavedRuns(tmp_path, {}))
    comparison.add(systems)
    frame = comparison.frame(["one", "two"], ["one"]).set_index("system")
    means = [1.0, (11 * 0.5 + 1) / 12]
    np.testing.assert_allclose(frame["RR"], [0.25, np.mean(means)])
    np.testing.assert_allclose(frame["RR, deviation"], [np.nan, np.std(means, ddof=1)])
    p_value = ttest_rel([0.75] * 11 + [1.0], [0.25] * 12).pvalue
    np.testing.assert_allclose(frame["RR, p against one"], [np.nan, p_value])


def test_queries_without_judgements_do_not_count(split, tmp_path):
    comparison = Comparison(Split(split.topics, split.qrels[:6]), [RR], SavedRuns(tmp_path, {}))
    for name, system in {"one": ranker([1] * 12), "two": {13: ranker([2] * 12), 14: ranker([4] * 12)}}.items():
        comparison.add({name: system})  # reads the values that were saved before
    assert comparison.table(["one", "two"], {})["RR"].tolist() == ["1.0000", "0.3750 ± 0.1768"]
    assert sorted(comparison.values(RR, ["one", "two"]).index) == QIDS[:6]
    values = SavedRuns(tmp_path, {}).values()
    assert values.groupby("name")["qid"].agg(sorted).tolist() == [QIDS[:6]] * 3


def test_saved_runs_are_not_made_again(split, tmp_path):
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
    values = SavedRuns(tmp_path, {}).values()
    assert sorted(values["name"].unique()) == ["one", "three", "two"]
    assert values.groupby("name")["qid"].nunique().tolist() == [12, 12, 12]


def test_runs_with_other_settings_are_made_again(split, tmp_path):
    SavedRuns(tmp_path, {"depth": 10}).run("one", lambda: ranker([1] * 12).transform(split.topics))
    run = SavedRuns(tmp_path, {"depth": 20}).run("one", lambda: ranker([2] * 12).transform(split.topics))
    assert run["rank"][run["docno"] == "dq0"].tolist() == [1]
    assert len(list(tmp_path.glob("*.res.gz"))) == 1


def test_an_interrupted_run_leaves_no_file(split, tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    runs = SavedRuns(tmp_path, {})
    with pytest.raises(KeyboardInterrupt):
        runs.run("one", interrupted)
    assert not list(tmp_path.glob("*.res.gz"))


def test_the_same_text_gives_the_same_bytes_later(tmp_path, monkeypatch):
    files = []
    for number, seconds in enumerate((1e9, 1.5e9)):
        monkeypatch.setattr(time, "time", lambda seconds=seconds: seconds)
        path = tmp_path / str(number) / "values.csv.gz"
        path.parent.mkdir()
        write_whole(path, lambda file: file.write("Königsberg\n"))
        assert gzip.decompress(path.read_bytes()).decode() == "Königsberg\n"
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_an_artifact_that_another_pipeline_built_meanwhile_is_loaded(folder, arguments):
    workspace = Workspace(arguments, "pipeline", load(f"neural:folder:{folder}"))

    def build(path):
        path.write_text("theirs")
        raise FileExistsError(path)

    assert workspace.built("shared", build, Path.read_text) == "theirs"


def test_names_and_scores_come_back_as_they_were(tmp_path):
    frame = pd.DataFrame(
        {
            "qid": ["01", "01", "nan"],
            "docno": ["a b", "null", 'quoted "c"'],
            "score": [1 / 3, -1e-17, 2.0],
            "rank": [0, 1, 0],
        }
    )
    runs = SavedRuns(tmp_path, {})
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


def test_training_queries_with_the_words_of_a_test_query_are_left_out(tmp_path, capsys):
    documents = [{"_id": "d1", "title": "", "text": "words"}]
    texts = {"q1": "File I/O", "q2": "file i o", "q3": "i o file", "q4": "other words", "page": "a page"}
    queries = [{"_id": qid, "text": text} for qid, text in texts.items()]
    qrels = {"train": ["q2", "q3", "q4", "page"], "dev": ["q4"], "test": ["q1", "page"]}
    qrels = {split: [(qid, "d1", 1) for qid in qids] for split, qids in qrels.items()}
    folder = write_collection(tmp_path / "leaking", documents, queries, qrels)
    train = load(f"neural:folder:{folder}").train
    assert train.topics["qid"].tolist() == train.qrels["qid"].tolist() == ["q3", "q4", "page"]
    assert capsys.readouterr().out == ("leaking: 1 training queries left out, which have the words of a test query\n")


@pytest.fixture
def arguments(tmp_path):
    return argparse.Namespace(out=tmp_path / "out", seeds=[13], dataset="any")


def test_a_folder_of_the_same_name_elsewhere_has_artifacts_and_runs_of_its_own(folder, arguments, tmp_path):
    """Results are named after the collection, so that another one of that name would take them for its own."""
    shutil.copytree(folder, tmp_path / folder.name)
    here, there = (
        Workspace(arguments, "duet", load(f"neural:folder:{place}")) for place in (folder, tmp_path / folder.name)
    )
    assert here.results == there.results
    assert here.artifacts != there.artifacts
    run = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0], "rank": [0]})
    here.runs().save_run("one", run)
    assert here.runs().run("one", lambda: None)["docno"].tolist() == ["d1"]
    assert there.runs().run("one", lambda: run.assign(docno="d2"))["docno"].tolist() == ["d2"]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("qrels/test.tsv", "q35\td1\t1\n"),
        ("queries.jsonl", '\n{"_id": "q36", "text": "river"}'),
        ("corpus.jsonl", '\n{"_id": "d60", "title": "", "text": "river"}'),
        ("qrels/more.tsv", "q0\td0\t1\n"),
    ],
)
@pytest.mark.parametrize("depends_on", ["itself", "another"])
def test_an_edited_folder_has_artifacts_and_runs_of_its_own(folder, arguments, tmp_path, file, line, depends_on):
    place = shutil.copytree(folder, tmp_path / "edited")
    names = [f"neural:folder:{path}" for path in ([place] if depends_on == "itself" else [folder, place])]
    run = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "score": [1.0], "rank": [0]})

    def workspace():
        return Workspace(arguments, "duet", *map(load, names))

    first = workspace()
    first.runs().save_run("one", run)
    for path in (path for path in place.rglob("*") if path.is_file()):
        path.touch()  # files with new times are no others
    assert workspace().artifacts == first.artifacts
    assert workspace().runs().run("one", lambda: None)["docno"].tolist() == ["d1"]
    with (place / file).open("a") as opened:
        opened.write(line)
    assert workspace().artifacts != first.artifacts
    assert workspace().runs().run("one", lambda: run.assign(docno="d2"))["docno"].tolist() == ["d2"]


def test_documents_that_a_folder_shares_with_another_are_among_its_files(folder, arguments, tmp_path):
    """Git writes a link as a small file on systems that have none."""
    place = shutil.copytree(folder, tmp_path / "parent" / "links")
    shutil.move(place / "corpus.jsonl", place.parent / "corpus.jsonl")
    (place / "corpus.jsonl").write_text("../corpus.jsonl")
    artifacts = []
    for _ in range(2):
        artifacts.append(Workspace(arguments, "duet", load(f"neural:folder:{place}")).artifacts)
        (place.parent / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "river"}')
    assert artifacts[0] != artifacts[1]


CHOSEN = {
    "rows": (["full"], ["low-rank"]),
    "row_note": ("", ", N = 200"),
    "name_note": ("", ", once more"),
    "keywords": ([5], [10]),
    "dims": ([100], [200]),
    "nonzeros": ([100], []),
    "truncated_dims": ([100], [200]),
    "embedded_terms": ([1000], [3000]),
    "shares": ([0.1], [1.0]),
    "figure_dims": ([50], [100]),
    "single_fields": (["text"], ["title"]),
    "queries_train": (500, 1000),
    "trials": (8, 16),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_runs_and_choices_stay_when_others_are_made(folder, arguments, name):
    assert docnos_and_choices(folder, arguments, name, CHOSEN[name]) == [("d0", 0), ("d0", 0)]


@pytest.mark.parametrize("name", ["dim", "mates", "hash_sizes"])
def test_runs_and_choices_of_other_settings_are_made_again(folder, arguments, name):
    assert docnos_and_choices(folder, arguments, name, (1, 2)) == [("d0", 0), ("d1", 1)]


def docnos_and_choices(folder, arguments, name, values):
    """With each value of an argument: the document of a run, and a setting that is chosen; d0 and 0 at first."""
    collection, found = load(f"neural:folder:{folder}"), []
    for number, value in enumerate(values):
        setattr(arguments, name, value)
        workspace = Workspace(arguments, "ssi", collection)
        run = pd.DataFrame({"qid": ["q1"], "docno": [f"d{number}"], "score": [1.0], "rank": [0]})
        (docno,) = workspace.runs().run("one", run.copy)["docno"]
        found.append((docno, workspace.chosen("bm25", lambda number=number: {"k1": number})["k1"]))
    return found


def test_seconds_are_those_of_the_same_command_alone(folder, arguments, monkeypatch):
    collection, seconds = load(f"neural:folder:{folder}"), []
    for options in (["--depth", "10"], ["--depth", "10"], ["--depth", "20"]):
        monkeypatch.setattr(sys, "argv", ["duet", *options])
        workspace = Workspace(arguments, "duet", collection)
        time.sleep(0.3)
        workspace.save_settings()
        seconds.append(json.loads((workspace.results / "settings.json").read_text())["seconds"])
    assert 0.3 <= seconds[0] < seconds[1]
    assert seconds[1] >= 0.6
    assert seconds[2] < seconds[1]


def test_an_interrupted_command_keeps_the_seconds_of_what_it_built(folder, arguments, monkeypatch):
    collection, times = load(f"neural:folder:{folder}"), []
    monkeypatch.setattr(sys, "argv", ["duet"])
    Workspace(arguments, "duet", collection).built("one", lambda path: time.sleep(0.3) or path.mkdir(), Path)
    for options in (["--depth", "10"], []):  # another command between them changes nothing
        monkeypatch.setattr(sys, "argv", ["duet", *options])
        workspace = Workspace(arguments, "duet", collection)
        workspace.save_settings()
        times.append(json.loads((workspace.results / "settings.json").read_text())["seconds"])
    assert times[0] < 0.3 <= times[1]


@pytest.mark.parametrize("pipeline", [checkpoints, recipes, settings])
def test_a_pipeline_that_trains_once_refuses_more_seeds(run, capsys, pipeline):
    with pytest.raises(SystemExit):
        run(pipeline, "--seeds", "13", "14")
    assert "argument --seeds: this pipeline trains with one seed only" in capsys.readouterr().err


def test_other_fields_have_artifacts_of_their_own(folder, arguments):
    workspace = Workspace(arguments, "clsm", load(f"neural:folder:{folder}"))
    assert "document" not in workspace.forward_index(["text"]).vocabulary.terms
    assert "document" in workspace.forward_index().vocabulary.terms
    assert {path.name for path in workspace.artifacts.iterdir() if path.is_dir()} == {"forward-text", "forward"}


def test_seconds_of_fitting_are_those_of_the_fit(folder, arguments, monkeypatch):
    workspace = Workspace(arguments, "classics", load(f"neural:folder:{folder}"))
    documents = workspace.forward_index()
    fit_corpus = pn.TFIDF.fit_corpus
    monkeypatch.setattr(pn.TFIDF, "fit_corpus", lambda *args: time.sleep(0.2) or fit_corpus(*args))
    for _ in range(2):  # the second time it is loaded
        workspace.fitted(pn.TFIDF(documents=documents))
    assert 0.2 <= workspace.seconds_of_fitting(pn.TFIDF(documents=documents)) < 20


def test_stored_models_are_identified_by_settings_and_examples():
    frame = pd.DataFrame({"qid": ["q1"], "query": ["words"], "docno": ["d1"], "label": [1]})

    def digest(frames=(frame,), layers=(300, 128), fields=("title", "text"), **training):
        return _digest(pn.DSSM(layers=layers, fields=fields, training=pn.Training(**training)), frames)

    assert digest() == digest(verbose=False)
    others = [digest(epochs=3), digest(max_groups=8), digest(layers=(64, 32)), digest(fields=("text",))]
    others += [digest([frame, frame]), digest([frame.assign(docno="d2")])]
    assert len({digest(), *others}) == 7


def test_the_command_line_leaves_the_location_of_folders_open(folder, monkeypatch):
    monkeypatch.setenv("PT_NEURAL_COLLECTIONS", str(folder.parent))
    given = ["--out", "elsewhere", "--dataset=any", "--mates", f"neural:folder:{folder}", "--grades", "all grades"]
    words = command("match-tensor", given, load(f"neural:folder:{folder}"))
    place = "neural:folder:$PT_NEURAL_COLLECTIONS/folder"
    assert words == f"python -m pipelines.match_tensor --dataset {place} --mates {place} --grades 'all grades'"


def test_the_command_line_keeps_spaces_in_the_name_of_a_folder(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("PT_NEURAL_COLLECTIONS", str(tmp_path))
    shutil.copytree(folder, tmp_path / "my data")
    words = command("duet", [], load(f"neural:folder:{tmp_path}/my data"))
    assert words == "python -m pipelines.duet --dataset neural:folder:$PT_NEURAL_COLLECTIONS/'my data'"


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
        with pytest.raises(argparse.ArgumentTypeError, match="must be auto, all, or like"):
            grade_scheme(wrong)


def test_markdown():
    assert markdown(pd.DataFrame({"a": [1], "b": ["x"]})) == "| a | b |\n| --- | --- |\n| 1 | x |"


def test_all_pipelines_are_listed(capsys):
    listing.main()
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    papers = ["clsm", "desm", "duet", "match_tensor", "ssi"]
    others = [
        "checkpoints",
        "classics",
        "learning_curves",
        "pretraining",
        "quickstart",
        "recipes",
        "results",
        "settings",
    ]
    assert names == sorted([*papers, *others])


def test_pseudo_queries_train_beside_the_documents_to_rank(test_only, arguments):
    """What learns has documents without their queries; what ranks has them as they are."""
    arguments.seed, arguments.pseudo_queries = 13, "span"
    workspace = Workspace(arguments, "clsm", load(f"neural:folder:{test_only}"))
    learning = workspace.learning
    assert workspace.collection.train is workspace.collection.dev is None
    assert len(learning.collection.train.topics) > 40
    assert len(learning.collection.dev.topics) > 1
    assert learning.results == workspace.results
    whole, without = (len(each.forward_index().all().terms) for each in (workspace, learning))
    assert whole > without > 0.8 * whole
    workspace.learned.add("DSSM")
    workspace.save_table("table", pd.DataFrame({"system": ["BM25", "BM25 + DSSM"]}), "Table")
    text = (workspace.results / "table.md").read_text()
    assert text.startswith("Table; † learned from pseudo-queries (span), not from real ones\n")
    assert "| BM25 |" in text
    assert "| BM25 + DSSM † |" in text
    assert pd.read_csv(workspace.results / "table.csv")["system"].tolist() == ["BM25", "BM25 + DSSM"]


def test_a_kept_curve_is_the_one_that_was_made(tmp_path):
    values = pd.DataFrame([[0.1, 1 / 3], [0.5, 0.7]], index=[0.0, 0.29], columns=["q1", "q2"])
    made = SavedRuns(tmp_path, {}).curve("a + b", lambda: AlphaCurve(values, nDCG @ 10))
    kept = SavedRuns(tmp_path, {}).curve("a + b", lambda: pytest.fail("made again"))
    pd.testing.assert_frame_equal(kept.per_query, values, check_exact=True)
    assert (kept.alpha, kept.measure) == (made.alpha, made.measure) == (0.29, "nDCG@10")
