"""Histograms of similarities, against what is worked by hand and against loops over pairs of words."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from pt_neural import EmbeddingSpaces
from pt_neural.rankers.readers import histograms
from pt_neural.rankers.readers.histograms import HistogramPairs, Histograms, UnitVectors, idf
from pt_neural.text import PackedSequences, Vocabulary, pack_texts, tokenise

PLANE = {"a": (1, 0), "b": (0, 1), "c": (-2, 0), "d": (3, 0), "e": (3, 4), "nought": (0, 0)}


def spaces_of(vectors: dict) -> EmbeddingSpaces:
    matrix = np.array(list(vectors.values()), dtype=np.float32)
    return EmbeddingSpaces.from_vectors(list(vectors), matrix, matrix[::-1])


def built(documents: list[str], spaces: EmbeddingSpaces, **settings) -> tuple[Histograms, PackedSequences, Vocabulary]:
    sequences, terms = pack_texts(documents)
    reader, vocabulary = Histograms(spaces, **settings), Vocabulary(terms)
    reader.build([], sequences, vocabulary)
    return reader, sequences, vocabulary


def prepared(queries: list[str], documents: list[str], spaces: EmbeddingSpaces, bins: int, **limits) -> HistogramPairs:
    reader, sequences, vocabulary = built(documents, spaces, bins=bins, **limits)
    return reader.pair(queries, sequences, vocabulary)


def histogram(query: str, document: str, spaces: EmbeddingSpaces, bins: int, **limits) -> list[list[int]]:
    pairs = prepared([query], [document], spaces, bins, **limits)
    return pairs.batch(np.array([0]), np.array([0])).counts[0].tolist()


# By hand: with five bins, -1 is in bin 0, 0 in bin int(0.5 * 4) = 2, 0.6 in int(0.8 * 4) = 3, and 1 in bin 3 unless the
# words are the same, which is bin 4.
DOCUMENT = "a d e b c zz a b nought"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a", [1, 0, 4, 2, 2]),
        ("d", [1, 0, 4, 3, 1]),  # both a are parallel to it, but not the same word
        ("e", [1, 0, 2, 5, 1]),  # b is at 0.8, a and d at 0.6, c at -0.6
        ("zz", [0, 0, 8, 0, 1]),  # has no vector, but is there
        ("nought", [0, 0, 8, 0, 1]),
        ("elsewhere", [0, 0, 9, 0, 0]),
    ],
)
def test_a_histogram_worked_by_hand(query, expected):
    assert histogram(query, DOCUMENT, spaces_of(PLANE), bins=5) == [expected]


def test_every_occurrence_of_a_query_term_has_a_histogram():
    one, other = [1, 0, 4, 2, 2], [0, 0, 8, 0, 1]
    assert histogram("a zz a", DOCUMENT, spaces_of(PLANE), bins=5) == [one, other, one]


def test_two_bins_tell_exact_matches_from_others():
    assert histogram("a d", DOCUMENT, spaces_of(PLANE), bins=2) == [[7, 2], [8, 1]]


@pytest.mark.parametrize("in_bags", [True, False])
def test_only_the_first_terms_count(in_bags, monkeypatch):
    monkeypatch.setattr(histograms, "TERMS_IN_BAGS", 2**26 if in_bags else 0)
    found = histogram("a zz a", DOCUMENT, spaces_of(PLANE), bins=5, query_terms=2, document_terms=3)
    assert found == [[0, 0, 0, 2, 1], [0, 0, 3, 0, 0]]


def test_nothing_on_either_side():
    pairs = prepared(["", "a"], ["", "a"], spaces_of(PLANE), bins=5)
    inputs = pairs.batch(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    assert inputs.counts[:, 0].tolist() == [[0] * 5, [0] * 5, [0] * 5, [0, 0, 0, 0, 1]]
    assert inputs.lengths.tolist() == [0, 1]
    alone = prepared([""], [""], spaces_of(PLANE), bins=5).batch(np.array([0]), np.array([0]))
    assert alone.counts.tolist() == [[[0] * 5]]


def test_many_occurrences_are_counted():
    assert histogram("a", "a " * 300 + "b " * 70_000, spaces_of(PLANE), bins=5) == [[0, 0, 70_000, 0, 300]]


# Against a loop


WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture(scope="module")
def spaces() -> EmbeddingSpaces:
    random = np.random.default_rng(0)
    return spaces_of({word: random.normal(size=12) for word in WORDS[:50]})  # the last ten have no vector


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], list[str]]:
    random = np.random.default_rng(1)
    queries = [" ".join(random.choice(WORDS, random.integers(6))) for _ in range(15)]
    documents = [" ".join(random.choice(WORDS, random.integers(40))) for _ in range(25)]
    return queries, documents


def looped(query: str, document: str, spaces: EmbeddingSpaces, bins: int) -> np.ndarray:
    """Every word of the query against every word of the document."""
    matrix = UnitVectors(spaces, "in").matrix.astype(np.float64)
    found = np.zeros((len(query.split()), bins))
    for row, one in enumerate(query.split()):
        for other in document.split():
            similarity = sum(matrix[spaces.ids([one])[0]] * matrix[spaces.ids([other])[0]])
            place = bins - 1 if one == other else min(int((similarity + 1) / 2 * (bins - 1)), bins - 2)
            found[row, place] += 1
    return found


@pytest.mark.parametrize(("bins", "in_bags"), [(2, True), (30, True), (30, False), (256, True)])
def test_histograms_are_those_of_a_loop(spaces, texts, bins, in_bags, monkeypatch):
    monkeypatch.setattr(histograms, "TERMS_IN_BAGS", 2**26 if in_bags else 0)
    queries, documents = texts
    pairs = prepared(queries, documents, spaces, bins)
    random = np.random.default_rng(2)
    rows, columns = random.integers(len(queries), size=80), random.integers(len(documents), size=80)
    inputs = pairs.batch(rows, columns)
    for row, column, counts in zip(rows, columns, inputs.counts.numpy(), strict=True):
        expected = looped(queries[row], documents[column], spaces, bins)
        np.testing.assert_array_equal(counts[: len(expected)], expected)
        assert not counts[len(expected) :].any()


def test_groups_are_pairs_with_one_query_each(spaces, texts):
    pairs = prepared(*texts, spaces, 30)
    queries, documents = np.array([3, 1, 3]), np.array([[0, 4], [4, 9], [2, 2]])
    inputs = pairs.batch(queries, documents)
    assert inputs.counts.shape[:2] == inputs.queries.shape == (3, 2)
    apart = pairs.batch(np.repeat(queries, 2), documents.ravel())
    np.testing.assert_array_equal(inputs.counts.flatten(0, 1), apart.counts)
    np.testing.assert_array_equal(inputs.queries.flatten(), apart.queries)


@pytest.mark.parametrize("gates_by_idf", [True, False])
def test_gates_are_those_of_the_terms_of_each_query(spaces, gates_by_idf):
    documents = ["w3 w1 w3", "w1", "w7"]
    pairs = prepared(["w3 w1", "", "w1 w55 w3"], documents, spaces, 30, gates_by_idf=gates_by_idf)
    inputs = pairs.batch(np.array([2, 0, 1, 2]), np.array([0, 0, 0, 0]))
    gates = dict(zip(WORDS[:50], spaces.in_vectors, strict=True)) | {"w55": np.zeros(spaces.dim)}  # has no vector
    if gates_by_idf:  # of three documents; w55 as if it were in one of them
        gates = {"w3": [np.log(4 / 1)], "w1": [np.log(4 / 2)], "w55": [np.log(4 / 1)]}
    nothing = np.zeros_like(gates["w3"])
    expected = [[gates["w3"], gates["w1"], nothing], [nothing] * 3, [gates["w1"], gates["w55"], gates["w3"]]]
    np.testing.assert_allclose(inputs.gates, expected, rtol=1e-6)
    assert inputs.lengths.tolist() == [2, 0, 3]
    assert inputs.queries.tolist() == [2, 0, 1, 2]


@pytest.mark.parametrize(("queries_per_block", "cells_per_block"), [(1, 2**20), (3, 50), (100, 1)])
def test_blocks_of_any_size_count_alike(spaces, texts, monkeypatch, queries_per_block, cells_per_block):
    pairs = prepared(*texts, spaces, 30)
    rows, columns = np.repeat(np.arange(15), 25), np.tile(np.arange(25), 15)
    expected = pairs.batch(rows, columns).counts
    monkeypatch.setattr(histograms, "QUERIES_PER_BLOCK", queries_per_block)
    monkeypatch.setattr(histograms, "CELLS_PER_BLOCK", cells_per_block)
    assert len(pairs.blocks(rows, columns)) > 4
    np.testing.assert_array_equal(pairs.batch(rows, columns).counts, expected)


def test_blocks_have_every_pair_once_and_queries_of_similar_length(spaces, texts):
    pairs = prepared(*texts, spaces, 30)
    rows = np.random.default_rng(3).integers(15, size=200)
    columns = np.zeros(200, dtype=np.int64)
    for most in (None, 7):
        blocks = pairs.blocks(rows, columns, most)
        np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(200))
        lengths = [pairs.queries.lengths[rows[block]] for block in blocks]
        assert all(one.max() <= other.min() for one, other in pairwise(lengths))
    assert max(map(len, blocks)) == 7


# Unit vectors


def test_products_of_unit_vectors_are_exact_in_any_order():
    random = np.random.default_rng(0)
    spaces = spaces_of({f"w{i}": random.normal(size=300) for i in range(400)})
    matrix = UnitVectors(spaces, "in").matrix
    products = matrix @ matrix.T
    double = matrix.astype(np.float64)
    np.testing.assert_array_equal(products, double @ double.T)
    np.testing.assert_array_equal(products[5, :30], matrix[:30, ::-1] @ matrix[5, ::-1])


def test_unit_vectors_are_those_of_the_space_but_for_their_rounding(spaces):
    for space in ("in", "out"):
        matrix = UnitVectors(spaces, space).matrix
        exact = spaces.unit_vectors(space)
        np.testing.assert_allclose(matrix[:-1], exact, atol=2**-12 + 1e-7)
        assert np.abs(matrix @ matrix.T - np.pad(exact @ exact.T, (0, 1))).max() < 0.002
        assert not matrix[-1].any()


def test_rows_of_words_and_of_others():
    units = UnitVectors(spaces_of(PLANE), "in")
    assert units.rows(["b", "zz", "a"]).tolist() == [1, -1, 0, -1]
    vocabulary = Vocabulary(["zz", "e"])
    assert units.rows_of(vocabulary)[np.array([0, 1, -1])].tolist() == [-1, 4, -1]
    assert units.rows_of(vocabulary) is units.rows_of(vocabulary)
    assert units.rows_of(Vocabulary(["e"]))[np.array([0, -1])].tolist() == [4, -1]


def test_pickles_hold_the_embeddings_only():
    units = UnitVectors(spaces_of(PLANE), "out")
    size = len(pickle.dumps(units))
    expected = units.matrix
    units.rows_of(Vocabulary(map(str, range(9999))))
    assert len(pickle.dumps(units)) < size + 100
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(units)).matrix, expected)


def test_unknown_terms_of_documents_are_like_words_without_a_vector():
    reader, *_ = built(["a"], spaces_of(PLANE), bins=5)
    pairs = reader.pair(["a zz"], PackedSequences.from_lists([[0, -1, -1]]), Vocabulary(["a"]))
    assert pairs.batch(np.array([0]), np.array([0])).counts[0].tolist() == [[0, 0, 2, 0, 1], [0, 0, 3, 0, 0]]


# The reader


def test_batches_are_remembered_on_demand_and_for_the_same_pairs(spaces, texts):
    pairs = prepared(*texts, spaces, 30)
    rows, columns = np.repeat(np.arange(15), 25), np.tile(np.arange(25), 15)
    batches = list(pairs.batches(rows, columns, 40, remember=False))
    np.testing.assert_array_equal(np.sort(np.concatenate([numbers for numbers, _ in batches])), np.arange(15 * 25))
    for numbers, inputs in batches:
        np.testing.assert_array_equal(inputs.counts, pairs.batch(rows[numbers], columns[numbers]).counts)
    remembered = pairs.batches(rows, columns, 40, remember=True)
    assert pairs.batches(rows, columns, 40, remember=True) is remembered
    assert len(list(pairs.batches(rows[:9], columns[:9], 40, remember=False))) == 1


def test_idf_by_hand():
    frequencies = Vocabulary(["a", "b"], np.array([5, 2]), np.array([3, 1]), num_documents=4)
    np.testing.assert_allclose(idf(["b", "unseen", "a"], frequencies), np.log([5 / 1, 5 / 1, 5 / 3]), rtol=1e-6)


@pytest.mark.parametrize("gates_by_idf", [True, False])
def test_document_frequencies_are_counted_saved_and_told_apart(tmp_path, gates_by_idf):
    texts, spaces = ["a b a", "b", "zz b"], spaces_of(PLANE)
    reader, *_ = built(texts, spaces, gates_by_idf=gates_by_idf)
    if gates_by_idf:
        counts = dict(zip(reader.frequencies.terms, reader.frequencies.document_frequency.tolist(), strict=True))
        assert counts == {word: sum(word in tokenise(text) for text in texts) for word in ("a", "b", "zz")}
    reader.save(tmp_path)
    loaded = Histograms(spaces, gates_by_idf=gates_by_idf)
    loaded.load(tmp_path)
    np.testing.assert_equal(loaded.identity_parts(), reader.identity_parts())
    other = built(texts[:2], spaces, gates_by_idf=gates_by_idf)[0].identity_parts()
    assert (str(other) != str(reader.identity_parts())) == gates_by_idf
    assert (tmp_path / "frequencies").exists() == gates_by_idf
