"""LDA beside tomotopy: the topics that it samples, and its inference of documents."""

import warnings

import numpy as np
import pytest

import pt_neural as pn
from pt_neural.text import tokenise


def planted(documents: int = 150, seed: int = 4) -> list[dict[str, str]]:
    """Documents that mix four topics, each with ten words of its own and ten that all share."""
    random = np.random.default_rng(seed)
    topics = np.zeros((4, 50))
    for topic in range(4):
        topics[topic, 10 * topic : 10 * topic + 10] = 0.08
    topics[:, 40:] = 0.02
    mixtures = random.dirichlet([0.3] * 4, documents)
    words = [random.choice(50, 40, p=mixture @ topics) for mixture in mixtures]
    return [{"docno": str(i), "text": " ".join(f"w{word}" for word in some)} for i, some in enumerate(words)]


CORPUS = planted()
SETTINGS = {"alpha": 0.3, "beta": 0.05, "iterations": 60, "seed": 7}


@pytest.fixture(scope="module")
def model() -> pn.LDA:
    return pn.LDA(4, **SETTINGS, learn_alpha=False).fit_corpus(CORPUS, verbose=False)


@pytest.fixture(scope="module")
def sampler(model):
    """tomotopy with the same settings and documents, their words in the order of the model's vocabulary."""
    import tomotopy

    sampler = tomotopy.LDAModel(k=4, alpha=0.3, eta=0.05, seed=7)
    sampler.optim_interval = 0
    for document in CORPUS:
        sampler.add_doc(sorted(tokenise(document["text"]), key=model.vocabulary.terms.index))
    sampler.train(60, workers=1)
    return sampler


def test_topics_are_those_of_the_sampler_word_by_word(model, sampler):
    ids = model.vocabulary.ids(sampler.used_vocabs)
    assert sorted(ids) == list(range(50))
    for topic in range(4):
        np.testing.assert_allclose(model.word_topics[ids, topic], sampler.get_topic_word_dist(topic), rtol=1e-6)
    assert model.prior.tolist() == pytest.approx([0.3] * 4)


def test_topics_of_documents_are_near_the_mean_of_the_samplers_inferences(model, sampler):
    texts = [document["text"] for document in planted(documents=12, seed=9)]
    distances = []
    for text, topics in zip(texts, model.document_topics(texts), strict=True):
        document = sampler.make_doc(tokenise(text))
        theirs = np.mean([sampler.infer(document, iterations=20, workers=1)[0] for _ in range(80)], axis=0)
        distances.append(np.abs(topics - theirs).sum())
        assert theirs[topics.argmax()] > theirs.max() - 0.05
    assert np.mean(distances) < 0.1
    assert max(distances) < 0.2


def test_the_planted_topics_are_found(model):
    tops = model.topics(8).groupby("topic")["word"].apply(lambda words: {int(word[1:]) // 10 for word in words})
    assert sorted(map(tuple, tops)) == [(0,), (1,), (2,), (3,)]


def test_the_history_is_what_the_sampler_says_and_its_end_is_above_its_start(model, sampler):
    history = model.history
    assert list(history) == ["iteration", "log_likelihood", "seconds"]
    assert history["iteration"].tolist() == [0, 10, 20, 30, 40, 50, 60]
    words = sum(len(tokenise(document["text"])) for document in CORPUS)
    assert history["log_likelihood"].iloc[-1] == pytest.approx(sampler.ll_per_word * words, rel=1e-6)
    assert history["log_likelihood"].iloc[-1] > history["log_likelihood"].iloc[0] + 0.3 * words


def test_as_many_iterations_as_asked_for():
    for iterations, expected in ((1, [0, 1]), (10, [0, 10]), (25, [0, 10, 20, 25])):
        model = pn.LDA(2, iterations=iterations).fit_corpus(CORPUS[:20], verbose=False)
        assert model.history["iteration"].tolist() == expected


def test_alpha_is_fifty_over_topics_where_it_is_neither_given_nor_learned():
    model = pn.LDA(5, iterations=20, learn_alpha=False).fit_corpus(CORPUS[:20], verbose=False)
    assert model.prior.tolist() == pytest.approx([10] * 5)


def test_a_learned_alpha_comes_nearer_to_the_planted_one():
    one = pn.LDA(4, **{**SETTINGS, "alpha": 5, "iterations": 150}, learn_alpha=True).fit_corpus(CORPUS, verbose=False)
    assert 0.1 < one.prior.min() <= one.prior.max() < 1
    kept = pn.LDA(4, **{**SETTINGS, "alpha": 5}, learn_alpha=False).fit_corpus(CORPUS, verbose=False)
    assert kept.prior.tolist() == pytest.approx([5] * 4)


def test_several_workers_learn_the_topics_too_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = pn.LDA(4, **SETTINGS, workers=2).fit_corpus(CORPUS, verbose=False)
    np.testing.assert_allclose(model.word_topics.sum(axis=0), [1] * 4, atol=1e-5)
    one = pn.LDA(4, **SETTINGS).fit_corpus(CORPUS[:9], verbose=False)
    before = one.fingerprint()
    one.workers = 2
    assert one.fingerprint() == before


def test_concentrations_are_above_zero():
    for name in ("alpha", "beta"):
        with pytest.raises(ValueError, match=f"{name} must be above 0"):
            pn.LDA(**{name: 0})
    with pytest.raises(ValueError, match="learn_alpha must be one of"):
        pn.LDA(learn_alpha="yes")
