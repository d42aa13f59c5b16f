"""Stochastic gradient steps on the margin ranking loss of f(q, d) = q'Wd, one tuple at a time (SSI paper, section 2.3).

The loops are compiled, and read as the paper's equations: a step costs as much as the texts of its tuple have terms,
whatever the size of W. Importing this takes about a second.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

# Sums may be taken in any order, as vector instructions do; what is not a number must stay so, to be noticed.
_MATH = {"reassoc", "contract", "nsz", "arcp"}
_compiled = njit(cache=True, nogil=True, fastmath=_MATH, error_model="numpy")


class Rows(NamedTuple):
    """Sparse vectors of texts.

    Attributes:
        starts: Where each text starts, int64, one longer than the number of texts.
        terms: Terms of the texts, int32, ascending within each.
        weights: Their weights, float32.
    """

    starts: np.ndarray
    terms: np.ndarray
    weights: np.ndarray


class Texts(NamedTuple):
    """Queries and documents as sparse vectors.

    Attributes:
        queries: Over the vocabulary of the queries.
        documents: Over that of the documents.
        hashed_queries: The same queries over frequent words, as correlated feature hashing maps them; empty without.
        hashed_documents: The same documents, likewise.
    """

    queries: Rows
    documents: Rows
    hashed_queries: Rows
    hashed_documents: Rows


class Parts(NamedTuple):
    """The parts whose sum is W; those that a model lacks are empty.

    Attributes:
        query_vectors: The columns of U, float32 of shape (embedded terms, N). Terms beyond the last are not embedded.
        document_vectors: The columns of V, likewise; U itself in a symmetric model.
        hashed_query_vectors: U of the model over hashed features, float32 of shape (F, N).
        hashed_document_vectors: Its V.
        mixing: Factor of the model over hashed features, float32 of shape (1,).
        diagonal: D, float32 of shape (terms,).
        identity: Factor of the diagonal, float32 of shape (1,).
        pairs: The weight of each pair of words, or of all that share it, float32.
        query_places: For each term of queries, int64: with that of a term of documents it gives a place in ``pairs``,
            modulo their number.
        document_places: For each term of documents, int64.
        active: Whether a weight of ``pairs`` may change, bool; empty if all may.
    """

    query_vectors: np.ndarray
    document_vectors: np.ndarray
    hashed_query_vectors: np.ndarray
    hashed_document_vectors: np.ndarray
    mixing: np.ndarray
    diagonal: np.ndarray
    identity: np.ndarray
    pairs: np.ndarray
    query_places: np.ndarray
    document_places: np.ndarray
    active: np.ndarray


class Rates(NamedTuple):
    """How fast the parts learn.

    Attributes:
        vectors: Learning rate of all vectors and pairs.
        mixing: That of the mixing factor; 0 keeps it.
        diagonal: That of D; 0 keeps it.
        identity: That of the factor of the diagonal; 0 keeps it.
        margin: Least wanted difference of scores.
    """

    vectors: float
    mixing: float
    diagonal: float
    identity: float
    margin: float


@_compiled
def learn(
    parts: Parts,
    texts: Texts,
    queries: np.ndarray,
    documents: np.ndarray,
    valid: np.ndarray,
    rates: Rates,
) -> tuple[float, int]:
    """Take the tuples of some groups one after the other, and make a step for each that violates the margin.

    Args:
        parts: W, which is changed.
        texts: Queries and documents.
        queries: The query of each group, int64 of shape (groups,).
        documents: The documents of each group, int64 of shape (groups, 1 + negatives); the relevant one stands first.
        valid: Whether there is a document, bool of the same shape.
        rates: How fast to learn.

    Returns:
        The sum of the losses of the tuples (equation 8), each before its step, and the number of tuples.
    """
    room = working_room(parts)
    total, count = 0.0, 0
    for group in range(len(queries)):
        loss, tuples = learn_group(parts, texts, queries[group], documents[group], valid[group], rates, room)
        total += loss
        count += tuples
    return total, count


@_compiled
def learn_in_turn(
    parts: Parts,
    texts: Texts,
    queries: np.ndarray,
    documents: np.ndarray,
    valid: np.ndarray,
    other_parts: Parts,
    other_texts: Texts,
    other_queries: np.ndarray,
    other_documents: np.ndarray,
    other_valid: np.ndarray,
    rates: Rates,
) -> tuple[float, int]:
    """As :func:`learn`, with groups of two tasks that share weights in turn (section 2.4.2, equations 9 and 10).

    Returns:
        The loss and the number of tuples of the first task.
    """
    room, other_room = working_room(parts), working_room(other_parts)
    total, count = 0.0, 0
    for group in range(len(queries)):
        loss, tuples = learn_group(parts, texts, queries[group], documents[group], valid[group], rates, room)
        total += loss
        count += tuples
        if group < len(other_queries):
            others = other_documents[group], other_valid[group]
            learn_group(other_parts, other_texts, other_queries[group], others[0], others[1], rates, other_room)
    return total, count


@_compiled
def working_room(parts: Parts) -> tuple:
    """Arrays that each group uses again."""
    dimensions, hashed_dimensions = parts.query_vectors.shape[1], parts.hashed_query_vectors.shape[1]
    return (
        np.zeros((3, dimensions), dtype=np.float32),
        np.zeros((3, hashed_dimensions), dtype=np.float32),
        np.zeros(len(parts.diagonal), dtype=np.float32),
    )


@_compiled
def learn_group(
    parts: Parts, texts: Texts, query: int, documents: np.ndarray, valid: np.ndarray, rates: Rates, room: tuple
) -> tuple[float, int]:
    """Steps for one query and relevant document with each of the negatives: the loss, and the number of tuples."""
    vectors, hashed, dense_query = room
    positive, total, count = documents[0], 0.0, 0
    lexical_score, pairs_score = np.float32(0.0), np.float32(0.0)
    scatter(texts.queries, query, dense_query)
    known = False  # whether what the query and the relevant document give is that of the weights as they are
    for place in range(1, len(documents)):
        if not valid[place]:
            continue
        negative = documents[place]
        if not known:
            project(parts.query_vectors, texts.queries, query, vectors[0])
            project(parts.document_vectors, texts.documents, positive, vectors[1])
            project(parts.hashed_query_vectors, texts.hashed_queries, query, hashed[0])
            project(parts.hashed_document_vectors, texts.hashed_documents, positive, hashed[1])
            lexical_score = lexical(parts.diagonal, texts.documents, positive, dense_query)
            pairs_score = pair_score(parts, texts, query, positive)
            known = True
        project(parts.document_vectors, texts.documents, negative, vectors[2])
        project(parts.hashed_document_vectors, texts.hashed_documents, negative, hashed[2])
        of_lexical = lexical_score - lexical(parts.diagonal, texts.documents, negative, dense_query)
        of_pairs = pairs_score - pair_score(parts, texts, query, negative)
        of_hashed = difference(hashed)
        score = difference(vectors) + parts.mixing[0] * of_hashed + parts.identity[0] * of_lexical + of_pairs
        count += 1
        if score >= rates.margin:
            continue
        total += rates.margin - score
        known = False
        step_vectors(parts, texts, query, positive, negative, vectors, rates.vectors)
        step_hashed_vectors(parts, texts, query, positive, negative, hashed, rates.vectors * parts.mixing[0])
        parts.mixing[0] += rates.mixing * of_hashed
        rate = rates.diagonal * parts.identity[0]
        step_diagonal(parts.diagonal, texts.documents, positive, dense_query, rate)
        step_diagonal(parts.diagonal, texts.documents, negative, dense_query, -rate)
        parts.identity[0] += rates.identity * of_lexical
        step_pairs(parts, texts, query, positive, rates.vectors)
        step_pairs(parts, texts, query, negative, -rates.vectors)
    clear(texts.queries, query, dense_query)
    return total, count


@_compiled
def project(table: np.ndarray, rows: Rows, row: int, into: np.ndarray) -> None:
    """The sum of the vectors of a text's terms: Uq or Vd."""
    into[:] = 0
    if len(table) == 0:
        return
    for place in range(rows.starts[row], rows.starts[row + 1]):
        term, weight = rows.terms[place], rows.weights[place]
        if term < len(table):
            for number in range(len(into)):
                into[number] += weight * table[term, number]


