"""Rankers of the form q'Wd, with a W that a test can multiply out, against the explicit product for each pair."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from scipy.sparse import csr_array

import pt_neural as pn
from pt_neural.rankers import BilinearRanker, TermVectors, collection_scores, retriever, weighed
from pt_neural.rankers.fingerprint import fingerprint
from pt_neural.rankers.weighed import Weighed, products
from pt_neural.text import Vocabulary, tokenise
from pt_neural.text.tf_idf import TfIdf

WORDS = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"]
UNKNOWN = "zebra ?"


class Toy(BilinearRanker):
    """q'Wd where W is whole, low-rank with or without a diagonal, or a diagonal, over eight words."""

    artifact_format = "toy"
    least_score = -2.0

    def __init__(self, kind: str = "low-rank-diagonal", seed: int = 1, **options):
        self.kind, self.seed = kind, seed
        random = np.random.default_rng(seed)
        self.u, self.v = random.normal(size=(2, 8, 3)).astype("f4")
        self.u[4:] = self.v[4:] = 0  # the second half of the words is only on the diagonal
        self.diagonal = random.normal(size=8).astype("f4")
        self.whole = random.normal(size=(8, 8)).astype("f4")
        self.tf_idf = TfIdf(Vocabulary.build([[word] for word in WORDS]), sublinear_tf=False)
        super().__init__(**options)

    @property
    def matrix(self) -> np.ndarray:
        """W."""
        low_rank, diagonal = self.u @ self.v.T, np.diag(self.diagonal)
        kinds = {"low-rank": low_rank, "diagonal": diagonal, "whole": self.whole}
        return kinds.get(self.kind, low_rank + diagonal)

    def weigh_queries(self, texts):
        q = self.tf_idf.of_texts(texts)
        if self.kind == "whole":
            return Weighed(None, q @ self.whole)
        latent = None if self.kind == "diagonal" else q @ self.u
        return Weighed(latent, None if self.kind == "low-rank" else csr_array(q * self.diagonal))

    def weigh_documents(self, texts):
        return self._of_vectors(self.tf_idf.of_texts(texts))

    def weigh_sequences(self, sequences, vocabulary):
        return self.weigh_documents([" ".join(vocabulary.terms[i] for i in sequence) for sequence in sequences])

    def _of_vectors(self, d):
        return Weighed(d @ self.v if self.kind.startswith("low") else None, None if self.kind == "low-rank" else d)

    def settings(self):
        return {"kind": self.kind, "seed": self.seed}

    def fingerprint(self):
        return fingerprint(["toy", self.kind], {"W": self.matrix})

    def _save_parts(self, directory):
        pass

    def __repr__(self):
        return f"Toy({self.kind!r})"


KINDS = ["whole", "low-rank", "low-rank-diagonal", "diagonal"]


def texts(number: int, words: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=random.integers(1, words))) for _ in range(number)]


def corpus() -> list[dict[str, str]]:
    known = texts(40, 7, seed=2)
    known[7] = known[30] = known[3]  # of three docnos whose order is not that of the collection
    known[11] = known[19] = UNKNOWN
    known[12] = "hen"  # without a latent vector
    return [{"docno": f"d{(17 * number) % 40:02}", "text": text} for number, text in enumerate(known)]


def topics() -> pd.DataFrame:
    queries = [*texts(9, 4, seed=3), UNKNOWN, "ant"]
    return pd.DataFrame({"qid": [f"q{i}" for i in range(len(queries))], "query": queries})


def by_hand(model: Toy, query: str, text: str) -> float:
    """q'Wd, from counts; every word has the same idf here."""
    q, d = (np.array([tokenise(side).count(word) for word in WORDS], dtype=float) for side in (query, text))
    lengths = np.linalg.norm(q) * np.linalg.norm(d)
    return q @ model.matrix.astype(float) @ d / lengths if lengths else 0.0


def brute_force(model: Toy, num_results: int) -> list[tuple[str, str, float]]:
    """All pairs that are to be found: sorted by score, then docno."""
    found = []
    for topic in topics().itertuples():
        hits = []
        for document in corpus():
            known = set(WORDS[:4] if model.kind == "low-rank" else WORDS)  # the others have no latent vector
            query, text = (known & set(tokenise(side)) for side in (topic.query, document["text"]))
            if not query or not text or (model.kind == "diagonal" and not query & text):
                continue
            hits.append((-round(by_hand(model, topic.query, document["text"]), 5), document["docno"]))
        found += [(topic.qid, docno, -score) for score, docno in sorted(hits)[:num_results]]
    return found


