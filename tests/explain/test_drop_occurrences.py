"""Figure 1 of the Duet paper: what the score, and that of each part, loses with one occurrence of a word."""

import pickle
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.explain import dropping
from pt_neural.rankers.interaction import Interaction
from pt_neural.text import tokenise

QUERY = "university city <b> of city"  # one word more than the models read
TEXT = "Oxford is a University city & the home of the oldest university. É\u0301 city, river city"  # three more
NAMES = ["DuetLocal", "DuetDistributed", "Duet"]


def score(model, query: str, text: str) -> float:
    pair = pd.DataFrame({"qid": ["1"], "query": [query], "docno": ["d"], "text": [text]})
    return model.transform(pair)["score"].iloc[0]


def without(text: str, place: int) -> str:
    words = tokenise(text)
    return " ".join(words[:place] + words[place + 1 :])


def variants(frame: pd.DataFrame):
    """Each row with the texts that lack its occurrence."""
    for side, rows in frame.groupby("side", sort=False):
        for place, row in enumerate(rows.itertuples()):
            dropped = without(QUERY if side == "query" else TEXT, place)
            yield row, *((dropped, TEXT) if side == "query" else (QUERY, dropped))


@pytest.mark.parametrize("name", NAMES)
def test_contributions_are_score_differences_of_texts_ranked_by_hand(duets, name):
    model = duets[name]
    explanation = pn.explain(model, QUERY, TEXT)
    full = score(model, QUERY, TEXT)
    assert explanation.score == pytest.approx(full, abs=1e-5)
    frame = explanation.to_frame()
    assert frame["contribution"].abs().max() > 1e-4
    for row, query, text in variants(frame):
        assert row.contribution == pytest.approx(full - score(model, query, text), abs=1e-5), row


def test_the_parts_of_a_duet_lose_what_they_lose_alone(duets):
    duet = duets["Duet"]
    explanation = pn.explain(duet, QUERY, TEXT)
    frame = explanation.to_frame()
    for part in ("local", "distributed"):
        full = score(getattr(duet, part), QUERY, TEXT)
        assert explanation.parts[part] == pytest.approx(full, abs=1e-5)
        for row, query, text in variants(frame):
            loss = full - score(getattr(duet, part), query, text)
            assert getattr(row, part) == pytest.approx(loss, abs=1e-5), row


@pytest.mark.parametrize("name", NAMES)
def test_every_occurrence_of_both_texts_has_a_row(duets, name):
    frame = pn.explain(duets[name], QUERY, TEXT).to_frame()
    parts = ["local", "distributed"] if name == "Duet" else []
    assert list(frame.columns) == ["word", "start", "end", "side", "match", "contribution", *parts]
    for side, text, other in (("query", QUERY, TEXT), ("document", TEXT, QUERY)):
        rows = frame[frame["side"] == side]
        assert rows["word"].tolist() == tokenise(text)
        assert all(tokenise(text[row.start : row.end]) == [row.word] for row in rows.itertuples())
        assert rows["match"].tolist() == [word in tokenise(other) for word in tokenise(text)]


def test_only_so_many_words_are_dropped_shared_ones_first(duets):
    explanation = pn.explain(duets["Duet"], QUERY, TEXT, terms=5)
    document = explanation.to_frame().query("side == 'document'")
    read, beyond = document[:12], document[12:]
    tried = read[read["local"].notna()]
    assert tried["word"].tolist() == ["oxford", "university", "city", "of", "university"]
    assert (beyond[["contribution", "local", "distributed"]] == 0).all(axis=None)
    assert "Of the 12 words that the model reads of the document, 5 were dropped in turn" in explanation.note
    assert "of the query" not in explanation.note


def test_all_is_scored_in_one_pass_or_in_batches_of_bounded_size(duets, monkeypatch):
    whole = pn.explain(duets["DuetLocal"], QUERY, TEXT).to_frame()
    sizes, transform = [], pn.DuetLocal.transform

    def counting(self, frame):
        sizes.append(len(frame))
        return transform(self, frame)

    monkeypatch.setattr(pn.DuetLocal, "transform", counting)
    pn.explain(duets["DuetLocal"], QUERY, TEXT)
    assert sizes == [1 + 4 + 12]
    monkeypatch.setattr(dropping, "WORDS_A_BATCH", 13 * 4)
    pd.testing.assert_frame_equal(pn.explain(duets["DuetLocal"], QUERY, TEXT).to_frame(), whole, atol=1e-5)
    assert sizes[1:] == [4, 4, 4, 4, 1]


def test_texts_are_read_whatever_the_model_re_ranks_by(duets, tmp_path):
    model = pickle.loads(pickle.dumps(duets["Duet"]))
    expected = pn.explain(model, QUERY, TEXT).to_frame()
    corpus = [{"docno": "d1", "title": "other", "text": "than"}, {"docno": "d2", "title": "these", "text": "texts"}]
    forward = pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)
    model.documents = forward
    pd.testing.assert_frame_equal(pn.explain(model, QUERY, TEXT).to_frame(), expected, atol=1e-5)
    assert model.documents is forward
    model.documents = None
    model.representations = kept = model.index(tmp_path / "kept", forward, verbose=False)
    pd.testing.assert_frame_equal(pn.explain(model, QUERY, TEXT).to_frame(), expected, atol=1e-5)
    assert model.representations is kept


