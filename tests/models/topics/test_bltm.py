"""BLTM as a ranker: what it learns, how it scores, and what it refuses."""

import copy

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural.models.topics.steps import bilingual_maximisation
from pt_neural.text import tokenise

CONCEPTS = 12


def planted(queries: int, others: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Each query has words x of two concepts, its document words y of the same; no word is on both sides."""
    random, rows, qrels = np.random.default_rng(seed), [], []
    concepts = np.array([random.choice(CONCEPTS, 2, replace=False) for _ in range(queries)])

    def text(letter: str, number: int, length: int) -> str:
        return " ".join(f"{letter}{random.choice(concepts[number])}v{random.integers(3)}" for _ in range(length))

    texts = [text("y", number, 8) for number in range(queries)]
    for number in range(queries):
        query = text("x", number, 6)
        strangers = [one for one in range(queries) if not set(concepts[one]) & set(concepts[number])]
        shown = [number, *random.choice(strangers, others, replace=False)]
        rows += [(f"q{number}", query, f"d{document}", texts[document]) for document in shown]
        qrels.append((f"q{number}", f"d{number}", 1))
    candidates = pd.DataFrame(rows, columns=["qid", "query", "docno", "text"])
    return candidates, pd.DataFrame(qrels, columns=["qid", "docno", "label"])


def first_share(model, frame: pd.DataFrame) -> float:
    """How often the relevant document, the first of each query's, is above all others."""
    scores = model.transform(frame)["score"].to_numpy().reshape(frame["qid"].nunique(), -1)
    return float((scores[:, :1] > scores[:, 1:] + 1e-5).all(axis=1).mean())


def fitted(frame, qrels, **options) -> pn.BLTM:
    model = pn.BLTM(**{"num_topics": CONCEPTS, "iterations": 30, "fields": "text", **options})
    return model.fit(frame, qrels, verbose=False)


@pytest.fixture(scope="module")
def train() -> tuple[pd.DataFrame, pd.DataFrame]:
    return planted(200, 3, seed=0)


@pytest.fixture(scope="module")
def test() -> pd.DataFrame:
    return planted(60, 5, seed=1)[0]


@pytest.fixture(scope="module")
def model(train) -> pn.BLTM:
    return fitted(*train)


@pytest.mark.parametrize("equal_fractions", [True, False])
def test_words_that_share_no_text_are_brought_together(model, train, test, equal_fractions):
    learned = copy.copy(model) if equal_fractions else fitted(*train, equal_fractions=False)
    assert first_share(learned, test) > 0.8
    assert first_share(learned.cosine(), test) > 0.8
    learned.unigram_weight = 1
    assert first_share(learned, test) == 0
    assert learned.report.groups == learned.report.queries == 200


def test_more_topics_than_words_of_a_text_are_learned_too(train, test):
    """Their pseudo-counts outweigh the words of a pair, and make the objective large: learning must not end at once."""
    model = fitted(*train, num_topics=200, topic_prior=0.5)
    assert len(model.history) > 10
    assert first_share(model, test) > 0.7


def test_topics_tell_the_words_of_both_sides(model):
    queries, documents = model.topics(3, side="query"), model.topics(3)
    assert list(documents.columns) == ["topic", "rank", "word", "probability"]
    assert len(queries) == len(documents) == 3 * CONCEPTS
    assert documents["word"].str.startswith("y").all()
    assert queries["word"].str.startswith("x").all()
    concepts = pd.DataFrame({"query": queries["word"], "document": documents["word"]}).map(lambda word: word[1:-2])
    assert (concepts["query"] == concepts["document"]).mean() > 0.7
    with pytest.raises(ValueError, match="side must be one of"):
        model.topics(side="title")


def test_scores_are_logarithms_of_the_mixed_probabilities(model, test):
    rows = test.head(4)
    scores = model.transform(rows)["score"]
    frequency = np.maximum(model.vocabulary.collection_frequency, 0.5)
    for row, score in zip(rows.itertuples(), scores, strict=True):
        words, document = (model.vocabulary.ids(tokenise(text)) for text in (row.query, row.text))
        P_C = frequency[words] / frequency.sum()
        tf = np.array([(document == word).sum() for word in words])
        unigram = (tf + model.mu * P_C) / (len(document) + model.mu)
        by_topics = model.query_word_topics[words] @ model.document_topics([row.text])[0]
        assert score == pytest.approx(np.log(0.7 * unigram + 0.3 * by_topics).sum(), abs=1e-4)


def test_a_document_has_topics_of_its_first_words_in_learning_and_ranking(train, test, tmp_path):
    frame, qrels = train
    longer = frame.assign(text=frame["text"] + " y1v1 late y2v2")
    cut, whole = (fitted(longer, qrels, max_terms=terms) for terms in (8, None))
    late = cut.vocabulary.ids(["late"])
    assert not cut.word_topics[late].any()
    assert whole.word_topics[late].all()
    for model, same in ((cut, True), (whole, False)):
        of_longer, of_first = (model.document_topics(texts["text"][:9]) for texts in (longer, frame))
        assert np.allclose(of_longer, of_first, atol=1e-2) == same
    test = test.assign(text=test["text"] + " y1v1 late y2v2")
    expected = cut.transform(test)["score"]
    corpus = test.drop_duplicates("docno")[["docno", "text"]]
    cut.documents = pn.ForwardIndex.build(tmp_path / "forward", corpus, fields=["text"], verbose=False)
    for _ in range(2):
        np.testing.assert_allclose(cut.transform(test.drop(columns="text"))["score"], expected, atol=1e-5)
    np.testing.assert_allclose(cut.transform(test.drop(columns="text")[::3])["score"], expected[::3], atol=1e-5)


def test_words_that_only_one_side_has(train):
    """Words of queries have a part of their probability on the other side; what neither side has, has no topics."""
    frame, qrels = train
    extra = pd.DataFrame({"qid": ["q0"], "query": frame["query"][:1], "docno": ["other"], "text": ["unjudged"]})
    model = fitted(pd.concat([frame, extra]), qrels, document_weight=0.25)
    only_document, neither = model.vocabulary.ids(["y1v1", "unjudged"])
    np.testing.assert_allclose(model.query_word_topics[only_document], 0.25 * model.word_topics[only_document])
    assert not model.query_word_topics[neither].any()
    np.testing.assert_allclose(model.query_word_topics.sum(axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(model.word_topics.sum(axis=0), 1, rtol=1e-5)
    rows = pd.DataFrame({"qid": "1", "query": "unjudged", "docno": ["a", "b"], "text": ["unjudged", "y1v1"]})
    assert model.transform(rows)["rank"].tolist() == [0, 1]
    assert np.isfinite(model.transform(rows)["score"]).all()


def test_fitting_again_with_the_same_seed_gives_the_same_model(model, train, test):
    frame, qrels = train
    again = fitted(frame[:400], qrels)
    assert again.fingerprint() != model.fingerprint()
    again.fit(frame, qrels, verbose=False)
    np.testing.assert_array_equal(again.transform(test)["score"], model.transform(test)["score"])
    assert again.fingerprint() == model.fingerprint() != fitted(*train, seed=14).fingerprint()


def test_history_and_progress(train, capsys):
    model = pn.BLTM(num_topics=4, iterations=5, tolerance=0, fields="text")
    model.fit(*train)
    said = capsys.readouterr()
    assert "training on 200 groups of 200 queries" in said.out
    assert "BLTM(num_topics=4): 100%" in said.err
    assert "a word" in said.err
    history = model.history
    assert list(history.columns) == ["iteration", "objective", "difference", "seconds"]
    assert history["iteration"].tolist() == [0, 1, 2, 3, 4, 5]
    assert history["objective"].is_monotonic_increasing
    assert history["difference"].between(0, 0.01).all()
    model.fit(*train, verbose=False)
    assert capsys.readouterr() == ("", "")
    model.tolerance = 0.5  # of the objective: the first iteration brings less
    assert model.fit(*train, verbose=False).history["iteration"].tolist() == [0, 1]


def test_pipelines_fit_it_with_dev_queries_that_change_nothing(train, test, model):
    frame, qrels = train
    candidates = pt.Transformer.from_df(frame)
    other = pn.BLTM(num_topics=CONCEPTS, iterations=30, fields="text")
    topics = frame[["qid", "query"]].drop_duplicates()
    (candidates >> other).fit(topics, qrels, topics.head(20), qrels)
    np.testing.assert_array_equal(other.transform(test)["score"], model.transform(test)["score"])


def test_what_is_loaded_has_the_topics_of_both_sides(model, tmp_path):
    model.save(tmp_path / "bltm.pn")
    loaded = pn.BLTM.load(tmp_path / "bltm.pn")
    pd.testing.assert_frame_equal(loaded.topics(2, side="query"), model.topics(2, side="query"))
    pd.testing.assert_frame_equal(loaded.topics(2), model.topics(2))


def test_clear_errors(train, test):
    frame, qrels = train
    for name, value in {
        "num_topics": 0,
        "iterations": 0,
        "max_terms": 0,
        "topic_prior": -1,
        "word_prior": -0.1,
    }.items():
        with pytest.raises(ValueError, match=f"{name} must be at least"):
            pn.BLTM(**{name: value})
    with pytest.raises(ValueError, match="document_weight must be"):
        pn.BLTM(document_weight=1.5)
    new = pn.BLTM(fields="text")
    for use in (lambda: new.transform(test), new.topics):
        with pytest.raises(RuntimeError, match=r"not fitted yet: call \(candidates >> model\)\.fit"):
            use()
    with pytest.raises(ValueError, match="no candidate is judged relevant"):
        new.fit(frame, qrels.assign(label=0), verbose=False)
    with pytest.raises(ValueError, match="no judgement in qrels is for a query and a document"):
        new.fit(frame, qrels.assign(qid="other"), verbose=False)
    assert new.vocabulary is None


def test_an_interrupted_fit_leaves_the_model_as_it_was(model, train, test, monkeypatch):
    before = model.transform(test), model.history, model.report

    def interrupted(*args, **options):
        yield next(bilingual_maximisation(*args, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr("pt_neural.models.topics.bltm.bilingual_maximisation", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*train, verbose=False)
    pd.testing.assert_frame_equal(model.transform(test), before[0])
    pd.testing.assert_frame_equal(model.history, before[1])
    assert model.report is before[2]


def test_maximum_likelihood_without_pseudo_counts(train, test):
    model = fitted(*train, topic_prior=0, word_prior=0)
    assert np.isfinite(model.transform(test)["score"]).all()
    assert first_share(model, test) > 0.6
