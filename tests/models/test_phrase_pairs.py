"""Phrase pairs of alignments that are drawn here, and of all pairs of phrases tried one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pt_neural.models.ibm_model1 import mutual
from pt_neural.models.phrase_pairs import consistent_places, phrase_pair_counts
from pt_neural.text import PackedSequences
from pt_neural.text.packed import pack_texts
from pt_neural.text.phrases import Phrases


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


def test_links_that_both_directions_have():
    forward, reverse = packed([2, -1, 0, 0], [1]), packed([3, 2, 0], [0, -1])
    assert [links.tolist() for links in mutual(forward, reverse)] == [[2, -1, -1, 0], [-1]]
    assert [links.tolist() for links in mutual(packed([0]), packed([0, 0]))] == [[0]]
