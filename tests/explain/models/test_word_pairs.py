"""Pairs of words that make up a score q'Wd: against scores by re-ranking, and products by hand."""

import math

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.text import Vocabulary, pack_texts, tokenise
from tests.explain.reference import scored, without_key

DOCUMENTS = [
    "Pearl Harbor & the harbor: the <navy> base",
    "the navy base of the old city by the river",
    "an old city, a harbor city",
    "the pearl of the river",
    "Pearl Harbor was the base of the navy, the pearl harbor museum was old",
    "a museum of the river city",
]
PAIRS = pd.DataFrame(
    {
        "qid": ["1", "2", "3"],
        "query": ["navy base pearl harbor", "old city museum", "river pearl"],
        "docno": ["d0", "d5", "d3"],
    }
)
CANDIDATES = PAIRS[["qid", "query"]].merge(
    pd.DataFrame({"docno": [f"d{number}" for number in range(6)], "text": DOCUMENTS}), how="cross"
)
QRELS = PAIRS[["qid", "docno"]].assign(label=1)

QUERY = "The pearl harbor navy zebra, navy base?"
TEXT = DOCUMENTS[4] + " <zebra> & " + DOCUMENTS[1]
CASES = {
    "low-rank": {},
    "diagonal": {"kind": "diagonal"},
    "full": {"kind": "full"},
    "sparse": {"kind": "sparse", "nonzeros": 4, "rounds": 1},
    "hash": {"kind": "hash", "hash_size": 31},
    "two vocabularies": {"shared_vocabulary": False},
    "hashed words": {"kind": "correlated-hash", "embedded_terms": 6, "bins": 3},
    "hashed 2-grams": {"kind": "correlated-hash", "embedded_terms": 6, "bins": 3, "ngrams": 2},
    "hashed words and 2-grams": {"kind": "correlated-hash", "embedded_terms": 6, "bins": 3, "ngrams": "1+2"},
}
HASHED = ["hashed words", "hashed 2-grams", "hashed words and 2-grams"]


@pytest.fixture(scope="module")
def models() -> dict[str, pn.SSI | pn.TFIDF]:
    training = pn.Training(epochs=1, num_negatives=3, learning_rate=0.2, verbose=False)
    fitted = {name: pn.SSI(**{"dim": 3, **case}, training=training) for name, case in CASES.items()}
    corpus = CANDIDATES[["docno", "text"]].drop_duplicates()
    return {
        **{name: model.fit(CANDIDATES, QRELS) for name, model in fitted.items()},
        "TFIDF": pn.TFIDF().fit_corpus(corpus.to_dict("records"), verbose=False),
    }


def tf_idf(text: str, *, sublinear_tf: bool = True) -> dict[str, float]:
    words, weights = tokenise(text), {}
    for word in set(words):
        frequency = sum(word in tokenise(document) for document in DOCUMENTS)
        if frequency:
            tf = 1 + math.log(words.count(word)) if sublinear_tf else words.count(word)
            weights[word] = tf * (math.log(7 / (1 + frequency)) + 1)
    length = math.sqrt(sum(weight**2 for weight in weights.values()))
    return {word: weight / length for word, weight in weights.items()}


@pytest.mark.parametrize("name", [*CASES, "TFIDF"])
def test_contributions_are_products_of_tf_idf_and_w_and_sum_to_the_score(models, name):
    explanation = pn.explain(models[name], QUERY, TEXT)
    expected = scored(models[name], QUERY, TEXT)
    assert abs(expected) > 0.01
    assert explanation.score == pytest.approx(expected, abs=1e-6)
    assert explanation.to_frame()["contribution"].sum() == pytest.approx(expected, abs=1e-5)
    by_word = explanation.by_word().groupby("side")["contribution"].sum()
    assert by_word.to_dict() == {side: pytest.approx(expected, abs=1e-5) for side in ("query", "document")}
    once = explanation.words.drop_duplicates(["side", "word"]).groupby("side")["contribution"].sum()
    assert once.to_dict() == {side: pytest.approx(expected, abs=1e-5) for side in ("query", "document")}
    if name == "TFIDF" or name in HASHED:
        return  # which are tested below
    frame, weights = explanation.to_frame(), models[name].word_weights()
    if name != "two vocabularies":  # whose queries have document frequencies of their own
        assert frame["query_weight"].tolist() == pytest.approx(
            frame["query_word"].map(tf_idf(QUERY)).tolist(), abs=1e-6
        )
    assert frame["document_weight"].tolist() == pytest.approx(
        frame["document_word"].map(tf_idf(TEXT)).tolist(), abs=1e-6
    )
    w = [weights.loc[pair] for pair in zip(frame["query_word"], frame["document_word"], strict=True)]
    assert frame["weight"].tolist() == pytest.approx(w, abs=1e-5)
    product = frame["query_weight"] * frame["weight"] * frame["document_weight"]
    assert frame["contribution"].tolist() == pytest.approx(product.tolist(), abs=1e-6)
    assert (frame["contribution"].abs().diff().dropna() <= 0).all()


