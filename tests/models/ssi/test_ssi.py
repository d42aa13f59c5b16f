"""SSI's scores against q'Wd, where q, d and W are made by the equations of the paper; what it refuses and keeps."""

import math
import subprocess
import sys
from shutil import rmtree

import numpy as np
import pandas as pd
import pytest
import torch

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.models.ssi import ssi
from pt_neural.models.ssi.network import PRIME
from pt_neural.models.ssi.ssi import KINDS, OF_ONE_VOCABULARY, WITH_VECTORS
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
TEXTS = [document["text"] for document in DOCUMENTS]
CANDIDATES = TOPICS.merge(pd.DataFrame(DOCUMENTS), how="cross")
UNSEEN = [*TOPICS["query"], "keel zebra tide keel", "ship?", "zebra", ""]

CASES = {
    "D": {"kind": "diagonal"},
    "W without a diagonal": {"kind": "off-diagonal"},
    "W from 0": {"kind": "full", "identity": False},
    "W of two vocabularies": {"kind": "full", "shared_vocabulary": False},
    "W of fewer words": {"kind": "full", "max_terms": 6, "min_count": 2},
    "sparse": {"kind": "sparse", "nonzeros": 4, "rounds": 2},
    "(U'U)_5 + I": {"kind": "symmetric", "embedded_terms": 5},
    "U'V + I": {},
    "U'V": {"identity": False},
    "(U'V)_5 + I": {"embedded_terms": 5},
    "U'V of two vocabularies": {"shared_vocabulary": False},
    "(U'V)_5 + D": {"kind": "low-rank-diagonal", "embedded_terms": 5, "sublinear_tf": False},
    "hash + αI": {"kind": "hash", "hash_size": 23},
    "hash of two vocabularies": {"kind": "hash", "hash_size": 23, "shared_vocabulary": False},
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
    """The whole W from the arrays of the network, by the equation of its kind."""
    arrays = {name: array.astype(float) for name, array in model.network.arrays().items()}
    queries, documents = len(model.features.queries.vocabulary), len(model.features.documents.vocabulary)
    U, V = np.zeros((model.dim, queries)), np.zeros((model.dim, documents))
    if model.kind in WITH_VECTORS:
        U[:, : len(arrays["query_vectors"])] = arrays["query_vectors"].T
        V[:, : len(arrays["document_vectors"])] = arrays["document_vectors"].T
    identity = np.eye(queries, documents) if model.identity else 0
    if model.kind == "hash":
        W = np.array([[arrays["pairs"][(s * PRIME + t) % 23] for t in range(documents)] for s in range(queries)])
        return W + arrays["identity"][0] * identity
    if model.kind == "sparse":
        W, starts = np.zeros((queries, documents)), arrays["sparse_starts"].astype(int)
        for s in range(queries):
            row = slice(starts[s], starts[s + 1])
            W[s, arrays["sparse_columns"][row].astype(int)] = arrays["sparse_values"][row]
        return W
    equations = {
        "diagonal": lambda: np.diag(arrays["diagonal"]),
        "full": lambda: arrays["pairs"].reshape(queries, documents),
        "off-diagonal": lambda: arrays["pairs"].reshape(queries, documents),
        "symmetric": lambda: U.T @ U + identity,
        "low-rank": lambda: U.T @ V + identity,
        "low-rank-diagonal": lambda: U.T @ V + np.diag(arrays["diagonal"]),
    }
    return equations[model.kind]()


def by_hand(model: pn.SSI, queries: list[str], texts: list[str]) -> np.ndarray:
    """q'Wd of all pairs; NaN where a document has no known word with any weight."""
    own = model.features.documents.vocabulary.terms
    d = np.array([vector(text, own, TEXTS, model.sublinear_tf) for text in texts])
    words, counted = own, TEXTS
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


def test_scores_are_q_w_d(model):
    expected = by_hand(model, UNSEEN, TEXTS).ravel()
    only_latent = model.kind in ("low-rank", "symmetric") and not model.identity
    assert np.isnan(expected).sum() >= len(UNSEEN)
    found = model.transform(frame_of(UNSEEN, DOCUMENTS))["score"].to_numpy()
    np.testing.assert_allclose(found, np.nan_to_num(expected, nan=-100), atol=1e-5)
    assert len(np.unique(found.round(4))) > 40
    assert only_latent == (model.represent_texts(["sea"]).sparse is None)


def test_word_weights_are_w_and_neighbours_its_rows_and_columns(model):
    W, weights = explicit(model), model.word_weights()
    np.testing.assert_allclose(weights, W, atol=1e-5)
    assert weights.index.tolist() == model.features.queries.vocabulary.terms
    assert weights.columns.tolist() == model.features.documents.vocabulary.terms
    some = model.word_weights(["war", "sea"], ["ship", "port", "war"])
    np.testing.assert_allclose(some, weights.loc[["war", "sea"], ["ship", "port", "war"]], atol=1e-6)
    for side, expected in (("query", weights.loc["war"]), ("document", weights["war"])):
        found = model.neighbours("war", k=3, side=side)
        largest = np.sort(expected)[:-4:-1]
        np.testing.assert_allclose(found["weight"], largest[largest > 0], atol=1e-6)
        np.testing.assert_allclose(expected[found["word"]], found["weight"], atol=1e-6)


@pytest.mark.parametrize("case", ["D", "sparse", "hash + αI"])
def test_retrieval_is_brute_force(case, tmp_path):
    model = fitted(case)
    vectors = model.index(tmp_path / "vectors", DOCUMENTS, verbose=False)
    scores, queries = by_hand(model, UNSEEN, TEXTS), model.represent_queries(UNSEEN)
    documents = model.represent_texts(TEXTS).sparse
    expected = []
    for number, row in enumerate(scores):
        found = [place for place in range(len(TEXTS)) if not np.isnan(row[place]) and np.nan_to_num(row).any()]
        if case in ("D", "sparse"):  # a document is found if it has a word for which the query speaks
            shared = (abs(queries.sparse[[number]]) @ abs(documents).T).toarray()[0] > 0
            found = [place for place in found if shared[place]]
        found.sort(key=lambda place: (round(row[place], 5), DOCUMENTS[place]["docno"]), reverse=True)
        expected += [(str(number), DOCUMENTS[place]["docno"], row[place]) for place in found[:9]]
    topics = pd.DataFrame({"qid": [str(number) for number in range(len(UNSEEN))], "query": UNSEEN})
    found = model.retriever(vectors, num_results=9).transform(topics)
    assert list(zip(found["qid"], found["docno"], strict=True)) == [one[:2] for one in expected]
    np.testing.assert_allclose(found["score"], [one[2] for one in expected], atol=1e-5)
    assert found["qid"].nunique() >= 9


def test_hashed_pairs_share_their_weights():
    weights = fitted("hash of two vocabularies").word_weights().to_numpy()
    places = np.add.outer(np.arange(len(weights)) * PRIME, np.arange(weights.shape[1])) % 23
    assert 10 < len(np.unique(weights.round(6))) <= 23 < weights.size
    for place in np.unique(places):
        assert np.ptp(weights[places == place]) < 1e-6


def test_correlated_hashing_adds_a_second_model():
    options = {"dim": 3, "hashed_dim": 2, "embedded_terms": 5, "bins": 2}
    model = pn.SSI("correlated-hash", **options, training=pn.Training(**QUICK)).fit(CANDIDATES, QRELS)
    words, weights = model.features.documents.vocabulary.terms, model.network.arrays()
    near = np.zeros((len(words), 5))
    for number in range(len(words)):
        for word in model.dice_neighbours(words[number], k=2)["word"]:
            near[number, words.index(word)] += 1
    q, d = (np.array([vector(text, words, TEXTS, True) for text in some]) for some in (UNSEEN, TEXTS))
    sides = model.features.read_queries(UNSEEN), model.features.read_queries(TEXTS)
    hashed = [side.hashed.toarray() for side in sides]
    for found, a in zip(hashed, (q @ near, d @ near), strict=True):  # algorithm 1, whatever the length
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(found, axis=1)
        np.testing.assert_allclose((a * found).sum(axis=1), lengths, atol=1e-5)
        np.testing.assert_array_equal(a.any(axis=1), found.any(axis=1))
    W = np.eye(len(words))
    W[:5, :5] += weights["query_vectors"] @ weights["document_vectors"].T
    second = weights["mixing"][0] * weights["hashed_query_vectors"] @ weights["hashed_document_vectors"].T
    expected = q @ W @ d.T + hashed[0] @ second @ hashed[1].T
    expected[:, ~d.any(axis=1)] = -100
    found = model.transform(frame_of(UNSEEN, DOCUMENTS))["score"]
    np.testing.assert_allclose(found, expected.ravel(), atol=1e-5)
    assert weights["mixing"][0] != 1
    of_words = model.features.read_queries(words).hashed.toarray()
    np.testing.assert_allclose(model.word_weights(), W + of_words @ second @ of_words.T, atol=1e-5)
    one = pn.SSI("low-rank", dim=3, embedded_terms=5, training=pn.Training(**QUICK)).fit(CANDIDATES, QRELS)
    for name in ("query_vectors", "document_vectors"):  # the first model is that of frequent words
        np.testing.assert_array_equal(weights[name], one.network.arrays()[name])
    assert model.history["loss"][:2].tolist() == one.history["loss"].tolist()


# What W is before it has learned


SLOW = pn.Training(epochs=1, learning_rate=1e-12, verbose=False)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "off-diagonal"])
def test_w_starts_at_the_cosine_of_tf_idf(kind):
    settings = {"nonzeros": 1, "deviation": 1e-9, "embedded_terms": 5, "dim": 3, "hash_size": 99}
    model = pn.SSI(kind, **settings, training=SLOW).fit(CANDIDATES, QRELS)
    tfidf = pn.TFIDF(sublinear_tf=True).fit_corpus(DOCUMENTS, verbose=False)
    known = (CANDIDATES["text"] != "").to_numpy()
    expected = tfidf.transform(CANDIDATES)["score"]
    np.testing.assert_allclose(model.transform(CANDIDATES)["score"][known], expected[known], atol=1e-6)


