"""The perturbation analysis of Table 2: aboutness against term frequency, on a planted world of two subjects."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.text import tokenise

CITY = "university college students town county river charters census population libraries museum lectures".split()
ANIMAL = "neck legs savannas woodlands herd leaves mammal coat africa hooves okapi grazing".split()
COMMON = "the a of in and is it has its with".split()


@pytest.fixture(scope="module")
def spaces() -> pn.EmbeddingSpaces:
    random = np.random.default_rng(7)

    def sentence(name: str, words: list[str]) -> str:
        tokens = [*random.choice(words, 6), *random.choice(COMMON, 4), name]
        return " ".join(random.permutation(tokens))

    names = {"cambridge": CITY, "oxford": CITY, "giraffe": ANIMAL, "zebra": ANIMAL}
    texts = [sentence(name, words) for _ in range(1500) for name, words in names.items()]
    return pn.EmbeddingSpaces.train(texts, dim=30, window=5, epochs=5, subsample=1e-3, workers=1, verbose=False)


@pytest.fixture(scope="module")
def passages() -> dict[str, str]:
    about_cambridge = "cambridge is a university town of the county cambridge has students and a river " * 2
    about_giraffes = "the giraffe is a mammal of africa its neck and legs giraffe in savannas and woodlands " * 2
    return {
        "cambridge": about_cambridge,
        "oxford": about_cambridge.replace("cambridge", "oxford"),
        "giraffes": about_giraffes,
        "giraffes, stuffed with cambridge": about_giraffes.replace("giraffe", "cambridge"),
        "cambridge, called giraffe": about_cambridge.replace("cambridge", "giraffe"),
    }


def scores(desm: pn.DESM, passages: dict[str, str]) -> dict[str, float]:
    frame = pd.DataFrame({"qid": "1", "query": "cambridge", "docno": passages.keys(), "text": passages.values()})
    scored = desm.transform(frame)
    return dict(zip(scored["docno"], scored["score"], strict=True))


def test_in_out_falls_where_term_frequency_does_not(spaces, passages):
    frequency = {name: tokenise(text).count("cambridge") for name, text in passages.items()}
    score = scores(pn.DESM(spaces, "in", "out"), passages)
    assert frequency["giraffes, stuffed with cambridge"] == frequency["cambridge"] == 4
    assert score["giraffes, stuffed with cambridge"] < score["cambridge"] - 0.1
    assert score["cambridge, called giraffe"] > score["giraffes, stuffed with cambridge"]
    assert score["giraffes"] < score["giraffes, stuffed with cambridge"]


def test_a_passage_about_oxford_is_a_false_positive(spaces, passages):
    score = scores(pn.DESM(spaces, "in", "out"), passages)
    assert score["oxford"] > score["giraffes, stuffed with cambridge"]


def test_supporting_words_are_those_of_the_subject(spaces):
    frame = pn.explain(pn.DESM(spaces), "cambridge", "students of giraffe neck and university").to_frame()
    similarity = frame.set_index("word")["similarity"]
    assert min(similarity["students"], similarity["university"]) > max(similarity["giraffe"], similarity["neck"])
