"""CLSM against equations 1, 2 and 4 over dense letter-trigram vectors, and what it learns."""

import numpy as np
import pandas as pd
import pytest
import torch.nn.functional as F

import pt_neural as pn
from pt_neural.models.clsm.clsm import ConvolutionalTower
from pt_neural.text import tokenise

TEXTS = ["boys will be boys", "a girl", "mississippi river boat on the river"]
TOPICS = ["the boy", "river girls", "be be be", "boat"]


def counts(word: str, ngrams: list[str]) -> np.ndarray:
    """f(word), dense (section 3.2)."""
    vector = np.zeros(len(ngrams))
    for i in range(len(word)):
        trigram = f"#{word}#"[i : i + 3]
        if trigram in ngrams:
            vector[ngrams.index(trigram)] += 1
    return vector


class Reference:
    """Section 3 of the paper, window by window, with one dense W_c."""

    def __init__(self, model: pn.CLSM, side: str):
        self.model, self.ngrams = model, model.reader.hashing.ngrams
        weights = {name: array.double().numpy() for name, array in model.network.state_dict().items()}
        blocks = weights[f"{side}.hashing.weight"].reshape(len(self.ngrams), model.window, model.filters)
        self.w_c = blocks.transpose(2, 1, 0).reshape(model.filters, model.window * len(self.ngrams))
        self.w_s = weights[f"{side}.semantic.weight"]

    def words(self, text: str) -> list[np.ndarray]:
        """f_1 to f_T; beyond max_terms, one vector that sums the rest (Duet paper, section 4.3)."""
        vectors = [counts(word, self.ngrams) for word in tokenise(text)]
        kept = self.model.max_terms or len(vectors)
        return vectors[:kept] + ([sum(vectors[kept:])] if vectors[kept:] else [])

    def windows(self, text: str) -> list[np.ndarray]:
        """l_1 to l_T (equation 1)."""
        d = self.model.window // 2
        padding = counts("<s>", self.ngrams) if self.model.padding == "word" else np.zeros(len(self.ngrams))
        padded = [padding] * d + self.words(text) + [padding] * d
        return [np.concatenate(padded[t : t + 2 * d + 1]) for t in range(len(padded) - 2 * d)]

    def vector(self, text: str) -> np.ndarray:
        """y (section 3.5)."""
        h = np.array([np.tanh(self.w_c @ window) for window in self.windows(text)])  # equation 2
        return np.tanh(self.w_s @ h.max(axis=0))


def equation_4(model: pn.CLSM, query: str, text: str) -> float:
    q = Reference(model, "query").vector(query)
    d = Reference(model, "query" if model.shared else "document").vector(text)
    return float(q @ d / (np.linalg.norm(q) * np.linalg.norm(d)))


def pairs(topics=TOPICS, texts=TEXTS) -> pd.DataFrame:
    queries = pd.DataFrame({"qid": [f"q{i}" for i in range(len(topics))], "query": topics})
    return queries.merge(pd.DataFrame({"docno": [f"d{i}" for i in range(len(texts))], "text": texts}), how="cross")


@pytest.mark.parametrize(
    ("window", "padding", "shared"), [(1, "word", False), (3, "word", True), (3, "zero", False), (5, "word", False)]
)
def test_scores_are_equation_4(with_random_weights, window, padding, shared):
    model = with_random_weights(pn.CLSM(window, filters=6, dim=5, padding=padding, shared=shared), TEXTS)
    frame = pairs()
    expected = [equation_4(model, row.query, row.text) for row in frame.itertuples()]
    np.testing.assert_allclose(model.transform(frame)["score"], expected, atol=1e-5)


@pytest.mark.parametrize("max_terms", [1, 2, 5, 6, None])
def test_the_rest_of_a_long_text_is_one_vector(with_random_weights, max_terms):
    model = with_random_weights(pn.CLSM(filters=6, dim=5, max_terms=max_terms), TEXTS)
    frame = pairs(["mississippi river boat on", "boat"])
    expected = [equation_4(model, row.query, row.text) for row in frame.itertuples()]
    np.testing.assert_allclose(model.transform(frame)["score"], expected, atol=1e-5)


def test_499_terms_are_the_sequence(with_random_weights):
    model = with_random_weights(pn.CLSM(filters=6, dim=5), TEXTS)
    words = np.random.default_rng(0).choice(tokenise(" ".join(TEXTS)), 700)
    for length in (499, 500, 501, 700):
        text = " ".join(words[:length])
        found = model.transform(pairs(["boat"], [text]))["score"][0]
        assert found == pytest.approx(equation_4(model, "boat", text), abs=1e-5)
    assert len(Reference(model, "document").windows(" ".join(words))) == 500
    whole = with_random_weights(pn.CLSM(filters=6, dim=5, max_terms=None), TEXTS)  # the same weights
    assert whole.transform(pairs(["boat"], [text]))["score"][0] != pytest.approx(found, abs=1e-4)


@pytest.mark.parametrize("padding", ["word", "zero"])
def test_the_padding_word_has_trigrams_only_if_asked_for(padding, with_random_weights):
    model = pn.CLSM(filters=6, dim=5, padding=padding, training=QUICK)
    model.fit(pairs(), pd.DataFrame({"qid": ["q0", "q1"], "docno": ["d0", "d1"], "label": 1}))
    assert ("<s>" in model.reader.hashing.ngrams) == (padding == "word")
    assert not pn.CLSM(1).make_reader().hashes_padding


def test_the_papers_shapes(with_random_weights):
    model = with_random_weights(pn.CLSM(), TEXTS)
    shapes = {name: tuple(weight.shape) for name, weight in model.network.state_dict().items()}
    side = {"hashing.weight": (len(model.reader.hashing), 3 * 300), "semantic.weight": (128, 300)}
    assert shapes == {f"{tower}.{name}": shape for tower in ("query", "document") for name, shape in side.items()}


