"""TFIDF against cosines computed word by word."""

import json
import math
import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from joblib import Parallel, delayed

import pt_neural as pn
from pt_neural._artifacts import ArtifactError
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


def test_only_documents_that_share_a_word_are_found(corpus, topics, candidates, tmp_path):
    model = fitted(corpus)
    found = model.retriever(model.index(tmp_path / "vectors", corpus, verbose=False)).transform(topics)
    scored = model.transform(candidates).sort_values(["qid", "rank"])
    expected = scored[scored["score"] > 0].reset_index(drop=True)
    assert 0 < len(expected) < len(scored)
    pd.testing.assert_frame_equal(found[["qid", "docno", "rank"]], expected[["qid", "docno", "rank"]])
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-6)


def test_ties_are_by_docno_at_the_cut_off_too(tmp_path):
    corpus = [{"docno": f"d{number}", "text": "river city"} for number in (5, 2, 9, 1)]
    model = fitted([*corpus, {"docno": "x", "text": "sea"}])
    vectors = model.index(tmp_path / "vectors", corpus, verbose=False)
    assert model.retriever(vectors, num_results=2).search("city")["docno"].tolist() == ["d1", "d2"]
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


def test_save_and_load_give_the_same_scores(corpus, candidates, tmp_path):
    model = fitted(corpus, sublinear_tf=True, max_terms=20, fields="text")
    model.save(tmp_path / "tfidf.pn")
    for loaded in (pn.TFIDF.load(tmp_path / "tfidf.pn"), pt.Artifact.load(str(tmp_path / "tfidf.pn"))):
        pd.testing.assert_frame_equal(loaded.transform(candidates), model.transform(candidates))
        assert (loaded.sublinear_tf, loaded.min_count, loaded.max_terms, loaded.fields) == (True, 1, 20, ("text",))
    with pytest.raises(ValueError, match="sublinear_tf cannot be changed by loading"):
        pn.TFIDF.load(tmp_path / "tfidf.pn", sublinear_tf=False)


@pytest.mark.parametrize("name", ["config.json", "pt_meta.json", "vocabulary/terms.txt", "vocabulary/counts.json"])
def test_missing_and_cut_files_are_named(corpus, tmp_path, name):
    fitted(corpus).save(tmp_path / "tfidf.pn")
    path = tmp_path / "tfidf.pn" / name
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ArtifactError, match=f"{path.name} is damaged"):
        pn.TFIDF.load(tmp_path / "tfidf.pn")
    path.unlink()
    with pytest.raises(ArtifactError, match=f"{path.name} is missing"):
        pn.TFIDF.load(tmp_path / "tfidf.pn")


def test_a_vocabulary_that_nobody_counted_is_named(corpus, tmp_path):
    fitted(corpus).save(tmp_path / "tfidf.pn")
    path = tmp_path / "tfidf.pn" / "vocabulary" / "counts.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "counted": []}))
    with pytest.raises(ArtifactError, match=r"counts\.json is damaged: no document frequencies"):
        pn.TFIDF.load(tmp_path / "tfidf.pn")


@pytest.mark.parametrize(("name", "value"), [("sublinear_tf", True), ("min_count", 2), ("max_terms", 5)])
def test_a_fitted_model_is_not_another_one(corpus, candidates, tmp_path, name, value):
    model = fitted(corpus)
    before, expected = getattr(model, name), model.transform(candidates)
    setattr(model, name, value)
    for use in (lambda: model.transform(candidates), lambda: model.save(tmp_path / "tfidf.pn")):
        with pytest.raises(RuntimeError, match=f"{name} of .* changed after fit_corpus: fit again"):
            use()
    setattr(model, name, before)
    pd.testing.assert_frame_equal(model.transform(candidates), expected)
    setattr(model, name, value)
    assert model.fit_corpus(corpus, verbose=False).transform(candidates)["score"].notna().all()


def test_fitting_again_forgets_the_first_collection(corpus, candidates, forward):
    model = fitted([{"docno": "e", "text": "engine wheel city"}])
    model.documents = forward
    bare = candidates[["qid", "query", "docno"]]
    before = model.transform(bare)["score"]
    model.fit_corpus(corpus, verbose=False)
    np.testing.assert_allclose(model.transform(bare)["score"], fitted(corpus).transform(candidates)["score"], atol=1e-6)
    assert not np.allclose(before, model.transform(bare)["score"])


def test_clear_errors(corpus, candidates, tmp_path):
    for setting in ("min_count", "max_terms"):
        with pytest.raises(ValueError, match=f"{setting} must be at least 1"):
            pn.TFIDF(**{setting: 0})
    with pytest.raises(ValueError, match="one of True, False"):
        pn.TFIDF(sublinear_tf="log")
    with pytest.raises(ValueError, match=r"no term of the 6 documents occurs at least 99 times; give more documents"):
        fitted(corpus, min_count=99)
    for use in (
        lambda: pn.TFIDF().transform(candidates),
        lambda: pn.TFIDF().index(tmp_path / "vectors", iter(corpus), verbose=False),
        lambda: pn.TFIDF().save(tmp_path / "tfidf.pn"),
    ):
        with pytest.raises(RuntimeError, match=r"call tfidf\.fit_corpus\(docs\.get_corpus_iter\(\)\)"):
            use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_pickles_and_workers(corpus, topics, tmp_path, backend):
    model = fitted(corpus)
    model.vectors = model.index(tmp_path / "vectors", corpus, verbose=False)
    found = model.retriever(model.vectors)
    expected = found.transform(topics)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(found)).transform(topics), expected)
    for again in Parallel(n_jobs=2, backend=backend)(delayed(found.transform)(topics) for _ in range(2)):
        pd.testing.assert_frame_equal(again, expected)


def test_mixtures_with_latent_semantic_analysis(corpus, topics, candidates, tmp_path):
    tfidf, lsa = fitted(corpus), pn.LSA(dim=3, min_count=1).fit_corpus(corpus, verbose=False)
    reranked = (tfidf >> pn.Mixture(lsa, alpha=0.25)).transform(candidates)
    sides = 0.25 * lsa.transform(candidates)["score"] + 0.75 * tfidf.transform(candidates)["score"]
    np.testing.assert_allclose(reranked["score"], sides, atol=1e-6)
    np.testing.assert_allclose(
        pn.Mixture(lsa, tfidf, alpha=0.25).transform(candidates)["score"].sort_values(), sides.sort_values(), atol=1e-6
    )
    latent = lsa.retriever(lsa.index(tmp_path / "latent", corpus, verbose=False))
    lexical = tfidf.retriever(tfidf.index(tmp_path / "lexical", corpus, verbose=False))
    found = pn.Mixture(latent, lexical, alpha=0.5).transform(topics)
    assert len(found) == len(candidates)
    best = found[found["rank"] == 0].set_index("qid")["docno"]
    assert best.to_dict() == {"q1": "d2", "q2": "d3", "q3": "d5"}
    assert pt.inspect.transformer_inputs(lexical) == [["qid", "query"]]
    assert "TFIDF" in pt.schematic.draw(tfidf)
    assert "BilinearRetriever" in pt.schematic.draw(lexical)
