"""Matrices of documents on disk: rounding, reading, damage."""

import json
import pickle
from collections import namedtuple

import numpy as np
import pytest

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.rankers.kept import document_representations as representations
from pt_neural.rankers.kept.document_representations import DocumentRepresentations, forward_index_writer

CORPUS = [{"docno": f"d{i}", "text": f"word{i} city"} for i in range(7)]
LENGTHS = np.array([3, 1, 0, 4, 0, 2, 1])
EVEN = np.full(7, 3)
COLUMNS = 2


def drawn(lengths: np.ndarray = LENGTHS, scale: float = 1.0) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.normal(scale=scale, size=(length, COLUMNS)).astype("f4") for length in lengths]


def build(path, matrices: list[np.ndarray], **options) -> DocumentRepresentations:
    def encode(documents):
        assert list(documents.docnos) == [document["docno"] for document in CORPUS]
        for numbers in ([5, 2, 0], [4], [1, 3, 6]):  # in any order
            yield np.array(numbers), np.concatenate([matrices[number] for number in numbers])

    def lengths(documents):
        return np.array([len(matrix) for matrix in matrices])

    options = {"fingerprint": "abc", "dtype": "float16", "overwrite": False, **options}
    writer = forward_index_writer(CORPUS, ["text"], verbose=False)
    return DocumentRepresentations.build(path, writer, encode, lengths, COLUMNS, **options)


def matrices_of(kept: DocumentRepresentations, numbers: list[int] | range) -> list[np.ndarray]:
    rows, offsets = kept.read(np.array(numbers, dtype=np.int64))
    assert rows.dtype == np.float32
    assert offsets.dtype == np.int64
    assert (len(offsets), offsets[0], offsets[-1]) == (len(numbers) + 1, 0, len(rows))
    return np.split(rows, offsets[1:-1]) if len(numbers) else []


@pytest.mark.parametrize("lengths", [LENGTHS, EVEN, np.zeros(7, dtype=int)])
@pytest.mark.parametrize("step", [representations.NUMBERS_PER_STEP, 5, 1])
def test_float16_is_numpys(tmp_path, monkeypatch, lengths, step):
    monkeypatch.setattr(representations, "NUMBERS_PER_STEP", step)
    matrices = drawn(lengths, 100)
    kept = build(tmp_path / "kept", matrices)
    numbers = [6, 0, 2, 0, 3, 4]
    for number, found in zip(numbers, matrices_of(kept, numbers), strict=True):
        np.testing.assert_array_equal(found, matrices[number].astype("f2").astype("f4"))
    assert (len(kept), kept.dtype, kept._metadata["model_fingerprint"], kept.columns) == (7, "float16", "abc", COLUMNS)


