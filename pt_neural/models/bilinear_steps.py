"""Stochastic gradient steps on the margin ranking loss of f(q, d) = q'Wd, one tuple at a time (SSI paper, section 2.3).

The loops are compiled, and read as the paper's equations: a step costs as much as the texts of its tuple have terms,
whatever the size of W.
"""

from typing import NamedTuple

import numpy as np

from pt_neural.text.compiled import Rows, compiled

# All in one file, for a change of another would not reach what numba has kept of the callers.


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
        query_places: For each term of queries, where its row of W begins in ``pairs``, int64; what lies beyond their
            end goes on at the beginning.
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


@compiled
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


@compiled
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


@compiled
def working_room(parts: Parts) -> tuple:
    """Arrays that each group uses again."""
    dimensions, hashed_dimensions = parts.query_vectors.shape[1], parts.hashed_query_vectors.shape[1]
    return (
        np.zeros((3, dimensions), dtype=np.float32),
        np.zeros((3, hashed_dimensions), dtype=np.float32),
        np.zeros(len(parts.diagonal), dtype=np.float32),
    )


@compiled
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
        tables = parts.query_vectors, parts.document_vectors, texts.queries, texts.documents
        step_vectors(*tables, query, positive, negative, vectors, rates.vectors)
        tables = parts.hashed_query_vectors, parts.hashed_document_vectors, texts.hashed_queries, texts.hashed_documents
        step_vectors(*tables, query, positive, negative, hashed, rates.vectors * parts.mixing[0])
        parts.mixing[0] += rates.mixing * of_hashed
        rate = rates.diagonal * parts.identity[0]
        step_diagonal(parts.diagonal, texts.documents, positive, dense_query, rate)
        step_diagonal(parts.diagonal, texts.documents, negative, dense_query, -rate)
        parts.identity[0] += rates.identity * of_lexical
        step_pairs(parts, texts, query, positive, rates.vectors)
        step_pairs(parts, texts, query, negative, -rates.vectors)
    clear(texts.queries, query, dense_query)
    return total, count


@compiled
def text_of(rows: Rows, row: int) -> tuple[np.ndarray, np.ndarray]:
    """The terms of a text, and their weights."""
    some = slice(rows.starts[row], rows.starts[row + 1])
    return rows.terms[some], rows.weights[some]


@compiled
def project(table: np.ndarray, rows: Rows, row: int, into: np.ndarray) -> None:
    """The sum of the vectors of a text's terms: Uq or Vd."""
    into[:] = 0
    terms, weights = text_of(rows, row)
    count = len(terms)
    while count > 0 and terms[count - 1] >= len(table):  # the rarest terms, which have no vectors
        count -= 1
    fours = count // 4 * 4  # so many at a time, for reading them waits for memory
    for place in range(0, fours, 4):
        one, two, three, four = terms[place], terms[place + 1], terms[place + 2], terms[place + 3]
        of_one, of_two = weights[place], weights[place + 1]
        of_three, of_four = weights[place + 2], weights[place + 3]
        for number in range(len(into)):
            of_pair = of_one * table[one, number] + of_two * table[two, number]
            into[number] += of_pair + of_three * table[three, number] + of_four * table[four, number]
    for place in range(fours, count):
        add_to(into, weights[place], table[terms[place]])


@compiled
def difference(vectors: np.ndarray) -> float:
    """(Uq)'(Vd+ - Vd-), of vectors in this order."""
    total = np.float32(0.0)
    for number in range(vectors.shape[1]):
        total += vectors[0, number] * (vectors[1, number] - vectors[2, number])
    return total


@compiled
def step_vectors(
    query_table: np.ndarray,
    document_table: np.ndarray,
    queries: Rows,
    documents: Rows,
    query: int,
    positive: int,
    negative: int,
    vectors: np.ndarray,
    rate: float,
) -> None:
    """U += rate V(d+ - d-)q' and V += rate Uq(d+ - d-)', both from the old weights (sections 2.3.2 and 2.3.4)."""
    vectors[1] -= vectors[2]
    add(query_table, queries, query, vectors[1], rate)
    add(document_table, documents, positive, vectors[0], rate)
    add(document_table, documents, negative, vectors[0], -rate)


