"""SSI's scores against q'Wd, where q, d and W are made by the equations of the paper (section 2.2)."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.models.bilinear_shape import PRIME
from pt_neural.text import tokenise

WORDS = "sea ship war port sail crew mast reef deck keel gulf tide buoy oar".split()
QUICK = {"epochs": 2, "num_negatives": 3, "verbose": False, "learning_rate": 0.2}


def collection(seed: int = 1) -> tuple[pd.DataFrame, pd.DataFrame, list[dict[str, str]]]:
    """Topics, judgements and documents: words of falling frequency, some texts with none that is known."""
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, len(WORDS) + 1)

    def text(least: int, most: int) -> str:
        return " ".join(random.choice(WORDS, size=random.integers(least, most), p=chances / chances.sum()))

    texts = [*(text(3, 9) for _ in range(24)), "", "oar"]
    documents = [{"docno": f"d{(7 * number) % 26:02}", "text": text} for number, text in enumerate(texts)]
    queries = [*(text(1, 5) for _ in range(8)), "oar reef", "sea sea sea war"]
    topics = pd.DataFrame({"qid": [f"q{number}" for number in range(10)], "query": queries})
    relevant = [documents[number]["docno"] for number in random.permutation(24)[:10]]
    return topics, pd.DataFrame({"qid": topics["qid"], "docno": relevant, "label": 1}), documents


TOPICS, QRELS, DOCUMENTS = collection()
CANDIDATES = TOPICS.merge(pd.DataFrame(DOCUMENTS), how="cross")
UNSEEN = [*TOPICS["query"], "keel zebra tide keel", "ship?", "zebra", ""]

CASES = {
    "D": {"kind": "diagonal"},
    "W": {"kind": "full"},
    "W from 0": {"kind": "full", "identity": False},
    "W of two vocabularies": {"kind": "full", "shared_vocabulary": False},
    "sparse": {"kind": "sparse", "nonzeros": 4, "rounds": 2},
    "sparse of two vocabularies": {"kind": "sparse", "nonzeros": 4, "rounds": 1, "shared_vocabulary": False},
    "U'U + I": {"kind": "symmetric"},
    "U'U": {"kind": "symmetric", "identity": False},
    "(U'U)_5 + I": {"kind": "symmetric", "embedded_terms": 5},
    "U'V + I": {},
    "U'V": {"identity": False},
    "(U'V)_5 + I": {"embedded_terms": 5},
    "U'V of two vocabularies": {"shared_vocabulary": False},
    "U'V + D": {"kind": "low-rank-diagonal"},
    "(U'V)_5 + D": {"kind": "low-rank-diagonal", "embedded_terms": 5},
    "hash": {"kind": "hash", "hash_size": 23, "identity": False},
    "hash + αI": {"kind": "hash", "hash_size": 23},
    "hash of two vocabularies": {"kind": "hash", "hash_size": 23, "shared_vocabulary": False},
    "raw frequencies": {"sublinear_tf": False},
    "fewer words": {"kind": "full", "max_terms": 6, "min_count": 2},
}
FITTED: dict[str, pn.SSI] = {}


def fitted(case: str) -> pn.SSI:
    if case not in FITTED:
        FITTED[case] = pn.SSI(**{"dim": 3, **CASES[case]}, training=pn.Training(**QUICK)).fit(CANDIDATES, QRELS)
    return FITTED[case]


def vector(text: str, words: list[str], texts: list[str], sublinear_tf: bool) -> np.ndarray:
    """A tf-idf vector of length 1 over ``words``, with document frequencies in ``texts``."""
    weights, held = np.zeros(len(words)), tokenise(text)
    for place, word in enumerate(words):
        if tf := held.count(word):
            df = sum(word in tokenise(other) for other in texts)
            weights[place] = (1 + math.log(tf) if sublinear_tf else tf) * (math.log((1 + len(texts)) / (1 + df)) + 1)
    return weights / (np.linalg.norm(weights) or 1)


def explicit(model: pn.SSI) -> np.ndarray:
    """The whole W from the weights of the network, by the equation of its kind."""
    weights = {name: weight.numpy().astype(float) for name, weight in model.network.state_dict().items()}
    queries, documents = len(model.features.queries.vocabulary), len(model.features.documents.vocabulary)
    U, V = np.zeros((model.dim, queries)), np.zeros((model.dim, documents))
    U[:, : len(weights["query_vectors"])] = weights["query_vectors"].reshape(-1, model.dim).T
    V[:, : len(weights["document_vectors"])] = weights["document_vectors"].reshape(-1, model.dim).T
    identity = np.eye(queries, documents) if model.identity else 0
    if model.kind == "hash":
        W = np.array([[weights["pairs"][(s * PRIME + t) % 23] for t in range(documents)] for s in range(queries)])
        return W + weights["identity"][0] * identity
    if model.kind == "sparse":
        W, starts = np.zeros((queries, documents)), weights["sparse_starts"].astype(int)
        for s in range(queries):
            row = slice(starts[s], starts[s + 1])
            W[s, weights["sparse_columns"][row].astype(int)] = weights["sparse_values"][row]
        return W
    equations = {
        "diagonal": lambda: np.diag(weights["diagonal"]),
        "full": lambda: weights["pairs"].reshape(queries, documents),
        "symmetric": lambda: U.T @ U + identity,
        "low-rank": lambda: U.T @ V + identity,
        "low-rank-diagonal": lambda: U.T @ V + np.diag(weights["diagonal"]),
    }
    return equations[model.kind]()


def by_hand(model: pn.SSI, queries: list[str], texts: list[str]) -> np.ndarray:
    """q'Wd of all pairs; NaN where a document has no known word with any weight."""
    own, others = model.features.documents.vocabulary.terms, [document["text"] for document in DOCUMENTS]
    d = np.array([vector(text, own, others, model.sublinear_tf) for text in texts])
    words, counted = own, others
    if not model.shared_vocabulary:
        words, counted = model.features.queries.vocabulary.terms, TOPICS["query"].tolist()
    q = np.array([vector(query, words, counted, model.sublinear_tf) for query in queries])
    return np.where(d.any(axis=1), q @ explicit(model) @ d.T, np.nan)


