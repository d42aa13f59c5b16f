import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.text import tokenise
from tests.explain.reference import scored

CORPUS = [
    {"docno": "d1", "text": "The giraffe has a long neck, the longest <neck> of all animals."},
    {"docno": "d2", "text": "Okapi and giraffe: animals with long legs."},
    {"docno": "d3", "text": "A river city with a bridge over the river."},
    {"docno": "d4", "text": "The bridge in the city leads to the river station."},
]
TOPICS = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["tall mammal", "town water", "giraffe neck"]})
QRELS = pd.DataFrame({"qid": ["1", "1", "2", "2", "3"], "docno": ["d1", "d2", "d3", "d4", "d1"], "label": 1})
CANDIDATES = TOPICS.merge(pd.DataFrame(CORPUS), how="cross")
QUERY = "mammal giraffe town neck"


@pytest.fixture(scope="module")
def plsa() -> pn.PLSA:
    return pn.PLSA(2, mu=5).fit_corpus(CORPUS, verbose=False)


@pytest.fixture(scope="module")
def bltm() -> pn.BLTM:
    return pn.BLTM(2, mu=5).fit(CANDIDATES, QRELS, verbose=False)


@pytest.fixture(scope="module")
def translation() -> pn.WordTranslation:
    return pn.WordTranslation(mu=5).fit(CANDIDATES, QRELS, verbose=False)


@pytest.fixture(params=["plsa", "bltm", "translation"])
def model(request):
    return request.getfixturevalue(request.param)


def test_the_sources_of_all_words_make_the_score(model):
    explanation = pn.explain(model, QUERY, CORPUS[0]["text"])
    frame = explanation.to_frame()
    score = scored(model, QUERY, CORPUS[0]["text"])
    assert np.log(frame.groupby("word")["probability"].sum()).sum() == pytest.approx(score, abs=1e-4)
    assert explanation.score == pytest.approx(score, abs=1e-5)
    np.testing.assert_allclose(frame.groupby("word")["share"].sum(), 1, atol=1e-5)
    assert (frame["probability"] > 0).all()


def test_the_note_names_words_that_the_model_does_not_know(model):
    html = pn.explain(model, "Zebras, giraffe and zebras or quaggas", CORPUS[0]["text"])._repr_html_()
    assert "Not known to the model and left out: zebras, or, quaggas." in html
    assert "Not known" not in pn.explain(model, "giraffe and neck", CORPUS[0]["text"])._repr_html_()


def test_words_that_stand_twice_in_the_query_are_told_once(model):
    frame = pn.explain(model, "neck neck", CORPUS[0]["text"]).to_frame()
    assert set(frame["word"]) == {"neck"}
    assert (frame["kind"] == "same word").sum() == 1


def test_a_translation_is_told_by_its_word_and_probability(translation):
    text = CORPUS[0]["text"]
    frame = pn.explain(translation, "mammal", text, sources=100).to_frame()
    translations = frame[frame["kind"] == "translation"].set_index("source")["probability"]
    words = tokenise(text)
    for word in set(words):
        table = translation.translations(word, k=100).set_index("word")["probability"]
        share = words.count(word) / len(words)
        expected = (1 - translation.unigram_weight) * table.get("mammal", 0.0) * share
        assert translations.get(word, 0.0) == pytest.approx(expected, abs=1e-6)
    assert len(translations) > 2


def test_what_a_word_adds_to_itself_is_no_translation(translation):
    frame = pn.explain(translation, "neck", CORPUS[0]["text"], sources=100).to_frame()
    assert frame["source"].value_counts()["neck"] == 1
    tf, length = 2, len(tokenise(CORPUS[0]["text"]))
    own = translation.translations("neck", k=100).set_index("word")["probability"]["neck"]
    weight = translation.unigram_weight
    expected = weight * tf / (length + translation.mu) + (1 - weight) * own * tf / length
    row = frame[frame["kind"] == "same word"].iloc[0]
    assert row["probability"] == pytest.approx(expected, abs=1e-6)