@pytest.mark.parametrize("alike", [True, False])
def test_first_vectors_are_drawn_with_a_deviation(alike):
    """The paper's start is a deviation of 1 for each of U and V (section 2.3.2)."""
    for deviation, expected in ((None, 0.1), (1.0, 1.0)):
        model = pn.SSI(dim=100, deviation=deviation, alike=alike, training=SLOW).fit(CANDIDATES, QRELS)
        tables = model.network.query_vectors, model.network.document_vectors
        for table in tables:
            assert table.std() == pytest.approx(expected, rel=0.08)
        correlation = np.corrcoef(tables[0].ravel(), tables[1].ravel())[0, 1]
        assert correlation == pytest.approx(1, abs=1e-6) if alike else abs(correlation) < 0.1


def test_latent_vectors_are_u_q_and_v_d():
    model = fitted("U'V + I")
    words = model.features.documents.vocabulary.terms
    q, d = (np.array([vector(text, words, TEXTS, True) for text in some]) for some in (UNSEEN, TEXTS))
    np.testing.assert_allclose(model.encode_queries(UNSEEN), q @ model.network.query_vectors, atol=1e-5)
    np.testing.assert_allclose(model.encode_documents(TEXTS), d @ model.network.document_vectors, atol=1e-5)
    queries = model.query_encoder().transform(TOPICS)["query_vec"]
    np.testing.assert_allclose(np.stack(queries), model.encode_queries(TOPICS["query"].tolist()), atol=1e-6)
    documents = model.doc_encoder().transform(pd.DataFrame(DOCUMENTS))["doc_vec"]
    np.testing.assert_allclose(np.stack(documents), model.encode_documents(TEXTS), atol=1e-6)
    with pytest.raises(ValueError, match=r"SSI\('full'\) has no dense vectors"):
        fitted("W from 0").encode_queries(["sea"])


