"""Pairs of documents that one ranker orders wrongly and another orders correctly."""

from collections.abc import Sequence

import pandas as pd
import pyterrier as pt

WORDS = 12  # of a document in a table


def misordered(run: pd.DataFrame, reference: pd.DataFrame, qrels: pd.DataFrame, most: int) -> pd.DataFrame:
    """Find pairs of an irrelevant and a relevant document, at most one pair per query.

    Pairs are sorted by the sum of two ranks, that of the irrelevant document in the run and that of the relevant
    document in the reference; and then by the rank of the relevant document in the run, from the bottom up.

    Args:
        run: Result frame of the ranker that orders the pairs wrongly.
        reference: Result frame of the ranker that orders them correctly.
        qrels: Judgements; unjudged documents count as irrelevant, queries without judgements are skipped.
        most: The number of pairs to find.

    Returns:
        Frame with ``qid, query, irrelevant, relevant``; the last two are docnos.
    """
    labels = qrels.drop_duplicates(["qid", "docno"])[["qid", "docno", "label"]]
    ranks = run.loc[run["qid"].isin(labels["qid"]), ["qid", "query", "docno", "rank"]]
    ranks = ranks.merge(reference[["qid", "docno", "rank"]], on=["qid", "docno"], suffixes=("", "_right"))
    ranks = ranks.merge(labels, on=["qid", "docno"], how="left")
    relevant = ranks["label"] > 0
    pairs = ranks[~relevant].merge(ranks[relevant], on=["qid", "query"], suffixes=("_irrelevant", "_relevant"))
    wrong = pairs["rank_irrelevant"] < pairs["rank_relevant"]
    pairs = pairs[wrong & (pairs["rank_right_relevant"] < pairs["rank_right_irrelevant"])]
    pairs = pairs.assign(height=pairs["rank_irrelevant"] + pairs["rank_right_relevant"])
    pairs = pairs.sort_values(["height", "rank_relevant"], ascending=[True, False], kind="stable")
    pairs = pairs.drop_duplicates("qid").head(most)
    return pairs.rename(columns={"docno_irrelevant": "irrelevant", "docno_relevant": "relevant"})[
        ["qid", "query", "irrelevant", "relevant"]
    ].reset_index(drop=True)


def first_words(docnos: pd.Series, text_loader: pt.Transformer, fields: Sequence[str]) -> list[str]:
    """The beginning of each document.

    Args:
        docnos: The documents.
        text_loader: Adds the fields to a frame with ``docno``.
        fields: The fields, the title first.
    """
    texts = text_loader.transform(pd.DataFrame({"docno": docnos}))[list(fields)].fillna("")
    words = [" ".join(row).split() for row in texts.to_numpy().tolist()]
    return [" ".join(row[:WORDS]) + (" …" if len(row) > WORDS else "") for row in words]
