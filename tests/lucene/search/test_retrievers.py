import math
import os
import pickle
import subprocess
import sys
from types import MappingProxyType

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pt_neural import LatentConceptExpansion, LuceneIndex

OKAPI = [
    {"docno": "d1", "text": "okapi okapi river"},
    {"docno": "d2", "text": "okapi giraffe neck tail"},
    {"docno": "d3", "text": "giraffe neck"},
]


def bm25(tf, df, length, *, k1, b, documents=3, average=9 / 3):
    """Robertson's formula with Lucene's idf and without its constant factor k1 + 1."""
    idf = math.log(1 + (documents - df + 0.5) / (df + 0.5))
    return idf * tf / (tf + k1 * (1 - b + b * length / average))


def dirichlet(tf, cf, length, *, mu, tokens=9):
    """Zhai & Lafferty's sum over matching terms, collection probabilities as in Lucene, at least 0."""
    p = (cf + 1) / (tokens + 1)
    return max(0.0, math.log(1 + tf / (mu * p)) + math.log(mu / (length + mu)))


def scores(frame):
    return dict(zip(frame["docno"], frame["score"], strict=True))


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (2.0, 0.0)])
def test_bm25_is_the_formula(build, k1, b):
    found = scores(build(OKAPI).bm25(k1=k1, b=b).search("okapi river"))
    assert found["d1"] == pytest.approx(bm25(2, 2, 3, k1=k1, b=b) + bm25(1, 1, 3, k1=k1, b=b), rel=1e-6)
    assert found["d2"] == pytest.approx(bm25(1, 2, 4, k1=k1, b=b), rel=1e-6)
    assert set(found) == {"d1", "d2"}


@pytest.mark.parametrize("mu", [1000, 10])
def test_query_likelihood_is_the_formula_and_uses_mu(build, mu):
    found = scores(build(OKAPI).ql(mu=mu).search("okapi river"))
    assert found["d1"] == pytest.approx(dirichlet(2, 3, 3, mu=mu) + dirichlet(1, 1, 3, mu=mu), rel=1e-5)
    assert found["d2"] == pytest.approx(dirichlet(1, 3, 4, mu=mu), rel=1e-4, abs=1e-7)


def test_frames_of_retrieval(index, topics):
    found = index.bm25()(topics.assign(extra=[1, 2, 3]))
    assert list(found.columns) == ["qid", "query", "extra", "docno", "score", "rank"]
    assert found.dtypes[["score", "rank"]].tolist() == [np.float64, np.int64]
    assert found.groupby("qid")["rank"].apply(list).tolist() == [[0, 1, 2], [0, 1], [0]]
    assert found["qid"].tolist() == ["q1"] * 3 + ["q2"] * 2 + ["q3"]


def test_fields_of_their_own(index):
    assert index.bm25(field="title").search("giraffes").docno.tolist() == ["d3"]
    with pytest.raises(ValueError, match="no field 'body'; it has contents, title"):
        index.bm25(field="body").search("giraffe")


def test_queries_that_find_nothing(index):
    queries = ["okapi", "", "   ", None, float("nan"), "the", "zebra", "!?*:(", "\0"]
    frame = pd.DataFrame({"qid": range(9), "query": pd.Series(queries, dtype=object)})
    for transformer in (index.bm25(), index.ql(), index.sdm(), index.rm3(fb_terms=2)):
        found = transformer(frame)
        assert set(found["qid"]) == {0}
        assert found["docno"].iloc[0] == "d4"


def test_queries_are_text_and_never_syntax(index):
    queries = ["okapi AND NOT (", 'title:"okapi', "okapi^100", "+okapi -the /.*/", "😀 okapi \ud800", "a\nokapi\n"]
    frame = pd.DataFrame({"qid": range(6), "query": pd.Series(queries, dtype=object)})
    found = index.bm25()(frame)
    assert found[found["docno"] == "d4"]["qid"].tolist() == list(range(6))
    assert index.bm25()(pd.DataFrame({"qid": [1], "query": [25]})).empty


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.none(), st.text()), min_size=1, max_size=5))
def test_any_queries_are_answered_row_by_row(index, queries):
    frame = pd.DataFrame({"qid": range(len(queries)), "query": pd.Series(queries, dtype=object)})
    batch = index.bm25()(frame)
    alone = [index.bm25()(frame.iloc[[i]]) for i in range(len(frame))]
    pd.testing.assert_frame_equal(batch, pd.concat(alone, ignore_index=True), check_dtype=False)


