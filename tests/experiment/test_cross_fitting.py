"""Cross-fitting and grid searches on a planted collection: nothing ranks a query that it was fitted on."""

import os
import runpy
import subprocess
import sys

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, nDCG

import pt_neural as pn
from pt_neural.experiment import CrossFitted, Tunable, cross_fit, cross_validate
from pt_neural.experiment._copies import Copies

WORDS = ["apple", "banana", "cherry", "grape", "kiwi", "lemon", "mango", "melon", "olive", "peach", "pear", "plum"]
TOPICS = pd.DataFrame({"qid": [f"q{i}" for i in range(12)], "query": WORDS})
FOLDS = {f"q{i}": "abcd"[i % 4] for i in range(12)}
QRELS = pd.DataFrame({"qid": TOPICS["qid"], "docno": [f"d{i}" for i in range(12)], "label": 1})
CANDIDATES = TOPICS.merge(
    pd.DataFrame({"docno": [f"d{i}" for i in range(12)], "text": [f"the {w} tree" for w in WORDS]}), how="cross"
).assign(score=0.0, rank=0)
SOURCE = pt.Transformer.from_df(CANDIDATES)
QUIET = pn.Training(epochs=1, device="cpu", verbose=False)


class Noted(pn.WordTranslation):
    """Notes the queries of each fit and of each ranking."""

    artifact_format = "noted"
    fits: list = []

    def fit(self, frame, qrels, dev=None, dev_qrels=None):
        self.seen = set(frame["qid"]) | (set() if dev is None else set(dev["qid"]))
        type(self).fits.append((sorted(set(frame["qid"])), None if dev is None else sorted(set(dev["qid"]))))
        assert set(qrels["qid"]) <= self.seen
        return super().fit(frame, qrels, dev, dev_qrels)

    def transform(self, inp):
        self.ranked = {*getattr(self, "ranked", ()), *inp["qid"]}
        return super().transform(inp)


def noted() -> Noted:
    Noted.fits = []
    return Noted(iterations=2, verbose=False)


class Embedded(Noted):
    """Scores the documents that contain the query by the number that its word embeddings hold."""

    artifact_format = "embedded"
    components = {"spaces": pn.EmbeddingSpaces.load}

    def __init__(self, spaces, **options):
        self.spaces = spaces
        super().__init__(iterations=1, **options)

    def score(self, frame):
        found = [query in text.split() for query, text in zip(frame["query"], frame["text"], strict=True)]
        return self.spaces.in_vectors[0, 0] * np.array(found, dtype=np.float64)


def embedded(number: float) -> pn.EmbeddingSpaces:
    """Spaces with one number; all have the same repr."""
    return pn.EmbeddingSpaces.from_vectors(["tree"], [[number]], [[number]])


def state(ranker):
    return ranker.settings(), ranker.is_fitted, ranker.verbose


def test_each_fold_is_ranked_by_what_has_not_seen_it():
    ranker = noted()
    before = state(ranker)
    result = cross_fit(SOURCE >> ranker, TOPICS, QRELS, FOLDS, verbose=False)
    assert state(ranker) == before
    assert Noted.fits == [
        (sorted(q for q in FOLDS if FOLDS[q] not in (test, dev)), sorted(q for q in FOLDS if FOLDS[q] == dev))
        for test, dev in zip("abcd", "bcda", strict=True)
    ]
    assert result.run.groupby("qid").size().eq(12).all()
    assert set(result.run["qid"]) == set(TOPICS["qid"])
    assert list(result.run) == ["qid", "query", "docno", "score", "rank"]
    assert dict(zip(result.folds["qid"], result.folds["fold"], strict=True)) == FOLDS
    for fold, pipeline in result.pipelines.items():
        topics = TOPICS[TOPICS["qid"].map(FOLDS) == fold]
        assert not set(topics["qid"]) & pipeline[1].seen
        again = pipeline.transform(topics).merge(result.run, on=["qid", "docno"])
        assert again["score_x"].tolist() == again["score_y"].tolist()
    assert repr(result) == "CrossFitted(4 folds, 12 queries)"
    assert result.choices["fold"].tolist() == list("abcd")
    assert len(pt.Experiment([result], TOPICS, QRELS, [AP])) == 1


