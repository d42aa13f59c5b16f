"""Pairs of queries and documents as tensors, against loops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pt_neural.rankers.hashed import word_bags

from pt_neural.rankers.pairs import PairTexts, exact_matches, moved, pair_up, rounds
from pt_neural.text import PackedSequences, Vocabulary, WordHashing, pack_texts, tokenise

NUM_TERMS = 4
QUERIES = st.lists(st.lists(st.integers(-1, NUM_TERMS - 1), max_size=5), min_size=1, max_size=4)
DOCUMENTS = st.lists(st.lists(st.integers(0, NUM_TERMS - 1), max_size=8), min_size=1, max_size=4)

TOPICS = ["river city", "city city sea city", "", "unknown river"]
TEXTS = ["a city by the river, a city", "", "sea", "the river runs to the sea past the city", "?"]


def drawn_pairs(data, queries, documents) -> tuple[np.ndarray, np.ndarray]:
    pair = st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(documents) - 1))
    pairs = np.array(data.draw(st.lists(pair, max_size=6)), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def double_loop(query: list[int], document: list[int], width: int) -> list[list[int]]:
    """Row i: the positions j where the interaction matrix X is 1."""
    rows = [[j for j, word in enumerate(document) if word == term] for term in query]
    return rows + [[]] * (width - len(query))


def unpacked(matches) -> list[list[int]]:
    return [part.tolist() for part in matches.positions.tensor_split(matches.offsets[1:-1])][: len(matches.offsets) - 1]


@given(QUERIES, DOCUMENTS, st.sampled_from([None, 1, 3]), st.data())
def test_matches_equal_a_double_loop(queries, documents, max_terms, data):
    rows, columns = drawn_pairs(data, queries, documents)
    table = np.zeros(NUM_TERMS + 1, dtype=np.int32)
    packed = PackedSequences.from_lists(queries), PackedSequences.from_lists(documents)
    found = exact_matches(packed[0], rows, packed[1], columns, table, max_terms=max_terms)
    width = max(map(len, queries))
    expected = [double_loop(queries[q], documents[d][:max_terms], width) for q, d in zip(rows, columns, strict=True)]
    assert unpacked(found) == [row for pair in expected for row in pair]
    assert found.positions.dtype == found.offsets.dtype == torch.int64
    assert not table.any()


@given(QUERIES, DOCUMENTS, st.data())
def test_the_queries_of_each_document_stand_in_its_row(queries, documents, data):
    of_pairs, columns = drawn_pairs(data, queries, documents)
    _, columns = np.unique(columns, return_inverse=True)
    pairing = pair_up(of_pairs, columns)
    places = pairing.places.numpy()
    assert len(set(places)) == len(places)
    width = pairing.queries.shape[1]
    assert (places // width).tolist() == columns.tolist()
    assert pairing.queries.flatten()[pairing.places].tolist() == of_pairs.tolist()
    assert width == max(1, np.bincount(columns).max(initial=0))


def test_pairs_keep_their_shape():
    pairing = pair_up(np.array([[0, 0], [1, 1]]), np.array([[0, 1], [2, 0]]))
    assert pairing.queries.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert pairing.places.tolist() == [[0, 2], [4, 1]]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(1, 4))
def test_rounds_share_out_all_pairs(documents, most):
    documents = np.array(documents)
    parts = rounds(documents, most)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(documents)))
    assert all(np.bincount(documents[part]).max() <= most for part in parts)
    assert len(parts) == -(-np.bincount(documents).max() // most)


def test_rounds_of_no_pairs():
    assert [len(part) for part in rounds(np.zeros(0, dtype=np.int64), 3)] in ([], [0])


@pytest.fixture
def texts() -> PairTexts:
    queries, query_terms = pack_texts(TOPICS)
    documents, terms = pack_texts(TEXTS)
    vocabulary, hashing = Vocabulary(terms), WordHashing.build([*terms, *query_terms], sizes=(1, 2))
    return PairTexts(
        queries,
        vocabulary.ids(query_terms),
        documents,
        len(vocabulary),
        query_terms=3,
        document_terms=6,
        matches=True,
        query_bags=word_bags(query_terms, hashing),
        document_bags=word_bags(terms, hashing),
    )


def words(texts: PairTexts, side: str, taken) -> list[list[str]]:
    """The texts of a batch, told by the letter n-grams of their words."""
    corpus = {"query": texts.hashed_queries, "document": texts.hashed_documents}[side]
    every = {"query": pack_texts(TOPICS)[1], "document": pack_texts(TEXTS)[1]}[side]
    told = {tuple(np.flatnonzero(corpus.bags[[row]].toarray()[0])): word for row, word in enumerate(every)}
    bags = [part.tolist() for part in taken.ngrams.tensor_split(taken.bags[1:-1])]
    names = [told.get(tuple(sorted(bag))) for bag in bags]
    return [[names[word] for word in part] for part in taken.words.tensor_split(taken.offsets[1:-1])]


@pytest.mark.parametrize(
    ("queries", "documents"), [([0, 3, 1], [4, 0, 3]), ([1, 2], [[0, 3], [3, 1]]), ([0, 0, 1, 2, 3], [0, 3, 0, 1, 3])]
)
def test_a_batch_has_each_text_once_and_the_longest_document_first(texts, queries, documents):
    queries, documents = np.array(queries), np.array(documents)
    batch = texts.take(queries, documents)
    told = {"query": words(texts, "query", batch.queries), "document": words(texts, "document", batch.documents)}
    assert len(told["query"]) == len(np.unique(queries))
    assert len(told["document"]) == len(np.unique(documents))
    lengths = list(map(len, told["document"]))
    assert lengths == sorted(lengths, reverse=True)
    assert batch.pairing.places.shape == documents.shape
    of_pairs = np.broadcast_to(queries.reshape(-1, *[1] * (documents.ndim - 1)), documents.shape).ravel()
    width = batch.pairing.queries.shape[1]
    matches = unpacked(batch.matches)
    for number, place in enumerate(batch.pairing.places.flatten().tolist()):
        query, text = tokenise(TOPICS[of_pairs[number]])[:3], tokenise(TEXTS[documents.ravel()[number]])[:6]
        assert told["query"][batch.pairing.queries.flatten()[place]] == query
        assert told["document"][place // width] == text
        expected = [[j for j, word in enumerate(text) if word == term] for term in query]
        assert matches[3 * number : 3 * number + 3] == expected + [[]] * (3 - len(query))


def test_lengths_are_those_that_count(texts):
    assert texts.lengths(np.arange(5)).tolist() == [6, 0, 1, 6, 0]


def test_tuples_of_tensors_move_whole(texts):
    batch = texts.take(np.array([0]), np.array([0]))._replace(matches=None)
    elsewhere = moved(batch, torch.device("meta"))
    assert elsewhere.matches is None
    assert type(elsewhere.queries) is type(batch.queries)
    assert elsewhere.pairing.places.is_meta
    assert elsewhere.documents.words.shape == batch.documents.words.shape
