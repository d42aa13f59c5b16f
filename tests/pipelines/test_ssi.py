import json
import re
import shutil
import sys

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, P

import pt_neural as pn
from pipelines.common.collection import Split, load
from pipelines.common.runs import SavedRuns
from pipelines.common.workspace import Workspace
from pipelines.ssi import __main__ as ssi
from pipelines.ssi import hashing, rankers
from pipelines.ssi.evaluation import Evaluation, Ranker, best_of, completed, values_of
from pipelines.ssi.tables import table_1, table_2, table_4
from pipelines.ssi.task import LinkTask, page_texts
from pt_neural._evaluation import RankLoss, RunEvaluator
from pt_neural._frames import with_scores
from tests.pipelines.conftest import SUBJECTS, write_collection

SMALL = ["--epochs", "2", "--pair-epochs", "1", "--dim", "4", "--lsa-dims", "3", "--nonzeros", "5"]
SMALL += ["--truncated-dims", "2", "90"]
SMALL += ["--max-terms", "40", "--frequent-terms", "20", "--embedded-terms", "20", "--correlated-dim", "5"]
SMALL += [
    "--queries",
    "20",
    "--hash-sizes",
    "100",
    "--random-documents",
    "20",
    "--dev-documents",
    "10",
    "--dims",
    "4",
    "6",
]
SMALL += ["--keywords", "3", "--shares", "0.25", "1", "--figure-dims", "2", "4", "--figure-epochs", "3"]
SMALL += ["--queries", "20"]
MEASURES = ["Rank loss, %", "MAP", "P@10"]
NUMBER = 60  # of pages
STEPS = {"train": (3, 6), "dev": (9, 12), "test": (15, 18)}  # from a page to the pages that it links to


def linked(folder, documents, queries, steps):
    qrels = {
        split: [(query["_id"], f"d{(n + step) % NUMBER}", 1) for n, query in enumerate(queries) for step in each]
        for split, each in steps.items()
    }
    return write_collection(folder, documents, queries, qrels)


@pytest.fixture(scope="module")
def pages():
    """Pages on three subjects."""
    random, names = np.random.default_rng(3), sorted(SUBJECTS)
    words = [[*random.choice(SUBJECTS[names[n % 3]], 30), f"word{n % 20}"] for n in range(NUMBER)]
    return [{"_id": f"d{n}", "title": f"Page {n}", "text": " ".join(each)} for n, each in enumerate(words)]


@pytest.fixture(scope="module")
def links(tmp_path_factory, pages):
    """Each page links to six others on its subject, two of them in each split."""
    queries = [{"_id": page["_id"], "text": " ".join(page["text"].split()[:12])} for page in pages]
    return linked(tmp_path_factory.mktemp("links"), pages, queries, STEPS)


@pytest.fixture(scope="module")
def translated(tmp_path_factory, pages):
    """Links and mates of queries in a language that writes words backwards."""
    queries = [{"_id": f"x:{page['_id']}", "text": page["text"][::-1]} for page in pages]
    seealso = linked(tmp_path_factory.mktemp("seealso"), pages, queries, STEPS)
    mates = linked(tmp_path_factory.mktemp("mates"), pages, queries, {"train": (0,), "dev": (0,), "test": (0,)})
    return seealso, mates


@pytest.fixture(scope="module", autouse=True)
def _few_alphas():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rankers, "ALPHAS", 5)
        yield


@pytest.fixture(scope="module")
def results(run, links):
    """All tables and figures for one language."""
    return run(ssi, *SMALL, "--figures", "1", "2", dataset=links)


@pytest.fixture(scope="module")
def languages(run, translated):
    """Tables 9 and 10."""
    seealso, mates = translated
    return run(
        ssi,
        *SMALL,
        "--tables",
        "9",
        "10",
        "--settings",
        "collection",
        "--mates",
        f"neural:folder:{mates}",
        dataset=seealso,
    )


@pytest.fixture
def prepared(links, out, monkeypatch):
    """What the pipeline is about to compute with given options."""

    def prepare(*options):
        arguments = ["pipeline", "--dataset", f"neural:folder:{links}", "--out", str(out), *SMALL, *options]
        monkeypatch.setattr(sys, "argv", arguments)
        arguments = ssi.options()
        return ssi.Results(Workspace(arguments, "ssi-prepared", load(arguments.dataset)), arguments)

    return prepare


