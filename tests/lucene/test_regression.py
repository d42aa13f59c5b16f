"""Anserini's published figures on CACM: https://github.com/castorini/anserini, docs/regressions."""

import re
import shutil

import ir_measures
import numpy as np
import pandas as pd
import pytest
from ir_measures import AP, P

from pt_neural import LatentConceptExpansion, LuceneIndex


@pytest.fixture(scope="module")
def cacm(collections, tmp_path_factory):
    """The index as Anserini's regression builds it, its topics and its judgements."""
    folder = tmp_path_factory.mktemp("cacm")
    shutil.copy(collections / "cacm" / "anserini" / "cacm.tar.gz", folder)
    index = LuceneIndex(folder / "index")
    source = folder / "source"
    source.mkdir()
    shutil.move(folder / "cacm.tar.gz", source)
    index.index_collection("HtmlCollection", source, raw=True, verbose=False)
    text = (collections / "cacm" / "anserini" / "topics.cacm.txt").read_text()
    topics = re.findall(r"<DOCNO>\s*(\S+)\s*</DOCNO>(.*?)</DOC>", text, flags=re.DOTALL)
    qrels = list(ir_measures.read_trec_qrels(str(collections / "cacm" / "anserini" / "qrels.cacm.txt")))
    return index, pd.DataFrame(topics, columns=["qid", "query"]), qrels


def evaluate(found, qrels):
    """MAP and P@30 with ties by ascending docno, as in Anserini's runs; trec_eval and we have them the other way."""
    found = found.sort_values(["score", "docno"], ascending=[False, True])
    run = found.rename(columns={"qid": "query_id", "docno": "doc_id"}).assign(score=-np.arange(len(found)))
    measured = ir_measures.calc_aggregate([AP, P @ 30], qrels, run[["query_id", "doc_id", "score"]])
    return round(measured[AP], 4), round(measured[P @ 30], 4)


def test_the_index_is_anserinis(cacm):
    index, topics, _ = cacm
    assert (len(index), len(topics)) == (3204, 64)
    assert "CACM-0001" in index.docnos()
    loaded = index.text_loader(["raw"])(pd.DataFrame({"docno": ["CACM-0001"]}))
    assert "Preliminary Report" in loaded["raw"][0]


@pytest.mark.parametrize(
    ("model", "figures"),
    [
        ("bm25", (0.3123, 0.1942)),
        ("ql", (0.3265, 0.1942)),
        pytest.param("bm25+rm3", (0.3648, 0.2224), marks=pytest.mark.long),
        pytest.param("ql+rm3", (0.3629, 0.2250), marks=pytest.mark.long),
    ],
)
def test_published_figures(cacm, model, figures):
    index, topics, qrels = cacm
    base, _, feedback = model.partition("+")
    retriever = index.rm3(base) if feedback else getattr(index, base)()
    assert evaluate(retriever(topics), qrels) == figures


@pytest.mark.long
def test_sdm_improves_on_its_base_and_expansion_on_sdm(cacm):
    index, topics, qrels = cacm
    sdm, plain = index.sdm(), index.ql()
    found = sdm(topics)
    assert evaluate(found, qrels)[0] > evaluate(plain(topics), qrels)[0]
    expanded = (LatentConceptExpansion(index) >> sdm)(found)
    assert evaluate(expanded, qrels)[0] > evaluate(found, qrels)[0] + 0.01
    assert evaluate(index.sdm("bm25")(topics), qrels)[0] > evaluate(index.bm25()(topics), qrels)[0]
