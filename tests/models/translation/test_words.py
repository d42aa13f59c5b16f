"""The word translation model against its equations, word by word, and tables of translations written out."""

import copy
import math

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import pt_neural as pn
from pt_neural._files import ArtifactError, read_tensors, write_tensors
from pt_neural.models.translation.words import (
    from_tensors,
    largest,
    most_probable,
    scaled_columns,
    to_tensors,
    with_self_translation,
)
from pt_neural.text import Vocabulary, tokenise
from pt_neural.text.tokens import pack_texts

CORPUS = [
    {"docno": "d1", "text": "automobile engine repair repair"},
    {"docno": "d2", "text": "garden soil for roses"},
    {"docno": "d3", "text": "engine of an automobile"},
    {"docno": "d4", "text": "roses in a garden"},
    {"docno": "d5", "text": "lake"},
]
TOPICS = pd.DataFrame(
    {"qid": ["1", "2", "3", "4"], "query": ["car engine", "flowers", "fix the car", "flowers garden"]}
)
QRELS = pd.DataFrame({"qid": ["1", "2", "3", "4"], "docno": ["d3", "d4", "d1", "d2"], "label": 1})
CANDIDATES = TOPICS.merge(pd.DataFrame(CORPUS), how="cross")


def fitted(**options) -> pn.WordTranslation:
    return pn.WordTranslation(**options).fit(CANDIDATES, QRELS, verbose=False)


@pytest.fixture(scope="module")
def learned() -> pn.WordTranslation:
    return fitted(mu=5)


@pytest.fixture
def model(learned) -> pn.WordTranslation:
    return copy.copy(learned)


def score_by_hand(model, query: str, text: str) -> float:
    """Sum over the words of the query of the logarithm of their mixed probabilities, from tables of words."""
    collection = [word for document in CORPUS for word in tokenise(document["text"])]
    # a word that only queries have counts as half a word of the collection
    only_queries = {word for row in TOPICS["query"] for word in tokenise(row)} - set(collection)
    size = len(collection) + 0.5 * len(only_queries)
    words, total = tokenise(text), 0.0
    translations = {w: dict(model.translations(w, 99).itertuples(index=False)) for w in set(words)}
    for q in tokenise(query):
        background = (collection.count(q) or 0.5) / size
        unigram = (words.count(q) + model.mu * background) / (len(words) + model.mu)
        translated = sum(translations[w].get(q, 0.0) for w in words) / len(words)
        total += math.log(model.unigram_weight * unigram + (1 - model.unigram_weight) * translated)
    return total


def test_scores_are_those_of_the_equations(model):
    for model.unigram_weight in (0.2, 0.9):
        expected = [score_by_hand(model, row.query, row.text) for row in CANDIDATES.itertuples()]
        np.testing.assert_allclose(model.transform(CANDIDATES)["score"], expected, rtol=1e-5)


def test_queries_find_documents_that_share_no_word_with_them(model):
    best = model.transform(CANDIDATES).query("rank == 0").set_index("qid")["docno"]
    assert best["2"] in ("d2", "d4")
    assert model.translations("roses", 2)["word"].tolist() == ["flowers", "roses"]
    assert model.sources("car", 3)["word"].tolist() == ["car", "automobile", "engine"]


def test_without_self_translation_and_pruning_the_table_is_the_one_that_was_learned():
    table = fitted(iterations=1, self_translation=0, top=None, null_word=False).translations("garden")
    # with equal t, "garden" explains 1/4 of "flowers" of query 2, and of "flowers" and of "garden" of query 4
    assert dict(zip(table["word"], table["probability"], strict=True)) == pytest.approx(
        {"flowers": 2 / 3, "garden": 1 / 3}
    )


def test_the_probabilities_of_each_word_add_up_to_one(model):
    np.testing.assert_allclose(model.table.sum(axis=0), 1, rtol=1e-6)
    assert model.translations("lake").to_dict("list") == {"word": ["lake"], "probability": [1.0]}  # never learned
    sequences, words = pack_texts(["roses soil lake lake"])
    documents = model.represent_documents(sequences, Vocabulary(words))
    everything = model.word_probabilities(np.arange(len(model.vocabulary)), documents)
    np.testing.assert_allclose(everything.sum(axis=1), 1, rtol=1e-5)


