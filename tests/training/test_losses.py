import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import pt_neural as pn
from pt_neural.training.losses import make_loss, margin_loss, pointwise_loss, softmax_loss

SCORES = torch.tensor([[0.9, 0.4, -0.2], [0.1, 0.6, 0.3]])
LABELS = torch.tensor([[2.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
ALL = torch.ones(2, 3, dtype=torch.bool)
SECOND_LACKS_ONE = torch.tensor([[True, True, True], [True, True, False]])


def test_softmax_by_hand():
    # gamma 2: exp(1.8) = 6.0496, exp(.8) = 2.2255, exp(-.4) = .6703, sum 8.9455, p = .67628, -log p = .39115
    #          exp(.2) = 1.2214, exp(1.2) = 3.3201, exp(.6) = 1.8221, sum 6.3636, p = .19194, -log p = 1.65058
    loss = softmax_loss(SCORES, LABELS, ALL, gamma=2.0)
    assert loss.item() == pytest.approx((0.39115 + 1.65058) / 2, abs=2e-5)


def test_softmax_by_hand_without_a_masked_document():
    # The second group without its last document: 1.2214 / 4.5415 = .26894, -log p = 1.31326
    loss = softmax_loss(SCORES, LABELS, SECOND_LACKS_ONE, gamma=2.0)
    assert loss.item() == pytest.approx((0.39115 + 1.31326) / 2, abs=2e-5)


def test_margin_by_hand():
    # max(0, .7 - .9 + .4) = .2, max(0, .7 - .9 - .2) = 0; max(0, .7 - .1 + .6) = 1.2, max(0, .7 - .1 + .3) = .9
    assert margin_loss(SCORES, LABELS, ALL, margin=0.7).item() == pytest.approx((0.2 + 0 + 1.2 + 0.9) / 4)
    assert margin_loss(SCORES, LABELS, SECOND_LACKS_ONE, margin=0.7).item() == pytest.approx((0.2 + 0 + 1.2) / 3)


def test_pointwise_by_hand():
    # With grades up to 2 the targets are 1, 0, .5 and .5, 0, 0; log(1 + exp(s)) - t * s for each score s
    def cross_entropy(score, target):
        return math.log1p(math.exp(score)) - target * score

    first = [cross_entropy(0.9, 1), cross_entropy(0.4, 0), cross_entropy(-0.2, 0.5)]
    second = [cross_entropy(0.1, 0.5), cross_entropy(0.6, 0), cross_entropy(0.3, 0)]
    loss = pointwise_loss(SCORES, LABELS, ALL, highest=2.0)
    assert loss.item() == pytest.approx((sum(first) + sum(second)) / 6)
    loss = pointwise_loss(SCORES, LABELS, SECOND_LACKS_ONE, highest=2.0)
    assert loss.item() == pytest.approx((sum(first) + sum(second[:2])) / 5)


def test_pointwise_negatives_of_others_take_no_weight_from_the_positive():
    one = pointwise_loss(SCORES[:, :2], LABELS[:, :2], ALL[:, :2], highest=2.0)
    doubled = torch.cat([SCORES[:, :2], SCORES[:, 1:2]], dim=1), torch.cat([LABELS[:, :2], LABELS[:, 1:2]], dim=1)
    assert pointwise_loss(*doubled, ALL, highest=2.0, num_negatives=1).item() == pytest.approx(one.item())
    assert pointwise_loss(*doubled, ALL, highest=2.0).item() != pytest.approx(one.item())
    loss = make_loss(pn.Training(loss="pointwise", num_negatives=1, shared_groups=1), highest=2.0)
    assert loss(*doubled, ALL).item() == pytest.approx(one.item())


def test_pointwise_grades_below_zero_count_as_zero():
    junk = torch.tensor([[1.0, -2.0]])
    none = torch.tensor([[1.0, 0.0]])
    everything = torch.ones(1, 2, dtype=torch.bool)
    scores = torch.tensor([[0.3, 0.7]])
    assert pointwise_loss(scores, junk, everything, highest=1.0) == pointwise_loss(
        scores, none, everything, highest=1.0
    )


@settings(max_examples=40)
@given(
    arrays(np.float64, (3, 5), elements=st.floats(-1, 1)),
    arrays(np.bool_, (3, 4)),
    st.sampled_from([0.5, 1.0, 10.0, 100.0]),
)
def test_softmax_is_the_loss_of_the_papers_appendix_and_has_its_gradient(scores, valid, gamma):
    """CLSM paper, equations 8 to 11: loss log(1 + sum exp(-gamma delta)), and a factor alpha for each delta."""
    valid = np.column_stack([np.ones(3, dtype=bool), valid])
    expected_loss, expected_gradient = 0.0, np.zeros((3, 5))
    for group in range(3):
        negatives = [place for place in range(1, 5) if valid[group, place]]
        terms = {place: math.exp(-gamma * (scores[group, 0] - scores[group, place])) for place in negatives}
        total = 1 + sum(terms.values())
        expected_loss += math.log(total) / 3
        for place, term in terms.items():
            alpha = -gamma * term / total  # the derivative by delta, which is positive minus negative
            expected_gradient[group, 0] += alpha / 3
            expected_gradient[group, place] -= alpha / 3
    given_scores = torch.tensor(scores, requires_grad=True)
    loss = softmax_loss(given_scores, torch.zeros(3, 5), torch.from_numpy(valid), gamma=gamma)
    loss.backward()
    assert loss.item() == pytest.approx(expected_loss, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(given_scores.grad.numpy(), expected_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["softmax", "margin", "pointwise"])
def test_masked_documents_have_no_part_in_loss_or_gradient(name):
    loss = make_loss(pn.Training(loss=name, gamma=3.0, margin=2.0), highest=2.0)
    other = SCORES.clone()
    other[1, 2] = 50.0
    other.requires_grad_()
    value = loss(other, LABELS, SECOND_LACKS_ONE)
    assert value.item() == pytest.approx(loss(SCORES, LABELS, SECOND_LACKS_ONE).item())
    value.backward()
    assert other.grad[1, 2] == 0
    assert (other.grad[0] != 0).all()


@pytest.mark.parametrize("name", ["softmax", "margin"])
def test_a_group_without_negatives_teaches_nothing(name):
    loss = make_loss(pn.Training(loss=name, gamma=3.0, margin=1.0), highest=1.0)
    scores = torch.tensor([[0.5, 0.1]], requires_grad=True)
    value = loss(scores, torch.zeros(1, 2), torch.tensor([[True, False]]))
    value.backward()
    assert value.item() == 0
    assert (scores.grad == 0).all()


@pytest.mark.parametrize("name", ["softmax", "margin", "pointwise"])
def test_scores_out_of_all_bounds_give_no_nan(name):
    loss = make_loss(pn.Training(loss=name, gamma=10.0, margin=1.0), highest=1.0)
    scores = torch.tensor([[-1e4, 1e4], [1e4, -1e4]], requires_grad=True)
    value = loss(scores, torch.zeros(2, 2), torch.ones(2, 2, dtype=torch.bool))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(scores.grad).all()


def test_the_settings_reach_the_losses():
    training = pn.Training(loss="softmax", gamma=2.0)
    assert make_loss(training, highest=1.0)(SCORES, LABELS, ALL) == softmax_loss(SCORES, LABELS, ALL, gamma=2.0)
    training = pn.Training(loss="margin", margin=0.7)
    assert make_loss(training, highest=1.0)(SCORES, LABELS, ALL) == margin_loss(SCORES, LABELS, ALL, margin=0.7)
    training = pn.Training(loss="pointwise")
    assert make_loss(training, highest=2.0)(SCORES, LABELS, ALL) == pointwise_loss(SCORES, LABELS, ALL, highest=2.0)