@pytest.mark.long
def test_other_rankers_do_without_the_compiler():
    code = "import sys, pt_neural as pn; pn.TFIDF, pn.LSA, pn.DSSM, pn.ForwardIndex; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# What is refused

SMALL = {"dim": 3, "embedded_terms": 9, "hash_size": 101, "nonzeros": 3, "rounds": 2}


def fit(kind="low-rank", *, training=None, frame=CANDIDATES, dev=(), monolingual=None, own_queries=False, **options):
    """Fits a small model of a kind; ``training`` names what differs in its settings."""
    model = pn.SSI(kind, **{**SMALL, **options}, training=pn.Training(**{**QUICK, **(training or {})}))
    return model.fit(frame, QRELS, *dev, monolingual=monolingual, own_queries=own_queries)


def check_equal(one: pn.SSI, other: pn.SSI) -> None:
    for (name, weight), also in zip(one.network.arrays().items(), other.network.arrays().values(), strict=True):
        np.testing.assert_array_equal(weight, also, err_msg=name)
    pd.testing.assert_frame_equal(one.history.drop(columns="seconds"), other.history.drop(columns="seconds"))


def test_a_w_that_takes_too_much_memory_is_refused(monkeypatch):
    for kind in ("full", "sparse"):
        message = r"W of 100,000 by 100,000 words would take 40\.0 GB, and 4\.3 are the most: give max_terms=32,768 or"
        with pytest.raises(ValueError, match=message):
            pn.SSI(kind)._shape(100_000, 100_000)
        assert pn.SSI(kind)._shape(30_000, 30_000).pairs == 900_000_000
    monkeypatch.setattr(ssi, "MOST_WEIGHTS", 100)
    with pytest.raises(ValueError, match="give max_terms=10 or fewer, or choose kind='low-rank' or 'hash'"):
        fit("full")
    assert fit("full", max_terms=10).word_weights().shape == (10, 10)


