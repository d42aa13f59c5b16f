"""The phrase translation model against its equations, phrase by phrase, and the dynamic programme of segmentation."""

import copy
import math
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pt_neural as pn
from pt_neural._files import ArtifactError, read_tensors, write_tensors
from pt_neural.models.translation.phrases import best_segmentations, segments
from pt_neural.text import tokenise

SUBJECTS = {
    "random forest": ["ensemble of trees", "bagged trees"],
    "spread": ["standard deviation", "mean squared error"],
    "word order": ["ngrams", "sequence of tokens"],
    "cheap hotels": ["budget rooms"],
    "car rental": ["vehicle hire", "rent a car"],
}
FILLERS = ["fast", "new", "large", "simple", "robust"]


def made_up(count: int = 120) -> pd.DataFrame:
    """Queries of two subjects and a filler, and documents that word them otherwise."""
    random, names, rows = np.random.default_rng(4), list(SUBJECTS), []
    for number in range(count):
        chosen = [names[place] for place in random.permutation(len(names))[:2]]
        filler = random.choice(FILLERS)
        worded = [str(random.choice(SUBJECTS[name])) for name in chosen]
        query = f"{filler} {chosen[0]} {chosen[1]}"
        rows.append((f"q{number}", query, f"d{number}", f"{worded[1]} {filler} {worded[0]}"))
    return pd.DataFrame(rows, columns=["qid", "query", "docno", "text"])


TRAIN = made_up()
QRELS = TRAIN[["qid", "docno"]].assign(label=1)
CANDIDATES = TRAIN.head(6)[["qid", "query"]].merge(TRAIN.head(20)[["docno", "text"]], how="cross")


def fitted(**options) -> pn.PhraseTranslation:
    return pn.PhraseTranslation(**{"mu": 10, **options}).fit(TRAIN, QRELS, verbose=False)


@pytest.fixture(scope="module")
def learned() -> pn.PhraseTranslation:
    return fitted()


@pytest.fixture
def model(learned) -> pn.PhraseTranslation:
    return copy.copy(learned)


@pytest.fixture(scope="module")
def words_alone() -> pn.WordTranslation:
    return pn.WordTranslation(mu=10).fit(TRAIN, QRELS, verbose=False)


def all_cuts(words, longest):
    """All ways to cut a list of words into segments."""
    for bits in range(2 ** (len(words) - 1)):
        bounds = [0, *(place + 1 for place in range(len(words) - 1) if bits >> place & 1), len(words)]
        if all(end - start <= longest for start, end in pairwise(bounds)):
            yield [" ".join(words[start:end]) for start, end in pairwise(bounds)]


def phrase_probabilities(model, text: str):
    """The model's half of a mixture with a unigram model, which has no phrases: a sum over slices of the document."""
    words = tokenise(text)
    slices = [words[start : start + length] for length in (1, 2, 3) for start in range(len(words) - length + 1)]
    tables = [dict(model.phrases(" ".join(part), 1000).itertuples(index=False)) for part in slices]
    return cache(lambda phrase: 0.5 * sum(table.get(phrase, 0.0) for table in tables) / (3 * len(words)))


def test_scores_are_those_of_the_best_segmentation(model, words_alone):
    rows, chosen = CANDIDATES.iloc[[0, 3, 25, 47, 66, 100]], 0
    scores = {}
    for model.phrase_weight in (0.3, 1.0):
        scores[model.phrase_weight] = model.transform(rows)["score"].to_numpy()
    for number, row in enumerate(rows.itertuples()):
        terms = tokenise(row.query)
        frame = pd.DataFrame({"qid": terms, "query": terms, "docno": "1", "text": row.text}).drop_duplicates()
        word = dict(zip(frame["query"], words_alone.transform(frame)["score"], strict=True))
        probability, products = phrase_probabilities(model, row.text), {}
        for cut in all_cuts(terms, 3):
            phrases = [probability(segment) for segment in cut if segment not in word]
            if all(phrases):
                products[tuple(cut)] = sum(map(math.log, phrases)) + sum(word[s] for s in cut if s in word)
        best = max(products, key=products.get)
        for weight, found in scores.items():
            expected = weight * products[best] + (1 - weight) * sum(word[w] for w in terms)
            assert found[number] == pytest.approx(expected, rel=1e-5)
        assert model.segmentation(row.query, row.text)["segment"].tolist() == list(best)
        chosen += len(best) < len(word)
    assert chosen >= 3


