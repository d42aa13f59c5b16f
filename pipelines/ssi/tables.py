"""The rows of the SSI paper's tables, as functions that make them one by one."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from pipelines.ssi.rankers import Rankers, Row, millions

Makers = Iterable[tuple[str, Callable[[], Row]]]  # with the keys of the rows


def table_1(rankers: Rankers) -> Makers:
    """The rows of Table 1, and some of them trained on a quarter of the links."""
    arguments, limit = rankers.arguments, rankers.arguments.max_terms
    dim, words, few = arguments.dim, rankers.words(limit), rankers.with_fewer
    embedded = {"dim": dim, "embedded_terms": words}
    yield "tfidf", partial(rankers.tfidf, limit)
    yield "qe", partial(rankers.qe, limit)
    yield "lsa", partial(rankers.lsa, limit)
    yield "mixture", partial(rankers.mixture, limit, limit)
    yield _ssi(rankers, "diagonal", "W = D", f"{words:,}", "diagonal", limit)
    yield "full", partial(rankers.full, limit)
    yield "full-symmetric-part", partial(rankers.symmetric_part, rankers.full, limit)
    yield from _truncated(rankers, "full", rankers.full, limit)
    name, parameters = "W with a diagonal of zeros", f"{words:,}² - {words:,}"
    yield _ssi(rankers, "off-diagonal", name, parameters, "off-diagonal", limit)
    for number in arguments.nonzeros:
        yield f"sparse-{number}", partial(rankers.sparse, limit, number)
        yield from _truncated(rankers, f"sparse-{number}", rankers.sparse, limit, number)
    yield "symmetric", partial(rankers.low_rank, limit, kind="symmetric")
    yield "low-rank", partial(rankers.low_rank, limit)
    yield "low-rank-symmetric-part", partial(rankers.symmetric_part, rankers.low_rank, limit)
    name, parameters = f"W = U'V, N = {dim}", f"{2 * dim} × {words:,}"
    yield _ssi(rankers, "no-identity", name, parameters, "low-rank", limit, identity=False, **embedded)
    name, parameters = f"W = U'V + D, N = {dim}", f"{2 * dim + 1} × {words:,}"
    yield _ssi(rankers, "with-diagonal", name, parameters, "low-rank-diagonal", limit, **embedded)
    yield "full-quarter", partial(rankers.fewer, few.full, limit)
    for number in arguments.nonzeros:
        yield f"sparse-{number}-quarter", partial(rankers.fewer, few.sparse, limit, number)
    yield "symmetric-quarter", partial(rankers.fewer, few.low_rank, limit, kind="symmetric")
    yield "low-rank-quarter", partial(rankers.fewer, few.low_rank, limit)


def table_2(rankers: Rankers) -> Makers:
    """The rows of Table 2."""
    arguments, frequent = rankers.arguments, rankers.arguments.frequent_terms
    yield "tfidf", partial(rankers.tfidf, None)
    yield "qe", partial(rankers.qe, None)
    yield "mixture", partial(rankers.mixture, None, frequent)
    yield "symmetric", partial(rankers.low_rank, None, kind="symmetric")
    yield from _embedded(rankers)
    for identity, key, name, more in ((False, "hash", "", ""), (True, "hash-identity", " + αI", " + 1")):
        for size in arguments.hash_sizes:
            full_name, parameters = f"hash kernels{name}, {millions(size)}", f"{millions(size)}{more}"
            options = {"hash_size": size, "identity": identity}
            yield _ssi(rankers, f"{key}-{millions(size)}", full_name, parameters, "hash", None, **options)
    key = "embedded-as-correlated"
    yield key, partial(rankers.embedded, key, frequent, arguments.correlated_dim)
    for ngrams in (2, 1, "1+2"):
        yield f"correlated-{ngrams}", partial(rankers.correlated, ngrams)
    yield "correlated-others", partial(rankers.correlated, 1, "others")


def table_4(rankers: Rankers) -> Makers:
    """The rows of Table 4: the number of latent concepts."""
    for dim in rankers.arguments.dims:
        for kind in ("symmetric", "low-rank"):
            key = f"{kind}-{dim}"
            yield key, partial(rankers.low_rank, rankers.arguments.max_terms, dim, kind=kind, key=key)


def table_5(rankers: Rankers) -> Makers:
    """The rows of Table 5, keyword queries, and some of them trained on a quarter of the links."""
    limit, few = rankers.arguments.max_terms, rankers.with_fewer
    yield "tfidf", partial(rankers.tfidf, limit)
    yield "mixture", partial(rankers.mixture, limit, limit)
    yield "symmetric", partial(rankers.low_rank, limit, kind="symmetric")
    yield "low-rank", partial(rankers.low_rank, limit)
    yield "low-rank-symmetric-part", partial(rankers.symmetric_part, rankers.low_rank, limit)
    yield "symmetric-quarter", partial(rankers.fewer, few.low_rank, limit, kind="symmetric")
    yield "low-rank-quarter", partial(rankers.fewer, few.low_rank, limit)


def table_6(rankers: Rankers) -> Makers:
    """The rows of Table 6: keyword queries with all words."""
    frequent = rankers.arguments.frequent_terms
    yield "tfidf", partial(rankers.tfidf, None)
    yield "mixture", partial(rankers.mixture, None, frequent)
    yield "low-rank", partial(rankers.embedded, "low-rank", frequent, rankers.arguments.correlated_dim)
    yield "correlated-1", partial(rankers.correlated, 1)
    yield "correlated-others", partial(rankers.correlated, 1, "others")


def table_11(rankers: Rankers) -> Makers:
    """The rows of Table 11, queries and documents of two kinds; and W without an identity for separate vocabularies."""
    dim, words = rankers.arguments.dim, rankers.words(None)
    yield "tfidf", partial(rankers.tfidf, None)
    for size in rankers.arguments.hash_sizes:
        name, options = f"hash kernels, {millions(size)}", {"hash_size": size, "identity": False}
        yield _ssi(rankers, f"hash-{millions(size)}", name, millions(size), "hash", None, **options)
    yield from _embedded(rankers)
    name, options = f"W = U'V, separate vocabularies, N = {dim}", {"dim": dim, "embedded_terms": words}
    parameters = f"2 × {dim} × {words:,}"
    yield _ssi(rankers, "own-words", name, parameters, "low-rank", None, shared_vocabulary=False, **options)


def _ssi(rankers: Rankers, key: str, *arguments: Any, **options: Any) -> tuple[str, Callable[[], Row]]:
    return key, partial(rankers.ssi, key, *arguments, **options)


def _embedded(rankers: Rankers) -> Makers:
    """(U'V)_n + I, for each n."""
    for place, number in enumerate(dict.fromkeys(map(rankers.words, rankers.arguments.embedded_terms))):
        yield f"embedded-{place}", partial(rankers.embedded, f"embedded-{place}", number)


def _truncated(rankers: Rankers, key: str, make: Callable[..., Row], limit: int | None, *arguments: Any) -> Makers:
    """The nearest U'V + I in place of a trained W, for each N."""
    for dim in dict.fromkeys(min(dim, rankers.words(limit)) for dim in rankers.arguments.truncated_dims):
        yield f"{key}-truncated-{dim}", partial(rankers.truncated, make, limit, *arguments, dim=dim)


ROWS = {1: table_1, 2: table_2, 4: table_4, 5: table_5, 6: table_6, 11: table_11}
