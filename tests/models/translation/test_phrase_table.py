"""Tables of phrases against counts written out, and phrase pairs against all pairs of phrases tried one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pt_neural.models.translation.phrase_table import PhraseTable, consistent_places, phrase_pair_counts
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.phrases import Phrases
from pt_neural.text.tokens import pack_texts

WORDS = Vocabulary(["a", "b", "c", "d"])
TEXTS = PackedSequences.from_lists([[0, 1, 2, 3]])
PHRASES = Phrases.build(TEXTS, 4, max_length=3)
NAMES = PHRASES.names(range(len(PHRASES)), WORDS)


def table_of(counts, **options):
    cells = [(NAMES.index(q), NAMES.index(w), count) for (q, w), count in counts.items()]
    rows, columns, values = (np.array(part) for part in zip(*cells, strict=True))
    counts = csr_array((values.astype("f4"), (rows, columns)), shape=(len(NAMES), len(NAMES)))
    return PhraseTable.of(counts, PHRASES, PHRASES, **options)


def probabilities(table):
    names = table.query_phrases.names, table.document_phrases.names
    cells = table.table.tocoo()
    rows, columns = (of(places, WORDS) for of, places in zip(names, cells.coords, strict=True))
    return {(q, w): pytest.approx(float(p)) for q, w, p in zip(rows, columns, cells.data, strict=True)}


COUNTS = {("a b", "c d"): 3, ("a", "c d"): 1, ("b c d", "c d"): 1, ("c d", "b"): 2, ("b", "b"): 2}


def test_relative_frequencies_of_phrases():
    assert probabilities(table_of(COUNTS)) == {("a b", "c d"): 3 / 5, ("b c d", "c d"): 1 / 5, ("c d", "b"): 1 / 2}


def test_pairs_can_be_left_out():
    assert probabilities(table_of(COUNTS, min_count=2)) == {("a b", "c d"): 3 / 5, ("c d", "b"): 1 / 2}
    assert probabilities(table_of(COUNTS, top=1)) == {("a b", "c d"): 3 / 5, ("c d", "b"): 1 / 2}


def test_translated_phrases_of_documents_are_counted():
    table = table_of(COUNTS)
    documents = PackedSequences.from_lists([[2, 3, 1, 2, 3], [0, 3], [2, -1, 3], [1]])
    counts = table.counts(documents).toarray()
    names = table.document_phrases.names(range(len(table.document_phrases)), WORDS)
    assert counts[:, names.index("c d")].tolist() == [2, 0, 0, 0]
    assert counts[:, names.index("b")].tolist() == [1, 0, 0, 1]
    assert counts.sum() == 4  # nothing else has a translation


def test_phrases_of_a_query():
    table = table_of(COUNTS)
    found = table.segments(np.array([0, 1, 2, 3]))
    names = {place: table.query_phrases.names([number], WORDS)[0] for place, number in found.items()}
    # "b c" is there as the beginning of "b c d", without translations of its own
    assert names == {(0, 2): "a b", (1, 2): "b c", (2, 2): "c d", (1, 3): "b c d"}


def test_tables_are_saved_as_arrays():
    table = table_of(COUNTS)
    again = PhraseTable.from_tensors(table.tensors(), WORDS, 3)
    assert probabilities(again) == probabilities(table)
    with pytest.raises(KeyError):
        PhraseTable.from_tensors(table.tensors(), WORDS, 4)
    with pytest.raises(ValueError, match="keys of phrases"):
        PhraseTable.from_tensors(table.tensors(), Vocabulary(["a"]), 3)


def test_a_table_without_phrases():
    table = table_of({("a", "b"): 1})
    assert probabilities(table) == {}
    assert table.segments(np.array([0, 1])) == {}
    assert table.counts(TEXTS).nnz == 0


# Pairs of phrases


def packed(*lists):
    return PackedSequences.from_lists(lists)


def counted(pairs, alignments, max_length):
    """Phrases of queries and documents with their count, of pairs of texts with the source of each query word."""
    queries, documents = zip(*pairs, strict=True)
    sequences, terms = pack_texts([*queries, *documents])
    rows = np.arange(len(pairs))
    sides = [sequences.take(rows), sequences.take(len(pairs) + rows)]
    phrases = [Phrases.build(side, len(terms), max_length=max_length) for side in sides]
    links = packed(*alignments)
    counts = phrase_pair_counts(links, sides[0], rows, phrases[0], sides[1], rows, phrases[1])
    assert counts.shape == (len(phrases[0]), len(phrases[1]))
    found = {}
    for query, document, count in zip(*(lambda c: (c.row, c.col, c.data))(counts.tocoo()), strict=True):
        names = tuple(
            " ".join(terms[word] for word in of.words([number])[0])
            for of, number in zip(phrases, (query, document), strict=True)
        )
        found[names] = found.get(names, 0) + count
    return found


def test_an_alignment_drawn_by_hand():
    #         cheap  hotels  in  rome
    # low       x
    # cost
    # hotels           x
    # rome                        x
    found = counted([("cheap hotels in rome", "low cost hotels rome")], [[0, 2, -1, 3]], 2)
    assert found == {
        ("cheap", "low"): 1,
        ("cheap", "low cost"): 1,
        ("hotels", "hotels"): 1,
        ("hotels", "cost hotels"): 1,
        ("hotels in", "hotels"): 1,
        ("hotels in", "cost hotels"): 1,
        ("in rome", "rome"): 1,
        ("rome", "rome"): 1,
    }
    longer = counted([("cheap hotels in rome", "low cost hotels rome")], [[0, 2, -1, 3]], 3)
    assert longer.keys() - found.keys() == {
        ("cheap hotels", "low cost hotels"),
        ("cheap hotels in", "low cost hotels"),
        ("hotels in rome", "hotels rome"),
        ("hotels in rome", "cost hotels rome"),
    }


def test_phrases_of_crossed_words():
    found = counted([("car rental", "rent a car")], [[2, 0]], 3)
    assert found == {
        ("car", "car"): 1,
        ("car", "a car"): 1,
        ("rental", "rent"): 1,
        ("rental", "rent a"): 1,
        ("car rental", "rent a car"): 1,
    }


def test_counts_add_up_over_pairs():
    pairs = [("new york", "york"), ("york", "york"), ("new york", "york")]
    assert counted(pairs, [[-1, 0], [0], [0, 0]], 2) == {("york", "york"): 2, ("new york", "york"): 2}


@given(st.data(), st.integers(1, 4))
@settings(max_examples=40)
def test_every_pair_of_phrases_tried(data, longest):
    document_lengths = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    alignments = [
        data.draw(st.lists(st.integers(-1, length - 1), min_size=1, max_size=6)) for length in document_lengths
    ]
    query_starts, document_starts = np.arange(len(alignments)) * 10, np.arange(len(alignments)) * 20
    places = consistent_places(
        packed(*alignments), query_starts, document_starts, np.array(document_lengths), max_length=longest
    )
    expected = [
        ((pair * 10 + j) * longest + k, (pair * 20 + i) * longest + m)
        for pair, (alignment, size) in enumerate(zip(alignments, document_lengths, strict=True))
        for j in range(len(alignment))
        for k in range(min(longest, len(alignment) - j))
        for i in range(size)
        for m in range(min(longest, size - i))
        if any(i <= source <= i + m for source in alignment[j : j + k + 1])
        and all((i <= source <= i + m) == (j <= x <= j + k) for x, source in enumerate(alignment) if source >= 0)
    ]
    assert sorted(zip(*(place.tolist() for place in places), strict=True)) == sorted(expected)
