"""Several models on one document: shares by hand, names, pictures."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.explain import ComparedExplanations
from pt_neural.explain.comparison import numbered
from pt_neural.text import tokenise
from tests.explain.reference import COLUMNS
from tests.rankers.fitted import fitted

QUERY = "university city"
TEXT = "Oxford is a city & the <home> of the oldest university, a river city."
SIX = ("DESM", "CLSM", "MatchTensor", "SSI", "PLSA", "LSA")


@pytest.fixture
def models() -> dict:
    return {name: fitted(name) for name in SIX}


def test_the_frame_has_what_each_model_tells_by_itself(models):
    compared = pn.explain(models, QUERY, TEXT)
    assert isinstance(compared, ComparedExplanations)
    frame = compared.to_frame()
    assert frame.columns.tolist() == ["model", *COLUMNS, "share"]
    assert frame["model"].drop_duplicates().tolist() == list(SIX)
    for name, model in models.items():
        alone = pn.explain(model, QUERY, TEXT)
        own = frame[frame["model"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(own[COLUMNS], alone.by_word())
        assert compared.score[name] == pytest.approx(alone.score)
        assert compared.explanations[name].model == name
    assert (compared.query, compared.text) == (QUERY, TEXT)


def test_shares_are_what_a_word_gets_of_all_that_words_get():
    compared = pn.explain([fitted("TFIDF"), fitted("LSA")], QUERY, TEXT)
    shares = compared.shares()
    for name in ("TFIDF", "LSA"):
        words = pn.explain(fitted(name), QUERY, TEXT).words
        by_word = words[words["side"] == "document"].drop_duplicates("word").set_index("word")["contribution"]
        np.testing.assert_allclose(shares[name], (by_word / by_word.abs().sum())[shares.index], atol=1e-6)
    assert set(shares.index) == set(tokenise(TEXT))
    assert shares.index[shares["match"]].isin(["university", "city"]).all()
    assert shares[["TFIDF", "LSA"]].abs().max(axis=1).is_monotonic_decreasing
    by_word = compared.to_frame().groupby(["model", "side", "word"])["share"].sum()
    np.testing.assert_allclose(by_word.abs().groupby(["model", "side"]).sum(), 1)


def test_shares_do_not_change_with_the_scale_of_a_model():
    compared = pn.explain({"one": fitted("SSI"), "other": fitted("SSI")}, QUERY, TEXT)
    compared.explanations["other"].words["contribution"] *= 1000
    np.testing.assert_allclose(compared.shares()["one"], compared.shares()["other"])


def test_models_of_a_kind_have_names_of_their_own():
    clsm, lsa = fitted("CLSM"), fitted("LSA")
    assert numbered(["CLSM", "LSA", "CLSM"]) == ["CLSM 1", "LSA", "CLSM 2"]
    compared = pn.explain([clsm, lsa, clsm], QUERY, TEXT, method="drop")
    assert compared.model == "CLSM 1, LSA, CLSM 2"
    assert "CLSM 2: " in repr(compared)


def test_the_texts_stand_side_by_side_under_names_and_scores(models):
    compared = pn.explain({"a <model>": models["CLSM"], "other": models["MatchTensor"]}, QUERY, TEXT)
    html = compared._repr_html_()
    assert html.startswith('<div style="display: flex')
    columns = html.split("flex: 1 1")[1:]
    assert len(columns) == 2
    for column, name in zip(columns, ("a &lt;model&gt;", "other"), strict=True):
        assert f"<p>{name} for " in column
        assert "<home>" not in column
    assert f": {compared.score['other']:.4f}" in columns[1]


def test_the_picture_has_a_bar_for_each_word_and_model(models):
    two = pn.explain([models["DESM"], models["MatchTensor"]], QUERY, TEXT)
    axes = two.plot(words=5)
    shares = two.shares().head(5)
    assert [label.get_text() for label in axes.get_yticklabels()] == shares.index.tolist()[::-1]
    widths = [[bar.get_width() for bar in bars] for bars in axes.containers]
    np.testing.assert_allclose(widths, 100 * shares[["DESM", "MatchTensor"]].to_numpy()[::-1].T, atol=1e-9)
    bold = [label.get_fontweight() == "bold" for label in axes.get_yticklabels()]
    assert bold == shares["match"].tolist()[::-1]
    assert "in percent" in axes.get_xlabel()
    assert [text.get_text().split(":")[0] for text in axes.get_legend().get_texts()] == ["DESM", "MatchTensor"]
    with pytest.raises(ValueError, match="room for 6 models, not for 7"):
        pn.explain([*models.values(), models["LSA"]], QUERY, TEXT, method="drop").plot()
    with pytest.raises(ValueError, match="side must be"):
        two.plot(side="both")
    with pytest.raises(ValueError, match="words must be at least 1"):
        two.plot(words=0)


@pytest.mark.parametrize(("query", "text"), [("", TEXT), (r"$\frac", "city " * 500)])
def test_nothing_to_compare_is_no_crash(models, query, text):
    compared = pn.explain(models, query, text)
    assert "share" in compared.to_frame()
    assert compared._repr_html_().count("flex: 1 1") == 6
    for side in ("query", "document"):
        compared.plot(side=side).figure.draw_without_rendering()


def test_fields_are_read_by_each_model_as_it_does(models):
    compared = pn.explain([models["MatchTensor"], models["LSA"]], QUERY, {"title": "Old city", "text": TEXT})
    assert compared.text == f"Old city\n{TEXT}"
    assert compared.explanations["LSA"].text == f"Old city {TEXT}"


def test_errors_say_what_to_do(models):
    with pytest.raises(ValueError, match="at least one"):
        pn.explain([], QUERY, TEXT)
    with pytest.raises(ValueError, match="method must be one of drop"):
        pn.explain([models["DESM"], models["LSA"]], QUERY, TEXT, method="similarity")
    with pytest.raises(TypeError, match="words of one document, but this explanation of Duet is not about"):
        pn.explain([fitted("Duet")], QUERY, TEXT, method="matches")
