"""Phrases of queries that phrases of documents are translated into, learned from aligned words."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from pt_neural.models.translation.words import from_tensors, most_probable, to_tensors
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.compiled import compiled
from pt_neural.text.counts import bag_of_words
from pt_neural.text.phrases import Phrases


@dataclass(frozen=True)
class PhraseTable:
    """P(q|w) of phrases q of two words or more, given words or phrases w.

    Attributes:
        query_phrases: The phrases q.
        document_phrases: The words and phrases w.
        table: P(q|w), float32 csr matrix of shape ``(phrases q, phrases w)``.
    """

    query_phrases: Phrases
    document_phrases: Phrases
    table: csr_array

    @classmethod
    def of(
        cls,
        counts: csr_array,
        query_phrases: Phrases,
        document_phrases: Phrases,
        *,
        min_count: int = 1,
        top: int | None = None,
    ) -> "PhraseTable":
        """Relative frequencies: P(q|w) = count(w, q) / count(w), where count(w) is the sum over q, words included.

        Pairs seen less than ``min_count`` times are left out. Of the translations of each w the ``top`` most probable
        are kept; the probability of the others is lost: most of it belongs to single words anyway.
        """
        pairs = counts.tocoo()
        kept = (pairs.data >= min_count) & (pairs.row >= query_phrases.num_words)
        values = pairs.data[kept] / counts.sum(axis=0)[pairs.col[kept]]
        chosen = most_probable(csr_array((values, (pairs.row[kept], pairs.col[kept])), shape=counts.shape), top).tocoo()
        queries, rows = _only(query_phrases, chosen.row)
        documents, columns = _only(document_phrases, chosen.col)
        table = csr_array((chosen.data, (rows, columns)), shape=(len(queries), len(documents)), dtype=np.float32)
        table.sort_indices()
        return cls(queries, documents, table)

    def counts(self, sequences: PackedSequences) -> csr_array:
        """Occurrences in documents of each w that has a translation, ``(documents, phrases w)``."""
        has_translation = np.append(np.bincount(self.table.indices, minlength=len(self.document_phrases)) > 0, False)
        numbers = self.document_phrases.numbers(sequences)
        numbers[~has_translation[numbers]] = -1
        width = numbers.shape[1]
        packed = PackedSequences(numbers.ravel(), np.asarray(sequences.offsets) * width)
        return bag_of_words(packed, len(self.document_phrases))

    def segments(self, words: np.ndarray) -> dict[tuple[int, int], int]:
        """The number of each phrase q in a query, by first word and length."""
        numbers = self.query_phrases.numbers(PackedSequences(words, np.array([0, len(words)])))
        numbers[:, 0] = -1
        places = np.argwhere(numbers >= 0).tolist()
        return {(first, shorter + 1): int(numbers[first, shorter]) for first, shorter in places}

    def tensors(self) -> dict[str, np.ndarray]:
        """The table as named arrays."""
        sides = {"query": self.query_phrases.keys, "document": self.document_phrases.keys}
        keys = {
            f"{side}_phrases.{length}": key for side, keys in sides.items() for length, key in enumerate(keys, start=2)
        }
        return {**to_tensors("phrases", self.table), **keys}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray], vocabulary: Vocabulary, max_length: int) -> "PhraseTable":
        """Read what :meth:`tensors` gave; KeyError or ValueError if arrays are missing or do not fit each other."""
        keys = {
            side: [tensors[f"{side}_phrases.{length}"] for length in range(2, max_length + 1)]
            for side in ("query", "document")
        }
        if any(array.dtype != np.int64 for arrays in keys.values() for array in arrays):
            raise ValueError("phrases must be numbered by int64")
        queries, documents = (Phrases(arrays, len(vocabulary)) for arrays in keys.values())
        return cls(queries, documents, from_tensors("phrases", tensors, (len(queries), len(documents))))


def _only(phrases: Phrases, numbers: np.ndarray) -> tuple[Phrases, np.ndarray]:
    """The phrases with these numbers and the phrases within them, and the new numbers of the former."""
    distinct, places = np.unique(numbers, return_inverse=True)
    words = phrases.words(distinct)
    kept = Phrases.build(words, phrases.num_words, max_length=phrases.max_length)
    return kept, kept.numbers(words)[words.offsets[:-1], words.lengths - 1][places]


def phrase_pair_counts(
    alignments: PackedSequences,
    queries: PackedSequences,
    query_rows: np.ndarray,
    query_phrases: Phrases,
    documents: PackedSequences,
    document_rows: np.ndarray,
    document_phrases: Phrases,
) -> csr_array:
    """How often two phrases occur in a pair, consistent with its alignment: ``(phrases q, phrases w)``."""
    starts, lengths = (queries.offsets[query_rows], documents.offsets[document_rows]), documents.lengths[document_rows]
    places = consistent_places(alignments, *starts, lengths, max_length=query_phrases.max_length)
    rows = query_phrases.numbers(queries).ravel()[places[0]]
    columns = document_phrases.numbers(documents).ravel()[places[1]]
    shape = len(query_phrases), len(document_phrases)
    return csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=shape)


def consistent_places(
    alignments: PackedSequences,
    query_starts: np.ndarray,
    document_starts: np.ndarray,
    document_lengths: np.ndarray,
    *,
    max_length: int,
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of phrases that are consistent with an alignment (Och & Ney 2004).

    At least one word is aligned, and no word of either phrase is aligned with a word outside the other. Unaligned words
    may stand anywhere in a phrase. Each phrase, of query and of document, is given as an int64: the position of its
    first word in the text of all queries or documents · ``max_length`` + the number of words - 1.
    """
    arrays = alignments.offsets, alignments.terms, query_starts, document_starts, document_lengths
    links = np.zeros(int(document_lengths.max(initial=0)), dtype=np.int32)
    no_room = np.empty(0, dtype=np.int64)
    found = _consistent(*arrays, max_length, links, no_room, no_room)  # only counts
    places = np.empty(found, dtype=np.int64), np.empty(found, dtype=np.int64)
    _consistent(*arrays, max_length, links, *places)
    return places


@compiled
def _consistent(starts, sources, query_starts, document_starts, lengths, longest, links, query_places, document_places):
    """Count the pairs of phrases, and write them where there is room; ``links`` is zero before and after."""
    found = 0
    for pair in range(len(starts) - 1):
        alignment = sources[starts[pair] : starts[pair + 1]]
        for source in alignment:
            if source >= 0:
                links[source] += 1
        for first in range(len(alignment)):
            low, high, aligned = lengths[pair], -1, 0
            for last in range(first, min(first + longest, len(alignment))):
                source = alignment[last]
                if source >= 0:
                    low, high, aligned = min(low, source), max(high, source), aligned + 1
                if aligned > 0 and high - low < longest and links[low : high + 1].sum() == aligned:
                    phrase = (query_starts[pair] + first) * longest + last - first
                    text = document_starts[pair], links[: lengths[pair]]
                    found = _widen(low, high, *text, longest, phrase, found, query_places, document_places)
        for source in alignment:
            if source >= 0:
                links[source] = 0
    return found


@compiled
def _widen(low, high, start, links, longest, phrase, found, query_places, document_places):
    """Write the phrases of a document from ``low`` to ``high``, and those widened by unaligned words around."""
    begin = low
    while True:
        end = high
        while end - begin < longest:
            if found < len(query_places):
                query_places[found] = phrase
                document_places[found] = (start + begin) * longest + end - begin
            found += 1
            end += 1
            if end == len(links) or links[end] > 0:
                break
        begin -= 1
        if begin < 0 or links[begin] > 0 or high - begin >= longest:
            return found
