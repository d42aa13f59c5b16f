import pyterrier as pt

from pt_neural import LatentConceptExpansion, LuceneIndex

INDEX = LuceneIndex("nowhere")

TestBM25 = pt.testing.transformer_test_class(lambda: INDEX.bm25())
TestQL = pt.testing.transformer_test_class(lambda: INDEX.ql())
TestSDM = pt.testing.transformer_test_class(lambda: INDEX.sdm())
TestRM3 = pt.testing.transformer_test_class(lambda: INDEX.rm3())
TestLatentConceptExpansion = pt.testing.transformer_test_class(lambda: LatentConceptExpansion(INDEX))
TestTextLoader = pt.testing.transformer_test_class(lambda: INDEX.text_loader())


def test_empty_frames_have_all_columns_and_need_no_index():
    import pandas as pd

    for transformer in (INDEX.bm25(), INDEX.ql(), INDEX.sdm(), INDEX.rm3()):
        found = transformer(pd.DataFrame(columns=["qid", "query"]))
        assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
        assert found.dtypes[["score", "rank"]].tolist() == ["float64", "int64"]
        scored = transformer(pd.DataFrame(columns=["qid", "query", "docno"]))
        assert scored.dtypes[["score", "rank"]].tolist() == ["float64", "int64"]
        assert transformer.schematic()["help_url"] is None


def test_empty_frames_are_expanded_without_an_index():
    lce = LatentConceptExpansion(INDEX)
    keeping = LatentConceptExpansion(INDEX, keep_documents=True)
    queries, results = ["qid", "query"], ["qid", "query", "docno", "score", "rank"]
    for transformer, columns, expected in [
        (lce, queries, queries),
        (lce, results, queries),
        (keeping, results, results),
        (keeping, queries, queries),
    ]:
        assert pt.inspect.transformer_outputs(transformer, columns) == [*expected, "query_toks"]


def test_modes():
    assert pt.inspect.transformer_inputs(INDEX.sdm()) == [["qid", "query"], ["qid", "docno", "query"]]
    expected = [["qid", "query"], ["qid", "docno", "query", "score"]]
    assert pt.inspect.transformer_inputs(LatentConceptExpansion(INDEX)) == expected
    pipeline = INDEX.sdm() >> LatentConceptExpansion(INDEX) >> INDEX.sdm()
    found = pt.inspect.transformer_outputs(pipeline, ["qid", "query"])
    assert found == ["qid", "query", "query_toks", "docno", "score", "rank"]
