"""The reader of word embeddings against loops over words: batches of texts, pairs, and what is drawn and saved."""

import pickle
from collections.abc import Iterable
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.rankers.readers import embedded_words
from pt_neural.rankers.readers.embedded_words import EmbeddedCorpus, EmbeddedPairs, EmbeddedWords
from pt_neural.text import PackedSequences, Vocabulary, pack_fields

random = np.random.default_rng(2)
WORDS = ["sea", "river", "city"]
SPACES = pn.EmbeddingSpaces.from_vectors(WORDS, *random.normal(scale=3, size=(2, 3, 4)).astype("f4"))
OTHERS = random.normal(size=(4, 4)).astype("f4")  # unknown words, the end, the beginnings of two fields
TERMS = ["city", "unheard", "river", "strange"]  # three boundaries follow them
BOUNDARIES = range(len(TERMS), len(TERMS) + 3)
TEXTS = st.lists(st.lists(st.integers(-1, BOUNDARIES[-1]), max_size=9), min_size=1, max_size=6)


def reader_of(space="in", **options) -> EmbeddedWords:
    reader = EmbeddedWords(SPACES, space, **{"fields": 2, "document_terms": 20, **options})
    reader.other_vectors = OTHERS
    return reader


def corpus_of(texts) -> EmbeddedCorpus:
    return EmbeddedCorpus(PackedSequences.from_lists(texts), reader_of().rows(TERMS), reader_of())


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


@settings(max_examples=30)
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


def test_terms_may_be_memory_mapped(tmp_path):
    np.save(tmp_path / "terms.npy", np.array([0, 2, 1], dtype=np.int32))
    sequences = PackedSequences(np.load(tmp_path / "terms.npy", mmap_mode="r"), np.array([0, 2, 3]))
    batch = reader_of(fields=0).read_documents(sequences, Vocabulary(TERMS)).take(np.array([1, 0]))
    np.testing.assert_allclose(batch.vectors[batch.words].numpy(), expected([1, 0, 2]), rtol=1e-6)


# Vectors


def test_the_scale_is_that_of_frequent_words(monkeypatch):
    monkeypatch.setattr(embedded_words, "FREQUENT", 2)
    vectors = reader_of("out").vectors(np.arange(3))
    assert np.mean(vectors[:2] ** 2) == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(vectors / vectors[0, 0], SPACES.out_vectors / SPACES.out_vectors[0, 0], rtol=1e-5)


def test_embeddings_that_are_all_zero_stay_so():
    spaces = pn.EmbeddingSpaces.from_vectors(["sea"], np.zeros((1, 4)), np.zeros((1, 4)))
    reader = EmbeddedWords(spaces)
    reader.other_vectors = OTHERS[:1]
    assert not reader.vectors(np.array([0])).any()


def test_rows_of_terms_boundaries_and_unknown_words():
    assert reader_of().rows(TERMS).tolist() == [2, 3, 1, 3, 4, 5, 6, 3]


def built(spaces: pn.EmbeddingSpaces, seed: int, **options) -> EmbeddedWords:
    torch.manual_seed(seed)
    reader = EmbeddedWords(spaces, **options)
    reader.build([], PackedSequences.from_lists([[0]]), Vocabulary(["sea"]))
    return reader


def test_vectors_that_are_not_words_are_drawn_at_random():
    spaces = pn.EmbeddingSpaces.from_vectors(["sea"], np.ones((1, 300)), np.ones((1, 300)))
    drawn = [built(spaces, seed, fields=2).other_vectors for seed in (1, 1, 2)]
    assert drawn[0].shape == (4, 300)
    assert drawn[0].std() == pytest.approx(1, abs=0.1)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.isin(drawn[0], drawn[2]).any()
    assert len(np.unique(drawn[0])) == 1200
    assert built(spaces, 1).other_vectors.shape == (1, 300)


def test_embeddings_without_any_word_of_the_collection_are_refused():
    with pytest.raises(ValueError, match=r"no word of the documents has a vector in EmbeddingSpaces.* same language"):
        EmbeddedWords(SPACES).build(["sea"], PackedSequences.from_lists([[0]]), Vocabulary(["unheard"]))


