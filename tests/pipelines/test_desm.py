import json
import os
from argparse import Namespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pipelines.common.arguments import run_settings
from pipelines.common.collection import FIELDS, load
from pipelines.common.comparison import mixed_over_all
from pipelines.common.workspace import Workspace
from pipelines.desm import __main__ as desm
from pt_neural.text import tokenise


def small_embeddings(workspace, dim, seed):
    train = workspace.collection.train.topics
    corpora = {"documents": workspace.documents, "queries": lambda: train}
    return {name: workspace.spaces(name, texts, dim=dim, seed=seed, min_count=1) for name, texts in corpora.items()}


@pytest.mark.long
def test_both_tables_and_all_figures(run):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(desm, "embeddings", small_embeddings)
        results = run(desm, "--depth", "20", "--dim", "8")
    three, four = (pd.read_csv(results / f"table{number}.csv") for number in (3, 4))
    assert len(three) == 2 + 12  # BM25, LSA, and six variants of DESM trained on documents and on queries
    assert len(four) == 2 + 12 + 1 + 12 + 3
    defaults = ["", " + length prior", " + DESM (IN-OUT, trained on documents)"]
    assert four["system"].tolist()[-3:] == [f"BM25's defaults{rest}" for rest in defaults]
    assert "BM25 + length prior" in four["system"].tolist()
    assert three["system"].tolist()[:2] == four["system"].tolist()[:2] == ["BM25", "LSA"]
    settings = json.loads((results / "settings.json").read_text())
    assert len(settings["chosen"]["alpha"]) == 1 + 12
    pictures = {"figure1", "figure4", "figure5", "alpha", "lengths", "table3", "table4"}
    assert {path.stem for path in results.glob("*.png")} == pictures


@pytest.fixture
def word2vec(folder, tmp_path):
    """A pair of word2vec files with half of the collection's words, and some other one."""
    workspace = Workspace(Namespace(out=tmp_path, seeds=[1]), "desm", load(f"neural:folder:{folder}"))
    words = [*workspace.forward_index().vocabulary.terms[::2], "elsewhere"]
    random, paths = np.random.default_rng(1), [tmp_path / name for name in ("in.txt", "out.txt")]
    for path in paths:
        lines = [f"{word} {' '.join(f'{value:.3f}' for value in random.normal(size=4))}" for word in words]
        path.write_text("\n".join(lines), encoding="utf-8")
    return paths


def test_published_embeddings_stand_below_those_trained_here(run, word2vec, folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(desm, "embeddings", small_embeddings)
        patch.setattr(desm, "VARIANTS", {name: desm.VARIANTS[name] for name in ("IN-OUT", "IN-OUT centred")})
        patch.setattr(desm, "MIN_QUERIES", 1)
        patch.setattr(desm, "sampled_documents", lambda workspace, seed: list(workspace.documents())[seed::2])
        options = ["--depth", "20", "--dim", "8", "--tables", "3", "--seeds", "1", "2"]
        results = run(desm, *options, "--published", *map(str, word2vec))
    systems = pd.read_csv(results / "table3.csv")["system"].tolist()
    assert systems[2:] == ["LSA (trained on a sample of documents)"] + [
        f"DESM ({variant}, {source})"
        for variant in ("IN-OUT", "IN-OUT centred")
        for source in ("trained on documents", "trained on queries", "published")
    ]
    workspace = Workspace(Namespace(out=results.parent, seeds=[1]), "desm", load(f"neural:folder:{folder}"))
    settings = []
    for _ in range(2):
        desm.published(workspace, *map(str, word2vec))
        settings.append(run_settings(workspace.arguments))
        os.utime(word2vec[0], (0, 0))
    assert settings[0] != settings[1], "runs of other files would be taken"
    with pytest.raises(SystemExit, match=r"there is no file .*none\.txt: --published takes the IN and the OUT vectors"):
        run(desm, "--published", str(word2vec[0]), "none.txt")


def test_the_sample_of_documents_has_as_many_words_as_the_queries(folder, tmp_path):
    workspace = Workspace(Namespace(out=tmp_path, seeds=[1]), "desm", load(f"neural:folder:{folder}"))
    documents = desm.sampled_documents(workspace, 1)
    words = [len(tokenise(" ".join(document.get(field) or "" for field in FIELDS))) for document in documents]
    wanted = sum(map(len, map(tokenise, workspace.collection.train.topics["query"])))
    assert sum(words[:-1]) < wanted <= sum(words)
    docnos = [document["docno"] for document in documents]
    assert len(set(docnos)) == len(docnos)
    assert docnos == [document["docno"] for document in desm.sampled_documents(workspace, 1)]
    assert docnos != [document["docno"] for document in desm.sampled_documents(workspace, 2)]


def test_both_sides_of_a_mixture_score_every_candidate(folder, tmp_path):
    """Equation 9 by brute force: each side scores every document of the collection."""
    workspace = Workspace(Namespace(out=tmp_path, seeds=[1]), "desm", load(f"neural:folder:{folder}"))
    spaces = workspace.spaces("documents", workspace.documents, dim=8, seed=1, min_count=1, verbose=False)
    reranker, retriever = workspace.desm(spaces, "in-out", "documents", "both")
    bm25, topics = workspace.index().bm25(), workspace.collection.test.topics
    short = workspace.index().bm25(num_results=9)
    shallow = mixed_over_all(reranker, retriever % 7, short)
    shallow[-1].alpha = 0.9
    found = shallow.transform(topics)
    everything = topics.merge(pd.DataFrame({"docno": workspace.forward_index().docnos}), how="cross")
    scores = 0.9 * reranker.transform(everything)["score"] + 0.1 * bm25.transform(everything)["score"]
    expected = everything.assign(score=scores).set_index(["qid", "docno"])["score"]
    np.testing.assert_allclose(found["score"], expected[list(zip(found["qid"], found["docno"], strict=True))])
    lists = pd.concat([(retriever % 7).transform(topics), short.transform(topics)])
    assert set(zip(found["qid"], found["docno"], strict=True)) == set(zip(lists["qid"], lists["docno"], strict=True))
    deep = mixed_over_all(reranker, retriever, bm25)  # retrieves all 60 documents
    deep[-1].alpha = 0.9
    best = pt.model.add_ranks(everything.assign(score=scores)).query("rank < 10").sort_values(["qid", "rank"])
    ranked = deep.transform(topics).query("rank < 10").sort_values(["qid", "rank"])
    np.testing.assert_allclose(ranked["score"], best["score"])
