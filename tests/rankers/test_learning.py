"""Every ranker that is trained ends above its start on a planted collection."""

import inspect

import numpy as np
import pandas as pd
import pytest
from ir_measures import nDCG

import pt_neural as pn
from pt_neural._evaluation import RunEvaluator
from pt_neural.text import Vocabulary
from tests.rankers import fitted

TRAINED = [name for name in fitted.NAMES if "training" in inspect.signature(fitted.ranker_class(name)).parameters]
TOPICS, NOISE, PER_TOPIC = 12, 40, 8
random = np.random.default_rng(7)


def words(count):
    letters = list("abcdefghijklmnopqrstuvwxyz")
    return ["".join(random.choice(letters, size=7)) for _ in range(count)]


# A document about a topic never has the topic's query word, only a word of its own whose embedding is near.
ASKED, TOLD, OTHER = words(TOPICS), words(TOPICS), words(NOISE)


def planted_spaces():
    unit = random.normal(size=(TOPICS + NOISE, 16))
    near = unit[:TOPICS] + 0.5 * random.normal(size=(TOPICS, 16))
    vectors = np.concatenate([unit[:TOPICS], near, unit[TOPICS:]]).astype("f4")
    return pn.EmbeddingSpaces.from_vectors(Vocabulary([*ASKED, *TOLD, *OTHER]), vectors, vectors)


def text(topic):
    return " ".join(random.permutation([TOLD[topic], *random.choice(OTHER, size=5, replace=False)]))


DOCUMENTS = pd.DataFrame(
    {"docno": f"d{number}", "topic": number % TOPICS, "title": "", "text": text(number % TOPICS)}
    for number in range(TOPICS * PER_TOPIC)
)


def split(name, queries_per_topic):
    """Queries, each with three documents of its topic and nine others, and the judgements."""
    rows = []
    for topic in np.repeat(np.arange(TOPICS), queries_per_topic):
        query = f"{ASKED[topic]} {random.choice(OTHER)}"
        mine = DOCUMENTS[DOCUMENTS["topic"] == topic].sample(3, random_state=random.integers(1000))
        others = DOCUMENTS[DOCUMENTS["topic"] != topic].sample(9, random_state=random.integers(1000))
        chosen = pd.concat([mine, others]).assign(qid=f"{name}{len(rows)}", query=query)
        rows.append(chosen.assign(label=(chosen["topic"] == topic).astype(int)))
    frame = pd.concat(rows, ignore_index=True)
    return frame.drop(columns=["label", "topic"]), frame.loc[frame["label"] > 0, ["qid", "docno", "label"]]


SPACES, TRAIN, DEV, TEST = planted_spaces(), split("train", 8), split("dev", 2), split("test", 4)


def fit(name, **settings):
    options = {"spaces": SPACES} if "spaces" in fitted.ranker_class(name).components else {}
    training = pn.Training(**{"epochs": 60, "patience": 20, "verbose": False, "device": "cpu", **settings})
    return fitted.unfitted(name, training=training, **options).fit(*TRAIN, *DEV)


def ndcg(ranker):
    frame, qrels = TEST
    evaluator = RunEvaluator(frame[["qid", "docno"]], qrels, frame["qid"].unique(), nDCG @ 10)
    return float(evaluator(ranker.score(frame)).mean())


@pytest.mark.parametrize("name", TRAINED)
def test_training_ends_above_its_start(name):
    ranker, start = fit(name), fit(name, epochs=1, learning_rate=1e-12)
    outcome = ranker.report.outcome
    assert ranker.history["epoch"].iloc[0] == 0
    assert outcome.best > outcome.start + 0.1
    assert ndcg(ranker) > ndcg(start) + 0.1
