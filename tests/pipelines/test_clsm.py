import json
import shutil
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import nDCG

import pt_neural as pn
from pipelines.clsm import __main__ as clsm
from pipelines.clsm import figures
from pipelines.clsm.contexts import context_table
from pipelines.clsm.pooling import SummingCLSM
from pipelines.clsm.rankers import LEARNED
from pipelines.common import statistical
from pipelines.common.collection import Split, load
from pipelines.common.comparison import Comparison
from pipelines.common.runs import SavedRuns
from pipelines.common.workspace import Workspace

SMALL = {"DSSM": {"layers": (16, 8)}, "CLSM": {"filters": 16, "dim": 8}, "SummingCLSM": {"filters": 16, "dim": 8}}
ROWS = [
    "bm25-words",
    "bm25-stems",
    "ql",
    "unigram",
    "lda-100",
    "bltm",
    "lce",
    "ptm",
    "dssm-4",
    "clsm-4",
    "lsa",
    "bm25+dssm",
]
OPTIONS = ["--epochs", "2", "--batch-size", "16", "--dim", "8", "--depth", "20", "--seeds", "13", "14"]
OPTIONS += ["--models", *ROWS, "--windows", "1", "3", "--single-fields", "text"]
NAMES = [
    *("BM25", "BM25, words as below", "BM25, stems of words as below"),
    *("ULM", "ULM, words as below", "LDA (T=100)", "BLTM", "LCE", "PTM (maxlen=3)"),
    *("DSSM (J=4)", "CLSM (J=4)", "LSA", "BM25 + DSSM (in-batch)"),
]


@pytest.fixture(scope="module")
def results(run):
    """Most kinds of rows, in all tables, with two seeds, small networks and few settings to choose from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistical, "SMOOTHING", {"mu": [30, 300]})
        patch.setattr(statistical, "MIXED", {"mu": [300], "unigram_weight": [0.9, 0.5]})
        patch.setattr(statistical, "PHRASES", {"phrase_weight": [0.2, 0.4]})
        for grid in (statistical.DEPENDENCIES, statistical.EXPANSION):
            for name, values in grid.items():
                patch.setitem(grid, name, values[:2])
        make_small(patch)
        return run(clsm, *OPTIONS)


@pytest.fixture
def small_networks(monkeypatch):
    """With the sizes of the papers, training would take several times as long."""
    make_small(monkeypatch)


def make_small(patch):
    for key, spec in LEARNED.items():
        patch.setitem(LEARNED, key, replace(spec, options=spec.options | SMALL[spec.model.__name__]))


def run_file(results, setting, name):
    columns = ["qid", "Q0", "docno", "rank", "score", "tag"]
    return pd.read_csv(results / f"runs-{setting}" / f"{name}.res.gz", sep=r"\s+", names=columns, dtype={"qid": str})


def judgements(folder):
    frame = pd.read_csv(folder / "qrels" / "test.tsv", sep="\t", dtype={"query-id": str})
    return {(row[0], row[1]): row[2] for row in frame.itertuples(index=False)}


def ndcg_10(run, labels):
    """Mean nDCG@10 by its definition, with ties in trec_eval's order."""
    values = []
    for qid in {qid for qid, _ in labels}:
        top = run[run["qid"] == qid].sort_values(["score", "docno"], ascending=False)["docno"][:10]
        gains = [labels.get((qid, docno), 0) for docno in top]
        ideal = sorted((label for (other, _), label in labels.items() if other == qid), reverse=True)
        discounted = [sum(g / np.log2(i + 2) for i, g in enumerate(each)) for each in (gains, ideal[:10])]
        values.append(discounted[0] / discounted[1])
    return np.mean(values)


@pytest.mark.long
@pytest.mark.parametrize("setting", ["telescoped", "all-documents"])
def test_the_tables_have_their_rows(results, setting):
    five, six, seven = (pd.read_csv(results / f"table{number}-{setting}.csv") for number in (5, 6, 7))
    assert five["system"].tolist() == NAMES
    assert six["system"].tolist() == ["DSSM (J=4)", "CLSM (J=4), window 1", "CLSM (J=4)"]
    for table in (five, six):
        assert [name for name in table if "," not in name] == ["system", "nDCG@1", "nDCG@3", "nDCG@10"]
    assert {"nDCG@10, p against BM25", "nDCG@10, p against PTM (maxlen=3)"} <= set(five)
    assert seven.columns.tolist() == ["CLSM (J=4) \\ DSSM (J=4)", "0", "1", "2"]
    assert len(list((results / f"runs-{setting}").glob("*.res.gz"))) == 7 + 1 + 2 * 6
    for number in (5, 6, 7):
        assert (results / f"table{number}-{setting}.md").read_text().startswith(f"Table {number}, ")


