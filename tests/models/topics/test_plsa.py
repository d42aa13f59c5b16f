"""PLSA: when its expectation maximisation ends, and what its settings do."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.text import tokenise


def noisy_corpus(documents: int = 60) -> list[dict[str, str]]:
    random = np.random.default_rng(2)
    texts = (" ".join(random.choice(THEMES[i % 3], 25)) for i in range(documents))
    return [{"docno": str(i), "text": text} for i, text in enumerate(texts)]


WORDS = [[f"{theme}{i}" for i in range(20)] for theme in "abc"]
THEMES = [WORDS[theme] + WORDS[(theme + 1) % 3][:4] for theme in range(3)]
CORPUS = noisy_corpus()


def fitted(num_topics: int = 3, **options) -> pn.PLSA:
    return pn.PLSA(num_topics, **options).fit_corpus(CORPUS, verbose=False)


def test_the_history_is_that_of_the_model():
    model = fitted(iterations=30, tolerance=0, word_prior=0.05, topic_prior=0.2)
    assert list(model.history) == ["iteration", "log_likelihood", "log_posterior", "seconds"]
    assert model.history["iteration"].tolist() == list(range(len(model.history)))
    assert 10 < len(model.history) <= 31
    # What the last row says of the documents follows from the topics alone, once their mixtures have come to rest.
    texts = [document["text"] for document in CORPUS]
    probabilities = model.document_topics(texts).astype(float) @ model.word_topics.T
    ids = [model.vocabulary.ids(tokenise(text)) for text in texts]
    likelihood = sum(np.log(row[words]).sum() for row, words in zip(probabilities, ids, strict=True))
    assert model.history["log_likelihood"].iloc[-1] == pytest.approx(likelihood, rel=1e-3)


@pytest.mark.parametrize("priors", [{"word_prior": 0, "topic_prior": 0}, {"word_prior": 0.1, "topic_prior": 0.5}])
def test_the_log_posterior_grows_with_every_iteration(priors):
    history = fitted(iterations=60, tolerance=1e-7, **priors).history
    assert len(history) > 20
    assert (history["log_posterior"].diff().dropna() > 0).all()
    if not any(priors.values()):
        assert history["log_posterior"].equals(history["log_likelihood"])


def test_it_stops_when_the_log_posterior_hardly_grows():
    history = fitted(iterations=500, tolerance=1e-4).history
    growth = history["log_posterior"].diff() / history["log_posterior"].shift().abs()
    assert len(history) < 400
    assert (growth.iloc[1:-1] >= 1e-4).all()
    assert growth.iloc[-1] < 1e-4


def test_it_finds_the_three_themes():
    tops = fitted(iterations=200, tolerance=0).topics(24).groupby("topic")["word"]
    assert sorted(tops.apply(sorted)) == sorted(map(sorted, THEMES))


def test_pseudo_counts_make_topics_and_mixtures_more_equal():
    plain, of_words, of_topics = (fitted(**priors) for priors in ({}, {"word_prior": 5}, {"topic_prior": 20}))
    assert of_words.word_topics.std() < 0.8 * plain.word_topics.std()
    texts = [document["text"] for document in CORPUS]
    assert of_topics.document_topics(texts).std() < 0.8 * plain.document_topics(texts).std()
    assert fitted(topic_prior=0.4).prior.tolist() == pytest.approx([0.4] * 3)


def test_without_pseudo_counts_a_query_of_a_word_has_its_most_probable_topic_alone():
    model = fitted(iterations=300, word_prior=0, topic_prior=0)
    word = model.topics(1).iloc[0]
    assert model.query_topics([word["word"]])[0].argmax() == word["topic"]
    frame = pd.DataFrame({"qid": "1", "query": word["word"], "docno": ["a", "b"], "text": [word["word"], "zebra"]})
    assert model.transform(frame)["rank"].tolist() == [0, 1]


def test_settings_below_zero():
    for name in ("topic_prior", "word_prior", "tolerance"):
        with pytest.raises(ValueError, match=f"{name} must be at least 0"):
            pn.PLSA(**{name: -0.1})
