"""Match-Tensor's networks against the tensor, the convolutions and the pooling written as loops."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pt_neural.models.match_tensor.network import HEIGHTS, MatchTensorNetwork, MatchTensorSizes, shifted_products
from pt_neural.rankers.readers.embedded_words import EmbeddedGroups, EmbeddedTexts
from pt_neural.rankers.readers.word_pairs import Matches
from pt_neural.text.packed import offsets_of

DIM = 9
QUERY_ROWS = torch.tensor([0, 1, 2, 3, 0])
DOCUMENT_ROWS = torch.tensor([[0, 1, 2], [3, 4, 2], [2, 0, 3], [4, 1, 1], [0, 2, 3]])
SIZES = {
    "projection": 7,
    "document_units": 5,
    "query_units": 4,
    "tensor_size": 6,
    "filters": 6,
    "second_filters": 4,
    "hidden": 7,
    "query_terms": 8,
    "document_terms": 30,
    "dropout": 0.0,
}
KINDS = [
    ("lstm", "all", "per-word", False),
    ("cnn", "all", "global", True),
    ("lstm", "all", "per-word", True),
    ("lstm", "exact", "global", True),
    ("cnn", "exact", "per-word", False),
]


def network(encoder="lstm", channels="all", pooling="per-word", compares_wholes=False, **own) -> MatchTensorNetwork:
    torch.manual_seed(0)
    sizes = MatchTensorSizes(**{**SIZES, **own}, encoder=encoder, channels=channels, pooling=pooling)
    made = MatchTensorNetwork(DIM, sizes, compares_wholes=compares_wholes)
    with torch.no_grad():
        made.filters.alpha.fill_(1.7)
        made.filters.first_bias.uniform_(-0.1, 0.1)
    return made


def texts(lengths: list[int]) -> EmbeddedTexts:
    generator = np.random.default_rng(len(lengths))
    words = torch.from_numpy(generator.integers(0, 11, sum(lengths)))
    offsets = torch.from_numpy(offsets_of(np.array(lengths)))
    return EmbeddedTexts(torch.randn(11, DIM), words, offsets, torch.ones(len(lengths), dtype=torch.bool))


def drawn() -> tuple[EmbeddedGroups, list[list[torch.Tensor]]]:
    """A batch, with texts of 0 to 13 words, and the matrix of exact matches of each pair."""
    queries, documents = texts([3, 0, 8, 1]), texts([6, 0, 13, 2, 1])
    generator = np.random.default_rng(5)
    counts, positions, matrices = [], [], []
    for query, row in zip(QUERY_ROWS, DOCUMENT_ROWS, strict=True):
        matrices.append([])
        for document in row:
            shape = int(queries.offsets.diff()[query]), int(documents.offsets.diff()[document])
            matrix = generator.random(shape) < 0.3
            matrices[-1].append(torch.from_numpy(matrix.astype("f4")))
            for word in range(8):
                found = np.flatnonzero(matrix[word]) if word < shape[0] else []
                counts.append(len(found))
                positions.extend(found)
    matches = Matches(torch.tensor(positions), torch.from_numpy(offsets_of(np.array(counts))))
    return EmbeddedGroups(queries, documents, QUERY_ROWS, DOCUMENT_ROWS, matches), matrices


def one_text(
    made: MatchTensorNetwork, side: str, batch: EmbeddedTexts, number: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The states of one text and what stands for the whole, by the encoder on this text alone."""
    words = batch.words[batch.offsets[number] : batch.offsets[number + 1]]
    vectors = made.encoders.projection(batch.vectors[words])
    return getattr(made.encoders, side)(vectors, torch.tensor([0, len(words)]))


def slow_score(made: MatchTensorNetwork, inputs: EmbeddedGroups, query: int, document: int, exact: torch.Tensor):
    """Sections 3.1 to 3.3 for one pair, cell by cell."""
    sizes, filters = made.sizes, made.filters
    tensor = filters.alpha * exact[..., None]
    words, positions = exact.shape
    if made.reads_words:
        query_states, query_whole = one_text(made, "query", inputs.queries, query)
        document_states, _ = one_text(made, "document", inputs.documents, document)
    if sizes.channels == "all":
        products = made.query_words(query_states)[:, None] * made.document_words(document_states)[None]
        tensor = torch.cat([products, tensor], dim=2)
    layers = []
    for height, weights, bias in zip(HEIGHTS, filters.first, filters.first_bias.chunk(3), strict=True):
        above = (height - 1) // 2
        padded = F.pad(tensor, (0, 0, above, height - 1 - above, 1, 1))
        cells = [
            torch.einsum("fabk,abk->f", weights, padded[i : i + 3, j : j + height]) + bias
            for i in range(words)
            for j in range(positions)
        ]
        layers.append(torch.stack(cells).view(words, positions, -1) if cells else None)
    largest = torch.zeros(sizes.query_terms if sizes.pooling == "per-word" else 1, sizes.second_filters)
    if words and positions:
        second = torch.relu(torch.cat(layers, dim=2)) @ filters.second.weight.T + filters.second.bias
        if sizes.pooling == "per-word":
            largest = torch.cat([second.amax(dim=1), largest[words:]])
        else:
            largest = second.amax(dim=(0, 1))
    units = largest.flatten()
    if not made.compares_wholes:
        return made.output(torch.relu(made.hidden(units)))[0]
    document_whole = document_states.amax(dim=0) if positions else torch.zeros(2 * sizes.document_units)
    compared = made.query_whole(query_whole[0]) * made.document_whole(document_whole)
    return made.output(torch.cat([units, compared]))[0]


