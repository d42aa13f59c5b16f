"""Queries and candidates as the SSI paper makes them: random documents beside the relevant ones, keyword queries."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.text import tokenise
from pt_neural.training.examples import require_columns

_NONE = np.empty(0, dtype=np.int64)


def with_random_documents(
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    docnos: Iterable[str],
    num_random: int = 10_000,
    *,
    seed: int = 13,
    exclude: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The relevant documents of each query, and documents of the collection drawn at random.

    SSI paper, section 4: MAP and P@10 are measured on "the linked test set documents plus random subsets of 10,000
    documents" for each query. Within a query the candidates stand in the order of the collection, so that their order
    does not tell which are relevant.

    Args:
        topics: Queries: ``qid, query``, and any other column.
        qrels: Judgements: ``qid, docno, label``; documents with a label above 0 are relevant.
        docnos: The collection. Relevant documents that are not in it are left out.
        num_random: Random documents a query, all different and none of them relevant; all that there are if the
            collection has fewer.
        seed: Of the random documents.
        exclude: Frame with ``qid`` and ``docno``: documents that must not be candidates of a query, such as the page
            that the query is made from, and the links that were trained on.

    Returns:
        The columns of the topics with ``docno``, one row a candidate, queries in their order.

    Raises:
        TypeError: If a frame is none, or ``docnos`` is something else than docnos.
        ValueError: If columns are missing, if a query occurs twice, or if the collection is empty.

    Example::

        candidates = with_random_documents(test, docs.get_qrels("test"), docnos, 1000)
        pt.Experiment([pt.Transformer.from_df(candidates) >> ssi], test, docs.get_qrels("test"), [RankLoss, AP])
    """
    num_random = checked_number("num_random", num_random, int, least=0)
    seed = checked_number("seed", seed, int, least=0)
    require_columns(topics, ("qid", "query"), "topics")
    require_columns(qrels, ("qid", "docno", "label"), "qrels")
    if topics["qid"].duplicated().any():
        raise ValueError(f"query {topics['qid'][topics['qid'].duplicated()].iloc[0]!r} occurs twice in topics")
    collection = _collection(docnos)
    relevant = _places(qrels[qrels["label"] > 0], collection)
    excluded = {}
    if exclude is not None:
        require_columns(exclude, ("qid", "docno"), "exclude")
        excluded = _places(exclude, collection)
    rng, marked = np.random.default_rng(seed), np.zeros(len(collection), dtype=bool)
    chosen = [
        _choose(relevant.get(qid, _NONE), excluded.get(qid, _NONE), num_random, rng, marked) for qid in topics["qid"]
    ]
    rows = np.repeat(np.arange(len(topics)), [len(places) for places in chosen])
    frame = topics.drop(columns=["docno", "score", "rank"], errors="ignore").take(rows).reset_index(drop=True)
    return frame.assign(docno=collection.take(np.concatenate([_NONE, *chosen])))


def keyword_queries(topics: pd.DataFrame, k: int, *, seed: int = 13) -> pd.DataFrame:
    """Queries of k random words of each query's text, as a keyword search has them.

    SSI paper, section 4.2: keyword queries are made from documents "by keeping only k random words". The paper does
    not say whether a word that occurs twice may be kept twice; here the words of a query are different, each as likely
    as the others however often it occurs, for a keyword search seldom repeats a word.

    Args:
        topics: Queries: ``qid, query``, and any other column.
        k: Words to keep. A text with fewer different words keeps them all.
        seed: Of the random words.

    Returns:
        The topics with the words, lower-case, as ``query``, in the order in which the text has them first.

    Raises:
        TypeError: If ``topics`` is no frame.
        ValueError: If columns are missing, or if ``k`` is below 1.

    Example::

        >>> keyword_queries(pd.DataFrame({"qid": ["q1"], "query": ["A river, a city"]}), 3)["query"].tolist()
        ['a river city']
    """
    k, seed = checked_number("k", k, int, least=1), checked_number("seed", seed, int, least=0)
    require_columns(topics, ("qid", "query"), "topics")
    rng = np.random.default_rng(seed)
    words = [list(dict.fromkeys(tokenise(text))) for text in topics["query"]]
    kept = [sorted(rng.choice(len(each), min(k, len(each)), replace=False)) if each else [] for each in words]
    queries = [" ".join(each[place] for place in places) for each, places in zip(words, kept, strict=True)]
    return topics.assign(query=queries)


def _collection(docnos: Iterable[str]) -> pd.Index:
    """The documents of the collection, each once."""
    listed = list(docnos)
    if isinstance(docnos, str) or (listed and isinstance(listed[0], dict)):
        raise TypeError("docnos must be the docnos of the collection, such as documents.docnos of a forward index")
    if not listed:
        raise ValueError("docnos is empty; it must name the documents of the collection")
    return pd.Index(listed).unique()


def _places(pairs: pd.DataFrame, collection: pd.Index) -> dict[str, np.ndarray]:
    """Where the documents of each query stand in the collection; those that it lacks are left out."""
    places = pd.Series(collection.get_indexer(pairs["docno"]), index=pairs["qid"].to_numpy())
    return {qid: group.unique() for qid, group in places[places >= 0].groupby(level=0, sort=False)}


def _choose(
    relevant: np.ndarray, excluded: np.ndarray, num_random: int, rng: np.random.Generator, marked: np.ndarray
) -> np.ndarray:
    """The places of one query's candidates, ascending; ``marked`` is False everywhere, before and after."""
    marked[relevant] = marked[excluded] = True
    spare = min(len(marked), num_random + len(relevant) + len(excluded))
    drawn = rng.choice(len(marked), spare, replace=False)
    drawn = drawn[~marked[drawn]][:num_random]
    marked[excluded] = False
    linked = relevant[marked[relevant]]
    marked[relevant] = False
    return np.sort(np.concatenate([linked, drawn]))