@pytest.fixture(scope="module")
def task(links):
    collection = load(f"neural:folder:{links}")
    return LinkTask.of(collection, [page["docno"] for page in collection.dataset.get_corpus_iter(verbose=False)], 13)


def read(results, name):
    return pd.read_csv(results / f"{name}.csv", keep_default_na=False).set_index("system")


def shared_words(text, page):
    return len(set(text.split()) & set(page.split()))


class Overlap(pt.Transformer):
    """Scores by the number of shared words, and retrieves what shares any."""

    def __init__(self, pages, num_results=None):
        self.pages, self.num_results = pages, num_results

    def transform(self, frame):
        if self.num_results is None:
            scores = [shared_words(row.query, self.pages[row.docno]) for row in frame.itertuples()]
            return frame.assign(score=np.array(scores, dtype=float))
        rows = [
            (row.qid, docno, float(shared_words(row.query, page)))
            for row in frame.itertuples()
            for docno, page in self.pages.items()
        ]
        run = pd.DataFrame(rows, columns=["qid", "docno", "score"])
        return run[run["score"] > 0]


@pytest.fixture
def overlap(pages):
    texts = {page["_id"]: page["text"] for page in pages}
    return Ranker(Overlap(texts), lambda number: Overlap(texts, number))


def values_by_hand(task, overlap):
    """Rank loss in percent and P@10 of each test query over all documents but its own page and its other links."""
    values = {}
    links = {name: getattr(task.collection, name).qrels for name in ("train", "dev", "test")}
    for row in task.collection.test.topics.itertuples():
        linked = {name: set(qrels.loc[qrels["qid"] == row.qid, "docno"]) for name, qrels in links.items()}
        ranked = [d for d in task.docnos if d != row.qid and d not in linked["train"] | linked["dev"]]
        scores = {d: shared_words(row.query, overlap.reranker.pages[d]) for d in ranked}
        pairs = [(scores[good], scores[d]) for good in linked["test"] for d in ranked if d not in linked["test"]]
        wrong = np.mean([0.5 if good == other else float(good < other) for good, other in pairs])
        first = sorted(ranked, key=lambda d: (scores[d], d), reverse=True)[:10]  # as trec_eval breaks ties
        values[row.qid] = 100 * wrong, len(linked["test"] & set(first)) / 10
    return pd.DataFrame(values, index=["Rank loss, %", "P@10"]).T


@pytest.mark.parametrize("setting", ["candidates", "collection"])
def test_both_settings_measure_all_documents_alike(task, overlap, setting, tmp_path):
    evaluation = Evaluation(task, setting, 1000, SavedRuns(tmp_path, {}))
    evaluation.add("overlap", {13: overlap})
    expected = values_by_hand(task, overlap)
    for label in expected:
        values = evaluation.by_query(label, {"overlap": "overlap"})["overlap"]
        np.testing.assert_allclose(values[expected.index], expected[label], atol=1e-9)
    assert len(evaluation.values) == 3 * NUMBER
    again = Evaluation(task, setting, 1000, SavedRuns(tmp_path, {}))
    again.add("overlap", {13: None})  # its values are saved
    assert again.values.equals(evaluation.values)
    best = pd.read_csv(tmp_path / "overlap, seed 13.res.gz", sep=" ", header=None)
    assert set(best.groupby(0)[3].max()) == {NUMBER - 6}  # without its own page and four links of other splits


def test_a_mixture_scores_documents_alike_in_both_settings(prepared, overlap, tmp_path):
    results = prepared()
    tfidf = results.rankers.tfidf(40).rankers[13]
    ranker, _, _ = results.rankers.mixed(overlap, tfidf, "zscore")
    values = []
    for setting in ("candidates", "collection"):
        evaluation = Evaluation(results.task, setting, 1000, SavedRuns(tmp_path / setting, {}))
        evaluation.add("mixture", {13: ranker})
        values.append(evaluation.values)
    pd.testing.assert_frame_equal(*values)
    topics = results.task.collection.test.topics
    assert ranker.retriever(7)(topics).groupby("qid").size().eq(7).all()


def test_the_value_of_a_query_is_the_mean_over_seeds(task, overlap, tmp_path):
    class Backwards(pt.Transformer):
        def transform(self, frame):
            run = overlap.reranker.transform(frame)
            return run.assign(score=-run["score"])

    evaluation = Evaluation(task.sample(20), "candidates", 1000, SavedRuns(tmp_path, {}))
    evaluation.add("both", {13: overlap, 14: Ranker(Backwards(), overlap.retriever)})
    np.testing.assert_allclose(evaluation.by_query("Rank loss, %", {"both": "both"})["both"], 50)