def test_a_grid_without_fits_is_chosen_on_all_other_folds():
    good = CANDIDATES.merge(QRELS, on=["qid", "docno"], how="left")["label"].notna().to_numpy()
    side = pt.Transformer.from_df(CANDIDATES.assign(score=good.astype(float)))
    mixture = pn.Mixture(side, pt.Transformer.from_df(CANDIDATES.assign(score=1.0 - good)), alpha=0.1)
    result = cross_fit(mixture, TOPICS, QRELS, 3, grid={mixture: {"alpha": [0.2, 0.9]}}, measure="RR", verbose=False)
    assert result.choices["Mixture alpha"].tolist() == [0.9] * 3
    assert result.choices["RR"].tolist() == [1.0] * 3
    assert len(result.scan) == 6
    assert mixture.alpha == 0.1
    worse = cross_fit(
        mixture,
        TOPICS,
        QRELS,
        3,
        grid={mixture: {"alpha": [0.2, 0.9]}},
        measure=pn.experiment.RankLoss,
        verbose=False,
    )
    assert worse.choices["Mixture alpha"].tolist() == [0.9] * 3  # whose smallest value is best


def test_resumes_where_it_was_interrupted(tmp_path, monkeypatch):
    grid = {"iterations": [2, 1]}
    ranker = noted()
    mixture = pn.Mixture(ranker, alpha=0.5)
    given = (SOURCE >> mixture, TOPICS, QRELS, FOLDS)
    options = {"grid": {mixture: {"alpha": [0.2, 0.7]}, ranker: grid}, "verbose": False}
    whole = cross_fit(*given, **options)
    assert len(Noted.fits) == 4 * 2  # not again for each alpha
    assert list(whole.scan) == [
        "fold",
        "Noted iterations",
        "Mixture alpha",
        "nDCG@10",
        "chosen",
    ]

    fit, calls = Noted.fit, []

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return fit(self, *arguments)

    monkeypatch.setattr(Noted, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cross_fit(*given, **options, directory=tmp_path / "kept")
    resumed = cross_fit(*given, **options, directory=tmp_path / "kept")
    assert len(calls) == 4 + 8 - 3
    kept = cross_fit(*given, **options, directory=tmp_path / "kept")
    assert len(calls) == 4 + 8 - 3
    for result in (resumed, kept):
        pd.testing.assert_frame_equal(result.run, whole.run)
        pd.testing.assert_frame_equal(result.scan, whole.scan)
        for fold, pipeline in result.pipelines.items():
            assert (
                pipeline.transform(TOPICS)["score"].tolist()
                == whole.pipelines[fold].transform(TOPICS)["score"].tolist()
            )
    for other in ({"measure": AP}, {"grid": None}):
        with pytest.raises(ValueError, match="another cross-fit"):
            cross_fit(*given, **{**options, **other}, directory=tmp_path / "kept")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(ValueError, match="something else"):
        cross_fit(*given, **options, directory=tmp_path / "mine")


def test_kept_runs_may_hold_any_query(tmp_path):
    queries = ["a\rb", 'a "b', "a\nb", "a, b", *WORDS[4:]]
    candidates = CANDIDATES.assign(query=CANDIDATES["qid"].map(dict(zip(TOPICS["qid"], queries, strict=True))))
    pipeline = pt.Transformer.from_df(candidates) >> pn.Mixture(noted(), alpha=0.5)
    given = (pipeline, TOPICS.assign(query=queries), QRELS, FOLDS)
    new, kept = (cross_fit(*given, directory=tmp_path / "kept", verbose=False).run for _ in range(2))
    pd.testing.assert_frame_equal(kept, new)


def test_embeddings_of_equal_size_are_tried_one_by_one():
    Noted.fits = []
    bad, good = embedded(-1), embedded(1)
    ranker = Embedded(bad, verbose=False)
    grid = {ranker: {"spaces": [bad, good]}}
    result = cross_fit(SOURCE >> ranker, TOPICS, QRELS, FOLDS, grid=grid, measure="RR", verbose=False)
    assert len(Noted.fits) == 4 * 2
    assert result.scan["RR"].tolist() == [pytest.approx(1 / 12), 1.0] * 4
    assert all(pipeline[1].spaces is good for pipeline in result.pipelines.values())


def test_a_copy_keeps_the_options_that_it_was_given(tmp_path):
    documents = [{"docno": f"d{i}", "text": f"the {word} tree"} for i, word in enumerate(WORDS)]
    indexes = [pn.ForwardIndex.build(tmp_path / name, documents, verbose=False) for name in ("first", "other")]
    ranker = noted()
    copies = Copies(SOURCE >> ranker, [ranker], quiet=True)
    for name, values in {"documents": indexes, "batch_size": [7, 9], "mu": [5.0, 6.0]}.items():
        for value in values:
            _, [fitted] = copies.fitted({(id(ranker), name): value}, TOPICS, None, QRELS)
            assert getattr(fitted, name) == value  # an index equals only itself
    assert len(Noted.fits) == 6
    _, [fitted] = copies.fitted({(id(ranker), "mu"): 6.0}, TOPICS, None, QRELS)
    assert fitted.is_fitted
    assert len(Noted.fits) == 6  # it is equal to the one before


class Weighted(pt.Transformer):
    """Neither its repr nor a constructor's argument of the same name says what it does."""

    def __init__(self, weight):
        self.factor = weight

    def transform(self, inp):
        return inp.assign(score=self.factor * inp["score"])

    def __repr__(self):
        return "Weighted()"


def random_frame(**columns) -> pd.DataFrame:
    """Candidates with random scores, and these columns."""
    rows = {"score": np.random.default_rng(3).random(len(CANDIDATES)), **columns}
    return CANDIDATES.assign(**rows)


def kept(directory, pipeline, topics=TOPICS, **options) -> CrossFitted:
    """A small cross-fit that is kept."""
    return cross_fit(pipeline, topics, QRELS, FOLDS, verbose=False, directory=directory, **options)


def refuses(directory, pipeline, topics=TOPICS, **options) -> bool:
    """Whether what a directory keeps is taken for that of another cross-fit."""
    try:
        kept(directory, pipeline, topics, **options)
    except ValueError as error:
        if "another cross-fit" not in str(error):
            raise
        return True
    return False


def by_text() -> pt.Transformer:
    """Scores between the random ones, which weigh in a mixture with them."""
    return pt.apply.doc_score(lambda row: len(row["text"]) / 100)


def scored(function) -> pt.Transformer:
    return pt.apply.doc_score(function)


@pytest.mark.parametrize(
    "other", [{"normalise": "minmax"}, {"missing": "zero"}, {"num_results": 5}, {"alpha": 0.5 + 1e-9}]
)
def test_other_settings_of_a_mixture_are_another_cross_fit(tmp_path, other):
    kept(tmp_path, pn.Mixture(by_text()), random_frame())
    assert refuses(tmp_path, pn.Mixture(by_text(), **other), random_frame())
    assert not refuses(tmp_path, pn.Mixture(by_text()), random_frame())


@pytest.mark.parametrize("column", ["score", "rank", "title", "query_toks", "doc_vec"])
def test_other_values_of_any_column_are_another_cross_fit(tmp_path, column):
    long = np.zeros((len(CANDIDATES), 2000))
    toks = [{"apple": 1.0, "plum": 2.0}] * len(CANDIDATES)
    frame = random_frame(title="title", query_toks=toks, doc_vec=list(long))
    changed = frame.copy()
    if column == "query_toks":
        changed[column] = [{"plum": 2.0, "apple": 1.0}] * (len(CANDIDATES) - 1) + [{"apple": 1.0, "plum": 2.5}]
    elif column == "doc_vec":
        long = long.copy()
        long[7, 1000] = 1  # in the middle, which a repr leaves out
        changed[column] = list(long)
    else:
        changed[column] = "other" if column == "title" else -changed[column] - 1
    kept(tmp_path, pn.Mixture(by_text()), frame)
    assert refuses(tmp_path, pn.Mixture(by_text()), changed)
    assert not refuses(tmp_path, pn.Mixture(by_text()), frame[frame.columns[::-1]].set_axis(frame.index + 7))


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (Weighted(1.0), Weighted(2.0)),
        (pt.Transformer.from_df(random_frame()), pt.Transformer.from_df(random_frame(score=1.0))),
        (scored(lambda row: row["score"]), scored(lambda row: -row["score"])),
        (scored(lambda row: abs(row["score"])), scored(lambda row: len(row["text"]))),
        (pt.apply.rename({"title": "text"}, errors="ignore"), pt.apply.rename({"name": "text"}, errors="ignore")),
        (pn.WordTranslation(iterations=2), pn.WordTranslation(iterations=2, fields="text")),
    ],
    ids=["attribute", "frame", "operator", "name", "dict", "fields"],
)
def test_other_transformers_of_the_same_repr_are_another_cross_fit(tmp_path, first, other):
    kept(tmp_path, SOURCE >> first)
    assert refuses(tmp_path, SOURCE >> other)
    assert not refuses(tmp_path, SOURCE >> first)


