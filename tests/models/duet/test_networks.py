"""The Duet against section 3 of its paper, layer by layer over dense and padded matrices."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

import pt_neural as pn
from pt_neural.models import duet_networks
from pt_neural.models.duet_networks import DuetNetwork, Shape
from pt_neural.rankers.hashed import word_bags
from pt_neural.rankers.pairs import PairInputs, PairTexts
from pt_neural.text import Vocabulary, WordHashing, pack_texts, tokenise
from pt_neural.training.losses import softmax_loss

SIZES = {"query_terms": 5, "document_terms": 20, "filters": 4, "hidden": 6}
SHAPES = [
    Shape(**SIZES, window=3, pooling=7),
    Shape(**SIZES, window=3, pooling=18),  # one position
    Shape(**SIZES, window=1, pooling=1),
    Shape(**SIZES, window=5, pooling=4),
]
WORDS = [*(f"{letter}{number}mm" for letter in "abc" for number in range(5)), "boys", "boy", "mississippi", "é"]


def made_up(lengths, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, length)) for length in lengths]


QUERIES = [*made_up([1, 3, 4, 5, 7], seed=0), "", "boys girls boys", "girls", "é"]
DOCUMENTS = [*made_up([0, 1, 2, 3, 4, 7, 9, 16, 17, 19, 20, 21, 25, 60], seed=1), "girls unseen"]


class Dense:
    """Section 3 of the paper with all terms padded to ``query_terms`` and ``document_terms``, in float64."""

    def __init__(self, network: DuetNetwork, ngrams: list[str], shape: Shape, sizes: tuple[int, ...] = (1, 2, 3, 4, 5)):
        self.local, self.distributed = network.local, network.distributed
        self.ngrams, self.shape, self.sizes = ngrams, shape, sizes
        self.query, self.document, self.ngraph = cache(self.query), cache(self.document), cache(self.ngraph)

    def interaction(self, query: str, text: str) -> Tensor:
        """X = D^T Q for one-hot terms, n_d x n_q (section 3.1)."""
        terms = tokenise(query)[: self.shape.query_terms], tokenise(text)[: self.shape.document_terms]
        matrix = torch.zeros(self.shape.document_terms, self.shape.query_terms, dtype=torch.float64)
        for i, one in enumerate(terms[0]):
            for j, other in enumerate(terms[1]):
                if one == other:
                    matrix[j, i] = 1
        return matrix

    def convolution(self, query: str, text: str) -> Tensor:
        """Z, n_q x c (equation 2)."""
        return torch.tanh(self.interaction(query, text).T @ self.local.positions + self.local.bias)

    def local_output(self, query: str, text: str) -> Tensor:
        units = torch.tanh(self.local.dense(self.convolution(query, text).reshape(-1)))
        return self.head(self.local.head, units)

    def ngraph(self, word: str) -> Tensor:
        """Counts of the n-graphs of a term (section 3.2)."""
        bounded = f"#{word}#"
        found = Counter(bounded[i : i + size] for size in self.sizes for i in range(len(bounded) - size + 1))
        return torch.tensor([found[ngram] for ngram in self.ngrams], dtype=torch.float64)

    def ngraphs(self, text: str, length: int) -> Tensor:
        """Those of each term, padded with zeros."""
        counts = torch.zeros(length, len(self.ngrams), dtype=torch.float64)
        for row, word in enumerate(tokenise(text)[:length]):
            counts[row] = self.ngraph(word)
        return counts

    def convolve(self, counts: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """m_d x 3 windows with stride 1: 8 of a query, 998 of a document."""
        filters = weight.view(len(self.ngrams), self.shape.window, -1).permute(1, 0, 2).flatten(0, 1)
        windows = [counts[t : t + self.shape.window].flatten() for t in range(len(counts) - self.shape.window + 1)]
        return torch.tanh(torch.stack(windows) @ filters + bias)

    def query(self, query: str) -> Tensor:
        """Q~: max pooling over all windows, then a dense layer."""
        part = self.distributed
        counts = self.ngraphs(query, self.shape.query_terms)
        pooled = self.convolve(counts, part.query_words.weight, part.query_bias).max(dim=0).values
        return torch.tanh(part.query_dense(pooled))

    def document(self, text: str) -> Tensor:
        """D~: max pooling over each stretch of windows, then a convolution of 300 x 1; positions x filters."""
        part, size = self.distributed, self.shape.pooling
        counts = self.ngraphs(text, self.shape.document_terms)
        windows = self.convolve(counts, part.document_words.weight, part.document_bias)
        pooled = [windows[t : t + size].max(dim=0).values for t in range(len(windows) - size + 1)]
        return torch.tanh(part.document_dense(torch.stack(pooled)))

    def distributed_output(self, query: str, text: str) -> Tensor:
        product = self.query(query) * self.document(text)  # equation 3
        weight = self.distributed.positions.transpose(0, 1).flatten(0, 1)  # positions x filters, to hidden
        weight = weight / self.distributed.positions.shape[1]  # kept as so many times their size
        return self.head(self.distributed.head, torch.tanh(product.flatten() @ weight + self.distributed.bias))

    def head(self, head, units: Tensor) -> Tensor:
        return head.output(torch.tanh(head.dense(units)))[0]

    def outputs(self, query: str, text: str) -> Tensor:
        parts = [self.local and self.local_output, self.distributed and self.distributed_output]
        return torch.stack([part(query, text) for part in parts if part])


def with_random_weights(network: DuetNetwork, scale: float = 0.3) -> DuetNetwork:
    random = np.random.default_rng(5)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.from_numpy(random.normal(scale=scale, size=weight.shape)))
    return network.eval()


class Case:
    """A network in float64, all pairs of queries and documents as its inputs, and the dense one."""

    def __init__(self, shape: Shape, queries=QUERIES, documents=DOCUMENTS):
        self.queries, self.documents = queries, documents
        query_sequences, query_terms = pack_texts(queries)
        sequences, terms = pack_texts(documents)
        self.hashing = WordHashing.build(WORDS, sizes=(1, 2, 3, 4, 5), max_ngrams=60)
        vocabulary = Vocabulary(terms)
        self.texts = PairTexts(
            query_sequences,
            vocabulary.ids(query_terms),
            sequences,
            len(terms),
            query_terms=shape.query_terms,
            document_terms=shape.document_terms,
            matches=True,
            query_bags=word_bags(query_terms, self.hashing),
            document_bags=word_bags(terms, self.hashing),
        )
        network = DuetNetwork(shape, len(self.hashing), ("local", "distributed")).double()
        self.network = with_random_weights(network)
        self.dense = Dense(self.network, self.hashing.ngrams, shape)

    def take(self, queries, documents) -> PairInputs:
        inputs = self.texts.take(np.asarray(queries), np.asarray(documents))
        exact = (texts._replace(counts=texts.counts.double()) for texts in (inputs.queries, inputs.documents))
        return inputs._replace(**dict(zip(("queries", "documents"), exact, strict=True)))

    def all_pairs(self) -> PairInputs:
        count = len(self.documents)
        return self.take(np.repeat(np.arange(len(self.queries)), count), np.tile(np.arange(count), len(self.queries)))

    def expected(self, of_pair) -> Tensor:
        return torch.stack([of_pair(query, text) for query in self.queries for text in self.documents])


@pytest.fixture(params=SHAPES, ids=lambda shape: f"window{shape.window}-pooling{shape.pooling}")
def case(request) -> Case:
    return Case(request.param)


@pytest.fixture
def in_many_batches(monkeypatch):
    """Documents of other lengths are computed apart even if there are few."""
    monkeypatch.setattr(duet_networks, "LEAST_DOCUMENTS", 1)


def assert_equal(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


# Layer after layer


def test_the_local_convolution_is_equation_2(case):
    found = case.network.local.convolve(case.all_pairs().matches)
    assert_equal(found.view(-1, *found.shape[-1:]), case.expected(case.dense.convolution).flatten(0, 1))
    assert len(Counter(QUERIES[6].split())) < len(QUERIES[6].split())  # repeated terms are among them


def test_the_local_output(case):
    inputs = case.all_pairs()
    found = case.network.local(inputs.matches, inputs.pairing.places.numel())
    assert_equal(found, case.expected(case.dense.local_output))


def test_query_vectors(case):
    found = case.network.distributed.read_queries(case.all_pairs().queries)
    assert_equal(found, torch.stack([case.dense.query(query) for query in case.queries]))


@pytest.mark.usefixtures("in_many_batches")
def test_documents_are_read_as_far_as_they_go_and_equal_the_padded_ones(case):
    order = np.argsort([-min(len(tokenise(text)), 20) for text in case.documents], kind="stable")
    found = case.network.distributed.read_documents(case.all_pairs().documents)
    weights = case.network.distributed.positions / case.network.distributed.positions.shape[1]
    expected = [torch.einsum("ti,itk->ik", case.dense.document(case.documents[number]), weights) for number in order]
    assert_equal(found, torch.stack(expected))


def test_the_hadamard_product_is_equation_3(case):
    inputs = case.all_pairs()
    found = case.network.distributed(inputs.queries, inputs.documents, inputs.pairing)
    assert_equal(found, case.expected(case.dense.distributed_output))


@pytest.mark.usefixtures("in_many_batches")
def test_scores_are_equation_1(case):
    found = case.network(case.all_pairs())
    assert_equal(found, case.expected(lambda *pair: torch.tanh(case.dense.outputs(*pair)).sum()))
    with torch.no_grad():  # remembers no winners
        assert_equal(case.network(case.all_pairs()), found.detach())


@pytest.mark.usefixtures("in_many_batches")
def test_the_loss_is_equation_4_and_teaches_as_the_dense_layers_do(case):
    """With the relevant document in the denominator, as in the authors' code."""
    groups = [(0, [8, 1, 13]), (1, [10, 11, 0]), (6, [3, 14, 12]), (5, [2, 7, 6])]
    scores = case.network(case.take([query for query, _ in groups], [documents for _, documents in groups]))
    found = softmax_loss(scores, None, torch.ones(4, 3, dtype=bool), gamma=1.0)
    expected = 0.0
    for query, documents in groups:
        exps = [
            torch.exp(torch.tanh(case.dense.outputs(QUERIES[query], DOCUMENTS[number])).sum()) for number in documents
        ]
        expected = expected - torch.log(exps[0] / sum(exps)) / len(groups)
    assert_equal(found, expected)
    weights = dict(case.network.named_parameters())
    gradients = torch.autograd.grad(found, list(weights.values()))
    wanted = torch.autograd.grad(expected, list(weights.values()))
    for name, gradient, other in zip(weights, gradients, wanted, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-5, atol=1e-7, msg=lambda text, name=name: f"{name}: {text}")
        assert gradient.abs().max() > 1e-6, name