def test_only_so_many_translations_are_kept():
    model = fitted(top=1, self_translation=0.25)
    kept = model.translations("garden")
    assert kept["word"].tolist() == ["flowers", "garden"]
    np.testing.assert_allclose(kept["probability"], [0.75, 0.25])


def test_documents_are_cut_for_learning_only():
    model = fitted(max_terms=1)
    assert model.translations("roses")["word"].tolist() == ["flowers", "roses"]
    assert model.translations("repair")["word"].tolist() == ["repair"]


def test_history_tells_the_iterations(model):
    history = model.history
    assert list(history) == ["iteration", "log_likelihood", "perplexity", "seconds"]
    assert history["iteration"].tolist() == list(range(1, 11))
    assert (history["log_likelihood"].diff().dropna() > 0).all()
    np.testing.assert_allclose(history["perplexity"], np.exp(-history["log_likelihood"] / 8))


def test_a_forward_index_gives_the_same_scores(tmp_path):
    forward = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, fields=["text"], verbose=False)
    bare = CANDIDATES[["qid", "query", "docno"]]
    from_index = pn.WordTranslation(documents=forward).fit(bare, QRELS, verbose=False)
    expected = fitted(fields="text").transform(CANDIDATES)
    np.testing.assert_allclose(from_index.transform(bare)["score"], expected["score"], rtol=1e-6)
    found = from_index.retriever(forward, num_results=2).search("flowers")
    best = expected[expected["qid"] == "2"].sort_values("rank").head(2)
    assert found["docno"].tolist() == best["docno"].tolist()
    np.testing.assert_allclose(found["score"], best["score"], rtol=1e-6)


def test_pipelines_fit_it():
    model = pn.WordTranslation()
    pipeline = pt.Transformer.from_df(CANDIDATES.assign(score=0.0, rank=0)) >> model
    pipeline.fit(TOPICS, QRELS, TOPICS, QRELS)
    assert model.report.groups == 4
    np.testing.assert_array_equal(model.transform(CANDIDATES)["score"], fitted().transform(CANDIDATES)["score"])


def test_fitting_shows_progress(capsys):
    pn.WordTranslation(iterations=3).fit(CANDIDATES, QRELS)
    out, err = capsys.readouterr()
    assert "training on 4 groups" in out
    assert "3/3" in err
    assert "perplexity" in err


def test_a_fit_that_fails_leaves_the_model_as_it_was(model):
    before = model.fingerprint()
    with pytest.raises(ValueError, match="no candidate is judged relevant"):
        model.fit(CANDIDATES, QRELS.assign(label=0), verbose=False)
    assert model.fingerprint() == before
    model.fit(CANDIDATES[CANDIDATES["qid"] != "1"], QRELS, verbose=False)
    assert model.fingerprint() != before


def test_damaged_files_are_named(tmp_path, model):
    model.save(tmp_path / "saved")
    weights = tmp_path / "saved" / "weights.safetensors"
    tensors = read_tensors(weights)
    for damage in ({"table.indices": None}, {"table.data": np.zeros(2, dtype="f4")}):
        write_tensors(weights, {name: array for name, array in {**tensors, **damage}.items() if array is not None})
        with pytest.raises(ArtifactError, match=r"weights\.safetensors"):
            pn.WordTranslation.load(tmp_path / "saved")


def test_translations_of_what_is_no_known_word(model):
    for word, k in (("unheard", 5), ("two words", 5), ("", 5), ("engine", 0)):
        with pytest.raises(ValueError, match=r"is not a single word known|k must be at least 1"):
            model.translations(word, k)


def test_settings_out_of_range():
    wrong = {"iterations": 0, "self_translation": 1.5, "top": 0, "null_word": "yes", "max_terms": -1, "mu": 0}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=name):
            pn.WordTranslation(**{name: value})


