"""The sum over positions that needs no query, against einsum over documents padded to all positions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pt_neural.models.position_weights import weighted_positions

FILTERS, POSITIONS, UNITS = 3, 6, 2
# Each batch: how many documents, and how many of their positions are given.
BATCHES = st.lists(st.tuples(st.integers(1, 3), st.integers(1, POSITIONS)), min_size=1, max_size=4).map(
    lambda batches: sorted(batches, key=lambda batch: -batch[1])
)


def drawn(*shape: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


def inputs(batches) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    documents = [drawn(count, FILTERS, length, seed=place + 2) for place, (count, length) in enumerate(batches)]
    return drawn(FILTERS, POSITIONS, UNITS, seed=0), drawn(FILTERS, seed=1), documents


def dense(weights: torch.Tensor, padding: torch.Tensor, documents: list[torch.Tensor]) -> torch.Tensor:
    """E[d, i, k] = sum over t of W[i, t, k] D[d, i, t]."""
    padded = []
    for batch in documents:
        rest = padding[:, None].expand(len(batch), FILTERS, POSITIONS - batch.shape[2])
        padded.append(torch.cat([batch, rest], dim=2))
    return torch.einsum("itk,dit->dik", weights, torch.cat(padded))


@given(BATCHES)
def test_values_and_gradients_are_those_of_padded_documents(batches):
    weights, padding, documents = inputs(batches)
    found = weighted_positions(weights, padding, documents)
    expected = dense(weights, padding, documents)
    torch.testing.assert_close(found, expected)
    factors = torch.linspace(-1, 2, found.numel(), dtype=torch.float64).view(found.shape)
    learned = [weights, padding, *documents]
    gradients = torch.autograd.grad((found * factors).sum(), learned)
    wanted = torch.autograd.grad((expected * factors).sum(), learned)
    for gradient, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradient, other)


@pytest.mark.parametrize("batches", [[(2, 6)], [(1, 5), (2, 5), (1, 1)], [(3, 1)]])
def test_numerical_gradients(batches):
    weights, padding, documents = inputs(batches)
    assert torch.autograd.gradcheck(
        lambda weights, padding, *documents: weighted_positions(weights, padding, documents),
        (weights, padding, *documents),
    )


def test_a_document_has_its_values_in_any_batch():
    weights, padding, documents = inputs([(2, 5), (1, 2)])
    together = weighted_positions(weights, padding, documents)
    torch.testing.assert_close(weighted_positions(weights, padding, [documents[0][1:]])[0], together[1])
    torch.testing.assert_close(weighted_positions(weights, padding, documents[1:])[0], together[2])