def test_what_a_function_refers_to_makes_another_cross_fit(tmp_path):
    def times(factor):
        return scored(lambda row: factor * row["score"])

    kept(tmp_path, SOURCE >> times(1))
    assert refuses(tmp_path, SOURCE >> times(2))
    assert not refuses(tmp_path, SOURCE >> times(1))


def test_progress_and_what_was_done_before_are_the_same_cross_fit(tmp_path):
    class Remembering(Weighted):
        def transform(self, inp):
            self.earlier = [*getattr(self, "earlier", ()), len(inp)]
            return super().transform(inp)

    def pipeline(**options):
        return SOURCE >> Remembering(1.0) >> pn.WordTranslation(iterations=1, **options)

    used = pipeline()
    kept(tmp_path, used)
    assert not refuses(tmp_path, used)
    assert not refuses(tmp_path, pipeline(verbose=False, batch_size=3))


def test_an_index_that_was_built_anew_makes_another_cross_fit(tmp_path):
    documents = [{"docno": f"d{i}", "text": f"the {word} tree"} for i, word in enumerate(WORDS)]
    index = pn.LuceneIndex(tmp_path / "index").index(documents, verbose=False)
    kept(tmp_path / "kept", index.bm25())
    assert not refuses(tmp_path / "kept", pn.LuceneIndex(tmp_path / "index").bm25())
    assert refuses(tmp_path / "kept", pn.LuceneIndex(tmp_path / "index", stemmer="none").bm25())
    kept(tmp_path / "text", SOURCE >> index.text_loader(["text"]))
    index.index([{**document, "text": "plum"} for document in documents], overwrite=True, verbose=False)
    assert refuses(tmp_path / "kept", index.bm25())
    assert refuses(tmp_path / "text", SOURCE >> index.text_loader(["text"]))
    foreign = tmp_path / "index" / "pt_meta.json"
    foreign.unlink()  # as Anserini leaves an index
    kept(tmp_path / "foreign", pn.LuceneIndex(tmp_path / "index").bm25())
    index = pn.LuceneIndex(tmp_path / "other").index(documents, verbose=False)
    (tmp_path / "index").rename(tmp_path / "moved")
    (tmp_path / "other").rename(tmp_path / "index")
    foreign.unlink()
    assert refuses(tmp_path / "foreign", pn.LuceneIndex(tmp_path / "index").bm25())