@pytest.mark.parametrize("fields", [0, 2])
def test_what_was_drawn_can_be_saved_and_tells_readers_apart(fields, tmp_path):
    reader = built(SPACES, 1, fields=fields)
    reader.save(tmp_path)
    loaded = EmbeddedWords(SPACES, fields=fields)
    loaded.load(tmp_path)
    for copy in (loaded, pickle.loads(pickle.dumps(reader))):
        np.testing.assert_array_equal(copy.other_vectors, reader.other_vectors)
        assert copy.fields == fields
    parts = [
        str(one.identity_parts())
        for one in (reader, loaded, built(SPACES, 2, fields=fields), built(SPACES, 1, fields=fields, space="out"))
    ]
    assert parts[0] == parts[1]
    assert len(set(parts)) == 3


@pytest.mark.parametrize(
    "others", [np.zeros((1, 4), "f4"), np.zeros((4, 6), "f4"), np.zeros((4, 4)), np.zeros(4, "f4"), None]
)
def test_damaged_vectors_are_named(others, tmp_path):
    if others is not None:
        np.save(tmp_path / "other_vectors.npy", others)
    with pytest.raises((ArtifactError, FileNotFoundError), match="other_vectors"):
        EmbeddedWords(SPACES, fields=2).load(tmp_path)


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match=r"spaces must be pn\.EmbeddingSpaces, not 'spaces'"):
        EmbeddedWords("spaces")
    with pytest.raises(ValueError, match="space must be one of 'in', 'out'"):
        EmbeddedWords(SPACES, "both")


# Pairs


QUERIES = ["river city", "", "odd", "sea sea nowhere", "city"]
DOCUMENTS = ["city|river odd river", "|", "|sea", "odd sea|sea sea odd"]  # two fields, parted by a bar
BOUNDED = [["<", "city", "|", "river", "odd", "river", ">"], ["<", "|", ">"], ["<", "|", "sea", ">"]]
BOUNDED.append(["<", "odd", "sea", "|", "sea", "sea", "odd", ">"])


def pairs_of(queries: list[str], documents: list[str], **options) -> EmbeddedPairs:
    sequences, terms = pack_fields([text.replace("|", "\x1e") for text in documents], 2)
    return reader_of(**options).pair(queries, sequences, Vocabulary(terms))


def slow_matches(query: int, document: int) -> list[list[int]]:
    words = QUERIES[query].split()
    found = [[place for place, other in enumerate(BOUNDED[document]) if other == word] for word in words]
    return found + [[]] * (3 - len(words))  # the longest query has three words


def test_groups_hold_each_query_and_document_once():
    queries, documents = np.array([3, 0, 3]), np.array([[3, 1], [0, 1], [1, 0]])
    groups = pairs_of(QUERIES, DOCUMENTS).batch(queries, documents)
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
    for found in (pairs.find_matches(queries, documents), pairs.batch(queries, documents[:, None]).matches):
        assert found.offsets.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
        assert found.positions.tolist() == flat(wanted)
    groups = pairs.batch(np.array([3, 0]), np.array([[3, 2], [0, 1]]))
    of_groups = flat(slow_matches(*pair) for pair in [(3, 3), (3, 2), (0, 0), (0, 1)])
    assert groups.matches.positions.tolist() == flat(of_groups)
    assert pairs_of(QUERIES, DOCUMENTS, matches=False).batch(queries[:1], documents[:1, None]).matches is None


def test_unknown_words_share_a_vector_but_match_only_themselves():
    pairs = pairs_of(["odd"], ["odd|strange"])
    assert pairs.find_matches(np.array([0]), np.array([0])).positions.tolist() == [1]
    documents = pairs.documents.take(np.array([0]))
    np.testing.assert_array_equal(documents.vectors[documents.words[[1, 3]]].numpy(), OTHERS[[0, 0]])


def test_only_the_first_words_are_read():
    reader = reader_of(query_terms=2, document_terms=4)
    assert reader.read_queries(["sea river city"]).sequences.lengths.tolist() == [2]
    pairs = pairs_of(["sea river city"], ["city|river city"], query_terms=2, document_terms=4)
    assert pairs.documents.sequences.lengths.tolist() == [4]  # <, city, |, river
    assert pairs.find_matches(np.array([0]), np.array([0])).positions.tolist() == [3]
