"""IBM Model 1 against numbers worked by hand, a loop over positions, and nltk."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pt_neural.models.translation.ibm_model1 import (
    align,
    document_counts,
    em_step,
    equal_translations,
    mutual,
    query_counts,
)
from pt_neural.text import PackedSequences, tokenise
from pt_neural.text.tokens import pack_texts

TEXTBOOK = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]
PAIRS = st.lists(
    st.tuples(*[st.lists(st.integers(0, 4), min_size=1, max_size=6)] * 2), min_size=1, max_size=6
)  # words of a document, words of a query


def learned(pairs, num_words, iterations, *, null_word=False):
    """The table of pairs of a document and a query, as ids, and the likelihoods on the way."""
    documents, queries = (PackedSequences.from_lists(texts) for texts in zip(*pairs, strict=True))
    rows = np.arange(len(pairs))
    counts = query_counts(queries, rows, rows, num_words, len(pairs))
    texts = document_counts(documents, num_words, null_word=null_word)
    table, likelihoods = equal_translations(counts, texts), []
    for _ in range(iterations):
        table, likelihood = em_step(table, counts, texts)
        likelihoods.append(likelihood)
    return table.toarray(), likelihoods


def in_ids(pairs):
    sequences, words = pack_texts(text for pair in pairs for text in pair)
    ids = [sequence.tolist() for sequence in sequences]
    return list(zip(ids[::2], ids[1::2], strict=True)), words


def by_positions(pairs, num_words, iterations, *, null_word):
    """Brown et al., position by position."""
    pairs = [(document + [num_words] * null_word, query) for document, query in pairs]
    table = np.full((num_words, num_words + null_word), 1 / len({word for _, query in pairs for word in query}))
    likelihoods = []
    for _ in range(iterations):
        counts, likelihood = np.zeros_like(table), 0.0
        for document, query in pairs:
            for word in query:
                shares = table[word, document]
                likelihood += np.log(shares.mean())
                np.add.at(counts[word], document, shares / shares.sum())
        table = np.divide(counts, counts.sum(axis=0), out=np.zeros_like(counts), where=counts.sum(axis=0) > 0)
        likelihoods.append(likelihood)
    return table, likelihoods


@pytest.mark.parametrize(
    ("iterations", "haus", "das", "ein"),
    [
        (1, [1 / 2, 1 / 2], [1 / 2, 1 / 4, 1 / 4], [1 / 2, 1 / 2]),
        (2, [3 / 7, 4 / 7], [7 / 11, 2 / 11, 2 / 11], [4 / 7, 3 / 7]),
    ],
)
def test_the_textbook_example_by_hand(iterations, haus, das, ein):
    pairs, words = in_ids(TEXTBOOK)
    table, _ = learned(pairs, len(words), iterations)
    at = {word: number for number, word in enumerate(words)}
    np.testing.assert_allclose(table[[at["the"], at["house"]], at["haus"]], haus)
    np.testing.assert_allclose(table[[at["the"], at["house"], at["book"]], at["das"]], das)
    np.testing.assert_allclose(table[[at["a"], at["book"]], at["ein"]], ein)


def test_nltk_learns_the_same_table():
    translate = pytest.importorskip("nltk.translate")
    random = np.random.default_rng(3)
    # Words of one query are distinct: nltk counts a word that a query has n times as if it were there once.
    draws = [(random.choice(list("abcdefgh"), 7), random.permutation(list("abcdefgh"))[:4]) for _ in range(40)]
    texts = [(" ".join(document), " ".join(query)) for document, query in draws]
    pairs, words = in_ids(texts)
    table, _ = learned(pairs, len(words), 6, null_word=True)
    sentences = [translate.AlignedSent(tokenise(query), tokenise(document)) for document, query in texts]
    theirs = translate.IBMModel1(sentences, 6).translation_table
    for source, column in zip([*words, None], table.T, strict=True):
        expected = [theirs[word][source] for word in words]
        np.testing.assert_allclose(column, expected, atol=1e-9)


@given(PAIRS, st.booleans())
@settings(max_examples=40)
def test_a_loop_over_positions_learns_the_same(pairs, null_word):
    table, likelihoods = learned(pairs, 5, 4, null_word=null_word)
    expected, their_likelihoods = by_positions(pairs, 5, 4, null_word=null_word)
    np.testing.assert_allclose(table, expected, atol=1e-9)
    np.testing.assert_allclose(likelihoods, their_likelihoods, rtol=1e-9, atol=1e-9)
    assert (np.diff(likelihoods) > -1e-9).all()


def test_pairs_that_share_a_query_or_a_document_count_each():
    documents, queries = PackedSequences.from_lists([[0, 1], [2]]), PackedSequences.from_lists([[3, 3], [4]])
    rows = np.array([0, 0, 1]), np.array([0, 1, 0])
    counts = query_counts(queries, *rows, 5, 2)
    assert counts.toarray().tolist() == [[0, 0], [0, 0], [0, 0], [2, 2], [1, 0]]
    texts = document_counts(documents, 5, null_word=True)
    assert texts.toarray().tolist() == [[1, 1, 0, 0, 0, 1], [0, 0, 1, 0, 0, 1]]
    table, _ = em_step(equal_translations(counts, texts), counts, texts)
    expected, _ = by_positions([([0, 1], [3, 3]), ([2], [3, 3]), ([0, 1], [4])], 5, 1, null_word=True)
    np.testing.assert_allclose(table.toarray(), expected)


@given(PAIRS, st.booleans())
@settings(max_examples=40)
def test_alignments_are_the_most_probable_ones(pairs, null_word):
    table, _ = learned(pairs, 5, 3, null_word=null_word)
    documents, queries = (PackedSequences.from_lists(texts) for texts in zip(*pairs, strict=True))
    rows = np.arange(len(pairs))
    found = align(csr_array(table), queries, rows, documents, rows)
    for alignment, (document, query) in zip(found, pairs, strict=True):
        for source, word in zip(alignment, query, strict=True):
            probabilities = table[word, document].tolist()
            null = table[word, 5] if null_word else 0.0
            expected = probabilities.index(max(probabilities)) if max(probabilities) >= null else -1
            assert source == expected


def test_words_without_any_translation_are_aligned_with_none():
    table = csr_array(np.array([[0.0, 0.0], [0.5, 0.0]]))
    texts = PackedSequences.from_lists([[1, 0, 0]]), PackedSequences.from_lists([[0, 1]])
    assert align(table, texts[1], np.array([0]), texts[0], np.array([0]))[0].tolist() == [-1, 1]


def test_links_that_both_directions_have():
    packed = PackedSequences.from_lists
    found = mutual(packed([[2, -1, 0, 0], [1]]), packed([[3, 2, 0], [0, -1]]))
    assert [links.tolist() for links in found] == [[2, -1, -1, 0], [-1]]
    assert [links.tolist() for links in mutual(packed([[0]]), packed([[0, 0]]))] == [[0]]