def test_what_a_kind_cannot_do_without():
    for kind in OF_ONE_VOCABULARY:
        with pytest.raises(ValueError, match=f"kind='{kind}' compares equal words, .* choose kind='low-rank'"):
            pn.SSI(kind, shared_vocabulary=False)
    for kind in ("diagonal", "low-rank-diagonal"):
        with pytest.raises(ValueError, match="has a diagonal; without one choose kind='low-rank', identity=False"):
            pn.SSI(kind, identity=False)
    with pytest.raises(ValueError, match=r"the identity matches equal words, .* leave identity out"):
        pn.SSI(shared_vocabulary=False, identity=True)
    assert not pn.SSI(shared_vocabulary=False).identity
    assert pn.SSI().identity


def test_other_training_than_the_paper_s_is_refused():
    for settings, needed in (
        ({"device": "tpu"}, r"Training\(device='cpu'\)"),
        ({"strategy": "ddp", "devices": 2}, r"Training\(devices=1, strategy='auto'\)"),
        ({"precision": "bf16-mixed"}, r"Training\(precision='32-true'\)"),
        ({"weight_decay": 0.1, "gradient_clip": 1.0}, r"Training\(weight_decay=0\.0, gradient_clip=None\)"),
        ({"optimiser": "adam", "loss": "softmax"}, r"Training\(loss='margin', optimiser='sgd'\)"),
    ):
        with pytest.raises(ValueError, match=f"makes the steps of its paper, one tuple at a time, and needs {needed}"):
            fit(training=settings)


def test_settings_out_of_range():
    errors = {"kind": ("dense", "one of 'diagonal', 'full'"), "ngrams": (3, "one of 1, 2"), "deviation": (0, "above 0")}
    errors["hashed_words"] = ("some", "one of 'all', 'others'")
    numbers = ("dim", "min_count", "max_terms", "embedded_terms", "nonzeros", "rounds", "hash_size", "bins")
    for name, (value, message) in {**errors, **dict.fromkeys(numbers, (0, "at least 1"))}.items():
        with pytest.raises(ValueError, match=f"{name} must be {message}"):
            pn.SSI(**{name: value})
    with pytest.raises(TypeError, match=r"training must be a pn\.Training, not 3"):
        pn.SSI(training=3)
    with pytest.raises(ValueError, match="no word occurs 99 times: give more texts, or a smaller min_count"):
        fit(min_count=99)
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        fit(training={"learning_rate": 1e12, "epochs": 20})


