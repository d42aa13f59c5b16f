import json

import numpy as np
import pyterrier as pt
import pytest

from pt_neural import _artifacts
from pt_neural._artifacts import atomic_directory, read_metadata, write_metadata
from pt_neural._files import ArtifactError, GrowingArray, load_array, read_json, read_tensors, write_tensors


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
        (np.array([{}]), "allow_pickle=False"),
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