@pytest.fixture(params=CASES)
def model(request) -> pn.SSI:
    return fitted(request.param)


def frame_of(queries: list[str], documents: list[dict[str, str]]) -> pd.DataFrame:
    topics = pd.DataFrame({"qid": [str(number) for number in range(len(queries))], "query": queries})
    return topics.merge(pd.DataFrame(documents), how="cross")


def test_scores_are_q_w_d(model, tmp_path):
    frame = frame_of(UNSEEN, DOCUMENTS)
    expected = by_hand(model, UNSEEN, [document["text"] for document in DOCUMENTS]).ravel()
    only_latent = model.kind in ("low-rank", "symmetric") and not model.identity
    assert np.isnan(expected).sum() >= len(UNSEEN)
    found = model.transform(frame)["score"].to_numpy()
    np.testing.assert_allclose(found, np.nan_to_num(expected, nan=-100), atol=1e-5)
    assert len(np.unique(found.round(4))) > 40
    assert only_latent == (model.weigh_documents(["sea"]).terms is None)

    forward = pn.ForwardIndex.build(tmp_path / "forward", DOCUMENTS, verbose=False)
    vectors = model.index(tmp_path / "vectors", forward, verbose=False)
    for name, kept in (("documents", forward), ("vectors", vectors)):
        setattr(model, name, kept)
        again = model.transform(frame[["qid", "query", "docno"]])["score"]
        setattr(model, name, None)
        np.testing.assert_allclose(again, found, atol=1e-5)


