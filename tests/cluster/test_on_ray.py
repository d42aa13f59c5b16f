"""Pipelines on two raylets give the frames that they give here.

Ray sends workers functions that are made in functions, so that they do not import this file and with it all rankers.
"""

import os
import pickle
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from tests.rankers import fitted

EXACT = ("DESM", "DSSM", "CLSM", "DRMM", "SSI", "LSA", "WordTranslation")
CLOSE = ("Duet", "MatchTensor", "PLSA")  # equal to 1e-6, in the same ranks: the last bits depend on the other rows
pytestmark = pytest.mark.long


def one_of(pipelines):
    """One of several pipelines, named by a column; so that all of them share their workers, which start slowly."""

    def transform(inp):
        (column,) = [name for name in inp if name.startswith("use ")]
        return pipelines[column.removeprefix("use ")](inp.drop(columns=column))

    return pt.apply.generic(transform)


def dying(marker):
    """Passes frames on; its first process dies at the query q3, slowly enough for others to have begun."""

    def pass_on(inp):
        time.sleep(0.2)
        if (inp["qid"] == "q3").any() and not Path(marker).exists():
            Path(marker).write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return inp

    return pt.apply.generic(pass_on)


@pytest.fixture(scope="module")
def documents():
    random = np.random.default_rng(6)
    words = sorted({word for document in fitted.CORPUS for word in document["text"].lower().split()})
    texts = [" ".join(random.choice(words, size=random.integers(3, 30))) for _ in range(300)]
    return [{"docno": f"d{i}", "title": " ".join(text.split()[:2]), "text": text} for i, text in enumerate(texts)]


@pytest.fixture(scope="module")
def topics(documents):
    random = np.random.default_rng(7)
    texts = [" ".join(random.choice(document["text"].split(), size=2)) for document in documents[::12]]
    return pd.DataFrame({"qid": [f"q{i}" for i in range(len(texts))], "query": texts})


@pytest.fixture(scope="module")
def index(documents, tmp_path_factory):
    return pn.LuceneIndex(tmp_path_factory.mktemp("ray") / "index").index(documents, verbose=False)


@pytest.fixture(scope="module")
def pipelines(index):
    found = {"BM25": index.bm25(num_results=20), "QL": index.ql(num_results=20), "SDM": index.sdm(num_results=20)}
    found["expansion"] = found["BM25"] >> pn.LatentConceptExpansion(index, fb_docs=3) >> found["BM25"]
    found["mixture"] = pn.Mixture(found["BM25"], found["QL"], 0.4) % 5
    found["RM3"] = index.rm3(fb_docs=3, num_results=10)
    candidates = index.bm25(num_results=20) >> index.text_loader()
    for name in (*EXACT, *CLOSE):
        found[name] = candidates >> fitted.fitted(name)
    return found


@pytest.fixture(scope="module")
def fast(cluster, pipelines):
    with pn.on_ray(one_of(pipelines), workers=2, heap="200m", parts=3) as fast:
        yield fast


def compare(fast, pipelines, name, frame):
    serial = pipelines[name](frame)
    shared = fast(frame.assign(**{f"use {name}": 0}))
    if name in CLOSE:
        pd.testing.assert_frame_equal(shared, serial, rtol=0, atol=1e-6)
        assert (shared["rank"] == serial["rank"]).all()
    else:
        pd.testing.assert_frame_equal(shared, serial, check_exact=True)


@pytest.mark.parametrize("name", ["BM25", "QL", "SDM", "RM3", "mixture", "expansion", *EXACT, *CLOSE])
def test_pipelines_give_the_same_frames(fast, pipelines, topics, name):
    compare(fast, pipelines, name, topics)
    compare(fast, pipelines, name, topics.sample(frac=1, random_state=1))
    compare(fast, pipelines, name, topics.head(0))
    compare(fast, pipelines, name, topics.head(1))


@pytest.mark.parametrize("name", ["BM25", "DSSM"])
def test_candidates_in_any_order(fast, pipelines, topics, name):
    candidates = pipelines["BM25"](topics)
    for frame in (candidates.sample(frac=1, random_state=3), pd.concat([candidates, candidates.head(70)])):
        compare(fast, pipelines, name, frame)


def test_operators_and_cut_offs(cluster, index, topics):
    bm25, ql = index.bm25(num_results=15), index.ql(num_results=15)
    fused = ((0.3 * bm25 + 0.7 * ql) % 5 ^ ql) >> index.text_loader(["title"])
    pipelines = {
        "sum, cut-off, concatenation and features": fused >> (ql ** index.sdm()),
        "intersection and union": (bm25 & ql) | bm25 % 3,
    }
    shuffled = topics.sample(frac=1, random_state=9)
    for name, pipeline in pipelines.items():
        with pn.on_ray(pipeline, workers=1, parts=2, heap="200m", cpus=0.5) as fast:
            pd.testing.assert_frame_equal(fast(shuffled), pipeline(shuffled), check_exact=True, obj=name)