def test_unfitted_models_and_unknown_words():
    model = pn.SSI()
    for use in (
        lambda: model.word_weights(["sea"]),
        lambda: model.neighbours("sea"),
        lambda: model.truncated(3),
        lambda: model.symmetric_part(),
        lambda: model.dice_neighbours("sea"),
        lambda: model.encode_queries(["sea"]),
        lambda: model.encode_documents(["sea"]),
    ):
        with pytest.raises(RuntimeError, match=r"SSI\('low-rank', dim=100\) is not fitted yet: call .*fit"):
            use()
    model = fitted("U'V + I")
    for use in (
        lambda: model.word_weights(["sea", "zebra"]),
        lambda: model.word_weights(None, ["zebra", "sea"]),
        lambda: model.neighbours("zebra", side="document"),
    ):
        with pytest.raises(KeyError, match=r"'zebra' is not one of the \d+ words that SSI\(.*\) knows in"):
            use()
    with pytest.raises(KeyError, match="knows in documents, all in lower case"):
        model.neighbours("Sea", side="document")
    with pytest.raises(TypeError, match=r"words must be a list, such as \['sea'\], not 'sea'"):
        model.word_weights("sea")
    with pytest.raises(ValueError, match="side must be one of 'query', 'document'"):
        model.neighbours("sea", side="both")
    with pytest.raises(ValueError, match="only kind='correlated-hash' replaces words by others, not 'low-rank'"):
        model.dice_neighbours("sea")
    hashed = fit("correlated-hash")
    with pytest.raises(KeyError, match=r"'zebra' is not one of the \d+ words that are hashed"):
        hashed.dice_neighbours("zebra")
    with pytest.raises(ValueError, match="k must be at least 1"):
        hashed.dice_neighbours("sea", k=0)
    found = fitted("D").neighbours("war", k=5)  # words without weight are no neighbours
    assert found["word"].tolist() == ["war"]


@pytest.mark.parametrize("case", ["W of fewer words", "W from 0", "W of two vocabularies", "sparse"])
def test_a_truncated_w_is_the_nearest_of_its_rank(case, tmp_path):
    model = fitted(case)
    identity = np.eye(*explicit(model).shape) if model.identity else 0
    left, values, right = np.linalg.svd(explicit(model) - identity)
    assert values[3] > 0.01  # so that three dimensions lose something
    small = model.truncated(3)
    nearest = (left[:, :3] * values[:3]) @ right[:3]
    np.testing.assert_allclose(small.word_weights(), nearest + identity, atol=1e-5)
    whole = model.truncated(len(values))
    np.testing.assert_allclose(whole.word_weights(), model.word_weights(), atol=1e-5)
    assert (small.kind, small.dim, model.kind) == ("low-rank", 3, CASES[case]["kind"])
    assert small.fingerprint() != model.fingerprint()
    small.save(tmp_path / "small")
    loaded = pn.SSI.load(tmp_path / "small")
    pd.testing.assert_frame_equal(loaded.transform(CANDIDATES), small.transform(CANDIDATES))
    pd.testing.assert_frame_equal(small.history, model.history)
    with pytest.raises(ValueError, match=f"dim=99 is too large for {len(values)} words: choose dim={len(values)} or"):
        model.truncated(99)


def test_a_truncated_w_has_none_of_the_stored_vectors(tmp_path):
    model = fit("full")
    model.vectors = model.index(tmp_path / "vectors", DOCUMENTS)
    small = model.truncated(3)
    assert small.vectors is None
    assert model.vectors is not None
    with pytest.raises(ValueError, match="only W of kind 'full' or 'sparse' can be truncated, not 'off-diagonal'"):
        fitted("W without a diagonal").truncated(3)


@pytest.mark.parametrize("case", ["W of fewer words", "W from 0", "U'V + I", "U'V", "(U'V)_5 + I"])
def test_the_symmetric_part_of_w(case, tmp_path):
    model = fitted(case)
    weights = explicit(model)
    assert np.abs(weights - weights.T).max() > 0.01  # so that something is lost
    symmetric = model.symmetric_part()
    np.testing.assert_allclose(explicit(symmetric), (weights + weights.T) / 2, atol=1e-6)
    np.testing.assert_allclose(symmetric.word_weights(), (weights + weights.T) / 2, atol=1e-6)
    assert symmetric.fingerprint() != model.fingerprint()
    np.testing.assert_allclose(explicit(model), weights)  # which is left as it was
    symmetric.save(tmp_path / "symmetric")
    loaded = pn.SSI.load(tmp_path / "symmetric")
    pd.testing.assert_frame_equal(loaded.transform(CANDIDATES), symmetric.transform(CANDIDATES))
    pd.testing.assert_frame_equal(symmetric.history, model.history)


