import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyterrier as pt
import pytest

from pt_neural import _artifacts
from pt_neural._artifacts import atomic_directory, read_metadata, write_metadata
from pt_neural._files import (
    ArtifactError,
    GrowingArray,
    finite,
    load_array,
    map_bytes,
    read_json,
    read_tensors,
    replacing,
    within,
    write_json,
    write_tensors,
)


def write(path, **options):
    with atomic_directory(path, **options) as temporary:
        (temporary / "file").write_text("new")


def test_directory_appears_whole(tmp_path):
    with atomic_directory(tmp_path / "deep" / "down") as temporary:
        (temporary / "file").write_text("x")
        assert not (tmp_path / "deep" / "down").exists()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["down"]


def test_failure_leaves_nothing_behind(tmp_path):
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), atomic_directory(tmp_path / "a") as temporary:
            (temporary / "file").write_text("x")
            raise error
        assert list(tmp_path.iterdir()) == []


def test_failure_keeps_the_old_directory(tmp_path):
    write(tmp_path / "a")
    (tmp_path / "a" / "pt_meta.json").write_text("{}")
    with pytest.raises(ValueError, match="boom"), atomic_directory(tmp_path / "a", overwrite=True) as temporary:
        (temporary / "file").write_text("half")
        raise ValueError("boom")
    assert (tmp_path / "a" / "file").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_overwrites_only_when_told(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").write_text("old")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write(tmp_path / "a")
    with pytest.raises(FileExistsError, match=r"is not an artifact \(pt_meta.json is missing\)"):
        write(tmp_path / "a", overwrite=True)
    assert (tmp_path / "a" / "old").exists()
    (tmp_path / "a" / "pt_meta.json").write_text("{}")
    write(tmp_path / "a", overwrite=True)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_another_process_that_was_faster_at_the_last_moment_is_not_moved(tmp_path, monkeypatch):
    move = _artifacts._move_directory

    def move_too_late(source, target):
        target.mkdir()
        (target / "file").write_text("faster")
        there = target.stat().st_ino
        with pytest.raises(FileExistsError, match="exists already"):
            move(source, target)
        assert target.stat().st_ino == there

    monkeypatch.setattr(_artifacts, "_move_directory", move_too_late)
    write(tmp_path / "a")
    assert (tmp_path / "a" / "file").read_text() == "faster"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_empty_directory_may_be_there(tmp_path):
    (tmp_path / "a").mkdir()
    write(tmp_path / "a")
    assert (tmp_path / "a" / "file").read_text() == "new"


def write_artifact(path, type, format, **options):
    with atomic_directory(path, overwrite=True, **options) as temporary:
        write_metadata(temporary, type=type, format=format)


def test_an_artifact_of_another_kind_is_never_replaced(tmp_path):
    write_artifact(tmp_path / "a", "ranker", "lsa")
    for type, format in (("ranker", "dssm"), ("forward_index", "lsa")):
        with pytest.raises(FileExistsError, match=rf"holds a ranker\.lsa, not a {type}\.{format}"):
            write_artifact(tmp_path / "a", type, format)
        with (
            pytest.raises(FileExistsError, match="holds a ranker"),
            atomic_directory(tmp_path / "a", overwrite=True, type=type, format=format),
        ):
            pytest.fail("what would be refused in the end is refused at once")
    assert read_metadata(tmp_path / "a", type="ranker", format="lsa")
    write_artifact(tmp_path / "a", "ranker", "lsa")
    (tmp_path / "a" / "pt_meta.json").write_text("{")
    with pytest.raises(FileExistsError, match="stays as it is"):
        write_artifact(tmp_path / "a", "ranker", "lsa")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_replacing_an_artifact_leaves_no_moment_without_one(tmp_path):
    write_artifact(tmp_path / "a", "t", "f")
    done, missing = threading.Event(), []

    def look():
        while not done.is_set():
            try:
                read_metadata(tmp_path / "a", type="t", format="f")
            except (FileNotFoundError, ArtifactError) as error:
                missing.append(error)

    watcher = threading.Thread(target=look)
    watcher.start()
    for _ in range(100):
        write_artifact(tmp_path / "a", "t", "f")
    done.set()
    watcher.join()
    assert not missing
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.fixture(params=["in one step", "in two steps"])
def steps(request, monkeypatch):
    """Where the system exchanges directories, and where it cannot."""
    if request.param == "in two steps":
        monkeypatch.setattr(_artifacts, "_renameat2", lambda: None)


@pytest.mark.usefixtures("steps")
def test_of_two_writers_the_later_wins(tmp_path):
    write_artifact(tmp_path / "a", "t", "f")
    with atomic_directory(tmp_path / "a", overwrite=True) as first:
        write_metadata(first, type="t", format="f", writer="first")
        with atomic_directory(tmp_path / "a", overwrite=True) as second:
            write_metadata(second, type="t", format="f", writer="second")
        assert read_metadata(tmp_path / "a", type="t", format="f")["writer"] == "second"
        assert first.exists()
    assert read_metadata(tmp_path / "a", type="t", format="f")["writer"] == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.usefixtures("steps")
def test_eight_writers_at_the_same_time(tmp_path):
    def replace(number):
        for _ in range(20):
            with atomic_directory(tmp_path / "a", overwrite=True, type="t", format="f") as directory:
                (directory / "number").write_text(str(number))
                write_metadata(directory, type="t", format="f", number=number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(replace, range(8)))
    found = read_metadata(tmp_path / "a", type="t", format="f")
    assert (tmp_path / "a" / "number").read_text() == str(found["number"])
    write_artifact(tmp_path / "a", "t", "f")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_writer_left_is_removed_by_the_next_one_only(tmp_path):
    code = "import sys; from pt_neural._artifacts import *\nwith atomic_directory(sys.argv[1]) as path:\n"
    code += "    (path / 'file').write_text('half'); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        (unfinished,) = tmp_path.iterdir()
        write(tmp_path / "a")
        assert {path.name for path in tmp_path.iterdir()} == {"a", unfinished.name}
        other.kill()
    assert unfinished.exists()
    (tmp_path / "a" / "pt_meta.json").write_text("{}")
    (tmp_path / ".b.0123456789ab.tmp").mkdir()  # of another artifact
    write(tmp_path / "a", overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"a", ".b.0123456789ab.tmp"}


def test_an_artifact_that_was_moved_aside_is_put_back(tmp_path):
    """Where a directory cannot be replaced in one step, a writer may be killed between the two."""
    write_artifact(tmp_path / "a", "t", "f")
    (tmp_path / "a").rename(tmp_path / ".a.0123456789ab.old")
    assert read_metadata(tmp_path / "a", type="t", format="f")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    (tmp_path / "a").rename(tmp_path / ".a.0123456789ab.old")
    with pytest.raises(FileExistsError):
        write(tmp_path / "a")


@pytest.mark.usefixtures("steps")
def test_a_link_to_an_artifact_stays_a_link(tmp_path):
    write_artifact(tmp_path / "a", "t", "f")
    (tmp_path / "link").symlink_to(tmp_path / "a", target_is_directory=True)
    with atomic_directory(tmp_path / "link", overwrite=True) as directory:
        write_metadata(directory, type="t", format="f", number=2)
    assert (tmp_path / "link").is_symlink()
    assert read_metadata(tmp_path / "a", type="t", format="f")["number"] == 2
    assert {path.name for path in tmp_path.iterdir()} == {"a", "link"}


def test_everything_is_on_the_disk_before_it_is_moved(tmp_path, monkeypatch):
    synced, moved = [], []

    def fsync(handle):
        synced.append(os.fstat(handle).st_ino)

    def move(source, target):
        moved.extend(path.stat().st_ino for path in [source, *source.rglob("*")])
        assert set(moved) <= set(synced)
        replace(source, target)

    replace = _artifacts._replace_directory
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(_artifacts, "_replace_directory", move)
    with atomic_directory(tmp_path / "a", overwrite=True) as directory:
        (directory / "deep").mkdir()
        (directory / "deep" / "file").write_text("x")
        write_metadata(directory, type="t", format="f")
    assert len(moved) == 4
    assert synced[-1] == tmp_path.stat().st_ino


def test_a_file_is_replaced_in_one_step(tmp_path, monkeypatch):
    path, synced = tmp_path / "run.json", []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    with replacing(path) as unfinished:
        write_json(unfinished, 1)
    assert synced == [path.stat().st_ino, tmp_path.stat().st_ino]
    with pytest.raises(KeyError), replacing(path) as unfinished:
        write_json(unfinished, 2)
        raise KeyError
    assert read_json(path) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_files_and_directories_have_the_mode_that_the_umask_says(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask is the whole process's"))
    with atomic_directory(tmp_path / "a") as directory:
        write_tensors(directory / "weights.safetensors", {"a": np.ones(2)})
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    for path, like in (("a", "directory"), ("a/weights.safetensors", "file")):
        assert (tmp_path / path).stat().st_mode == (tmp_path / like).stat().st_mode


def test_a_file_is_never_replaced(tmp_path):
    (tmp_path / "a").write_text("precious")
    with pytest.raises(FileExistsError, match="is a file"):
        write(tmp_path / "a", overwrite=True)
    assert (tmp_path / "a").read_text() == "precious"


def test_metadata_round_trip_and_what_pyterrier_reads(tmp_path):
    write_metadata(tmp_path, type="forward_index", format="pt_neural", documents=3)
    assert read_metadata(tmp_path, type="forward_index", format="pt_neural")["documents"] == 3
    with pytest.raises(ValueError, match=r"type=x\.y|No implementation|pt-neural"):
        write_metadata(tmp_path, type="x", format="y")
        pt.Artifact.load(str(tmp_path))


def test_bad_metadata_is_named(tmp_path):
    for content, message in [
        (None, "pt_meta.json is missing"),
        ("{", "pt_meta.json is damaged"),
        ("[]", "describes None.None"),
        (json.dumps({"type": "dense_index", "format": "flex"}), "describes dense_index.flex"),
        (json.dumps({"type": "t", "format": "f", "version": 2}), "upgrade"),
        (json.dumps({"type": "t", "format": "f", "version": "new"}), "damaged: its version is 'new'"),
    ]:
        if content is not None:
            (tmp_path / "pt_meta.json").write_text(content)
        with pytest.raises(ArtifactError, match=message):
            read_metadata(tmp_path, type="t", format="f")


def test_no_directory_and_a_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_metadata(tmp_path / "none", type="t", format="f")
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="is a file"):
        read_metadata(tmp_path / "file", type="t", format="f")


def test_json_of_other_encodings_is_damaged(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ArtifactError, match=r"x\.json is damaged"):
        read_json(tmp_path / "x.json")


def test_tensors_round_trip_in_every_layout(tmp_path):
    tensors = {"transposed": np.arange(6, dtype="f4").reshape(2, 3).T, "none": np.zeros((0, 3)), "one": np.int64(7)}
    write_tensors(tmp_path / "weights.safetensors", tensors)
    read = read_tensors(tmp_path / "weights.safetensors")
    assert read.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(read[name], array)
        assert (read[name].shape, read[name].dtype) == (array.shape, array.dtype)


def test_damaged_and_missing_tensors_name_the_file(tmp_path):
    path = tmp_path / "weights.safetensors"
    with pytest.raises(ArtifactError, match=r"weights\.safetensors is missing"):
        read_tensors(path)
    write_tensors(path, {"a": np.ones(8)})
    content = path.read_bytes()
    for keep in (0, 5, 40, -1):
        path.write_bytes(content[:keep])
        with pytest.raises(ArtifactError, match=r"weights\.safetensors is damaged"):
            read_tensors(path)


def test_arrays_are_checked_and_never_unpickled(tmp_path):
    path = tmp_path / "a.npy"
    with pytest.raises(ArtifactError, match=r"a\.npy is missing"):
        load_array(path, dtype=np.int64)
    for array, message in [
        (np.zeros(3), "it holds 1 dimensions of float64, not 1 of int64"),
        (np.zeros((3, 1), dtype=np.int64), "it holds 2 dimensions of int64"),
        (np.array([{}]), "Python objects in dtype"),
    ]:
        np.save(path, array)
        with pytest.raises(ArtifactError, match=rf"a\.npy is damaged: .*{message}"):
            load_array(path, dtype=np.int64, memory_map=False)
    np.save(path, np.arange(3))
    assert isinstance(load_array(path, dtype=np.int64), np.memmap)
    assert not isinstance(load_array(path, dtype=np.int64, memory_map=False), np.memmap)


def test_an_array_grows_piece_by_piece(tmp_path):
    numbers = GrowingArray(tmp_path / "numbers.npy", "int32")
    pieces = [np.arange(3), np.arange(0), np.arange(2_000_000)[::-1]]
    for piece in pieces:
        numbers.append(piece)
    numbers.close()
    for mode in (None, "r"):
        found = np.load(tmp_path / "numbers.npy", mmap_mode=mode)
        np.testing.assert_array_equal(found, np.concatenate(pieces))
        assert found.dtype == np.int32


@pytest.mark.parametrize("content", ["[" * 100_000, "9" * 5000, '{"a": ' * 100_000 + "1", "\ufeff{}"])
def test_json_that_parsers_stumble_over_is_damaged(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"x\.json is damaged"):
        read_json(tmp_path / "x.json")


def test_a_directory_in_the_place_of_a_file_is_damage(tmp_path):
    (tmp_path / "x").mkdir()
    for read in (read_json, read_tensors, map_bytes, partial(load_array, dtype=np.int64)):
        with pytest.raises(ArtifactError, match="x is damaged: it is not a file"):
            read(tmp_path / "x")


def test_a_header_that_names_a_huge_array_takes_no_memory(tmp_path):
    path = tmp_path / "a.npy"
    for shape in ("(9999999999999,)", "(-1,)", f"({'9' * 5000},)", "(9,", "{}"):
        header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".encode()
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8))
        for memory_map in (True, False):
            with pytest.raises(ArtifactError, match=r"a\.npy is damaged"):
                load_array(path, dtype=np.int64, memory_map=memory_map)


def test_checks_of_numbers():
    long = np.arange(200_000)
    assert within(long, 200_000)
    assert not within(long, 199_999)
    assert not within(np.append(long, -1).astype("i4"), 200_000)
    assert within(long[:0], 0)
    large = np.full(1000, 3e38, dtype="f4")
    assert finite(large)  # though their sum is not
    for value in (np.nan, np.inf, -np.inf):
        assert not finite(np.append(large, np.float32(value)))