@compiled
def add(table: np.ndarray, rows: Rows, row: int, vector: np.ndarray, rate: float) -> None:
    """Add a vector to those of a text's terms, as much as each term weighs."""
    terms, weights = text_of(rows, row)
    for place in range(len(terms)):
        if terms[place] < len(table):
            add_to(table[terms[place]], np.float32(rate * weights[place]), vector)


@compiled
def scatter(rows: Rows, row: int, into: np.ndarray) -> None:
    """Write the weights of a text where its terms stand; nothing where there is no room, as without a diagonal."""
    terms, weights = text_of(rows, row)
    for place in range(len(terms)):
        if len(into) > 0:
            into[terms[place]] = weights[place]


@compiled
def clear(rows: Rows, row: int, dense: np.ndarray) -> None:
    """Undo :func:`scatter`."""
    for term in text_of(rows, row)[0]:
        if len(dense) > 0:
            dense[term] = 0


@compiled
def lexical(diagonal: np.ndarray, documents: Rows, document: int, dense_query: np.ndarray) -> float:
    """The lexical part of a score, q'Dd."""
    total = np.float32(0.0)
    if len(diagonal) == 0:
        return total
    terms, weights = text_of(documents, document)
    for place in range(len(terms)):
        total += dense_query[terms[place]] * diagonal[terms[place]] * weights[place]
    return total


@compiled
def step_diagonal(diagonal: np.ndarray, documents: Rows, document: int, dense_query: np.ndarray, rate: float) -> None:
    """D_i += rate q_i d_i."""
    if rate == 0 or len(diagonal) == 0:
        return
    terms, weights = text_of(documents, document)
    for place in range(len(terms)):
        diagonal[terms[place]] += np.float32(rate * dense_query[terms[place]] * weights[place])


@compiled
def wrapped(place: int, size: int) -> int:
    """``place % size``, which is rarely anything but the place."""
    if place >= size:
        place -= size
        if place >= size:
            place %= size
    return place


@compiled
def pair_score(parts: Parts, texts: Texts, query: int, document: int) -> float:
    """The sum of q_s W_st d_t, where pairs of words may share a weight (equation 5)."""
    pairs = parts.pairs
    total = np.float32(0.0)
    if len(pairs) == 0:
        return total
    words, weights = text_of(texts.queries, query)
    others, other_weights = text_of(texts.documents, document)
    for number in range(len(words)):
        start = parts.query_places[words[number]]
        of_word = np.float32(0.0)
        for other in range(len(others)):
            of_word += pairs[wrapped(start + others[other], len(pairs))] * other_weights[other]
        total += weights[number] * of_word
    return total


@compiled
def step_pairs(parts: Parts, texts: Texts, query: int, document: int, rate: float) -> None:
    """W_st += rate q_s d_t, where the weight is active (section 2.3.1; algorithm 2)."""
    pairs, active = parts.pairs, parts.active
    if len(pairs) == 0:
        return
    words, weights = text_of(texts.queries, query)
    others, other_weights = text_of(texts.documents, document)
    for number in range(len(words)):
        start = parts.query_places[words[number]]
        weight = np.float32(rate * weights[number])
        for other in range(len(others)):
            place = wrapped(start + others[other], len(pairs))
            if len(active) == 0 or active[place]:
                pairs[place] += weight * other_weights[other]


@compiled
def pair_rows(parts: Parts, queries: Rows, into: np.ndarray) -> None:
    """Add q'W to the rows of a matrix, for the part of W that has weights of pairs of words.

    Args:
        parts: W.
        queries: Sparse vectors of queries.
        into: float32 of shape (queries, terms of documents).
    """
    pairs = parts.pairs
    for row in range(len(into)):
        words, weights = text_of(queries, row)
        for number in range(len(words)):
            start, first = parts.query_places[words[number]], 0
            while first < into.shape[1]:  # a stretch without a jump at a time
                count = min(into.shape[1] - first, len(pairs) - start)
                add_to(into[row, first : first + count], weights[number], pairs[start : start + count])
                first, start = first + count, 0


@compiled
def add_to(vector: np.ndarray, weight: float, other: np.ndarray) -> None:
    """Add a vector to another."""
    for number in range(len(vector)):
        vector[number] += weight * other[number]