def test_measures_are_those_of_ir_measures():
    """With ties, relevant documents that are not candidates, and queries without candidates or relevant documents."""
    random = np.random.default_rng(5)
    qids, docnos = [f"q{number}" for number in range(30)], [f"d{number:03}" for number in range(150)]
    run = pd.DataFrame([(q, d) for q in qids[:28] for d in docnos[: int(random.integers(1, 150))]])
    run = run.set_axis(["qid", "docno"], axis=1).assign(score=random.integers(0, 40, len(run)) / 7)
    qrels = pd.DataFrame([(q, d) for q in qids for d in random.choice(docnos, 4, replace=False)])
    qrels = qrels.set_axis(["qid", "docno"], axis=1).assign(label=random.integers(0, 2, len(qrels)))
    qrels.loc[qrels["qid"] == "q3", "label"] = 0
    split = Split(pd.DataFrame({"qid": [*qids, "unjudged"], "query": "words"}), qrels)
    found = values_of(run, split).pivot_table("value", "qid", "measure")
    for label, measure, factor in (("Rank loss, %", RankLoss, 100), ("MAP", AP, 1), ("P@10", P @ 10, 1)):
        evaluator = RunEvaluator(run, qrels, qids, measure)
        expected = pd.Series(factor * evaluator(run["score"].to_numpy()), evaluator.qids)
        np.testing.assert_allclose(found.loc[expected.index, label], expected, atol=1e-9)
    best = best_of(run)
    ranked = with_scores(run, run["score"].to_numpy())
    pd.testing.assert_frame_equal(best, ranked[ranked["rank"] < 100])


def test_documents_that_are_not_retrieved_tie_below_the_others():
    run = pd.DataFrame([("q1", "b", -3.0), ("q1", "c", 2.0)], columns=["qid", "docno", "score"])
    topics, docnos = pd.DataFrame({"qid": ["q1", "q2"]}), pd.Index(list("abcd"), dtype=object)
    excluded = pd.DataFrame([("q1", "c"), ("q2", "a")], columns=["qid", "docno"])
    frame = completed(run, topics, docnos, excluded)
    assert frame["qid"].tolist() == ["q1"] * 3 + ["q2"] * 3
    assert frame["docno"].tolist() == list("abd") + list("bcd")
    assert frame["score"].tolist() == [-4, -3, -4, -1, -1, -1]


def test_documents_apart_have_no_training_link_of_a_test_or_dev_document(task):
    apart, between = task.apart_from_test_documents(), task.between_test_documents()
    pairs = {name: getattr(apart.collection, name).qrels for name in ("train", "dev")}
    pairs["test"] = between.collection.test.qrels
    linked = {name: set(qrels["qid"]) | set(qrels["docno"]) for name, qrels in pairs.items()}
    assert all(linked.values())
    assert linked["dev"] <= set(apart.docnos)
    assert linked["test"] <= set(between.docnos)
    assert not linked["train"] & (set(apart.docnos) | set(between.docnos))
    assert not set(apart.docnos) & set(between.docnos)
    for name in ("train", "dev"):
        assert set(getattr(apart.collection, name).topics["qid"]) == set(pairs[name]["qid"])
        assert getattr(apart.collection, name).topics["qid"].is_unique
    assert between.collection.train.qrels.equals(task.collection.train.qrels)
    for kept, split in ((apart, apart.collection.dev), (between, between.collection.test)):
        candidates = kept.candidates(split, len(task.docnos))
        assert candidates["docno"].isin(kept.docnos).all()
        assert candidates["docno"].nunique() == len(kept.docnos)


def test_keywords_are_drawn_independently_in_each_split(task):
    collection = task.with_keywords(3).collection
    train, test = (split.topics.set_index("qid")["query"].str.split() for split in (collection.train, collection.test))
    original = task.collection.test.topics.set_index("qid")["query"].str.split()
    assert all(set(words) <= set(original[qid]) and len(words) == 3 for qid, words in test.items())
    assert (train != test).mean() > 0.5


