"""What a score loses without a word: all its occurrences at once, or one at a time (Duet paper, Figure 1)."""

import pickle
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.explain import dropping
from pt_neural.explain.dropping import MASK
from pt_neural.explain.pictures import AGAINST_COLOUR, STRONGEST, SUPPORT_COLOUR, UNREAD
from pt_neural.text import tokenise
from tests.explain.reference import COLUMNS, QUERY, TEXT, masked, scored, scored_all, without, without_key
from tests.rankers.fitted import fitted

LONG_TEXT = TEXT + " city, river city and a giraffe by the river of another city"  # longer than the models read
LONG_QUERY = "university city <b> of city and the river of a giraffe"


def without_occurrences(query: str, text: str) -> list[tuple[str, str]]:
    """The pairs with an unknown word in place of one word each, in the order of the frame."""
    tokens, words = tokenise(query), tokenise(text)
    pairs = [(masked(tokens, place), text) for place in range(len(tokens))]
    return pairs + [(query, masked(words, place)) for place in range(len(words))]


@pytest.fixture(scope="module")
def duet():
    return pn.explain(fitted("Duet"), LONG_QUERY, LONG_TEXT)


@pytest.mark.parametrize("name", ["DESM", "LSA", "CLSM", "SSI hash", "TFIDF", "PLSA", "PhraseTranslation"])
def test_without_a_term_a_score_is_that_of_the_text_without_it(name):
    model = fitted(name)
    explanation = pn.explain(model, QUERY, TEXT, method="drop")
    full = scored(model, QUERY, TEXT)
    assert explanation.score == pytest.approx(full, abs=1e-5)
    frame = explanation.to_frame()
    assert frame["contribution"].abs().max() > 0.001
    sides = zip(frame["side"], frame["word"], strict=True)
    rests = [(without(QUERY, word), TEXT) if side == "query" else (QUERY, without(TEXT, word)) for side, word in sides]
    np.testing.assert_allclose(frame["contribution"], full - scored_all(model, rests), atol=1e-5)
    by_term = frame.groupby(["side", "word"])["contribution"]
    assert (by_term.max() == by_term.min()).all()
    divided = explanation.by_word().groupby(["side", "word"])["contribution"].sum()
    np.testing.assert_allclose(divided, by_term.max(), atol=1e-6)


@pytest.mark.parametrize("name", ["Duet", "DuetLocal", "MatchTensor", "SSM attention"])
def test_without_an_occurrence_a_score_is_that_of_the_text_without_it(name):
    model = fitted(name)
    explanation = pn.explain(model, LONG_QUERY, LONG_TEXT, method="drop")
    full = scored(model, LONG_QUERY, LONG_TEXT)
    assert explanation.score == pytest.approx(full, abs=1e-5)
    frame = explanation.to_frame()
    assert frame["contribution"].abs().max() > 1e-4
    rests = scored_all(model, without_occurrences(LONG_QUERY, LONG_TEXT))
    np.testing.assert_allclose(frame["contribution"], full - rests, atol=1e-5)


@pytest.mark.parametrize("name", ["SSM", "DuetLocal", "ConvKNRM"])
def test_a_word_from_beyond_what_the_model_reads_does_not_move_in(name):
    model = fitted(name)
    kept = " ".join(tokenise(LONG_TEXT)[: model.document_terms])
    beyond = kept + " river city university"
    read, longer = (pn.explain(model, QUERY, text, method="drop").by_word() for text in (kept, beyond))
    own = longer[: len(read)]
    np.testing.assert_allclose(own["contribution"][~own["match"]], read["contribution"][~own["match"]], atol=1e-6)


def test_a_term_that_is_masked_loses_what_the_masked_text_does():
    model = fitted("SSM")
    frame = pn.explain(model, QUERY, TEXT, method="drop").to_frame()
    rest = " ".join(MASK if word == "university" else word for word in tokenise(TEXT))
    found = frame[(frame["side"] == "document") & (frame["word"] == "university")]["contribution"]
    np.testing.assert_allclose(found, scored(model, QUERY, TEXT) - scored(model, QUERY, rest), atol=1e-5)


def test_a_ranker_that_reads_all_loses_the_word_itself():
    model = fitted("DRMM")
    words = tokenise(TEXT)
    rests = [(QUERY, " ".join(words[:place] + words[place + 1 :])) for place in range(len(words))]
    frame = pn.explain(model, QUERY, TEXT).to_frame().query("side == 'document'")
    expected = scored(model, QUERY, TEXT) - scored_all(model, rests)
    np.testing.assert_allclose(frame["contribution"], expected, atol=1e-5)


