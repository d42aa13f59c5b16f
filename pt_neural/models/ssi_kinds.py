"""The kinds of W that SSI has (SSI paper, section 2.2), and what each of them can do without."""

from typing import Any, Literal, get_args

from pt_neural.models.bilinear_shape import Shape

Kind = Literal["diagonal", "full", "sparse", "symmetric", "low-rank", "low-rank-diagonal", "hash", "correlated-hash"]
KINDS = get_args(Kind)
WITH_VECTORS = ("symmetric", "low-rank", "low-rank-diagonal", "correlated-hash")
OF_ONE_VOCABULARY = ("diagonal", "symmetric", "low-rank-diagonal", "correlated-hash")
LEARNING_RATES = {
    "diagonal": 10.0,
    "full": 1.0,
    "sparse": 1.0,
    "symmetric": 0.05,
    "low-rank": 0.05,
    "low-rank-diagonal": 0.05,
    "hash": 1.0,
    "correlated-hash": 0.05,
}
MOST_WEIGHTS = 2**30  # of a W with a weight for each pair of words: 4.3 GB


def check_kind(kind: str, *, shared_vocabulary: bool, identity: bool | None) -> bool:
    """Whether W has an identity term.

    Raises:
        ValueError: If the kind needs one vocabulary, or an identity, and is told to do without.
    """
    if kind in OF_ONE_VOCABULARY and not shared_vocabulary:
        raise ValueError(
            f"kind={kind!r} compares equal words, which queries and documents of two vocabularies do not have; "
            "choose kind='low-rank'"
        )
    if identity and not shared_vocabulary:
        raise ValueError("the identity matches equal words, which two vocabularies do not have: leave identity out")
    if kind in ("diagonal", "low-rank-diagonal") and identity is False:
        raise ValueError(f"kind={kind!r} has a diagonal; without one choose kind='low-rank', identity=False")
    return shared_vocabulary if identity is None else bool(identity)


def shape_of(settings: dict[str, Any], query_terms: int, document_terms: int) -> Shape:
    """What W of some settings of SSI is made of.

    Raises:
        ValueError: If it needs too much memory; the message says how much.
    """
    kind, identity = settings["kind"], settings["identity"]
    shape = {"query_terms": query_terms, "document_terms": document_terms}
    if kind in WITH_VECTORS:
        shape |= {"dim": settings["dim"], "embedded_terms": settings["embedded_terms"]}
        shape |= {"diagonal": "identity" if identity else "none", "symmetric": kind == "symmetric"}
    if kind in ("diagonal", "low-rank-diagonal"):
        shape["diagonal"] = "learned"
    if kind in ("full", "sparse"):
        shape |= {"pairs": _affordable(query_terms, document_terms), "starts_at_identity": identity}
    if kind == "hash":
        shape |= {"pairs": settings["hash_size"], "shared_pairs": True}
        shape["diagonal"] = "factor" if identity else "none"
    if kind == "correlated-hash":
        hashed_terms = min(settings["embedded_terms"], document_terms)
        shape |= {"hashed_terms": hashed_terms, "hashed_dim": settings["hashed_dim"] or settings["dim"]}
    return Shape(**shape)


def _affordable(query_terms: int, document_terms: int) -> int:
    weights = query_terms * document_terms
    if weights > MOST_WEIGHTS:
        raise ValueError(
            f"W of {query_terms:,} by {document_terms:,} words would take {4 * weights / 1e9:,.1f} GB, and "
            f"{4 * MOST_WEIGHTS / 1e9:.1f} are the most: give max_terms={int(MOST_WEIGHTS**0.5):,} or fewer, or choose "
            "kind='low-rank' or 'hash'"
        )
    return weights
