"""SSM as a ranker: sections 5.3 and 5.7 pair by pair, sizes, embeddings of empty texts, what attention refuses."""

import numpy as np
import pandas as pd
import pytest
import torch

import pt_neural as pn
from pt_neural.text import PackedSequences, Vocabulary

WORDS = [f"w{number}" for number in range(20)]
KNOWN = WORDS[:15]
DIM, QUERY_UNITS, DOCUMENT_UNITS = 6, 3, 4
SIZES = {"projection": 5, "query_units": QUERY_UNITS, "document_units": DOCUMENT_UNITS, "hidden": 7}
SIZES |= {"query_terms": 4, "document_terms": 15, "device": "cpu"}


def made_up(count: int, longest: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(longest + 1))) for _ in range(count)]


TITLES, TEXTS = [*made_up(8, 4, 1), "", "w1", "", "w19"], [*made_up(8, 18, 2), "w2 w3", "", "", "w17 w18"]
CORPUS = [
    {"docno": f"d{number:02}", "title": title, "text": text}
    for number, (title, text) in enumerate(zip(TITLES, TEXTS, strict=True))
]
TOPICS = pd.DataFrame({"qid": [f"q{number}" for number in range(8)], "query": [*made_up(6, 6, 3), "w1", "w16"]})
CANDIDATES = TOPICS.merge(pd.DataFrame(CORPUS), how="cross")
BARE = CANDIDATES[["qid", "query", "docno"]]


@pytest.fixture(scope="module")
def spaces() -> pn.EmbeddingSpaces:
    random = np.random.default_rng(4)
    return pn.EmbeddingSpaces.from_vectors(KNOWN, *random.normal(scale=2, size=(2, len(KNOWN), DIM)))


@pytest.fixture
def make(spaces, as_if_trained):
    return lambda **options: as_if_trained(pn.SSM(spaces, **{**SIZES, **options}))


def scores(model, frame: pd.DataFrame) -> np.ndarray:
    return model.transform(frame)["score"].to_numpy()


# Scores


def states_of(model: pn.SSM, side: str, words: list[str]) -> torch.Tensor:
    """Section 3.1 for one text: vectors, their projection, an LSTM of PyTorch; words in brackets are boundaries."""
    table = model.spaces.vectors(model.space)
    others = dict(zip(["?", "<end>", "<title>", "<text>"], model.reader.other_vectors, strict=False))
    vectors = [
        table[KNOWN.index(word)] / np.sqrt(np.mean(table**2)) if word in KNOWN else others.get(word, others["?"])
        for word in words
    ]
    encoders = model.network.encoders
    projection = encoders.projection
    inputs = torch.tensor(np.array(vectors)) @ projection.weight.T + projection.bias
    trained = getattr(encoders, side).lstm
    plain = torch.nn.LSTM(inputs.shape[1], trained.hidden_size, bidirectional=True)
    plain.load_state_dict(trained.state_dict())
    return plain(inputs)[0]


@torch.no_grad()
def by_hand(model: pn.SSM, query: str, title: str, text: str) -> float:
    """The dot product of section 5.3, with the average of section 5.7 if the model has it."""
    network = model.network
    words = title.split() + text.split()
    if model.boundaries:
        words = ["<title>", *title.split(), "<text>", *text.split(), "<end>"]
    words, asked = words[: model.document_terms], query.split()[: model.query_terms]
    if model.pooling == "max":  # a text without any known word has no embedding
        if not set(words) & set(KNOWN):
            return -100
        if not set(asked) & set(KNOWN):
            return 0
    last = torch.zeros(2 * QUERY_UNITS)
    if asked:
        states = states_of(model, "query", asked)
        last = torch.cat([states[-1, :QUERY_UNITS], states[0, QUERY_UNITS:]])
    states = states_of(model, "document", words) if words else torch.zeros(1, 2 * DOCUMENT_UNITS)
    if model.pooling == "max":
        pooled = states.max(dim=0).values
    else:
        sought = torch.relu(network.query_attention.weight @ last + network.query_attention.bias)
        offered = torch.relu(states @ network.document_attention.weight.T + network.document_attention.bias)
        weights = torch.exp(offered @ sought)
        pooled = weights / weights.sum() @ states
    vectors = [
        layer.weight @ whole + layer.bias
        for layer, whole in ((network.query_whole, last), (network.document_whole, pooled))
    ]
    return float(vectors[0] @ vectors[1])


@pytest.mark.parametrize(("pooling", "boundaries"), [("max", True), ("attention", True), ("max", False)])
def test_scores_worked_pair_by_pair(make, pooling, boundaries):
    model = make(pooling=pooling, boundaries=boundaries)
    columns = (CANDIDATES[column] for column in ("query", "title", "text"))
    expected = [by_hand(model, *texts) for texts in zip(*columns, strict=True)]
    found = scores(model, CANDIDATES)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert found.std() > 0.05
    if pooling == "max":
        assert {-100, 0} < set(found)
    else:
        assert np.abs(found).max() < 20