@pytest.mark.parametrize("options", [{"max_length": 1}, {"phrase_weight": 0}])
def test_without_phrases_it_is_the_word_model(options, words_alone):
    expected = words_alone.transform(CANDIDATES)["score"]
    np.testing.assert_allclose(fitted(**options).transform(CANDIDATES)["score"], expected, rtol=1e-12)


def test_the_unigram_model_has_no_phrases(model, words_alone):
    words_alone = copy.copy(words_alone)
    model.unigram_weight = words_alone.unigram_weight = 1
    expected = words_alone.transform(CANDIDATES)["score"]
    np.testing.assert_allclose(model.transform(CANDIDATES)["score"], expected, rtol=1e-12)


def test_planted_phrases_are_learned(model):
    assert model.phrases("budget rooms", 1)["phrase"].tolist() == ["cheap hotels"]
    assert model.phrases("ensemble of trees", 1)["phrase"].tolist() == ["random forest"]
    segments = model.segmentation("large cheap hotels", "budget rooms that are large")
    assert segments["segment"].tolist() == ["large", "cheap hotels"]
    assert segments["source"].tolist() == ["large", "budget"]  # so are "rooms" and "budget rooms", and just as often
    assert segments["probability"].between(0, 1).all()


def test_a_segment_from_the_collection_alone_has_no_source(model):
    segments = model.segmentation("cheap hotels", "unheard of")
    assert segments["segment"].tolist() == ["cheap", "hotels"]
    assert segments["source"].tolist() == ["of", "of"]
    segments = model.segmentation("spread", "unheard")
    assert segments["source"].tolist() == [None]
    assert segments["probability"].item() > 0
    assert model.segmentation("", "vehicle").empty


def test_phrases_of_what_has_none(model):
    for text in ("unheard", "hire vehicle", "", "a b c d e f"):
        assert model.phrases(text).empty
        assert list(model.phrases(text)) == ["phrase", "probability"]
    with pytest.raises(ValueError, match="k must be at least 1"):
        model.phrases("budget rooms", 0)


def test_rare_pairs_and_improbable_ones_can_be_left_out(model):
    fewer = fitted(min_count=5)
    assert 0 < fewer.phrase_table.table.nnz < model.phrase_table.table.nnz
    few = fitted(top=1)
    assert len(few.phrases("budget rooms", 9)) == 1


def test_a_forward_index_gives_the_same_scores(tmp_path, model):
    corpus = TRAIN[["docno", "text"]].to_dict("records")
    forward = pn.ForwardIndex.build(tmp_path / "forward", corpus, fields=["text"], verbose=False)
    bare = CANDIDATES[["qid", "query", "docno"]]
    from_index = pn.PhraseTranslation(mu=10, documents=forward).fit(TRAIN, QRELS, verbose=False)
    np.testing.assert_allclose(from_index.transform(bare)["score"], model.transform(CANDIDATES)["score"], rtol=1e-6)
    queries = TRAIN.head(3)[["qid", "query"]]
    found = from_index.retriever(forward, num_results=5)(queries)
    every = from_index.transform(queries.merge(TRAIN[["docno"]], how="cross"))
    best = every[every["rank"] < 5].sort_values(["qid", "rank"])
    assert found["docno"].tolist() == best["docno"].tolist()
    np.testing.assert_allclose(found["score"], best["score"], rtol=1e-6)


