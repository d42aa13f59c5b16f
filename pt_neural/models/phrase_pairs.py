"""Phrases of queries and the phrases of documents that they translate, from aligned words."""

import numpy as np
from scipy.sparse import csr_array

from pt_neural.text import PackedSequences
from pt_neural.text.compiled import compiled
from pt_neural.text.phrases import Phrases


def phrase_pair_counts(
    alignments: PackedSequences,
    queries: PackedSequences,
    query_rows: np.ndarray,
    query_phrases: Phrases,
    documents: PackedSequences,
    document_rows: np.ndarray,
    document_phrases: Phrases,
) -> csr_array:
    """How often phrases are translated into each other, in all pairs of a query and a document.

    Args:
        alignments: What :func:`~pt_neural.models.ibm_model1.align` gives.
        queries: Queries as ids of words.
        query_rows: The query of each pair, int64 of shape ``(pairs,)``.
        query_phrases: All phrases of the queries.
        documents: Documents as ids of words.
        document_rows: The document of each pair, likewise.
        document_phrases: All phrases of the documents.

    Returns:
        Times that both stand in a pair and are consistent with its alignment, float32 of shape
        ``(phrases of queries, phrases of documents)``.
    """
    starts = queries.offsets[query_rows], documents.offsets[document_rows]
    places = consistent_places(
        alignments, *starts, documents.lengths[document_rows], max_length=query_phrases.max_length
    )
    of_queries, of_documents = (
        phrases.numbers(texts).ravel()[found]
        for phrases, texts, found in zip((query_phrases, document_phrases), (queries, documents), places, strict=True)
    )
    shape = len(query_phrases), len(document_phrases)
    return csr_array((np.ones(len(of_queries), dtype=np.float32), (of_queries, of_documents)), shape=shape)


def consistent_places(
    alignments: PackedSequences,
    query_starts: np.ndarray,
    document_starts: np.ndarray,
    document_lengths: np.ndarray,
    *,
    max_length: int,
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of phrases that are consistent with an alignment (Och & Ney 2004).

    They have at least one aligned word, and no word of either is aligned with a word outside of the other. Words that
    are aligned with none may stand anywhere in a phrase.

    Args:
        alignments: For each pair of a query and a document, the position in the document of each word of the query.
        query_starts: Where the query of each pair starts in the text of all queries, int64 of shape ``(pairs,)``.
        document_starts: Where its document starts, likewise.
        document_lengths: Words of the document of each pair.
        max_length: Words of a phrase, at most.

    Returns:
        The phrase of the query of each pair of phrases, and that of the document: the place of its first word in the
        text of all queries or documents · ``max_length`` + its number of words - 1, int64.
    """
    arrays = alignments.offsets, alignments.terms, query_starts, document_starts, document_lengths
    links = np.zeros(int(document_lengths.max(initial=0)), dtype=np.int32)
    nowhere = np.empty(0, dtype=np.int64)
    found = _consistent(*arrays, max_length, links, nowhere, nowhere)
    places = np.empty(found, dtype=np.int64), np.empty(found, dtype=np.int64)
    _consistent(*arrays, max_length, links, *places)
    return places


@compiled
def _consistent(starts, sources, query_starts, document_starts, lengths, longest, links, of_query, of_document):
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
                    found = _widen(low, high, *text, longest, phrase, found, of_query, of_document)
        for source in alignment:
            if source >= 0:
                links[source] = 0
    return found


@compiled
def _widen(low, high, start, links, longest, phrase, found, of_query, of_document):
    """Write the phrases of a document from ``low`` to ``high`` and around, over words that are not aligned."""
    begin = low
    while True:
        end = high
        while end - begin < longest:
            if found < len(of_query):
                of_query[found] = phrase
                of_document[found] = (start + begin) * longest + end - begin
            found += 1
            end += 1
            if end == len(links) or links[end] > 0:
                break
        begin -= 1
        if begin < 0 or links[begin] > 0 or high - begin >= longest:
            return found
