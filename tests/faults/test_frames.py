"""Hostile frames: a transformer gives what it documents, or an error of ours; and its input stays as it is."""

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pt_neural as pn
from pt_neural.datasets.folder import TextLoader
from pt_neural.experiment.ensembles import CrossValidated
from tests.faults import LONG
from tests.rankers.fitted import (
    CORPUS,
    KEEPERS,
    LANGUAGE,
    NAMES,
    RERANKS_ONLY,
    TOPICS,
    TOWERS,
    fitted,
    folder,
    forward,
    like,
    vectors,
)

FRAMES = 10_000 if LONG else 300
SECONDS = 20  # of a processor, that no frame may take
OURS = str(Path(pn.__file__).parent)

pytestmark = pytest.mark.long


class Case(NamedTuple):
    """A transformer, the columns that it needs, and what it does with rows."""

    transformer: pt.Transformer
    columns: tuple[str, ...]
    does: str  # "scores", "retrieves", "adds" columns, "mixes" or "expands"
    dimensions: int = 6  # of the vectors that it reads


RESULTS, BARE = ("qid", "query", "docno", "title", "text"), ("qid", "query", "docno")
QUERIES, DOCUMENTS = ("qid", "query"), ("docno", "title", "text")


@cache
def lucene() -> pn.LuceneIndex:
    return pn.LuceneIndex(folder() / "frames.lucene").index(CORPUS, verbose=False)


@cache
def beir() -> Path:
    path = folder() / "frames.beir"
    path.mkdir()
    pd.DataFrame(CORPUS).rename(columns={"docno": "_id"}).to_json(path / "corpus.jsonl", orient="records", lines=True)
    return path


def cross_validated() -> CrossValidated:
    queries = pd.DataFrame({"qid": [*TOPICS["qid"], "neighbour"]})
    run = queries.merge(pd.DataFrame(CORPUS)[["docno"]], how="cross").assign(score=1.0, rank=0)
    return CrossValidated(run, queries.assign(fold=0), {})


def by_vectors(name: str) -> Case:
    dimensions = fitted(name).encode_documents(["city"]).shape[1]
    return Case(fitted(name), ("qid", "query", "docno", "doc_vec"), "scores", dimensions)


CASES: dict[str, Callable[[], Case]] = {
    "BM25": lambda: Case(lucene().bm25(), QUERIES, "retrieves"),
    "BM25 by docno": lambda: Case(lucene().bm25(), BARE, "scores"),
    "QL": lambda: Case(lucene().ql(), QUERIES, "retrieves"),
    "Impact": lambda: Case(lucene().impact(), QUERIES, "retrieves"),
    "Impact by docno": lambda: Case(lucene().impact(), BARE, "scores"),
    "SDM": lambda: Case(lucene().sdm(), QUERIES, "retrieves"),
    "SDM by docno": lambda: Case(lucene().sdm(), BARE, "scores"),
    "RM3": lambda: Case(lucene().rm3(), QUERIES, "retrieves"),
    "LCE": lambda: Case(pn.LatentConceptExpansion(lucene(), filter_terms=False), QUERIES, "expands"),
    "LCE of results": lambda: Case(pn.LatentConceptExpansion(lucene()), (*BARE, "score"), "expands"),
    "text of Lucene": lambda: Case(lucene().text_loader(), ("qid", "docno"), "adds"),
    "text of a folder": lambda: Case(TextLoader(str(beir())), ("qid", "docno"), "adds"),
    "Mixture": lambda: Case(pn.Mixture(fitted("TFIDF"), normalise="zscore"), (*RESULTS, "score"), "scores"),
    "Mixture of two": lambda: Case(pn.Mixture(fitted("DSSM"), fitted("LDA"), normalise="minmax"), RESULTS, "mixes"),
    "Mixture of retrievers": lambda: Case(
        pn.Mixture(fitted("DSSM").retriever(vectors("DSSM")), lucene().bm25()), QUERIES, "mixes"
    ),
    "cross-validated": lambda: Case(cross_validated(), ("qid",), "retrieves"),
    "part of Duet": lambda: Case(fitted("Duet").local, RESULTS, "scores"),
    "parts of Duet": lambda: Case((fitted("Duet").local ** fitted("Duet").distributed).compile(), RESULTS, "adds"),
}
for name in NAMES:
    CASES[name] = lambda name=name: Case(fitted(name), RESULTS, "scores")
