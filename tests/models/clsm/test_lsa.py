"""LSA against a decomposition by numpy.linalg of a tf-idf matrix computed word by word."""

import inspect
import json
import math
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from scipy.sparse import csr_array
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

import pt_neural as pn
from pt_neural._files import ArtifactError, read_tensors, write_tensors
from pt_neural._temporary import SparseBlocks
from pt_neural.models.clsm.lsa import decompose
from pt_neural.text import tokenise

ENGINES = [
    {"docno": "e1", "text": "car engine wheel road"},
    {"docno": "e2", "text": "automobile engine wheel road"},
    {"docno": "e3", "text": "engine wheel repair"},
    {"docno": "g1", "text": "rose garden soil"},
    {"docno": "g2", "text": "tulip garden soil"},
]


def fitted(corpus, **options) -> pn.LSA:
    return pn.LSA(**{"dim": 3, "min_count": 1, **options}).fit_corpus(corpus, verbose=False)


@pytest.fixture
def lsa(corpus) -> pn.LSA:
    return fitted(corpus)


@pytest.fixture
def candidates(corpus, topics) -> pd.DataFrame:
    return topics.merge(pd.DataFrame(corpus), how="cross")


@pytest.fixture
def forward(tmp_path, corpus) -> pn.ForwardIndex:
    return pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)


class Reference:
    """Section 2.2 of the CLSM paper, word by word and with all singular values."""

    def __init__(self, texts: list[str], dim: int, scaling: str | None, sublinear_tf: bool):
        self.sublinear_tf = sublinear_tf
        self.documents = [tokenise(text) for text in texts]
        self.terms = sorted({word for words in self.documents for word in words})
        rows = np.array([self.weights(words) for words in self.documents])
        u, sigma, _ = np.linalg.svd((rows / np.linalg.norm(rows, axis=1, keepdims=True)).T)
        self.projection = u[:, :dim] / sigma[:dim] if scaling == "inverse" else u[:, :dim]

    def weights(self, words: list[str]) -> list[float]:
        return [self.tf(words.count(term)) * self.idf(term) for term in self.terms]

    def tf(self, count: int) -> float:
        return 1 + math.log(count) if self.sublinear_tf and count else count

    def idf(self, term: str) -> float:
        df = sum(term in words for words in self.documents)
        return math.log((1 + len(self.documents)) / (1 + df)) + 1

    def score(self, query: str, text: str) -> float:
        q, d = (np.array(self.weights(tokenise(side))) @ self.projection for side in (query, text))
        return float(q @ d / (np.linalg.norm(q) * np.linalg.norm(d)))


@pytest.mark.parametrize("scaling", [None, "inverse"])
@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_scores_are_the_cosines_of_section_2_2(corpus, candidates, scaling, sublinear_tf):
    texts = [f"{document['title']} {document['text']}" for document in corpus]
    reference = Reference(texts, 4, scaling, sublinear_tf)
    scored = fitted(corpus, dim=4, scaling=scaling, sublinear_tf=sublinear_tf).transform(candidates)
    expected = [reference.score(row.query, f"{row.title} {row.text}") for row in candidates.itertuples()]
    np.testing.assert_allclose(scored["score"], expected, atol=1e-5)
    assert (scored["docno"] == candidates["docno"]).all()
    assert scored.groupby("qid")["rank"].apply(sorted).tolist() == [list(range(6))] * 3


def test_texts_without_a_common_word_are_similar_by_their_context():
    lsa = fitted(ENGINES, dim=2)
    frame = pd.DataFrame({"qid": "1", "query": "car", "docno": ["a", "b"], "text": ["automobile", "rose"]})
    assert lsa.transform(frame)["score"].tolist() == pytest.approx([1, 0], abs=1e-5)
    assert set(lsa.neighbours("car", 6)["word"]) == {"car", "automobile", "engine", "wheel", "road", "repair"}


