"""Explanations of Match-Tensor: contributions of cells and channels, from the score to the picture."""

import dataclasses

import numpy as np
import pytest
import torch

import pt_neural as pn
from pt_neural.explain.cells import shown_columns
from pt_neural.explain.models.match_tensor import contributions, pair_score, read_pair
from pt_neural.models.match_tensor.match_tensor import MatchTensorRanker
from pt_neural.text import Vocabulary
from tests.explain.reference import scored, with_random_weights, without_key

WORDS = ["river", "city", "okapi", "neck", "leaf", "old", "town", "grass"]
QUERY = "okapi in the old city okapi"
DOCUMENT = {
    "title": "The <okapi>",
    "text": "An okapi eats leaf and grass; the old city has a river, the Old Town none.",
}
SIZES = {
    "projection": 6,
    "document_units": 5,
    "query_units": 4,
    "tensor_size": 7,
    "filters": 6,
    "second_filters": 5,
    "hidden": 9,
    "query_terms": 7,
    "document_terms": 30,
}


def with_weights(kind=pn.MatchTensor, **options) -> MatchTensorRanker:
    vectors = np.random.default_rng(0).normal(size=(2, len(WORDS), 6)).astype("f4")
    spaces = pn.EmbeddingSpaces.from_vectors(Vocabulary(WORDS), *vectors)
    return with_random_weights(kind(spaces, **{**SIZES, **options}, device="cpu"), [" ".join(WORDS)], seed=1)


@pytest.fixture(
    params=[
        (pn.MatchTensor, {}),
        (pn.MatchTensor, {"encoder": "cnn", "pooling": "global", "boundaries": False}),
        (pn.MatchTensorSSM, {}),
        (pn.MatchTensorSSM, {"channels": "exact"}),
    ],
    ids=["all", "cnn, global", "SSM", "exact, SSM"],
)
def model(request) -> MatchTensorRanker:
    kind, options = request.param
    return with_weights(kind, **options)


@pytest.mark.parametrize("query", [QUERY, "zebra"])
def test_the_score_is_the_models_and_the_sum_of_what_made_it(model, query):
    explanation = pn.explain(model, query, DOCUMENT)
    assert explanation.score == pytest.approx(scored(model, query, DOCUMENT), abs=1e-5)
    frame, channels = explanation.to_frame(), explanation.channels()
    rest = (explanation.wholes or 0) + explanation.biases
    assert frame["contribution"].sum() + rest == pytest.approx(explanation.score, abs=1e-6)
    assert channels["contribution"].sum() + rest == pytest.approx(explanation.score, abs=1e-6)
    words = explanation.by_word()
    cells = frame[~frame["document_word"].str.startswith("[")]
    for word in ("city", "old"):
        by_cell = words[(words["side"] == "document") & (words["word"] == word)]["contribution"]
        assert by_cell.sum() == pytest.approx(cells[cells["document_word"] == word]["contribution"].sum(), abs=1e-6)
    query_total = words[words["side"] == "query"]["contribution"].sum()
    assert query_total + rest == pytest.approx(explanation.score, abs=1e-6)
    assert (explanation.wholes is None) == (not model.compares_wholes)


def test_contributions_are_slopes_times_numbers_by_finite_differences(model):
    network, inputs = inputs_of(model, QUERY, DOCUMENT)
    found = contributions(network, inputs).cells
    pair = read_pair(network, inputs)
    network.double()
    tensor = pair.tensor.double()
    wholes = None if pair.wholes is None else pair.wholes.double()
    strongest = np.argsort(-np.abs(found), axis=None)[:12]
    others = np.random.default_rng(3).choice(found.size, 6)
    for place in np.concatenate([strongest, others]):
        step = torch.zeros(tensor.numel(), dtype=torch.float64)
        step[place] = 1e-6
        step = step.view(tensor.shape)
        with torch.no_grad():
            above, below = (
                pair_score(network, pair._replace(tensor=t, wholes=wholes)) for t in (tensor + step, tensor - step)
            )
        slope = float(above - below) / 2e-6
        assert found.flat[place] == pytest.approx(slope * float(tensor.flatten()[place]), abs=1e-4)
    assert np.abs(found).max() > 0.01


def inputs_of(model: MatchTensorRanker, query: str, document: dict[str, str]) -> tuple:
    sequences, terms = model._pack([model.document_text(document)])
    pairs = model.reader.pair([query], sequences, Vocabulary(terms))
    return model.network, pairs.batch(np.array([0]), np.array([[0]]))


def test_the_comparison_of_wholes_is_told_apart():
    model = with_weights(pn.MatchTensorSSM)
    before = pn.explain(model, QUERY, DOCUMENT)
    with torch.no_grad():
        model.network.output.weight[:, -SIZES["hidden"] :] = 0
    after = pn.explain(model, QUERY, DOCUMENT)
    assert after.wholes == 0
    assert before.wholes == pytest.approx(before.score - after.score, abs=1e-5)
    np.testing.assert_allclose(after.contributions, before.contributions, atol=1e-6)
    assert "(as wholes (SSM))" in before._repr_html_()