def candidates() -> pd.DataFrame:
    return topics().merge(pd.DataFrame(corpus()), how="cross")


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_q_w_d(kind, tmp_path):
    model, frame = Toy(kind), candidates()
    expected = [by_hand(model, *pair) for pair in zip(frame["query"], frame["text"], strict=True)]
    known = set(WORDS[:4] if kind == "low-rank" else WORDS)
    expected = np.where([bool(known & set(tokenise(text))) for text in frame["text"]], expected, -2)
    np.testing.assert_allclose(model.transform(frame)["score"], expected, atol=1e-5)
    bare = frame[["qid", "query", "docno"]]
    vectors = model.index(tmp_path / "vectors", corpus(), verbose=False)
    forward = pn.ForwardIndex.build(tmp_path / "forward", corpus(), verbose=False)
    for options in ({"vectors": vectors}, {"vectors": tmp_path / "vectors"}, {"documents": forward, "batch_size": 7}):
        np.testing.assert_allclose(Toy(kind, **options).transform(bare)["score"], expected, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_do_not_depend_on_blocks(kind, monkeypatch):
    expected = Toy(kind).transform(candidates())
    monkeypatch.setattr(weighed, "QUERIES_PER_BLOCK", 2)
    monkeypatch.setattr(weighed, "ROWS_PER_BLOCK", 7)
    pd.testing.assert_frame_equal(Toy(kind, batch_size=3).transform(candidates()), expected)


@pytest.mark.parametrize("few", [0, 1 / 3, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_retrieval_is_brute_force(kind, few, tmp_path, monkeypatch):
    monkeypatch.setattr(collection_scores, "FEW", few)  # by rows, as it is, by postings
    model = Toy(kind)
    vectors = model.index(tmp_path / "vectors", corpus(), verbose=False)
    for num_results in (1, 6, 1000):
        found = model.retriever(vectors, num_results=num_results).transform(topics())
        expected = brute_force(model, num_results)
        assert list(zip(found["qid"], found["docno"], strict=True)) == [hit[:2] for hit in expected]
        np.testing.assert_allclose(found["score"], [hit[2] for hit in expected], atol=2e-5)
        assert (found["rank"] == found.groupby("qid").cumcount()).all()
        assert "q9" not in set(found["qid"])


@pytest.mark.parametrize("kind", KINDS)
def test_retrieval_does_not_depend_on_blocks(kind, tmp_path, monkeypatch):
    model = Toy(kind)
    vectors = model.index(tmp_path / "vectors", corpus(), verbose=False)
    expected = model.retriever(vectors).transform(topics())
    monkeypatch.setattr(collection_scores, "QUERIES_PER_PRODUCT", 2)
    monkeypatch.setattr(retriever, "SCORES_PER_BLOCK", 3 * len(corpus()))
    found = model.retriever(vectors).transform(topics())
    pd.testing.assert_frame_equal(found[["qid", "docno"]], expected[["qid", "docno"]])
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-6)


def test_retrieval_weighs_a_block_of_queries_at_a_time(tmp_path, monkeypatch):
    model, weighed_at_once = Toy("whole"), []
    weigh = model.weigh_queries
    monkeypatch.setattr(model, "weigh_queries", lambda texts: weighed_at_once.append(len(texts)) or weigh(texts))
    monkeypatch.setattr(weighed, "QUERIES_PER_BLOCK", 3)
    found = model.retriever(model.index(tmp_path / "vectors", corpus(), verbose=False)).transform(topics())
    assert weighed_at_once == [3] * (len(topics()) // 3) + [len(topics()) % 3] * (len(topics()) % 3 > 0)
    assert list(zip(found["qid"], found["docno"], strict=True)) == [hit[:2] for hit in brute_force(model, 1000)]


def test_documents_whose_terms_cancel_are_found(tmp_path):
    model = Toy("diagonal")
    model.diagonal[:2] = 1, -1
    documents = [{"docno": "a", "text": "ant bee"}, {"docno": "b", "text": "cat"}, {"docno": "c", "text": "bee"}]
    vectors = model.index(tmp_path / "vectors", documents, verbose=False)
    found = model.retriever(vectors).search("ant bee")
    assert found["docno"].tolist() == ["a", "c"]
    assert found["score"].tolist() == pytest.approx([0, -(0.5**0.5)], abs=1e-6)


def test_latent_vectors_are_a_vector_index(tmp_path):
    vectors = Toy().index(tmp_path / "vectors", corpus(), verbose=False)
    docnos, matrix, _ = vectors.dense.payload()
    assert list(docnos) == [document["docno"] for document in corpus()]
    np.testing.assert_allclose(matrix, Toy().weigh_documents([d["text"] for d in corpus()]).latent, atol=1e-6)
    assert Toy("diagonal").index(tmp_path / "lexical", corpus(), verbose=False).dense is None


def test_kept_vectors_of_another_model_are_refused(tmp_path):
    vectors = Toy().index(tmp_path / "vectors", corpus(), verbose=False)
    for use in (lambda: Toy(seed=2).retriever(vectors), lambda: Toy(seed=2, vectors=vectors)):
        with pytest.raises(ValueError, match="made by another model than this Toy"):
            use()
    model = Toy()
    found = model.retriever(vectors)
    model.diagonal = model.diagonal + 1
    with pytest.raises(ValueError, match="before it was fitted anew"):
        found.transform(topics())
    with pytest.raises(TypeError, match=r"what model\.index\(path, corpus\) gave"):
        Toy(vectors=3)


def test_queries_of_another_width_are_refused():
    queries = Weighed(None, csr_array(np.ones((1, 3), "f4")))
    with pytest.raises(ValueError, match="query vectors have 3 dimensions, document vectors 4"):
        products(queries, np.array([0]), Weighed(None, csr_array(np.ones((1, 4), "f4"))), np.array([0]))


def test_a_corpus_and_its_forward_index_have_the_same_vectors(tmp_path):
    forward = pn.ForwardIndex.build(tmp_path / "forward", corpus(), verbose=False)
    one = Toy().index(tmp_path / "one", iter(corpus()), verbose=False)
    two = Toy(batch_size=3).index(tmp_path / "two", forward, verbose=False)
    assert one.docno_list == two.docno_list
    np.testing.assert_allclose(one.terms.toarray(), two.terms.toarray(), atol=1e-6)
    np.testing.assert_allclose(one.weighed.latent, two.weighed.latent, atol=1e-6)


def test_indexing_reads_and_weighs_a_batch_at_a_time(tmp_path, monkeypatch):
    model, read, weighed_texts = Toy(batch_size=16), [], []
    weigh = model.weigh_documents
    monkeypatch.setattr(
        model, "weigh_documents", lambda some: weighed_texts.append((len(read), len(some))) or weigh(some)
    )
    model.index(tmp_path / "vectors", (read.append(document) or document for document in corpus()), verbose=False)
    assert weighed_texts == [(16, 16), (32, 16), (40, 8)]


def test_a_cut_off_retrieves_no_more(tmp_path):
    found = Toy().retriever(Toy().index(tmp_path / "vectors", corpus(), verbose=False))
    fused = (found % 3).compile()
    assert "num_results=3" in repr(fused)
    pd.testing.assert_frame_equal(fused.transform(topics()), (found % 3).transform(topics()))


def test_retrievers_are_equal_where_they_find_the_same(tmp_path):
    model = Toy()
    vectors = model.index(tmp_path / "vectors", corpus(), verbose=False)
    assert model.retriever(vectors) == model.retriever(tmp_path / "vectors")
    assert len({model.retriever(vectors), model.retriever(vectors), model.retriever(vectors, num_results=5)}) == 2
    assert pickle.loads(pickle.dumps(model.retriever(vectors))).search("ant")["docno"].tolist()
    assert len(pickle.dumps(vectors)) < 200
    assert isinstance(pt.Artifact.load(str(tmp_path / "vectors")), TermVectors)


def test_retrieval_shows_progress(tmp_path, capfd):
    model = Toy()
    model.retriever(model.index(tmp_path / "vectors", corpus()), verbose=True).transform(topics())
    shown = capfd.readouterr().err
    assert "Toy('low-rank-diagonal') vectors" in shown
    assert "retriever" in shown