def test_a_theme_beyond_the_kept_dimensions_has_no_vectors():
    lsa = fitted(ENGINES, dim=1)  # the larger theme; the other one is orthogonal to it
    assert not lsa.encode_documents(["rose garden"]).any()
    frame = pd.DataFrame({"qid": "1", "query": ["rose", "car"], "docno": ["a", "b"], "text": ["wheel", "garden"]})
    assert lsa.transform(frame)["score"].tolist() == [0, -1]


def test_neighbours_are_the_nearest_rows_of_term_vectors_and_singular_values(lsa):
    rows = lsa.term_vectors * lsa.singular_values
    a, b = (rows[lsa.vocabulary.terms.index(word)] for word in ("giraffe", "okapi"))
    near = lsa.neighbours("giraffe", k=40).set_index("word")["similarity"]
    assert near.is_monotonic_decreasing
    assert near["giraffe"] == pytest.approx(1)
    assert near["okapi"] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-6)
    with pytest.raises(KeyError, match="'zebra' is not one of"):
        lsa.neighbours("zebra")


def test_a_seed_gives_the_same_vectors_from_corpus_frame_and_forward_index(corpus, forward):
    one = fitted(iter(corpus), dim=2, min_count=2, max_terms=12)
    for source in (corpus, pd.DataFrame(corpus), forward):
        again = fitted(source, dim=2, min_count=2, max_terms=12)
        assert again.vocabulary.terms == one.vocabulary.terms
        np.testing.assert_array_equal(again.term_vectors, one.term_vectors)
    assert len(one.vocabulary) == 12
    assert min(one.vocabulary.collection_frequency) >= 2


def test_fitting_again_forgets_the_first_collection(lsa, candidates, corpus, forward):
    lsa.documents = forward
    bare = candidates[["qid", "query", "docno"]]
    lsa.fit_corpus(ENGINES, verbose=False).transform(bare)
    lsa.fit_corpus(corpus, verbose=False)
    np.testing.assert_allclose(lsa.transform(bare)["score"], fitted(corpus).transform(candidates)["score"], atol=1e-6)


def test_save_and_load_give_the_same_scores(corpus, candidates, tmp_path):
    lsa = fitted(corpus, scaling=None, sublinear_tf=False, max_terms=20, fields="text")
    lsa.save(tmp_path / "lsa.pn")
    for loaded in (pn.LSA.load(tmp_path / "lsa.pn"), pt.Artifact.load(str(tmp_path / "lsa.pn"))):
        pd.testing.assert_frame_equal(loaded.transform(candidates), lsa.transform(candidates))
        assert (loaded.min_count, loaded.max_terms, loaded.seed) == (1, 20, 13)
    with pytest.raises(FileExistsError, match="overwrite"):
        lsa.save(tmp_path / "lsa.pn")
    with pytest.raises(ValueError, match="dim cannot be changed by loading"):
        pn.LSA.load(tmp_path / "lsa.pn", dim=2)


@pytest.mark.parametrize(
    "damage",
    [
        {"term_vectors": np.ones((3, 3), "f4")},
        {"term_vectors": np.ones((3, 3), "f4"), "singular_values": np.ones(3, "f4")},
        {"term_vectors": np.ones((31, 3)), "singular_values": np.ones(3)},
    ],
)
def test_weights_that_do_not_fit_name_the_file(lsa, tmp_path, damage):
    lsa.save(tmp_path / "lsa.pn")
    weights = tmp_path / "lsa.pn" / "weights.safetensors"
    assert read_tensors(weights).keys() == {"term_vectors", "singular_values"}
    write_tensors(weights, damage)
    with pytest.raises(ArtifactError, match=r"weights\.safetensors does not fit"):
        pn.LSA.load(tmp_path / "lsa.pn")


