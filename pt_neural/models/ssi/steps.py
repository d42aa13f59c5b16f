"""Gradient steps on the margin ranking loss of f(q, d) = q'Wd, one tuple at a time (SSI paper, section 2.3).

The loops are compiled, and read like the paper's equations: a step costs as much as its texts have terms, whatever the
size of W. They are all in one file, since a change in another file would not reach what numba has kept of the callers.
"""

from typing import NamedTuple

import numpy as np

from pt_neural.text.compiled import Rows, compiled


class Texts(NamedTuple):
    """Queries and documents as sparse vectors, float32, with ascending terms in each text.

    Attributes:
        queries: Over the vocabulary of queries.
        documents: Over the vocabulary of documents.
        hashed_queries: The queries over frequent words, as correlated feature hashing maps them; empty without it.
        hashed_documents: The documents over frequent words; empty without it.
    """

    queries: Rows
    documents: Rows
    hashed_queries: Rows
    hashed_documents: Rows


class Parts(NamedTuple):
    """The parts whose sum is W; parts that a model does not have are empty.

    Attributes:
        query_vectors: The columns of U, float32 of shape (embedded terms, N); later terms are not embedded.
        document_vectors: The columns of V, of the same shape; U itself in a symmetric model.
        hashed_query_vectors: U of the model over hashed features, float32 of shape (F, N).
        hashed_document_vectors: Its V.
        mixing: Factor of the model over hashed features, float32 of shape (1,).
        diagonal: D, float32 of shape (terms,).
        identity: Factor of the diagonal, float32 of shape (1,).
        pairs: The weight of each pair of words, or of all pairs that share it, float32.
        query_places: Where in ``pairs`` the row of W of each query term starts, int64; rows wrap around at the end.
        active: Whether each weight in ``pairs`` may change, bool; empty if all may.
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
    """Learning rates, 0 for parts that stay as they are; and the margin. ``vectors`` is the rate of pairs too."""

    vectors: float
    mixing: float
    diagonal: float
    identity: float
    margin: float


class Tuples(NamedTuple):
    """Tuples (q, d+, d-) in groups of a query, a relevant document and others, all by their numbers.

    Attributes:
        queries: The query of each group, int64 of shape (groups,).
        documents: Its documents, int64 of shape (groups, 1 + negatives); the relevant one comes first.
        valid: Whether there is a document, bool of the same shape.
    """

    queries: np.ndarray
    documents: np.ndarray
    valid: np.ndarray


@compiled
def learn(parts: Parts, texts: Texts, tuples: Tuples, rates: Rates) -> tuple[float, int]:
    """Take tuples one by one, with a step that changes W in place for each that violates the margin.

    Returns the sum of the losses of the tuples (equation 8), each before its step, and the number of tuples.
    """
    room = working_room(parts)
    total, count = 0.0, 0
    for group in range(len(tuples.queries)):
        loss, number = learn_group(parts, texts, tuples, group, rates, room)
        total += loss
        count += number
    return total, count


@compiled
def learn_in_turn(
    parts: Parts,
    texts: Texts,
    tuples: Tuples,
    other_parts: Parts,
    other_texts: Texts,
    other_tuples: Tuples,
    rates: Rates,
) -> tuple[float, int]:
    """Like :func:`learn`, with groups of two tasks in turn that share weights (section 2.4.2, equations 9 and 10).

    Returns the loss and the number of tuples of the first task.
    """
    room, other_room = working_room(parts), working_room(other_parts)
    total, count = 0.0, 0
    for group in range(len(tuples.queries)):
        loss, number = learn_group(parts, texts, tuples, group, rates, room)
        total += loss
        count += number
        if group < len(other_tuples.queries):
            learn_group(other_parts, other_texts, other_tuples, group, rates, other_room)
    return total, count


@compiled
def working_room(parts: Parts) -> tuple:
    """Arrays that all groups use: Uq, Vd+ and Vd-; the same over hashed features; and a dense query."""
    return (
        np.zeros((3, parts.query_vectors.shape[1]), dtype=np.float32),
        np.zeros((3, parts.hashed_query_vectors.shape[1]), dtype=np.float32),
        np.zeros(len(parts.diagonal), dtype=np.float32),
    )


@compiled
def learn_group(parts: Parts, texts: Texts, tuples: Tuples, group: int, rates: Rates, room: tuple) -> tuple[float, int]:
    """Steps for a query and its relevant document with each of the negatives: the loss, and the number of tuples."""
    vectors, hashed, dense_query = room
    query, positive, total, count = tuples.queries[group], tuples.documents[group, 0], 0.0, 0
    positive_lexical, positive_pairs = np.float32(0.0), np.float32(0.0)
    scatter(texts.queries, query, dense_query)
    current = False  # whether the vectors of the query and the relevant document are from the current weights
    for place in range(1, tuples.documents.shape[1]):
        if not tuples.valid[group, place]:
            continue
        negative = tuples.documents[group, place]
        if not current:
            project(parts.query_vectors, texts.queries, query, vectors[0])
            project(parts.document_vectors, texts.documents, positive, vectors[1])
            project(parts.hashed_query_vectors, texts.hashed_queries, query, hashed[0])
            project(parts.hashed_document_vectors, texts.hashed_documents, positive, hashed[1])
            positive_lexical = lexical(parts.diagonal, texts.documents, positive, dense_query)
            positive_pairs = pair_score(parts, texts, query, positive)
            current = True
        project(parts.document_vectors, texts.documents, negative, vectors[2])
        project(parts.hashed_document_vectors, texts.hashed_documents, negative, hashed[2])
        lexical_difference = positive_lexical - lexical(parts.diagonal, texts.documents, negative, dense_query)
        pairs_difference = positive_pairs - pair_score(parts, texts, query, negative)
        hashed_difference = difference(hashed)
        score = (
            difference(vectors)
            + parts.mixing[0] * hashed_difference
            + parts.identity[0] * lexical_difference
            + pairs_difference
        )
        count += 1
        if score >= rates.margin:
            continue
        total += rates.margin - score
        current = False
        step_vectors(
            parts.query_vectors,
            parts.document_vectors,
            texts.queries,
            texts.documents,
            query,
            positive,
            negative,
            vectors,
            rates.vectors,
        )
        step_vectors(
            parts.hashed_query_vectors,
            parts.hashed_document_vectors,
            texts.hashed_queries,
            texts.hashed_documents,
            query,
            positive,
            negative,
            hashed,
            rates.vectors * parts.mixing[0],
        )
        parts.mixing[0] += rates.mixing * hashed_difference
        rate = rates.diagonal * parts.identity[0]
        step_diagonal(parts.diagonal, texts.documents, positive, dense_query, rate)
        step_diagonal(parts.diagonal, texts.documents, negative, dense_query, -rate)
        parts.identity[0] += rates.identity * lexical_difference
        step_pairs(parts, texts, query, positive, rates.vectors)
        step_pairs(parts, texts, query, negative, -rates.vectors)
    clear(texts.queries, query, dense_query)
    return total, count


@compiled
def text_of(rows: Rows, row: int) -> tuple[np.ndarray, np.ndarray]:
    """The terms of a text, and their weights."""
    span = slice(rows.starts[row], rows.starts[row + 1])
    return rows.terms[span], rows.weights[span]


@compiled
def project(table: np.ndarray, rows: Rows, row: int, result: np.ndarray) -> None:
    """The weighted sum of the vectors of a text's terms: Uq or Vd."""
    result[:] = 0
    terms, weights = text_of(rows, row)
    count = len(terms)
    while count > 0 and terms[count - 1] >= len(table):  # the rarest terms, which have no vectors
        count -= 1
    fours = count // 4 * 4  # four terms at a time, since reading their vectors waits for memory
    for place in range(0, fours, 4):
        term1, term2, term3, term4 = terms[place], terms[place + 1], terms[place + 2], terms[place + 3]
        weight1, weight2 = weights[place], weights[place + 1]
        weight3, weight4 = weights[place + 2], weights[place + 3]
        for number in range(len(result)):
            half = weight1 * table[term1, number] + weight2 * table[term2, number]
            result[number] += half + weight3 * table[term3, number] + weight4 * table[term4, number]
    for place in range(fours, count):
        add_to(result, weights[place], table[terms[place]])