def test_a_forward_index_that_was_built_anew_makes_another_cross_fit(tmp_path):
    def pipeline():
        return SOURCE >> pn.WordTranslation(iterations=1, documents=pn.ForwardIndex(tmp_path / "documents"))

    documents = [{"docno": f"d{i}", "text": f"the {word} tree"} for i, word in enumerate(WORDS)]
    pn.ForwardIndex.build(tmp_path / "documents", documents, verbose=False)
    kept(tmp_path / "kept", pipeline())
    assert not refuses(tmp_path / "kept", pipeline())
    other = [{**document, "text": "plum"} for document in documents]
    pn.ForwardIndex.build(tmp_path / "documents", other, overwrite=True, verbose=False)
    assert refuses(tmp_path / "kept", pipeline())


def test_embeddings_of_equal_size_in_memory_make_another_cross_fit(tmp_path):
    kept(tmp_path, SOURCE >> Embedded(embedded(1), verbose=False))
    assert refuses(tmp_path, SOURCE >> Embedded(embedded(2), verbose=False))
    assert not refuses(tmp_path, SOURCE >> Embedded(embedded(1), verbose=False))


def test_pipelines_that_were_kept_have_the_options_that_were_chosen(tmp_path):
    documents = [{"docno": f"d{number}", "text": f"the {word} tree"} for number, word in enumerate(WORDS)]
    bad, good = (
        pn.ForwardIndex.build(tmp_path / name, [{**each, **change} for each in documents], verbose=False)
        for name, change in (("bad", {"text": "plum"}), ("good", {}))
    )
    ranker = noted().anew(documents=bad)
    for _ in range(2):  # the second time, they are read
        fitted = kept(tmp_path / "kept", SOURCE >> ranker, grid={ranker: {"documents": [bad, good]}})
        assert all(pipeline[1].documents is good for pipeline in fitted.pipelines.values())