def test_errors_are_those_of_the_transformer(fast, pipelines, topics):
    with pytest.raises(pt.validate.InputValidationError) as serial:
        pipelines["BM25"].transform(topics[["qid"]])
    with pytest.raises(pt.validate.InputValidationError) as shared:
        fast(topics[["qid"]].assign(**{"use BM25": 0}))
    assert str(shared.value) == str(serial.value)
    assert "In a worker" in shared.value.__notes__[0]


def test_a_result_that_does_not_pickle_is_an_error_at_once(cluster, topics):
    locks = pt.apply.generic(lambda frame: frame.assign(lock=[threading.Lock() for _ in range(len(frame))]))
    with pn.on_ray(locks, workers=1) as fast:
        for _ in range(2):
            with pytest.raises(TypeError, match="cannot pickle"):
                fast(topics)


def test_a_worker_that_is_killed_is_replaced(cluster, index, topics, tmp_path):
    pipeline = index.bm25(num_results=10) >> dying(str(tmp_path / "died"))
    with pn.on_ray(pipeline, workers=2, heap="200m", parts=3) as fast:
        shared = fast(topics)
        assert int((tmp_path / "died").read_text()) != os.getpid()
        pd.testing.assert_frame_equal(shared, pipeline(topics), check_exact=True)


def test_work_that_always_kills_its_worker_ends_with_an_error(cluster, topics):
    def die(frame):
        os.kill(os.getpid(), signal.SIGKILL)

    with pn.on_ray(pt.apply.generic(die), workers=1) as fast, pytest.raises(RuntimeError, match="3 workers have died"):
        fast(topics)


def test_the_loss_of_a_machine_is_made_good(cluster, topics):
    import ray

    lost = cluster.add_node(num_cpus=2, resources={"lost": 1}, object_store_memory=100_000_000)
    slow = pt.apply.generic(lambda frame: [time.sleep(0.5), frame.assign(worked=True)][1])
    free = int(ray.available_resources()["CPU"])
    with pn.on_ray(slow, workers=free, parts=2) as fast:  # some of them on the machine that is lost
        fast(topics.head(12))
        cluster.remove_node(lost, allow_graceful=False)
        pd.testing.assert_frame_equal(fast(topics), slow(topics), check_exact=True)


def test_workers_live_until_they_are_released(cluster, topics):
    import ray

    pids = pt.apply.generic(lambda frame: frame.assign(pid=os.getpid()))
    fast = pn.on_ray(pids, workers=1)
    first = set(fast(topics)["pid"])
    assert set(fast(topics)["pid"]) == first
    assert os.getpid() not in first
    fast.release()
    for _ in range(100):
        alive = [pid for pid in first if Path(f"/proc/{pid}").exists()]
        if not alive:
            break
        time.sleep(0.1)
    assert not alive
    assert ray.is_initialized()
    assert set(fast(topics)["pid"]).isdisjoint(first)
    fast.release()


def test_workers_of_a_cluster_that_is_gone_are_not_asked(cluster, topics):
    fast = pn.on_ray(pt.Transformer.identity(), workers=1)
    pd.testing.assert_frame_equal(fast(topics), topics)
    pn.cluster.disconnect()
    try:
        pn.cluster.connect("local", num_cpus=1, include_dashboard=False)
        pd.testing.assert_frame_equal(fast(topics), topics)
    finally:
        pn.cluster.disconnect()
        pn.cluster.connect(cluster.address)


def test_too_large_a_worker_is_refused(cluster, topics):
    with pytest.raises(ValueError, match="a worker needs 64 processors and 0 GPUs, but no machine"):
        pn.on_ray(pt.Transformer.identity(), cpus=64)(topics)


def test_experiments_and_fits_take_it(cluster, index, topics):
    candidates = index.bm25(num_results=10) >> index.text_loader()
    qrels = pd.DataFrame({"qid": topics["qid"], "docno": [f"d{i}" for i in range(0, 300, 12)], "label": 1})
    with pn.on_ray(candidates, workers=1, parts=3, heap="200m") as fast:
        table = pt.Experiment([candidates, fast], topics, qrels, ["ndcg_cut_10"])
        assert table["ndcg_cut_10"][0] == table["ndcg_cut_10"][1] > 0
        models = [fitted.unfitted("DSSM") for _ in range(2)]
        for first_stage, model in zip((candidates, fast), models, strict=True):
            (first_stage >> model).fit(topics, qrels, topics.head(5), qrels)
        results = [model(candidates(topics)) for model in models]
        pd.testing.assert_frame_equal(*results, check_exact=True)


def test_it_pickles_and_prints_without_its_workers(index):
    fast = pn.on_ray(index.bm25(), workers=2)
    assert repr(fast) == f"on_ray({index.bm25()!r}, workers=2)"
    assert pickle.loads(pickle.dumps(fast)) == fast
    assert pt.inspect.transformer_outputs(fast, ["qid", "query"]) == ["qid", "query", "docno", "score", "rank"]
    with pytest.raises(TypeError, match="on_ray takes a transformer"):
        pn.on_ray("bm25")
