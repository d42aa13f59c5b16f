"""The layers that the later classics share, and the reader that feeds them."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import pt_neural as pn
from pt_neural.models.convolutions.match_pyramid import dynamic_max
from pt_neural.models.matching import layers
from pt_neural.models.matching.encoders import Queries
from pt_neural.models.matching.layers import KernelPooling, SimilarityNetwork, WindowSums, WordVectors, largest
from pt_neural.rankers.readers import WordSequences
from pt_neural.rankers.readers.word_sequences import WordGroups, WordTexts
from pt_neural.text import Vocabulary, pack_texts
from tests.models.matching.reference import KNOWN, PAIRS, made, scores, spaces


def test_the_gradient_of_kernels():
    random = torch.Generator().manual_seed(0)
    cells = torch.rand(2, 3, 5, generator=random, dtype=torch.float64) * 2 - 1
    mask = torch.rand(2, 3, 5, generator=random) > 0.3
    cells.view(-1)[3] = 1.0
    cells.requires_grad_()
    pooling = KernelPooling([0.9, 0.5, 0.1, -0.3], 0.1, exact=True)
    means, widths = pooling.means, pooling.widths

    def by_hand(values):
        kernels = torch.exp(-((values[..., None] - torch.tensor(means)) ** 2) / (2 * torch.tensor(widths) ** 2))
        return (kernels * mask[..., None]).sum(-2)

    found, expected = pooling(cells, mask), by_hand(cells)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
    weights = torch.rand(expected.shape, generator=random)
    slopes = [torch.autograd.grad((counts * weights).sum(), cells)[0] for counts in (found, expected)]
    torch.testing.assert_close(*slopes, atol=1e-5, rtol=1e-4)


def test_the_largest_values_of_a_row():
    values, mask = torch.tensor([[-3.0, -1.0, 9.0, -2.0]]), torch.tensor([[True, True, False, True]])
    assert largest(values, mask, 2).tolist() == [[-1, -2]]
    assert largest(values, mask, 6).tolist() == [[-1, -2, -3, 0, 0, 0]]


def test_a_grid_divides_each_text_by_its_own_length():
    values = torch.tensor([[[1.0, 5, 2, 4, 3, 9, 9]], [[7.0, 8, 9, 9, 9, 9, 9]], [[6.0, 9, 9, 9, 9, 9, 9]]])
    lengths, one = torch.tensor([5, 2, 0]), torch.tensor([1, 1, 0])
    largest_values = torch.tensor([[[5, 5, 4]], [[7, 8, 8]], [[6, 6, 6]]])
    assert torch.equal(dynamic_max(values[:, :, None], one, lengths, (1, 3))[..., 0], largest_values)
    assert torch.equal(dynamic_max(values[..., None], lengths, one, (3, 1))[:, :, 0], largest_values)


def test_windows_end_with_their_text():
    sums = WindowSums(2, 2, 3)
    vectors = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    found = sums(vectors, torch.tensor([2, 0, 1]), torch.tensor([0, 2, 2, 3]))
    first, second = sums.projection.weight.view(2, 3, 2)
    expected = torch.stack([first @ vectors[2] + second @ vectors[0], first @ vectors[0], first @ vectors[1]])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("lengths", [[3, 0, 4, 1], [1], [0], []])
def test_windows_over_rows_in_order_and_their_gradients_are_those_of_places(lengths):
    torch.manual_seed(13)
    sums, rows = WindowSums(2, 3, 4), torch.randn(sum(lengths), 2, requires_grad=True)
    offsets = torch.tensor([0, *np.cumsum(lengths, dtype=int)])
    both = [sums(rows, words, offsets) for words in (None, torch.arange(len(rows)))]
    torch.testing.assert_close(*both)
    inputs, weights = (rows, *sums.parameters()), torch.randn_like(both[0])
    gradients = [torch.autograd.grad((weights * found).sum(), inputs) for found in both]
    torch.testing.assert_close(*gradients)


def test_unknown_words_have_no_vector_and_the_scale_is_that_of_the_components():
    vectors = WordVectors(np.full((3, 4), 0.5, dtype="f4"), trained=False)
    assert vectors(torch.tensor([1, 3, 99])).tolist() == [[1] * 4, [0] * 4, [0] * 4]
    assert not list(vectors.parameters())
    assert not vectors.state_dict()


def test_the_reader_has_each_text_and_each_word_once():
    sequences, terms = pack_texts(["river city river zebra", "gnu"])
    vocabulary = Vocabulary(terms)
    reader = WordSequences(spaces(), query_terms=3, document_terms=3, idf=True)
    reader.build([], sequences, vocabulary)
    groups = reader.pair(["zebra zebra old sea", "x"], sequences, vocabulary).batch(
        np.array([0, 1]), np.array([[0, 0], [0, 1]])
    )
    assert groups.document_rows.tolist() == [[0, 0], [0, 1]]
    assert groups.documents.ids[groups.documents.words].tolist()[:3] == [0, 1, 0]
    places, is_word = groups.queries.padded()
    assert is_word.tolist() == [[True] * 3, [True, False, False]]
    ids = [*groups.queries.ids.tolist(), "padding"]
    words = [[ids[place] for place in row] for row in places.tolist()]
    assert words[0] == [words[0][0], words[0][0], KNOWN.index("old")]
    assert words[1][1:] == ["padding"] * 2
    assert words[0][0] > len(KNOWN)
    assert groups.queries.idf[places[0, 0]].item() == pytest.approx(np.log(3 / 1))


def test_a_document_is_one_of_several_of_a_batch():
    """Scores of pairs together and of each alone, for a network over similarities and one that encodes."""
    for model in (made(pn.MatchPyramid), made(pn.ARCII, layers=(3, 2), hidden=3), made(pn.POSITDRMM)):
        together = scores(model)
        alone = [scores(model, [pair])[0] for pair in PAIRS]
        np.testing.assert_allclose(together, alone, atol=1e-5)
        groups = model.reader.pair([PAIRS[0][0]], *model._frame_documents(frame())[1:])
        found = model.network(groups.batch(np.array([0]), np.array([[0, 1, 0]])))[0]
        expected = scores(model, [(PAIRS[0][0], PAIRS[number][1]) for number in (0, 1, 0)])
        np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("kind", [pn.MVLSTM, pn.POSITDRMM])
def test_training_and_ranking_see_the_same(kind):
    """Scores of a batch of all queries and documents, as in training, and of documents that are read once."""
    model, numbers = made(kind, query_terms=2), np.arange(len(PAIRS))
    queries, texts = zip(*PAIRS, strict=True)
    sequences, terms = pack_texts(texts)
    groups = model.reader.pair(queries, sequences, Vocabulary(terms)).batch(numbers, np.tile(numbers, (len(PAIRS), 1)))
    with torch.no_grad():
        found = model.network(groups).numpy()
    expected = scores(model, [(query, text) for query in queries for text in texts]).reshape(found.shape)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def frame():
    return pd.DataFrame([{"qid": "1", "query": "q", "docno": text, "text": text} for _, text in PAIRS[:2]])


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("kind", [pn.ConvKNRM, pn.TK, pn.MVLSTM, pn.POSITDRMM, pn.ARCI, pn.ARCII])
def test_documents_that_were_read_before_score_alike(kind, dtype, tmp_path):
    model = made(kind)
    expected = scores(model)
    corpus = [{"docno": f"d{number}", "text": text} for number, (_, text) in enumerate(PAIRS)]
    model.representations = model.index(tmp_path / "kept", corpus, dtype=dtype, verbose=False)
    frame = pd.DataFrame({"qid": [f"q{number}" for number in range(len(PAIRS))], "query": [one for one, _ in PAIRS]})
    found = model.transform(frame.assign(docno=[document["docno"] for document in corpus]))["score"]
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())
    assert len(set(expected.round(4))) > 4


class LargestTensor(TorchDispatchMode):
    """Remembers the size of the largest tensor that is made."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and not made._is_view():
            self.size = max(self.size, made.numel())
        return made


