"""The rows of the SSI paper's tables, as functions that make them one by one."""

from collections.abc import Callable, Iterable
from functools import partial

from pipelines.ssi.rankers import Rankers, Row, millions

Makers = Iterable[Callable[[], Row]]


def table_1(rankers: Rankers) -> Makers:
    """The rows of Table 1."""
    arguments, limit = rankers.arguments, rankers.arguments.max_terms
    dim, words = arguments.dim, rankers.words(limit)
    ssi, embedded = partial(partial, rankers.ssi), {"dim": dim, "embedded_terms": words}
    yield partial(rankers.tfidf, limit)
    yield partial(rankers.qe, limit)
    yield partial(rankers.lsa, limit)
    yield partial(rankers.mixture, limit, limit)
    yield ssi("diagonal", "W = D", f"{words:,}", "diagonal", limit)
    yield partial(rankers.full, limit)
    yield ssi("off-diagonal", "W with a diagonal of zeros", f"{words:,}² - {words:,}", "off-diagonal", limit)
    for number in arguments.nonzeros:
        yield partial(rankers.sparse, limit, number)
    yield partial(rankers.low_rank, limit, kind="symmetric")
    yield partial(rankers.low_rank, limit)
    name, parameters = f"W = U'V, N = {dim}", f"{2 * dim} × {words:,}"
    yield ssi("no-identity", name, parameters, "low-rank", limit, identity=False, **embedded)
    name, parameters = f"W = U'V + D, N = {dim}", f"{2 * dim + 1} × {words:,}"
    yield ssi("with-diagonal", name, parameters, "low-rank-diagonal", limit, **embedded)
    few = rankers.with_fewer
    yield lambda: rankers.fewer(few.full(limit))
    for number in arguments.nonzeros:
        yield lambda number=number: rankers.fewer(few.sparse(limit, number))
    yield lambda: rankers.fewer(few.low_rank(limit, kind="symmetric"))
    yield lambda: rankers.fewer(few.low_rank(limit))


def table_2(rankers: Rankers) -> Makers:
    """The rows of Table 2."""
    arguments, frequent = rankers.arguments, rankers.arguments.frequent_terms
    ssi = partial(partial, rankers.ssi)
    yield partial(rankers.tfidf, None)
    yield partial(rankers.qe, None)
    yield partial(rankers.mixture, None, frequent)
    yield partial(rankers.low_rank, None, kind="symmetric")
    for place, number in enumerate(dict.fromkeys(map(rankers.words, arguments.embedded_terms))):
        yield partial(rankers.embedded, f"embedded-{place}", number)
    for identity, key, name, more in ((False, "hash", "", ""), (True, "hash-identity", " + αI", " + 1")):
        for size in arguments.hash_sizes:
            full_name = f"hash kernels{name}, {millions(size)}"
            options = {"hash_size": size, "identity": identity}
            yield ssi(f"{key}-{millions(size)}", full_name, f"{millions(size)}{more}", "hash", None, **options)
    yield partial(rankers.embedded, "embedded-as-correlated", frequent, arguments.correlated_dim)
    for ngrams in (2, 1, "1+2"):
        yield partial(rankers.correlated, ngrams)
    yield partial(rankers.correlated, 1, "others")


def table_4(rankers: Rankers) -> Makers:
    """The rows of Table 4: the number of latent concepts."""
    for dim in rankers.arguments.dims:
        for kind in ("symmetric", "low-rank"):
            yield partial(rankers.low_rank, rankers.arguments.max_terms, dim, kind=kind, key=f"{kind}-{dim}")


def table_5(rankers: Rankers) -> Makers:
    """The rows of Table 5: keyword queries."""
    limit = rankers.arguments.max_terms
    yield partial(rankers.tfidf, limit)
    yield partial(rankers.mixture, limit, limit)
    yield partial(rankers.low_rank, limit, kind="symmetric")
    yield partial(rankers.low_rank, limit)


def table_6(rankers: Rankers) -> Makers:
    """The rows of Table 6: keyword queries with all words."""
    frequent = rankers.arguments.frequent_terms
    yield partial(rankers.tfidf, None)
    yield partial(rankers.mixture, None, frequent)
    yield partial(rankers.embedded, "low-rank", frequent, rankers.arguments.correlated_dim)
    yield partial(rankers.correlated, 1)
    yield partial(rankers.correlated, 1, "others")


def table_11(rankers: Rankers) -> Makers:
    """The rows of Table 11, queries and documents of two kinds; and W without an identity for separate vocabularies."""
    arguments = rankers.arguments
    ssi, dim, words = partial(partial, rankers.ssi), arguments.dim, rankers.words(None)
    yield partial(rankers.tfidf, None)
    for size in arguments.hash_sizes:
        options = {"hash_size": size, "identity": False}
        yield ssi(f"hash-{millions(size)}", f"hash kernels, {millions(size)}", millions(size), "hash", None, **options)
    for place, number in enumerate(dict.fromkeys(map(rankers.words, arguments.embedded_terms))):
        yield partial(rankers.embedded, f"embedded-{place}", number)
    name, options = f"W = U'V, separate vocabularies, N = {dim}", {"dim": dim, "embedded_terms": words}
    yield ssi("own-words", name, f"2 × {dim} × {words:,}", "low-rank", None, shared_vocabulary=False, **options)


ROWS = {1: table_1, 2: table_2, 4: table_4, 5: table_5, 6: table_6, 11: table_11}