def test_what_has_no_symmetric_part(tmp_path):
    model = fit("full")
    model.vectors = model.index(tmp_path / "vectors", DOCUMENTS)
    assert model.symmetric_part().vectors is None
    assert model.vectors is not None
    with pytest.raises(ValueError, match="only W of kind 'full' or 'low-rank' can be made symmetric, not 'diagonal'"):
        fitted("D").symmetric_part()
    with pytest.raises(ValueError, match="W of two vocabularies cannot be symmetric: train with shared_vocabulary=T"):
        fitted("W of two vocabularies").symmetric_part()


def test_what_monolingual_tuples_need():
    for kind in (kind for kind in KINDS if kind != "low-rank"):
        with pytest.raises(ValueError, match=f"monolingual tuples share V, which kind='{kind}' does not have: choose"):
            fit(kind, monolingual=(CANDIDATES, QRELS))
    for wrong in (CANDIDATES, (CANDIDATES,), (CANDIDATES, "qrels")):
        with pytest.raises(TypeError, match=r"monolingual must be a pair of frames, \(candidates, qrels\)"):
            fit(monolingual=wrong)
    with pytest.raises(ValueError, match=r"own_queries=True is about monolingual tuples: give monolingual="):
        fit(own_queries=True)


# What is kept


@pytest.mark.parametrize("kind", ["low-rank", "sparse", "correlated-hash"])
def test_training_is_repeatable_and_leaves_the_random_numbers_of_the_user_alone(kind):
    before = torch.get_rng_state()
    one, again, other = fit(kind), fit(kind), fit(kind, training={"seed": 14})
    assert torch.equal(torch.get_rng_state(), before)
    check_equal(one, again)
    assert one.fingerprint() == again.fingerprint() != other.fingerprint()


@pytest.mark.parametrize(
    ("kind", "stages"),
    [("low-rank", []), ("sparse", ["6-nonzeros", "3-nonzeros"]), ("correlated-hash", ["hashed-model", "mixing-model"])],
)
def test_training_goes_on_from_checkpoints(tmp_path, kind, stages):
    kept = {"checkpoint_dir": str(tmp_path / "run"), "learning_rate": 0.01}
    whole = fit(kind, training={"learning_rate": 0.01})
    fit(kind, training={**kept, "epochs": 1 if kind == "low-rank" else 2})
    for stage in reversed(stages):
        rmtree(tmp_path / "run" / stage)  # as if it had not begun
        check_equal(fit(kind, training=kept), whole)
    check_equal(fit(kind, training=kept), whole)
    if stages:  # what a stage learns depends on what those before it have learned
        with pytest.raises(ValueError, match=r"(nonzeros|model) holds checkpoints of another run"):
            fit(kind, training={**kept, "epochs": 4})


def test_checkpoints_of_other_monolingual_tuples_are_refused(tmp_path):
    kept = {"training": {"checkpoint_dir": str(tmp_path / "run")}, "shared_vocabulary": False}
    mono = CANDIDATES.assign(query=CANDIDATES["text"])
    one = fit(monolingual=(mono, QRELS), **kept)
    check_equal(fit(monolingual=(mono, QRELS), **kept), one)
    for other in ((mono.assign(query="tide"), QRELS), (mono, QRELS[:2]), None):
        with pytest.raises(ValueError, match="run holds checkpoints of another run"):
            fit(monolingual=other, **kept)
    with pytest.raises(ValueError, match="run holds checkpoints of another run"):
        fit(monolingual=(mono, QRELS), own_queries=True, **kept)