@compiled
def difference(vectors: np.ndarray) -> float:
    """(Uq)'(Vd+ - Vd-), for vectors in this order."""
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
    """Add a vector to the vectors of a text's terms, in proportion to the weights of the terms."""
    terms, weights = text_of(rows, row)
    for place in range(len(terms)):
        if terms[place] < len(table):
            add_to(table[terms[place]], np.float32(rate * weights[place]), vector)


@compiled
def scatter(rows: Rows, row: int, dense: np.ndarray) -> None:
    """Write the weights of a text to the places of its terms; nothing if ``dense`` is empty, as without a diagonal."""
    terms, weights = text_of(rows, row)
    for place in range(len(terms)):
        if len(dense) > 0:
            dense[terms[place]] = weights[place]


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
    """``place % size``, without a division in the usual case."""
    if place >= size:
        place -= size
        if place >= size:
            place %= size
    return place


@compiled
def pair_score(parts: Parts, texts: Texts, query: int, document: int) -> float:
    """The sum of q_s W_st d_t, where pairs of words may share a weight (equation 5)."""
    pairs, places = parts.pairs, parts.query_places
    query_terms, query_weights = text_of(texts.queries, query)
    document_terms, document_weights = text_of(texts.documents, document)
    total, s = np.float32(0.0), 0
    if len(pairs) == 0:
        return total
    while s < len(query_terms):
        if not four_rows(parts, query_terms, s, document_terms):
            start = places[query_terms[s]]
            total += query_weights[s] * row_score(pairs, start, document_terms, document_weights)
            s += 1
            continue
        start1, start2 = places[query_terms[s]], places[query_terms[s + 1]]
        start3, start4 = places[query_terms[s + 2]], places[query_terms[s + 3]]
        weight1, weight2 = query_weights[s], query_weights[s + 1]
        weight3, weight4 = query_weights[s + 2], query_weights[s + 3]
        for t in range(len(document_terms)):
            place1, place2, place3, place4 = places_of(start1, start2, start3, start4, document_terms[t])
            half = weight1 * pairs[place1] + weight2 * pairs[place2]
            total += (half + weight3 * pairs[place3] + weight4 * pairs[place4]) * document_weights[t]
        s += 4
    return total