def test_saved_embeddings_of_equal_size_make_another_cross_fit(tmp_path):
    for name, number in (("first", 1), ("other", 2)):
        embedded(number).save(tmp_path / name)

    def spaces(name):
        return pn.EmbeddingSpaces(tmp_path / name)

    def searched(*names):
        ranker = Embedded(spaces("first"), verbose=False)
        return {"pipeline": SOURCE >> ranker, "grid": {ranker: {"spaces": [spaces(name) for name in names]}}}

    kept(tmp_path / "kept", SOURCE >> Embedded(spaces("first"), verbose=False))
    assert refuses(tmp_path / "kept", SOURCE >> Embedded(spaces("other"), verbose=False))
    assert not refuses(tmp_path / "kept", SOURCE >> Embedded(spaces("first"), verbose=False))
    kept(tmp_path / "searched", **searched("first", "other"))
    assert refuses(tmp_path / "searched", **searched("first", "first"))
    assert not refuses(tmp_path / "searched", **searched("first", "other"))


SCRIPT = """
import sys
import pandas as pd, pyterrier as pt, pt_neural as pn
from pt_neural.experiment import cross_fit

folder = sys.argv[1]
rows = [(qid, qid, f"d{i}", "a" * i, i / 7, 0, {"a": 0.1, "b": i / 3}) for qid in "abc" for i in range(5)]
frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "score", "rank", "query_toks"])
letters = {"a", "b", "x", "y"}
ranker = pn.WordTranslation(iterations=1, verbose=False)
pipeline = (
    pt.apply.doc_score(lambda row: row["score"] + (row["query"] in letters) + (row["docno"] in {"d1", "d2", "d3"}))
    >> pt.apply.rename(dict.fromkeys(letters, "text"), errors="ignore")
    >> pn.Mixture(ranker, alpha=1 / 3, normalise="zscore")
)
options = {"folds": {"a": 1, "b": 2, "c": 3}, "grid": {ranker: {"mu": [5.5, 0.1]}}, "verbose": False}
cross_fit(pipeline, frame, frame.assign(label=1), directory=folder, **options)
"""


