import pyterrier as pt

from pt_neural import LuceneIndex

INDEX = LuceneIndex("nowhere")

TestBM25 = pt.testing.transformer_test_class(lambda: INDEX.bm25())
TestQL = pt.testing.transformer_test_class(lambda: INDEX.ql())
TestSDM = pt.testing.transformer_test_class(lambda: INDEX.sdm())
TestRM3 = pt.testing.transformer_test_class(lambda: INDEX.rm3())
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


def test_modes():
    assert pt.inspect.transformer_inputs(INDEX.sdm()) == [["qid", "query"], ["qid", "docno", "query"]]
