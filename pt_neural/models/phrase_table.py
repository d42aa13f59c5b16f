"""The phrases of queries that phrases of documents are translated into."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from pt_neural.models.translation_table import from_tensors, most_probable, to_tensors
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.counts import bag_of_words
from pt_neural.text.phrases import Phrases


@dataclass(frozen=True)
class PhraseTable:
    """P(q|w) of phrases q of two words or more, and of words and phrases w.

    Attributes:
        query_phrases: The phrases q.
        document_phrases: The phrases w.
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
        """Relative frequencies: P(q|w) = count(w, q) / count(w).

        Args:
            counts: How often both are translated into each other, as
                :func:`~pt_neural.models.phrase_pairs.phrase_pair_counts` gives it; count(w) is the sum over q, words
                included.
            query_phrases: The phrases of the rows.
            document_phrases: The phrases of the columns.
            min_count: Pairs that were seen less often are left out.
            top: So many translations of each phrase w are kept; None keeps all. What is left out of P(q|w) is lost:
                most of it belongs to words anyway.
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
        """How often each phrase w that has a translation occurs in documents; float32 of shape ``(documents, w)``.

        Args:
            sequences: Documents as ids of words.
        """
        translated = np.append(np.bincount(self.table.indices, minlength=len(self.document_phrases)) > 0, False)
        numbers = self.document_phrases.numbers(sequences)
        numbers[~translated[numbers]] = -1
        width = numbers.shape[1]
        packed = PackedSequences(numbers.ravel(), np.asarray(sequences.offsets) * width)
        return bag_of_words(packed, len(self.document_phrases))

    def segments(self, words: np.ndarray) -> dict[tuple[int, int], int]:
        """The number of each phrase q in a query, by its first word and its length.

        Args:
            words: The query as ids of words.
        """
        numbers = self.query_phrases.numbers(PackedSequences(words, np.array([0, len(words)])))
        numbers[:, 0] = -1
        places = np.argwhere(numbers >= 0).tolist()
        return {(first, shorter + 1): int(numbers[first, shorter]) for first, shorter in places}

    def tensors(self) -> dict[str, np.ndarray]:
        """The table as named arrays."""
        sides = {"query": self.query_phrases.keys, "document": self.document_phrases.keys}
        keys = {f"{side}_phrases.{length}": key for side, of in sides.items() for length, key in enumerate(of, start=2)}
        return {**to_tensors("phrases", self.table), **keys}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray], vocabulary: Vocabulary, max_length: int) -> "PhraseTable":
        """Read what :meth:`tensors` gave.

        Raises:
            KeyError: If an array is missing.
            ValueError: If they do not fit each other.
        """
        queries, documents = (
            Phrases([tensors[f"{side}_phrases.{length}"] for length in range(2, max_length + 1)], len(vocabulary))
            for side in ("query", "document")
        )
        return cls(queries, documents, from_tensors("phrases", tensors, (len(queries), len(documents))))


def _only(phrases: Phrases, numbers: np.ndarray) -> tuple[Phrases, np.ndarray]:
    """Only some phrases and the phrases in them, and the new numbers of the former."""
    distinct, places = np.unique(numbers, return_inverse=True)
    words = phrases.words(distinct)
    fewer = Phrases.build(words, phrases.num_words, max_length=phrases.max_length)
    return fewer, fewer.numbers(words)[words.offsets[:-1], words.lengths - 1][places]