@pytest.mark.long
def test_the_folder_tells_how_the_results_were_made(results):
    settings = json.loads((results / "settings.json").read_text())
    assert settings["arguments"]["seeds"] == [13, 14]
    chosen = settings["chosen"]
    assert len(chosen["alpha"]) == 2 * 2
    assert len(chosen["rows"]) == 6 + 2  # LCE tunes SDM first, and PTM its weight of phrases last
    assert chosen["rows"]["ULM"]["mu"] in (30, 300)
    assert chosen["rows"]["BLTM"]["unigram_weight"] in (0.9, 0.5)
    histories = pd.read_csv(results / "histories.csv")
    names = ["DSSM (J=4)", "CLSM (J=4)", "DSSM (in-batch)", "CLSM (J=4), window 1"]
    assert histories.groupby(["system", "seed"]).size().to_dict() == {(name, s): 3 for name in names for s in (13, 14)}
    assert {"epoch", "loss", "seconds", "dev nDCG@10"} <= set(histories)
    for picture in ("figure2", "figure3", "learning", "alpha", "table5-telescoped"):
        assert (results / f"{picture}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_results_give_means_and_deviations(results, folder):
    table = pd.read_csv(results / "table5-all-documents.csv").set_index("system")
    text = (results / "table5-all-documents.md").read_text()
    values = [
        ndcg_10(run_file(results, "all-documents", f"CLSM (J=4), seed {s}"), judgements(folder)) for s in (13, 14)
    ]
    means = table.loc["CLSM (J=4)", ["nDCG@10", "nDCG@10, deviation"]]
    np.testing.assert_allclose(means.astype(float), [np.mean(values), np.std(values, ddof=1)], atol=1e-9)
    assert f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}" in text
    assert values[0] != values[1]
    bm25 = ndcg_10(run_file(results, "all-documents", "BM25"), judgements(folder))
    assert table["nDCG@10"]["BM25"] == pytest.approx(bm25)


@pytest.mark.long
def test_top_grades_are_those_of_the_run_files(results, folder):
    labels = judgements(folder)
    expected = np.zeros((3, 3), dtype=int)
    for seed in (13, 14):
        tops = [
            run_file(results, "telescoped", f"{name} (J=4), seed {seed}")
            .sort_values("rank")
            .groupby("qid")["docno"]
            .first()
            for name in ("CLSM", "DSSM")
        ]
        for qid in {qid for qid, _ in labels}:
            expected[tuple(labels.get((qid, top[qid]), 0) for top in tops)] += 1
    table = pd.read_csv(results / "table7-telescoped.csv", index_col=0)
    assert table.to_numpy().tolist() == expected.tolist()
    assert "once for each of 2 seeds" in (results / "table7-telescoped.md").read_text()


def test_without_training_queries_it_says_what_to_do(run, test_only):
    with pytest.raises(
        SystemExit, match=r"no training queries.*split named train.*--models bm25-words bm25-stems ql unigram plsa-100"
    ):
        run(clsm, dataset=test_only)


@pytest.mark.long
@pytest.mark.usefixtures("small_networks")
def test_without_dev_queries_the_last_epoch_counts(run, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "no-dev", ignore=shutil.ignore_patterns("dev.tsv"))
    options = ["--epochs", "1", "--batch-size", "16", "--models", "clsm", "bm25+clsm", "--windows"]
    results = run(clsm, *options, dataset=tmp_path / "no-dev", out=tmp_path / "out")
    assert "dev nDCG@10" not in pd.read_csv(results / "histories.csv")
    assert pd.read_csv(results / "table5-all-documents.csv")["system"].tolist()[-1] == "BM25 + CLSM (in-batch)"
    assert not list(results.glob("table[67]*"))


