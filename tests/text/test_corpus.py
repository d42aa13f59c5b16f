import numpy as np
import pandas as pd
import pytest

from pt_neural._files import ArtifactError
from pt_neural.text import Vocabulary, corpus, read_documents
from pt_neural.text.corpus import TermSpool, load_sequences


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


@pytest.mark.parametrize("block", [3, 1000])
def test_spooled_tokens_come_back_as_ids(tmp_path, monkeypatch, block):
    monkeypatch.setattr(corpus, "_BLOCK", block)
    documents = [["b", "a", "b"], [], ["c", "a"], ["b", "d", "d", "c"]]
    with TermSpool(tmp_path) as spool:
        for tokens in documents:
            spool.append(tokens)
        vocabulary = spool.finish(min_count=2, max_terms=3)
    expected = Vocabulary.build(documents, min_count=2, max_terms=3)
    assert vocabulary.terms == expected.terms == ["b", "a", "c"]
    for name in ("collection_frequency", "document_frequency"):
        np.testing.assert_array_equal(getattr(vocabulary, name), getattr(expected, name))
    assert vocabulary.num_documents == 4
    assert [ids.tolist() for ids in load_sequences(tmp_path)] == [expected.ids(tokens).tolist() for tokens in documents]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["offsets.npy", "terms.npy"]
    (tmp_path / "terms.npy").write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"terms\.npy is damaged"):
        load_sequences(tmp_path)
