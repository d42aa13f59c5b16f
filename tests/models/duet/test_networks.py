"""The networks of the Duet against section 3 of its paper, layer by layer over dense and padded matrices."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import pt_neural as pn
from pt_neural.models.duet import networks
from pt_neural.models.duet.networks import (
    DuetNetwork,
    DuetSizes,
    joint_scores,
    padded_words,
    pooled_windows,
    similar_lengths,
    sliding_max,
    weighted_positions,
    window_sums,
)
from pt_neural.rankers.readers.word_pairs import PairInputs, WordPairs
from pt_neural.text import Vocabulary, WordHashing, pack_texts, tokenise
from pt_neural.training import lightning
from pt_neural.training.losses import softmax_loss

SIZES = {"query_terms": 5, "document_terms": 20, "filters": 4, "hidden": 6}
VARIANTS = [
    DuetSizes(**SIZES, window=3, pooling=7),
    DuetSizes(**SIZES, window=1, pooling=1),
    DuetSizes(**SIZES, window=5, pooling=16),  # one position
]
WORDS = [*(f"{letter}{number}mm" for letter in "abc" for number in range(5)), "boys", "boy", "mississippi", "é"]


def made_up(lengths, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, length)) for length in lengths]


QUERIES = [*made_up([1, 3, 4, 5, 7], seed=0), "", "boys girls boys", "girls", "é"]
DOCUMENTS = [*made_up([0, 1, 2, 3, 4, 7, 9, 16, 17, 19, 20, 21, 25, 60], seed=1), "girls unseen"]


class Dense:
    """Section 3 of the paper with all terms padded to ``query_terms`` and ``document_terms``, in float64."""

    def __init__(self, network: DuetNetwork, ngrams: list[str], sizes: DuetSizes):
        self.local, self.distributed = network.local, network.distributed
        self.ngrams, self.sizes, self.ngram_sizes = ngrams, sizes, (1, 2, 3, 4, 5)
        self.query, self.document, self.ngraph = cache(self.query), cache(self.document), cache(self.ngraph)

    def interaction(self, query: str, text: str) -> Tensor:
        """X = D^T Q for one-hot terms, n_d x n_q (section 3.1)."""
        terms = tokenise(query)[: self.sizes.query_terms], tokenise(text)[: self.sizes.document_terms]
        matrix = torch.zeros(self.sizes.document_terms, self.sizes.query_terms, dtype=torch.float64)
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
        found = Counter(bounded[i : i + size] for size in self.ngram_sizes for i in range(len(bounded) - size + 1))
        return torch.tensor([found[ngram] for ngram in self.ngrams], dtype=torch.float64)

    def ngraphs(self, text: str, length: int) -> Tensor:
        """Those of each term, padded with zeros."""
        counts = torch.zeros(length, len(self.ngrams), dtype=torch.float64)
        for row, word in enumerate(tokenise(text)[:length]):
            counts[row] = self.ngraph(word)
        return counts

    def convolve(self, counts: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """m_d x 3 windows with stride 1: 8 of a query, 998 of a document."""
        filters = weight.view(len(self.ngrams), self.sizes.window, -1).permute(1, 0, 2).flatten(0, 1)
        windows = [counts[t : t + self.sizes.window].flatten() for t in range(len(counts) - self.sizes.window + 1)]
        return torch.tanh(torch.stack(windows) @ filters + bias)

    def query(self, query: str) -> Tensor:
        """Q~: max pooling over all windows, then a dense layer."""
        part = self.distributed
        counts = self.ngraphs(query, self.sizes.query_terms)
        pooled = self.convolve(counts, part.query_words.weight, part.query_bias).max(dim=0).values
        return torch.tanh(part.query_dense(pooled))

    def document(self, text: str) -> Tensor:
        """D~: max pooling over each stretch of windows, then a convolution of 300 x 1; positions x filters."""
        part, size = self.distributed, self.sizes.pooling
        counts = self.ngraphs(text, self.sizes.document_terms)
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

    def __init__(self, sizes: DuetSizes):
        reader = WordPairs(sizes.query_terms, sizes.document_terms, ngram_sizes=(1, 2, 3, 4, 5))
        reader.hashing = WordHashing.build(WORDS, sizes=(1, 2, 3, 4, 5), max_ngrams=60)
        sequences, terms = pack_texts(DOCUMENTS)
        self.texts = reader.pair(QUERIES, sequences, Vocabulary(terms))
        network = DuetNetwork(sizes, len(reader.hashing), ("local", "distributed")).double()
        self.network = with_random_weights(network)
        self.local, self.distributed = network.local, network.distributed
        self.dense = Dense(self.network, reader.hashing.ngrams, sizes)

    def take(self, queries, documents) -> PairInputs:
        inputs = self.texts.batch(np.asarray(queries), np.asarray(documents))
        exact = (texts._replace(counts=texts.counts.double()) for texts in (inputs.queries, inputs.documents))
        return inputs._replace(**dict(zip(("queries", "documents"), exact, strict=True)))

    def all_pairs(self) -> PairInputs:
        count = len(DOCUMENTS)
        return self.take(np.repeat(np.arange(len(QUERIES)), count), np.tile(np.arange(count), len(QUERIES)))

    def expected(self, score) -> Tensor:
        return torch.stack([score(query, text) for query in QUERIES for text in DOCUMENTS])


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda sizes: f"window{sizes.window}-pooling{sizes.pooling}")
def case(request) -> Case:
    return Case(request.param)


@pytest.fixture(autouse=True)
def in_many_batches(monkeypatch):
    """Documents of other lengths are computed apart even if there are few."""
    monkeypatch.setattr(networks, "MIN_DOCUMENTS", 1)


def assert_equal(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


# Layer after layer


def test_the_local_convolution_is_equation_2(case):
    found = case.local.convolve(case.all_pairs().matches)
    assert_equal(found.view(-1, *found.shape[-1:]), case.expected(case.dense.convolution).flatten(0, 1))
    assert len(Counter(QUERIES[6].split())) < len(QUERIES[6].split())  # repeated terms are among them


def test_query_vectors(case):
    found = case.network.read_queries(case.all_pairs().queries)
    assert_equal(found, torch.stack([case.dense.query(query) for query in QUERIES]))


def test_documents_are_read_as_far_as_they_go_and_equal_the_padded_ones(case):
    order = np.argsort([-min(len(tokenise(text)), 20) for text in DOCUMENTS], kind="stable")
    found = case.network.read_documents(case.all_pairs().documents)
    weights = case.distributed.positions / case.distributed.positions.shape[1]
    expected = [torch.einsum("ti,itk->ik", case.dense.document(DOCUMENTS[number]), weights) for number in order]
    assert_equal(found, torch.stack(expected))


def test_outputs_of_both_parts_and_scores_are_equations_1_and_3(case):
    inputs = case.all_pairs()
    outputs = case.network.match(
        inputs, case.network.read_queries(inputs.queries), case.network.read_documents(inputs.documents)
    )
    assert_equal(outputs, case.expected(case.dense.outputs))
    with torch.no_grad():  # remembers no winners
        assert_equal(case.network(inputs), torch.tanh(outputs).sum(1))


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


@pytest.mark.parametrize(("optimiser", "scale_free"), [("sgd", False), ("adam", True), ("adagrad", True)])
def test_a_step_on_the_match_layer_is_that_on_the_weights_of_the_paper(case, optimiser, scale_free):
    """The layer is kept times the number of positions; SGD's steps and weight decay are as if it were not."""
    kept, scale = case.distributed.positions, case.distributed.positions.shape[1]
    plain = torch.nn.Parameter(kept.detach() / scale)
    training = pn.Training(optimiser=optimiser, learning_rate=0.1, weight_decay=0.01)
    rate = 0.1 / scale if scale_free else 0.1
    options = {"weight_decay": 0.01, **({"eps": 1e-30} if scale_free else {})}
    reference = lightning._OPTIMISERS[optimiser]([plain], lr=rate, **options)
    groups = lightning.parameter_groups(case.network, training)
    ours = lightning._OPTIMISERS[optimiser](groups, lr=0.1, **options)
    before = {name: weight.clone() for name, weight in case.network.state_dict().items()}
    try:
        loss = case.network(case.all_pairs()).square().sum()
        kept.grad = torch.autograd.grad(loss, kept)[0]
        plain.grad = kept.grad * scale
        reference.step()
        ours.step()
        torch.testing.assert_close(kept.detach() / scale, plain.detach(), rtol=1e-6, atol=1e-9)
        assert (kept - before["distributed.positions"]).abs().max() > 1e-4
    finally:
        kept.grad = None
        case.network.load_state_dict(before)
    names = {name for name, _ in case.network.named_parameters()}
    assert len(names) == sum(len(group["params"]) for group in groups)