def test_a_new_process_goes_on_with_the_same_cross_fit(tmp_path, monkeypatch):
    script, folder = tmp_path / "script.py", str(tmp_path / "kept")
    script.write_text(SCRIPT)
    monkeypatch.setattr(sys, "argv", ["script.py", folder])
    runpy.run_path(str(script))
    environment = {**os.environ, "PYTHONHASHSEED": "1"}  # of the hashes of strings, by which sets are ordered
    command = [sys.executable, script, folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_progress_and_lines(capfd):
    ranker = pn.WordTranslation()
    cross_fit(SOURCE >> ranker, TOPICS, QRELS, FOLDS, grid={ranker: {"iterations": [2, 1]}})
    out, err = capfd.readouterr()
    lines = [line.partition("=")[0] for line in out.splitlines()]
    assert lines == [f"fold {fold}: WordTranslation iterations" for fold in "abcd"]
    assert "cross_fit: 100%" in err
    assert "8/8" in err
    assert "WordTranslation()" not in out + err
    cross_fit(SOURCE >> ranker, TOPICS, QRELS, FOLDS, verbose=False)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "message", "changed"),
    [
        (ValueError, "at least 3 folds", {"folds": 2}),
        (ValueError, "no fold for query 'q11'", {"folds": {q: f for q, f in FOLDS.items() if q != "q11"}}),
        (ValueError, "no fold for query 'q11'", {"folds": {**FOLDS, "q11": None}}),
        (TypeError, "folds must be an integer", {"folds": "5"}),
        (ValueError, "folds must be at least 2", {"folds": -5}),
        (ValueError, "folds=13, but there are only 12 queries", {"folds": 13}),
        (TypeError, "grid must map transformers", {"grid": {"layers": [(4,)]}}),
        (ValueError, "which is not in the pipeline", {"grid": {pn.Mixture(SOURCE, SOURCE): {"alpha": [0.1]}}}),
        (ValueError, "judge", {"qrels": QRELS.assign(qid="other")}),
    ],
)
def test_clear_errors(error, message, changed):
    options = {"topics": TOPICS, "qrels": QRELS, "folds": FOLDS, "grid": None, "verbose": False}
    with pytest.raises(error, match=message):
        cross_fit(SOURCE >> pn.Mixture(unfitted()), **{**options, **changed})


def unfitted() -> pt.Transformer:
    return pn.DSSM(layers=(4,), training=QUIET)


def test_clear_errors_of_grids():
    dssm = unfitted()
    for settings, error, message in (
        ({"layers": []}, ValueError, "no values for layers"),
        ({"colour": ["red"]}, ValueError, "colour"),
    ):
        with pytest.raises(error, match=message):
            cross_fit(SOURCE >> dssm, TOPICS, QRELS, FOLDS, grid={dssm: settings}, verbose=False)
    with pytest.raises(RuntimeError, match="not fitted yet"):
        cross_fit(SOURCE >> pn.LSA(dim=2), TOPICS, QRELS, FOLDS, verbose=False)


