import os
import random
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from gensim.models import Word2Vec

from pt_neural.embeddings import EmbeddingSpaces, train
from pt_neural.embeddings.train import Word2VecSettings

TINY = {"dim": 8, "min_count": 1, "epochs": 2, "workers": 1, "verbose": False}
TEXTS = ["a river runs past the city", "the city of the river", "", "a giraffe is no okapi"] * 5


def cities_and_rivers(num_pairs: int = 4, count: int = 1500, seed: int = 1) -> list[list[str]]:
    """Cities share contexts with cities, rivers with rivers; each city occurs beside its own river."""
    draw, texts = random.Random(seed).randrange, []
    for _ in range(count):
        i = draw(num_pairs)
        texts.append([f"visit{draw(10)}", f"city{i}", f"mayor{draw(10)}"])
        texts.append([f"city{i}", f"river{i}"])
        texts.append([f"swim{draw(10)}", f"river{i}", f"boat{draw(10)}"])
    return texts


@pytest.mark.parametrize(("algorithm", "epochs"), [("cbow", 15), ("skipgram", 10)])
def test_typical_and_topical_neighbours_as_in_table_1(algorithm, epochs):
    settings = {"dim": 20, "subsample": 0, "epochs": epochs, "algorithm": algorithm, "workers": 1, "verbose": False}
    spaces = EmbeddingSpaces.train(cities_and_rivers(), **settings)
    for i in range(4):
        for space in ("in", "out"):
            typical = spaces.neighbours(f"city{i}", space, space, k=2, exclude_self=True)
            assert set(typical["word"].str[:4]) == {"city"}
        topical = spaces.neighbours(f"city{i}", "in", "out", k=1, exclude_self=True)
        assert topical["word"].tolist() == [f"river{i}"]


def test_both_matrices_are_gensims_own():
    texts = [text.split() for text in TEXTS]
    ours = EmbeddingSpaces.train(texts, **TINY, window=3, negative=4, subsample=1e-2, seed=5, learning_rate=0.04)
    theirs = Word2Vec(
        vector_size=8,
        min_count=1,
        workers=1,
        window=3,
        negative=4,
        sample=1e-2,
        seed=5,
        alpha=0.04,
        sorted_vocab=0,
    )
    # The order of the words decides which first vector each one gets.
    counts = ours.vocabulary.collection_frequency.tolist()
    theirs.build_vocab_from_freq(dict(zip(ours.vocabulary.terms, counts, strict=True)))
    theirs.train(texts, total_words=sum(counts), epochs=2)
    np.testing.assert_array_equal(ours.in_vectors, theirs.wv.vectors)
    np.testing.assert_array_equal(ours.out_vectors, theirs.syn1neg)
    assert np.abs(ours.out_vectors).max() > 0


def test_every_kind_of_text_gives_the_same_vectors():
    expected = EmbeddingSpaces.train(TEXTS, **TINY)
    for texts in (
        iter(TEXTS),
        (text.split() for text in TEXTS),
        [{"docno": str(i), "text": text} for i, text in enumerate(TEXTS)],
        pd.DataFrame({"qid": range(len(TEXTS)), "query": TEXTS, "title": "not this"}),
        pd.DataFrame({"docno": range(len(TEXTS)), "text": TEXTS}),
    ):
        spaces = EmbeddingSpaces.train(texts, **TINY)
        assert spaces.vocabulary.terms == expected.vocabulary.terms
        np.testing.assert_array_equal(spaces.in_vectors, expected.in_vectors)
        np.testing.assert_array_equal(spaces.out_vectors, expected.out_vectors)


@pytest.mark.long
def test_a_seed_repeats_in_another_process_with_another_hash_seed():
    code = (
        "from pt_neural.embeddings import EmbeddingSpaces\n"
        f"spaces = EmbeddingSpaces.train({TEXTS!r}, **{TINY!r})\n"
        "print(spaces.in_vectors.tobytes().hex(), spaces.out_vectors.tobytes().hex())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    spaces = EmbeddingSpaces.train(TEXTS, **TINY)
    assert output.stdout.split() == [spaces.in_vectors.tobytes().hex(), spaces.out_vectors.tobytes().hex()]


def test_seeds_differ():
    one, other = (EmbeddingSpaces.train(TEXTS, **TINY, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.in_vectors, other.in_vectors)


def test_rare_words_get_no_vectors():
    spaces = EmbeddingSpaces.train([*TEXTS, "okapi"], **{**TINY, "min_count": 6})
    assert "okapi" in spaces
    assert "giraffe" not in spaces
    assert spaces.vocabulary.num_documents == 21


def test_long_texts_are_trained_on_to_their_end(monkeypatch):
    text = [f"w{i}" for i in range(50)]
    monkeypatch.setattr(train, "_LONGEST", 7)
    spaces = EmbeddingSpaces.train([text] * 20, **TINY, subsample=0)
    assert (np.linalg.norm(spaces.out_vectors, axis=1) > 0).all()


def test_settings_are_noted():
    spaces = EmbeddingSpaces.train(TEXTS, **TINY, algorithm="skipgram")
    assert spaces.settings["algorithm"] == "skipgram"
    assert spaces.settings["learning_rate"] == 0.025
    assert EmbeddingSpaces.train(TEXTS, **TINY).settings["learning_rate"] == 0.05


def test_texts_without_words_and_other_things_are_errors():
    for texts in ([], [""], [None, float("nan"), pd.NA], ["... !"]):
        with pytest.raises(ValueError, match="occurs 5 times; give more texts or a smaller min_count"):
            EmbeddingSpaces.train(texts, verbose=False)
    for wrong, message in [("one string", "not one str"), ([1.5], "not 1.5"), ([["a", 2]], r"not \['a', 2\]")]:
        with pytest.raises(TypeError, match=message):
            EmbeddingSpaces.train(wrong, **TINY)
    with pytest.raises(ValueError, match=r"document 'd1' has none of the fields title, text; it has docno, body"):
        EmbeddingSpaces.train([{"docno": "d1", "body": "x"}], **TINY)


def test_settings_are_checked_before_a_text_is_read():
    texts = iter(TEXTS)
    for setting, message in [
        ({"algorithm": "glove"}, "'cbow' or 'skipgram', not 'glove'"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"workers": -1}, "workers must be at least 1"),
        ({"negative": 0}, "negative must be at least 1"),
        ({"subsample": -1.0}, "subsample must not be negative"),
        ({"learning_rate": -0.1}, "learning_rate must be above 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            EmbeddingSpaces.train(texts, **{**TINY, **setting})
    assert len(list(texts)) == len(TEXTS)


def test_subsampling_follows_the_length_of_the_corpus():
    settings = {"dim": 2, "algorithm": "cbow", "window": 2, "negative": 1, "epochs": 1, "min_count": 1, "seed": 1}
    settings = Word2VecSettings(**settings, subsample=None, learning_rate=0.1, workers=1)
    for num_words, share in [(300, 1e-3), (300_000, 1e-4), (10**9, 1e-5)]:
        assert settings.subsample_of(num_words) == pytest.approx(share)
