"""The main job in small: retrieve, re-rank, mix, compare, from one expression to a table."""

import pickle
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import nDCG

import pt_neural as pn

QRELS = pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": ["d2", "d3", "d5"], "label": [1, 1, 1]})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("main_job")


@pytest.fixture
def index(place, corpus) -> pn.LuceneIndex:
    index = pn.LuceneIndex(place / "lucene")
    return index if index.built() else index.index(corpus, verbose=False)


@pytest.fixture
def desm(corpus) -> pn.DESM:
    spaces = pn.EmbeddingSpaces.train(corpus * 20, dim=16, min_count=1, subsample=0, workers=1, verbose=False)
    return pn.DESM(spaces)


@pytest.fixture
def vectors(place, desm, corpus):
    return desm.index(place / "vectors", corpus, overwrite=True, verbose=False)


def test_every_public_way_of_ranking_in_one_experiment(index, desm, vectors, topics):
    bm25, dense = index.bm25(), desm.retriever(vectors)
    candidates = bm25 % 5 >> index.text_loader(["title", "text"])
    kept = pn.DESM(desm.spaces, vectors=vectors)
    mixed = candidates >> pn.Mixture(desm, alpha=0.2)
    systems = [bm25, index.ql(), index.sdm(), index.rm3(), candidates >> desm, bm25 >> kept, dense, mixed]
    systems += [pn.Mixture(dense, bm25, normalise="minmax"), 0.2 * dense + 0.8 * bm25]
    table = pt.Experiment(systems, topics, QRELS, [nDCG @ 10], names=[f"s{i}" for i in range(len(systems))])
    values = dict(zip(table["name"], table["nDCG@10"], strict=True))
    assert values["s0"] == 1.0  # each query's words are in its document only
    assert all(0 <= value <= 1 for value in values.values())


def test_plain_expressions_equal_mixtures_where_no_document_is_missing(index, desm, topics):
    candidates = index.bm25() >> index.text_loader()
    plain = candidates >> (0.3 * desm + 0.7 * pt.Transformer.identity())
    ours = candidates >> pn.Mixture(desm, alpha=0.3)
    merged = plain(topics).merge(ours(topics), on=["qid", "docno"])
    assert len(merged) == len(ours(topics))
    np.testing.assert_allclose(merged["score_x"], merged["score_y"], atol=1e-6)


def test_tuned_pipeline_keeps_its_alpha(index, desm, vectors, topics):
    mixed = index.bm25() >> pn.Mixture(pn.DESM(desm.spaces, vectors=vectors), alpha=1.0)
    curve = pn.tune_alpha(mixed, topics, QRELS, points=11)
    assert mixed[-1].alpha == curve.alpha == 0.0  # BM25 is perfect here already


def test_rank_cutoffs_are_fused(index):
    compiled = (index.bm25() % 3 >> index.text_loader()).compile()
    assert compiled[0].num_results == 3


def test_whole_pipelines_draw_and_print(index, desm, vectors):
    pipeline = index.bm25() % 5 >> pn.Mixture(pn.DESM(desm.spaces, vectors=vectors)) >> pt.RankCutoff(2)
    assert "Mixture" in pt.schematic.draw(pipeline)
    assert len(repr(pipeline)) < 200
    assert pt.inspect.transformer_outputs(pipeline, ["qid", "query"])


def test_artifacts_load_by_their_type(index, desm, place, corpus):
    forward = pn.ForwardIndex.build(place / "forward", corpus, overwrite=True, verbose=False)
    desm.spaces.save(place / "spaces", overwrite=True)
    desm.save(place / "desm", overwrite=True)
    for path, kind in (("spaces", pn.EmbeddingSpaces), ("desm", pn.DESM), ("forward", pn.ForwardIndex)):
        assert isinstance(pt.Artifact.load(str(place / path)), kind)
    assert len(forward) == len(index) == 6


def test_a_spawned_worker_gives_the_same_results(index, desm, vectors, topics):
    pipeline = index.bm25() >> pn.Mixture(pn.DESM(desm.spaces, vectors=vectors), alpha=0.4)
    with get_context("spawn").Pool(1) as pool:
        there = pool.apply(pickle.loads(pickle.dumps(pipeline)), (topics,))
    pd.testing.assert_frame_equal(there, pipeline(topics))


def test_empty_topics_pass_through_everything(index, desm, vectors, topics):
    nothing = topics.iloc[:0]
    dense = desm.retriever(vectors)
    for pipeline in (
        index.bm25() >> index.text_loader() >> desm,
        pn.Mixture(dense, index.bm25()),
        index.sdm() >> pn.DESM(desm.spaces, vectors=vectors),
    ):
        out = pipeline(nothing)
        assert len(out) == 0
        assert {"qid", "query", "docno", "score", "rank"} <= set(out.columns)