@pytest.mark.parametrize("name", ["weights.safetensors", "config.json", "pt_meta.json", "vocabulary/terms.txt"])
def test_missing_and_cut_files_are_named(lsa, tmp_path, name):
    lsa.save(tmp_path / "lsa.pn")
    path = tmp_path / "lsa.pn" / name
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ArtifactError, match=f"{path.name} is damaged"):
        pn.LSA.load(tmp_path / "lsa.pn")
    path.unlink()
    with pytest.raises(ArtifactError, match=f"{path.name} is missing"):
        pn.LSA.load(tmp_path / "lsa.pn")


@pytest.mark.parametrize("config", ["[]", '{"dimensions": 3}', '{"dim": "many"}', '{"dim": 4}'])
def test_a_strange_config_is_named(lsa, tmp_path, config):
    lsa.save(tmp_path / "lsa.pn")
    (tmp_path / "lsa.pn" / "config.json").write_text(config)
    with pytest.raises(ArtifactError, match=r"config\.json (is damaged|and the other files)"):
        pn.LSA.load(tmp_path / "lsa.pn")


@pytest.mark.parametrize(("change", "message"), [({"format": "desm"}, "describes"), ({"version": 99}, "newer")])
def test_foreign_and_newer_directories_are_named(lsa, tmp_path, change, message):
    lsa.save(tmp_path / "lsa.pn")
    metadata = tmp_path / "lsa.pn" / "pt_meta.json"
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | change))
    with pytest.raises(ArtifactError, match=rf"pt_meta\.json.*{message}"):
        pn.LSA.load(tmp_path / "lsa.pn")