def test_tfidf_has_the_words_that_both_texts_have(models):
    frame = pn.explain(models["TFIDF"], QUERY, TEXT).to_frame()
    q, d = tf_idf(QUERY, sublinear_tf=False), tf_idf(TEXT, sublinear_tf=False)
    expected = {word: q[word] * d[word] for word in q.keys() & d.keys()}
    assert frame.set_index("query_word")["contribution"].to_dict() == pytest.approx(expected, abs=1e-6)
    assert frame["query_word"].tolist() == frame["document_word"].tolist()
    assert frame["weight"].tolist() == pytest.approx([1] * len(frame))
    assert frame["match"].all()


@pytest.mark.parametrize("name", HASHED)
def test_hashed_features_are_split_by_the_words_and_2_grams_that_were_hashed(models, name):
    """Equations 6 and 7, with each text's factor taken from the length of its features."""
    model = models[name]
    frequent, dim = 6, 3
    query_vectors, document_vectors = (
        getattr(model.network, f"hashed_{side}_vectors").astype(float) for side in ("query", "document")
    )

    def hashed(text: str, whole: np.ndarray, parts: pd.DataFrame) -> dict[str, np.ndarray]:
        """Each part's row: its weight at each of the frequent words that it is replaced by."""
        vocabulary, rows = model.features.documents.vocabulary, {}
        for part, weight in parts.itertuples(index=False):
            rows[part] = np.zeros(frequent)
            try:
                words = model.dice_neighbours(part)["word"]
            except KeyError:
                continue  # a frequent word, or a word where 2-grams are hashed
            rows[part][vocabulary.ids(words.tolist())] = weight
        return {part: row * np.linalg.norm(whole) / np.linalg.norm(sum(rows.values())) for part, row in rows.items()}

    explanation = pn.explain(model, QUERY, TEXT)
    q = hashed(QUERY, model.features.read_queries([QUERY]).hashed.toarray(), explanation.query_words)
    sequences, terms = pack_texts([TEXT])
    document = model.features.read_documents(sequences, Vocabulary(terms)).hashed.toarray()
    d = hashed(TEXT, document, explanation.document_words)
    assert max(np.abs(row).max() for row in q.values()) > 0.1
    words = model.network.query_vectors, model.network.document_vectors
    ids = {term: number for number, term in enumerate(model.features.documents.vocabulary.terms)}
    for row, (query_part, query_weight) in enumerate(explanation.query_words.itertuples(index=False)):
        for column, (part, weight) in enumerate(explanation.document_words.itertuples(index=False)):
            expected = float(model.network.mixing[0]) * (q[query_part] @ query_vectors) @ (d[part] @ document_vectors)
            i, j = ids.get(query_part), ids.get(part)
            if i is not None and j is not None:
                latent = words[0][i] @ words[1][j] if i < frequent and j < frequent else 0
                expected += query_weight * weight * (latent + (i == j))
            assert explanation.contributions[row, column] == pytest.approx(expected, abs=1e-5)
    assert query_vectors.shape == (frequent, dim)