for name in (*RERANKS_ONLY, *LANGUAGE, *KEEPERS):
    CASES[f"{name} by docno"] = lambda name=name: Case(like(name, documents=forward()), BARE, "scores")
for name in (*LANGUAGE, *KEEPERS):
    CASES[f"{name} from all"] = lambda name=name: Case(fitted(name).retriever(vectors(name)), QUERIES, "retrieves")
for name in TOWERS:
    CASES[f"queries of {name}"] = lambda name=name: Case(fitted(name).query_encoder(), QUERIES, "adds")
    CASES[f"documents of {name}"] = lambda name=name: Case(fitted(name).doc_encoder(), ("qid", *DOCUMENTS), "adds")
    CASES[f"{name} by vectors"] = lambda name=name: by_vectors(name)

case_of = cache(lambda name: CASES[name]())


# Values, rows and frames

LETTERS = st.characters(exclude_categories=())  # of all planes, surrogates and NUL too
PLAIN = [document["text"] for document in CORPUS] + TOPICS["query"].tolist()
STRANGE = [
    "",
    " ",
    "\0",
    "\ud800",
    "\ufeffd1",
    "a\nb\r\u2028c",
    "\x1e",
    "e\u0301 \u0130 ß",
    "(title:*^1e9 AND",
    "नमस्ते 東京 𐐀",
]
HUGE = ["river city " * 20_000, "x" * 200_000, " ".join(map(str, range(3000)))]
TEXTS = st.one_of(
    st.sampled_from(PLAIN), st.text(LETTERS, max_size=30), st.sampled_from(STRANGE), st.sampled_from([*PLAIN, *HUGE])
)
MISSING = [None, np.nan, pd.NA, pd.NaT]
NUMBERS = [0, -1, 7.5, True, np.float32(2), np.int64(3), np.inf, -np.inf, 1e300, 10**400]
OTHERS = [
    1j,
    Decimal("1.5"),
    b"\xff",
    [],
    ["d1"],
    {},
    {"d1": 1},
    {"d1"},
    ("d1",),
    np.ones(2),
    pd.Timestamp("2020"),
    object(),
]
ANYTHING = st.one_of(TEXTS, st.sampled_from(MISSING), st.sampled_from(NUMBERS), st.sampled_from(OTHERS))
WEIGHTS = st.one_of(
    st.none(),
    st.dictionaries(
        st.one_of(st.sampled_from(["citi", "river", "giraff", "okapi"]), TEXTS, st.integers()),
        st.one_of(st.floats(0, 10), st.floats(), st.sampled_from([*MISSING, *NUMBERS, "1", []])),
        max_size=3,
    ),
    ANYTHING,
)
GOOD: dict[str, st.SearchStrategy] = {
    "qid": st.sampled_from(["q1", "q2", "q3", "q10"]),
    "query": TEXTS,
    "docno": st.sampled_from([document["docno"] for document in CORPUS]),
    "title": TEXTS,
    "text": TEXTS,
    "score": st.floats(-1e9, 1e9),
    "rank": st.integers(0, 10),
    "query_toks": st.dictionaries(st.sampled_from(["citi", "river", "giraff"]), st.floats(0, 10), max_size=3),
    "doc_vec": st.builds(np.full, st.just(6), st.floats(-9, 9, width=32)),
    "note": ANYTHING,
}
BAD = {"score": st.one_of(st.floats(), ANYTHING), "query_toks": WEIGHTS}
# The last rows of each frame, whose results must not depend on the others.
NEIGHBOURS = pd.DataFrame(
    {
        "qid": "neighbour",
        "query": "university city",
        "docno": ["d2", "d5"],
        "title": ["Oxford", ""],
        "text": ["Oxford is a university city.", "A ranking function."],
        "score": [2.0, 1.0],
        "rank": [0, 1],
        "query_toks": [{"citi": 1.0}] * 2,
        "doc_vec": [np.arange(6, dtype=np.float32)] * 2,
        "note": "",
    }
)


