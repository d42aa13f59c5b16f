import numpy as np
import pytest
import torch

from pt_neural.models.convolutions.match_pyramid import MatchPyramidNetwork
from pt_neural.models.matching import layers, lookups
from pt_neural.models.matching.layers import WordVectors
from pt_neural.models.matching.lookups import Pairs, cosines_of_pairs, largest_of_pairs
from pt_neural.models.pooling.anmm import ANMMNetwork
from pt_neural.models.pooling.drmmtks import DRMMTKSNetwork
from pt_neural.rankers.readers.word_sequences import WordGroups, WordTexts

NETWORKS = {
    "DRMMTKS": lambda vectors: DRMMTKSNetwork(vectors, top_k=4, hidden=3),
    "ANMM": lambda vectors: ANMMNetwork(vectors, bins=5, nodes=2),
    "MatchPyramid": lambda vectors: MatchPyramidNetwork(vectors, "dot", 3, 3, (2, 3), 5),
}


def texts(*words: list[int]) -> WordTexts:
    """Texts of word ids."""
    ids, places = np.unique(np.concatenate([np.array(text, dtype=np.int64) for text in words]), return_inverse=True)
    offsets = np.cumsum([0, *map(len, words)])
    return WordTexts(*map(torch.from_numpy, (ids, places, offsets)))


@pytest.fixture
def groups() -> WordGroups:
    """Three groups; 20 and 21 are unknown, and one query and one document have no words."""
    queries = texts([3, 8, 20], [4, 3], [])
    documents = texts([1, 3, 20, 21, 7, 6, 2, 5], [3], [], [8, 8, 1, 2, 4])
    return WordGroups(queries, documents, torch.tensor([1, 0, 2]), torch.tensor([[0, 1], [3, 0], [2, 3]]))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("factor", [0, 1e9])
def test_one_loop_scores_as_the_cells_do(name, trained, factor, groups, monkeypatch):
    torch.manual_seed(1)
    vectors = np.random.default_rng(2).normal(size=(9, 4)).astype("f4")
    network = NETWORKS[name](WordVectors(vectors, trained=trained))
    for weight in network.parameters():
        torch.nn.init.uniform_(weight, -1, 1)
    monkeypatch.setattr(network, "pool", lambda interaction: pytest.fail("cells were read"))
    monkeypatch.setattr(layers, "TABLE_COSTS_LESS", 1e9)
    monkeypatch.setattr(lookups, "LOOP_COSTS_LESS", factor)
    found = network(groups)
    monkeypatch.undo()
    monkeypatch.setattr(layers, "TABLE_COSTS_LESS", 0)
    expected = network(groups)
    torch.testing.assert_close(found, expected)
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    factors = torch.rand(found.shape)
    slopes = [torch.autograd.grad((scores * factors).sum(), weights) for scores in (found, expected)]
    torch.testing.assert_close(*slopes, atol=1e-5, rtol=1e-4)
    assert all(slope.isfinite().all() for slope in slopes[0])
    assert not trained or slopes[0][0][[1, 3, 8]].abs().sum(1).gt(0).all()


@pytest.mark.parametrize("trained", [True, False])
def test_cosines_of_words_of_the_same_pair(trained, groups):
    vectors = WordVectors(np.random.default_rng(2).normal(size=(9, 4)).astype("f4"), trained=trained)
    vectors.table.data[7] = 0  # no factor makes it a unit vector
    ids, pairs = (groups.queries.ids, groups.documents.ids), Pairs.of(groups)
    read = torch.zeros(len(ids[0]), len(ids[1]), dtype=torch.bool)
    for query, documents in zip(pairs.queries, pairs.documents, strict=True):
        rows = pairs.rows[slice(*pairs.row_starts[query : query + 2])]
        for document in documents:
            columns = pairs.columns[slice(*pairs.column_starts[document : document + 2])]
            read[np.ix_(rows, columns)] = True
    assert 0 < read.sum() < read.numel()
    assert pairs.cells == 2 * 8 + 2 * 1 + 3 * 5 + 3 * 8
    factors = torch.rand(read.shape, generator=torch.Generator().manual_seed(3)) * read
    found, expected = cosines_of_pairs(vectors, *ids, pairs), vectors.cosines(*ids)
    torch.testing.assert_close(found, expected * read)
    if trained:
        slopes = [torch.autograd.grad((cosines * factors).sum(), vectors.table)[0] for cosines in (found, expected)]
        torch.testing.assert_close(*slopes)
        assert slopes[0][[1, 3, 4, 8]].abs().sum(1).gt(0).all()
        assert not slopes[0][-1].any()


@pytest.mark.parametrize("name", ["DRMMTKS", "ANMM"])
@pytest.mark.parametrize(("factor", "compared"), [(0, "cosines"), (1e9, "cosines_of_pairs")])
def test_few_cosines_are_computed_alone(name, factor, compared, groups, monkeypatch):
    network = NETWORKS[name](WordVectors(np.random.default_rng(2).normal(size=(9, 4)).astype("f4"), trained=True))
    expected = network(groups)
    monkeypatch.setattr(layers, "TABLE_COSTS_LESS", 1e9)
    monkeypatch.setattr(lookups, "LOOP_COSTS_LESS", factor)
    unused = (WordVectors, "cosines") if compared == "cosines_of_pairs" else (lookups, "cosines_of_pairs")
    monkeypatch.setattr(*unused, lambda *_: pytest.fail("the other one was called"))
    torch.testing.assert_close(network(groups), expected)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("factor", [0, 1e9])
def test_nan_stays(name, factor, groups, monkeypatch):
    monkeypatch.setattr(lookups, "LOOP_COSTS_LESS", factor)
    vectors = np.random.default_rng(2).normal(size=(9, 4)).astype("f4")
    network = NETWORKS[name](WordVectors(vectors, trained=True))
    network.vectors.table.data[8] = torch.nan
    assert network(groups).isnan().tolist() == [[False, False], [True, True], [False, False]]


def test_the_largest_of_pairs_with_ties_and_nan():
    table = torch.tensor([[0.5, 0.5, -0.1, 0.7], [torch.nan, 0.2, 0.9, -0.3]])
    words = np.arange(2), np.array([0, 2]), np.array([0, 1, 2, 3, 2]), np.array([0, 4, 5])
    found = largest_of_pairs(table, Pairs(*words, np.array([0]), np.array([[0, 1]])), 3)
    torch.testing.assert_close(found[0, 0, 0], torch.tensor([0.7, 0.5, 0.5]))
    assert found[0, 0, 1, 0].isnan()
    torch.testing.assert_close(found[0, 0, 1, 1:], torch.tensor([0.9, 0.2]))
    torch.testing.assert_close(found[0, 1], torch.tensor([[-0.1, 0.0, 0.0], [0.9, 0.0, 0.0]]))
