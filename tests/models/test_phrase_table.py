"""Tables of phrases against counts written out."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from pt_neural.models.phrase_table import PhraseTable
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.phrases import Phrases

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