def test_documents_of_similar_length_are_read_together(monkeypatch):
    monkeypatch.setattr(networks, "MIN_DOCUMENTS", 16)
    assert similar_lengths([10] * 20) == [(0, 20)]
    assert similar_lengths([100] * 16 + [81, 79, 40]) == [(0, 17), (17, 19)]
    assert similar_lengths([100, 50, 2]) == [(0, 3)]
    assert similar_lengths([]) == [(0, 0)]


def test_pooling_follows_the_length_of_documents():
    pooling = {terms: DuetSizes(document_terms=terms).pooling for terms in (1000, 5000, 200, 50, 10, 3)}
    assert pooling == {1000: 100, 5000: 100, 200: 20, 50: 5, 10: 1, 3: 1}
    assert DuetSizes().positions == 899


def test_the_sizes_of_the_paper():
    with torch.device("meta"):
        network = DuetNetwork(DuetSizes(), 2000, ("local", "distributed"))
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
        network = DuetNetwork(DuetSizes(**{**SIZES, "filters": 16}, pooling=7), 50, ("local", "distributed"))
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
    torch.testing.assert_close(joint_scores(outputs), expected)


def test_one_part_is_scored_by_its_output_before_the_tanh():
    outputs = torch.tensor([[-40.0], [-1.5], [0.0], [2.0], [30.0]])
    torch.testing.assert_close(joint_scores(outputs), outputs[:, 0].double())