def test_long_queries(index):
    words = " ".join(f"word{number}" for number in range(5_000))
    assert index.bm25().search(words + " okapi")["docno"].tolist() == ["d4"]


def test_equal_qids_are_answered_one_by_one(index):
    frame = pd.DataFrame({"qid": ["q", "q"], "query": ["okapi", "ranking"]})
    assert index.bm25()(frame)["docno"].tolist() == ["d4", "d5"]


def test_weighted_terms(build):
    index = build(OKAPI)
    frame = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query_toks": [{"okapi": 2.0, "neck": 0.5}, {}, None]})
    found = index.bm25()(frame)
    single = {term: scores(index.bm25().search(term)) for term in ("okapi", "neck")}
    assert set(found["qid"]) == {"q1"}
    for docno, score in scores(found).items():
        assert score == pytest.approx(2 * single["okapi"].get(docno, 0) + 0.5 * single["neck"].get(docno, 0))
    rescored = index.bm25()(found)
    assert rescored["score"].tolist() == found["score"].tolist()
    with pytest.raises(ValueError, match="weight of 'okapi' is -1"):
        index.bm25()(pd.DataFrame({"qid": ["q1"], "query_toks": [{"okapi": -1}]}))
    for weights, kind, message in (
        ({"okapi": 1e300}, ValueError, r"BM25.*row 1 \(from 0\) of column 'query_toks': .* is 1e\+300, not from 0"),
        ({"okapi": float("nan")}, ValueError, "weight of 'okapi' is nan"),
        ({"okapi": None}, TypeError, "weight of 'okapi' is None, not a number"),
        (["okapi"], TypeError, "row 1 .* holds .'okapi'., not a dict"),
    ):
        with pytest.raises(kind, match=message):
            index.bm25()(pd.DataFrame({"qid": ["q1", "q2"], "query_toks": [{}, weights]}))


IMPOSSIBLE = {
    "bm25": [{"num_results": 0}, {"num_results": 10.0}, {"k1": -1}, {"b": 2}],
    "ql": [{"mu": 0}, {"mu": float("nan")}],
    "sdm": [
        {"base": "tfidf"},
        {"weights": (1, 2)},
        {"weights": (0, 0.5, 0.5)},
        {"weights": (0.8, 0.2, float("nan"))},
        {"weights": "abc"},
        {"window": 1},
        {"window": "8"},
    ],
    "impact": [{"num_results": 0}],
    "rm3": [{"base": "tfidf"}, {"fb_docs": 0}, {"original_weight": 1.5}],
}


@pytest.mark.parametrize("method", IMPOSSIBLE)
def test_impossible_settings_are_refused_at_once(index, method):
    for options in IMPOSSIBLE[method]:
        with pytest.raises(ValueError, match=f"{next(iter(options))}(=| must be )"):
            getattr(index, method)(**options)


def test_short_names_equality_and_pickles(index):
    name = index.path.name
    assert repr(index.bm25()) == f"BM25('{name}', k1=0.9, b=0.4)"
    assert repr(index.ql(mu=5, field="title", num_results=7)) == f"QL('{name}', mu=5, field='title', num_results=7)"
    for make in (index.bm25, index.ql, index.impact, index.sdm, index.rm3, index.text_loader):
        assert make() == make()
        assert hash(make()) == hash(make())
        assert pickle.loads(pickle.dumps(make())) == make()
    different = {
        index.bm25(),
        index.bm25(k1=1),
        index.ql(),
        index.impact(),
        index.sdm(),
        index.sdm("bm25"),
        index.rm3(),
    }
    assert len(different) == 7
    assert LuceneIndex(index.path, stemmer="none").bm25() != index.bm25()


def test_weights_in_a_list_are_those_in_a_tuple(index):
    given, set_later = index.sdm(weights=[0.5, 0.3, 0.2]), index.sdm()
    set_later.weights = [0.5, 0.3, 0.2]  # as a grid search does
    assert len({given, set_later, index.sdm(weights=(0.5, 0.3, 0.2))}) == 1
    assert given.search("okapi").equals(set_later.search("okapi"))


