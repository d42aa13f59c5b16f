import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pt_neural._files import ArtifactError
from pt_neural.embeddings import EmbeddingSpaces
from pt_neural.text import Vocabulary

WORDS = ["city", "river", "okapi", "nothing"]
IN = np.array([[1, 0], [3, 4], [0, 2], [0, 0]], dtype=np.float32)
OUT = np.array([[0, 5], [1, 0], [-1, 0], [0, 0]], dtype=np.float32)


@pytest.fixture
def spaces():
    return EmbeddingSpaces.from_vectors(WORDS, IN, OUT, {"algorithm": "by hand"})


def assert_same(one, other):
    assert one.vocabulary.terms == other.vocabulary.terms
    np.testing.assert_array_equal(one.in_vectors, other.in_vectors)
    np.testing.assert_array_equal(one.out_vectors, other.out_vectors)
    assert one.settings == other.settings


def test_basics(spaces):
    assert len(spaces) == 4
    assert spaces.dim == 2
    assert "river" in spaces
    assert "sea" not in spaces
    assert spaces.ids(["river", "sea", "city"]).tolist() == [1, -1, 0]
    assert spaces.vectors("in") is spaces.in_vectors
    assert spaces.vectors("out") is spaces.out_vectors
    with pytest.raises(ValueError, match="'in' or 'out', not 'mid'"):
        spaces.vectors("mid")


def test_repr():
    big = EmbeddingSpaces.from_vectors([str(i) for i in range(12_345)], *np.zeros((2, 12_345, 200)))
    assert repr(big) == "EmbeddingSpaces(12,345 words, 200 dimensions)"
    assert big.in_vectors.dtype == np.float32


def test_unit_vectors_by_hand(spaces):
    units = spaces.unit_vectors("in")
    np.testing.assert_allclose(units, [[1, 0], [0.6, 0.8], [0, 1], [0, 0]], atol=1e-7)
    assert units.dtype == np.float32
    assert spaces.unit_vectors("in") is units


def test_neighbours_by_hand(spaces):
    pd.testing.assert_frame_equal(
        spaces.neighbours("river", "in", "out", k=3),
        pd.DataFrame({"word": ["city", "river", "nothing"], "similarity": np.float32([0.8, 0.6, 0])}),
    )
    assert spaces.neighbours("city", "in", "in", k=1)["word"].tolist() == ["city"]
    assert spaces.neighbours("city", "in", "in", k=1, exclude_self=True)["word"].tolist() == ["river"]
    assert len(spaces.neighbours("city", k=100)) == 4


def test_unknown_words_get_close_spellings(spaces):
    with pytest.raises(KeyError, match="'Rivers' has no vectors; did you mean 'river'"):
        spaces.neighbours("Rivers")
    with pytest.raises(KeyError, match=r"'xyzzy' has no vectors\"$"):
        spaces.neighbours("xyzzy")


def test_save_and_load(spaces, tmp_path):
    spaces.save(tmp_path / "spaces")
    loaded = EmbeddingSpaces.load(tmp_path / "spaces")
    assert_same(loaded, spaces)
    assert isinstance(loaded.in_vectors, np.memmap)
    assert_same(pt.Artifact.load(str(tmp_path / "spaces")), spaces)
    assert_same(pickle.loads(pickle.dumps(loaded)), spaces)
    assert pt.inspect.artifact_type_format(loaded) == ("embedding_spaces", "pt_neural")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        loaded.save(tmp_path / "spaces")
    loaded.save(tmp_path / "spaces", overwrite=True)
    assert_same(EmbeddingSpaces(tmp_path / "spaces"), spaces)


def test_pickles_from_memory_without_what_can_be_computed(spaces):
    spaces.unit_vectors("in")
    again = pickle.loads(pickle.dumps(spaces))
    assert_same(again, spaces)
    assert again._units == {}


def test_counts_and_odd_words_survive(tmp_path):
    vocabulary = Vocabulary(["\udc80", "", "naïve", "\u2028"], np.array([4, 3, 2, 1]), np.array([4, 2, 2, 1]), 9)
    EmbeddingSpaces.from_vectors(vocabulary, IN, OUT).save(tmp_path / "spaces")
    loaded = EmbeddingSpaces.load(tmp_path / "spaces").vocabulary
    assert loaded.terms == vocabulary.terms
    assert loaded.collection_frequency.tolist() == [4, 3, 2, 1]
    assert "\udc80" in EmbeddingSpaces.load(tmp_path / "spaces").neighbours("", k=4)["word"].tolist()
    assert loaded.num_documents == 9


def test_centred_vectors_are_unit_vectors_minus_their_mean_by_counts():
    vocabulary = Vocabulary(["a", "b", "zero"], np.array([3, 1, 0]), np.array([1, 1, 0]), 1)
    spaces = EmbeddingSpaces.from_vectors(vocabulary, [[2, 0], [0, 5], [0, 0]], [[1, 0], [1, 0], [0, 1]])
    assert spaces.centred_vectors("in").tolist() == [[0.25, -0.25], [-0.75, 0.75], [0, 0]]
    assert spaces.centred_vectors("out").tolist() == [[0, 0], [0, 0], [-1, 1]]
    for counts in (None, np.zeros(3)):
        uncounted = EmbeddingSpaces.from_vectors(Vocabulary(vocabulary.terms, counts), spaces.in_vectors, IN[:3, :2])
        with pytest.raises(ValueError, match="needs the counts of its words"):
            uncounted.centred_vectors("in")


def test_shapes_must_fit():
    for words, one, other in ((WORDS[:3], IN, OUT), (WORDS, IN[:3], OUT), (WORDS, IN[0], OUT[0])):
        with pytest.raises(ValueError, match="words, IN"):
            EmbeddingSpaces.from_vectors(words, one, other)


@pytest.mark.parametrize("name", ["in.npy", "out.npy", "config.json", "vocabulary/terms.txt", "pt_meta.json"])
def test_damage_is_named(spaces, tmp_path, name):
    spaces.save(tmp_path / "spaces")
    file = tmp_path / "spaces" / name
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(ArtifactError, match=name):
        EmbeddingSpaces.load(tmp_path / "spaces")
    file.unlink()
    with pytest.raises(ArtifactError, match=name):
        EmbeddingSpaces.load(tmp_path / "spaces")


def test_matrices_that_do_not_fit_are_named(spaces, tmp_path):
    spaces.save(tmp_path / "spaces")
    for matrix in (IN[:3], IN[:, :1], IN.astype(np.float64), IN[0], np.array([{}])):
        np.save(tmp_path / "spaces" / "in.npy", matrix)
        with pytest.raises(ArtifactError, match=r"in\.npy"):
            EmbeddingSpaces.load(tmp_path / "spaces")


def test_foreign_directories_are_refused(tmp_path):
    with pytest.raises(ArtifactError, match=r"pt_meta\.json is missing"):
        EmbeddingSpaces.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        EmbeddingSpaces.load(tmp_path / "nowhere")