def test_joint_scores_rank_as_the_sum_does():
    outputs = torch.randn(2000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 2
    sums = torch.tanh(outputs).sum(1)
    assert torch.equal(joint_scores(outputs).argsort(), sums.argsort())


@pytest.mark.parametrize("at", [-20.0, 20.0])
def test_joint_scores_do_not_tie_where_tanh_is_flat(at):
    outputs = torch.tensor([[at, at], [at, at + 0.01], [at + 0.01, at + 0.01], [at + 5, at + 0.1]])
    assert len(torch.tanh(outputs).sum(1).unique()) == 1
    scores = joint_scores(outputs)
    assert (scores.diff() > 1e-3).all()
    assert scores[0] == pytest.approx(at)


def test_parts_that_contradict_each_other_do_not_tie():
    outputs = torch.tensor([[9.0, -9.0], [9.0, -10.0], [9.0, -11.0], [9.0, -12.0]])
    assert (joint_scores(outputs).diff() < 0).all()


# Convolution and max pooling, against a loop over texts, positions and windows

NUM_WORDS = 5  # the last is the padding, whose projections are zero
PADDING = NUM_WORDS - 1
UNITS = 3
TEXTS = st.lists(st.lists(st.integers(0, PADDING - 1), max_size=9), min_size=1, max_size=5)
FIVE_TEXTS = [[0, 1, 2, 3, 0], [], [2], [3, 3], [1, 0, 2]]


def packed(texts) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([0, *map(len, texts)])
    return torch.tensor([word for text in texts for word in text], dtype=torch.int64), lengths.cumsum(0)


def padded(texts, width: int) -> Tensor:
    return padded_words(*packed(texts), width, PADDING)


def drawn_projections(window: int) -> Tensor:
    """Distinct float32 values, as float64: ties between different windows do not occur by chance."""
    generator = torch.Generator().manual_seed(0)
    projections = torch.randn(NUM_WORDS, window, UNITS, generator=generator).double()
    projections[PADDING] = 0
    return projections.view(-1, UNITS).requires_grad_()


def window_sum(projections: Tensor, text: list[int], place: int, window: int) -> Tensor:
    blocks = projections.view(NUM_WORDS, window, UNITS)
    words = [text[place + i] if place + i < len(text) else PADDING for i in range(window)]
    return sum(blocks[word, i] for i, word in enumerate(words))


def looped(projections: Tensor, texts, window: int, size: int, positions: int) -> Tensor:
    pooled = [
        torch.stack([window_sum(projections, text, t + s, window) for s in range(size)]).max(dim=0).values
        for text in texts
        for t in range(positions)
    ]
    return torch.stack(pooled).view(len(texts), positions, UNITS).transpose(1, 2)


def test_texts_are_padded_also_some_of_them_alone():
    words, offsets = packed([[0, 1], [2], [], [3, 0, 1]])
    assert padded_words(words, offsets, 3, PADDING).tolist() == [[0, 1, 4], [2, 4, 4], [4, 4, 4], [3, 0, 1]]
    assert padded_words(words, offsets[1:4], 2, PADDING).tolist() == [[2, PADDING], [PADDING, PADDING]]


@pytest.mark.parametrize("window", [1, 3])
def test_sums_are_those_of_each_window(window):
    text, projections = [0, 3, 1, 1, 2], drawn_projections(window)
    found = window_sums(projections, padded([text], len(text)), window)
    expected = torch.stack([window_sum(projections, text, t, window) for t in range(len(text) - window + 1)])
    torch.testing.assert_close(found[0], expected)


def test_sliding_maximum_equals_that_of_each_stretch():
    values = torch.randn(2, 15, UNITS, generator=torch.Generator().manual_seed(0))
    for size in range(1, 16):
        torch.testing.assert_close(sliding_max(values, size), values.unfold(1, size, 1).max(dim=3).values)


@settings(max_examples=25)
@given(TEXTS, st.sampled_from([1, 3]), st.integers(1, 6), st.integers(1, 7))
def test_pooling_and_its_gradients_equal_a_loop(texts, window, size, positions):
    words = padded(texts, max(1, *map(len, texts)) + window - 1)
    projections, same = drawn_projections(window), drawn_projections(window)
    found = pooled_windows(projections, words, window, size, positions)
    expected = looped(same, texts, window, size, positions)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    with torch.no_grad():  # takes another way, which remembers no winners
        scored = pooled_windows(projections.detach().float(), words, window, size, positions)
    assert torch.equal(pooled_windows(projections.float(), words, window, size, positions), scored)
    factors = torch.linspace(-1, 2, found.numel(), dtype=torch.float64).view(found.shape)
    (found * factors).sum().backward()
    (expected * factors).sum().backward()
    torch.testing.assert_close(projections.grad[:-window], same.grad[:-window])  # those of the padding do not count


@pytest.mark.parametrize("windows_per_step", [1, 7, 20])
def test_texts_are_pooled_in_steps_of_any_size(monkeypatch, windows_per_step):
    monkeypatch.setattr(networks, "WINDOWS_PER_STEP", windows_per_step)
    projections, same = drawn_projections(3), drawn_projections(3)
    found, expected = pooled_windows(projections, padded(FIVE_TEXTS, 7), 3, 3, 4), looped(same, FIVE_TEXTS, 3, 3, 4)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    found.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(projections.grad[:-3], same.grad[:-3], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("value", [2.0, -2.0, 0.0])
def test_one_of_equal_windows_learns(value):
    projections = torch.full((NUM_WORDS, 2), value, requires_grad=True)
    pooled_windows(projections, torch.tensor([[0, 1, 2]]), 1, 3, 1).sum().backward()
    assert projections.grad.sum(0).tolist() == [1, 1]
    assert sorted(projections.grad[:, 0].tolist()) == [0, 0, 0, 0, 1]


@pytest.fixture
def denormals_are_zero():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor has no such mode")
    yield
    torch.set_flush_denormal(False)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_zeros_and_ties_have_one_winner_each_also_where_denormals_are_zero(denormals_are_zero, size):
    """Values and winners against PyTorch's max pooling; of equal windows, either may win."""
    random = np.random.default_rng(0)
    levels = torch.tensor([[-1.0], [0.0], [-0.0], [1e-40], [0.5], [0.0]])  # of each word; the last is the padding
    words = torch.from_numpy(random.choice(5, size=(20, 12), p=[0.4, 0.2, 0.2, 0.1, 0.1]))
    positions = 12 - size + 1
    projections = levels.clone().requires_grad_()
    found = pooled_windows(projections, words, 1, size, positions)
    values = levels[words, 0][:, None]
    torch.testing.assert_close(found, torch.nn.functional.max_pool1d(values, size, stride=1))
    for text in range(len(words)):
        for position in range(positions):
            gradient = torch.autograd.grad(found[text, 0, position], projections, retain_graph=True)[0].flatten()
            winner = int(gradient.argmax())
            assert gradient.sum() == gradient[winner] == 1
            assert winner in words[text, position : position + size]
            assert levels[winner, 0] == found[text, 0, position]


def test_more_windows_than_a_small_integer_counts():
    length = 2**15 + 10
    words = torch.zeros(1, length, dtype=torch.int64)
    words[0, -1] = 1
    projections = torch.tensor([[1.0], [5.0], [0.0], [0.0], [0.0]], requires_grad=True)
    found = pooled_windows(projections, words, 1, 4, length - 3)
    found[0, 0, [0, -1]].sum().backward()
    assert found[0, 0, [0, -2, -1]].tolist() == [1, 1, 5]
    assert projections.grad.flatten().tolist() == [1, 1, 0, 0, 0]


# The sum over positions that needs no query, against einsum over documents padded to all positions

FILTERS, POSITIONS, HIDDEN = 3, 6, 2


def drawn_batches(batches) -> list[Tensor]:
    """Weights, padding, and a batch of documents for each number of documents and of their positions."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(FILTERS, POSITIONS, HIDDEN), (FILTERS,), *((count, FILTERS, length) for count, length in batches)]
    return [torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("batches", [[(2, 6)], [(1, 5), (2, 5), (1, 1)], [(3, 1)], [(1, 6), (2, 3), (1, 2), (2, 1)]])
def test_weighted_positions_and_gradients_are_those_of_padded_documents(batches):
    weights, padding, *documents = learned = drawn_batches(batches)
    found = weighted_positions(weights, padding, documents)
    padded = []
    for batch in documents:
        rest = padding[:, None].expand(len(batch), FILTERS, POSITIONS - batch.shape[2])
        padded.append(torch.cat([batch, rest], dim=2))
    expected = torch.einsum("itk,dit->dik", weights, torch.cat(padded))
    torch.testing.assert_close(found, expected)
    factors = torch.linspace(-1, 2, found.numel(), dtype=torch.float64).view(found.shape)
    gradients = torch.autograd.grad((found * factors).sum(), learned)
    wanted = torch.autograd.grad((expected * factors).sum(), learned)
    for gradient, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient, other)
