"""Dropout by bytes: shares, means, gradients, repeatability."""

import pytest
import torch

from pt_neural.models.byte_dropout import ByteDropout


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9])
def test_the_share_is_dropped_and_the_mean_stays(share):
    torch.manual_seed(0)
    dropped = ByteDropout(share)(torch.full((400, 1000), 3.0))
    exact = round(256 * share) / 256
    assert abs(exact - share) <= 1 / 512
    assert float((dropped == 0).float().mean()) == pytest.approx(exact, abs=0.005)
    assert dropped[dropped != 0].unique().tolist() == pytest.approx([3 / (1 - exact)], rel=1e-5)
    assert float(dropped.mean()) == pytest.approx(3, rel=0.02)


def test_units_are_dropped_independently():
    torch.manual_seed(0)
    kept = (ByteDropout(0.5)(torch.ones(100_000)) != 0).double()
    for apart in (1, 2, 3, 4, 7, 8, 64):  # eight units share a random number
        assert float((kept[apart:] * kept[:-apart]).mean()) == pytest.approx(0.25, abs=0.01)


def test_units_stay_as_they_are_in_use_and_without_dropout():
    units = torch.randn(7, 3)
    assert ByteDropout(0.5).eval()(units) is units
    assert ByteDropout(0.0)(units) is units
    assert ByteDropout(0.001)(units) is units  # less than half of a 256th


def test_the_seed_decides():
    units, dropout = torch.ones(1000), ByteDropout(0.3)
    found = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        found.append(dropout(units))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert not torch.equal(found[2], dropout(units))


def test_gradients_reach_the_units_that_are_kept():
    units = torch.randn(13, 5, dtype=torch.float64, requires_grad=True)
    dropped = ByteDropout(0.5)(units)
    dropped.sum().backward()
    torch.testing.assert_close(units.grad, (dropped != 0).double() * 2)
    assert (dropped != 0).any()
    assert (dropped == 0).any()


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (8,), (9,), (3, 0), (3, 5, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_any_shape_and_precision(shape, dtype):
    dropped = ByteDropout(0.5)(torch.ones(shape, dtype=dtype))
    assert (dropped.shape, dropped.dtype) == (shape, dtype)
    assert set(dropped.flatten().tolist()) <= {0.0, 2.0}


def test_nearly_everything_can_be_dropped():
    torch.manual_seed(0)
    dropped = ByteDropout(0.9999)(torch.ones(100_000))
    assert float((dropped != 0).float().mean()) == pytest.approx(1 / 256, rel=0.2)
    assert set(dropped.tolist()) == {0.0, 256.0}