def test_retrieval_is_brute_force(model, tmp_path):
    vectors = model.index(tmp_path / "vectors", DOCUMENTS, verbose=False)
    texts = [document["text"] for document in DOCUMENTS]
    scores, weighed = by_hand(model, UNSEEN, texts), model.weigh_queries(UNSEEN)
    of_single_words = model.kind in ("diagonal", "sparse")
    documents = model.weigh_documents(texts).terms
    expected = []
    for number, row in enumerate(scores):
        found = [place for place in range(len(texts)) if not np.isnan(row[place]) and np.nan_to_num(row).any()]
        if of_single_words:  # a document is found if it has a word for which the query speaks
            shared = (abs(weighed.terms[[number]]) @ abs(documents).T).toarray()[0] > 0
            found = [place for place in found if shared[place]]
        found.sort(key=lambda place: (-round(row[place], 5), DOCUMENTS[place]["docno"]))
        expected += [(str(number), DOCUMENTS[place]["docno"], row[place]) for place in found[:9]]
    topics = pd.DataFrame({"qid": [str(number) for number in range(len(UNSEEN))], "query": UNSEEN})
    found = model.retriever(vectors, num_results=9).transform(topics)
    assert list(zip(found["qid"], found["docno"], strict=True)) == [one[:2] for one in expected]
    np.testing.assert_allclose(found["score"], [one[2] for one in expected], atol=1e-5)
    assert found["qid"].nunique() >= 9


def test_word_weights_are_w(model):
    W, weights = explicit(model), model.word_weights()
    np.testing.assert_allclose(weights, W, atol=1e-5)
    assert weights.index.tolist() == model.features.queries.vocabulary.terms
    assert weights.columns.tolist() == model.features.documents.vocabulary.terms
    some = model.word_weights(["war", "sea"], ["ship", "port", "war"])
    np.testing.assert_allclose(some, weights.loc[["war", "sea"], ["ship", "port", "war"]], atol=1e-6)


def test_neighbours_are_rows_and_columns_of_w(model):
    weights = model.word_weights()
    for side, expected in (("query", weights.loc["war"]), ("document", weights["war"])):
        found = model.neighbours("war", k=3, side=side)
        largest = np.sort(expected)[:-4:-1]
        np.testing.assert_allclose(found["weight"], largest[largest > 0], atol=1e-6)
        np.testing.assert_allclose(expected[found["word"]], found["weight"], atol=1e-6)


def test_hashed_pairs_share_their_weights():
    weights = fitted("hash").word_weights().to_numpy()
    places = np.add.outer(np.arange(len(weights)) * PRIME, np.arange(weights.shape[1])) % 23
    assert len(np.unique(weights.round(6))) <= 23 < weights.size
    for place in range(23):
        assert np.ptp(weights[places == place]) < 1e-6
    assert len(np.unique(weights.round(6))) > 10


def test_correlated_hashing_adds_a_second_model():
    options = {"dim": 3, "hashed_dim": 2, "embedded_terms": 5, "bins": 2}
    model = pn.SSI("correlated-hash", **options, training=pn.Training(**QUICK)).fit(CANDIDATES, QRELS)
    words, texts = model.features.documents.vocabulary.terms, [document["text"] for document in DOCUMENTS]
    weights = {name: weight.numpy() for name, weight in model.network.state_dict().items()}
    near = np.zeros((len(words), 5))
    for number in range(len(words)):
        for word in model.dice_neighbours(words[number], k=2)["word"]:
            near[number, words.index(word)] += 1
    q, d = (np.array([vector(text, words, texts, True) for text in some]) for some in (UNSEEN, texts))
    hashed = model.features.of_queries(UNSEEN)[1].toarray(), model.features.of_documents(texts)[1].toarray()
    for found, a in zip(hashed, (q @ near, d @ near), strict=True):  # algorithm 1, whatever the length
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(found, axis=1)
        np.testing.assert_allclose((a * found).sum(axis=1), lengths, atol=1e-5)
        np.testing.assert_array_equal(a.any(axis=1), found.any(axis=1))
    W = np.eye(len(words))
    W[:5, :5] += weights["query_vectors"] @ weights["document_vectors"].T
    second = weights["hashed_query_vectors"] @ weights["hashed_document_vectors"].T
    expected = q @ W @ d.T + weights["mixing"][0] * hashed[0] @ second @ hashed[1].T
    expected[:, ~d.any(axis=1)] = -100
    found = model.transform(frame_of(UNSEEN, DOCUMENTS))["score"]
    np.testing.assert_allclose(found, expected.ravel(), atol=1e-5)
    assert weights["mixing"][0] != 1
    of_words = model.features.of_queries(words)[1].toarray()
    np.testing.assert_allclose(
        model.word_weights(), W + weights["mixing"][0] * of_words @ second @ of_words.T, atol=1e-5
    )