def test_2_grams_stand_beside_words_and_are_shared_by_theirs(models):
    explanation = pn.explain(models["hashed 2-grams"], "pearl harbor", TEXT)
    assert explanation.query_words["word"].tolist()[2:] == ["pearl harbor"]
    assert {"pearl harbor", "navy base"} - set(explanation.document_words["word"]) == set()
    frame = explanation.to_frame()
    grams = frame["query_word"].str.contains(" ")
    assert (grams == frame["document_word"].str.contains(" ")).all()
    both = frame[(frame["query_word"] == "pearl harbor") & frame["match"]]
    assert both["document_word"].tolist() == ["pearl harbor"]
    totals = frame.groupby("query_word")["contribution"].sum()
    words = explanation.words.query("side == 'query'").set_index("word")["contribution"]
    assert words["pearl"] == pytest.approx(totals["pearl"] + totals["pearl harbor"] / 2, abs=1e-6)


def test_the_same_word_of_two_vocabularies_is_none(models):
    explanation = pn.explain(models["two vocabularies"], QUERY, TEXT)
    assert not explanation.to_frame()["match"].any()
    assert not explanation.words["match"].any()
    assert "bold" not in explanation._repr_html_().lower()


def test_so_many_pairs_are_told(models):
    full = pn.explain(models["low-rank"], QUERY, TEXT)
    few = pn.explain(models["low-rank"], QUERY, TEXT, pairs=3)
    pd.testing.assert_frame_equal(few.to_frame(), full.to_frame().head(3))
    assert few.score == full.score
    assert len(few.plot().figure.axes[1].get_yticklabels()) == 3
    with pytest.raises(ValueError, match="pairs"):
        pn.explain(models["low-rank"], QUERY, TEXT, pairs=0)


@pytest.mark.parametrize("name", ["low-rank", "two vocabularies", "sparse", "hashed 2-grams"])
def test_nothing_to_explain_has_the_score_of_nothing(models, name):
    for query, text, score in (("zebra", TEXT, 0.0), (QUERY, "?", -100.0), (None, None, -100.0)):
        explanation = pn.explain(models[name], query, text)
        assert explanation.to_frame().empty
        assert explanation.score == score
        assert f"{explanation.score:.4f}" in explanation._repr_html_()
        assert "Strongest pairs" not in explanation._repr_html_()
    explanation.plot()


def test_the_heat_map_shows_the_strongest_words_first(models):
    explanation = pn.explain(models["low-rank"], QUERY, TEXT)
    heat, bars = explanation.plot(words=4, pairs=5).figure.axes[:2]
    frame = explanation.to_frame()
    texts = [[label.get_text() for label in labels] for labels in (heat.get_yticklabels(), heat.get_xticklabels())]
    for labels, column in zip(texts, ("query_word", "document_word"), strict=True):
        assert labels == frame[column].drop_duplicates().tolist()[:4]
    cells = frame.set_index(["query_word", "document_word"])["contribution"]
    shown = heat.images[0].get_array()
    expected = [[cells.get((row, column), 0) for column in texts[1]] for row in texts[0]]
    np.testing.assert_allclose(shown, expected, atol=1e-7)
    bold = {label.get_text() for label in heat.get_xticklabels() if label.get_fontweight() == "bold"}
    assert bold == set(frame.loc[frame["match"], "document_word"]) & set(texts[1])
    widths = [bar.get_width() for bar in bars.patches]
    assert widths == pytest.approx(frame["contribution"].tolist()[4::-1])
    strongest = frame.iloc[0]
    assert bars.get_yticklabels()[-1].get_text() == f"{strongest.query_word} – {strongest.document_word}"
    with pytest.raises(ValueError, match="words"):
        explanation.plot(words=0)


def test_html_escapes_shades_and_lists_pairs(models):
    explanation = pn.explain(models["low-rank"], QUERY + " <b>", TEXT)
    html = explanation._repr_html_()
    assert "zebra</span>&gt; &amp; " in html
    assert '&lt;b&gt;"' in html
    assert without_key(html).count("font-weight: bold") == explanation.words["match"].sum()
    strongest = explanation.to_frame().iloc[0]
    assert f"{strongest.query_word} – {strongest.document_word} {strongest.contribution:.4f}" in html
    frame = explanation.words
    places = [(row.start, row.end) for row in frame[frame["side"] == "document"].itertuples()]
    assert [TEXT[start:end].lower() for start, end in places] == tokenise(TEXT)