def test_the_parts_of_a_duet_lose_what_they_lose_alone(duet):
    frame = duet.to_frame()
    assert frame.columns.tolist() == [*COLUMNS, "local", "distributed"]
    for part in ("local", "distributed"):
        model = getattr(fitted("Duet"), part)
        full = scored(model, LONG_QUERY, LONG_TEXT)
        assert duet.parts[part] == pytest.approx(full, abs=1e-5)
        rests = scored_all(model, without_occurrences(LONG_QUERY, LONG_TEXT))
        np.testing.assert_allclose(frame[part], full - rests, atol=1e-5)


@pytest.mark.parametrize("mask", [[], [MASK]])
def test_fields_end_after_the_words_that_are_left(mask):
    tokens = {"query": ["q"], "document": ["a", "b", "c"]}
    dropped = {"query": np.array([0]), "document": np.array([0, 2])}
    pairs = dropping._pairs(tokens, dropped, {"query": [], "document": mask}, np.array([1, 3]))
    word = "".join(mask)
    texts = ["a\x1eb c", f"{word}\x1eb c", f"a\x1eb {word}".rstrip()]
    assert pairs == [("q", texts[0]), ("", texts[0]), ("q", texts[1]), ("q", texts[2])]


def test_the_last_known_word_takes_the_score_to_the_least():
    frame = pn.explain(fitted("DESM"), "city", "giraffe zzz", method="drop").to_frame()
    full = scored(fitted("DESM"), "city", "giraffe zzz")
    contributions = frame[frame["side"] == "document"].set_index("word")["contribution"]
    assert contributions["giraffe"] == pytest.approx(full + 1)
    assert contributions["zzz"] == pytest.approx(0, abs=1e-6)
    assert frame.loc[frame["side"] == "query", "contribution"].tolist() == pytest.approx([full])


def test_only_so_many_terms_are_dropped_shared_ones_first_then_the_most_frequent():
    text = "once river river the the the university last"
    explanation = pn.explain(fitted("LSA"), "university", text, terms=3)
    frame = explanation.to_frame()
    tried = frame[(frame["side"] == "document") & frame["contribution"].notna()]
    assert set(tried["word"]) == {"university", "the", "river"}
    assert "Of the 5 terms of the document, 3 were dropped in turn" in explanation.note
    assert "of the query" not in explanation.note.split("each text.")[1]
    assert {label.get_text() for label in explanation.plot().get_yticklabels()} == {"university", "the", "river"}


def test_only_so_many_occurrences_are_dropped_shared_ones_first():
    model = fitted("Duet")
    explanation = pn.explain(model, QUERY, LONG_TEXT, terms=5)
    document = explanation.to_frame().query("side == 'document'")
    read, beyond = document[: model.document_terms], document[model.document_terms :]
    tried = read[read["local"].notna()]
    assert tried["word"].tolist() == ["university", "city", "university", "city", "city"]
    assert len(beyond) > 0
    assert (beyond[["contribution", "local", "distributed"]] == 0).all(axis=None)
    assert "Of the 20 words that the model reads of the document, 5 were dropped in turn" in explanation.note
    assert "of the query" not in explanation.note


def test_texts_are_read_in_batches_of_bounded_size(monkeypatch):
    terms, words = (pn.explain(fitted(name), QUERY, TEXT).to_frame() for name in ("DSSM", "DuetLocal"))
    sizes = {"terms": [], "rows": []}
    represent, score = pn.DSSM.represent_documents, pn.DuetLocal.score

    def counted_terms(self, sequences, vocabulary):
        sizes["terms"].append(len(sequences.terms))
        return represent(self, sequences, vocabulary)

    def counted_rows(self, frame):
        sizes["rows"].append(len(frame))
        return score(self, frame)

    monkeypatch.setattr(pn.DSSM, "represent_documents", counted_terms)
    monkeypatch.setattr(pn.DuetLocal, "score", counted_rows)
    number = 1 + len(words)
    pn.explain(fitted("DuetLocal"), QUERY, TEXT)
    assert sizes["rows"] == [number], "one pass"
    monkeypatch.setattr(dropping, "WORDS_PER_BATCH", 60)
    size = 60 // len(tokenise(TEXT))
    pd.testing.assert_frame_equal(pn.explain(fitted("DSSM"), QUERY, TEXT).to_frame(), terms, atol=1e-6)
    pd.testing.assert_frame_equal(pn.explain(fitted("DuetLocal"), QUERY, TEXT).to_frame(), words, atol=1e-5)
    assert len(sizes["terms"]) > 2
    assert max(sizes["terms"]) <= 60
    assert max(sizes["rows"][1:]) == size
    assert sum(sizes["rows"][1:]) == number


def test_texts_are_read_whatever_the_model_re_ranks_by(duet, tmp_path):
    model = pickle.loads(pickle.dumps(fitted("Duet")))
    corpus = [{"docno": "d1", "title": "other", "text": "than"}, {"docno": "d2", "title": "these", "text": "texts"}]
    forward = pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)
    model.documents = forward
    pd.testing.assert_frame_equal(pn.explain(model, LONG_QUERY, LONG_TEXT).to_frame(), duet.to_frame(), atol=1e-5)
    assert model.documents is forward
    model.documents = None
    model.representations = kept = model.index(tmp_path / "kept", forward, verbose=False)
    pd.testing.assert_frame_equal(pn.explain(model, LONG_QUERY, LONG_TEXT).to_frame(), duet.to_frame(), atol=1e-5)
    assert model.representations is kept