def changed(frame: pd.DataFrame, how: str, column: str, random) -> pd.DataFrame:
    """A frame that was changed in one way; as it was where that way is closed to it."""
    if how == "shuffled":
        return frame.sample(frac=1, random_state=random.randrange(2**32))
    if how == "repeated rows":
        return pd.concat([frame.iloc[random.choices(range(len(frame)), k=4)], frame])
    if how == "repeated column":
        return pd.concat([frame, frame[[column]]], axis=1)
    if how == "missing column":
        return frame.drop(columns=column)
    if how == "columns of two levels":
        return pd.concat({"a": frame}, axis=1)
    if how == "rows of two levels":
        return frame.set_axis(pd.MultiIndex.from_arrays([[1] * len(frame), range(len(frame))]))
    if how == "one label":
        return frame.set_axis([None] * len(frame))
    if how == "a column named by a number":
        return frame.assign(note=1).rename(columns={"note": 5})
    with suppress(Exception):  # not every type takes all values
        return frame.astype({column: how})
    return frame


CHANGES = ["shuffled", "repeated rows", "repeated column", "missing column", "columns of two levels"]
CHANGES += ["rows of two levels", "one label", "a column named by a number"]
CHANGES += [
    "category",
    "str",
    "string[python]",
    pd.ArrowDtype(__import__("pyarrow").string()),
    "float64",
    "Int64",
    "bytes",
]


def neighbours_of(name: str, columns: list[str]) -> pd.DataFrame:
    """The neighbours with these columns, one of them for queries."""
    found = NEIGHBOURS[columns] if "docno" in columns else NEIGHBOURS[columns][:1]
    if "doc_vec" in columns:
        found = found.assign(doc_vec=[vector[: case_of(name).dimensions] for vector in found["doc_vec"]])
    return found


@st.composite
def hostile(draw, name: str) -> pd.DataFrame:
    """A frame for a transformer, with the columns that it needs and perhaps others; its last rows are neighbours."""
    columns, dimensions = case_of(name).columns, case_of(name).dimensions
    extra = draw(st.sets(st.sampled_from(["score", "rank", "query_toks", "note"]), max_size=2))
    names = [*columns, *(column for column in extra if column not in columns)]
    bad = draw(st.sets(st.sampled_from(names), max_size=1))
    kinds = {column: BAD.get(column, ANYTHING) if column in bad else GOOD[column] for column in names}
    if "doc_vec" in kinds and "doc_vec" not in bad:
        kinds["doc_vec"] = kinds["doc_vec"].map(lambda vector: vector[:dimensions])
    rows, neighbours = draw(st.lists(st.fixed_dictionaries(kinds), max_size=6)), neighbours_of(name, names)
    values = {column: [*(row[column] for row in rows), *neighbours[column]] for column in names}
    frame = pd.DataFrame({column: pd.Series(cells, dtype=object) for column, cells in values.items()})
    if draw(st.booleans()):
        with suppress(UnicodeEncodeError):  # pandas has no strings with half a character
            frame = frame.infer_objects()
    for how in draw(st.lists(st.sampled_from(CHANGES), max_size=2)):
        column = draw(st.sampled_from(names))
        if frame.columns.nlevels == 1 and column in frame:
            frame = changed(frame, how, column, draw(st.randoms(use_true_random=False)))
    return frame


# What was promised


@cache
def of_neighbours(name: str) -> pd.DataFrame:
    return case_of(name).transformer.transform(neighbours_of(name, list(case_of(name).columns)))


def require_kept(name: str, frame: pd.DataFrame, found: pd.DataFrame) -> None:
    """Fail if a result is not what the transformer documents."""
    columns, does = case_of(name).columns, case_of(name).does
    if does in ("scores", "adds"):
        pd.testing.assert_index_equal(found.index, frame.index)
        new = [column for column in found if column not in frame.columns]
        kept = [column for column in frame if does == "adds" or column not in ("score", "rank")]
        kept = [column for column in kept if does != "adds" or column not in of_neighbours(name) or column in columns]
        assert set(frame.columns) <= set(found.columns)
        assert len(new) <= 2
        pd.testing.assert_frame_equal(found[kept], frame[kept])
    if does in ("scores", "retrieves", "mixes") and len(found):
        assert found["score"].dtype == np.float64
        assert found["rank"].dtype == np.int64
        assert np.isfinite(found["score"]).all()
        assert set(found["qid"]) <= set(frame["qid"])
    if does == "scores":
        queries, _ = pd.factorize(found["qid"].to_numpy(dtype=object))  # pandas cannot group by half a character
        for _, ranks in found.groupby(queries)["rank"]:
            assert sorted(ranks) == list(range(len(ranks)))
    if does == "expands":
        weights = [weight for terms in found["query_toks"] for weight in terms.values()]
        assert np.isfinite(weights).all()