def test_an_unfitted_model_says_what_to_do(candidates, corpus, tmp_path):
    lsa = pn.LSA()
    assert len(lsa.transform(candidates.iloc[:0])) == 0
    for use in (
        lambda: lsa.transform(candidates),
        lambda: lsa.query_encoder().transform(candidates),
        lambda: lsa.doc_encoder().transform(candidates),
        lambda: lsa.index(tmp_path / "vectors", corpus, verbose=False),
        lambda: lsa.neighbours("city"),
        lambda: lsa.save(tmp_path / "lsa.pn"),
    ):
        with pytest.raises(RuntimeError, match=r"call lsa\.fit_corpus\(docs\.get_corpus_iter\(\)\)"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_clear_errors(corpus):
    with pytest.raises(ValueError, match="one of None, 'inverse'"):
        pn.LSA(scaling="sqrt")
    for setting in ("dim", "min_count", "max_terms"):
        with pytest.raises(ValueError, match=f"{setting} must be at least 1"):
            pn.LSA(**{setting: 0})
    with pytest.raises(ValueError, match=r"dim=200 is too large.*choose dim=6 or less"):
        fitted(corpus, dim=200)
    with pytest.raises(ValueError, match=r"choose dim=5 or less"):
        fitted([*ENGINES, {"docno": "copy", "text": "tulip garden soil"}], dim=6)
    with pytest.raises(ValueError, match="two terms or more that occur at least 9 times"):
        fitted(corpus, min_count=9)
    with pytest.raises(ValueError, match="no term of the 6 documents occurs at least 99 times"):
        fitted(corpus, min_count=99)
    with pytest.raises(ValueError, match="no documents"):
        fitted([])
    with pytest.raises(TypeError, match="iterable of dicts"):
        fitted("river")
    fitted(corpus, dim=6)


@pytest.mark.parametrize(("name", "value"), [("dim", 2), ("sublinear_tf", False), ("max_terms", 5)])
def test_a_fitted_model_is_not_another_one(lsa, corpus, candidates, tmp_path, name, value):
    before, expected = getattr(lsa, name), lsa.transform(candidates)
    setattr(lsa, name, value)
    for use in (lambda: lsa.transform(candidates), lambda: lsa.save(tmp_path / "lsa.pn")):
        with pytest.raises(RuntimeError, match=f"{name} of .* changed after fitting: fit it again"):
            use()
    assert list(tmp_path.iterdir()) == []
    setattr(lsa, name, before)
    pd.testing.assert_frame_equal(lsa.transform(candidates), expected)
    setattr(lsa, name, value)
    assert lsa.fit_corpus(corpus, verbose=False).transform(candidates)["score"].notna().all()


def test_documents_without_terms_are_no_trouble_in_fitting():
    lsa = fitted([*ENGINES, {"docno": "empty", "text": ""}, {"docno": "none", "text": None}], dim=2)
    assert lsa.vocabulary.num_documents == 7
    assert np.isfinite(lsa.encode_documents(["car"])).all()


# The decomposition


def test_vectors_and_values_are_numpys_on_rows_of_length_1():
    matrix = np.random.default_rng(2).poisson(0.5, size=(30, 12)).astype(float) + np.eye(30, 12)
    matrix[7] = 0
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    _, values, vectors = np.linalg.svd(matrix / np.where(lengths > 0, lengths, 1))
    found_vectors, found_values = decompose(SparseBlocks([csr_array(matrix[:11]), csr_array(matrix[11:])]), 5, seed=1)
    np.testing.assert_allclose(found_values, values[:5], rtol=1e-5)
    np.testing.assert_allclose(np.abs(found_vectors), np.abs(vectors[:5].T), atol=1e-5)
    assert found_vectors.dtype == found_values.dtype == np.float32
    assert found_vectors.flags.c_contiguous


def test_a_term_outside_the_kept_dimensions_is_exactly_zero():
    matrix = csr_array([[1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    vectors, _ = decompose(SparseBlocks([matrix]), 1, seed=1)
    assert vectors[2].tolist() == [0]
    assert np.abs(vectors[:2]).min() > 0.1


def test_the_error_names_the_rank():
    dim = 3
    twins = csr_array([[1.0, 1.0, 0.0, 2.0], [1.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 0.0]])
    with pytest.raises(ValueError, match=f"dim={dim} is too large.* choose dim=2 or less"):
        decompose(SparseBlocks([twins]), dim, seed=1)


def test_a_large_matrix_has_the_vectors_of_scikit_learn():
    random = np.random.default_rng(3)
    themes = random.dirichlet(np.full(800, 0.05), size=12)
    counts = np.vstack([random.multinomial(60, themes[number % 12]) for number in range(3000)]).astype(float)
    svd = TruncatedSVD(8, n_iter=10, random_state=1).fit(normalize(csr_array(counts)))
    for size in (3000, 700):
        blocks = SparseBlocks(csr_array(counts[start : start + size]) for start in range(0, 3000, size))
        vectors, values = decompose(blocks, 8, seed=2)
        np.testing.assert_allclose(values, svd.singular_values_, rtol=1e-5)
        np.testing.assert_allclose(vectors, svd.components_.T, atol=1e-4)


def test_memory_does_not_grow_with_the_documents(monkeypatch):
    monkeypatch.setattr("pt_neural.text.counts._BLOCK", 200)
    monkeypatch.setattr("pt_neural.text.term_spool._BLOCK", 4000)
    monkeypatch.setattr("pt_neural.datasets.docnos.BLOCK", 200)
    words = [f"w{number}" for number in range(50)]

    def peak(number: int) -> int:
        random = np.random.default_rng(4)
        corpus = ({"docno": f"d{i}", "text": " ".join(random.choice(words, 20))} for i in range(number))
        tracemalloc.start()
        pn.LSA(4).fit_corpus(corpus, verbose=False)
        _, found = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found

    peak(1000)
    assert peak(5000) - peak(2000) < 32 * 3000


@pytest.mark.long
def test_works_beside_a_running_java():
    code = """
        import numpy as np, scipy.sparse
        from pt_neural._temporary import SparseBlocks
        from pt_neural.lucene import start_java
        from pt_neural.models.clsm.lsa import decompose
        start_java()
        matrix = scipy.sparse.csr_array(scipy.sparse.random_array((4000, 2000), density=0.01, format="csr", rng=1))
        decompose(SparseBlocks([matrix]), 200, seed=1)
    """
    # In a process of its own: what fails here is the process.
    done = subprocess.run([sys.executable, "-c", inspect.cleandoc(code)], env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.returncode == 0
