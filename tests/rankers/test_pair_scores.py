"""Scores of many pairs against one network call for each pair."""

import numpy as np
import pytest
import torch

import pt_neural as pn
from pt_neural.models.match_tensor_network import MatchTensorNetwork, Shape
from pt_neural.models.ssm_network import SSMNetwork
from pt_neural.models.text_encoders import TextEncoders
from pt_neural.rankers import pair_scores as module
from pt_neural.rankers.embedded import EmbeddedCorpus, EmbeddedPairs, WordVectors
from pt_neural.rankers.pair_scores import pair_scores
from pt_neural.text import PackedSequences

WORDS = [f"w{number}" for number in range(12)]
DIM = 5


def match_tensor(channels: str, compares_wholes: bool) -> MatchTensorNetwork:
    shape = Shape(4, 3, 2, 4, 6, 3, 5, 6, 30, 0.0, encoder="lstm", channels=channels, pooling="per-word")
    return MatchTensorNetwork(DIM, shape, compares_wholes=compares_wholes)


def ssm(pooling: str) -> SSMNetwork:
    return SSMNetwork(TextEncoders(DIM, 4, 2, 3, "lstm", 0.0), 4, 6, 5, pooling)


NETWORKS = {
    "all": lambda: match_tensor("all", False),
    "exact": lambda: match_tensor("exact", False),
    "all and wholes": lambda: match_tensor("all", True),
    "exact and wholes": lambda: match_tensor("exact", True),
    "attention": lambda: ssm("attention"),
    "max": lambda: ssm("max"),
}


@pytest.fixture(params=NETWORKS)
def network(request):
    torch.manual_seed(3)
    return NETWORKS[request.param]().eval()


def drawn(lengths: list[int], seed: int) -> PackedSequences:
    random = np.random.default_rng(seed)
    return PackedSequences.from_lists([random.integers(-1, len(WORDS), length).tolist() for length in lengths])


@pytest.fixture(scope="module")
def texts() -> EmbeddedPairs:
    random = np.random.default_rng(0)
    spaces = pn.EmbeddingSpaces.from_vectors(WORDS[:-2], *random.normal(size=(2, len(WORDS) - 2, DIM)))
    torch.manual_seed(1)
    vectors = WordVectors.draw(spaces, "in", 0)
    queries = EmbeddedCorpus(drawn([2, 0, 6, 1, 3], 1), vectors.rows(WORDS), vectors)
    documents = EmbeddedCorpus(drawn([7, 0, 30, 1, 12, 0, 3], 2), vectors.rows(WORDS), vectors)
    return EmbeddedPairs(queries, np.append(np.arange(len(WORDS)), -1), documents, len(WORDS) + 1)


EVERY = np.repeat(np.arange(5), 7), np.tile(np.arange(7), 5)
PAIRS = {
    "every pair": EVERY,
    "out of order": tuple(np.random.default_rng(4).permutation(np.transpose(EVERY)).T),
    "many queries of a document": (np.array([4, 2, 0, 1, 3]), np.array([2, 2, 2, 2, 2])),
    "many times the same": (np.array([2, 0, 2, 2, 0]), np.array([4, 4, 4, 4, 4])),
    "empty documents": (np.array([0, 2, 0]), np.array([5, 1, 1])),
    "an empty query": (np.array([1, 1]), np.array([2, 5])),
    "one": (np.array([2]), np.array([0])),
    "none": (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)),
}


class Reader:
    """Reads documents, and notes which."""

    def __init__(self, network, texts: EmbeddedPairs):
        self.network, self.texts, self.read = network, texts, []

    def __call__(self, numbers):
        self.read.append(numbers.tolist())
        return self.network.read_documents(self.texts.documents.take(numbers))


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize(("at_once", "per_step"), [(8192, 32), (3, 2), (1, 1)])
def test_scores_are_those_of_one_pair_at_a_time(network, texts, pairs, at_once, per_step, monkeypatch):
    monkeypatch.setattr(module, "DOCUMENTS_AT_ONCE", at_once)
    monkeypatch.setattr(module, "PAIRS_PER_STEP", per_step)
    queries, documents = PAIRS[pairs]
    found = pair_scores(network, texts, queries, documents, Reader(network, texts))
    with torch.no_grad():
        expected = [
            float(network(texts(np.array([query]), np.array([[document]]))))
            for query, document in zip(queries, documents, strict=True)
        ]
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-5, atol=1e-6)


def test_pairs_of_different_texts_score_differently(network, texts):
    scores = pair_scores(network, texts, *EVERY, Reader(network, texts))
    assert len(scores.unique()) > 12


def test_each_document_is_read_once_for_all_queries(texts):
    network = ssm("max").eval()
    reader = Reader(network, texts)
    pair_scores(network, texts, *EVERY, reader)
    assert reader.read == [list(range(7))]


def test_documents_in_memory_are_limited_but_queries_are_not_cut(texts, monkeypatch):
    monkeypatch.setattr(module, "DOCUMENTS_AT_ONCE", 4)
    network = ssm("max").eval()
    reader = Reader(network, texts)
    queries = np.array([0, 0, 1, 1, 2, 3, 3, 3, 3, 3, 4])
    documents = np.array([0, 1, 1, 2, 3, 0, 1, 2, 3, 4, 6])
    pair_scores(network, texts, queries, documents, reader)
    assert reader.read == [[0, 1, 2, 3], [0, 1, 2, 3, 4], [6]]