class Planted:
    """Words of queries and words of documents that share none; each concept has one of both."""

    def __init__(self, concepts: int = 40, count: int = 400):
        random = np.random.default_rng(1)
        groups = np.array([random.permutation(concepts)[:4] for _ in range(count)])
        self.frame = pd.DataFrame(
            {
                "qid": [f"q{number}" for number in range(count)],
                "query": [" ".join(f"ask{concept}" for concept in group[:3]) for group in groups],
                "docno": [f"d{number}" for number in range(count)],
                "text": [" ".join(f"tell{concept}" for concept in random.permutation(group)) for group in groups],
            }
        )


def test_planted_translations_are_learned():
    frame = Planted().frame
    train, held_out = frame.iloc[:-50], frame.iloc[-50:]
    model = pn.WordTranslation().fit(train, train[["qid", "docno"]].assign(label=1), verbose=False)
    every = held_out[["qid", "query"]].merge(held_out[["docno", "text"]], how="cross")
    scored = model.transform(every)
    own = scored[scored["qid"].str[1:] == scored["docno"].str[1:]]
    assert (1 / (own["rank"] + 1)).mean() > 0.95  # chance has 0.09
    assert model.translations("tell7", 2)["word"].tolist() == ["ask7", "tell7"]


# Tables

TABLE = csr_array([[0.5, 0.25, 0.0], [0.25, 0.25, 0.0], [0.25, 0.5, 0.0]])


def test_the_most_probable_translations_stay():
    assert most_probable(TABLE, 1).toarray().tolist() == [[0.5, 0, 0], [0, 0, 0], [0, 0.5, 0]]
    assert most_probable(TABLE, 2).toarray().tolist() == [[0.5, 0.25, 0], [0.25, 0, 0], [0, 0.5, 0]]
    assert most_probable(TABLE, None).toarray().tolist() == TABLE.toarray().tolist()


@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=7), st.integers(1, 4))
def test_each_column_keeps_its_largest(rows, top):
    table = np.array(rows, dtype=float)
    kept = most_probable(csr_array(table), top).toarray()
    for column, left in zip(table.T, kept.T, strict=True):
        best = sorted(range(len(column)), key=lambda row: (-column[row], row))[:top]
        assert left.tolist() == [value if row in best else 0 for row, value in enumerate(column)]


def test_columns_are_scaled():
    scaled = scaled_columns(csr_array([[1.0, 0.0], [3.0, 0.0]]), np.array([2.0, 5.0]))
    assert scaled.toarray().tolist() == [[0.5, 0], [1.5, 0]]


def test_words_are_translated_into_themselves():
    mixed = with_self_translation(TABLE, 0.2)
    expected = [[0.2 + 0.8 * 0.5, 0.8 * 0.25, 0], [0.8 * 0.25, 0.2 + 0.8 * 0.25, 0], [0.8 * 0.25, 0.8 * 0.5, 1]]
    np.testing.assert_allclose(mixed.toarray(), expected, rtol=1e-6)
    assert mixed.dtype == np.float32
    assert with_self_translation(TABLE, 1.0).toarray().tolist() == np.eye(3).tolist()


def test_the_largest_entries():
    places, values = largest(TABLE[[0]], 2)
    assert (places.tolist(), values.tolist()) == ([0, 1], [0.5, 0.25])
    places, values = largest(TABLE[:, [1]], 9)
    assert (places.tolist(), values.tolist()) == ([2, 0, 1], [0.5, 0.25, 0.25])


def test_tables_are_saved_as_arrays():
    tensors = to_tensors("words", TABLE)
    assert (from_tensors("words", tensors, (3, 3)) != TABLE).nnz == 0
    with pytest.raises(KeyError):
        from_tensors("others", tensors, (3, 3))


def test_damaged_tables_are_refused():
    for damage in (
        {"words.indices": np.full(6, 9, dtype=np.int32)},
        {"words.indptr": np.array([0, 2, 3, 5], dtype=np.int32)},
        {"words.data": np.full(6, np.nan)},
        {"words.data": np.full(6, -0.5)},
    ):
        with pytest.raises(ValueError, match=r"."):
            from_tensors("words", {**to_tensors("words", TABLE), **damage}, (3, 3))
