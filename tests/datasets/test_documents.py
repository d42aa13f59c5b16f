import pandas as pd
import pytest

from pt_neural.datasets.documents import read_documents


def test_frames_generators_and_integers():
    documents = [{"docno": 7, "text": "x"}, {"docno": "b", "text": "y"}]
    for source in (documents, iter(documents), pd.DataFrame(documents)):
        assert [docno for docno, _ in read_documents(source)] == ["7", "b"]


def test_a_corpus_or_document_of_the_wrong_kind():
    for wrong in ("path", {"docno": "d"}, None, 3):
        with pytest.raises(TypeError, match="a corpus is an iterable of dicts"):
            list(read_documents(wrong))
    with pytest.raises(TypeError, match="a document is a dict"):
        list(read_documents(["text"]))


def test_docnos_that_no_index_could_keep():
    for docno in (None, "", 1.5, True, "a\0", "a\nb", "\ud800", "x" * 40_000):
        with pytest.raises(ValueError, match=r"document 0 \(from 0\) has"):
            list(read_documents([{"docno": docno}]))
