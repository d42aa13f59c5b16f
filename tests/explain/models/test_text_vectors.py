"""What each word adds to the score of ARC-I."""

import numpy as np
import pytest
import torch

import pt_neural as pn
from tests.models.matching.reference import PAIRS, ByHand, arc_i_score, made, scores

QUERY, TEXT = "river city", "the old city by the river and the sea river"


@pytest.fixture(scope="module")
def model():
    return made(pn.ARCI, layers=(3, 4), hidden=5)


@pytest.mark.parametrize("pair", PAIRS)
def test_words_and_biases_add_up_to_the_score(model, pair):
    explanation = pn.explain(model, *pair)
    frame = explanation.to_frame()
    assert frame["contribution"].sum() + explanation.biases == pytest.approx(scores(model, [pair])[0], abs=1e-5)
    unknown = frame["word"].isin(["the", "by", "zebra", "a", "at", "gnu"])
    assert not frame.loc[unknown, "contribution"].any()


def test_without_biases_words_make_the_whole_score():
    model = made(pn.ARCI, layers=(3, 4), hidden=5)
    with torch.no_grad():
        for name, weight in model.network.named_parameters():
            if name.endswith("bias"):
                weight.zero_()
    explanation = pn.explain(model, QUERY, TEXT)
    assert explanation.biases == pytest.approx(0, abs=1e-6)
    assert abs(explanation.score) > 1e-3


@pytest.mark.parametrize(("side", "place"), [("query", 0), ("query", 1), ("document", 2), ("document", 5)])
def test_an_occurrence_adds_its_vector_times_the_slope(model, side, place):
    frame = pn.explain(model, QUERY, TEXT).to_frame()
    found = frame.loc[frame["side"] == side, "contribution"].iloc[place]
    hand, values, step = ByHand(model, QUERY, TEXT), [], 1e-5
    words = hand.query if side == "query" else hand.text
    vector, words[place] = hand.vector(words[place]), "changed"
    for factor in (1 + step, 1 - step):
        hand.vectors["changed"] = factor * vector
        values.append(arc_i_score(hand))
    assert found == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-4)


def test_words_beyond_those_that_are_read_add_nothing(model):
    explanation = pn.explain(model, QUERY, " ".join(["old city"] * 10))
    frame = explanation.to_frame()
    document = frame.loc[frame["side"] == "document", "contribution"].to_numpy()
    assert len(document) == 20
    assert not document[14:].any()
    assert np.abs(document[:14]).max() > 1e-3
    assert "words of the query" in explanation._repr_html_()
    assert "(biases)" in explanation.plot().get_title(loc="left") + explanation._repr_html_()
