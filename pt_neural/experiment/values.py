"""The value of each system for each query."""

import ir_measures
import pandas as pd

from pt_neural._evaluation import parse_measure


def per_query(result: pd.DataFrame, measure: ir_measures.Measure | str | None = None) -> pd.DataFrame:
    """One row a query, one column a system: what the breakdowns, tests and pictures of this package start from.

    Args:
        result: Frame of ``pt.Experiment(.., perquery=True)``: ``name, qid, measure, value``.
        measure: The measure to take, or its name; may be left out where there is only one.

    Returns:
        Frame with ``qid`` as the index and one float column a system, in the order of ``result``, where PyTerrier sorts
        them by name; the name of the columns is that of the measure. A query for which a system has no value counts 0.

    Raises:
        ValueError: If columns are missing, or if it is not clear which measure is meant.

    Example::

        result = pt.Experiment([bm25, ql], topics, qrels, [nDCG @ 10], names=["BM25", "QL"], perquery=True)
        values = per_query(result)
        values["BM25"].mean()
    """
    lacking = [column for column in ("name", "qid", "measure", "value") if column not in result]
    if lacking:
        raise ValueError(f"the frame lacks {', '.join(lacking)}; it must come from pt.Experiment(.., perquery=True)")
    measures = result["measure"].unique()
    if measure is None:
        if len(measures) != 1:
            raise ValueError(f"say which measure, for there are {len(measures)}: {', '.join(measures)}")
        measure = measures[0]
    name = str(measure) if str(measure) in measures else str(parse_measure(measure))
    if name not in measures:
        raise ValueError(f"{name} was not measured, but {', '.join(measures)}")
    rows = result[result["measure"] == name]
    values = rows.pivot_table("value", "qid", "name", sort=False)[rows["name"].unique()].fillna(0.0)
    return values.rename_axis(columns=name)


def measure_name(values: pd.DataFrame) -> str:
    """What the values of a frame are, for a picture's axis."""
    return values.columns.name or "value"