def test_documents_of_similar_length_are_read_together():
    assert duet_networks.similar([10] * 20) == [(0, 20)]
    assert duet_networks.similar([100] * 16 + [81, 79, 40]) == [(0, 17), (17, 19)]
    assert duet_networks.similar([100, 50, 2]) == [(0, 3)]
    assert duet_networks.similar([]) == [(0, 0)]


def test_the_papers_shapes():
    with torch.device("meta"):
        network = DuetNetwork(Shape(), 2000, ("local", "distributed"))
    local = (1000 * 300 + 300) + (10 * 300 * 300 + 300) + (300 * 300 + 300) + (300 + 1)
    reading = 2 * (3 * 2000 * 300 + 300) + 2 * (300 * 300 + 300)
    matching = (300 * 899 * 300 + 300) + (300 * 300 + 300) + (300 + 1)
    assert sum(weight.numel() for weight in network.local.parameters()) == local
    assert sum(weight.numel() for weight in network.distributed.parameters()) == reading + matching
    assert network.local.head.dropout.p == network.distributed.head.dropout.p == 0.2
    settings = pn.Duet().settings()
    assert (settings["ngram_sizes"], settings["num_ngrams"]) == ([1, 2, 3, 4, 5], 2000)


def test_first_weights_hardly_tell_positions_and_sides_apart():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = DuetNetwork(Shape(**{**SIZES, "filters": 16}, pooling=7), 50, ("local", "distributed"))
    parts = [
        (network.local.positions, 0),
        (network.local.dense.weight.view(6, 5, 16), 1),  # hidden units, query terms, filters
        (network.distributed.positions, 1),
    ]
    for weights, along in parts:
        assert 0 < weights.std(dim=along).mean() < 0.2 * weights.std()
    distributed = network.distributed
    assert torch.equal(distributed.query_words.weight, distributed.document_words.weight)
    assert torch.equal(distributed.query_dense.weight, distributed.document_dense.weight)
    places = distributed.query_words.weight.view(50, 3, 16)
    assert not places[:, [0, 2]].any()
    assert places[:, 1].all()