def test_pages_stand_for_queries(task):
    texts = page_texts(task.collection.dataset.get_corpus_iter(verbose=False))
    topics = task.with_texts(texts).collection.dev.topics.set_index("qid")["query"]
    assert topics["d7"].startswith("Page 7 ")
    assert len(topics["d7"].split()) == 33
    with pytest.raises(SystemExit, match="no page for query 'd7'"):
        task.with_texts({qid: text for qid, text in texts.items() if qid != "d7"})


def test_shares_of_the_training_links(task):
    train = task.with_share(0.25).collection.train
    assert len(train.qrels) == NUMBER // 2
    assert set(train.topics["qid"]) == set(train.qrels["qid"])
    assert task.with_share(1).collection.train.qrels.sort_index().equals(task.collection.train.qrels)


def test_no_row_is_there_twice_if_there_are_fewer_words(prepared):
    made = prepared("--embedded-terms", "30000", "10000", "20").rankers
    rows = [make.args for _, make in table_2(made) if make.func == made.embedded]
    assert rows[:2] == [("embedded-0", made.words(None)), ("embedded-1", 20)]
    assert len(rows) == 3


def test_truncated_rows_are_those_of_the_nearest_low_rank_model(prepared):
    made = prepared().rankers
    rows = {key: make() for key, make in table_1(made) if key.startswith("full")}
    assert list(rows) == ["full", "full-symmetric-part", "full-truncated-2", "full-truncated-40", "full-quarter"]
    for key in ("full-truncated-2", "full-truncated-40"):
        assert rows[key].key == key
        assert rows[key].name == f"{rows['full'].name}, truncated to N = {key.rpartition('-')[2]}"
    weights = {key: row.rankers[13].reranker.word_weights() for key, row in rows.items()}
    np.testing.assert_allclose(weights["full-truncated-40"], weights["full"], atol=1e-5)
    assert np.linalg.matrix_rank(weights["full-truncated-2"] - np.eye(40), tol=1e-4) == 2
    assert rows["full-truncated-2"].parameters == "4 × 40"


@pytest.mark.parametrize("key", ["full", "low-rank"])
def test_rows_of_the_symmetric_part(prepared, key):
    made = prepared().rankers
    rows = {name: make() for name, make in table_1(made) if name in (key, f"{key}-symmetric-part")}
    whole, part = rows[key], rows[f"{key}-symmetric-part"]
    assert (part.key, part.name) == (f"{key}-symmetric-part", f"{whole.name}, its symmetric part")
    weights, found = (row.rankers[13].reranker.word_weights().to_numpy() for row in (whole, part))
    assert np.abs(weights - weights.T).max() > 1e-3
    np.testing.assert_allclose(found, (weights + weights.T) / 2, atol=1e-6)


def test_what_the_paper_compares_has_the_same_dictionary(prepared):
    """Full and low-rank W; correlated hashing, and low rank of as many words and dimensions."""
    options = prepared().arguments
    made = []

    class Recorded(rankers.Rankers):
        def ssi(self, key, name, parameters, kind, limit, **settings):
            key = f"{key}-quarter" if "25%" in self.about else key
            made.append((key, limit, settings))
            return rankers.Row(key.removesuffix("-quarter"), name, name, parameters, {})

    recorded = Recorded(prepared().workspace, options, prepared().task)
    for key, make in (*table_1(recorded), *table_4(recorded), *table_2(recorded)):
        if key not in ("tfidf", "qe", "lsa", "mixture") and not re.search("truncated|part$", key):
            assert make().key == key == made[-1][0]
    limits = {key: limit for key, limit, _ in reversed(made)}  # of a key in two tables, the first
    quarters = [f"{key}-quarter" for key in ("full", "sparse-5", "symmetric", "low-rank")]
    alike = ("diagonal", "full", "sparse-5", "symmetric", "low-rank", "low-rank-4", "low-rank-6", "symmetric-6")
    for key in (*alike, *quarters):
        assert limits[key] == 40, key
    settings = {key: settings for key, _, settings in made}
    low_rank = settings["embedded-as-correlated"]
    assert low_rank == {"dim": 5, "embedded_terms": 20}
    for ngrams in (1, 2, "1+2"):
        assert settings[f"correlated-{ngrams}"] == {**low_rank, "ngrams": ngrams, "hashed_words": "all"}
    assert settings["correlated-others"] == {**low_rank, "ngrams": 1, "hashed_words": "others"}
    assert {key for key in settings if key.startswith("hash")} == {"hash-100", "hash-identity-100"}