def test_expansion_retrieves_anew_with_and_without_dev_queries(folder, test_only, tmp_path, monkeypatch):
    """Else a row of all documents would be of those that the queries find before they are expanded."""
    monkeypatch.setattr(statistical.StatisticalRankers, "_folded", lambda self, ranker, grids: ranker)
    monkeypatch.setattr(statistical.StatisticalRankers, "tuned", lambda self, name, ranker, *_: ranker)
    for place in (folder, test_only):
        workspace = Workspace(Namespace(out=tmp_path, seeds=[1], seed=1), "clsm", load(f"neural:folder:{place}"))
        rankers = object.__new__(statistical.StatisticalRankers)
        rankers.collection, rankers.index, rankers.candidates = (
            workspace.collection,
            workspace.index(),
            pt.RankCutoff(9),
        )
        _, reranker, retriever = rankers.systems("lce")
        assert [type(stage).__name__ for stage in retriever] == ["LatentConceptExpansion", "SDM"]
        assert [type(stage).__name__ for stage in reranker][-3:] == ["SDM", "LatentConceptExpansion", "SDM"]


def test_top_grades_without_results_or_judgement_are_zero():
    topics = pd.DataFrame({"qid": ["q1", "q2", "q3", "q4", "q5"], "query": "words"})
    qrels = pd.DataFrame(
        [("q1", "a", 3), ("q1", "b", 1), ("q2", "b", 2), ("q3", "a", -1), ("q4", "a", 1)],
        columns=["qid", "docno", "label"],
    )
    found = [("q1", "a", 1), ("q1", "b", 0), ("q2", "a", 0), ("q3", "a", 0), ("q5", "a", 0)]
    run = pd.DataFrame(found, columns=["qid", "docno", "rank"]).assign(query="words", score=0.0)
    once = clsm.top_grades([run], Split(topics, qrels))
    assert once.tolist() == [1, 0, 0, 0]  # b before a; a is unjudged; below 0; nothing found; q5 is unjudged
    assert clsm.top_grades([run, run], Split(topics, qrels)).tolist() == [1, 0, 0, 0] * 2


def test_the_top_document_among_ties_is_that_of_the_measure(tmp_path):
    qids = [f"q{number}" for number in range(4)]
    topics = pd.DataFrame({"qid": qids, "query": "words"})
    run = pd.DataFrame(
        [(qid, docno, 1.0) for qid in qids for docno in ("a", "c", "b")], columns=["qid", "docno", "score"]
    )
    run = run.assign(rank=run.groupby("qid").cumcount())
    qrels = pd.DataFrame(
        [("q0", "a", 1), ("q1", "b", 1), ("q2", "c", 1), ("q3", "c", 1)], columns=["qid", "docno", "label"]
    )
    comparison = Comparison(Split(topics, qrels), [nDCG @ 1], SavedRuns(tmp_path, {}))
    comparison.add({"one": pt.Transformer.from_df(run)})
    grades = clsm.top_grades(comparison.frames["one"].values(), comparison.split)
    assert grades.tolist() == comparison.values(nDCG @ 1, ["one"]).loc[qids, "one"].tolist() == [0, 0, 1, 1]


def test_the_table_has_the_grades_of_both():
    table = clsm.grade_table(np.array([0, 2, 2]), np.array([1, 0, 0]))
    assert table.to_numpy().tolist() == [[0, 1, 0], [0, 0, 0], [2, 0, 0]]


def test_bars_are_percentages():
    grades = {"telescoped": {"DSSM": np.array([0, 0, 1, 2]), "CLSM": np.array([0, 1, 1, 1])}}
    (axes,) = figures.top_documents(grades).axes
    assert [bar.get_height() for bar in axes.patches] == [50, 25, 25, 25, 75, 0]


def test_learning_curves_have_a_line_per_seed_and_a_label_per_model():
    rows = [(name, seed, epoch, 0.5) for name in ("DSSM", "CLSM") for seed in (1, 2) for epoch in (1, 2, 3)]
    histories = pd.DataFrame(rows, columns=["system", "seed", "epoch", "loss"])
    (axes,) = figures.learning_curves(histories).axes
    assert len(axes.lines) == 4
    assert [text.get_text() for text in axes.figure.legends[0].get_texts()] == ["DSSM", "CLSM"]
    assert axes.get_ylabel() == "training loss"
    (axes,) = figures.learning_curves(histories.assign(**{"dev nDCG@10": 0.1})).axes
    assert axes.lines[0].get_ydata().tolist() == [0.1] * 3


@pytest.mark.long
@pytest.mark.usefixtures("small_networks")
def test_pseudo_queries_train_where_there_are_no_others(run, test_only):
    options = ["--epochs", "1", "--models", "wtm", "dssm", "bm25+dssm", "--windows", "--pseudo-queries", "sentence"]
    with pytest.raises(ValueError, match="no document gives a query of kind 'sentence'"):
        run(clsm, *options, dataset=test_only)
    results = run(clsm, *options[:-1], "span", dataset=test_only)
    table = (results / "table5-all-documents.md").read_text()
    assert all(f"| {name} † |" in table for name in ("WTM", "DSSM (in-batch)", "BM25 + DSSM (in-batch)"))
    assert "| BM25 |" in table


