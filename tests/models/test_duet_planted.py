"""The Duet and its parts learn what was planted in small collections, each what it can see."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.rankers.pairs import PairTexts

SIZES = {"query_terms": 4, "document_terms": 12, "filters": 32, "hidden": 32}
MODELS = {
    "local": lambda **options: pn.DuetLocal(**SIZES, **options),
    "distributed": lambda **options: pn.DuetDistributed(**SIZES, pooling=5, num_ngrams=150, **options),
    "duet": lambda **options: pn.Duet(**SIZES, pooling=5, num_ngrams=150, **options),
}


def training(**options) -> pn.Training:
    settings = {"epochs": 12, "batch_size": 64, "learning_rate": 3e-3, "negatives": "judged", "num_negatives": 2}
    return pn.Training(**{**settings, "verbose": False, "device": "cpu", **options})


def made_up_words(letters: str, count: int, random: np.random.Generator) -> list[str]:
    return ["".join(random.choice(list(letters), 7)) for _ in range(count)]


class NamesAndSynonyms:
    """A query is a name that no other query has, and a word of a concept; documents have another word for the concept.

    The relevant document has the name and the concept. One that is not has the name and another concept, one the
    concept and another name. Names are new in the held-out queries, so that only exact matches find them, and concepts
    have no letter in common with their other word, so that only learned representations do.
    """

    def __init__(self, num_queries: int = 900, num_concepts: int = 6, seed: int = 0):
        random = np.random.default_rng(seed)
        asked = made_up_words("abcdefgh", num_concepts, random)
        written = made_up_words("klmnopqr", num_concepts, random)
        names = made_up_words("0123456789", 2 * num_queries, random)
        rows = []
        for number in range(num_queries):
            concept, other = random.permutation(num_concepts)[:2]
            name, stranger = names[2 * number : 2 * number + 2]
            fillers = asked[:concept] + asked[concept + 1 :]
            for label, pair in enumerate(
                [(stranger, written[concept]), (name, written[other]), (name, written[concept])]
            ):
                text = random.permutation([*random.choice(fillers, 3), *pair])
                rows.append(
                    (f"q{number}", f"{name} {asked[concept]}", f"d{number}-{label}", " ".join(text), label // 2)
                )
        frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
        self.train, self.held_out = frame[:-300], frame[-300:]

    def accuracies(self, model) -> tuple[float, float]:
        """How often the relevant document is above that with another name, and that with another concept."""
        scores = model.transform(self.held_out)["score"].to_numpy().reshape(-1, 3)
        return tuple((scores[:, 2] > scores[:, other] + 1e-5).mean() for other in (0, 1))


@pytest.fixture(scope="module")
def collection() -> NamesAndSynonyms:
    return NamesAndSynonyms()


@pytest.fixture(scope="module", params=MODELS)
def trained(request, collection):
    model = MODELS[request.param](training=training())
    return request.param, model.fit(collection.train, collection.train[["qid", "docno", "label"]])


# What of names and of concepts each model can tell apart; of what it cannot, chance has a half.
TELLS = {"local": (True, False), "distributed": (False, True), "duet": (True, True)}


def test_each_part_learns_what_it_can_see_and_both_together_learn_all(trained, collection):
    name, model = trained
    for accuracy, tells in zip(collection.accuracies(model), TELLS[name], strict=True):
        assert accuracy > 0.8 if tells else accuracy < 0.65


def test_the_parts_of_the_duet_share_the_work(trained, collection):
    name, model = trained
    if name == "duet":
        assert collection.accuracies(model.local)[0] > 0.8
        assert collection.accuracies(model.distributed)[1] > 0.8


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 0.001), ("int8", 0.02)])
def test_kept_documents_score_within_the_stated_tolerance(trained, collection, dtype, tolerance, tmp_path):
    _, model = trained
    if not model.reads_words:
        return
    by_text = model.transform(collection.held_out)["score"]
    model.representations = model.index(tmp_path / "kept", collection.held_out.to_dict("records"), dtype=dtype)
    by_docno = model.transform(collection.held_out[["qid", "query", "docno"]])["score"]
    model.representations = None
    assert (by_docno - by_text).abs().max() < tolerance * by_text.std()


def test_the_local_model_learns_where_matches_stand():
    """Both documents have the query's words; they stand together near the beginning in the relevant one (Figure 2)."""
    random = np.random.default_rng(0)
    words = made_up_words("abcdefgh", 40, random)
    rows = []
    for number in range(300):
        query, others = random.choice(words[:20], 2, replace=False), random.choice(words[20:], 9)
        for label, places in enumerate([(5, 9), (random.integers(0, 3),) * 2]):
            text = np.insert(others, places, query)
            rows.append((f"q{number}", " ".join(query), f"d{number}-{label}", " ".join(text), label))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
    model = MODELS["local"](training=training()).fit(frame[:500], frame[:500][["qid", "docno", "label"]])
    scores = model.transform(frame[500:])["score"].to_numpy().reshape(-1, 2)
    assert (scores[:, 1] > scores[:, 0]).mean() > 0.9


def test_the_papers_grades_tell_who_is_trained_against_whom(monkeypatch):
    """Excellent against fair and bad, good against bad, perfect not at all (section 4.2)."""
    words = [f"w{number}" for number in range(30)]
    rows = []
    for number in range(20):
        query = words[number : number + 4]
        for grade in (4, 3, 2, 1, 1, 0, 0, 0):  # so many words of the query
            text = " ".join([*query[:grade], *words[number + 5 : number + 10]])
            rows.append((f"q{number}", " ".join(query), f"d{len(rows)}", text, grade))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
    grades = frame["label"].to_numpy()
    trained_on = []
    original = PairTexts.take

    def spy(self, queries, documents):
        trained_on.extend(map(tuple, grades[documents]))
        return original(self, queries, documents)

    monkeypatch.setattr(PairTexts, "take", spy)
    settings = training(grades={3: [1, 0], 2: [0]}, optimiser="sgd", learning_rate=0.01, batch_size=8, epochs=3)
    model = MODELS["duet"](training=settings).fit(frame, frame[["qid", "docno", "label"]])
    assert model.report.groups == 20 * 2
    groups = {(positive, negative) for positive, *negatives in trained_on for negative in negatives}
    assert groups == {(3, 1), (3, 0), (2, 0)}
    assert len(trained_on) == 3 * 40


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_model(name, collection):
    few = collection.train[:60]
    models = [MODELS[name](training=training(epochs=2)) for _ in range(2)]
    found = [model.fit(few, few[["qid", "docno", "label"]]).transform(few)["score"] for model in models]
    pd.testing.assert_series_equal(*found)
