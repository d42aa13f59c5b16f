"""Pairs of queries and documents as tensors, against loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural.rankers.readers.reader import to_device
from pt_neural.rankers.readers.word_pairs import PairTexts, WordPairs, exact_matches, pair_up
from pt_neural.text import PackedSequences, Vocabulary, pack_texts, tokenise

NUM_TERMS = 4
QUERIES = st.lists(st.lists(st.integers(-1, NUM_TERMS - 1), max_size=5), min_size=1, max_size=4)
DOCUMENTS = st.lists(st.lists(st.integers(0, NUM_TERMS - 1), max_size=8), min_size=1, max_size=4)

TOPICS = ["river city", "city city sea city", "", "unknown river"]
TEXTS = ["a city by the river, a city", "", "sea", "the river runs to the sea past the city", "?"]


def drawn_pairs(data, queries, documents) -> tuple[np.ndarray, np.ndarray]:
    pair = st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(documents) - 1))
    pairs = np.array(data.draw(st.lists(pair, max_size=6)), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def double_loop(query: list, document: list, width: int) -> list[list[int]]:
    """Row i: the positions j where the interaction matrix X is 1."""
    rows = [[j for j, word in enumerate(document) if word == term] for term in query]
    return rows + [[]] * (width - len(query))


def unpacked(matches) -> list[list[int]]:
    return [part.tolist() for part in matches.positions.tensor_split(matches.offsets[1:-1])][: len(matches.offsets) - 1]


@settings(max_examples=50)
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


@settings(max_examples=50)
@given(QUERIES, DOCUMENTS, st.data())
def test_the_queries_of_each_document_stand_in_its_row(queries, documents, data):
    query_rows, columns = drawn_pairs(data, queries, documents)
    _, columns = np.unique(columns, return_inverse=True)
    pairing = pair_up(query_rows, columns)
    places = pairing.places.numpy()
    assert len(set(places)) == len(places)
    width = pairing.queries.shape[1]
    assert (places // width).tolist() == columns.tolist()
    assert pairing.queries.flatten()[pairing.places].tolist() == query_rows.tolist()
    assert width == max(1, np.bincount(columns).max(initial=0))


def test_pairs_keep_their_shape():
    pairing = pair_up(np.array([[0, 0], [1, 1]]), np.array([[0, 1], [2, 0]]))
    assert pairing.queries.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert pairing.places.tolist() == [[0, 2], [4, 1]]


def built(**options) -> tuple[WordPairs, PackedSequences, Vocabulary]:
    sequences, terms = pack_texts(TEXTS)
    vocabulary = Vocabulary(terms, np.bincount(sequences.terms, minlength=len(terms)))
    reader = WordPairs(3, 6, **{"ngram_sizes": (1, 2), **options})
    reader.build(TOPICS, sequences, vocabulary)
    return reader, sequences, vocabulary


@pytest.fixture
def texts() -> PairTexts:
    reader, sequences, vocabulary = built()
    return reader.pair(TOPICS, sequences, vocabulary)


def words(reader: WordPairs, batch) -> list[list[str]]:
    """The texts of a batch, told by the letter n-grams of their words."""
    known = pack_texts(TOPICS + TEXTS)[1]
    names = {
        tuple(np.flatnonzero(bag)): word for word, bag in zip(known, reader.hashing.bags(known).toarray(), strict=True)
    }
    bags = [tuple(sorted(part.tolist())) for part in batch.ngrams.tensor_split(batch.bags[1:-1])]
    found = [names.get(bag) for bag in bags]
    return [[found[word] for word in part] for part in batch.words.tensor_split(batch.offsets[1:-1])]


@pytest.mark.parametrize(
    ("queries", "documents"), [([0, 3, 1], [4, 0, 3]), ([1, 2], [[0, 3], [3, 1]]), ([0, 0, 1, 2, 3], [0, 3, 0, 1, 3])]
)
def test_a_batch_has_each_text_once_and_the_longest_document_first(queries, documents):
    reader, sequences, vocabulary = built(num_ngrams=100)
    queries, documents = np.array(queries), np.array(documents)
    batch = reader.pair(TOPICS, sequences, vocabulary).batch(queries, documents)
    names = {word: word for word in pack_texts(TEXTS)[1]}  # other words have only some of their n-grams
    query_words, document_words = words(reader, batch.queries), words(reader, batch.documents)
    assert len(query_words) == len(np.unique(queries))
    assert len(document_words) == len(np.unique(documents))
    lengths = list(map(len, document_words))
    assert lengths == sorted(lengths, reverse=True)
    assert batch.pairing.places.shape == documents.shape
    query_rows = np.broadcast_to(queries.reshape(-1, *[1] * (documents.ndim - 1)), documents.shape).ravel()
    width = batch.pairing.queries.shape[1]
    matches = unpacked(batch.matches)
    for number, place in enumerate(batch.pairing.places.flatten().tolist()):
        query, text = tokenise(TOPICS[query_rows[number]])[:3], tokenise(TEXTS[documents.ravel()[number]])[:6]
        read = query_words[batch.pairing.queries.flatten()[place]]
        assert [names.get(word) for word in read] == [names.get(word) for word in query]
        assert document_words[place // width] == text
        assert matches[3 * number : 3 * number + 3] == double_loop(query, text, 3)


def test_pairs_of_texts_that_were_read_have_matches_and_pairing_alone(texts):
    queries, documents = np.array([0, 1, 0]), np.array([3, 3, 0])
    pairs = texts.match(queries, documents, np.array([1, 1, 0]))
    assert pairs.queries is pairs.documents is None
    assert unpacked(pairs.matches) == unpacked(texts.batch(queries, documents).matches)
    assert pairs.pairing.queries.tolist() == [[0, 0], [0, 1]]
    assert pairs.pairing.places.tolist() == [2, 3, 0]
    assert texts.lengths.tolist() == [6, 0, 1, 6, 0]


def test_a_reader_without_words_or_without_matches():
    reader, sequences, vocabulary = built(ngram_sizes=None)
    batch = reader.pair(TOPICS, sequences, vocabulary).batch(np.array([0]), np.array([3]))
    assert reader.hashing is batch.queries is batch.documents is None
    assert reader.identity_parts() == ({}, [])
    assert unpacked(batch.matches) == [[1], [], []]
    reader, sequences, vocabulary = built(matches=False)
    assert reader.pair(TOPICS, sequences, vocabulary).batch(np.array([0]), np.array([3])).matches is None


def test_the_most_frequent_ngrams_of_the_documents_count(tmp_path):
    reader, sequences, vocabulary = built(num_ngrams=3)
    assert set(reader.hashing.ngrams) == {"#", "t", "e"}  # '#' is on both sides of every word
    reader.save(tmp_path)
    loaded = WordPairs(3, 6, ngram_sizes=(1, 2))
    loaded.load(tmp_path)
    assert loaded.identity_parts() == reader.identity_parts() != built()[0].identity_parts()
    one, other = (
        with_it.pair(TOPICS, sequences, vocabulary).batch(np.array([1]), np.array([0])) for with_it in (reader, loaded)
    )
    for first, second in zip(one.documents, other.documents, strict=True):
        assert torch.equal(first, second)


def test_texts_are_read_alone_as_in_pairs(texts):
    reader, sequences, vocabulary = built()
    queries, documents = reader.read_queries(TOPICS), reader.read_documents(sequences, vocabulary)
    assert (len(queries), len(documents)) == (len(TOPICS), len(TEXTS))
    for alone, paired in ((queries, texts.hashed_queries), (documents, texts.hashed_documents)):
        numbers = np.array([3, 1, 0])
        for first, second in zip(alone.take(numbers), paired.take(numbers), strict=True):
            assert torch.equal(first, second)


def test_tuples_of_tensors_move_whole(texts):
    batch = texts.batch(np.array([0]), np.array([0]))._replace(matches=None)
    elsewhere = to_device(batch, torch.device("meta"))
    assert elsewhere.matches is None
    assert type(elsewhere.queries) is type(batch.queries)
    assert elsewhere.pairing.places.is_meta
    assert elsewhere.documents.words.shape == batch.documents.words.shape
