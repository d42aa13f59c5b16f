"""MatchPyramid, PACRR, ARC-I and ARC-II against loops over cells and words."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

import pt_neural as pn
from pt_neural.models.convolutions import arc
from pt_neural.models.convolutions.arc import larger_of_two, larger_of_two_windows
from pt_neural.models.convolutions.match_pyramid import dynamic_max, largest_of_windows, same_size
from pt_neural.models.matching.layers import WindowSums
from pt_neural.models.matching.lookups import Pairs
from pt_neural.models.matching.ranker import MatchingRanker
from pt_neural.rankers.readers.word_sequences import WordTexts
from tests.models.matching.reference import PAIRS, ByHand, arc_i_score, k_largest, made, relu, scores


def cell(cells: np.ndarray, row: int, column: int) -> float:
    inside = 0 <= row < cells.shape[0] and 0 <= column < cells.shape[1]
    return cells[row, column] if inside else 0.0


@pytest.mark.parametrize("similarity", ["cosine", "dot", "exact"])
def test_match_pyramid_pools_over_the_words_that_there_are(similarity):
    grid = {"query_fields": 2, "document_fields": 3}
    model = made(pn.MatchPyramid, similarity=similarity, filters=2, hidden=4, **grid)
    expected = []
    for pair in PAIRS:
        hand = ByHand(model, *pair)
        cells = hand.cosines()
        if similarity != "cosine":
            compare = {
                "dot": lambda one, other, hand=hand: hand.vector(one) @ hand.vector(other) / 6,
                "exact": lambda one, other: float(one == other),
            }[similarity]
            cells = np.array([[compare(one, other) for other in hand.text] for one in hand.query])
            cells = cells.reshape(len(hand.query), len(hand.text))
        rows, columns = max(1, cells.shape[0]), max(1, cells.shape[1])
        weights, biases = hand.weights["convolution.weight"][:, 0], hand.weights["convolution.bias"]
        pooled = []
        for window, bias in zip(weights, biases, strict=True):
            values = np.zeros((rows, columns))
            for i in range(rows):
                for j in range(columns):
                    around = [[cell(cells, i + s - 1, j + t - 1) for t in range(3)] for s in range(3)]
                    values[i, j] = relu((window * around).sum() + bias)
            for column in range(3):
                for row in range(2):
                    field = values[
                        row * rows // 2 : math.ceil((row + 1) * rows / 2),
                        column * columns // 3 : math.ceil((column + 1) * columns / 3),
                    ]
                    pooled.append(field.max())
        expected.append(hand.layer("output", relu(hand.layer("hidden", np.array(pooled))))[0])
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


@pytest.mark.parametrize("window", [1, 2, 3, 4, 5])
def test_filters_and_pooling_in_one_loop_are_those_of_a_convolution(window):
    random = torch.Generator().manual_seed(0)
    query_lengths, lengths = torch.tensor([4, 1, 3, 0]), torch.tensor([9, 2, 0, 7])
    is_word = (torch.arange(4) < query_lengths[:, None])[..., None] & (torch.arange(9) < lengths[:, None])[:, None]
    cells = (torch.rand(4, 4, 9, generator=random) * is_word).requires_grad_()
    weight = torch.randn(5, window, window, generator=random, requires_grad=True)
    pairs = Pairs.of_cells(query_lengths, lengths, 4)
    found = largest_of_windows(cells.flatten(0, 1), pairs, weight, (2, 3))[:, 0]
    values = F.conv2d(same_size(cells[:, None], window), weight[:, None])
    expected = dynamic_max(values, query_lengths, lengths, (2, 3))
    torch.testing.assert_close(found, expected)
    factors = torch.rand(expected.shape, generator=random)
    slopes = [torch.autograd.grad((values * factors).sum(), [cells, weight]) for values in (found, expected)]
    torch.testing.assert_close(slopes[0][1], slopes[1][1])
    torch.testing.assert_close(slopes[0][0], slopes[1][0] * is_word)  # the loop leaves out what is no word
    weight.data[2, 0, 0] = cells.data[0, 0, 0] = torch.nan
    lost = largest_of_windows(cells.flatten(0, 1), pairs, weight, (2, 3))[:, 0].isnan()
    assert lost[:, 2].all()
    assert lost[0, :, 0, 0].all()


def pacrr_features(model: pn.PACRR, hand: ByHand, idf: dict[str, float]) -> np.ndarray:
    """The inputs of the LSTM or of the hidden layers: (query words, features)."""
    cells, (rows, columns) = hand.cosines(), hand.cosines().shape
    exponents = np.exp([idf[word] for word in hand.query])
    features = [[] for _ in range(rows)]
    for size in (1, 2, 3):
        starts, inside = [*range(columns)], cells
        if model.selection == "k-window":
            strength = [cells[:, place].max() for place in range(columns)] if rows else [0.0] * columns
            starts = [*range(max(1, columns - size + 1))] if columns else []
            means = [sum(strength[start : start + size]) / size for start in starts]
            best = sorted(starts, key=lambda start: -means[start])[: max(1, model.window_terms // size)]
            starts = sorted(best)
        for row in range(rows):
            values = []
            for start in starts:
                if size == 1:
                    values.append(cells[row, start])
                    continue
                window = [[cell(inside, row + s, start + t) for t in range(size)] for s in range(size)]
                weights = hand.weights[f"convolutions.{size - 2}.weight"][:, 0]
                biases = hand.weights[f"convolutions.{size - 2}.bias"]
                values.append(max(relu((weights * window).sum((1, 2)) + biases)))
            features[row] += k_largest(values, model.top_k).tolist()
    return np.array([[*row, share] for row, share in zip(features, exponents / exponents.sum(), strict=True)])


@pytest.mark.parametrize("selection", ["first-k", "k-window"])
@pytest.mark.parametrize("combination", ["lstm", "dense"])
def test_pacrr_reads_the_strongest_matches_of_each_query_word(combination, selection):
    model = made(pn.PACRR, combination=combination, selection=selection, window_terms=7, filters=2, dense_units=4)
    texts = [set(text.split()) for pair in PAIRS for text in pair]
    idf = {w: math.log(19 / max(1, sum(w in text for text in texts))) for pair in PAIRS for w in pair[0].split()}
    expected = []
    for pair in PAIRS:
        hand = ByHand(model, *pair)
        features = pacrr_features(model, hand, idf) if hand.query else np.zeros((0, 7))
        if combination == "dense":
            padded = np.zeros((5, 7))
            padded[: len(features)] = features
            hidden = relu(hand.layer("second", relu(hand.layer("first", padded.ravel()))))
            expected.append(hand.layer("output", hidden)[0])
        else:
            lstm = torch.nn.LSTM(7, 1).double()
            lstm.load_state_dict({name: weight.double() for name, weight in model.network.lstm.state_dict().items()})
            with torch.no_grad():
                expected.append(lstm(torch.from_numpy(features if len(features) else np.zeros((1, 7))))[0][-1].item())
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


@pytest.mark.parametrize("lengths", [[3, 0, 4, 1], [0, 0], []])
def test_the_larger_of_two_and_its_gradients_are_those_of_pooling(lengths):
    torch.manual_seed(13)
    rows = torch.randn(sum(lengths), 5, requires_grad=True)
    pooled, offsets = larger_of_two(rows, torch.tensor([0, *np.cumsum(lengths, dtype=int)]))
    assert offsets.diff().tolist() == [(length + 1) // 2 for length in lengths]
    texts = [text.T for text in rows.split(lengths) if len(text)]
    expected = [F.max_pool1d(text[None], 2, ceil_mode=True)[0].T for text in texts]
    expected = torch.cat([rows[:0], *expected])
    torch.testing.assert_close(pooled, expected)
    weights = torch.randn_like(pooled)
    gradients = [torch.autograd.grad((weights * one).sum(), rows)[0] for one in (pooled, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("lengths", [[3, 1, 2, 5, 4], [0, 2, 0, 7], [1], [0]])
def test_windows_with_fewer_products_are_those_of_a_convolution_and_pooling(lengths):
    torch.manual_seed(13)
    layer = WindowSums(6, 3, 5).double()
    torch.nn.init.normal_(layer.bias)
    rows = torch.randn(sum(lengths), 6, dtype=torch.float64, requires_grad=True)
    pooled, offsets = larger_of_two_windows(layer, rows, torch.tensor([0, *np.cumsum(lengths, dtype=int)]))
    assert offsets.diff().tolist() == [(length + 1) // 2 for length in lengths]
    filters = layer.projection.weight.view(3, 5, 6).permute(1, 2, 0)  # (filters, inputs, window)
    texts = [F.pad(text.T, (0, 2))[None] for text in rows.split(lengths) if len(text)]
    convolved = [F.conv1d(text, filters, layer.bias) for text in texts]
    expected = torch.cat([rows[:0, :5], *(F.max_pool1d(values, 2, ceil_mode=True)[0].T for values in convolved)])
    torch.testing.assert_close(pooled, expected)
    weights, learned = torch.randn_like(pooled), (rows, layer.projection.weight, layer.bias)
    gradients = (
        torch.autograd.grad((weights * one).sum(), learned, materialize_grads=True) for one in (pooled, expected)
    )
    torch.testing.assert_close(*gradients)


def test_arc_i_trains_with_fewer_products_but_scores_with_the_usual_ones(monkeypatch):
    """Scores must not depend on the batch, so only training may round differently."""
    calls = []
    monkeypatch.setattr(
        arc, "larger_of_two_windows", lambda *given: calls.append(given) or larger_of_two_windows(*given)
    )
    model = made(pn.ARCI, layers=(3, 4), hidden=5)
    scores(model)
    assert not calls
    texts = WordTexts(torch.arange(5), torch.tensor([3, 0, 1, 4, 2, 2]), torch.tensor([0, 5, 6]))
    found = [model.network.train(training).encode("document", texts) for training in (True, False)]
    assert len(calls) == 1
    torch.testing.assert_close(*found)


def test_arc_i_compares_vectors_of_sentences():
    model = made(pn.ARCI, layers=(3, 4), hidden=5)
    expected = []
    for pair in PAIRS:
        hand = ByHand(model, *pair)
        expected.append(arc_i_score(hand))
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


def test_arc_ii_reads_an_image_of_matches():
    model = made(pn.ARCII, layers=(3, 4), hidden=5)
    expected = []
    for pair in PAIRS:
        hand = ByHand(model, *pair)
        rows, columns = len(hand.query), len(hand.text)
        query, text = hand.windows("query", hand.query, 3), hand.windows("document", hand.text, 3)
        image = np.array([[relu(a + b) for b in text] for a in query]).reshape(rows, columns, 3)
        image = halved_twice(image)
        weights, bias = hand.weights["further.0.weight"], hand.weights["further.0.bias"]
        rows, columns = image.shape[:2]
        following = np.zeros((rows + 3, columns + 3, 3))
        following[:rows, :columns] = image
        values = np.zeros((rows, columns, 4))
        for i in range(rows):
            for j in range(columns):
                window = following[i : i + 3, j : j + 3]  # (rows, columns, filters)
                values[i, j] = relu(np.einsum("ofst,stf->o", weights, window) + bias)
        padded = np.zeros((2, 4, 4))
        values = halved_twice(values)
        padded[: values.shape[0], : values.shape[1]] = values
        expected.append(hand.layer("output", relu(hand.layer("hidden", padded.transpose(2, 0, 1).ravel())))[0])
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


def test_arc_ii_pools_each_document_once_for_all_queries(monkeypatch):
    """Not once for every few pairs, which took five times as long for a hundred queries."""
    pooled = []
    monkeypatch.setattr(arc, "larger_of_two", lambda rows, offsets: pooled.append(rows) or larger_of_two(rows, offsets))
    model = made(pn.ARCII, layers=(3, 4), hidden=5)
    texts = [f"{'sea ' * number} harbor" for number in range(70)]
    rows = [(f"q{query}", "harbor sea", f"d{number}", text) for query in range(3) for number, text in enumerate(texts)]
    model.transform(pd.DataFrame(rows, columns=["qid", "query", "docno", "text"]))
    assert sum(map(len, pooled)) == sum(min(len(text.split()), model.document_terms) for text in texts)


def test_arc_ii_refuses_documents_that_were_kept_before_they_were_pooled(tmp_path, monkeypatch):
    model = made(pn.ARCII, layers=(3, 4), hidden=5)
    documents = pn.ForwardIndex.build(tmp_path / "text", [{"docno": "d", "text": "river city sea"}], fields=["text"])
    kept = model.index(tmp_path / "kept", documents)
    assert len(kept.read(np.array([0]))[0]) == 2  # rows for three words
    frame = pd.DataFrame([("q", "harbor sea", "d")], columns=["qid", "query", "docno"])
    model.representations = kept
    model.transform(frame)
    with monkeypatch.context() as patch:
        patch.setattr(pn.ARCII, "_identity_parts", MatchingRanker._identity_parts)
        earlier = made(pn.ARCII, layers=(3, 4), hidden=5).index(tmp_path / "earlier", documents)
    model.representations = earlier
    with pytest.raises(ValueError, match="made by another model"):
        model.transform(frame)


def halved_twice(image: np.ndarray) -> np.ndarray:
    """The largest of each 2 x 2 values."""
    rows, columns, filters = image.shape
    found = [[image[i : i + 2, j : j + 2].max(axis=(0, 1)) for j in range(0, columns, 2)] for i in range(0, rows, 2)]
    return np.array(found).reshape(-(-rows // 2), -(-columns // 2), filters)