def exact_only(**options) -> pn.MatchTensor:
    """Scores the largest of: twice the alpha of 3 for an exact match, with 0.5 of the bias of the first layer."""
    model = with_weights(channels="exact", pooling="global", boundaries=False, **options)
    network = model.network
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        network.filters.alpha.fill_(3)
        network.filters.first[0][0, 1, 1, 0] = 1  # the middle of a window of three words by three
        network.filters.first_bias[0] = 0.5
        network.filters.second.weight[0, 0] = 2
        network.hidden.weight[0, 0] = network.output.weight[0, 0] = 1
    return model


def test_contributions_by_hand():
    explanation = pn.explain(exact_only(), "river city", "old city grass")
    assert explanation.to_frame().to_dict("records") == [
        {
            "query_word": "city",
            "document_word": "city",
            "match": True,
            "contribution": 6.0,
            "query_position": 1,
            "position": 1,
            "start": 4,
            "end": 8,
        }
    ]
    assert (explanation.score, explanation.biases) == (7.0, 1.0)
    assert explanation.channels().to_dict("records") == [
        {"channel": "exact", "contribution": 6.0, "pairs": "city–city"}
    ]
    assert "score 7.000 = 6.000 (match tensor) + 1.000 (biases)" in explanation._repr_html_()


def test_equal_maxima_share_what_they_add():
    frame = pn.explain(exact_only(), "city", "city grass leaf neck city").to_frame()
    assert frame["position"].tolist() == [0, 4]
    assert frame["contribution"].tolist() == [3.0, 3.0]


def test_exact_matches_without_a_contribution_are_listed():
    model = exact_only()
    with torch.no_grad():
        model.network.filters.alpha.zero_()
    frame = pn.explain(model, "city", "old city").to_frame()
    assert frame[["position", "contribution", "match"]].to_numpy().tolist() == [[1, 0.0, True]]


def test_words_stand_where_the_frame_says():
    explanation = pn.explain(with_weights(), QUERY, DOCUMENT)
    frame = explanation.to_frame()
    assert explanation.text == f"{DOCUMENT['title']}\n{DOCUMENT['text']}"
    words = frame[~frame["document_word"].str.startswith("[")]
    assert [explanation.text[row.start : row.end].lower() for row in words.itertuples()] == list(words["document_word"])
    assert (frame["match"] == (frame["query_word"] == frame["document_word"])).all()
    assert frame["match"].sum() == 2 * 2 + 3 + 2 + 1  # okapi twice in both; the, old and city
    assert sorted(frame["query_position"].unique()) == list(range(6))
    assert frame.sort_values(["query_position", "position"]).index.is_monotonic_increasing


@pytest.mark.parametrize("title", [0, 3, 7, 8, 9, 12])
def test_all_explanations_read_the_same_words_where_a_title_fills_the_document(title):
    model = with_weights(document_terms=9)
    document = {"title": " ".join((WORDS * 2)[:title]), "text": " ".join(reversed(WORDS))}
    read = pn.explain(model, QUERY, document).document_words
    words = read.loc[~read["boundary"], "word"].tolist()
    dropped = pn.explain(model, QUERY, document, method="drop")
    assert dropped.score == pytest.approx(scored(model, QUERY, document), abs=1e-5)
    found = dropped.to_frame().query("side == 'document'")["contribution"] != 0
    assert found.tolist() == [True] * len(words) + [False] * (len(found) - len(words))
    matches = pn.explain(model, QUERY, document, method="matches")
    assert matches.lengths == [len(words)]


def test_boundaries_are_named_where_fields_are():
    words = pn.explain(with_weights(), QUERY, {"title": "Okapi city", "text": "An okapi"}).document_words
    assert words["word"].tolist() == ["[title]", "okapi", "city", "[text]", "an", "okapi", "[end]"]
    assert words["start"].tolist() == [0, 0, 6, 11, 11, 14, 19]
    assert words["boundary"].tolist() == [True, False, False, True, False, False, True]


def test_a_plain_text_is_the_last_field():
    model = with_weights()
    explanation = pn.explain(model, QUERY, DOCUMENT["text"])
    assert explanation.score == pytest.approx(scored(model, QUERY, {"text": DOCUMENT["text"]}), abs=1e-5)
    assert explanation.document_words["word"].tolist()[:3] == ["[title]", "[text]", "an"]
    assert explanation.document_words["start"].tolist()[:3] == [0, 0, 0]
    assert explanation.text == DOCUMENT["text"]


def test_channels_are_sums_over_cells_the_strongest_first():
    explanation = pn.explain(with_weights(), QUERY, DOCUMENT)
    channels = explanation.channels()
    assert sorted(map(str, channels["channel"])) == [*map(str, range(7)), "exact"]
    assert channels["contribution"].abs().is_monotonic_decreasing
    numbers = channels.set_index("channel")["contribution"]
    assert numbers[3] == pytest.approx(explanation.contributions[:, :, 3].sum())
    assert numbers["exact"] == pytest.approx(explanation.contributions[:, :, -1][explanation.match].sum())