def test_what_is_loaded_has_the_phrases_and_another_weight_of_them(tmp_path, model):
    model.save(tmp_path / "saved")
    loaded = pn.PhraseTranslation.load(tmp_path / "saved", phrase_weight=1)
    pd.testing.assert_frame_equal(loaded.phrases("budget rooms"), model.phrases("budget rooms"))
    assert (loaded.transform(CANDIDATES)["score"] != model.transform(CANDIDATES)["score"]).any()


def test_damaged_files_are_named(tmp_path, model):
    model.save(tmp_path / "saved")
    weights = tmp_path / "saved" / "weights.safetensors"
    tensors = read_tensors(weights)
    for name in ("phrases.data", "query_phrases.2", "document_phrases.3"):
        write_tensors(weights, {**tensors, name: tensors[name][::-1][1:]})
        with pytest.raises(ArtifactError, match=r"weights\.safetensors"):
            pn.PhraseTranslation.load(tmp_path / "saved")


def test_fitting_again_gives_the_same_model(model, words_alone):
    again = fitted()
    assert again.fingerprint() == model.fingerprint() != words_alone.fingerprint()
    assert again.fit(TRAIN.head(50), QRELS, verbose=False).fingerprint() != model.fingerprint()


def test_misuse_says_what_to_do(model):
    for use in (lambda m: m.phrases("a"), lambda m: m.segmentation("a", "b")):
        with pytest.raises(RuntimeError, match=r"is not fitted yet: call \(candidates >> model\)\.fit"):
            use(pn.PhraseTranslation())
    model.max_length = 2
    with pytest.raises(RuntimeError, match=r"max_length of .* changed after fitting"):
        model.transform(CANDIDATES)
    model.max_length, model.phrase_weight = 3, 2
    with pytest.raises(ValueError, match="phrase_weight must be at most 1"):
        model.transform(CANDIDATES)


def test_settings_out_of_range():
    for name, value in {"max_length": 0, "min_count": 0, "phrase_weight": 1.5, "top": 0}.items():
        with pytest.raises(ValueError, match=name):
            pn.PhraseTranslation(**{name: value})


def test_a_query_of_a_thousand_words(model):
    frame = CANDIDATES.head(3).assign(query="cheap hotels " * 500)
    assert np.isfinite(model.transform(frame)["score"]).all()


def test_fitting_shows_progress_of_both_directions(capsys):
    pn.PhraseTranslation(iterations=3).fit(TRAIN, QRELS)
    shown = capsys.readouterr().err
    assert "queries to documents" in shown
    assert shown.count("3/3") >= 2


# Segmentation


def all_segmentations(num_words, first=0):
    if first == num_words:
        yield []
    for length in range(1, num_words - first + 1):
        for rest in all_segmentations(num_words, first + length):
            yield [(first, length), *rest]


@given(st.integers(1, 6), st.integers(0, 1000))
@settings(max_examples=40)
def test_no_segmentation_is_more_probable(num_words, seed):
    random = np.random.default_rng(seed)
    words = np.log(random.random((3, num_words)))
    phrases = {
        (first, length): np.log(random.random(3)) * random.choice([1, 3, np.inf])
        for length in (2, 3)
        for first in range(num_words - length + 1)
        if random.random() < 0.7
    }
    values = {**{(place, 1): words[:, place] for place in range(num_words)}, **phrases}
    best, lengths = best_segmentations(words, phrases)
    for document in range(3):
        possible = {
            sum(values[segment][document] for segment in segmentation): segmentation
            for segmentation in all_segmentations(num_words)
            if all(segment in values for segment in segmentation)
        }
        np.testing.assert_allclose(best[document], max(possible))
        assert segments(lengths[document]) == possible[max(possible)]


def test_a_query_without_words_has_no_segments():
    best, lengths = best_segmentations(np.zeros((2, 0)), {})
    assert best.tolist() == [0, 0]
    assert segments(lengths[0]) == []


def test_of_equal_products_words_stay_words():
    _, lengths = best_segmentations(np.log([[0.5, 0.5]]), {(0, 2): np.log([0.25])})
    assert segments(lengths[0]) == [(0, 1), (1, 1)]