@pytest.mark.parametrize("lengths", [LENGTHS, EVEN, np.zeros(7, dtype=int)])
@pytest.mark.parametrize("step", [representations.NUMBERS_PER_STEP, 5, 1])
def test_int8_has_255_steps_a_column_of_a_document(tmp_path, monkeypatch, lengths, step):
    monkeypatch.setattr(representations, "NUMBERS_PER_STEP", step)
    # Documents and columns of very different scale do not spoil one another.
    matrices = [matrix * [1.0, 1000.0] * 50.0**number for number, matrix in enumerate(drawn(lengths))]
    kept = build(tmp_path / "kept", matrices, dtype="int8")
    numbers = [2, 5, 3, 3, 0, 6]
    for number, found in zip(numbers, matrices_of(kept, numbers), strict=True):
        largest = np.abs(matrices[number]).max(axis=0, initial=0)
        assert (np.abs(found - matrices[number]) <= largest / 254 * 1.001).all()
        np.testing.assert_allclose(np.abs(found).max(axis=0, initial=0), largest, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_zeros_and_very_much_stay_finite(tmp_path, dtype):
    matrices = drawn()
    matrices[0][:], matrices[1][:] = 0, 1e6
    zeros, largest = matrices_of(build(tmp_path / "kept", matrices, dtype=dtype), [0, 1])
    np.testing.assert_array_equal(zeros, 0)
    np.testing.assert_allclose(largest, 65504 if dtype == "float16" else 1e6, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_reading_nothing(tmp_path, dtype):
    assert matrices_of(build(tmp_path / "kept", drawn(), dtype=dtype), []) == []


def test_documents_are_those_of_a_forward_index(tmp_path):
    forward = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, fields=["text"], verbose=False)
    copied = forward_index_writer(forward, ["text"], verbose=False)(tmp_path / "copy")
    kept = build(tmp_path / "kept", drawn())
    for one in (copied, kept.documents):
        assert list(one.docnos) == list(forward.docnos)
        assert one.fields == ("text",)
        np.testing.assert_array_equal(one.all().terms, forward.all().terms)


def test_the_matrices_are_mapped_and_not_pickled(tmp_path):
    kept = build(tmp_path / "kept", drawn())
    expected = kept.read(np.arange(7))[0]
    assert isinstance(kept._rows.base, np.memmap)
    pickled = pickle.dumps(kept)
    assert len(pickled) < 1000
    np.testing.assert_array_equal(pickle.loads(pickled).read(np.arange(7))[0], expected)
    np.testing.assert_array_equal(DocumentRepresentations(tmp_path / "kept").read(np.arange(7))[0], expected)
    assert repr(kept) == "DocumentRepresentations('kept', 7 documents, float16)"


def test_what_is_there_is_replaced_only_on_demand(tmp_path):
    build(tmp_path / "kept", drawn())
    with pytest.raises(FileExistsError):
        build(tmp_path / "kept", drawn(EVEN))
    again = build(tmp_path / "kept", drawn(EVEN), overwrite=True)
    np.testing.assert_array_equal(np.stack(matrices_of(again, range(7))), np.stack(drawn(EVEN)).astype("f2"))


def test_a_failure_leaves_nothing(tmp_path):
    def encode(documents):
        raise RuntimeError("stopped")
        yield

    writer = forward_index_writer(CORPUS, ["text"], verbose=False)
    with pytest.raises(RuntimeError, match="stopped"):
        DocumentRepresentations.build(
            tmp_path / "kept",
            writer,
            encode,
            lambda _: LENGTHS,
            COLUMNS,
            fingerprint="abc",
            dtype="int8",
            overwrite=False,
        )
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_before_the_work(tmp_path, monkeypatch):
    usage = namedtuple("usage", ["total", "used", "free"])
    monkeypatch.setattr(representations.shutil, "disk_usage", lambda path: usage(100, 90, 10))
    with pytest.raises(OSError, match="use dtype='int8'"):
        build(tmp_path / "kept", drawn())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("name", ["pt_meta.json", "rows.npy", "offsets.npy", "factors.npy", "documents"])
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
    for wrong in ({"model_fingerprint": None}, {"dtype": "float64"}, {"columns": None}):
        path.write_text(json.dumps({**content, **wrong}))
        with pytest.raises(ArtifactError, match="does not say model_fingerprint, columns or dtype"):
            DocumentRepresentations(tmp_path / "kept")


def test_other_directories_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        DocumentRepresentations(tmp_path / "nowhere")
    pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    with pytest.raises(ArtifactError, match="document_representations"):
        DocumentRepresentations(tmp_path / "forward")


def test_rows_of_another_shape_are_damage(tmp_path):
    build(tmp_path / "kept", drawn())
    np.save(tmp_path / "kept" / "rows.npy", np.zeros((LENGTHS.sum(), 1), dtype="float16"))
    with pytest.raises(ArtifactError, match=r"rows\.npy is damaged: its shape is \(11, 1\), not \(11, 2\)"):
        DocumentRepresentations(tmp_path / "kept").read(np.array([0]))


@pytest.mark.parametrize("wrong", [[0, 3, 4, 4, 8, 7, 10, 11], [1, 3, 4, 4, 8, 8, 10, 11]])
def test_offsets_that_fall_are_damage(tmp_path, wrong):
    build(tmp_path / "kept", drawn())
    np.save(tmp_path / "kept" / "offsets.npy", np.array(wrong))
    with pytest.raises(ArtifactError, match=r"offsets\.npy is damaged: its numbers do not rise from 0"):
        DocumentRepresentations(tmp_path / "kept").read(np.array([0]))


@pytest.mark.parametrize(
    "change", [{"columns": 0}, {"columns": -1}, {"columns": 2**70}, {"columns": True}, {"dtype": []}, {"dtype": "f8"}]
)
def test_metadata_of_another_kind_are_named(tmp_path, change):
    build(tmp_path / "kept", drawn())
    path = tmp_path / "kept" / "pt_meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ArtifactError, match=r"pt_meta\.json is damaged"):
        DocumentRepresentations(tmp_path / "kept")


def test_rows_that_are_no_numbers_are_named(tmp_path):
    kept = build(tmp_path / "kept", drawn())
    rows = np.load(tmp_path / "kept" / "rows.npy")
    rows[3] = np.nan
    np.save(tmp_path / "kept" / "rows.npy", rows)
    with pytest.raises(ArtifactError, match=r"rows\.npy or factors\.npy is damaged"):
        DocumentRepresentations(tmp_path / "kept").read(np.arange(len(kept)))
