import numpy as np
import pandas as pd
import pytest

from pt_neural.text import ForwardIndex, PackedSequences, Vocabulary, tokenise
from pt_neural.text.counts import bag_of_words, count_corpus


def test_counts_known_terms_and_stores_no_zeros():
    sequences = PackedSequences.from_lists([[1, 0, 1, -1], [], [-1], [2, 5, 2, 2]])
    counts = bag_of_words(sequences, 3)
    assert counts.toarray().tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 3]]
    assert counts.dtype == np.float32
    assert counts.nnz == 3
    assert bag_of_words(PackedSequences.from_lists([]), 3).shape == (0, 3)


@pytest.mark.parametrize("limits", [{}, {"min_count": 2}, {"max_terms": 5}, {"min_count": 2, "max_terms": 100}])
def test_corpus_frame_and_forward_index_agree_with_a_vocabulary(corpus, tmp_path, monkeypatch, limits):
    monkeypatch.setattr("pt_neural.text.counts._BLOCK", 4)
    forward = ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)
    tokens = [tokenise(f"{document['title']} {document['text']}") for document in corpus]
    expected = Vocabulary.build(tokens, **limits)
    for source in (iter(corpus), pd.DataFrame(corpus), forward):
        vocabulary, counts = count_corpus(source, verbose=False, **limits)
        assert vocabulary.terms == expected.terms
        assert vocabulary.document_frequency.tolist() == expected.document_frequency.tolist()
        assert vocabulary.num_documents == 6
        assert counts.toarray().tolist() == [[words.count(term) for term in expected.terms] for words in tokens]


def test_only_the_named_fields_are_counted(corpus):
    vocabulary, _ = count_corpus(corpus, fields=["title"], verbose=False)
    assert sorted(vocabulary.terms) == ["bm25", "cambridge", "giraffes", "okapi", "oxford", "rivers"]


def test_bad_corpora_are_refused(corpus):
    with pytest.raises(ValueError, match="no documents"):
        count_corpus([], verbose=False)
    with pytest.raises(ValueError, match="occurs twice"):
        count_corpus([corpus[0], corpus[0]], verbose=False)