def test_html_of_terms_tells_support_from_harm():
    explanation = pn.explain(fitted("DESM"), QUERY, TEXT, method="drop")
    html, frame = without_key(explanation._repr_html_()), explanation.to_frame()
    strongest = frame.groupby("side")["contribution"].transform(lambda column: column.abs().max())
    shaded = frame["contribution"].abs() >= 0.1 * strongest
    assert html.count("font-weight: bold") == frame["match"].sum()
    assert html.count(SUPPORT_COLOUR) == (frame["contribution"] > 0)[shaded].sum() > 0
    assert html.count(AGAINST_COLOUR) == (frame["contribution"] < 0)[shaded].sum() > 0
    assert html.count("underline dashed") == (frame["contribution"] < 0)[shaded].sum()


def test_html_has_a_panel_for_each_part_and_tells_support_from_harm(duet):
    html, frame = duet._repr_html_(), duet.to_frame().query("side == 'document'")
    panels = re.split("<p>(?=Local|Distributed)", html)[1:]
    read = frame["start"] < duet.read["document"]
    for panel, part in zip(panels, ("local", "distributed"), strict=True):
        assert panel.startswith(f"{part.capitalize()} model: {duet.parts[part]:.4f}")
        shaded = frame[frame[part].abs() >= 0.1 * frame[part].abs().max()]
        assert panel.count(SUPPORT_COLOUR) == (shaded[part] > 0).sum()
        assert panel.count(AGAINST_COLOUR) == panel.count("underline dashed") == (shaded[part] < 0).sum()
        assert panel.count("font-weight: bold") == frame["match"][read].sum() < frame["match"].sum()
        assert panel.count(UNREAD) == 1  # what comes after is grey
        assert panel.count(f"{STRONGEST}%") == (frame[part].abs() == frame[part].abs().max()).sum() > 0
    html = pn.explain(fitted("DuetLocal"), QUERY, TEXT)._repr_html_()
    assert html.count("white-space: pre-wrap") == 1


@pytest.mark.parametrize("side", ["query", "document"])
@pytest.mark.parametrize("name", ["DSSM", "Duet", "DuetLocal"])
def test_the_picture_shows_each_word_once_and_what_is_lost_without_it(name, side):
    explanation = pn.explain(fitted(name), QUERY, TEXT)
    axes = explanation.plot(side=side, words=30)
    columns = ["contribution", *getattr(explanation, "parts", [])]
    frame = explanation.to_frame().query("side == @side")
    totals = frame.groupby("word")[columns].agg("first" if name == "DSSM" else "sum")
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(labels) == sorted(totals.index)
    for bars, column in zip(axes.containers, columns, strict=True):
        np.testing.assert_allclose([bar.get_width() for bar in bars], totals.loc[labels, column], atol=1e-9)
    spans = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in axes.patches)
    assert all(low[1] <= high[0] + 1e-9 for low, high in pairwise(spans))
    if name != "DSSM":
        bold = {label.get_text() for label in axes.get_yticklabels() if label.get_fontweight() == "bold"}
        assert bold == set(frame.loc[frame["match"], "word"])


@pytest.mark.parametrize("name", ["DESM", "CLSM", "Duet"])
def test_nothing_to_explain_has_the_score_of_nothing(name):
    for query, text, score in (("", TEXT, 0), (QUERY, "", -1), ("zzz", None, -1)):
        explanation = pn.explain(fitted(name), query, text, method="drop")
        assert np.isfinite(explanation.to_frame()["contribution"]).all()
        if name != "Duet":
            assert explanation.score == score
            assert (explanation.to_frame()["contribution"] == 0).all()
    for side in ("query", "document"):
        explanation.plot(side=side)


def test_long_documents_neither_hang_nor_lose_words():
    text = " ".join(f"w{number % 7000} university" for number in range(8_000))
    for name, tried in (("LSA", 200), ("Duet", 7001)):
        frame = pn.explain(fitted(name), QUERY, text).to_frame().query("side == 'document'")
        assert len(frame) == 16_000
        assert frame.loc[frame["contribution"].notna(), "word"].nunique() == tried


def test_wrong_arguments_are_refused():
    for name in ("LSA", "Duet"):
        with pytest.raises(ValueError, match="terms must be at least 1"):
            pn.explain(fitted(name), QUERY, TEXT, terms=0)
        with pytest.raises(ValueError, match="side must be"):
            pn.explain(fitted(name), QUERY, TEXT).plot(side="both")
