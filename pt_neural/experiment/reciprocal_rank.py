"""Expected reciprocal rank for queries of any names."""

from collections.abc import Iterator

import ir_measures
import pandas as pd

from pt_neural._arguments import checked_number


def expected_reciprocal_rank(cutoff: int = 10) -> ir_measures.Measure:
    """Expected reciprocal rank (Chapelle, Metzler, Zhang and Grinspan, 2009), as ir_measures computes it.

    The measure ``ERR@k`` of ir_measures comes from a script of TREC's, which takes whole numbers as names of queries
    and no others, and no blank in the name of a document. This one is the same with any names. A document of grade g
    satisfies the user with probability ``(2**g - 1) / 16``: the script's highest grade is 4. It needs Perl.

    Args:
        cutoff: The ranks that count.

    Returns:
        A measure for ``pt.Experiment`` and ``ir_measures``, named ``ERR@cutoff``.

    Raises:
        TypeError: If the cutoff is no integer.
        ValueError: If it is below 1; in use, if a grade is above 4.

    Example::

        pt.Experiment([bm25], topics, qrels, [expected_reciprocal_rank(10)])
    """
    cutoff = checked_number("cutoff", cutoff, int, least=1)

    def values(qrels: pd.DataFrame, run: pd.DataFrame) -> Iterator[tuple[str, float]]:
        if qrels["relevance"].max() > 4:
            raise ValueError(f"ERR knows grades up to 4, and there is a {qrels['relevance'].max()}; map them to fewer")
        qids = pd.Index(qrels["query_id"].unique())
        docnos = pd.Index(pd.concat([qrels["doc_id"], run["doc_id"]]).unique()).sort_values()
        frames = [_numbered(frame, qids, docnos) for frame in (qrels, run)]
        for metric in ir_measures.iter_calc([ir_measures.ERR @ cutoff], *frames):
            yield qids[int(metric.query_id)], metric.value

    return ir_measures.define(values, name=f"ERR@{cutoff}", support_cutoff=False)


def _numbered(frame: pd.DataFrame, qids: pd.Index, docnos: pd.Index) -> pd.DataFrame:
    """The rows of known queries, with numbers for names; those of documents sort as the names do."""
    frame = frame[frame["query_id"].isin(qids)]
    digits = len(str(len(docnos)))
    queries = [str(number) for number in qids.get_indexer(frame["query_id"])]
    documents = [f"{number:0{digits}}" for number in docnos.get_indexer(frame["doc_id"])]
    return frame.assign(query_id=queries, doc_id=documents)