def test_gradients_are_equations_12_to_16(with_random_weights):
    model = with_random_weights(pn.CLSM(filters=6, dim=5), TEXTS)
    texts = {"query": "boys river", "document": TEXTS[2]}
    batches = {side: model.reader.read_queries([text]).take(np.array([0])) for side, text in texts.items()}
    (
        model.network.vectors("query", batches["query"]) * model.network.vectors("document", batches["document"])
    ).sum().backward()
    references = {side: Reference(model, side) for side in texts}
    y = {side: references[side].vector(text) for side, text in texts.items()}
    a, norms = y["query"] @ y["document"], {side: np.linalg.norm(y[side]) for side in y}
    for side, other in (("query", "document"), ("document", "query")):
        b, c = 1 / norms[side], 1 / norms[other]
        delta_y = (1 - y[side]) * (1 + y[side]) * (b * c * y[other] - a * c * b**3 * y[side])  # equation 13
        windows = np.array(references[side].windows(texts[side]))
        h = np.tanh(windows @ references[side].w_c.T)
        v, winners = h.max(axis=0), h.argmax(axis=0)  # equation 15
        delta_v = (1 + v) * (1 - v) * (references[side].w_s.T @ delta_y)  # equation 14
        tower = model.network.tower(side)
        np.testing.assert_allclose(tower.semantic.weight.grad, np.outer(delta_y, v), atol=1e-6)
        w_c = delta_v[:, None] * windows[winners]  # equation 16's term for one document
        blocks = w_c.reshape(6, 3, len(model.reader.hashing)).transpose(2, 1, 0)
        np.testing.assert_allclose(tower.hashing.weight.grad, blocks.reshape(len(model.reader.hashing), 18), atol=1e-6)


def test_a_window_starts_as_its_centre_word():
    tower = ConvolutionalTower(10, window=3, filters=4, dim=3)
    blocks = tower.hashing.weight.detach().view(10, 3, 4)
    assert not blocks[:, [0, 2]].any()
    assert blocks[:, 1].all()


def test_a_word_is_projected_once_however_often_it_occurs(with_random_weights, monkeypatch):
    model = with_random_weights(pn.CLSM(filters=6, dim=5, max_terms=None), TEXTS)
    looked_up = []
    original = F.embedding_bag

    def spy(ngrams, weight, *args, **options):
        if len(weight) == len(model.reader.hashing):
            looked_up.append(ngrams)
        return original(ngrams, weight, *args, **options)

    monkeypatch.setattr(F, "embedding_bag", spy)
    model.encode_documents(["boys " * 1000 + "girl"] * 3)
    padding = len({"#<s", "<s>", "s>#"})
    assert [len(ngrams) for ngrams in looked_up] == [len("boys") + len("girl") + padding]


def test_settings_are_checked():
    for window in (0, 2, -1):
        with pytest.raises(ValueError, match="odd number"):
            pn.CLSM(window)
    for setting in ("filters", "dim", "max_terms"):
        with pytest.raises(ValueError, match="at least 1"):
            pn.CLSM(**{setting: 0})
    with pytest.raises(ValueError, match="one of 'word', 'zero'"):
        pn.CLSM(padding="none")
    with pytest.raises(ValueError, match="ngram_sizes must hold at least one"):
        pn.CLSM(ngram_sizes=())
    assert pn.CDSSM is pn.CLSM
    assert repr(pn.CLSM()) == "CLSM(window=3)"


def test_texts_without_letter_ngrams_cannot_be_trained_on():
    qrels = pd.DataFrame({"qid": ["q0", "q1"], "docno": ["d0", "d1"], "label": 1})
    with pytest.raises(ValueError, match="no word to train on has 9 letters"):
        pn.CLSM(padding="zero", ngram_sizes=(9,), training=QUICK).fit(pairs(["one", "two"], ["six", "ten"]), qrels)


QUICK = pn.Training(epochs=1, verbose=False, device="cpu")


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("side", ["query", "document"])
def test_context_similarities_are_cosines_of_feature_vectors(window, side, with_random_weights):
    model = with_random_weights(pn.CLSM(window, filters=6, dim=4), [*TEXTS, *TOPICS])
    contexts = ["the Boat of boys", "be a boat", "boat river boat"]
    reference = Reference(model, side)
    first, *others = (
        np.tanh(reference.w_c @ reference.windows(context)[tokenise(context).index("boat")]) for context in contexts
    )
    expected = [h @ first / (np.linalg.norm(h) * np.linalg.norm(first)) for h in others]
    found = model.context_similarities("boat", contexts, side=side)
    assert found["context"].tolist() == contexts[1:]
    np.testing.assert_allclose(found["similarity"], expected, atol=1e-5)
    if window == 1:
        np.testing.assert_allclose(expected, 1)  # a word alone has no context


def test_context_similarities_need_the_word_and_something_to_compare(with_random_weights):
    model = with_random_weights(pn.CLSM(filters=6, dim=4, max_terms=2), TEXTS)
    with pytest.raises(ValueError, match="'a girl' does not have the word 'boat'"):
        model.context_similarities("boat", ["boat", "a girl"])
    with pytest.raises(ValueError, match="does not have the word 'boat'"):
        model.context_similarities("boat", ["boat", "beyond the boat"])
    with pytest.raises(ValueError, match="give two or more"):
        model.context_similarities("boat", ["boat"])
    with pytest.raises(RuntimeError, match="fit"):
        pn.CLSM().context_similarities("boat", ["boat", "a boat"])
