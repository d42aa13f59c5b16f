"""What every explanation keeps, whatever the model, and which models have which."""

import warnings
from copy import copy

import numpy as np
import pyterrier as pt
import pytest
from matplotlib.axes import Axes

import pt_neural as pn
from pt_neural.explain import TextExplanation
from pt_neural.explain.dropping import MASK
from pt_neural.rankers import InteractionRanker, RepresentationRanker, Vectors
from pt_neural.text import tokenise
from tests.explain.reference import COLUMNS, QUERY, TEXT, scored
from tests.rankers.fitted import CORPUS, NAMES, fitted, forward

# Rocchio expands queries; the other kinds of SSI are those of the tests of word pairs.
RANKERS = [name for name in NAMES if name != "Rocchio" and name.removeprefix("SSI ") in (name, "correlated-hash")]
HOSTILE = {
    "empty query": ("", TEXT),
    "no known word": ("zzz", "qqq ??? \U0001f992"),
    "nothing": (None, float("nan")),
    "long": (QUERY, " ".join(f"w{number} city" for number in range(600))),
    "dollars": (r"$\frac{city}$", r"\alpha $ city $ " * 50),
}
# A model for each kind of explanation, and one more where pictures differ by the model.
KINDS = [
    "DESM",
    "CLSM",
    "KNRM",
    "MatchTensorSSM",
    "SSI correlated-hash",
    "LDA",
    "WordTranslation",
    "LSA",
    "Duet",
    "DuetLocal",
]


@pytest.mark.parametrize("name", RANKERS)
def test_an_explanation_says_what_it_explains(name):
    model = fitted(name)
    explanation = pn.explain(model, QUERY, TEXT)
    assert isinstance(explanation, TextExplanation)
    assert (explanation.model, explanation.query, explanation.text) == (repr(model), QUERY, TEXT)
    assert explanation.score == pytest.approx(scored(model, QUERY, TEXT), abs=1e-4)
    assert f"{explanation.score:.4f}" in repr(explanation)
    assert len(repr(explanation)) < 250
    html = explanation._repr_html_()
    assert "<home>" not in html
    assert "<b> city" not in html
    words = explanation.by_word()
    assert words.columns.tolist() == COLUMNS
    assert words["contribution"].dtype == float
    assert words["contribution"].abs().max() > 0
    for side, own, other in (("query", QUERY, TEXT), ("document", TEXT, QUERY)):
        rows = words[words["side"] == side]
        assert rows["word"].tolist() == tokenise(own)[: len(rows)]
        assert [tokenise(own[row.start : row.end]) for row in rows.itertuples()] == [[word] for word in rows["word"]]
        assert rows["match"].tolist() == [word in tokenise(other) for word in rows["word"]]
    frame = explanation.to_frame()
    if "side" in frame:
        assert frame.columns.tolist()[: len(COLUMNS)] == COLUMNS
    elif "document_word" in frame and "contribution" in frame:
        assert frame.columns.tolist()[:4] == ["query_word", "document_word", "match", "contribution"]
    dropped = pn.explain(model, QUERY, TEXT, method="drop").to_frame()
    assert dropped.columns.tolist()[: len(COLUMNS)] == COLUMNS
    assert dropped["contribution"].abs().max() > 0


@pytest.mark.parametrize("name", KINDS)
def test_a_picture_is_drawn_where_it_is_wanted_whatever_the_texts(name):
    import matplotlib.pyplot as plt

    explanation = pn.explain(fitted(name), QUERY, TEXT)
    assert isinstance(explanation.plot(), Axes)
    figure, (left, right) = plt.subplots(1, 2)
    assert explanation.plot(ax=right) is right
    assert figure.number == plt.gcf().number
    assert not left.has_data()
    assert right.has_data()
    assert right.get_title() + right.get_title(loc="left")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("empty query", "nothing", "dollars"):
            pn.explain(fitted(name), *HOSTILE[kind]).plot().figure.draw_without_rendering()


@pytest.mark.parametrize("name", RANKERS)
def test_whatever_the_texts_there_is_an_explanation_without_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind, texts in HOSTILE.items():
            explanation = pn.explain(fitted(name), *texts)
            assert explanation.by_word().columns.tolist() == COLUMNS, kind
            explanation.to_frame()
            assert "<div" in explanation._repr_html_()


class Overlap(InteractionRanker):
    """A user's own ranker: counts the words of the document that the query has."""

    make_reader = make_network = own_training = _identity_parts = None  # it is never trained

    def score(self, frame):
        pairs = zip(frame["query"], frame[self.fields[0]], strict=True)
        return np.array([sum(word in tokenise(query) for word in tokenise(text)) for query, text in pairs], dtype="f4")


class Lengths(RepresentationRanker):
    """A user's own ranker: multiplies the numbers of words."""

    _identity_parts = _save_parts = _load_parts = None

    def represent_queries(self, texts):
        return Vectors(np.array([[len(tokenise(text))] for text in texts], dtype="f4"))

    def represent_documents(self, sequences, vocabulary):
        return Vectors(sequences.lengths[:, None].astype("f4"))


