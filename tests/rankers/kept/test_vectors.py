"""Dense vectors in a FlexIndex: docnos beside it, or in a temporary folder for an index from elsewhere."""

import json
import os
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from pt_neural._files import ArtifactError
from pt_neural.rankers.kept.vectors import VectorTable
from pt_neural.rankers.vectors import Vectors

DOCNOS = ["d7", "é 1", "a", "d10"]


def batches(number: int, size: int = 500):
    for start in range(0, number, size):
        rows = np.arange(start, min(start + size, number))
        yield [f"document-{row}" for row in rows], Vectors(np.stack([rows, rows % 3], axis=1).astype("f4"))


def built(path, number: int) -> VectorTable:
    return VectorTable.build(path, batches(number), fingerprint=None, overwrite=False)


def flex_index(path: Path):
    """An index as pyterrier_dr opens it, whose import takes seconds and is left to the process that needs it."""
    from pyterrier_dr import FlexIndex

    return FlexIndex(os.fspath(path), verbose=False)


def test_vectors_and_docnos_come_back(tmp_path):
    table = built(tmp_path / "kept", 1203)
    assert len(table) == len(table.docnos) == 1203
    np.testing.assert_array_equal(table.matrix[:, 0], np.arange(1203))
    assert table.rows(["document-1202", "document-0"]).tolist() == [1202, 0]
    assert list(flex_index(tmp_path / "kept").docnos()) == list(table.docnos)
    np.testing.assert_array_equal(table.block(slice(2, 4)).dense, [[2, 2], [3, 0]])
    assert pickle.loads(pickle.dumps(table)).rows(["document-5"]).tolist() == [5]


def test_the_kind_is_that_of_a_flex_index(tmp_path):
    index = flex_index(tmp_path / "any")
    assert VectorTable.kind() == {"type": index.ARTIFACT_TYPE, "format": index.ARTIFACT_FORMAT}


def test_an_index_from_elsewhere_gets_a_table_of_its_own(tmp_path):
    index = flex_index(tmp_path / "other")
    index.index([{"docno": docno, "doc_vec": np.full(2, row, "f4")} for row, docno in enumerate(DOCNOS)])
    before = sorted(os.listdir(tmp_path / "other"))
    table = VectorTable(index)
    assert list(table.docnos) == DOCNOS
    assert table.rows(["d10", "é 1"]).tolist() == [3, 1]
    assert table.docnos.tie_order(np.array([0, 2, 3])).argsort().tolist() == [0, 2, 1]
    with pytest.raises(ValueError, match=r"docno 'd8' is not in .*; index the collection"):
        table.rows(["a", "d8"])
    with pytest.raises(ValueError, match=r"docno 8 is not in .*; docnos are strings, not numbers"):
        table.rows(["a", 8])
    assert sorted(os.listdir(tmp_path / "other")) == before
    temporary = Path(table.docnos.directory)
    assert temporary.exists()
    del table
    assert not temporary.exists()


def test_a_docno_that_occurs_twice_leaves_nothing(tmp_path):
    twice = (["a", "b"], Vectors(np.ones((2, 2), "f4")))
    with pytest.raises(ValueError, match="occurs twice"):
        VectorTable.build(tmp_path / "kept", [twice, twice], fingerprint=None, overwrite=False)
    assert os.listdir(tmp_path) == []


def test_memory_for_a_document_is_a_few_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("pt_neural.datasets.docnos.BLOCK", 500)

    def peak(number: int) -> int:
        tracemalloc.start()
        table = built(tmp_path / str(number), number)
        table.rows(["document-7"])
        _, found = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found

    peak(1000)
    assert peak(20_000) - peak(4_000) < 32 * 16_000


def test_the_files_are_those_of_a_flex_index(tmp_path):
    docnos = [f"doc{i}" for i in range(600)] + ["é", "7", "x" * 300]
    matrix = np.random.default_rng(1).normal(size=(len(docnos), 3)).astype(np.float32)
    batches = [(docnos[start : start + 100], Vectors(matrix[start : start + 100])) for start in range(0, 700, 100)]
    VectorTable.build(tmp_path / "ours", batches, fingerprint=None, overwrite=False)
    records = ({"docno": docno, "doc_vec": vector} for docno, vector in zip(docnos, matrix, strict=True))
    flex_index(tmp_path / "theirs").index(records)
    for name in ("vecs.f4", "docnos.npids"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    ours, theirs = (json.loads((tmp_path / name / "pt_meta.json").read_text()) for name in ("ours", "theirs"))
    assert theirs.items() <= ours.items()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pt_meta.json", b"[]"),
        ("pt_meta.json", b'{"type": "dense_index"}'),
        ("pt_meta.json", b'{"type": "dense_index", "format": "flex", "doc_count": 3, "vec_size": 1e999}'),
        ("pt_meta.json", b'{"type": "dense_index", "format": "flex", "doc_count": -3, "vec_size": -2}'),
        ("pt_meta.json", b"9" * 5000),
        ("pt_meta.json", b"[" * 100_000),
        ("vecs.f4", b""),
        ("vecs.f4", b"12345"),
        ("vecs.f4", bytes(20)),
        ("docnos.npids", b""),
        ("docnos.npids", b"{" * 99),
    ],
)
def test_damaged_indexes_are_named(tmp_path, name, content):
    index = flex_index(tmp_path / "other")
    index.index([{"docno": docno, "doc_vec": np.full(2, row, "f4")} for row, docno in enumerate(DOCNOS)])
    (tmp_path / "other" / name).write_bytes(content)
    with pytest.raises(ArtifactError, match=f"{name} is damaged"):
        list(VectorTable(tmp_path / "other").docnos)