@pytest.mark.parametrize(("encoder", "channels", "pooling", "compares_wholes"), KINDS)
def test_scores_and_gradients_are_those_of_the_loops(encoder, channels, pooling, compares_wholes):
    made = network(encoder, channels, pooling, compares_wholes)
    inputs, matrices = drawn()
    expected = torch.stack(
        [
            torch.stack(
                [
                    slow_score(made, inputs, int(query), int(document), exact)
                    for document, exact in zip(row, matrices[group], strict=True)
                ]
            )
            for group, (query, row) in enumerate(zip(QUERY_ROWS, DOCUMENT_ROWS, strict=True))
        ]
    )
    found = made(inputs)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    with torch.inference_mode():
        torch.testing.assert_close(made(inputs), expected.detach(), rtol=1e-5, atol=1e-6)
    weights = torch.randn_like(expected)
    gradients = [
        torch.autograd.grad(
            (scores * weights).sum(), list(made.parameters()), allow_unused=True, materialize_grads=True
        )
        for scores in (found, expected)
    ]
    for (name, _), ours, theirs in zip(made.named_parameters(), *gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}")


def test_shifted_products_are_a_convolution():
    rows, filters = torch.randn(2, 9, 3, dtype=torch.float64), torch.randn(2, 4, 3, 5, dtype=torch.float64)
    expected = [F.conv1d(one.T[None], own.permute(2, 1, 0))[0].T for one, own in zip(rows, filters, strict=True)]
    torch.testing.assert_close(shifted_products(rows, filters), torch.stack(expected))
    assert torch.autograd.gradcheck(shifted_products, (rows.requires_grad_(), filters.requires_grad_()))


def test_an_exact_match_reaches_the_cells_around_it():
    """One filter of each height that adds all it sees: cells count the matches of 3 x 3, 3 x 4 and 3 x 5 windows."""
    made = network(channels="exact", filters=3, second_filters=3)
    with torch.no_grad():
        for weights in made.filters.first:
            weights.fill_(1)
        made.filters.first_bias.zero_()
        made.filters.alpha.fill_(2)
        made.filters.second.weight.copy_(torch.eye(3))
        made.filters.second.bias.zero_()
    # Word 0 at position 1, word 1 at positions 2 and 4, word 3 at position 9.
    matches = Matches(torch.tensor([1, 2, 4, 9]), torch.tensor([0, 1, 3, 3, 4]))
    queries = made.read_queries(texts([4]))
    rows, offsets = made.read_documents(texts([10]))
    pooled = []
    made.hidden.register_forward_pre_hook(lambda _, inputs: pooled.append(inputs[0].view(8, 3)))
    made.match(queries, rows, offsets, torch.tensor([[0]]), matches)
    # 3 x 3 around (0, 2): positions 1 to 3 of words 0 and 1; 3 x 4 reaches one word further, 3 x 5 also one back.
    assert pooled[0].tolist() == [[4, 6, 6], [4, 6, 6], [4, 4, 4], [2, 2, 2], [0] * 3, [0] * 3, [0] * 3, [0] * 3]


def test_alpha_is_learned():
    made = network()
    inputs, _ = drawn()
    made(inputs).sum().backward()
    assert made.filters.alpha.grad.abs() > 0


def test_no_query_word_and_no_document_word_leave_a_finite_score():
    made = network()
    queries, documents = texts([0]), texts([0, 0])
    matches = Matches(torch.zeros(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    groups = EmbeddedGroups(queries, documents, torch.tensor([0]), torch.tensor([[0, 1]]), matches)
    scores = made(groups)
    assert scores.isfinite().all()
    assert scores[0, 0] == scores[0, 1]
