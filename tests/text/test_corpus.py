import pandas as pd
import pytest

from pt_neural.text import read_documents


def test_frames_generators_and_integers():
    documents = [{"docno": 7, "text": "x"}, {"docno": "b", "text": "y"}]
    for corpus in (documents, iter(documents), pd.DataFrame(documents)):
        assert [docno for docno, _ in read_documents(corpus)] == ["7", "b"]


@pytest.mark.parametrize("corpus", ["path", {"docno": "d"}, None, 3])
def test_a_corpus_of_the_wrong_kind(corpus):
    with pytest.raises(TypeError, match="a corpus is an iterable of dicts"):
        list(read_documents(corpus))


def test_a_document_of_the_wrong_kind():
    with pytest.raises(TypeError, match="a document is a dict"):
        list(read_documents(["text"]))


@pytest.mark.parametrize("docno", [None, "", 1.5, True, "a\0", "a\nb", "\ud800", "x" * 40_000])
def test_docnos_that_no_index_could_keep(docno):
    with pytest.raises(ValueError, match=r"document 0 \(from 0\) has"):
        list(read_documents([{"docno": docno}]))
