import argparse
from itertools import product

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import nDCG

from pipelines.common import first_stage
from pipelines.common.collection import load
from pipelines.common.first_stage import BM25ByFold, LengthPrior, Remembered, WordBM25, tuned_bm25
from pipelines.common.statistical import TunedByFold
from pipelines.common.workspace import Workspace
from pt_neural.experiment.alpha import assign_folds
from pt_neural.text import tokenise
from tests.pipelines.conftest import write_collection

K1, B = (0.5, 3.0), (0.1, 0.9)


@pytest.fixture
def workspaces(folder, test_only, tmp_path, monkeypatch):
    """One with dev queries and one with test queries only; few settings to choose from."""
    monkeypatch.setattr(first_stage, "K1", K1)
    monkeypatch.setattr(first_stage, "B", B)
    arguments = argparse.Namespace(out=tmp_path / "out", seeds=[13], seed=13, dataset="any")
    return [Workspace(arguments, "any", load(f"neural:folder:{place}")) for place in (folder, test_only)]


def quality(index, topics, qrels):
    """nDCG@10 of each query and setting, as an experiment measures it."""
    pairs = list(product(K1, B))
    frame = pt.Experiment(
        [index.bm25(*pair) for pair in pairs], topics, qrels, [nDCG @ 10], names=[*map(str, pairs)], perquery=True
    )
    frame = frame.pivot_table(index="qid", columns="name", values="value")
    return frame[[*map(str, pairs)]].set_axis(pairs, axis=1)


def test_k1_and_b_are_the_best_on_dev_queries_and_chosen_once(workspaces, capsys):
    workspace, dev = workspaces[0], workspaces[0].collection.dev
    bm25 = tuned_bm25(workspace)
    means = quality(workspace.index(), dev.topics, dev.qrels).mean()
    assert means.max() > means.min()
    assert means[(bm25.k1, bm25.b)] == pytest.approx(means.max())
    printed = capsys.readouterr().out
    assert "choosing k1 and b on 12 queries" in printed
    assert repr(bm25) in printed
    assert tuned_bm25(workspace) == bm25
    assert "choosing" not in capsys.readouterr().out


def test_with_test_queries_only_each_fold_has_what_is_best_for_the_others(workspaces):
    workspace, test = workspaces[1], workspaces[1].collection.test
    bm25, values = tuned_bm25(workspace), quality(workspace.index(), test.topics, test.qrels)
    qids = [qid for qid in test.topics["qid"] if qid in values.index]
    folds = assign_folds(5, qids, 13)
    assert bm25.fold_of == dict(zip(qids, folds.tolist(), strict=True))
    for fold, settings in enumerate(bm25.folds):
        means = values.loc[[qid for qid in qids if bm25.fold_of[qid] != fold]].mean()
        assert means[(settings["k1"], settings["b"])] == pytest.approx(means.max())


@pytest.mark.parametrize("split", ["words", "stems"])
def test_bm25_over_the_words_that_models_read(split, tmp_path, monkeypatch):
    """Lucene leaves a dotted name whole; split, its parts are found, and scored by the formula over these words."""
    monkeypatch.setattr(first_stage, "K1", K1)
    monkeypatch.setattr(first_stage, "B", B)
    texts = {"d0": "calls numpy.linalg.norm often", "d1": "the norms of rows", "d2": "nothing of the kind"}
    documents = [{"_id": docno, "title": "", "text": text} for docno, text in texts.items()]
    qids = [f"q{number}" for number in range(5)]
    queries, qrels = [{"_id": qid, "text": "linalg.norm"} for qid in qids], {"test": [(qid, "d0", 1) for qid in qids]}
    folder = write_collection(tmp_path / "dotted", documents, queries, qrels)
    arguments = argparse.Namespace(out=tmp_path / "out", seeds=[13], seed=13, dataset="any")
    workspace = Workspace(arguments, "any", load(f"neural:folder:{folder}"))
    topics = workspace.collection.test.topics.head(1)
    assert tuned_bm25(workspace).transform(topics).empty
    found = tuned_bm25(workspace, split=split).transform(topics)
    assert found["docno"].tolist() == (["d0"] if split == "words" else ["d0", "d1"])
    if split == "words":
        bm25 = WordBM25(workspace.forward_index(), 100, k1=K1[0], b=B[0])
        expected = bm25.transform(found.assign(query="linalg.norm"))["score"]
        np.testing.assert_allclose(found["score"], expected, rtol=0.01)  # Lucene rounds lengths


