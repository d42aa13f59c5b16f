"""TFIDF against cosines computed word by word."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.text import tokenise


def fitted(corpus, **options) -> pn.TFIDF:
    return pn.TFIDF(**options).fit_corpus(corpus, verbose=False)


def whole_text(document) -> str:
    return f"{document['title']} {document['text']}"


@pytest.fixture
def candidates(corpus, topics) -> pd.DataFrame:
    return topics.merge(pd.DataFrame(corpus), how="cross")


@pytest.fixture
def forward(tmp_path, corpus) -> pn.ForwardIndex:
    return pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)


class Reference:
    """Section 2.1 of the SSI paper: normalised tf-idf vectors as dicts, and their dot product."""

    def __init__(self, texts: list[str], sublinear_tf: bool = False):
        self.sublinear_tf = sublinear_tf
        self.documents = [set(tokenise(text)) for text in texts]

    def vector(self, text: str) -> dict[str, float]:
        words, weights = tokenise(text), {}
        for word in words:
            df = sum(word in document for document in self.documents)
            if df:
                tf = 1 + math.log(words.count(word)) if self.sublinear_tf else words.count(word)
                weights[word] = tf * (math.log((1 + len(self.documents)) / (1 + df)) + 1)
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()}

    def score(self, query: str, text: str) -> float:
        q, d = self.vector(query), self.vector(text)
        return sum(weight * d.get(word, 0) for word, weight in q.items())


@pytest.mark.parametrize("sublinear_tf", [False, True])
def test_scores_are_cosines(corpus, candidates, forward, tmp_path, sublinear_tf):
    reference = Reference([whole_text(document) for document in corpus], sublinear_tf)
    model = fitted(corpus, sublinear_tf=sublinear_tf)
    frame = candidates.assign(query=candidates["query"] + " the the giraffe city of unseen words")
    expected = [reference.score(row.query, whole_text(row._asdict())) for row in frame.itertuples()]
    np.testing.assert_allclose(model.transform(frame)["score"], expected, atol=1e-6)
    bare = frame[["qid", "query", "docno"]]
    model.documents = forward
    np.testing.assert_allclose(model.transform(bare)["score"], expected, atol=1e-6)
    vectors = model.index(tmp_path / "vectors", forward, verbose=False)
    model.documents, model.vectors = None, vectors
    np.testing.assert_allclose(model.transform(bare)["score"], expected, atol=1e-6)


def test_a_text_is_nearest_to_itself(corpus, tmp_path):
    model = fitted(corpus)
    vectors = model.index(tmp_path / "vectors", corpus, verbose=False)
    queries = pd.DataFrame({"qid": [d["docno"] for d in corpus], "query": [whole_text(d) for d in corpus]})
    first = model.retriever(vectors, num_results=1).transform(queries)
    assert first["docno"].tolist() == queries["qid"].tolist()
    np.testing.assert_allclose(first["score"], 1, atol=1e-6)


def test_ties_are_by_descending_docno_at_the_cut_off_too_and_what_shares_no_word_is_not_found(tmp_path):
    corpus = [{"docno": f"d{number}", "text": "river city"} for number in (5, 2, 9, 1)]
    model = fitted([*corpus, {"docno": "x", "text": "sea"}])
    vectors = model.index(tmp_path / "vectors", corpus, verbose=False)
    assert model.retriever(vectors, num_results=2).search("city")["docno"].tolist() == ["d9", "d5"]
    assert model.retriever(vectors).search("sea").empty
    assert model.retriever(vectors).search("unseen").empty


def test_rare_and_rarest_terms_may_be_left_out(corpus, forward):
    model = fitted(corpus, min_count=2, max_terms=5)
    for source in (iter(corpus), pd.DataFrame(corpus), forward):
        again = fitted(source, min_count=2, max_terms=5)
        assert again.vocabulary.terms == model.vocabulary.terms
        assert again.fingerprint() == model.fingerprint()
    assert len(model.vocabulary) == 5
    assert "ranking" not in model.vocabulary
    frame = pd.DataFrame({"qid": "1", "query": ["the", "ranking"], "docno": "d", "text": "the ranking"})
    assert model.transform(frame)["score"].tolist() == pytest.approx([1, 0], abs=1e-6)


def test_missing_and_damaged_files_are_named(corpus, tmp_path):
    fitted(corpus).save(tmp_path / "tfidf.pn")
    counts = tmp_path / "tfidf.pn" / "vocabulary" / "counts.json"
    counts.write_text(json.dumps({**json.loads(counts.read_text()), "counted": []}))
    with pytest.raises(ArtifactError, match=r"counts\.json is damaged: no document frequencies"):
        pn.TFIDF.load(tmp_path / "tfidf.pn")
    path = tmp_path / "tfidf.pn" / "vocabulary" / "terms.txt"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ArtifactError, match=r"terms\.txt is damaged"):
        pn.TFIDF.load(tmp_path / "tfidf.pn")
    path.unlink()
    with pytest.raises(ArtifactError, match=r"terms\.txt is missing"):
        pn.TFIDF.load(tmp_path / "tfidf.pn")


def test_clear_errors(corpus):
    for setting in ("min_count", "max_terms"):
        with pytest.raises(ValueError, match=f"{setting} must be at least 1"):
            pn.TFIDF(**{setting: 0})
    with pytest.raises(ValueError, match="one of True, False"):
        pn.TFIDF(sublinear_tf="log")
    with pytest.raises(ValueError, match=r"no term of the 6 documents occurs at least 99 times; give more documents"):
        fitted(corpus, min_count=99)
    with pytest.raises(RuntimeError, match=r"call tfidf\.fit_corpus\(docs\.get_corpus_iter\(\)\)"):
        pn.TFIDF().represent_queries(["city"])
    with pytest.raises(ValueError, match=r"TFIDF\(\) has no dense vectors"):
        fitted(corpus).encode_queries(["city"])