def panels(html: str) -> list[str]:
    return html.split("<p><b>")[2:]


def test_html_has_a_panel_for_each_part_and_tells_support_from_harm(duets):
    explanation = pn.explain(duets["Duet"], QUERY, TEXT)
    html, frame = explanation._repr_html_(), explanation.to_frame().query("side == 'document'")
    assert "<b> of" not in html
    assert html.count("&amp; ") == 2
    for panel, part in zip(panels(html), ("local", "distributed"), strict=True):
        assert panel.startswith(f"{part.capitalize()} model</b>: {explanation.parts[part]:.4f}")
        shaded = frame[frame[part].abs() >= 0.1 * frame[part].abs().max()]
        assert panel.count("#0072B2") == (shaded[part] > 0).sum()
        assert panel.count("#CC79A7") == panel.count("underline dashed") == (shaded[part] < 0).sum()
        assert panel.count("font-weight: bold") == frame["match"].sum()
        assert panel.count("60%") == (frame[part].abs() == frame[part].abs().max()).sum() > 0


@pytest.mark.parametrize("name", ["DuetLocal", "DuetDistributed"])
def test_a_model_of_one_piece_has_one_panel(duets, name):
    html = pn.explain(duets[name], QUERY, TEXT)._repr_html_()
    assert panels(html) == []
    assert html.count("white-space: pre-wrap") == 1


@pytest.mark.parametrize("side", ["query", "document"])
@pytest.mark.parametrize("name", NAMES)
def test_plot_shows_each_word_once_and_what_each_part_loses(duets, name, side):
    explanation = pn.explain(duets[name], QUERY, TEXT)
    axes = explanation.plot(side=side)
    frame = explanation.to_frame().query("side == @side")
    columns = ["contribution", *explanation.parts]
    sums = frame.groupby("word")[columns].sum()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(labels) == sorted(sums.index)
    for bars, column in zip(axes.containers, columns, strict=True):
        np.testing.assert_allclose([bar.get_width() for bar in bars], sums.loc[labels, column], atol=1e-9)
    bold = {label.get_text() for label in axes.get_yticklabels() if label.get_fontweight() == "bold"}
    assert bold == set(frame.loc[frame["match"], "word"])
    plt.close("all")


def test_bars_of_one_word_do_not_overlap(duets):
    axes = pn.explain(duets["Duet"], QUERY, TEXT).plot(words=4)
    spans = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in axes.patches)
    assert len(spans) == 12
    assert all(low[1] <= high[0] + 1e-9 for low, high in pairwise(spans))
    plt.close("all")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("query", "text"), [("", TEXT), (QUERY, ""), ("", ""), ("zzz", None), (float("nan"), "ζζ")])
def test_nothing_to_explain_is_no_crash(duets, name, query, text):
    explanation = pn.explain(duets[name], query, text)
    assert np.isfinite(explanation.to_frame()["contribution"]).all()
    assert np.isfinite(explanation.score)
    explanation._repr_html_()
    for side in ("query", "document"):
        explanation.plot(side=side).figure.canvas.draw()
    plt.close("all")


def test_long_documents_neither_hang_nor_lose_words(duets):
    text = " ".join(f"w{number % 7000} university" for number in range(50_000))
    frame = pn.explain(duets["Duet"], QUERY, text).to_frame()
    assert (frame["side"] == "document").sum() == 100_000
    assert frame["contribution"].notna().all()


class Overlap(Interaction):
    """Counts the terms of documents that the query has, without a limit; made of one piece."""

    _begin = _scorer = _save_preparation = _load_preparation = None  # it is never trained

    def __init__(self):
        super().__init__(training=None, fields="body", documents=None, device="cpu", batch_size=8, verbose=False)

    def score(self, frame):
        pairs = zip(frame["query"], frame["body"], strict=True)
        return np.array([sum(word in tokenise(query) for word in tokenise(text)) for query, text in pairs], dtype="f4")

    def settings(self):
        return {}


def test_any_interaction_ranker_is_explained():
    frame = pn.explain(Overlap(), "river city", "the city by the river is a city").to_frame()
    contributions = frame.groupby("side", sort=False)["contribution"].apply(list)
    assert contributions["query"] == [1, 2]
    assert contributions["document"] == [0, 1, 0, 0, 1, 0, 0, 1]


def test_errors_say_what_to_do(duets):
    with pytest.raises(RuntimeError, match="not trained yet"):
        pn.explain(pn.Duet(), QUERY, TEXT)
    with pytest.raises(ValueError, match="must be one of drop, matches"):
        pn.explain(duets["Duet"], QUERY, TEXT, method="similarity")
    with pytest.raises(ValueError, match="terms must be at least 1"):
        pn.explain(duets["Duet"], QUERY, TEXT, terms=0)
    with pytest.raises(TypeError, match="'drop' explains one text, not 2"):
        pn.explain(duets["Duet"], QUERY, [TEXT, TEXT])
    with pytest.raises(ValueError, match="side must be"):
        pn.explain(duets["Duet"], QUERY, TEXT).plot(side="both")
    with pytest.raises(TypeError, match="the ranker itself"):
        pn.explain(duets["Duet"].local, QUERY, TEXT)