def test_nothing_to_explain_has_the_score_of_nothing(model):
    for query, text in (("", "old city"), ("city", ""), (None, "?!")):
        explanation = pn.explain(model, query, text)
        expected = scored(model, query or "", {"title": "", "text": text or ""})
        assert explanation.score == pytest.approx(expected, abs=1e-5)
        if explanation.contributions.size == 0:
            assert explanation.to_frame().empty
        assert f"{explanation.score:.4f}" in explanation._repr_html_()
    explanation.plot()


def test_only_what_the_model_reads_is_explained():
    explanation = pn.explain(with_weights(), "city " * 50, {"title": "old", "text": "city grass " * 5000})
    assert explanation.contributions.shape == (7, 30, 8)
    assert "more words" in explanation._repr_html_()
    heat = explanation.plot(words=5)
    labels = [label.get_text() for label in heat.get_xticklabels()]
    assert len([label for label in labels if label != "…" and not label.startswith("[")]) == 5
    assert [label for label in labels if label.startswith("[")] == ["[title]", "[text]"]


def test_shown_columns_are_the_strongest_with_those_around_them_and_boundaries():
    strengths = np.zeros(20)
    boundary = np.zeros(20, dtype=bool)
    boundary[[0, 4]] = True
    strengths[[2, 15]] = [1, 2]
    assert shown_columns(strengths, boundary, 8).tolist() == [0, 1, 2, 3, 4, -1, 13, 14, 15, 16, 17]
    assert shown_columns(strengths, boundary, 1).tolist() == [0, -1, 4, -1, 15]
    assert shown_columns(strengths, boundary, 18).tolist() == list(range(20))
    assert shown_columns(np.zeros(0), np.zeros(0, dtype=bool), 5).tolist() == []


def test_the_heat_map_shows_cells_matches_and_channels():
    explanation = pn.explain(with_weights(), QUERY, DOCUMENT)
    heat, bars = explanation.plot(words=30, channels=3).figure.axes[:2]
    np.testing.assert_allclose(heat.images[0].get_array(), explanation.cells)
    low, high = heat.images[0].get_clim()
    assert (low, high) == (-np.abs(explanation.cells).max(), np.abs(explanation.cells).max())
    bold = [label.get_text() for label in heat.get_xticklabels() if label.get_fontweight() == "bold"]
    assert bold == explanation.document_words.query("match")["word"].tolist()
    assert [label.get_text() for label in heat.get_yticklabels()] == QUERY.split()
    rows = explanation.channels().head(3)[::-1].itertuples()
    expected = ["exact matches" if row.channel == "exact" else f"{row.channel}: {row.pairs}" for row in rows]
    assert [label.get_text() for label in bars.get_yticklabels()] == expected
    heat.figure.draw_without_rendering()


def test_html_escapes_shades_and_marks_matches():
    explanation = pn.explain(with_weights(), "okapi & <b>", DOCUMENT)
    html = without_key(explanation._repr_html_())
    assert "<okapi>" not in html
    assert "&lt;<span" in html
    assert html.count("font-weight: bold") == 3  # once in the query, twice in the document
    assert "color-mix(in srgb, #0072B2" in html
    assert "text-decoration: underline dashed" in html


def test_boundaries_are_named_in_html_where_they_are_strong():
    explanation = pn.explain(with_weights(), QUERY, {"title": "Okapi", "text": "An okapi"})
    strong = np.zeros_like(explanation.contributions)
    strong[0, 2, 0] = 1
    html = dataclasses.replace(explanation, contributions=strong)._repr_html_()
    assert html.count("[text]</span>") == 1
    assert "[title]" not in html


def test_texts_are_read_where_documents_are_kept(tmp_path):
    model = with_weights()
    before = pn.explain(model, QUERY, DOCUMENT)
    forward = pn.ForwardIndex.build(tmp_path / "forward", [{"docno": "d", "text": "city"}], verbose=False)
    model.documents = forward
    model.representations = model.index(tmp_path / "kept", forward, verbose=False)
    after = pn.explain(model, QUERY, DOCUMENT)
    np.testing.assert_array_equal(after.contributions, before.contributions)


def test_matches_are_found_in_fields_too():
    matches = pn.explain(with_weights(), QUERY, [DOCUMENT, DOCUMENT["text"]], method="matches").to_frame()
    assert matches["document"].tolist().count(0) > matches["document"].tolist().count(1)


@pytest.mark.parametrize("wrong", [{"words": 0}, {"channels": 0}])
def test_sizes_of_the_picture_are_checked(wrong):
    with pytest.raises(ValueError, match="must be at least 1"):
        pn.explain(with_weights(), QUERY, DOCUMENT).plot(**wrong)
