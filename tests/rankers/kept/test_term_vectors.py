"""Kept documents: what is written is what comes back, by row and by term, and damage is named."""

import json
import pickle
import shutil

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from pt_neural._files import ArtifactError
from pt_neural.rankers.kept import term_vectors
from pt_neural.rankers.kept.postings import posting_scores
from pt_neural.rankers.kept.term_vectors import TermVectors
from pt_neural.rankers.vectors import Vectors

NAMES = [f"{side}_{part}.npy" for side in ("rows", "postings") for part in ("weights", "indices", "offsets")]


def weights(documents: int = 30, terms: int = 12, density: float = 0.3) -> csr_array:
    random = np.random.default_rng(4)
    some = csr_array(random_array((documents, terms), density=density, rng=random, dtype=np.float32))
    some.sort_indices()
    return some


def built(path, rows: csr_array, *, dense: np.ndarray | None = None, size: int = 7, **options) -> TermVectors:
    batches = [
        (
            [f"d{row}" for row in range(rows.shape[0])][start : start + size],
            Vectors(None if dense is None else dense[start : start + size], rows[start : start + size]),
        )
        for start in range(0, rows.shape[0], size)
    ]
    return TermVectors.build(path, batches, **{"fingerprint": "one", "overwrite": False, **options})


@pytest.mark.parametrize("block", [1, 5, 1 << 22])
@pytest.mark.parametrize("density", [0.3, 0.02, 0.0])
def test_rows_and_postings_are_what_was_written(tmp_path, monkeypatch, block, density):
    monkeypatch.setattr(term_vectors, "WEIGHTS_PER_BLOCK", block)
    rows = weights(density=density)
    kept = built(tmp_path / "kept", rows)
    assert (len(kept), kept.docnos[:3]) == (30, ["d0", "d1", "d2"])
    np.testing.assert_array_equal(kept.terms.toarray(), rows.toarray())
    np.testing.assert_array_equal(kept.postings.toarray(), rows.toarray().T)
    for term in range(12):
        numbers = kept.postings.indices[kept.postings.indptr[term] : kept.postings.indptr[term + 1]]
        assert (np.diff(numbers) > 0).all()
    chosen = np.array([7, 0, 7, 29])
    np.testing.assert_array_equal(kept.vectors.take(chosen).sparse.toarray(), rows.toarray()[chosen])
    np.testing.assert_array_equal(kept.block(slice(3, 30)).sparse.toarray(), rows.toarray()[3:])


def test_dense_vectors_stand_beside_the_terms(tmp_path):
    rows, dense = weights(density=0.05), np.random.default_rng(1).normal(size=(30, 4)).astype("f4")
    kept = built(tmp_path / "kept", rows, dense=dense)
    np.testing.assert_array_equal(kept.vectors.dense, dense)
    np.testing.assert_array_equal(kept.dense.payload()[1], dense)


def test_documents_may_have_dense_vectors_alone(tmp_path):
    dense = np.eye(3, dtype="f4")
    kept = TermVectors.build(
        tmp_path / "kept", [(["a", "b", "c"], Vectors(dense, None))], fingerprint="", overwrite=False
    )
    np.testing.assert_array_equal(kept.vectors.dense, dense)
    assert kept.terms.shape == (3, 0)
    assert kept.postings.shape == (0, 3)


def test_one_document_is_enough(tmp_path):
    rows = weights(documents=1)
    np.testing.assert_array_equal(built(tmp_path / "kept", rows).terms.toarray(), rows.toarray())


def test_it_pickles_as_its_path_and_knows_its_documents(tmp_path):
    kept = built(tmp_path / "kept", weights())
    copy = pickle.loads(pickle.dumps(kept))
    assert copy.path == kept.path
    assert copy.rows(["d3", "d29", "d3"]).tolist() == [3, 29, 3]
    with pytest.raises(ValueError, match=r"docno 'd77' is not in .*; index the collection that"):
        kept.rows(["d3", "d77"])


def test_it_appears_when_it_is_whole(tmp_path):
    def broken():
        yield ["a"], Vectors(None, weights(documents=1))
        raise KeyError("corpus")

    with pytest.raises(KeyError, match="corpus"):
        TermVectors.build(tmp_path / "kept", broken(), fingerprint=None, overwrite=False)
    assert list(tmp_path.iterdir()) == []
    built(tmp_path / "kept", weights())
    with pytest.raises(FileExistsError, match="overwrite"):
        built(tmp_path / "kept", weights())
    assert len(built(tmp_path / "kept", weights(documents=5), overwrite=True)) == 5


def use(path) -> None:
    kept = TermVectors(path)
    assert len(kept.docnos) == len(kept)
    assert len(kept.vectors.sparse.weights) == kept.postings.nnz