@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_attention_summarises_a_document_for_each_query(make, pooling):
    """Dot products of vectors of two numbers make a matrix of rank 2, unless documents' depend on the query."""
    frame = CANDIDATES[CANDIDATES["query"].str.contains(" ") & CANDIDATES["text"].str.contains(r" w\d\b")]
    table = scores(make(pooling=pooling, hidden=2), frame).reshape(frame["qid"].nunique(), -1)
    assert min(table.shape) > 2
    spread = np.linalg.svd(table, compute_uv=False)
    assert (spread[2] > 1e-4) == (pooling == "attention")


def test_weights_are_as_many_as_table_2_says(wide_spaces):
    """216K. LSTMs have four gates, each with weights of inputs and of states and two biases."""
    ssm = pn.SSM(wide_spaces)
    counted = sum(weight.numel() for weight in ssm.make_network(ssm.make_reader()).parameters())
    projection = 256 * 50 + 50
    query = 2 * 4 * 32 * (50 + 32 + 2)
    document = 2 * 4 * 120 * (50 + 120 + 2)
    comparison = (2 * 32 * 50 + 50) + (2 * 120 * 50 + 50)
    assert counted == projection + query + document + comparison
    assert counted == pytest.approx(216_000, rel=0.02)


# Embeddings


def test_texts_without_a_known_word_have_no_embedding(make):
    model = make()
    texts = ["w1", "", "w16", "?!", "w16 w1"]
    found = model.encode_queries(texts).any(axis=1).tolist(), model.encode_documents(texts).any(axis=1).tolist()
    assert found == ([True, False, False, False, True],) * 2
    frame = pd.DataFrame({"qid": list("abcde"), "query": texts, "docno": "d", "title": "w1", "text": "w2"})
    assert (scores(model, frame) == 0).tolist() == [False, True, True, True, False]
    turned = frame.assign(query="w1", title="", text=texts)
    assert (scores(model, turned) == -100).tolist() == [False, True, True, True, False]


def test_vectors_from_anywhere_score_alike(make, tmp_path):
    model = make()
    by_text = scores(model, CANDIDATES)
    vectors = model.index(tmp_path / "vectors", CORPUS, verbose=False)
    model.vectors = vectors
    np.testing.assert_allclose(scores(model, BARE), by_text, atol=1e-5)
    model.vectors = None
    model.documents = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    np.testing.assert_allclose(scores(model, BARE), by_text, atol=1e-5)
    retrieved = model.retriever(vectors, num_results=5).transform(TOPICS)
    ranked = CANDIDATES.assign(score=by_text).query("score not in (0, -100)")
    ranked = ranked.sort_values(["qid", "score"], ascending=[True, False]).groupby("qid").head(5)
    assert list(zip(retrieved["qid"], retrieved["docno"], strict=True)) == list(
        zip(ranked["qid"], ranked["docno"], strict=True)
    )
    np.testing.assert_allclose(retrieved["score"], ranked["score"], atol=1e-5)


def test_encoding_shows_one_bar(make, capfd, tmp_path):
    model = make(verbose=True, batch_size=4)
    model.transform(CANDIDATES)
    bars = capfd.readouterr().err
    assert (bars.count("\n"), "100%" in bars) == (1, True)
    model.index(tmp_path / "vectors", CORPUS)
    assert "pair/s" not in capfd.readouterr().err


# Attention


def test_attention_only_re_ranks(make, spaces, tmp_path):
    model = make(pooling="attention")
    vectors = make().index(tmp_path / "vectors", CORPUS, verbose=False)
    pair = CANDIDATES[:1].assign(doc_vec=[np.zeros(7, "f4")], query_vec=[np.zeros(7, "f4")])
    for use in (
        lambda: model.index(tmp_path / "none", CORPUS, verbose=False),
        lambda: model.index(tmp_path / "none", pn.ForwardIndex.build(tmp_path / "forward", CORPUS), verbose=False),
        lambda: model.encode_queries(["w1"]),
        lambda: model.encode_documents(["w1"]),
        lambda: model.represent_documents(PackedSequences.from_lists([[0]]), Vocabulary(["w1"])),
        lambda: model.transform(TOPICS),
        lambda: model.transform(pd.DataFrame(CORPUS)),
        lambda: model.transform(pair.drop(columns=["title", "text"])),
        lambda: model.transform(pair.drop(columns=["query", "title", "text"])),
        lambda: pn.SSM(spaces, pooling="attention", vectors=vectors),
        lambda: pn.SSM(spaces, pooling="attention", vectors="somewhere"),
    ):
        with pytest.raises(ValueError, match=r"do not depend on the query: with pooling='attention' SSM only re-ranks"):
            use()
    assert not (tmp_path / "none").exists()


def test_attention_re_ranks_by_docno(make, tmp_path):
    model = make(pooling="attention")
    by_text = scores(model, CANDIDATES)
    model.documents = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    np.testing.assert_allclose(scores(model, BARE), by_text, atol=1e-5)
