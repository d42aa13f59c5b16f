"""What the later classics are compared with: pairs of texts, and word vectors and similarities one by one."""

import numpy as np
import pandas as pd
import torch

import pt_neural as pn
from pt_neural.models.matching.ranker import MatchingRanker
from tests.explain.reference import with_random_weights

KNOWN = ["river", "city", "okapi", "neck", "leaf", "old", "town", "grass", "long", "sea", "water"]
PAIRS = [
    ("river city", "the old city by the river"),  # "the" and "by" have no vectors
    ("okapi neck leaf", "grass leaf leaf water sea town old okapi river city neck long town sea water grass old"),
    ("city city", "city"),
    ("zebra river", "a zebra at the river at the sea"),
    ("zebra", "gnu"),
    ("long old town", "neck long"),
    ("", "river city sea"),
    ("river", ""),
    ("", ""),
]


def spaces(dim: int = 6) -> pn.EmbeddingSpaces:
    random = np.random.default_rng(7)
    return pn.EmbeddingSpaces.from_vectors(KNOWN, *random.normal(size=(2, len(KNOWN), dim)).astype("f4"))


def made(kind: type[MatchingRanker], *, dim: int = 6, **options) -> MatchingRanker:
    """A small model with random weights; its documents are of one field."""
    sizes = {"query_terms": 5, "document_terms": 14, "fields": "text", "device": "cpu", **options}
    model = with_random_weights(kind(spaces(dim), **sizes), [text for pair in PAIRS for text in pair])
    with torch.no_grad():
        model.network.vectors.table[-1] = 0  # unknown words have no vector, and training leaves it so
    return model


def scores(model: MatchingRanker, pairs: list[tuple[str, str]] = PAIRS, **options) -> np.ndarray:
    frame = pd.DataFrame(pairs, columns=["query", "text"]).assign(docno="d")
    return model.transform(frame.assign(qid=[f"q{number}" for number in range(len(frame))]))["score"].to_numpy()


class ByHand:
    """A model's word vectors and weights, float64, and the words of one pair that it reads."""

    def __init__(self, model: MatchingRanker, query: str, text: str):
        self.model = model
        self.weights = {name: weight.double().numpy() for name, weight in model.network.state_dict().items()}
        table = model.network.vectors.table.detach().double().numpy() * model.network.vectors.scale
        self.vectors = dict(zip(KNOWN, table, strict=False))
        self.query, self.text = query.split()[: model.query_terms], text.split()[: model.document_terms]

    def vector(self, word: str) -> np.ndarray:
        return self.vectors.get(word, np.zeros(self.model.spaces.dim))

    def cosine(self, one: str, other: str) -> float:
        if one == other:
            return 1.0
        return unit(self.vector(one)) @ unit(self.vector(other))

    def cosines(self) -> np.ndarray:
        """Of shape (query words, document words)."""
        found = [[self.cosine(word, other) for other in self.text] for word in self.query]
        return np.array(found).reshape(len(self.query), len(self.text))

    def layer(self, name: str, inputs: np.ndarray) -> np.ndarray:
        """A linear layer."""
        return self.weights[f"{name}.weight"] @ inputs + self.weights.get(f"{name}.bias", 0.0)

    def gates(self) -> np.ndarray:
        """The softmax of the words of the query by their vectors."""
        exponents = np.exp([self.layer("gate", self.vector(word))[0] for word in self.query])
        return exponents / exponents.sum()

    def windows(self, name: str, words: list[str], size: int) -> np.ndarray:
        """A convolution over words, which starts at each word: (words, filters)."""
        return self.convolution(name, np.array([*map(self.vector, words)]).reshape(-1, self.model.spaces.dim), size)

    def convolution(self, name: str, values: np.ndarray, size: int) -> np.ndarray:
        """The same over values of shape (values, inputs)."""
        filters = self.weights[f"{name}.projection.weight"].reshape(size, -1, values.shape[1])
        following = np.concatenate([values, np.zeros((size, values.shape[1]))])
        found = [
            sum(filters[step] @ following[start + step] for step in range(size)) + self.weights[f"{name}.bias"]
            for start in range(len(values))
        ]
        return np.array(found).reshape(len(values), filters.shape[1])


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(np.linalg.norm(vector), 1e-12)


def relu(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, 0)


def k_largest(values, count: int) -> np.ndarray:
    """The largest in falling order, then zeros."""
    found = sorted(values, reverse=True)[:count]
    return np.array([*found, *[0.0] * (count - len(found))])


def arc_i_score(hand: ByHand) -> float:
    """ARC-I with two layers, of at most 5 words of a query and 14 of a document."""
    both = sentence_vector(hand, "query", hand.query, 2) + sentence_vector(hand, "document", hand.text, 4)
    return hand.layer("output", relu(both + hand.weights["bias"]))[0]


def halved(values: np.ndarray) -> np.ndarray:
    """The larger value of each two neighbours."""
    found = [values[start : start + 2].max(axis=0) for start in range(0, len(values), 2)]
    return np.array(found).reshape(-1, values.shape[1])


def sentence_vector(hand: ByHand, side: str, words: list[str], most: int) -> np.ndarray:
    """The vector of a text that ARC-I's hidden layer adds up."""
    values = halved(relu(hand.windows(f"{side}.layers.0", words, 3)))
    values = halved(relu(hand.convolution(f"{side}.layers.1", values, 3)))
    padded = np.zeros((most, values.shape[1]))
    padded[: len(values)] = values
    return hand.weights[f"{side}.linear.weight"] @ padded.ravel()
