"""Anserini's published figures on CACM: https://github.com/castorini/anserini, docs/regressions."""

import re
import shutil

import ir_measures
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, P

from pt_neural import LuceneIndex


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
    """MAP and P@30. trec_eval would order ties by falling docno; Anserini and we return them the other way."""
    run = found.rename(columns={"qid": "query_id", "docno": "doc_id"}).assign(score=-found["rank"])
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
        ("bm25+rm3", (0.3648, 0.2224)),
        ("ql+rm3", (0.3629, 0.2250)),
    ],
)
def test_published_figures(cacm, model, figures):
    index, topics, qrels = cacm
    base, _, feedback = model.partition("+")
    retriever = index.rm3(base) if feedback else getattr(index, base)()
    assert evaluate(retriever(topics), qrels) == figures


def test_sdm_improves_on_its_base(cacm):
    index, topics, qrels = cacm
    for base in ("ql", "bm25"):
        plain, sdm = getattr(index, base)(), index.sdm(base)
        assert evaluate(sdm(topics), qrels)[0] > evaluate(plain(topics), qrels)[0]


def test_sdm_improves_on_query_likelihood_on_vaswani(collections, tmp_path):
    dataset = pt.get_dataset(f"neural:folder:{collections / 'vaswani'}")
    index = LuceneIndex(tmp_path / "index").index(dataset.get_corpus_iter(verbose=False), verbose=False)
    qrels = dataset.get_qrels().rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    topics = dataset.get_topics()
    assert evaluate(index.sdm()(topics), qrels)[0] > evaluate(index.ql()(topics), qrels)[0]


def test_collections_that_anserini_does_not_know(collections, tmp_path):
    index = LuceneIndex(tmp_path / "index")
    with pytest.raises(ValueError, match="not a directory"):
        index.index_collection("HtmlCollection", tmp_path / "none")
    with pytest.raises(ValueError, match="cannot start"):
        index.index_collection("NoSuchCollection", collections / "cacm" / "anserini")
    with pytest.raises(ValueError, match="refuses"):
        index.index_collection("HtmlCollection", collections / "cacm" / "anserini", options=["-noSuchOption"])
    assert list(tmp_path.iterdir()) == []
