"""Explanations of the later classics: cells, kernels, and what they add up to."""

import numpy as np
import pytest
import torch

import pt_neural as pn
from pt_neural.explain.models import interaction as interactions
from pt_neural.text import Vocabulary, pack_texts
from tests.models.matching.reference import made, scores

QUERY, TEXT = "river city", "the old city by the river and the sea river"
LINEAR = [
    (pn.MatchPyramid, {"filters": 2}),
    (pn.ARCII, {"layers": (3, 2), "hidden": 4}),
    (pn.MVLSTM, {"units": 3, "top_k": 4}),
    (pn.POSITDRMM, {"num_layers": 1}),
    (pn.PACRR, {"combination": "dense", "filters": 2}),
]
OTHERS = [
    (pn.KNRM, {}),
    (pn.ConvKNRM, {"max_ngram": 2, "filters": 3}),
    (pn.TK, {"heads": 2, "projection": 4}),
    (pn.DRMMTKS, {}),
    (pn.ANMM, {}),
    (pn.PACRR, {"filters": 2}),
]


def only(pairs):
    return pytest.mark.parametrize(("kind", "options"), pairs, ids=[kind.__name__ for kind, _ in pairs])


@only(LINEAR)
def test_cells_and_biases_add_up_to_a_piecewise_linear_score(kind, options):
    model = made(kind, **options)
    explanation = pn.explain(model, QUERY, TEXT)
    total = explanation.to_frame()["contribution"].sum() + explanation.biases
    assert total == pytest.approx(scores(model, [(QUERY, TEXT)])[0], abs=1e-5)
    assert "(biases)" in explanation._repr_html_()
    interaction = interaction_of(model)
    step = 1e-3  # small enough to stay on the same linear piece, and large enough for float32
    with torch.no_grad():
        above, below = (
            model.network.score_cells(interaction._replace(cells=interaction.cells * factor)).item()
            for factor in (1 + step, 1 - step)
        )
    assert explanation.cells.sum() == pytest.approx((above - below) / (2 * step), abs=0.02)
    with pytest.raises(ValueError, match="has no kernels"):
        explanation.kernels()


def interaction_of(model):
    sequences, terms = pack_texts([TEXT])
    groups = model.reader.pair([QUERY], sequences, Vocabulary(terms)).batch(np.array([0]), np.array([[0]]))
    with torch.no_grad():
        return model.network.interaction(groups)


@only(OTHERS)
def test_a_cell_is_worth_what_the_score_loses_without_it(kind, options, monkeypatch):
    model = made(kind, **options)
    monkeypatch.setattr(interactions, "CELLS_AT_ONCE", 100)
    explanation = pn.explain(model, QUERY, TEXT)
    interaction = interaction_of(model)
    for row, column in ((0, 5), (1, 2), (1, 1)):
        mask = interaction.mask.clone()
        mask[0, 0, row, column] = False
        with torch.no_grad():
            without = model.network.score_cells(interaction._replace(mask=mask)).item()
        assert explanation.cells[row, column] == pytest.approx(explanation.score - without, abs=1e-6)
    assert np.abs(explanation.cells).max() > 1e-3
    assert explanation.biases is None
    assert explanation.match[0].tolist() == [word == "river" for word in TEXT.split()]


@only(OTHERS[:3])
def test_kernels_add_up_to_the_score(kind, options):
    model = made(kind, **options)
    explanation = pn.explain(model, QUERY, TEXT)
    kernels = explanation.kernels()
    bias = 0 if kind is pn.TK else model.network.dense.bias.item()
    assert kernels["contribution"].sum() + bias == pytest.approx(explanation.score, abs=1e-5)
    assert kernels["contribution"].abs().is_monotonic_decreasing
    if kind is pn.KNRM:
        exact = kernels[kernels["width"] < 0.01]
        assert exact["count"].tolist() == [pytest.approx(3)]  # city once, river twice
    sizes = {pn.KNRM: 11, pn.ConvKNRM: 44, pn.TK: 22}
    assert len(kernels) == sizes[kind]
    axes = explanation.plot(bars=5)
    assert len(axes.figure.axes[1].patches) == 5