def test_only_the_collection_is_ranked_if_it_is_no_larger_than_the_random_documents(prepared):
    results = prepared("--random-documents", str(NUMBER))
    assert [evaluation.setting for evaluation in results.evaluations] == ["collection"]


def test_without_training_links_it_says_so(run, links, tmp_path):
    shutil.copytree(links, tmp_path / "test-only", ignore=shutil.ignore_patterns("train.tsv", "dev.tsv"))
    with pytest.raises(SystemExit, match="lacks training or dev links"):
        run(ssi, *SMALL, dataset=tmp_path / "test-only")


def test_only_some_rows_are_made_and_named_apart(run, links, capsys):
    some = ["--tables", "1", "2", "--settings", "collection", "--pair-rate", "0.3", "--vector-rate", "0.1"]
    some += ["--row-note", ", other rates", "--name-note", ", trained longer", "--rows", "full", "low-rank"]
    results = run(ssi, *SMALL, *some, dataset=links)
    table = pd.read_csv(results / "table1-collection.csv")
    assert table["row"].tolist() == ["full, other rates", "low-rank, other rates"]
    assert table["run"].tolist() == [
        "SSI: W unconstrained, learning rate 0.3, trained longer, 40 words",
        "SSI: W = U'V + I, N = 4, learning rate 0.1, trained longer, 40 words",
    ]
    assert "Table 2 has none of the rows full, low-rank" in capsys.readouterr().out
    assert not (results / "table2-collection.csv").exists()
    with pytest.raises(SystemExit, match="no rows tfidf-1; they have tfidf, qe"):
        run(ssi, *SMALL, *some, "tfidf-1", dataset=links)


@pytest.mark.long
@pytest.mark.parametrize("setting", ["candidates", "collection"])
def test_tables_1_and_2_have_the_rows_of_the_paper(results, links, setting):
    one, two = read(results, f"table1-{setting}"), read(results, f"table2-{setting}")
    fewer = round(0.25 * len(load(f"neural:folder:{links}").train.qrels))
    assert [name.split(", ")[0] for name in one.index[[0, 1, 2]]] == ["TFIDF", "QE", "LSA"]
    assert "LSA + " in one.index[3]
    assert one.index[4:].tolist() == [
        "SSI: W = D, 40 words",
        "SSI: W unconstrained, 40 words",
        "SSI: W unconstrained, 40 words, its symmetric part",
        "SSI: W unconstrained, 40 words, truncated to N = 2",
        "SSI: W unconstrained, 40 words, truncated to N = 40",
        "SSI: W with a diagonal of zeros, 40 words",
        "SSI: sparse W, 5 a row, 40 words",
        "SSI: sparse W, 5 a row, 40 words, truncated to N = 2",
        "SSI: sparse W, 5 a row, 40 words, truncated to N = 40",
        "SSI: W = U'U + I, N = 4, 40 words",
        "SSI: W = U'V + I, N = 4, 40 words",
        "SSI: W = U'V + I, N = 4, 40 words, its symmetric part",
        "SSI: W = U'V, N = 4, 40 words",
        "SSI: W = U'V + D, N = 4, 40 words",
        *(
            f"SSI: {name}, 40 words, {fewer} links"
            for name in ("W unconstrained", "sparse W, 5 a row", "W = U'U + I, N = 4", "W = U'V + I, N = 4")
        ),
    ]
    truncated = ["4 × 40", "80 × 40"]
    parameters = ["0", "2", "3 × 40", "3 × 40 + 1", "40", "40²", "40²", *truncated, "40² - 40", "5 × 40", *truncated]
    parameters += ["4 × 40", *3 * ["8 × 40"], "9 × 40", "40²", "5 × 40", "4 × 40", "8 × 40"]
    assert one["params"].tolist() == parameters
    words = two.index[0].removeprefix("TFIDF, ")
    assert two.index[3:].tolist() == [
        f"SSI: W = U'U + I, N = 4, {words}",
        f"SSI: W = (U'V)_n + I, n = 20, N = 4, {words}",
        f"SSI: hash kernels, 100, {words}",
        f"SSI: hash kernels + αI, 100, {words}",
        f"SSI: W = (U'V)_n + I, n = 20, N = 5, {words}",
        f"SSI: CFH (2-grams), n = 20, N = 5, {words}",
        f"SSI: CFH (1-grams), n = 20, N = 5, {words}",
        f"SSI: CFH (1+2-grams), n = 20, N = 5, {words}",
        f"SSI: CFH (other words), n = 20, N = 5, {words}",
    ]
    for table in (one, two):
        assert table[MEASURES].map(lambda text: "±" in text).all(axis=None)
    assert one.loc["SSI: W = U'V + I, N = 4, 40 words", "paper: rank loss, %"] == "0.30"
    assert two.iloc[-1]["paper: MAP"] == "0.614±0.012"


