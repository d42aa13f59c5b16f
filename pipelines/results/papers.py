"""What the papers report, found by the names that our pipelines give the rows."""

from pipelines.clsm.paper import TABLES as CLSM
from pipelines.common.paper import PaperTable
from pipelines.desm.paper import TABLES as DESM
from pipelines.duet.paper import TABLES as DUET
from pipelines.match_tensor.paper import TABLES as MATCH_TENSOR
from pipelines.results.orderings import FEW_FREQUENT, FEW_FREQUENT_KEYWORDS, LOW_RANK, SYMMETRIC, Ordering, Side
from pipelines.ssi import paper as ssi

TABLES = [*DESM, *CLSM, *DUET, *MATCH_TENSOR]
SSI_MEASURES = {"MAP": 2, "Rank loss, %": 1}  # and their columns in the paper's tables
NEAREST = {  # the rows of papers that are nearest to what we ran with other negatives, words or sizes
    "BM25, words as below": "BM25",
    "ULM, words as below": "ULM",
    "DSSM (in-batch)": "DSSM (J=50)",
    "CLSM (in-batch)": "CLSM (J=50)",
    "CLSM (in-batch), window 1": "CLSM (J=50), window 1",
    "CLSM (in-batch), window 5": "CLSM (J=50), window 5",
    FEW_FREQUENT.format("W = (U'V)_n + I"): "2: embedded-2",
    FEW_FREQUENT.format("CFH (2-grams)"): "2: correlated-2",
    FEW_FREQUENT.format("CFH (other words)"): "2: correlated-others",
    LOW_RANK: "1: low-rank",
    SYMMETRIC: "1: symmetric",
    "2: embedded-as-correlated": "2: embedded-2",
    "2: correlated-1": "2: correlated-others",
    FEW_FREQUENT_KEYWORDS[0]: "6, k = 10: correlated-others",
    FEW_FREQUENT_KEYWORDS[1]: "6, k = 10: low-rank",
}


def paper_figures(ordering: Ordering) -> str:
    """What the paper reports for the systems of an ordering, or the nearest ones; a dash if it lacks one of them."""
    sides = [_nearest(side) if ordering.reported else side for side in (ordering.better, ordering.worse)]
    if ordering.pipeline == "ssi":
        figures = [_ssi_figure(side, ordering.measure) for side in sides]
        return " against ".join(figures) if all(figures) else "–"
    for table in TABLES:
        if (table.pipeline, table.runs, table.measure) == (ordering.pipeline, ordering.runs, ordering.measure):
            if isinstance(ordering.better, str) and (table.baselines or {}).get(ordering.better) == ordering.worse:
                return f"{paper_text(table.rows[ordering.better], table)} %"
            figures = [_figure(side, table) for side in sides]
            if None not in figures:
                unit = " %" if table.baselines else ""
                return " against ".join(f"{paper_text(figure, table)}{unit}" for figure in figures)
    return "–"


def _nearest(side: Side) -> Side:
    """The paper's own names of systems."""
    if isinstance(side, frozenset):
        return frozenset(NEAREST.get(name, name) for name in side)
    return NEAREST.get(side, side)


def _figure(side: Side, table: PaperTable) -> float | None:
    """The figure of a system, or of the best of several; or of the gain of one over another, in a table of gains."""
    if isinstance(side, tuple):
        return table.rows.get(side[0]) if table.baselines else None
    if table.baselines:
        return None
    names = side if isinstance(side, frozenset) else [side]
    return max((table.rows[name] for name in names if table.rows.get(name) is not None), default=None)


def _ssi_figure(side: Side, measure: str) -> str:
    if isinstance(side, frozenset):
        return max(_ssi_figure(each, measure) for each in side)  # as text: all have three digits
    number, _, row = side.partition(": ")
    return ssi.TABLES[number][row][SSI_MEASURES[measure]] if number in ssi.TABLES else ""


def paper_text(value: float | None, table: PaperTable) -> str:
    """A figure of a table as text: three digits, or percents with their sign if the table has gains."""
    if value is None:
        return "–"
    return f"{value:+.2f}" if table.baselines else f"{value:.3f}"