class TestTunable:
    def test_a_grid_scan_fits_copies_and_changes_no_ranker(self):
        ranker = noted()
        before, tunable = state(ranker), Tunable(ranker)
        pipeline = SOURCE >> tunable
        pipeline.fit(TOPICS.head(6), QRELS.head(6), TOPICS[6:9], QRELS[6:9])
        grid = {tunable: {"iterations": [2, 1], "self_translation": [0.1, 0.9]}}
        found = pt.GridScan(pipeline, grid, TOPICS.tail(3), QRELS.tail(3), [AP])
        assert len(found) == len(Noted.fits) == 4
        assert state(ranker) == before
        again = noted().anew(iterations=1, self_translation=0.9)
        frame = SOURCE.transform(TOPICS)
        again.fit(
            frame[frame["qid"].isin(TOPICS["qid"][:6])],
            QRELS.head(6),
            frame[frame["qid"].isin(TOPICS["qid"][6:9])],
            QRELS[6:9],
        )
        expected = pt.Evaluate(again.transform(SOURCE.transform(TOPICS.tail(3))), QRELS.tail(3), [AP])
        assert found["AP"].iloc[-1] == pytest.approx(expected["AP"])
        assert (tunable.fitted().iterations, tunable.get_parameter("self_translation")) == (1, 0.9)

    def test_a_search_by_folds_is_nested(self):
        ranker = noted()
        tunable = Tunable(ranker, pd.DataFrame({"qid": list(FOLDS), "fold": list(FOLDS.values())}))
        pipeline = SOURCE >> tunable
        pipeline.fit(TOPICS, QRELS)
        parts = [TOPICS[TOPICS["qid"].map(FOLDS) == fold] for fold in "abcd"]
        run, choices = pt.KFoldGridSearch(pipeline, {tunable: {"iterations": [2, 1]}}, parts, QRELS, "map")
        assert run.groupby("qid").size().eq(12).all()
        assert run["qid"].nunique() == 12
        assert len(choices) == 4
        for _, copied in tunable._copies:
            assert not copied.seen & copied.ranked
        assert not ranker.is_fitted
        assert tunable.get_parameter("iterations") == 2
        inner = [fit for fit in Noted.fits if len(fit[0]) == 3]  # one fold to fit on, one to choose epochs by
        assert inner
        assert all({FOLDS[q] for q in train} != {FOLDS[q] for q in dev} for train, dev in inner)

    def test_rows_stay_in_their_order(self):
        tunable = Tunable(noted(), FOLDS)
        tunable.fit(CANDIDATES, QRELS)
        mixed = CANDIDATES.sample(frac=1, random_state=3)
        found = tunable.transform(mixed)
        assert found["docno"].tolist() == mixed["docno"].tolist()
        assert found.index.equals(mixed.index)
        by_query = tunable.transform(CANDIDATES[CANDIDATES["qid"].isin(["q0", "q1", "q2", "q3"])])
        assert len(by_query) == 48

    def test_embeddings_of_equal_size_are_tried_one_by_one(self):
        Noted.fits = []
        bad, good = embedded(-1), embedded(1)
        tunable = Tunable(Embedded(bad, verbose=False))
        pipeline = SOURCE >> tunable
        pipeline.fit(TOPICS.head(9), QRELS.head(9))
        grid = {tunable: {"spaces": [bad, good]}}
        found = pt.GridScan(pipeline, grid, TOPICS.tail(3), QRELS.tail(3), ["recip_rank"])
        assert found["recip_rank"].tolist() == [pytest.approx(1 / 12), 1.0]
        fitted = tunable.fitted()
        assert fitted.spaces is good
        tunable.set_parameter("spaces", bad)
        assert tunable.fitted().spaces is bad
        tunable.set_parameter("spaces", good)
        assert tunable.fitted() is fitted
        assert len(Noted.fits) == 2

    def test_only_the_copies_used_last_are_kept(self, monkeypatch):
        monkeypatch.setattr("pt_neural.experiment.tunable.COPIES", 2)
        tunable = Tunable(noted())
        tunable.fit(CANDIDATES, QRELS)
        for mu in (1, 2, 1, 3, 1, 2):
            tunable.set_parameter("mu", mu)
            assert tunable.fitted().mu == mu
        assert len(tunable._copies) == 2
        assert len(Noted.fits) == 4  # the second copy made room for the third

    def test_free_settings_need_no_fit(self):
        rocchio = pn.Rocchio(pn.TFIDF().fit_corpus(CANDIDATES.drop_duplicates("docno"), verbose=False), beta=0.5)
        tunable = Tunable(rocchio)
        found = pt.GridScan(SOURCE >> tunable, {tunable: {"beta": [0.0, 1.0]}}, TOPICS, QRELS, [nDCG @ 10])
        assert found["tran_0_beta"].tolist() == [0.0, 1.0]
        assert rocchio.beta == 0.5

    def test_clear_errors(self):
        tunable = Tunable(noted())
        with pytest.raises(RuntimeError, match="nothing to fit on"):
            (SOURCE >> tunable).transform(TOPICS)
        tunable.fit(CANDIDATES, QRELS)
        with pytest.raises(ValueError, match=r"is one that .* is fitted on"):
            (SOURCE >> tunable).transform(TOPICS)
        with pytest.raises(ValueError, match="Invalid parameter"):
            tunable.set_parameter("colour", "red")
        with pytest.raises(TypeError, match="takes a ranker"):
            Tunable(SOURCE)
        with pytest.raises(TypeError, match="must name the fold"):
            Tunable(noted(), 5)
        with pytest.raises(TypeError, match="does not learn from judgements"):
            Tunable(pn.LSA(dim=2)).fit(CANDIDATES, QRELS)


