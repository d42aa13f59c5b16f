"""Shards searched by actors of a Ray cluster give the frames of the index."""

import os
import signal
import threading

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

pytestmark = pytest.mark.long


def retrievers(index):
    return [index.bm25(num_results=20), index.bm25(field="note"), index.ql(mu=50), index.sdm(), index.sdm("bm25")]


def heap(group):
    """Megabytes of the heap of an actor's Java."""
    from pt_neural.lucene.java.jvm import in_java, java_class

    return in_java(lambda: java_class("java.lang.Runtime").getRuntime().maxMemory() >> 20)()


def test_frames_of_actors_equal_those_of_the_index(cluster, whole, in_shards, word_topics):
    import ray

    topics, index = word_topics, in_shards(4)
    expected = [retriever(topics) for retriever in retrievers(whole)]
    with index.on_ray(actors=2, heap="200m") as shards:
        for found, retriever in zip(expected, retrievers(shards), strict=True):
            assert_frame_equal(retriever(topics), found, check_exact=True)
            rows = found.sample(frac=1, random_state=1)
            assert_frame_equal(retriever(rows), retriever.retriever(rows), check_exact=True)
        with pytest.raises(ValueError, match="has no field 'body'; it has contents, note, title"):
            shards.bm25(field="body")(topics)
        assert 100 < ray.get(shards._actors[0].__ray_call__.remote(heap)) <= 200
        pids = [ray.get(actor.__ray_call__.remote(lambda group: os.getpid())) for actor in shards._actors]
        threading.Timer(0.2, os.kill, (pids[0], signal.SIGKILL)).start()
        many = pd.concat([topics] * 8)
        assert_frame_equal(shards.sdm()(many), index.sdm()(many), check_exact=True)
        os.kill(pids[1], signal.SIGKILL)
        assert_frame_equal(shards.ql(mu=50)(topics), expected[2], check_exact=True)
        bm25 = shards.bm25()
    with pytest.raises(RuntimeError, match=r"the actors of LuceneShards\('index'\)\.on_ray\(\) have ended"):
        bm25(topics)


def test_what_no_cluster_can_do(cluster, in_shards):
    with pytest.raises(ValueError, match="actors=5, but there are 4 shards"):
        in_shards(4).on_ray(actors=5)
    with pytest.raises(ValueError, match="a worker needs 64 processors"):
        in_shards(4).on_ray(cpus=64)