@compiled
def four_rows(parts: Parts, query_terms: np.ndarray, s: int, document_terms: np.ndarray) -> bool:
    """Whether there are four more rows of W, none of which wraps around within the document.

    They are read together, since reading their weights waits for memory.
    """
    if s + 4 > len(query_terms) or len(document_terms) == 0:
        return False
    end, places = len(parts.pairs) - document_terms[-1], parts.query_places
    left = max(places[query_terms[s]], places[query_terms[s + 1]])
    return max(left, places[query_terms[s + 2]], places[query_terms[s + 3]]) < end


@compiled
def row_score(pairs: np.ndarray, start: int, terms: np.ndarray, weights: np.ndarray) -> float:
    """The sum of W_st d_t over t, for the row of W that starts at a place."""
    total = np.float32(0.0)
    for t in range(len(terms)):
        total += pairs[wrapped(start + terms[t], len(pairs))] * weights[t]
    return total


@compiled
def places_of(start1: int, start2: int, start3: int, start4: int, term: int) -> tuple[int, int, int, int]:
    """Places of a term in four rows of W, without signs, since arrays are read faster if no index can be negative."""
    return np.uint64(start1 + term), np.uint64(start2 + term), np.uint64(start3 + term), np.uint64(start4 + term)


@compiled
def step_pairs(parts: Parts, texts: Texts, query: int, document: int, rate: float) -> None:
    """W_st += rate q_s d_t, where the weight is active (section 2.3.1; algorithm 2)."""
    pairs, places, s = parts.pairs, parts.query_places, 0
    if len(pairs) == 0:
        return
    query_terms, query_weights = text_of(texts.queries, query)
    document_terms, document_weights = text_of(texts.documents, document)
    while s < len(query_terms):
        step1 = np.float32(rate * query_weights[s])
        if len(parts.active) > 0 or not four_rows(parts, query_terms, s, document_terms):
            step_row(pairs, parts.active, places[query_terms[s]], document_terms, document_weights, step1)
            s += 1
            continue
        start1, start2 = places[query_terms[s]], places[query_terms[s + 1]]
        start3, start4 = places[query_terms[s + 2]], places[query_terms[s + 3]]
        step2, step3 = np.float32(rate * query_weights[s + 1]), np.float32(rate * query_weights[s + 2])
        step4 = np.float32(rate * query_weights[s + 3])
        for t in range(len(document_terms)):
            place1, place2, place3, place4 = places_of(start1, start2, start3, start4, document_terms[t])
            pairs[place1] += step1 * document_weights[t]
            pairs[place2] += step2 * document_weights[t]
            pairs[place3] += step3 * document_weights[t]
            pairs[place4] += step4 * document_weights[t]
        s += 4


@compiled
def step_row(
    pairs: np.ndarray, active: np.ndarray, start: int, terms: np.ndarray, weights: np.ndarray, step: float
) -> None:
    """W_st += step d_t over t, for the row of W that starts at a place, where the weight is active."""
    for t in range(len(terms)):
        place = wrapped(start + terms[t], len(pairs))
        if len(active) == 0 or active[place]:
            pairs[place] += step * weights[t]


@compiled
def pair_rows(parts: Parts, queries: Rows, result: np.ndarray) -> None:
    """Add q'W of sparse queries to the rows of a matrix, for the part of W that has weights of pairs of words."""
    pairs = parts.pairs
    for row in range(len(result)):
        terms, weights = text_of(queries, row)
        for s in range(len(terms)):
            start, first = parts.query_places[terms[s]], 0
            while first < result.shape[1]:  # a stretch of the row up to where it wraps around
                count = min(result.shape[1] - first, len(pairs) - start)
                add_to(result[row, first : first + count], weights[s], pairs[start : start + count])
                first, start = first + count, 0


@compiled
def add_to(vector: np.ndarray, weight: float, other: np.ndarray) -> None:
    """Vector += weight * other."""
    for number in range(len(vector)):
        vector[number] += weight * other[number]