def test_each_query_has_the_settings_of_its_fold(workspaces):
    workspace = workspaces[1]
    index, topics = workspace.index(), workspace.collection.test.topics.head(3)
    settings = [dict(zip(("k1", "b"), pair, strict=True)) for pair in product(K1, B)][:3]
    qids = topics["qid"].tolist()
    bm25 = BM25ByFold(index, settings[:2], {qids[0]: 1, qids[1]: 0}, settings[2])
    singly = [index.bm25(**settings[i]).transform(topics.iloc[[row]]) for row, i in enumerate((1, 0, 2))]
    expected = pd.concat(singly, ignore_index=True)
    pd.testing.assert_frame_equal(bm25.transform(topics), expected)
    shuffled = expected.sample(frac=1, random_state=3, ignore_index=True)
    pd.testing.assert_frame_equal(bm25.transform(shuffled), shuffled)
    assert bm25.transform(topics.head(0)).columns.tolist() == expected.columns.tolist()


def test_settings_of_a_ranker_are_chosen_on_the_other_folds(workspaces):
    """Of two parts of a ranker together, against an experiment with each of their settings."""
    workspace = workspaces[1]
    index, test = workspace.index(), workspace.collection.test
    first, second = index.bm25(num_results=20), index.ql()
    grids = {first: {"b": list(B)}, second: {"mu": [1, 2000]}}
    tuned = [TunedByFold(first >> second, grids, test, 13) for _ in range(2)]
    run, again = (each(test.topics) for each in tuned)  # settings change the hash of a transformer
    pd.testing.assert_frame_equal(run, again)
    pairs = list(product(B, (1, 2000)))
    runs = {(b, mu): (index.bm25(b=b, num_results=20) >> index.ql(mu)).transform(test.topics) for b, mu in pairs}
    frame = pt.Experiment(
        list(runs.values()), test.topics, test.qrels, ["ndcg_cut_10"], names=[*map(str, runs)], perquery=True
    )
    values = frame.pivot_table(index="qid", columns="name", values="value")[[*map(str, runs)]].set_axis(pairs, axis=1)
    assert np.ptp(values.mean()) > 0
    qids = test.judged["qid"].tolist()
    folds = assign_folds(5, qids, 13)
    for qid, fold in zip(qids, folds, strict=True):
        means = values.loc[[other for other, its in zip(qids, folds, strict=True) if its != fold]].mean()
        scores = run[run["qid"] == qid].set_index("docno")["score"].sort_index()
        best = [runs[pair] for pair in pairs if means[pair] == pytest.approx(means.max())]
        candidates = [each[each["qid"] == qid].set_index("docno")["score"].sort_index() for each in best]
        assert any(scores.equals(each) for each in candidates)


@pytest.mark.parametrize("idf", [True, False])
def test_bm25_over_the_words_that_are_read(workspaces, idf):
    """Against the formula, word by word; a word that occurs twice in the query counts twice."""
    workspace, limit, k1, b = workspaces[0], 5, 1.2, 0.7
    documents, topics = workspace.forward_index(), workspace.collection.test.topics.head(3)
    texts = {docno: terms[:limit].tolist() for docno, terms in zip(documents.docnos, documents.all(), strict=True)}
    mean = np.mean([len(text) for text in texts.values()])
    topics = topics.assign(query=topics["query"] + " " + topics["query"].str.split().str[0] + " unseen")
    rows = topics[["qid", "query"]].merge(pd.DataFrame({"docno": list(texts)}), how="cross")
    expected = []
    for query, docno in zip(rows["query"], rows["docno"], strict=True):
        text, score = texts[docno], 0.0
        for term in documents.vocabulary.lookup(tokenise(query)):
            frequency = text.count(term)
            found = sum(term in other for other in texts.values())
            weight = np.log(1 + (len(texts) - found + 0.5) / (found + 0.5)) if idf else 1.0
            score += weight * frequency / (frequency + k1 * (1 - b + b * len(text) / mean)) if frequency else 0.0
        expected.append(score)
    scores = WordBM25(documents, limit, idf=idf, k1=k1, b=b).transform(rows)["score"]
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert np.ptp(expected) > 0


def test_the_prior_is_the_logarithm_of_the_number_of_tokens(workspaces):
    documents = workspaces[0].forward_index()
    frame = pd.DataFrame({"qid": "q", "query": "words", "docno": ["d7", "d0"]})
    # Forty words and the two of the title; "Document 0" has as many tokens as "Document 7".
    np.testing.assert_allclose(LengthPrior(documents).transform(frame)["score"], [-np.log(42)] * 2)


def test_a_remembered_retriever_runs_once_for_each_set_of_queries():
    asked = []

    def retrieve(topics):
        asked.append(list(topics["qid"]))
        return topics.assign(docno="d1", score=1.0, rank=0)

    remembered = Remembered(pt.apply.generic(retrieve))
    one, other = (pd.DataFrame({"qid": qids, "query": "word"}) for qids in (["q1", "q2"], ["q3"]))
    first = remembered(one)
    first["score"] = 5.0  # what a user does to a result is not remembered
    assert remembered(one)["score"].tolist() == [1.0, 1.0]
    assert remembered(other)["qid"].tolist() == ["q3"]
    assert asked == [["q1", "q2"], ["q3"]]
