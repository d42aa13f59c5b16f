"""DRMM learns what was planted in small collections: what similar words tell, and which terms matter."""

import numpy as np
import pandas as pd
import pytest
import torch

import pt_neural as pn

FREQUENT, RARE = 20, 400


def training(**options) -> pn.Training:
    settings = {"epochs": 10, "batch_size": 32, "learning_rate": 0.02, "negatives": "judged", "num_negatives": 2}
    return pn.Training(**{**settings, "verbose": False, "device": "cpu", **options})


def made_up_spaces(words: list[str], vectors: np.ndarray) -> pn.EmbeddingSpaces:
    return pn.EmbeddingSpaces.from_vectors(words, vectors, vectors)


def accuracies(model, frame: pd.DataFrame) -> list[float]:
    """How often the relevant document, the last of each query's, is above each of the others."""
    scores = model.transform(frame)["score"].to_numpy().reshape(frame["qid"].nunique(), -1)
    return [float((scores[:, -1] > one + 1e-5).mean()) for one in scores.T[:-1]]


def qrels(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["qid", "docno", "label"]]


@pytest.fixture(scope="module")
def synonyms() -> tuple[pn.EmbeddingSpaces, pd.DataFrame]:
    """Words come in pairs of a cosine of about 0.9; a relevant document has words similar to the query's, not its own.

    The others have words that are not similar. No word of a held-out query was in a training query.
    """
    random = np.random.default_rng(0)
    count = 800
    first = random.normal(size=(count, 50))
    second = first + 0.45 * random.normal(size=first.shape)
    words = [f"{kind}{number}" for kind in "xy" for number in range(count)]
    rows = []
    for number in range(400):
        concepts = np.array([2 * number, 2 * number + 1])
        others = random.choice(count, 20)
        for label in (0, 0, 1):
            near = [f"y{one}" for one in (concepts if label else random.choice(count, 2))]
            text = " ".join(random.permutation([*near, *(f"x{one}" for one in others)]))
            rows.append((f"q{number}", f"x{concepts[0]} x{concepts[1]}", f"d{len(rows)}", text, label))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
    return made_up_spaces(words, np.concatenate([first, second])), frame


@pytest.mark.parametrize("options", [{}, {"loss": "margin", "margin": 0.1}, {"loss": "margin"}])
def test_similar_words_are_learned_to_match(synonyms, options):
    spaces, frame = synonyms
    model = pn.DRMM(spaces, training=training(**options)).fit(frame[:-300], qrels(frame[:-300]))
    assert min(accuracies(model, frame[-300:])) > 0.95


@pytest.fixture(scope="module")
def importance() -> tuple[pn.EmbeddingSpaces, pd.DataFrame]:
    """A query is a frequent word and a rare one; the relevant document has the rare one, the other the frequent one.

    Vectors of frequent words lie on one side, those of rare words on the other, by so little that cosines hardly tell.
    """
    random = np.random.default_rng(1)
    words = [f"f{number}" for number in range(FREQUENT)] + [f"r{number}" for number in range(RARE)]
    sides = np.repeat([[1.0], [-1.0]], [FREQUENT, RARE], axis=0)
    vectors = np.hstack([sides, random.normal(size=(len(words), 60))])
    rows = []
    for number in range(RARE):
        frequent = f"f{random.integers(FREQUENT)}"
        fillers = [f"f{one}" for one in random.permutation(FREQUENT)[:6] if f"f{one}" != frequent]
        for label, match in enumerate([frequent, f"r{number}"]):
            text = " ".join(random.permutation([*fillers, match]))
            rows.append((f"q{number}", f"{frequent} r{number}", f"d{number}-{label}", text, label))
    return made_up_spaces(words, vectors), pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])


@pytest.mark.parametrize("gating", ["idf", "vector"])
def test_gates_tell_which_terms_matter(importance, gating):
    spaces, frame = importance
    model = pn.DRMM(spaces, gating=gating, training=training()).fit(frame[:-200], qrels(frame[:-200]))
    assert accuracies(model, frame[-200:])[0] > 0.95
    with torch.no_grad():
        model.network.gate.weight.zero_()
    assert accuracies(model, frame[-200:])[0] < 0.7  # chance has a half


def test_the_same_seed_gives_the_same_model(importance):
    spaces, frame = importance
    models = [pn.DRMM(spaces, training=training(epochs=2)) for _ in range(2)]
    found = [model.fit(frame[:60], qrels(frame[:60])).transform(frame)["score"] for model in models]
    pd.testing.assert_series_equal(*found)
