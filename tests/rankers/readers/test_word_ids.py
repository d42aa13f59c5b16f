"""The reader of word ids: ids of known, unknown, lost and padding words, batches, and the layer of embeddings."""

import pickle
from functools import partial

import numpy as np
import pytest
import torch

import pt_neural as pn
from pt_neural.rankers.readers import Reader, WordIds
from pt_neural.rankers.readers.reader import to_device
from pt_neural.text import PackedSequences, Vocabulary, pack_texts

random = np.random.default_rng(2)
WORDS = ["sea", "river", "city"]
KNOWN = len(WORDS)
SPACES = pn.EmbeddingSpaces.from_vectors(WORDS, *random.normal(size=(2, KNOWN, 4)).astype("f4"))
QUERIES = ["river odd", "", "strange sea city", "odd"]
DOCUMENTS = ["odd city odd strange river", "", "sea"]


def pairs_of(reader: WordIds, queries=QUERIES, documents=DOCUMENTS):
    sequences, terms = pack_texts(documents)
    return reader.pair(queries, sequences, Vocabulary(terms))


def test_groups_hold_padded_ids():
    groups = pairs_of(WordIds(SPACES)).batch(np.array([0, 2, 1]), np.array([[0, 1], [2, 0], [2, 2]]))
    queries, documents, known = groups
    assert (queries.dtype, documents.dtype, known) == (torch.int64, torch.int64, KNOWN)
    assert documents.shape == (3, 2, 5)
    odd, strange = int(queries[0, 1]), int(queries[1, 0])
    assert len({odd, strange, KNOWN}) == 3
    assert min(odd, strange) > KNOWN
    pad = KNOWN
    assert queries.tolist() == [[1, odd, pad], [strange, 0, 2], [pad] * 3]
    long, empty, short = [odd, 2, odd, strange, 1], [pad] * 5, [0, *[pad] * 4]
    assert documents.tolist() == [[long, empty], [short, long], [short, short]]
    assert groups.query_mask.sum(-1).tolist() == [2, 3, 0]
    assert groups.document_mask.sum(-1).tolist() == [[5, 0], [1, 5], [1, 1]]


def test_equal_words_match_and_different_words_do_not():
    """Unknown words too: they have no embedding, but they are not all the same word."""
    words = ["sea", "odd", "strange", "sea", "\ud800", "odd", *(f"unknown{number}" for number in range(5000))]
    ids = WordIds(SPACES).ids(words)[:-1]
    np.testing.assert_array_equal(ids[:, None] == ids[None, :50], np.equal.outer(words, words[:50]))
    assert len(np.unique(ids)) == len(set(words))


def test_lost_words_match_nothing():
    """Of a document's word that a forward index left out, only its place remains."""
    reader = WordIds(SPACES)
    documents = reader.read_documents(PackedSequences.from_lists([[0, -1, 1]]), Vocabulary(["sea", "odd"]))
    lost = documents.take(np.array([0]))[0, 1]
    queries = reader.read_queries(QUERIES).take(np.arange(len(QUERIES)))
    assert lost > KNOWN
    assert not (queries == lost).any()


def test_ids_are_the_same_in_every_process():
    assert WordIds(SPACES).ids(["odd", "sea", "Ωmega"]).tolist() == [3118930870161404953, 0, 2250932815599870470, 4]


def test_only_the_first_words_are_read():
    reader = WordIds(SPACES, query_terms=1, document_terms=2)
    queries, documents, _ = pairs_of(reader).batch(np.array([2]), np.array([[0, 2]]))
    whole = pairs_of(WordIds(SPACES)).batch(np.array([2]), np.array([[0, 2]]))
    assert torch.equal(queries, whole.queries[:, :1])
    assert torch.equal(documents, whole.documents[:, :, :2])


def test_batches_may_be_empty_and_move_to_devices(tmp_path):
    np.save(tmp_path / "terms.npy", np.array([0, 1], dtype=np.int32))
    terms = np.load(tmp_path / "terms.npy", mmap_mode="r")
    pairs = WordIds(SPACES).pair([""], PackedSequences(terms, np.array([0, 2])), Vocabulary(["sea", "odd"]))
    groups = pairs.batch(np.zeros(0, dtype=np.int64), np.zeros((0, 3), dtype=np.int64))
    assert (groups.queries.shape, groups.documents.shape) == ((0, 1), (0, 3, 1))
    moved = to_device(pairs.batch(np.array([0]), np.array([[0]])), torch.device("cpu"))
    assert (moved.documents[0, 0, 0], moved.num_known) == (0, KNOWN)


def test_the_layer_starts_from_the_embeddings_and_learns():
    for space in ("in", "out"):
        layer = WordIds(SPACES, space).embedding()
        groups = pairs_of(WordIds(SPACES)).batch(np.array([0]), np.array([[0, 1]]))
        vectors = layer(groups.documents)  # odd city odd strange river
        known = SPACES.vectors(space)[[2, 1]]
        np.testing.assert_array_equal(vectors.detach()[0, 0, [1, 4]], known)
        assert not vectors[0, 0, [0, 2, 3]].any()
        assert not vectors[0, 1].any()
        vectors.sum().backward()
        assert layer.weight.grad[:, 0].tolist() == [0, 1, 1, 0]  # sea, river, city, and all that is unknown
    before = SPACES.in_vectors.copy()
    with torch.no_grad():
        WordIds(SPACES).embedding().weight.add_(1)
    np.testing.assert_array_equal(SPACES.in_vectors, before)  # a copy is trained


def test_the_random_numbers_of_the_user_stay_as_they_are():
    state = torch.get_rng_state()
    WordIds(SPACES).embedding()
    assert torch.equal(torch.get_rng_state(), state)


def test_nothing_is_learned_or_saved_but_the_embeddings_tell_readers_apart(tmp_path):
    reader = WordIds(SPACES)
    reader.build(["sea"], PackedSequences.from_lists([[0]]), Vocabulary(["sea"]))
    reader.save(tmp_path)
    assert not list(tmp_path.iterdir())
    loaded = WordIds(SPACES)
    loaded.load(tmp_path)
    copy = pickle.loads(pickle.dumps(reader))
    identities = [str(one.identity_parts()) for one in (reader, loaded, copy, WordIds(SPACES, "out"))]
    assert identities[0] == identities[1] == identities[2] != identities[3]


def test_what_cannot_work_is_refused():
    with pytest.raises(ValueError, match="no word of the documents has a vector"):
        WordIds(SPACES).build(["sea"], PackedSequences.from_lists([[0]]), Vocabulary(["odd"]))
    with pytest.raises(TypeError, match=r"spaces must be pn\.EmbeddingSpaces"):
        WordIds({"sea": [1.0]})
    with pytest.raises(ValueError, match="space must be one of"):
        WordIds(SPACES, "both")


def test_a_reader_without_a_way_to_grow_starts_from_equal_ones_only():
    reader, equal = (
        WordIds(SPACES),
        WordIds(pn.EmbeddingSpaces.from_vectors(WORDS, SPACES.in_vectors, -SPACES.in_vectors)),
    )
    others = [
        WordIds(pn.EmbeddingSpaces.from_vectors(["hill", *WORDS[1:]], SPACES.in_vectors, SPACES.out_vectors)),
        WordIds(SPACES, "out"),
    ]
    for grow, error in ((reader.grow, "other word vectors"), (partial(Reader.grow, reader), "has no method grow")):
        assert grow(equal) is None
        for other in others:
            with pytest.raises(ValueError, match=error):
                grow(other)
