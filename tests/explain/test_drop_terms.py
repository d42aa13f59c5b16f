import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.explain import dropping
from pt_neural.text import Vocabulary, tokenise

QUERY = "university city <b> city"
TEXT = "Oxford is a University city & the home of the oldest university. É\u0301 İs straße"
WORDS = ["university", "city", "oxford", "home", "oldest", "river", "giraffe", "the", "is"]


TRAINING = pd.DataFrame(
    {
        "qid": ["1", "2"],
        "query": ["university city", "giraffe neck"],
        "docno": ["d1", "d2"],
        "text": ["Oxford is a city, home of the oldest university.", "The giraffe is the tallest animal by a river."],
    }
)
QRELS = pd.DataFrame({"qid": ["1", "2"], "docno": ["d1", "d2"], "label": [1, 1]})


@pytest.fixture(scope="module")
def models() -> dict[str, pn.DESM | pn.LSA | pn.DSSM | pn.CLSM]:
    vectors = np.random.default_rng(3).normal(size=(2, len(WORDS), 5)).astype("f4")
    training = pn.Training(epochs=1, verbose=False)
    corpus = [*TRAINING.to_dict("records"), {"docno": "d3", "text": "A long river runs past the city."}]
    spaces = pn.EmbeddingSpaces.from_vectors(Vocabulary(WORDS), *vectors)
    others = pn.Training(epochs=1, negatives="random", num_negatives=1, verbose=False)
    sizes = {"projection": 4, "document_units": 4, "query_units": 3, "hidden": 4, "training": others}
    return {
        "SSM": pn.SSM(spaces, **sizes).fit(TRAINING, QRELS),
        "SSM by attention": pn.SSM(spaces, **sizes, pooling="attention").fit(TRAINING, QRELS),
        "DESM": pn.DESM(spaces),
        "LSA": pn.LSA(dim=2, min_count=1).fit_corpus(corpus, verbose=False),
        "DSSM": pn.DSSM((8, 4), training=training).fit(TRAINING, QRELS),
        "CLSM": pn.CLSM(filters=10, dim=4, max_terms=6, training=training).fit(TRAINING, QRELS),
    }


def score(model, query: str, text: str) -> float:
    pair = pd.DataFrame({"qid": ["1"], "query": [query], "docno": ["d"], "text": [text]})
    return model.transform(pair)["score"].iloc[0]


def without(text: str, term: str) -> str:
    return " ".join(word for word in tokenise(text) if word != term)


@pytest.mark.parametrize("name", ["DESM", "LSA", "DSSM", "CLSM", "SSM"])
def test_contributions_are_score_differences_of_texts_ranked_by_hand(models, name):
    model = models[name]
    explanation = pn.explain(model, QUERY, TEXT, method="drop")
    full = score(model, QUERY, TEXT)
    assert explanation.score == pytest.approx(full, abs=1e-6)
    frame = explanation.to_frame()
    assert frame["contribution"].abs().max() > 0.001
    for row in frame.itertuples():
        query = without(QUERY, row.word) if row.side == "query" else QUERY
        text = without(TEXT, row.word) if row.side == "document" else TEXT
        assert row.contribution == pytest.approx(full - score(model, query, text), abs=1e-6), row


def test_a_document_read_for_the_query_loses_one_occurrence_at_a_time(models):
    model = models["SSM by attention"]
    explanation = pn.explain(model, QUERY, TEXT)
    assert explanation.score == pytest.approx(score(model, QUERY, TEXT), abs=1e-6)
    last = explanation.to_frame().query("side == 'document'").iloc[-1]
    rest = " ".join(tokenise(TEXT)[:-1])
    assert last["contribution"] == pytest.approx(explanation.score - score(model, QUERY, rest), abs=1e-6)


def test_every_occurrence_of_both_texts_has_a_row(models):
    frame = pn.explain(models["DSSM"], QUERY, TEXT).to_frame()
    for side, text, other in (("query", QUERY, TEXT), ("document", TEXT, QUERY)):
        rows = frame[frame["side"] == side]
        assert rows["word"].tolist() == tokenise(text)
        assert all(tokenise(text[row.start : row.end]) == [row.word] for row in rows.itertuples())
        assert rows["match"].tolist() == [word in tokenise(other) for word in tokenise(text)]


def test_the_last_known_word_takes_the_score_to_the_least(models):
    frame = pn.explain(models["DESM"], "city", "giraffe zzz", method="drop").to_frame()
    full = score(models["DESM"], "city", "giraffe zzz")
    contributions = frame[frame["side"] == "document"].set_index("word")["contribution"]
    assert contributions["giraffe"] == pytest.approx(full + 1)
    assert contributions["zzz"] == pytest.approx(0, abs=1e-6)
    assert frame.loc[frame["side"] == "query", "contribution"].tolist() == pytest.approx([full])