def test_a_grid_search_leaves_a_ranker_as_it_is():
    for ranker in (unfitted(), noted(), noted().fit(CANDIDATES, QRELS)):
        before = state(ranker)
        for name in ("layers", "learning_rate", "training") if hasattr(ranker, "layers") else ("iterations",):
            with pytest.raises(RuntimeError, match="Tunable"):
                pt.GridScan(SOURCE >> ranker, {ranker: {name: [(3,)]}}, TOPICS, QRELS, [AP])
        assert state(ranker) == before
    pt.GridScan(SOURCE >> ranker, {ranker: {"mu": [5, 7]}}, TOPICS, QRELS, [AP])


def test_a_ranker_anew_has_other_settings_and_nothing_learned():
    dssm = unfitted()
    again = dssm.anew(layers=(3,), learning_rate=0.1, device="cpu")
    assert (again.layers, again.training.learning_rate, again.device) == ((3,), 0.1, "cpu")
    assert dssm.anew(training=pn.Training(seed=7), epochs=3).training == pn.Training(seed=7, epochs=3)
    assert (dssm.get_parameter("epochs"), dssm.training.learning_rate) == (1, None)
    with pytest.raises(TypeError, match="has no argument colour"):
        dssm.anew(colour="red")


def test_an_ensemble_fits_copies_of_unfitted_rankers():
    ranker = noted()
    features = SOURCE >> (pt.Transformer.identity() ** ranker)
    ensemble = cross_validate(features, TOPICS, QRELS, folds={q: "abca"[i % 4] for i, q in enumerate(FOLDS)})
    assert len(Noted.fits) == 6
    assert not ranker.is_fitted
    assert {tuple(train) for train, _ in Noted.fits} >= {tuple(sorted(f"q{i}" for i in range(12) if i % 4 == 1))}
    assert ensemble.run["qid"].drop_duplicates().tolist() == TOPICS["qid"].tolist()
    with pytest.raises(ValueError, match="at least 3 folds"):
        cross_validate(features, TOPICS, QRELS, folds=2)


def test_is_drawn_and_inspected():
    result = CrossFitted(CANDIDATES, pd.DataFrame({"qid": ["q1"], "fold": ["a"]}), pd.DataFrame(), {})
    assert "CrossFitted" in pt.schematic.draw(result % 5)
    assert "Tunable" in pt.schematic.draw(SOURCE >> Tunable(noted()))
    with pytest.raises(ValueError, match="only the queries that it was made with"):
        result.transform(TOPICS.tail(1))