@pytest.mark.long
def test_standard_errors_are_those_of_the_values(results):
    values = pd.read_csv(results / "runs-collection" / "values.csv.gz")
    tfidf = values[values["name"] == "TFIDF, 40 words, seed 13"]
    table = read(results, "table1-collection").loc["TFIDF, 40 words"]
    for label, digits in zip(MEASURES, (2, 3, 3), strict=True):
        by_query = tfidf.loc[tfidf["measure"] == label, "value"]
        assert len(by_query) == 20
        error = by_query.std(ddof=1) / np.sqrt(20)
        assert table[label] == f"{by_query.mean():.{digits}f}±{error:.{digits}f}"


@pytest.mark.long
def test_other_tables_and_figures(results):
    three = read(results, "table3-apart")
    assert three.index[0].endswith(f", partitioned links, {2 * NUMBER} training links")
    assert ", partitioned documents, " in three.index[1]
    assert three.index[-1] == "TFIDF, 40 words"
    three = three.iloc[:-1]
    links = three.index.str.extract(r"(\d+) training links")[0].astype(int).tolist()
    assert links[2] == min(links[:2])
    assert links[3:] == [*links[:2], links[1]]
    kinds = [name.partition(",")[0].removeprefix("SSI: ") for name in three.index]
    assert kinds == ["W = U'V + I"] * 3 + ["W unconstrained"] * 2 + ["W = U'U + I"]
    four = read(results, "table4-candidates")
    assert four["params"].tolist() == ["4 × 40", "8 × 40", "6 × 40", "12 × 40"]
    low_rank = "SSI: W = U'V + I, N = 4, 40 words"
    assert four.loc[low_rank, MEASURES].tolist() == read(results, "table1-candidates").loc[low_rank, MEASURES].tolist()
    assert [len(read(results, f"table{number}-k3-collection")) for number in (5, 6)] == [7, 5]
    for number in (7, 8):  # no word is in 20 of the 60 documents and in at most 1% of them
        assert pd.read_csv(results / f"table{number}.csv").empty
    eleven = read(results, "table11-candidates-titles")
    names = ["TFIDF", "SSI: hash kernels", "SSI: W = (U'V)_n + I", "SSI: W = U'V"]
    assert [name.split(", ")[0] for name in eleven.index] == names
    words = [int(name.rpartition(", ")[2].removesuffix(" words")) for name in eleven.index]
    assert 1 < words[0] < int(read(results, "table2-candidates").index[0].split(", ")[1].removesuffix(" words"))
    two = pd.read_csv(results / "figure2.csv")
    # The start, and twice the epochs for a quarter.
    assert two.groupby(["share", "N"]).size().tolist() == [7, 7, 4, 4]
    assert two.groupby("share")["tuples"].max().tolist() == [6 * NUMBER // 2 * 8, 3 * 2 * NUMBER * 8]
    for name in ("figure1-candidates", "figure1-collection", "figure2"):
        assert (results / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    histories = pd.read_csv(results / "histories.csv")
    assert {"loss", "dev RankLoss", "epoch", "seed"} <= set(histories)
    assert not histories.duplicated().any()
    assert json.loads((results / "settings.json").read_text())["arguments"]["keywords"] == [3]


@pytest.mark.parametrize("ngrams", [1, 2])
def test_words_that_stand_for_others_are_those_of_the_highest_dice(tmp_path, monkeypatch, ngrams):
    monkeypatch.setattr(hashing, "LEAST_DOCUMENTS", 3)
    monkeypatch.setattr(hashing, "MOST_DOCUMENTS", 0.5)
    texts = ["black holes bend light", "black holes emit light", "black holes spin", "x-ray x-ray", "black cats spin"]
    texts += ["cats sleep"] * 4 + ["plain words"]
    pages = [{"docno": f"d{number}", "text": text} for number, text in enumerate(texts)]
    index = pn.ForwardIndex.build(tmp_path / "documents", pages)
    table = hashing.hashing_table(index, ngrams, frequent=100, number=9, seed=1).set_index("example")
    expected = {1: {"black": 4, "holes": 3, "cats": 5, "sleep": 4}, 2: {"black holes": 3, "cats sleep": 4}}
    assert table["documents"].to_dict() == expected[ngrams]
    occurs = {
        word: {place for place, text in enumerate(texts) if word in text.split()} for word in " ".join(texts).split()
    }
    for example, row in table.iterrows():
        own = {place for place, text in enumerate(texts) if example in text}
        dice = {word: 2 * len(own & each) / (len(own) + len(each)) for word, each in occurs.items() if word != example}
        shown = dict(zip(row["nearest"].split(", "), map(float, row["dice"].split(", ")), strict=True))
        assert shown == {word: pytest.approx(dice[word], abs=5e-4) for word in shown}
        assert sorted(shown.values(), reverse=True) == list(shown.values())
        assert min(shown.values()) >= max([0, *(dice[word] for word in dice if word not in shown)]) - 5e-4
    one, other = (hashing.hashing_table(index, ngrams, 100, 1, seed) for seed in (1, 1))
    assert len(one) == 1
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize(("number", "kind"), [(7, "words"), (8, "2-grams")])
def test_a_table_without_words_that_stand_for_others_says_why(prepared, capsys, number, kind):
    results = prepared("--tables", str(number))
    getattr(results, f"save_table_{number}")()
    assert f"No {kind} occur in at least 20 documents and in at most 1% of them" in capsys.readouterr().out


@pytest.mark.long
def test_across_languages(languages):
    nine, ten = read(languages, "table9-collection"), read(languages, "table10-collection")
    assert len(nine) == 18
    assert len(ten) == 7
    for table, paper in ((nine.iloc[:-5], "0.524±0.009"), (ten, "0.527±0.009")):
        words = table.index[0].removeprefix("TFIDF, ").removesuffix(" (English mates)")
        across, regularised = (
            f"SSI: W = U'V across languages{note}, N = 4, {words}" for note in ("", ", with V'V on mates")
        )
        assert table.index[-4:-2].tolist() == [across, regularised]
        assert table.index[-2].startswith(f"{across} + TFIDF, {words} (English mates), alpha = ")
        assert table.index[-1].startswith(f"{across} + SSI: W = U'V + I, N = 4, {words} (English mates), alpha = ")
        assert table["paper: MAP"].iloc[-1] == paper


@pytest.mark.long
def test_english_mates_stand_for_a_perfect_translation(languages, prepared):
    """TFIDF gives the same values for whole pages in English, whose mates are not candidates either."""
    english = prepared("--query", "page", "--settings", "collection")
    row, (evaluation,) = english.rankers.tfidf(40), english.evaluations
    evaluation.add(row.system, row.rankers)
    table = evaluation.table({row.name: row.system})
    mates = read(languages, "table9-collection")
    name = "TFIDF, 40 words"
    assert table.loc[name, MEASURES].tolist() == mates.loc[f"{name} (English mates)", MEASURES].tolist()


@pytest.mark.long
def test_a_dictionary_from_the_mates_translates_word_by_word(languages):
    """The language writes words backwards, so the dictionary can be nearly perfect, and so can what it translates."""
    table = read(languages, "table9-collection")
    for name in ("TFIDF, 40 words", "SSI: W = U'V + I, N = 4, 40 words"):
        by_words, mates = (table.loc[f"{name} ({kind})", "MAP"] for kind in ("translated by words", "English mates"))
        assert float(by_words.split("±")[0]) > 0.7 * float(mates.split("±")[0])


@pytest.mark.long
def test_mates_are_found_if_no_other_dataset_names_them(run, translated):
    results = run(ssi, *SMALL, "--tables", "9", "--settings", "candidates", dataset=translated[1])
    table = read(results, "table9-mates-candidates")
    names = ["CL-LSA, 3 dimensions, 40 words", "SSI: W = U'V across languages, N = 4, 40 words"]
    assert table.index[:2].tolist() == names
    assert [name.rpartition(", ")[0] for name in table.index[2:]] == names
    (fewer,) = {int(name.split()[-2]) for name in table.index[2:]}
    mates = load(f"neural:folder:{translated[1]}").train
    assert fewer == round(0.25 * len(mates.qrels))
