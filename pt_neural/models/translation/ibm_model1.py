"""IBM Model 1: which words of queries the words of documents translate into."""

import numpy as np
from scipy.sparse import csr_array

from pt_neural.models.compiled import compiled, loop_arrays
from pt_neural.text import PackedSequences
from pt_neural.text.counts import bag_of_words


def query_counts(
    queries: PackedSequences, query_rows: np.ndarray, document_rows: np.ndarray, num_words: int, num_documents: int
) -> csr_array:
    """How often each word occurs in the queries that each document is paired with.

    Args:
        queries: Queries as ids of words.
        query_rows: The query of each pair, int64 of shape ``(pairs,)``.
        document_rows: Its document, likewise.
        num_words: Number of words.
        num_documents: Number of documents.

    Returns:
        float32 of shape ``(words, documents)``.
    """
    ones = np.ones(len(query_rows), dtype=np.float32)
    paired = csr_array((ones, (query_rows, document_rows)), shape=(len(queries), num_documents))
    return (bag_of_words(queries, num_words).T @ paired).tocsr()


def document_counts(documents: PackedSequences, num_words: int, *, null_word: bool) -> csr_array:
    """How often each word occurs in each document.

    Args:
        documents: Documents as ids of words.
        num_words: Number of words.
        null_word: Add a last word that each document has once, from which words come that nothing else explains.

    Returns:
        float32 of shape ``(documents, words)``, or with a column more.
    """
    if null_word:
        places = np.cumsum(documents.lengths)  # the null word follows the last word of each document
        terms = np.insert(documents.terms, places, num_words)
        documents = PackedSequences(terms, documents.offsets + np.arange(len(documents) + 1))
    return bag_of_words(documents, num_words + null_word)


def equal_translations(queries: csr_array, documents: csr_array) -> csr_array:
    """Where EM starts: t(q|w) is equal for all words q of queries, and kept where q and w are ever in one pair.

    Args:
        queries: What :func:`query_counts` gives.
        documents: What :func:`document_counts` gives.

    Returns:
        t(q|w), float64 of shape ``(words of queries, words of documents)``.
    """
    together = queries @ documents
    together.sort_indices()
    of_queries = np.diff(queries.indptr) > 0
    values = np.full(together.nnz, 1 / of_queries.sum())
    return csr_array((values, together.indices, together.indptr), shape=together.shape)


def em_step(table: csr_array, queries: csr_array, documents: csr_array) -> tuple[csr_array, float]:
    """One iteration of expectation maximisation of Model 1 (Brown et al. 1993).

    A query Q has, given its document D of J words, the probability of the product over its words q of
    1/J · the sum over the words w of D of t(q|w). Every t(q|w) becomes the number of words q that are expected to be
    translations of w, divided by the sum of these numbers over q.

    Args:
        table: t(q|w), as :func:`equal_translations` gives it.
        queries: What :func:`query_counts` gives.
        documents: What :func:`document_counts` gives.

    Returns:
        The new t(q|w), and the logarithm of the probability of all queries with the old one.
    """
    expected = np.empty(table.nnz)
    lengths = documents.sum(axis=1, dtype=np.float64)
    likelihood = _expect(
        *loop_arrays(queries), *loop_arrays(documents), lengths, *loop_arrays(table), table.shape[1], expected
    )
    totals = np.bincount(table.indices, expected, minlength=table.shape[1])
    return csr_array((expected / totals[table.indices], table.indices, table.indptr), shape=table.shape), likelihood


def align(
    table: csr_array,
    queries: PackedSequences,
    query_rows: np.ndarray,
    documents: PackedSequences,
    document_rows: np.ndarray,
) -> PackedSequences:
    """The most probable alignment of each pair of a query and a document: a_j = argmax over i of t(q_j|w_i).

    Args:
        table: t(q|w) of shape ``(words, words)``, or with a last column for the null word.
        queries: Queries as ids of words.
        query_rows: The query of each pair, int64 of shape ``(pairs,)``.
        documents: Documents as ids of words.
        document_rows: Its document, likewise.

    Returns:
        For each pair, the position in the document that each word of the query comes from, of equally probable ones
        the first; -1 where the null word is more probable than all words of the document.
    """
    paired = queries.take(query_rows)
    of_positions = np.repeat(document_rows, paired.lengths)
    order = np.argsort(paired.terms, kind="stable")
    sources = np.empty(len(order), dtype=np.int32)
    texts = documents.offsets.astype(np.int64), documents.terms.astype(np.int32)
    _align(paired.terms, of_positions, order, *texts, *loop_arrays(table), *table.shape, sources)
    return PackedSequences(sources, paired.offsets)


def mutual(alignments: PackedSequences, reverse: PackedSequences) -> PackedSequences:
    """Keep what is aligned in both directions, the intersection of Och & Ney (2003).

    Args:
        alignments: For each pair, the position in the document of each word of the query; -1 for none.
        reverse: For each pair, the position in the query of each word of the document; -1 for none.

    Returns:
        As ``alignments``, with -1 where the word of the document is not aligned with that of the query.
    """
    pairs = np.repeat(np.arange(len(alignments)), alignments.lengths)
    places = np.arange(len(pairs)) - alignments.offsets[pairs]
    sources = alignments.terms.copy()
    some = np.flatnonzero(sources >= 0)
    back = reverse.terms[reverse.offsets[pairs[some]] + sources[some]]
    sources[some[back != places[some]]] = -1
    return PackedSequences(sources, alignments.offsets)


@compiled
def _expect(
    query_starts,
    query_documents,
    query_counts,
    starts,
    words,
    counts,
    lengths,
    table_starts,
    columns,
    values,
    width,
    out,
):
    """Expected translations of each pair of words; the log-likelihood. A row of the table is unpacked at a time."""
    of_word = np.zeros(width)
    share = np.zeros(width)
    likelihood = 0.0
    for query_word in range(len(query_starts) - 1):
        first, last = table_starts[query_word], table_starts[query_word + 1]
        for place in range(first, last):
            of_word[columns[place]] = values[place]
            share[columns[place]] = 0.0
        for occurrence in range(query_starts[query_word], query_starts[query_word + 1]):
            document = query_documents[occurrence]
            begin, end = starts[document], starts[document + 1]
            total = 0.0
            for place in range(begin, end):
                total += counts[place] * of_word[words[place]]
            likelihood += query_counts[occurrence] * np.log(total / lengths[document])
            scale = query_counts[occurrence] / total
            for place in range(begin, end):
                share[words[place]] += scale * counts[place]
        for place in range(first, last):
            out[place] = values[place] * share[columns[place]]
    return likelihood


@compiled
def _align(query_words, query_documents, order, starts, words, table_starts, columns, values, null, width, out):
    """The source of each word of the queries; those of one word follow each other, as its row is unpacked once."""
    of_word = np.zeros(width)
    current = -1
    for position in order:
        if query_words[position] != current:
            if current >= 0:
                for place in range(table_starts[current], table_starts[current + 1]):
                    of_word[columns[place]] = 0.0
            current = query_words[position]
            for place in range(table_starts[current], table_starts[current + 1]):
                of_word[columns[place]] = values[place]
        begin = starts[query_documents[position]]
        best = of_word[null] if null < width else 0.0
        out[position] = -1
        for place in range(begin, starts[query_documents[position] + 1]):
            if of_word[words[place]] > best or (out[position] < 0 and of_word[words[place]] == best > 0.0):
                best = of_word[words[place]]
                out[position] = place - begin