def test_topics_add_their_products(plsa):
    frame = pn.explain(plsa, "giraffe", CORPUS[0]["text"]).to_frame()
    document_topics = plsa.document_topics([CORPUS[0]["text"]])[0]
    word_topics = plsa.word_topics[plsa.vocabulary.ids(["giraffe"])[0]]
    expected = (1 - plsa.unigram_weight) * document_topics * word_topics
    found = frame[frame["kind"] == "topic"]
    for topic, probability in enumerate(expected):
        row = found[found["source"].str.startswith(f"topic {topic}: ")]
        assert row["probability"].sum() == pytest.approx(probability, abs=1e-6)
    collection = frame[frame["kind"] == "collection"]["probability"].iloc[0]
    words = [word for document in CORPUS for word in tokenise(document["text"])]
    length = len(tokenise(CORPUS[0]["text"]))
    by_hand = plsa.unigram_weight * 5 * words.count("giraffe") / len(words) / (length + 5)
    assert collection == pytest.approx(by_hand, rel=1e-4)


def test_words_of_the_document_share_all_but_the_collections_part(model):
    query = "giraffe neck giraffe"
    explanation = pn.explain(model, query, CORPUS[0]["text"])
    words = explanation.by_word()
    frame = pn.explain(model, query, CORPUS[0]["text"], sources=1000).to_frame()
    collection_shares = frame[frame["kind"] == "collection"].set_index("word")["share"]
    expected = 2 * (1 - collection_shares["giraffe"]) + 1 - collection_shares["neck"]
    document = words[words["side"] == "document"]
    assert document["contribution"].sum() == pytest.approx(expected, abs=1e-4)
    query_contributions = words[words["side"] == "query"]["contribution"]
    probabilities = explanation.query_words.set_index("word")["collection"]
    base = 2 * np.log(probabilities["giraffe"]) + np.log(probabilities["neck"])
    assert query_contributions.sum() == pytest.approx(explanation.score - base, abs=1e-4)
    assert query_contributions.iloc[0] == query_contributions.iloc[2]


def test_what_a_topic_adds_is_divided_by_how_much_of_it_is_due_to_each_word(plsa):
    plsa.unigram_weight, weight = 0.0, plsa.unigram_weight
    words = pn.explain(plsa, "giraffe", "neck neck river").by_word()
    plsa.unigram_weight = weight
    topics = plsa.document_topics(["neck neck river"])[0].astype(float)
    neck, river, giraffe = (
        plsa.word_topics[plsa.vocabulary.ids([word])[0]].astype(float) for word in ("neck", "river", "giraffe")
    )
    due = np.array([2 * neck * topics / (neck @ topics), river * topics / (river @ topics)])
    added = giraffe * topics / (giraffe @ topics)
    expected = (due / due.sum(axis=0)) @ added
    found = words[words["side"] == "document"]["contribution"].tolist()
    np.testing.assert_allclose(found, [expected[0] / 2, expected[0] / 2, expected[1]], atol=1e-5)


def test_weaker_sources_are_summed_up(translation):
    text = CORPUS[0]["text"]
    whole = pn.explain(translation, "mammal", text, sources=100).to_frame()
    few = pn.explain(translation, "mammal", text, sources=2).to_frame()
    assert few["source"].str.contains("others").sum() == 1
    assert few["probability"].sum() == pytest.approx(whole["probability"].sum())
    strongest = whole[whole["kind"] == "translation"]["source"].tolist()[:2]
    assert [source for source in few["source"] if source in strongest] == strongest
    with pytest.raises(ValueError, match="sources must be at least 1"):
        pn.explain(translation, "mammal", text, sources=0)


def test_nothing_to_explain_has_the_score_of_nothing(model):
    for query, text in (("zzz", "river"), ("neck", "???"), ("", "")):
        explanation = pn.explain(model, query, text)
        assert explanation.score == pytest.approx(scored(model, query, text), abs=1e-5)
        assert f"{explanation.score:.4f}" in explanation._repr_html_()
        assert set(explanation.to_frame()["kind"]) <= {"collection"}
    explanation.plot()


def test_the_page_shows_texts_and_shares(translation):
    html = pn.explain(translation, "mammal <neck>", CORPUS[0]["text"])._repr_html_()
    assert "&lt;" in html
    assert "<neck>" not in html
    assert html.count("<li>") == 2
    assert "times as probable" in html


def test_the_figure_has_a_bar_of_a_hundred_percent_for_each_word(model):
    axes = pn.explain(model, QUERY, CORPUS[0]["text"]).plot()
    known = [word for word in tokenise(QUERY) if word in model.vocabulary]
    assert [label.get_text() for label in axes.get_yticklabels()] == known
    for place in axes.get_yticks():
        widths = [bar.get_width() for bar in axes.patches if bar.get_y() < place < bar.get_y() + bar.get_height()]
        assert sum(widths) == pytest.approx(100, abs=1e-2)