def test_a_few_documents_are_matched_without_a_copy_of_all():
    network = made(pn.ConvKNRM).network
    rows, offsets = torch.rand(5000, network.columns), torch.arange(0, 5001, 5)
    queries = Queries(torch.rand(1, 2, network.columns), torch.tensor([2]), None)
    with torch.no_grad(), LargestTensor() as largest_tensor:
        network.match(queries, rows, offsets, torch.tensor([[3, 999]]), None)
    assert 0 < largest_tensor.size < rows.numel() / 10


def test_models_without_an_encoder_keep_nothing(tmp_path):
    with pytest.raises(ValueError, match="reads a document together with the query"):
        made(pn.KNRM).index(tmp_path / "kept", [])


@pytest.mark.parametrize(
    ("kind", "setting", "value", "message"),
    [
        (pn.KNRM, "embeddings", "thawed", "embeddings must be one of 'frozen', 'trained'"),
        (pn.KNRM, "query_terms", 0, "query_terms must be at least 1"),
        (pn.ConvKNRM, "max_ngram", 0, "max_ngram must be at least 1"),
        (pn.MatchPyramid, "similarity", "euclid", "similarity must be one of 'cosine', 'dot', 'exact'"),
        (pn.PACRR, "selection", "last-k", "selection must be one of"),
        (pn.ARCI, "layers", (), "layers must hold at least one integer"),
        (pn.MVLSTM, "slices", 1.5, "slices must be an integer"),
        (pn.TK, "heads", 7, "projection must be a multiple of heads, 7, not 32"),
    ],
)
def test_settings_are_checked(kind, setting, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kind(spaces(), **{setting: value})
    with pytest.raises(TypeError, match=r"spaces must be pn\.EmbeddingSpaces"):
        kind(["river"])


class Sums(SimilarityNetwork):
    """The smallest network over similarities."""

    def score_cells(self, interaction):
        return (interaction.cells * interaction.mask).sum((2, 3))


@pytest.mark.parametrize("similarity", ["cosine", "dot", "exact"])
@pytest.mark.parametrize("trained", [True, False])
def test_pairs_are_compared_alike_by_a_table_and_by_themselves(similarity, trained, monkeypatch):
    random = np.random.default_rng(2)
    network = Sums(WordVectors(random.normal(size=(9, 4)).astype("f4"), trained=trained), similarity)
    queries = WordTexts(*map(torch.tensor, ([3, 8, 12], [0, 1, 2, 1], [0, 3, 4])))  # 12 is unknown
    documents = WordTexts(*map(torch.tensor, ([1, 3, 12, 14], [0, 1, 2, 3, 1, 2], [0, 4, 4, 6])))
    groups = WordGroups(queries, documents, torch.tensor([1, 0, 0]), torch.tensor([[0, 1], [2, 0], [1, 2]]))
    found = []
    for share in (0, 1e9):
        monkeypatch.setattr(layers, "TABLE_COSTS_LESS", share)
        found.append(network.interaction(groups))
    for one, other in zip(*found, strict=True):
        assert one is other is None or torch.allclose(one, other, atol=1e-6)
    assert found[0].cells.shape == (3, 2, 3, 4)
    if trained and similarity != "exact":
        weights = torch.rand(found[0].cells.shape)
        slopes = [torch.autograd.grad((one.cells * weights).sum(), network.vectors.table)[0] for one in found]
        torch.testing.assert_close(*slopes, atol=1e-5, rtol=1e-4)
        assert slopes[0][[1, 3, 8]].abs().sum(1).gt(0).all()


def test_cosines_of_no_words():
    vectors = WordVectors(np.eye(3, dtype="f4"), trained=False)
    words, none = torch.tensor([2, 5]), torch.tensor([], dtype=torch.int64)
    assert vectors.cosines(words, none).shape == (2, 0)
    assert vectors.cosines(none, words).shape == (0, 2)
