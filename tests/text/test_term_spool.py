import numpy as np
import pytest

from pt_neural._files import ArtifactError
from pt_neural.text import Vocabulary, term_spool
from pt_neural.text.term_spool import TermSpool, load_sequences


@pytest.mark.parametrize("block", [3, 1000])
def test_spooled_tokens_come_back_as_ids(tmp_path, monkeypatch, block):
    monkeypatch.setattr(term_spool, "_BLOCK", block)
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
