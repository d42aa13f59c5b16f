"""Shards that are searched apart: the frames are those of the whole index, to the bit."""

from operator import methodcaller

import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from pt_neural._files import ArtifactError
from pt_neural.lucene.index.statistics import add_statistics
from pt_neural.lucene.search.sharded import ShardedRetriever, ShardGroup, merge_fields


@pytest.fixture
def apart(in_shards):
    """Return a retriever of shards that are searched in groups of three at most."""

    def apart(retriever):
        parts = retriever.index.parts
        groups = [ShardGroup(parts[start : start + 3]) for start in range(0, len(parts), 3)]
        fields = merge_fields([group.fields() for group in groups])
        return ShardedRetriever(retriever, lambda *call: list(map(methodcaller(*call), groups)), fields)

    return apart


def retrievers(index):
    yield from (index.bm25(num_results=20), index.bm25(k1=2, b=0, field="title"), index.bm25(field="note"))
    yield from (index.ql(mu=50), index.sdm(num_results=50), index.sdm("bm25", window=4), index.sdm(field="title"))


@pytest.mark.parametrize("number", [1, 2, 4, 7])
def test_retrieval_equals_that_of_the_whole(whole, in_shards, apart, word_topics, number):
    for expected, ours in zip(retrievers(whole), map(apart, retrievers(in_shards(number))), strict=True):
        frame = expected(word_topics)
        assert len(frame) > 10
        assert_frame_equal(ours(word_topics), frame, check_exact=True)


def test_rows_and_weighted_terms_are_scored_as_in_the_whole(whole, in_shards, apart, word_topics):
    rows = whole.bm25(num_results=30)(word_topics).sample(frac=1, random_state=3)
    weighted = word_topics.assign(query_toks=[{"word1": 1.0, "word7": 0.3}] * 20 + [{"word2": 1.0}] * 13)
    for expected, ours in zip(retrievers(whole), map(apart, retrievers(in_shards(4))), strict=True):
        for frame in (rows, weighted, rows.assign(query_toks=[{"word3": 2.0}] * len(rows)), rows[:0], word_topics[:0]):
            assert_frame_equal(ours(frame), expected(frame), check_exact=True)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.none(), st.text(), st.text("w\u00e9 1.'\u2028\x1c\n-_word")), min_size=1, max_size=4))
def test_any_queries(whole, in_shards, apart, queries):
    frame = pd.DataFrame({"qid": range(len(queries)), "query": pd.Series(queries, dtype=object)})
    for expected, ours in ((whole.bm25(), in_shards(2).bm25()), (whole.sdm(), in_shards(2).sdm())):
        assert_frame_equal(apart(ours)(frame), expected(frame), check_exact=True)


def test_queries_in_several_blocks_with_repeated_qids(whole, in_shards, apart, word_topics):
    many = pd.concat([word_topics] * 14).assign(qid=[f"q{i // 2}" for i in range(33 * 14)], extra=1)
    ours = apart(in_shards(2).ql(num_results=3))
    assert_frame_equal(ours(many), whole.ql(num_results=3)(many), check_exact=True)
    rows = ours(many).sample(frac=1, random_state=5)
    assert_frame_equal(ours(rows), whole.ql(num_results=3)(rows), check_exact=True)


def test_texts_stay_at_home(in_shards, word_topics):
    index, sent = in_shards(2), []
    group = ShardGroup(index.parts)

    def call(method, retriever, frame, *others):
        sent.append(list(frame.columns))
        return [getattr(group, method)(retriever, frame, *others)]

    bm25 = ShardedRetriever(index.bm25(), call, group.fields())
    found = bm25(word_topics.assign(text="long"))
    assert (found["text"] == "long").all()
    assert list(bm25(found).columns) == list(found.columns)
    assert sent == [["qid", "query"]] * 2 + [["qid", "query", "docno"]] * 2


def test_statistics_of_shards_add_up(whole, in_shards, word_topics):
    expected = whole.sdm().statistics(word_topics)
    assert expected.terms["word0"][0] > 200
    assert any(documents for documents, _ in expected.windows.values())
    shards = in_shards(4)
    parts = [ShardGroup([part]).statistics(shards.sdm(), word_topics, whole.field_options) for part in shards.parts]
    assert add_statistics(parts) == expected
    assert parts[0] != expected


def test_local_statistics_would_score_differently(whole, in_shards, word_topics):
    """That the tests above can fail."""
    part = ShardGroup(in_shards(4).parts[:1])
    bm25, fields = whole.bm25(), whole.field_options
    local, globally = part.statistics(bm25, word_topics, fields), bm25.statistics(word_topics)
    by_local, by_global = (part.search(bm25, word_topics, fields, statistics) for statistics in (local, globally))
    assert (by_local.scores != by_global.scores).mean() > 0.9


def test_errors_are_those_of_one_index(in_shards, apart, word_topics, build, corpus):
    with pytest.raises(ValueError, match="no field 'body'; it has contents, note, title"):
        apart(in_shards(2).bm25(field="body"))(word_topics)
    rows = word_topics.assign(docno=["d001", "nowhere", None] * 11)
    with pytest.raises(ValueError, match=r"2 docnos are not in .*'nowhere'"):
        apart(in_shards(2).bm25())(rows)
    with pytest.raises(ValueError, match=r"33 docnos are not in .*, such as 0, 1, .*; docnos are strings, not numbers"):
        apart(in_shards(2).bm25())(word_topics.assign(docno=range(33)))
    with pytest.raises(pt.validate.InputValidationError, match="query"):
        apart(in_shards(2).bm25())(word_topics[["qid"]])
    without = build(corpus, positions=False, vectors=False, store_text=False)
    with pytest.raises(ValueError, match="without positions"):
        apart(without.sdm())(word_topics)


def test_it_is_a_transformer_like_its_retriever(in_shards, apart, word_topics, capfd):
    bm25 = apart(in_shards(2).bm25(verbose=True))
    assert repr(bm25) == "BM25('index', k1=0.9, b=0.4)"
    assert bm25 == apart(in_shards(2).bm25())
    assert hash(bm25) == hash(apart(in_shards(2).bm25()))
    assert bm25 != apart(in_shards(2).bm25(b=0))
    assert pt.inspect.transformer_outputs(bm25, ["qid", "query"]) == ["qid", "query", "docno", "score", "rank"]
    assert "num_results=2" in repr((bm25 % 2).compile())
    assert_frame_equal((bm25 % 2).compile()(word_topics), (bm25 % 2)(word_topics))
    assert "BM25('index'" in capfd.readouterr().err


def test_a_rebuilt_shard_is_refused(own_index, corpus, topics):
    group = ShardGroup([own_index.path])
    bm25, fields = own_index.bm25(), group.fields()
    statistics = group.statistics(bm25, topics, fields)
    own_index.index(corpus[2:], verbose=False, overwrite=True)
    with pytest.raises(ArtifactError, match="was rebuilt; open it again"):
        group.search(bm25, topics, fields, statistics)
    with pytest.raises(ArtifactError, match="was rebuilt"):
        group.score(bm25, topics.assign(docno="d1"), fields, statistics)
