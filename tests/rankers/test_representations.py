"""Matrices of documents on disk: rounding, reading, damage."""

import json
import pickle
from collections import namedtuple

import numpy as np
import pytest

import pt_neural as pn
from pt_neural._artifacts import ArtifactError
from pt_neural.rankers import representations
from pt_neural.rankers.representations import DocumentRepresentations, forward_index_writer

CORPUS = [{"docno": f"d{i}", "text": f"word{i} city"} for i in range(7)]
SHAPE = (3, 2)


def drawn(scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=scale, size=(len(CORPUS), *SHAPE)).astype("f4")


def build(path, matrices: np.ndarray, **options) -> DocumentRepresentations:
    def encode(documents):
        assert documents.docnos == [document["docno"] for document in CORPUS]
        for rows in ([5, 0], [1, 2, 3, 4, 6]):  # in any order
            yield np.array(rows), matrices[rows]

    options = {"model": "abc", "dtype": "float16", "overwrite": False, **options}
    writer = forward_index_writer(CORPUS, ["text"], verbose=False)
    return DocumentRepresentations.build(path, writer, encode, SHAPE, **options)


def test_float16_is_numpys(tmp_path):
    matrices = drawn(100)
    kept = build(tmp_path / "kept", matrices)
    rows = np.array([6, 0, 0, 3])
    found = kept.read(rows)
    np.testing.assert_array_equal(found, matrices[rows].astype("f2").astype("f4"))
    assert found.dtype == np.float32
    assert (len(kept), kept.dtype, kept.model) == (7, "float16", "abc")


def test_int8_has_255_steps_a_column(tmp_path):
    matrices = drawn() * np.array([1.0, 1000.0], dtype="f4")
    kept = build(tmp_path / "kept", matrices, dtype="int8")
    rows = np.array([2, 5])
    largest = np.abs(matrices[rows]).max(axis=1, keepdims=True)
    assert (np.abs(kept.read(rows) - matrices[rows]) <= largest / 254 * 1.001).all()
    np.testing.assert_allclose(np.abs(kept.read(rows)).max(axis=1, keepdims=True), largest, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_nothing_and_very_much_stay_finite(tmp_path, dtype):
    matrices = drawn()
    matrices[0], matrices[1] = 0, 1e6
    kept = build(tmp_path / "kept", matrices, dtype=dtype)
    np.testing.assert_array_equal(kept.read(np.array([0])), 0)
    largest = kept.read(np.array([1]))
    np.testing.assert_allclose(largest, 65504 if dtype == "float16" else 1e6, rtol=1e-6)


def test_reading_nothing(tmp_path):
    assert build(tmp_path / "kept", drawn()).read(np.zeros(0, dtype=np.int64)).shape == (0, *SHAPE)


def test_documents_are_those_of_a_forward_index(tmp_path):
    forward = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, fields=["text"], verbose=False)
    copied = forward_index_writer(forward, ["text"], verbose=False)(tmp_path / "copy")
    kept = build(tmp_path / "kept", drawn())
    for one in (copied, kept.documents):
        assert one.docnos == forward.docnos
        assert one.fields == ("text",)
        np.testing.assert_array_equal(one.all().terms, forward.all().terms)


def test_the_matrices_are_mapped_and_not_pickled(tmp_path):
    kept = build(tmp_path / "kept", drawn())
    expected = kept.read(np.arange(7))
    assert isinstance(kept._matrices, np.memmap)
    pickled = pickle.dumps(kept)
    assert len(pickled) < 1000
    np.testing.assert_array_equal(pickle.loads(pickled).read(np.arange(7)), expected)
    np.testing.assert_array_equal(DocumentRepresentations(tmp_path / "kept").read(np.arange(7)), expected)
    assert repr(kept) == f"DocumentRepresentations({str(tmp_path / 'kept')!r}, 7 documents, float16)"


def test_what_is_there_is_replaced_only_on_demand(tmp_path):
    build(tmp_path / "kept", drawn())
    with pytest.raises(FileExistsError):
        build(tmp_path / "kept", drawn(5))
    again = build(tmp_path / "kept", drawn(5), overwrite=True)
    np.testing.assert_array_equal(again.read(np.arange(7)), drawn(5).astype("f2"))


def test_a_failure_leaves_nothing(tmp_path):
    def encode(documents):
        raise RuntimeError("stopped")
        yield

    writer = forward_index_writer(CORPUS, ["text"], verbose=False)
    with pytest.raises(RuntimeError, match="stopped"):
        DocumentRepresentations.build(
            tmp_path / "kept", writer, encode, SHAPE, model="abc", dtype="int8", overwrite=False
        )
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_before_the_work(tmp_path, monkeypatch):
    usage = namedtuple("usage", ["total", "used", "free"])
    monkeypatch.setattr(representations.shutil, "disk_usage", lambda path: usage(100, 90, 10))
    with pytest.raises(OSError, match="use dtype='int8'"):
        build(tmp_path / "kept", drawn())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("name", ["pt_meta.json", "matrices.npy", "factors.npy", "documents"])
@pytest.mark.parametrize("damage", ["cut", "gone", "shorter"])
def test_damaged_files_are_named(tmp_path, dtype, name, damage):
    path = tmp_path / "kept" / name
    build(tmp_path / "kept", drawn(), dtype=dtype)
    if name == "factors.npy" and dtype == "float16":
        assert not path.exists()
        return
    if name == "documents":
        path.rename(tmp_path / "elsewhere")
    elif damage == "gone":
        path.unlink()
    elif damage == "shorter" and path.suffix == ".npy":
        np.save(path, np.load(path)[:-1])
    else:
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises((ArtifactError, FileNotFoundError), match=name):
        DocumentRepresentations(tmp_path / "kept").read(np.arange(6))
        len(DocumentRepresentations(tmp_path / "kept"))


def test_metadata_without_model_or_dtype(tmp_path):
    build(tmp_path / "kept", drawn())
    path = tmp_path / "kept" / "pt_meta.json"
    content = json.loads(path.read_text())
    for wrong in ({"model": None}, {"dtype": "float64"}, {"shape": None}):
        path.write_text(json.dumps({**content, **wrong}))
        with pytest.raises(ArtifactError, match="does not say model, shape or dtype"):
            DocumentRepresentations(tmp_path / "kept")


def test_other_directories_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        DocumentRepresentations(tmp_path / "nowhere")
    pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    with pytest.raises(ArtifactError, match="document_representations"):
        DocumentRepresentations(tmp_path / "forward")


def test_matrices_of_another_shape_are_damage(tmp_path):
    kept = build(tmp_path / "kept", drawn())
    np.save(tmp_path / "kept" / "matrices.npy", np.zeros((len(kept), 1, 1), dtype="float16"))
    with pytest.raises(ArtifactError, match=r"matrices\.npy is damaged: its shape is"):
        DocumentRepresentations(tmp_path / "kept").read(np.array([0]))