def test_rankers_of_ones_own_are_explained_by_what_they_stand_on():
    model = Overlap(fields="body")
    frame = pn.explain(model, "river city", "the city by the river is a city").to_frame()
    contributions = frame.groupby("side", sort=False)["contribution"].apply(list)
    assert contributions["query"] == [1, 2]
    assert contributions["document"] == [0, 1, 0, 0, 1, 0, 0, 1]
    assert len(pn.explain(model, "river city", "the city", method="matches").to_frame()) == 1
    frame = pn.explain(Lengths(), "river city", "the city by the river").to_frame().drop_duplicates(["side", "word"])
    contributions = frame.groupby("side", sort=False)["contribution"].apply(list)
    assert contributions["query"] == [5, 5]
    assert contributions["document"] == [4, 2, 2, 2]


@pytest.mark.parametrize(
    ("name", "methods"),
    [
        ("DESM", "similarity, drop"),
        ("LSA", "drop"),
        ("Duet", "drop, matches"),
        ("MatchTensor", "match-tensor, drop, matches"),
        ("KNRM", "interaction, drop, matches"),
        ("ARCI", "words, drop, matches"),
        ("SSM attention", "drop"),
        ("PhraseTranslation", "drop"),
    ],
)
def test_a_method_that_a_model_lacks_is_refused(name, methods):
    with pytest.raises(ValueError, match=f"must be one of {methods}$"):
        pn.explain(fitted(name), QUERY, TEXT, method="expansion")


@pytest.mark.parametrize("name", ["SSM", "MatchTensor", "SSM attention", "CLSM"])
def test_without_a_word_the_fields_of_the_others_stay(name):
    model = fitted(name)
    fields = {"title": "university city", "text": "Oxford is a city on a river, home of the oldest university"}
    full = scored(model, QUERY, fields)
    explanation = pn.explain(model, QUERY, fields, method="drop")
    assert explanation.score == pytest.approx(full, abs=1e-6)
    assert (
        scored(model, QUERY, f"{fields['title']} {fields['text']}") != pytest.approx(full, abs=1e-6) or name == "CLSM"
    )
    words = explanation.by_word().query("side == 'document'").set_index("word")["contribution"]
    by_text = {word: {**fields, "text": masked_or_dropped(model, fields["text"], word)} for word in ("oxford", "river")}
    by_text["home"] = {**fields, "text": masked_or_dropped(model, fields["text"], "home")}
    for word, rest in by_text.items():
        assert words[word] == pytest.approx(full - scored(model, QUERY, rest), abs=1e-6)


@pytest.mark.parametrize("name", ["SSM", "MatchTensor", "CLSM"])
def test_a_plain_text_has_one_field_whatever_it_holds(name):
    text = "a\x1eriver city"
    assert pn.explain(fitted(name), QUERY, text, method="drop").score == pytest.approx(
        scored(fitted(name), QUERY, text)
    )


def masked_or_dropped(model, text: str, word: str) -> str:
    """The text without a word that stands in it once, or with an unknown word if the model reads so many words."""
    place = MASK if getattr(model, "document_terms", None) else ""
    return " ".join(place if token == word else token for token in tokenise(text))


def test_columns_of_results_are_no_text(tmp_path):
    """A query that was rewritten keeps the one before in query_0, and runs that are read have a name."""
    index = pn.LuceneIndex(tmp_path / "index").index(CORPUS, verbose=False)
    rewritten = pt.apply.query(lambda row: row["query"].lower()) >> index.bm25()
    lsa = copy(fitted("LSA"))
    lsa.documents = forward()
    for pipeline, last in ((rewritten, index.bm25()), (rewritten >> lsa, lsa)):
        explanation = pn.explain(pipeline, "River City")
        assert "river" in explanation.text.lower()
        assert explanation.text != "River City"
        best = pipeline.search("River City").iloc[0]
        assert explanation.score == pytest.approx(best["score"], abs=1e-5)
        for row in (best, best.drop("query_0").to_dict() | {"name": "a run"}):
            assert pn.explain(last, row).text == explanation.text


def test_errors_say_what_to_do():
    for part in (pt.RankCutoff(3), fitted("Duet").local, pt.RankCutoff(3) >> pt.RankCutoff(2), None):
        with pytest.raises(TypeError, match="no explanation for"):
            pn.explain(part, QUERY, TEXT)
    for name in ("DESM", "CLSM", "Duet", "MatchTensor", "SSI", "LDA"):
        with pytest.raises(TypeError, match="explains one text, not 2"):
            pn.explain(fitted(name), QUERY, [TEXT, TEXT])
    with pytest.raises(TypeError, match="give the text of the document"):
        pn.explain(fitted("TFIDF"), QUERY)


@pytest.mark.parametrize("model", [pn.DSSM(), pn.LSA(), pn.Duet(), pn.SSI(), pn.TFIDF(), pn.LDA(2), pn.CLSM()])
def test_an_unfitted_model_has_no_explanation(model):
    for method in (None, "drop"):
        with pytest.raises(RuntimeError, match="not fitted yet"):
            pn.explain(model, QUERY, TEXT, method=method)
