from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import scipy.linalg


def test_threads_with_different_settings_do_not_disturb_each_other(index, topics):
    settings = [{"k1": k1, "b": b} for k1 in (0.1, 0.5, 0.9, 2.0) for b in (0.0, 0.4, 0.8)]
    expected = [index.bm25(**setting)(topics) for setting in settings]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda setting: index.bm25(**setting)(topics), settings * 20))
    for i, frame in enumerate(found):
        pd.testing.assert_frame_equal(frame, expected[i % len(settings)])


def test_spawned_workers_search(index, topics):
    expected = index.bm25()(topics)
    jobs = [joblib.delayed(index.bm25())(topics) for _ in range(2)]
    for frame in joblib.Parallel(n_jobs=2)(jobs):
        pd.testing.assert_frame_equal(frame, expected)


def test_java_beside_threads_of_scipy(index, topics):
    """A crash was once seen in a process that used Java and much of SciPy; it has not been repeated."""
    matrix = np.random.default_rng(7).normal(size=(120, 120))
    expected = index.bm25()(topics)

    def work(i):
        if i % 2:
            return scipy.linalg.svdvals(matrix)[0]
        return index.bm25()(topics)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(80)))
    assert all(frame.equals(expected) for frame in results[::2])
    assert np.allclose(results[1::2], results[1])