@pytest.mark.parametrize("name", [*NAMES, "docnos.txt", "pt_meta.json"])
def test_missing_and_cut_files_are_named(tmp_path, name):
    built(tmp_path / "kept", weights())
    use(tmp_path / "kept")
    path = tmp_path / "kept" / name
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ArtifactError, match=f"{name} is damaged"):
        use(tmp_path / "kept")
    path.unlink()
    with pytest.raises(ArtifactError, match=f"{name} is missing"):
        use(tmp_path / "kept")


@pytest.mark.parametrize("name", ["vecs.f4", "pt_meta.json"])
def test_damaged_dense_vectors_are_named(tmp_path, name):
    dense = np.ones((30, 2), dtype="f4")
    assert built(tmp_path / "kept", weights(), dense=dense).vectors.dense.shape == (30, 2)
    path = tmp_path / "kept" / "dense" / name
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ArtifactError, match=f"{name} is damaged"):
        use(tmp_path / "kept")
    path.unlink()
    with pytest.raises(ArtifactError, match=f"{name} is missing"):
        use(tmp_path / "kept")
    others = built(tmp_path / "others", weights(9), dense=dense[:9])
    shutil.rmtree(tmp_path / "kept" / "dense")
    shutil.move(others.path / "dense", tmp_path / "kept" / "dense")
    with pytest.raises(ArtifactError, match="dense is damaged: it holds 9 vectors, not 30"):
        use(tmp_path / "kept")


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_another_kind_or_length_are_named(tmp_path, name):
    built(tmp_path / "kept", weights())
    path = tmp_path / "kept" / name
    whole = np.load(path)
    for damaged in (whole[:-1], whole.astype("f8"), whole[:, None]):
        np.save(path, damaged)
        with pytest.raises(ArtifactError, match=f"{name} is damaged"):
            use(tmp_path / "kept")


@pytest.mark.parametrize("change", [{2: 9999}, {0: 1}, {-1: 3}])
@pytest.mark.parametrize("name", ["rows_offsets.npy", "postings_offsets.npy"])
def test_offsets_that_do_not_rise_are_named(tmp_path, name, change):
    built(tmp_path / "kept", weights())
    offsets = np.load(tmp_path / "kept" / name)
    for place, value in change.items():
        offsets[place] = value
    np.save(tmp_path / "kept" / name, offsets)
    with pytest.raises(ArtifactError, match=f"{name} is damaged: its numbers do not rise"):
        use(tmp_path / "kept")


@pytest.mark.parametrize("lacking", ["documents", "terms", "weights", "dense"])
def test_metadata_that_lack_a_number_are_named(tmp_path, lacking):
    built(tmp_path / "kept", weights())
    path = tmp_path / "kept" / "pt_meta.json"
    content = json.loads(path.read_text())
    del content[lacking]
    path.write_text(json.dumps(content))
    with pytest.raises(ArtifactError, match=r"pt_meta\.json is damaged: it does not say"):
        use(tmp_path / "kept")


def test_a_place_where_nothing_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        use(tmp_path / "nowhere")


@pytest.mark.parametrize("column", [2_000_000_000, 2**31 - 1, -1, -(2**31)])
def test_columns_out_of_range_are_named_and_end_no_process(tmp_path, column):
    built(tmp_path / "kept", weights())
    for name in ("rows_indices.npy", "postings_indices.npy"):
        path = tmp_path / "kept" / name
        whole = np.load(path)
        np.save(path, np.where(np.arange(len(whole)) == len(whole) // 2, np.int32(column), whole))
        kept = TermVectors(tmp_path / "kept")
        with pytest.raises(ArtifactError, match=f"{name} is damaged"):
            _ = (kept.terms, kept.postings)
        every = csr_array(np.ones((2, kept.terms.shape[1] if name[0] == "p" else 12), dtype="f4"))
        with pytest.raises(ArtifactError, match=f"{name} is damaged"):
            if name[0] == "p":
                posting_scores(every, kept.rows_of_documents, slice(0, len(kept)))
            else:
                kept.vectors.take(np.arange(len(kept)))
        np.save(path, whole)


def test_postings_that_do_not_rise_are_named(tmp_path):
    built(tmp_path / "kept", csr_array(np.ones((30, 1), dtype="f4")))
    path = tmp_path / "kept" / "postings_indices.npy"
    np.save(path, np.load(path)[::-1])
    kept = TermVectors(tmp_path / "kept")
    with pytest.raises(ArtifactError, match=r"postings_indices\.npy is damaged"):
        posting_scores(csr_array(np.ones((1, 1), dtype="f4")), kept.rows_of_documents, slice(0, 30))


@pytest.mark.parametrize("change", [{"documents": -1}, {"terms": 2**70}, {"weights": True}, {"dense": 1}])
def test_metadata_of_another_kind_are_named(tmp_path, change):
    built(tmp_path / "kept", weights())
    path = tmp_path / "kept" / "pt_meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ArtifactError, match=r"pt_meta\.json is damaged"):
        use(tmp_path / "kept")
