"""Room on the disk is taken before it is written to: what memory maps cannot write ends the process."""

import errno
import os

import numpy as np
import pytest

import pt_neural as pn
from pt_neural._artifacts import atomic_directory
from pt_neural._files import DiskFullError, GrowingArray, create_array, write_array, write_tensors
from pt_neural._temporary import temporary_array
from pt_neural.rankers import TermVectors
from tests.rankers import fitted


@pytest.fixture
def full(monkeypatch):
    """A disk on which nothing more has room; some bytes of a file may."""

    def fail(handle, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", fail, raising=False)


@pytest.fixture(params=["posix_fallocate", "zeros"])
def room(request, monkeypatch):
    """Where the system takes room, and where zeros are written."""
    if request.param == "zeros":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("shape", [(3,), (0,), (2, 0), (1000, 700)])
def test_an_array_written_in_any_order(tmp_path, shape):
    array = create_array(tmp_path / "a.npy", "int32", shape)
    assert not array.any()
    if array.size:
        array[::-1] = np.arange(array.size).reshape(shape)
        size, blocks = (tmp_path / "a.npy").stat().st_size, (tmp_path / "a.npy").stat().st_blocks
        assert blocks * 512 >= size
    del array
    found = np.load(tmp_path / "a.npy")
    assert (found.shape, found.dtype) == (shape, np.dtype("int32"))
    np.testing.assert_array_equal(found.ravel(), np.arange(found.size).reshape(shape)[::-1].ravel())


@pytest.mark.usefixtures("room")
def test_arrays_are_written_as_numpy_does(tmp_path):
    arrays = [np.arange(6, dtype="f4").reshape(2, 3), np.zeros((0, 3), bool), np.array(7), np.arange(9)[::2]]
    for array in arrays:
        write_array(tmp_path / "ours.npy", array)
        np.save(tmp_path / "numpy.npy", array)
        assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()
    write_array(tmp_path / "ours.npy", arrays[0].T)
    np.testing.assert_array_equal(np.load(tmp_path / "ours.npy"), arrays[0].T)


@pytest.mark.usefixtures("full")
def test_no_room_for_an_array(tmp_path):
    message = r"the disk is full: 4,000,000 bytes are needed, and [\d,]+ are free"
    for write in (
        lambda: create_array(tmp_path / "a.npy", "float32", (1000, 1000)),
        lambda: write_array(tmp_path / "a.npy", np.zeros((1000, 1000), "float32")),
    ):
        with pytest.raises(DiskFullError, match=message) as error:
            write()
        assert error.value.errno == errno.ENOSPC
        assert error.value.filename == str(tmp_path / "a.npy")
    with pytest.raises(DiskFullError, match="are needed"):
        temporary_array((1000, 1000), "float32")


@pytest.mark.usefixtures("full")
def test_artifacts_without_room_are_not_there(tmp_path):
    for build in (
        lambda path: pn.ForwardIndex.build(path, fitted.CORPUS, verbose=False),
        lambda path: fitted.fitted("TFIDF").index(path, fitted.CORPUS, verbose=False),
        lambda path: fitted.spaces().save(path),
    ):
        with pytest.raises(DiskFullError, match="are needed"):
            build(tmp_path / "a")
        assert not list(tmp_path.iterdir())


def test_a_write_that_fails_says_how_much_was_written(tmp_path):
    message = r"more than 5,000 bytes are needed, and [\d,]+ are free: .*artifact'"
    with pytest.raises(DiskFullError, match=message), atomic_directory(tmp_path / "artifact") as directory:
        (directory / "file").write_bytes(bytes(5000))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not list(tmp_path.iterdir())


def test_tensors_that_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="directory"):
        (tmp_path / "weights").mkdir()
        write_tensors(tmp_path / "weights", {"a": np.ones(3)})


def test_files_are_closed_if_the_disk_is_full(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    array = GrowingArray(tmp_path / "a.npy", "int32")
    array._file.close()
    array._file = open("/dev/full", "wb")  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"):
        array.append(np.zeros(100_000))
        array.close()
    with pytest.raises(OSError, match="No space left"):
        array.close()
    assert array._file.closed


def test_what_is_indexed_in_blocks_is_the_same(tmp_path, monkeypatch):
    fitted.fitted("TFIDF").index(tmp_path / "one", fitted.CORPUS, verbose=False)
    monkeypatch.setattr("pt_neural.rankers.kept.term_vectors.WEIGHTS_PER_BLOCK", 7)
    fitted.fitted("TFIDF").index(tmp_path / "blocks", fitted.CORPUS, verbose=False)
    one, blocks = TermVectors(tmp_path / "one"), TermVectors(tmp_path / "blocks")
    assert (one.postings != blocks.postings).nnz == 0