@_compiled
def difference(vectors: np.ndarray) -> float:
    """(Uq)'(Vd+ - Vd-), of vectors in this order."""
    total = np.float32(0.0)
    for number in range(vectors.shape[1]):
        total += vectors[0, number] * (vectors[1, number] - vectors[2, number])
    return total


@_compiled
def step_vectors(
    parts: Parts, texts: Texts, query: int, positive: int, negative: int, vectors: np.ndarray, rate: float
) -> None:
    """U += rate V(d+ - d-)q' and V += rate Uq(d+ - d-)', both from the old weights (section 2.3.2)."""
    vectors[1] -= vectors[2]
    add(parts.query_vectors, texts.queries, query, vectors[1], rate)
    add(parts.document_vectors, texts.documents, positive, vectors[0], rate)
    add(parts.document_vectors, texts.documents, negative, vectors[0], -rate)


@_compiled
def step_hashed_vectors(
    parts: Parts, texts: Texts, query: int, positive: int, negative: int, vectors: np.ndarray, rate: float
) -> None:
    """The same over hashed features (section 2.3.4)."""
    vectors[1] -= vectors[2]
    add(parts.hashed_query_vectors, texts.hashed_queries, query, vectors[1], rate)
    add(parts.hashed_document_vectors, texts.hashed_documents, positive, vectors[0], rate)
    add(parts.hashed_document_vectors, texts.hashed_documents, negative, vectors[0], -rate)