# Scores of both parts together


def test_joint_scores_are_the_inverse_of_tanh_at_half_the_sum():
    outputs = torch.linspace(-3, 3, 25, dtype=torch.float64)
    outputs = torch.cartesian_prod(outputs, outputs)
    expected = torch.atanh(torch.tanh(outputs).sum(1) / 2)
    torch.testing.assert_close(duet_networks.joint_scores(outputs), expected)


def test_one_part_is_scored_by_its_output_before_the_tanh():
    outputs = torch.tensor([[-40.0], [-1.5], [0.0], [2.0], [30.0]])
    torch.testing.assert_close(duet_networks.joint_scores(outputs), outputs[:, 0].double())


def test_joint_scores_rank_as_the_sum_does():
    outputs = torch.randn(2000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 2
    sums = torch.tanh(outputs).sum(1)
    assert torch.equal(duet_networks.joint_scores(outputs).argsort(), sums.argsort())


@pytest.mark.parametrize("at", [-20.0, 20.0])
def test_joint_scores_do_not_tie_where_tanh_is_flat(at):
    outputs = torch.tensor([[at, at], [at, at + 0.01], [at + 0.01, at + 0.01], [at + 5, at + 0.1]])
    assert len(torch.tanh(outputs).sum(1).unique()) == 1
    scores = duet_networks.joint_scores(outputs)
    assert (scores.diff() > 1e-3).all()
    assert scores[0] == pytest.approx(at)


def test_parts_that_contradict_each_other_do_not_tie():
    outputs = torch.tensor([[9.0, -9.0], [9.0, -10.0], [9.0, -11.0], [9.0, -12.0]])
    assert (duet_networks.joint_scores(outputs).diff() < 0).all()
