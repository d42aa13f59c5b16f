"""Temporary arrays: what is written is what is read, by threads and forked processes too, and nothing is left."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse import csr_array

from pt_neural._temporary import SparseBlocks, Spool, temporary_array


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))
    yield
    assert os.listdir(tmp_path) == []


def test_arrays_come_back():
    spool, matrix = Spool(), csr_array(np.diag([1.0, 0, 3]))
    arrays = [np.arange(5), np.zeros((0, 3), "f4"), np.ones((2, 3), "f4").T, np.zeros(0), None]
    places = [spool.write(array) for array in arrays]
    kept = spool.write(matrix)
    for place, array in zip(places, arrays, strict=True):
        found = spool.read(place)
        assert (found is None) == (array is None)
        if array is not None:
            np.testing.assert_array_equal(found, array)
            assert found.dtype == array.dtype
    np.testing.assert_array_equal(spool.read(kept).toarray(), matrix.toarray())
    assert not spool.read(places[0]).flags.owndata


def test_threads_write_one_after_the_other():
    spool, arrays = Spool(), [np.full(1000, number) for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        places = list(pool.map(spool.write, arrays))
    for place, array in zip(places, arrays, strict=True):
        np.testing.assert_array_equal(spool.read(place), array)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_leaves_its_parents_file_alone():
    spool = Spool()
    before = spool.write(np.arange(4))
    child = os.fork()
    if not child:
        own = spool.write(np.full(4, 7))
        fine = spool.read(own).tolist() == [7] * 4 and spool.read(before).tolist() == [0, 1, 2, 3]
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    after = spool.write(np.arange(4, 8))
    assert after.start == before.start + 32
    assert spool.read(after).tolist() == [4, 5, 6, 7]


def test_zeros_on_disk():
    array = temporary_array((3, 2), "f4")
    array[1] = 5
    assert array.tolist() == [[0, 0], [5, 5], [0, 0]]
    assert temporary_array((0, 2), "f4").shape == (0, 2)


def test_blocks_are_read_again_and_again():
    parts = [csr_array(np.eye(2, 3)), csr_array(np.ones((1, 3)))]
    blocks = SparseBlocks(iter(parts))
    assert blocks.shape == (3, 3)
    for _ in range(2):
        for block, part in zip(blocks, parts, strict=True):
            np.testing.assert_array_equal(block.toarray(), part.toarray())