# What W is before it has learned


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "diagonal"},
        {"kind": "full"},
        {"kind": "sparse", "nonzeros": 1},
        {"kind": "hash"},
        {"kind": "low-rank", "deviation": 1e-9},
        {"kind": "symmetric", "deviation": 1e-9},
        {"kind": "low-rank-diagonal", "deviation": 1e-9},
        {"kind": "correlated-hash", "deviation": 1e-9, "embedded_terms": 5},
    ],
)
def test_w_starts_at_the_cosine_of_tf_idf(options):
    slow = pn.Training(epochs=1, learning_rate=1e-12, verbose=False)
    model = pn.SSI(**options, dim=3, training=slow).fit(CANDIDATES, QRELS)
    tfidf = pn.TFIDF(sublinear_tf=True).fit_corpus(DOCUMENTS, verbose=False)
    expected = tfidf.transform(CANDIDATES)["score"]
    known = (CANDIDATES["text"] != "").to_numpy()
    np.testing.assert_allclose(model.transform(CANDIDATES)["score"][known], expected[known], atol=1e-6)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize(("deviation", "expected"), [(None, 0.1), (1.0, 1.0), (0.03, 0.03)])
def test_first_vectors_are_drawn_with_a_deviation(deviation, expected, alike):
    """The paper's start is a deviation of 1 for each of U and V (section 2.3.2)."""
    slow = pn.Training(epochs=1, learning_rate=1e-12, verbose=False)
    model = pn.SSI(dim=100, deviation=deviation, alike=alike, training=slow).fit(CANDIDATES, QRELS)
    tables = [table.numpy() for table in (model.network.query_vectors, model.network.document_vectors)]
    for table in tables:
        assert table.std() == pytest.approx(expected, rel=0.08)
    correlation = np.corrcoef(tables[0].ravel(), tables[1].ravel())[0, 1]
    assert correlation == pytest.approx(1, abs=1e-6) if alike else abs(correlation) < 0.1


def test_latent_vectors_are_u_q_and_v_d():
    model = fitted("U'V + I")
    words, texts = model.features.documents.vocabulary.terms, [document["text"] for document in DOCUMENTS]
    q = np.array([vector(query, words, texts, True) for query in UNSEEN])
    np.testing.assert_allclose(model.encode_queries(UNSEEN), q @ model.network.query_vectors.numpy(), atol=1e-5)
    d = np.array([vector(text, words, texts, True) for text in texts])
    np.testing.assert_allclose(model.encode_texts(texts), d @ model.network.document_vectors.numpy(), atol=1e-5)
    queries = model.query_encoder().transform(TOPICS)["query_vec"]
    np.testing.assert_allclose(np.stack(queries), model.encode_queries(TOPICS["query"].tolist()), atol=1e-6)
    documents = model.doc_encoder().transform(pd.DataFrame(DOCUMENTS))["doc_vec"]
    np.testing.assert_allclose(np.stack(documents), model.encode_texts(texts), atol=1e-6)
    with pytest.raises(ValueError, match="kind='full' has no latent vectors; symmetric, low-rank, "):
        fitted("W").encode_queries(["sea"])


@pytest.mark.parametrize("names", [[], ["TFIDF", "LSA", "Training", "DSSM", "ForwardIndex"]])
def test_only_ssi_loads_the_compiler(names):
    code = f"import sys, pt_neural as pn; [getattr(pn, name) for name in {names}]; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