def test_only_so_many_terms_are_dropped_shared_ones_first_then_the_most_frequent(models):
    text = "once river river the the the university last"
    explanation = pn.explain(models["LSA"], "university", text, terms=3)
    frame = explanation.to_frame()
    tried = frame[(frame["side"] == "document") & frame["contribution"].notna()]
    assert set(tried["word"]) == {"university", "the", "river"}
    assert "Of the 5 terms of the document, 3 were dropped in turn" in explanation.note
    assert explanation._repr_html_().count("<span") >= 2
    assert {label.get_text() for label in explanation.plot().get_yticklabels()} == {"university", "the", "river"}
    plt.close("all")


def test_texts_are_encoded_in_batches_of_bounded_size(models, monkeypatch):
    whole = pn.explain(models["DSSM"], QUERY, TEXT).to_frame()
    monkeypatch.setattr(dropping, "WORDS_A_BATCH", 40)
    sizes, encode = [], pn.DSSM.encode_sequences

    def counting(self, sequences, vocabulary):
        sizes.append(len(sequences.terms))
        return encode(self, sequences, vocabulary)

    monkeypatch.setattr(pn.DSSM, "encode_sequences", counting)
    pd.testing.assert_frame_equal(pn.explain(models["DSSM"], QUERY, TEXT).to_frame(), whole, atol=1e-6)
    assert len(sizes) > 1
    assert max(sizes) <= 40


def test_html_escapes_and_tells_support_from_harm(models):
    explanation = pn.explain(models["DSSM"], QUERY, TEXT)
    html = explanation._repr_html_()
    assert "<b> city" not in html
    assert "&amp; " in html
    frame = explanation.to_frame()
    strongest = frame.groupby("side")["contribution"].transform(lambda column: column.abs().max())
    shaded = frame["contribution"].abs() >= 0.1 * strongest
    others = frame[~frame["match"] & shaded]
    assert html.count("#E69F00") == frame["match"].sum()
    assert html.count("#0072B2") == (others["contribution"] > 0).sum() > 0
    assert html.count("#CC79A7") == (others["contribution"] < 0).sum() > 0
    assert html.count("underline dashed") == (frame["contribution"] < 0)[shaded].sum()


@pytest.mark.parametrize("side", ["query", "document"])
def test_plot_shows_each_term_once_and_what_it_adds(models, side):
    explanation = pn.explain(models["DSSM"], QUERY, TEXT)
    axes = explanation.plot(side=side)
    terms = explanation.to_frame().query("side == @side").drop_duplicates("word").set_index("word")["contribution"]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(labels) == sorted(terms.index)
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], terms[labels])
    plt.close("all")


def test_a_query_with_dollar_signs_is_a_title_and_no_formula(models):
    axes = pn.explain(models["LSA"], r"$\frac river$", TEXT).plot()
    axes.figure.canvas.draw()
    assert r"$\frac river$" in axes.get_title(loc="left")
    plt.close("all")


@pytest.mark.parametrize("name", ["DESM", "LSA", "DSSM", "CLSM"])
@pytest.mark.parametrize(("query", "text"), [("", TEXT), (QUERY, ""), ("", ""), ("zzz", None), (float("nan"), "ζζ")])
def test_nothing_to_explain_is_no_crash(models, name, query, text):
    explanation = pn.explain(models[name], query, text, method="drop")
    assert explanation.score == (-1 if text != TEXT else 0)
    assert (explanation.to_frame()["contribution"] == 0).all()
    assert "contribution" in explanation.to_frame()
    explanation._repr_html_()
    for side in ("query", "document"):
        explanation.plot(side=side).figure.canvas.draw()
    plt.close("all")


def test_long_documents_neither_hang_nor_lose_words(models):
    text = " ".join(f"w{number % 7000} university" for number in range(50_000))
    frame = pn.explain(models["LSA"], QUERY, text).to_frame()
    assert (frame["side"] == "document").sum() == 100_000
    assert frame.loc[frame["contribution"].notna() & (frame["side"] == "document"), "word"].nunique() == 200


def test_errors_say_what_to_do(models):
    with pytest.raises(RuntimeError, match="not trained yet"):
        pn.explain(pn.DSSM(), QUERY, TEXT)
    with pytest.raises(RuntimeError, match="fit_corpus"):
        pn.explain(pn.LSA(), QUERY, TEXT)
    with pytest.raises(ValueError, match="must be one of drop"):
        pn.explain(models["LSA"], QUERY, TEXT, method="max-pooling")
    with pytest.raises(ValueError, match="must be one of similarity, drop"):
        pn.explain(models["DESM"], QUERY, TEXT, method="max-pooling")
    with pytest.raises(ValueError, match="terms must be at least 1"):
        pn.explain(models["LSA"], QUERY, TEXT, terms=0)
    with pytest.raises(ValueError, match="side must be"):
        pn.explain(models["LSA"], QUERY, TEXT).plot(side="both")