@_compiled
def add(table: np.ndarray, rows: Rows, row: int, vector: np.ndarray, rate: float) -> None:
    """Add a vector to those of a text's terms, as much as each term weighs."""
    if len(table) == 0:
        return
    for place in range(rows.starts[row], rows.starts[row + 1]):
        term, weight = rows.terms[place], np.float32(rate * rows.weights[place])
        if term < len(table):
            for number in range(len(vector)):
                table[term, number] += weight * vector[number]


@_compiled
def scatter(rows: Rows, row: int, into: np.ndarray) -> None:
    """Write the weights of a text where its terms stand; nothing where there is no room, as without a diagonal."""
    if len(into) == 0:
        return
    for place in range(rows.starts[row], rows.starts[row + 1]):
        into[rows.terms[place]] = rows.weights[place]


@_compiled
def clear(rows: Rows, row: int, dense: np.ndarray) -> None:
    """Undo :func:`scatter`."""
    if len(dense) == 0:
        return
    for place in range(rows.starts[row], rows.starts[row + 1]):
        dense[rows.terms[place]] = 0


@_compiled
def lexical(diagonal: np.ndarray, documents: Rows, document: int, dense_query: np.ndarray) -> float:
    """Q'Dd."""
    total = np.float32(0.0)
    if len(diagonal) == 0:
        return total
    for place in range(documents.starts[document], documents.starts[document + 1]):
        term = documents.terms[place]
        total += dense_query[term] * diagonal[term] * documents.weights[place]
    return total


@_compiled
def step_diagonal(diagonal: np.ndarray, documents: Rows, document: int, dense_query: np.ndarray, rate: float) -> None:
    """D_i += rate q_i d_i."""
    if rate == 0 or len(diagonal) == 0:
        return
    for place in range(documents.starts[document], documents.starts[document + 1]):
        term = documents.terms[place]
        diagonal[term] += np.float32(rate * dense_query[term] * documents.weights[place])


@_compiled
def pair_score(parts: Parts, texts: Texts, query: int, document: int) -> float:
    """The sum of q_s W_st d_t, where pairs of words may share a weight (equation 5)."""
    queries, documents, pairs = texts.queries, texts.documents, parts.pairs
    first, last = documents.starts[document], documents.starts[document + 1]
    total = np.float32(0.0)
    if len(pairs) == 0:
        return total
    for place in range(queries.starts[query], queries.starts[query + 1]):
        start = parts.query_places[queries.terms[place]]
        of_term = np.float32(0.0)
        for other in range(first, last):
            index = start + parts.document_places[documents.terms[other]]
            if index >= len(pairs):
                index -= len(pairs)
            of_term += pairs[index] * documents.weights[other]
        total += queries.weights[place] * of_term
    return total


@_compiled
def step_pairs(parts: Parts, texts: Texts, query: int, document: int, rate: float) -> None:
    """W_st += rate q_s d_t, where the weight is active (section 2.3.1; algorithm 2)."""
    queries, documents, pairs = texts.queries, texts.documents, parts.pairs
    first, last = documents.starts[document], documents.starts[document + 1]
    if len(pairs) == 0:
        return
    for place in range(queries.starts[query], queries.starts[query + 1]):
        start = parts.query_places[queries.terms[place]]
        weight = np.float32(rate * queries.weights[place])
        for other in range(first, last):
            index = start + parts.document_places[documents.terms[other]]
            if index >= len(pairs):
                index -= len(pairs)
            if len(parts.active) == 0 or parts.active[index]:
                pairs[index] += weight * documents.weights[other]


@_compiled
def pair_rows(parts: Parts, queries: Rows, into: np.ndarray) -> None:
    """Add q'W to the rows of a matrix, for the part of W that has weights of pairs of words.

    Args:
        parts: W.
        queries: Sparse vectors of queries.
        into: float32 of shape (queries, terms of documents).
    """
    pairs = parts.pairs
    for row in range(len(into)):
        for place in range(queries.starts[row], queries.starts[row + 1]):
            start, weight = parts.query_places[queries.terms[place]], queries.weights[place]
            for term in range(into.shape[1]):
                index = start + parts.document_places[term]
                if index >= len(pairs):
                    index -= len(pairs)
                into[row, term] += weight * pairs[index]