@pytest.mark.long
def test_table_4_has_single_fields(results):
    table = pd.read_csv(results / "table4.csv")
    assert table["system"].tolist() == ["text"]  # queries share no word with the titles of these documents
    assert table["nDCG@10"].between(0.1, 1).all()


def test_lengths_are_counted_in_words(tmp_path):
    corpus = [{"docno": f"d{number}", "title": "a word " * number} for number in range(1, 5)]
    documents = pn.ForwardIndex.build(tmp_path / "forward", corpus, fields=["title"], verbose=False)
    counts = figures.length_counts(documents, ["one", "two words", "now two"])
    assert counts.to_numpy().tolist()[:3] == [["queries", 1, 1], ["queries", 2, 2], ["documents", 2, 1]]
    ax = figures.text_lengths(counts).axes[0]
    queries, texts = (patch.get_data() for patch in ax.patches)
    at = np.searchsorted(queries.edges, [1, 2, 4, 8], side="right") - 1
    assert queries.values[at[:2]] == pytest.approx([100 / 3, 200 / 3])
    assert texts.values.sum() == pytest.approx(100)
    assert "3 queries, 1.7 words on average" in ax.get_legend().get_texts()[0].get_text()
    assert "4 documents, 5.0 words on average" in ax.get_legend().get_texts()[1].get_text()


@pytest.mark.long
def test_table_2_has_the_nearest_and_furthest_contexts(results):
    table = pd.read_csv(results / "table2.csv")
    assert table.columns.tolist() == ["word", "first", "context", "CLSM (J=4)"]
    for (word, first), rows in table.groupby(["word", "first"]):
        assert first.split()[1] == word
        assert all(context.split()[1] == word for context in rows["context"])
        assert rows["CLSM (J=4)"].is_monotonic_decreasing
        assert rows["CLSM (J=4)"].between(-1, 1).all()


def test_words_with_most_contexts_are_compared_with_their_most_frequent_one():
    class Model:
        def context_similarities(self, word, contexts):
            return pd.DataFrame({"context": contexts[1:], "similarity": np.arange(len(contexts) - 1) / 10})

    queries = ["my foreign key in", "a foreign key in", "primary key of", "the public key ring", "press home page"]
    table = context_table(Model(), queries, words=1)
    assert table[["word", "first"]].drop_duplicates().to_numpy().tolist() == [["key", "foreign key in"]]
    assert table["context"].tolist() == ["public key ring", "primary key of"]  # the nearest first
    assert context_table(Model(), ["two words"]).empty


@pytest.mark.parametrize("window", [1, 3])
def test_summed_windows_by_hand(window, tmp_path):
    """A text is tanh(W_s tanh(sum over t of W_c l_t)), with l_t the letter trigrams of the words of a window."""
    candidates = pd.DataFrame(
        {"qid": ["1", "1"], "query": ["red car"] * 2, "docno": ["a", "b"], "text": ["a red car is red", "no"]}
    )
    qrels = pd.DataFrame({"qid": ["1"], "docno": ["a"], "label": [1]})
    training = pn.Training(epochs=2, learning_rate=0.1, negatives="retrieved", num_negatives=1, verbose=False)
    options = {"filters": 5, "dim": 3, "padding": "zero", "shared": True}
    model = SummingCLSM(window, **options, training=training).fit(candidates, qrels)
    tower, ngrams = model.network.query, model.reader.hashing.ngrams
    convolution = tower.hashing.weight.detach().numpy().reshape(len(ngrams), window, 5)

    def vector(text):
        words, total = text.split(), np.zeros(5)
        for t, i in np.ndindex(len(words), window):
            place = t + i - window // 2
            if 0 <= place < len(words):
                word = f"#{words[place]}#"
                grams = [word[start : start + 3] for start in range(len(word) - 2)]
                total += sum(convolution[ngrams.index(gram), i] for gram in grams if gram in ngrams)
        found = np.tanh(tower.semantic.weight.detach().numpy() @ np.tanh(total))
        return found / np.linalg.norm(found)

    scores = [vector("red car") @ vector(text) for text in candidates["text"]]
    np.testing.assert_allclose(model.transform(candidates)["score"], scores, atol=1e-5)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        SummingCLSM.load(tmp_path / "model").transform(candidates)["score"], model.transform(candidates)["score"]
    )
