"""IBM Model 1: which words of queries the words of documents are translated into."""

import numpy as np
from scipy.sparse import csr_array

from pt_neural.text import PackedSequences
from pt_neural.text.compiled import compiled, loop_arrays
from pt_neural.text.counts import bag_of_words


def query_counts(
    queries: PackedSequences, query_rows: np.ndarray, document_rows: np.ndarray, num_words: int, num_documents: int
) -> csr_array:
    """Occurrences of each word in the queries that each document is paired with, ``(words, documents)``."""
    ones = np.ones(len(query_rows), dtype=np.float32)
    pairs = csr_array((ones, (query_rows, document_rows)), shape=(len(queries), num_documents))
    return (bag_of_words(queries, num_words).T @ pairs).tocsr()


def document_counts(documents: PackedSequences, num_words: int, *, null_word: bool) -> csr_array:
    """Occurrences of each word in each document, ``(documents, words)``.

    A null word, in one more column, occurs once in each document: the source of words that nothing else explains.
    """
    if null_word:
        places = np.cumsum(documents.lengths)  # the null word follows the last word of each document
        terms = np.insert(documents.terms, places, num_words)
        documents = PackedSequences(terms, documents.offsets + np.arange(len(documents) + 1))
    return bag_of_words(documents, num_words + null_word)


def equal_translations(queries: csr_array, documents: csr_array) -> csr_array:
    """The initial t(q|w): equal for all words q of queries, stored where q and w occur in a pair together."""
    together = queries @ documents
    together.sort_indices()
    occurs = np.diff(queries.indptr) > 0
    values = np.full(together.nnz, 1 / occurs.sum())
    return csr_array((values, together.indices, together.indptr), shape=together.shape)


def em_step(table: csr_array, queries: csr_array, documents: csr_array) -> tuple[csr_array, float]:
    """One iteration of expectation maximisation of Model 1 (Brown et al. 1993).

    Given its document D of J words, a query Q has the probability of the product over its words q of 1/J · the sum over
    the words w of D of t(q|w). Each t(q|w) becomes the expected number of words q that are translations of w, divided
    by the sum of these numbers over q. Returns it with the log probability of all queries under the old t(q|w).
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

    Gives the position in the document of the source of each query word, the first one among equally probable ones; -1
    where the null word, a last column of the table, is more probable than every word of the document.
    """
    paired = queries.take(query_rows)
    word_documents = np.repeat(document_rows, paired.lengths)
    order = np.argsort(paired.terms, kind="stable")
    sources = np.empty(len(order), dtype=np.int32)
    texts = documents.offsets.astype(np.int64), documents.terms.astype(np.int32)
    _align(paired.terms, word_documents, order, *texts, *loop_arrays(table), *table.shape, sources)
    return PackedSequences(sources, paired.offsets)


def mutual(alignments: PackedSequences, reverse: PackedSequences) -> PackedSequences:
    """Keep the links that both directions have, the intersection of Och & Ney (2003); -1 for others."""
    pairs = np.repeat(np.arange(len(alignments)), alignments.lengths)
    places = np.arange(len(pairs)) - alignments.offsets[pairs]
    sources = alignments.terms.copy()
    aligned = np.flatnonzero(sources >= 0)
    back = reverse.terms[reverse.offsets[pairs[aligned]] + sources[aligned]]
    sources[aligned[back != places[aligned]]] = -1
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
    """Write expected translations of each pair of words; gives the log-likelihood. Unpacks one row at a time."""
    row = np.zeros(width)
    share = np.zeros(width)
    likelihood = 0.0
    for query_word in range(len(query_starts) - 1):
        first, last = table_starts[query_word], table_starts[query_word + 1]
        for place in range(first, last):
            row[columns[place]] = values[place]
            share[columns[place]] = 0.0
        for occurrence in range(query_starts[query_word], query_starts[query_word + 1]):
            document = query_documents[occurrence]
            begin, end = starts[document], starts[document + 1]
            total = 0.0
            for place in range(begin, end):
                total += counts[place] * row[words[place]]
            likelihood += query_counts[occurrence] * np.log(total / lengths[document])
            scale = query_counts[occurrence] / total
            for place in range(begin, end):
                share[words[place]] += scale * counts[place]
        for place in range(first, last):
            out[place] = values[place] * share[columns[place]]
    return likelihood


@compiled
def _align(query_words, query_documents, order, starts, words, table_starts, columns, values, null, width, out):
    """Write the source of each query word, ordered by word, so that each row of the table is unpacked once."""
    row = np.zeros(width)
    current = -1
    for position in order:
        if query_words[position] != current:
            if current >= 0:
                for place in range(table_starts[current], table_starts[current + 1]):
                    row[columns[place]] = 0.0
            current = query_words[position]
            for place in range(table_starts[current], table_starts[current + 1]):
                row[columns[place]] = values[place]
        begin = starts[query_documents[position]]
        best = row[null] if null < width else 0.0
        out[position] = -1
        for place in range(begin, starts[query_documents[position] + 1]):
            if row[words[place]] > best or (out[position] < 0 and row[words[place]] == best > 0.0):
                best = row[words[place]]
                out[position] = place - begin
