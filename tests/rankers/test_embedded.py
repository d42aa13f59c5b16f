"""Batches of texts as word embeddings, and of pairs, against loops over words."""

from collections.abc import Iterable
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pt_neural as pn
from pt_neural.rankers import embedded
from pt_neural.rankers.embedded import EmbeddedCorpus, EmbeddedPairs, WordVectors
from pt_neural.text import PackedSequences, Vocabulary, pack_fields, pack_texts, with_boundaries

random = np.random.default_rng(2)
WORDS = ["sea", "river", "city"]
SPACES = pn.EmbeddingSpaces.from_vectors(WORDS, *random.normal(scale=3, size=(2, 3, 4)).astype("f4"))
OTHERS = random.normal(size=(4, 4)).astype("f4")  # unknown words, the end, the beginnings of two fields
TERMS = ["city", "unheard", "river", "strange"]  # three boundaries follow them
BOUNDARIES = range(len(TERMS), len(TERMS) + 3)
TEXTS = st.lists(st.lists(st.integers(-1, BOUNDARIES[-1]), max_size=9), min_size=1, max_size=6)


def vectors_of(space="in") -> WordVectors:
    return WordVectors(SPACES, space, OTHERS)


def corpus_of(texts) -> EmbeddedCorpus:
    return EmbeddedCorpus(PackedSequences.from_lists(texts), vectors_of().rows(TERMS), vectors_of())


def flat(lists: Iterable[list]) -> list:
    return list(chain.from_iterable(lists))


def is_known(term: int) -> bool:
    return 0 <= term < len(TERMS) and TERMS[term] in WORDS


def expected(text: list[int]) -> np.ndarray:
    """The vector of each word of a text, word by word."""
    rows = []
    for term in text:
        if is_known(term):
            rows.append(SPACES.in_vectors[WORDS.index(TERMS[term])] / np.sqrt(np.mean(SPACES.in_vectors**2)))
        else:
            rows.append(OTHERS[1 + BOUNDARIES.index(term)] if term in BOUNDARIES else OTHERS[0])
    return np.array(rows).reshape(-1, 4)


@given(TEXTS, st.data())
def test_any_batch_equals_a_loop_over_words(texts, data):
    corpus = corpus_of(texts)
    assert len(corpus) == len(texts)
    numbers_of_texts = st.lists(st.integers(0, len(texts) - 1), max_size=8)
    for _ in range(2):  # what a batch leaves behind does not show in the next one
        numbers = data.draw(numbers_of_texts)
        batch = corpus.take(np.array(numbers, dtype=np.int64))
        wanted = [texts[number] for number in numbers]
        assert batch.offsets.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
        found = batch.vectors[batch.words].numpy()
        np.testing.assert_allclose(found, expected(flat(wanted)), rtol=1e-6)
        assert batch.known.tolist() == [any(map(is_known, text)) for text in wanted]
        assert len(batch.vectors) == len({term for text in wanted for term in text})


def test_tensors_are_what_networks_take():
    batch = corpus_of([[0, -1], []]).take(np.arange(2))
    kinds = {name: getattr(batch, name).dtype for name in batch._fields}
    assert kinds == {"vectors": torch.float32, "words": torch.int64, "offsets": torch.int64, "known": torch.bool}
    nothing = corpus_of([[0]]).take(np.arange(0))
    assert (nothing.vectors.shape, nothing.words.shape, nothing.offsets.tolist()) == ((0, 4), (0,), [0])


def test_the_scale_is_that_of_frequent_words(monkeypatch):
    monkeypatch.setattr(embedded, "FREQUENT", 2)
    taken = vectors_of("out").take(np.arange(3))
    assert np.mean(taken[:2] ** 2) == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(taken / taken[0, 0], SPACES.out_vectors / SPACES.out_vectors[0, 0], rtol=1e-5)


def test_embeddings_that_are_all_zero_stay_so():
    spaces = pn.EmbeddingSpaces.from_vectors(["sea"], np.zeros((1, 4)), np.zeros((1, 4)))
    assert not WordVectors(spaces, "in", OTHERS).take(np.array([0])).any()


def test_rows_of_terms_boundaries_and_unknown_words():
    assert vectors_of().rows(TERMS).tolist() == [2, 3, 1, 3, 4, 5, 6, 3]