def has_neighbours(name: str, frame: pd.DataFrame) -> bool:
    """Whether the neighbours are still in a frame with what the transformer reads."""
    columns = list(case_of(name).columns)
    own = frame[frame["qid"] == "neighbour"][columns].to_dict("records")
    expected = neighbours_of(name, columns).to_dict("records")
    return "query_toks" not in frame and all(any(_same(row, other) for other in own) for row in expected)


def _same(row: dict, other: dict) -> bool:
    return all(np.array_equal(row[column], other[column]) for column in row)


def require_same_neighbours(name: str, found: pd.DataFrame) -> None:
    """Fail if the result of the last rows depends on the others."""
    expected, own = of_neighbours(name), found[np.array([qid == "neighbour" for qid in found["qid"]], dtype=bool)]
    keys = [column for column in ("docno",) if column in expected]
    own = own.drop_duplicates(["qid", *keys]) if len(own) > len(expected) else own
    own = own.sort_values(keys) if keys else own
    expected = expected.sort_values(keys) if keys else expected
    assert len(own) == len(expected)
    for column in expected.columns.difference(NEIGHBOURS.columns).union({"score"} & set(expected)):
        for one, other in zip(own[column], expected[column], strict=True):
            if isinstance(other, str | dict):
                assert one == other if isinstance(other, str) else one == pytest.approx(other, rel=1e-5)
            else:
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def is_ours(error: Exception) -> bool:
    """Whether we have raised an error, which says what is wrong with the frame."""
    raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
    return isinstance(error, TypeError | ValueError) and raised_in.startswith(OURS) and bool(str(error))


def attack(name: str, frame: pd.DataFrame, seconds: float = SECONDS) -> str:
    """Give a frame to a transformer, and say what came of it."""
    before, started = frame.copy(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            found = case_of(name).transformer.transform(frame)
    except Exception as error:
        if not is_ours(error):
            raise
        outcome = type(error).__name__
    else:
        outcome = "a result"
        if {*case_of(name).columns} <= {*frame}:  # with other columns, it may do something else
            require_kept(name, frame, found)
            if has_neighbours(name, frame):
                require_same_neighbours(name, found)
    assert time.process_time() - started < seconds
    pd.testing.assert_frame_equal(frame, before)
    return outcome


@settings(max_examples=FRAMES, derandomize=not LONG, suppress_health_check=list(HealthCheck), print_blob=True)
@given(data=st.data())
def attacks(data: st.DataObject, outcomes: Counter) -> None:
    name = data.draw(st.sampled_from(sorted(CASES)), label="transformer")
    outcomes[attack(name, data.draw(hostile(name), label="frame"))] += 1


def test_hostile_frames(capsys):
    outcomes = Counter()
    attacks(outcomes=outcomes)
    with capsys.disabled():
        print(f"\n{outcomes.total():,} hostile frames, {len(CASES)} transformers: {dict(outcomes.most_common())}")
    assert outcomes["a result"] > outcomes.total() / 3


@pytest.mark.parametrize("name", sorted(CASES) if LONG else ["BM25 by docno", "LSA by docno", "TFIDF"])
def test_a_hundred_thousand_rows(name):
    columns = list(case_of(name).columns)
    few = TOPICS.merge(pd.DataFrame(CORPUS), how="cross").assign(score=1.0)
    few["doc_vec"] = [np.arange(case_of(name).dimensions, dtype=np.float32)] * len(few)
    rows = few[columns].iloc[np.arange(100_000) % len(few)].reset_index(drop=True)
    rows["qid"] = np.repeat([f"q{number}" for number in range(1000)], 100)
    known = pd.DataFrame({"qid": ["q1"] * 100_000}) if name == "cross-validated" else rows
    frame = pd.concat([known, neighbours_of(name, columns)], ignore_index=True)
    searches = "docno" not in columns  # a hundred thousand, some of them twice: LCE takes a millisecond for each
    assert attack(name, frame, 20 * SECONDS if searches else SECONDS) == "a result"
