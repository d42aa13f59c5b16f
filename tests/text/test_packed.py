import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural.text import PackedSequences, pack_fields, pack_texts, tokenise, with_boundaries
from pt_neural.text.tokens import FIELD_END

LISTS = st.lists(st.lists(st.integers(-1, 2**31 - 1), max_size=9), min_size=1, max_size=9)
FIELDS = st.lists(st.sampled_from(["", "river", "The City!", "a b c"]), min_size=2, max_size=2)


def unpacked(sequences):
    return [sequence.tolist() for sequence in sequences]


@settings(max_examples=40)
@given(LISTS, st.none() | st.integers(0, 4), st.data())
def test_packing_and_taking_equal_lists(lists, max_terms, data):
    packed = PackedSequences.from_lists(lists)
    assert unpacked(packed) == lists
    assert (packed.terms.dtype, packed.offsets.dtype) == (np.int32, np.int64)
    assert packed.lengths.tolist() == [len(x) for x in lists]
    indices = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=9))
    taken = packed.take(indices, max_terms=max_terms)
    assert unpacked(taken) == [lists[i][:max_terms] for i in indices]
    assert taken.terms.dtype == np.int32


def test_indices_out_of_range():
    packed = PackedSequences.from_lists([[1], [2]])
    for indices in ([2], [-1], [0, 5]):
        with pytest.raises(IndexError, match="between 0 and 1"):
            packed.take(indices)
    with pytest.raises(IndexError):
        packed[2]


def test_items_are_views():
    packed = PackedSequences.from_lists([[1, 2], [3]])
    assert np.shares_memory(packed[0], packed.terms)
    assert packed[-1].tolist() == [3]
    assert repr(packed) == "PackedSequences(2 sequences, 3 terms)"
    assert len(PackedSequences.from_lists([])) == 0


def test_offsets_that_do_not_fit():
    for offsets in ([], [1, 3], [0, 2], [0, 3, 2, 3]):
        with pytest.raises(ValueError, match="offsets"):
            PackedSequences(np.zeros(3, np.int32), np.array(offsets, np.int64))


def test_memory_mapped_arrays(tmp_path):
    packed = PackedSequences.from_lists([[1, 2], [], [3, 4, 5]])
    np.save(tmp_path / "t.npy", packed.terms)
    np.save(tmp_path / "o.npy", packed.offsets)
    mapped = PackedSequences(np.load(tmp_path / "t.npy", mmap_mode="r"), np.load(tmp_path / "o.npy", mmap_mode="r"))
    taken = mapped.take([2, 1, 2])
    assert unpacked(taken) == [[3, 4, 5], [], [3, 4, 5]]
    assert not isinstance(taken.terms, np.memmap)


@settings(max_examples=30)
@given(st.lists(st.text("ab c\u00e9\U00010400", max_size=20) | st.none() | st.just(float("nan")), max_size=8))
def test_texts_are_packed_with_a_vocabulary_of_their_own(texts):
    sequences, terms = pack_texts(texts)
    assert [[terms[i] for i in sequence] for sequence in sequences] == [tokenise(text) for text in texts]
    assert terms == list(dict.fromkeys(term for text in texts for term in tokenise(text)))
    assert sequences.terms.dtype == np.int32


@settings(max_examples=30)
@given(st.lists(FIELDS, min_size=1), st.integers(1, 9))
def test_boundaries_equal_a_loop(documents, max_terms):
    sequences, terms = pack_fields(map(FIELD_END.join, documents), 2)
    bounded = with_boundaries(sequences, len(terms), fields=2, max_terms=max_terms)
    names = [*terms, "<end>", "<title>", "<text>"]
    for (title, text), sequence in zip(documents, bounded, strict=True):
        expected = ["<title>", *tokenise(title), "<text>", *tokenise(text), "<end>"][:max_terms]
        assert [names[term] for term in sequence] == expected


def test_too_few_or_too_many_fields():
    sequences, terms = pack_fields(["river", f"a{FIELD_END}b{FIELD_END}c{FIELD_END}d"], 3)
    assert sequences.field_ends.tolist() == [[0, 0, 1], [1, 2, 4]]
    assert terms == ["river", "a", "b", "c", "d"]