def test_an_interrupted_training_keeps_the_best_so_far(monkeypatch):
    model, learned = fit("sparse"), ssi.Learner.learn_sparse
    before = model.network

    def interrupted(learner, network, *settings):
        if learner.training.epochs == 1:
            learned(learner, network, *settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(ssi.Learner, "learn_sparse", interrupted)
    for epochs in (2, 1):
        model.training = pn.Training(**{**QUICK, "epochs": epochs})
        with pytest.raises(KeyboardInterrupt):
            model.fit(CANDIDATES, QRELS)
        assert (model.network is before) == (epochs == 2)
    assert model.history["nonzeros"].nunique() == len(model.history) == 3
    assert np.isfinite(model.transform(CANDIDATES)["score"]).all()


@pytest.mark.parametrize(
    "options",
    [
        *({"kind": "correlated-hash", "ngrams": ngrams} for ngrams in (2, "1+2")),
        {"kind": "correlated-hash", "hashed_words": "others"},
        {"shared_vocabulary": False},
    ],
)
def test_text_and_forward_index_train_alike(tmp_path, options):
    by_text, frame = fit(**options), CANDIDATES[["qid", "query", "docno"]]
    forward = pn.ForwardIndex.build(tmp_path / "forward", DOCUMENTS, verbose=False)
    model = fit(**options, documents=forward, frame=frame)
    check_equal(model, by_text)
    assert model.fingerprint() == by_text.fingerprint()
    found = model.transform(frame)["score"]
    np.testing.assert_allclose(found, by_text.transform(CANDIDATES)["score"], atol=1e-6)


@pytest.mark.parametrize("kind", ["low-rank", "sparse", "correlated-hash"])
def test_the_dev_measure_chooses_the_epoch(kind, monkeypatch):
    monkeypatch.setattr(pn.SSI, "queries_per_block", 3)
    training = {"epochs": 6, "patience": 6}
    model = fit(kind, training=training, dev=(CANDIDATES, QRELS))
    (column,) = [column for column in model.history if column.startswith("dev ")]
    stage = {"low-rank": "epoch >= 0", "sparse": "nonzeros == nonzeros.min()", "correlated-hash": "model == 'mixing'"}
    last = model.history.query(stage[kind])
    ranked = model.transform(CANDIDATES).merge(QRELS, on=["qid", "docno"], how="left").fillna({"label": 0})
    losses = []  # of each query the share of pairs that are in the wrong order
    for _, one in ranked.groupby("qid"):
        good, bad = (one.loc[one["label"] == label, "score"].to_numpy() for label in (1, 0))
        losses.append(((bad > good[:, None]) + 0.5 * (bad == good[:, None])).mean())
    assert last[column].min() == pytest.approx(np.mean(losses), abs=1e-6)


def test_rows_of_a_sparse_model_are_as_sparse_as_wanted(tmp_path):
    model = fit("sparse", training={"epochs": 3})
    W = model.word_weights()
    assert ((W != 0).sum(axis=1) <= 3).all()
    assert model.history["nonzeros"].tolist() == [14] * 3 + [6] * 3 + [3] * 3
    assert (model.network.shape.pairs, model.network.shape.nonzeros) == (0, (W != 0).sum().sum())
    model.save(tmp_path / "ssi.pn")
    pd.testing.assert_frame_equal(pn.SSI.load(tmp_path / "ssi.pn").word_weights(), W)


DAMAGED = [
    ("features.json", "[]"),
    ("features.json", '{"shared": false}'),
    ("hashing/hashing.json", "[]"),
    ("vocabulary/terms.txt", "one\nword"),
    ("weights.safetensors", "no tensors"),
    ("config.json", "{}"),
]


def test_damaged_files_are_named(tmp_path):
    model, directory = fit("correlated-hash"), tmp_path / "ssi.pn"
    for name, content in DAMAGED:
        model.save(directory, overwrite=True)
        path = directory / name
        path.write_text(content)
        with pytest.raises(ArtifactError, match=f"^{path}"):
            pn.SSI.load(directory)
        path.unlink()
        with pytest.raises(ArtifactError, match=f"^{path} is missing"):
            pn.SSI.load(directory)
    model.save(directory, overwrite=True)
    rmtree(directory / "hashing")
    with pytest.raises(ArtifactError, match=f"^{directory / 'hashing'}/.* is missing"):
        pn.SSI.load(directory)
    model.save(directory, overwrite=True)
    fit(shared_vocabulary=False).save(tmp_path / "other.pn")
    (tmp_path / "other.pn" / "weights.safetensors").replace(directory / "weights.safetensors")
    with pytest.raises(ArtifactError, match=r"weights\.safetensors does not fit config\.json"):
        pn.SSI.load(directory)


def test_representations_name_the_kind():
    for kind in KINDS:
        expected = f"SSI('{kind}', dim=7)" if kind in WITH_VECTORS else f"SSI('{kind}')"
        assert repr(pn.SSI(kind, dim=7)) == expected