def test_vectors_that_are_not_words_are_drawn_at_random():
    spaces = pn.EmbeddingSpaces.from_vectors(["sea"], np.ones((1, 300)), np.ones((1, 300)))
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(WordVectors.draw(spaces, "in", 3).others)
    assert drawn[0].shape == (4, 300)
    assert drawn[0].std() == pytest.approx(1, abs=0.1)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.isin(drawn[0], drawn[2]).any()
    assert len(np.unique(drawn[0])) == 1200


def test_terms_may_be_memory_mapped(tmp_path):
    np.save(tmp_path / "terms.npy", np.array([0, 2, 1], dtype=np.int32))
    terms = np.load(tmp_path / "terms.npy", mmap_mode="r")
    batch = EmbeddedCorpus(PackedSequences(terms, np.array([0, 2, 3])), vectors_of().rows(TERMS), vectors_of()).take(
        np.array([1, 0])
    )
    np.testing.assert_allclose(batch.vectors[batch.words].numpy(), expected([1, 0, 2]), rtol=1e-6)


# Pairs


def pairs_of(queries: list[str], documents: list[str], *, matches=True) -> EmbeddedPairs:
    """Documents of two fields, parted by a bar."""
    of_queries, query_terms = pack_texts(queries)
    of_documents, document_terms = pack_fields([text.replace("|", "\x1e") for text in documents], 2)
    bounded = with_boundaries(of_documents, len(document_terms), fields=2, max_terms=20)
    return EmbeddedPairs(
        EmbeddedCorpus(of_queries, vectors_of().rows(query_terms), vectors_of()),
        Vocabulary(document_terms).ids(query_terms),
        EmbeddedCorpus(bounded, vectors_of().rows(document_terms), vectors_of()),
        len(document_terms) + len(OTHERS),
        matches=matches,
    )


QUERIES = ["river city", "", "odd", "sea sea nowhere", "city"]
DOCUMENTS = ["city|river odd river", "|", "|sea", "odd sea|sea sea odd"]
BOUNDED = [["<", "city", "|", "river", "odd", "river", ">"], ["<", "|", ">"], ["<", "|", "sea", ">"]]
BOUNDED.append(["<", "odd", "sea", "|", "sea", "sea", "odd", ">"])


def slow_matches(query: int, document: int) -> list[list[int]]:
    words = QUERIES[query].split()
    found = [[place for place, other in enumerate(BOUNDED[document]) if other == word] for word in words]
    return found + [[]] * (3 - len(words))  # the longest query has three words


def test_groups_hold_each_query_and_document_once():
    queries, documents = np.array([3, 0, 3]), np.array([[3, 1], [0, 1], [1, 0]])
    groups = pairs_of(QUERIES, DOCUMENTS)(queries, documents)
    assert len(groups.queries.offsets) - 1 == 2
    assert len(groups.documents.offsets) - 1 == 3
    assert groups.query_rows.tolist() == [1, 0, 1]
    assert groups.document_rows.tolist() == [[2, 1], [0, 1], [1, 0]]
    assert groups.queries.offsets.diff().tolist() == [2, 3]
    assert groups.documents.offsets.diff().tolist() == [7, 3, 8]
    beginning = groups.documents.vectors[groups.documents.words[groups.documents.offsets[:-1]]].numpy()
    np.testing.assert_array_equal(beginning, OTHERS[[2, 2, 2]])


def test_matches_are_those_of_a_loop_over_words():
    queries, documents = np.repeat(np.arange(5), 4), np.tile(np.arange(4), 5)
    pairs = pairs_of(QUERIES, DOCUMENTS)
    wanted = flat(slow_matches(query, document) for query, document in zip(queries, documents, strict=True))
    for found in (pairs.find_matches(queries, documents), pairs(queries, documents[:, None]).matches):
        assert found.offsets.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
        assert found.positions.tolist() == flat(wanted)
    groups = pairs(np.array([3, 0]), np.array([[3, 2], [0, 1]]))
    of_groups = flat(slow_matches(*pair) for pair in [(3, 3), (3, 2), (0, 0), (0, 1)])
    assert groups.matches.positions.tolist() == flat(of_groups)


def test_unknown_words_share_a_vector_but_match_only_themselves():
    pairs = pairs_of(["odd"], ["odd|strange"])
    assert pairs.find_matches(np.array([0]), np.array([0])).positions.tolist() == [1]
    documents = pairs.documents.take(np.array([0]))
    np.testing.assert_array_equal(documents.vectors[documents.words[[1, 3]]].numpy(), OTHERS[[0, 0]])


def test_matches_are_left_out_where_nothing_looks_at_them():
    assert pairs_of(QUERIES, DOCUMENTS, matches=False)(np.array([0]), np.array([[0]])).matches is None
