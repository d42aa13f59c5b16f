"""DSSM and CLSM learn what was planted in small collections."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn

MODELS = {
    "dssm": lambda **options: pn.DSSM((64, 64, 32), **options),
    "clsm": lambda **options: pn.CLSM(filters=64, dim=32, **options),
}


def training(**options) -> pn.Training:
    return pn.Training(
        **{"epochs": 12, "batch_size": 64, "learning_rate": 3e-3, "verbose": False, "device": "cpu", **options}
    )


def made_up_words(letters: str, count: int, random: np.random.Generator) -> list[str]:
    return ["".join(random.choice(list(letters), 9)) for _ in range(count)]


class Synonyms:
    """Every concept has a word of queries and a word of documents, which share no letter; a text has three concepts."""

    def __init__(self, num_concepts: int = 20, num_groups: int = 300, seed: int = 0):
        random = np.random.default_rng(seed)
        self.query_words = np.array(made_up_words("abcdefghij", num_concepts, random))
        self.document_words = np.array(made_up_words("klmnopqrstuvwxyz", num_concepts, random))
        concepts = np.array([random.permutation(num_concepts)[:3] for _ in range(num_groups)])
        self.train, self.held_out = self.frame(concepts[:-50], random), self.frame(concepts[-50:], random)

    def frame(self, concepts: np.ndarray, random: np.random.Generator) -> pd.DataFrame:
        rows = []
        for number, group in enumerate(concepts):
            texts = [" ".join(words[random.permutation(group)]) for words in (self.query_words, self.document_words)]
            rows.append({"qid": f"q{number}", "query": texts[0], "docno": f"d{number}", "text": texts[1]})
        return pd.DataFrame(rows)


def qrels(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["qid", "docno"]].assign(label=1)


def mean_reciprocal_rank(model, frame: pd.DataFrame) -> float:
    """Every query of the frame against every document of it; only its own is relevant. Chance has 0.09 of 50."""
    every = frame[["qid", "query"]].merge(frame[["docno", "text"]], how="cross")
    scored = model.transform(every)
    own = scored[scored["qid"].str[1:] == scored["docno"].str[1:]]
    return float((1 / (own["rank"] + 1)).mean())


@pytest.fixture(scope="module")
def synonyms() -> Synonyms:
    return Synonyms()


@pytest.fixture(scope="module", params=MODELS)
def trained(request, synonyms):
    model = MODELS[request.param](training=training())
    return model.fit(synonyms.train, qrels(synonyms.train))


def test_synonyms_are_learned_without_a_common_word(trained, synonyms):
    start = type(trained)(**trained.settings(), training=training(epochs=1, learning_rate=1e-12))
    start.fit(synonyms.train, qrels(synonyms.train))
    assert mean_reciprocal_rank(trained, synonyms.held_out) > 0.8
    assert mean_reciprocal_rank(start, synonyms.held_out) < 0.3


def test_two_networks_came_of_it(trained):
    weights = trained.network.state_dict()
    assert not np.allclose(weights["query.hashing.weight"], weights["document.hashing.weight"], atol=0.01)


@pytest.mark.parametrize(
    "change",
    [lambda word: f"{word}s", lambda word: word[:4] + "x" + word[5:], lambda word: word[:-1]],
    ids=["inflected", "misspelt", "cut"],
)
def test_words_that_were_never_seen_match_by_their_trigrams(trained, synonyms, change):
    changed = synonyms.held_out.assign(
        query=[" ".join(map(change, query.split())) for query in synonyms.held_out["query"]]
    )
    assert mean_reciprocal_rank(trained, changed) > 0.5


def test_shared_networks_learn_too(synonyms):
    model = pn.DSSM((64, 32), shared=True, training=training(negatives="retrieved", num_negatives=4))
    frame = synonyms.train
    others = frame.assign(docno=np.roll(frame["docno"], 1), text=np.roll(frame["text"], 1))
    model.fit(pd.concat([frame, others]), qrels(frame))
    assert "document.hashing.weight" not in model.network.state_dict()
    assert mean_reciprocal_rank(model, synonyms.held_out) > 0.8


class WordOrder:
    """Every query means two words in one order; the other order, among the same words, is not relevant."""

    def __init__(self, seed: int = 1):
        random = np.random.default_rng(seed)
        words, fillers = made_up_words("abcdefgh", 5, random), made_up_words("klmnopqrst", 20, random)
        orders = [(a, b) for a in words for b in words if a != b]
        names = dict(zip(orders, made_up_words("uvwxyz", len(orders), random), strict=True))
        rows = []
        for number in range(400):
            a, b = orders[number % len(orders)]
            before, after = " ".join(random.choice(fillers, 2)), " ".join(random.choice(fillers, 2))
            for pair, label in (((a, b), 1), ((b, a), 0)):
                text = " ".join([before, *pair, after])
                rows.append((f"q{number}", names[a, b], f"d{number}-{label}", text, label))
        frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
        self.train, self.held_out = frame[:700], frame[700:]

    def accuracy(self, model) -> float:
        scores = model.transform(self.held_out)["score"].to_numpy().reshape(-1, 2)
        return float((scores[:, 0] > scores[:, 1] + 1e-5).mean())


@pytest.mark.parametrize(("name", "window", "tells"), [("clsm", 3, True), ("clsm", 1, False)])
def test_only_windows_tell_the_order_of_words(name, window, tells):
    order = WordOrder()
    model = MODELS[name](training=training(negatives="judged", epochs=15), window=window)
    model.fit(order.train, order.train[["qid", "docno", "label"]])
    accuracy = order.accuracy(model)
    assert accuracy > 0.9 if tells else accuracy == 0