def test_rank_cutoffs_reach_lucene(index, topics):
    pipeline = index.bm25() % 2
    fused = pipeline.compile()
    assert fused.num_results == 2
    pd.testing.assert_frame_equal(fused(topics), pipeline(topics), check_like=True)
    candidates = index.ql()(topics)
    assert len(fused(candidates)) == len(pipeline(candidates)) == 5
    assert index.bm25(num_results=2).fuse_rank_cutoff(3) is None


def test_grid_search_sets_attributes(index, topics):
    qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})
    bm25 = index.bm25()
    pt.GridSearch(bm25, {bm25: {"k1": [0.1, 2.0], "b": [0.1]}}, topics, qrels, "map", verbose=False)
    assert scores(bm25.search("okapi")) == scores(index.bm25(k1=bm25.k1, b=bm25.b).search("okapi"))


def test_grid_search_takes_numpys_integers(index, topics):
    qrels = pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]})
    lce = LatentConceptExpansion(index)
    grids = {index.bm25(): "num_results", index.rm3(): "fb_docs", index.rocchio(): "fb_terms", lce: "fb_docs"}
    for transformer, name in grids.items():
        pipeline = (
            transformer if name == "num_results" else transformer >> index.sdm() if transformer is lce else transformer
        )
        grid = {transformer: {name: np.arange(1, 3)}}
        pt.GridSearch(pipeline, grid, topics, qrels, "map", verbose=False)
        assert isinstance(getattr(transformer, name), np.integer)
        assert len(pipeline(topics)) > 0


def test_any_mapping_has_the_weights_of_a_query(index):
    rows = [pd.DataFrame({"qid": ["q1"], "query_toks": [kind({"okapi": 2.0})]}) for kind in (MappingProxyType, dict)]
    found, expected = (index.bm25()(frame) for frame in rows)
    assert len(found) == 1
    assert found["score"].tolist() == expected["score"].tolist()


ANY_LOCALE = """
import sys
from pt_neural import LuceneIndex, verify
index = LuceneIndex(sys.argv[1] + "/\\u00fc % 1").index([{"docno": "d1", "text": "okapi"}], verbose=False)
verify(index.path)
print(*index.bm25().search("okapi")["docno"])
"""


@pytest.mark.long
def test_paths_may_have_letters_that_the_locale_has_not(tmp_path):
    command = [sys.executable, "-c", ANY_LOCALE, tmp_path]
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout == "d1\n", done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["\u00fc % 1"]


LONG_QUERY = """
import sys
import pandas as pd
from pt_neural import LatentConceptExpansion, LuceneIndex
index = LuceneIndex(sys.argv[1])
lce = LatentConceptExpansion(index)
first = {"bm25": index.bm25(), "ql": index.ql(), "sdm": index.sdm(), "rm3": index.rm3(), "lce": lce}[sys.argv[2]]
query = " ".join(f"word{i}" for i in range(5_000)) + " okapi"
found = first.search(query)
print(len(found["query_toks"][0]) if first is lce else found["docno"].tolist())
"""


@pytest.mark.parametrize(
    "first", ["bm25", *(pytest.param(name, marks=pytest.mark.long) for name in ("ql", "sdm", "rm3", "lce"))]
)
def test_the_first_query_of_a_process_may_have_thousands_of_words(index, first):
    command = [sys.executable, "-c", LONG_QUERY, index.path, first]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout.strip() in ("['d4']", "5001"), done.stderr


def test_weights_may_have_terms_of_any_length(index):
    topics = pd.DataFrame({"qid": ["1"], "query_toks": [{"okapi": 1.0, "x" * 60_000: 1.0}]})
    assert index.bm25()(topics)["docno"].tolist() == ["d4"]


@pytest.mark.parametrize("number", [7, 2**31 - 1, 2**40])
def test_any_number_of_results(index, number):
    expected = index.bm25().search("the university city river")
    for retriever in (index.bm25(num_results=number), (index.bm25(num_results=number) % number).compile()):
        pd.testing.assert_frame_equal(retriever.search("the university city river"), expected)
    assert len(index.sdm(num_results=number).search("university city")) == 3
    assert len(index.rm3(num_results=number, fb_docs=number, fb_terms=number).search("university city")) >= 3
