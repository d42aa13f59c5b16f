"""Vectors of texts; correlated feature hashing against equations 5 to 7 and algorithm 1 of the SSI paper, in loops."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from pt_neural._files import ArtifactError
from pt_neural.models.ssi.features import CorrelatedHashing, Features, Ngrams, split_text
from pt_neural.text import PackedSequences, TfIdf, Vocabulary, pack_texts, tokenise_packed

# Three frequent words; each rare one occurs with some of them more than with others.
TEXTS = [
    "war ship sea",
    "war ship",
    "war war navy",
    "navy war ship frigate",
    "frigate ship sea",
    "frigate corvette ship",
    "corvette sea war",
    "ship sea lagoon",
    "lagoon sea",
    "navy sea ship war",
    "unicorn",
]
FREQUENT = 3
LIMITS = {"sublinear_tf": False, "verbose": False}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.build(text.split() for text in TEXTS)


@pytest.fixture(scope="module")
def sequences(vocabulary) -> PackedSequences:
    return packed(vocabulary, TEXTS)


def packed(vocabulary: Vocabulary, texts: list[str]) -> PackedSequences:
    return PackedSequences.from_lists([vocabulary.ids(text.split()) for text in texts])


def features_of(text: str, ngrams: int) -> list[str]:
    words = text.split()
    return words if ngrams == 1 else [f"{one} {other}" for one, other in pairwise(words)]


def nearest(feature: str, vocabulary: Vocabulary, k: int) -> list[tuple[str, float]]:
    """S_1 to S_k and their DICE coefficients, from the words of the texts."""
    ngrams = len(feature.split())
    held = {i for i, text in enumerate(TEXTS) if feature in features_of(text, ngrams)}
    found = []
    for number, word in enumerate(vocabulary.terms[:FREQUENT]):
        with_word = {i for i, text in enumerate(TEXTS) if word in text.split()}
        if held & with_word:
            found.append((-2 * len(held & with_word) / (len(held) + len(with_word)), number, word))
    return [(word, -negative) for negative, _, word in sorted(found)[:k]]


def hashed_features(vocabulary: Vocabulary, ngrams: Ngrams) -> list[str]:
    """All words, all 2-grams of at least two texts, or both."""
    counts = Counter(feature for text in TEXTS for feature in set(features_of(text, 2)))
    bigrams = [feature for feature, count in counts.items() if count >= 2]
    return {1: vocabulary.terms, 2: bigrams, "1+2": [*vocabulary.terms, *bigrams]}[ngrams]


def built(sequences, vocabulary, *, bins: int, ngrams: Ngrams = 1, **options) -> CorrelatedHashing:
    options = {"bins": bins, "ngrams": ngrams, **options}
    return CorrelatedHashing.build(sequences, vocabulary, frequent=FREQUENT, **options, **LIMITS)


def test_the_collection_is_what_the_tests_take_it_for(vocabulary):
    assert sorted(vocabulary.terms[:FREQUENT]) == ["sea", "ship", "war"]
    assert set(vocabulary.terms[FREQUENT:]) == {"navy", "frigate", "corvette", "lagoon", "unicorn"}
    assert "navy war" not in hashed_features(vocabulary, 2)
    assert {"war ship", "ship sea"} <= set(hashed_features(vocabulary, 2))


@pytest.mark.parametrize(("ngrams", "bins"), [(1, 1), (1, 5), (2, 2), ("1+2", 2)])
def test_neighbours_have_the_largest_dice_coefficients(sequences, vocabulary, ngrams, bins):
    hashing = built(sequences, vocabulary, bins=bins, ngrams=ngrams)
    features = hashed_features(vocabulary, ngrams)
    assert hashing.neighbours.shape == (len(features), bins)
    for feature in features:
        found = hashing.nearest(feature, vocabulary, k=bins)
        expected = nearest(feature, vocabulary, bins)
        assert found["word"].tolist() == [word for word, _ in expected]
        np.testing.assert_allclose(found["dice"], [dice for _, dice in expected], atol=1e-6)
    assert len(hashing.nearest("frigate" if ngrams == 1 else "ship sea", vocabulary, k=1)) == 1


def algorithm_1(q: dict[str, float], vocabulary: Vocabulary, k: int) -> np.ndarray:
    """The vector a (or b): every word i adds q_i to the place of S_p(i), for p = 1 to k."""
    a = np.zeros(FREQUENT)
    for p in range(k):
        for feature, weight in q.items():
            similar = nearest(feature, vocabulary, k)
            if p < len(similar):
                a[vocabulary.terms.index(similar[p][0])] += weight
    return a


@pytest.mark.parametrize("replaced", ["all", "others"])
@pytest.mark.parametrize(("ngrams", "bins"), [(1, 1), (1, 5), (2, 2), ("1+2", 2)])
def test_features_are_those_of_algorithm_1(sequences, vocabulary, ngrams, bins, replaced):
    """Or, as in section 4.1, those of all words but the frequent ones."""
    hashing = built(sequences, vocabulary, bins=bins, ngrams=ngrams, hashed_words=replaced)
    texts = [*TEXTS, "corvette frigate frigate lagoon war", "ship sea ship sea war ship", "zebra", "unicorn war"]
    packed_texts = packed(vocabulary, texts)
    words = word_vectors(packed_texts, vocabulary)
    known = set(hashed_features(vocabulary, ngrams))
    if replaced == "others":
        known -= set(vocabulary.terms[:FREQUENT])
    expected = []
    for row, text in enumerate(texts):
        q = {word: float(words[row, vocabulary.terms.index(word)]) for word in set(text.split()) & known}
        if ngrams != 1:
            q |= tf_idf_of_bigrams(text, known)
        expected.append(algorithm_1(q, vocabulary, bins))
    np.testing.assert_allclose(hashing.features(words, packed_texts).toarray(), expected, atol=1e-6)
    assert np.count_nonzero(np.sum(expected, axis=1)) > 5


def tf_idf_of_bigrams(text: str, known: set[str]) -> dict[str, float]:
    """Vectors of 2-grams are tf-idf vectors of length 1."""
    counts = Counter(feature for feature in features_of(text, 2) if feature in known)
    df = {feature: sum(feature in features_of(text, 2) for text in TEXTS) for feature in counts}
    weights = {feature: tf * (np.log((1 + len(TEXTS)) / (1 + df[feature])) + 1) for feature, tf in counts.items()}
    length = np.sqrt(sum(weight**2 for weight in weights.values()))
    return {feature: weight / length for feature, weight in weights.items()}


def test_one_bin_shares_weights_as_equations_5_to_7_say(sequences, vocabulary):
    """With k = 1 a'Wb is the sum over pairs (s, t) of q_s d_t times the weight at h(s, t) = (S_1(s) - 1) F + S_1(t)."""
    hashing = built(sequences, vocabulary, bins=1)
    random = np.random.default_rng(0)
    w = random.normal(size=FREQUENT**2)
    features = vocabulary.terms[:-1]  # the last word occurs with none
    q, d = random.random((2, len(features)))
    texts = packed(vocabulary, [" ".join(features)] * 2)
    words = np.zeros((2, len(vocabulary)), dtype=np.float32)
    words[:, :-1] = q, d
    assert vocabulary.terms[-1] == "unicorn"

    first = [vocabulary.terms.index(nearest(feature, vocabulary, 1)[0][0]) + 1 for feature in features]
    expected = sum(
        q[s] * d[t] * w[(first[s] - 1) * FREQUENT + first[t] - 1] for s in range(len(q)) for t in range(len(d))
    )
    a, b = hashing.features(csr_array(words), texts).toarray()
    assert a @ w.reshape(FREQUENT, FREQUENT) @ b == pytest.approx(expected, abs=1e-5)


def word_vectors(sequences: PackedSequences, vocabulary: Vocabulary) -> csr_array:
    return TfIdf(vocabulary, sublinear_tf=False).of_sequences(sequences)


def test_what_is_not_hashed_is_named(sequences, vocabulary):
    for word in ("zebra", "frigate ship", ""):
        with pytest.raises(KeyError, match=f"'{word}' is not one of the 8 words that are hashed"):
            built(sequences, vocabulary, bins=2).nearest(word, vocabulary, k=3)
    for bigram in ("frigate", "zebra ship", "sea war", "war ship sea"):
        with pytest.raises(KeyError, match=f"'{bigram}' is not one of the . 2-grams that are hashed"):
            built(sequences, vocabulary, bins=2, ngrams=2).nearest(bigram, vocabulary, k=3)
    for text in ("zebra", "sea war", "war ship sea"):
        with pytest.raises(KeyError, match=f"'{text}' is not one of the 1. words and 2-grams that are hashed"):
            built(sequences, vocabulary, bins=2, ngrams="1+2").nearest(text, vocabulary, k=3)


def test_in_a_small_vocabulary_every_word_is_its_own_first_neighbour(sequences, vocabulary):
    limits = {"bins": 1, "ngrams": 1, **LIMITS}
    hashing = CorrelatedHashing.build(sequences, vocabulary, frequent=100, **limits)
    assert (hashing.frequent, len(hashing.neighbours)) == (len(vocabulary), len(vocabulary))
    words = word_vectors(sequences, vocabulary)
    np.testing.assert_array_equal(hashing.features(words, sequences).toarray(), words.toarray())


def test_neighbours_must_be_frequent_words():
    neighbours = np.array([[0, 3]], dtype=np.int32)
    for coefficients in (np.ones((1, 2), dtype=np.float32), np.ones((1, 1), dtype=np.float32)):
        frequent = 3 if coefficients.shape == neighbours.shape else 4
        with pytest.raises(ValueError, match=f"below {frequent}, with one coefficient each"):
            CorrelatedHashing(neighbours, coefficients, frequent)


@pytest.mark.parametrize(("ngrams", "replaced"), [(1, "all"), (1, "others"), (2, "all"), ("1+2", "others")])
def test_saving_and_loading_give_the_same_features(sequences, vocabulary, ngrams, replaced, tmp_path):
    hashing = built(sequences, vocabulary, bins=2, ngrams=ngrams, hashed_words=replaced)
    hashing.save(tmp_path / "hashing")
    again = CorrelatedHashing.load(tmp_path / "hashing", len(vocabulary))
    words = word_vectors(sequences, vocabulary)
    np.testing.assert_array_equal(
        again.features(words, sequences).toarray(), hashing.features(words, sequences).toarray()
    )
    assert again.ngrams == ngrams
    feature = hashed_features(vocabulary, ngrams)[-1]
    assert again.nearest(feature, vocabulary, 2).equals(hashing.nearest(feature, vocabulary, 2))


DAMAGED = [
    ("hashing.json", "{"),
    ("hashing.json", "[]"),
    ("hashing.json", '{"sublinear_tf": null}'),
    ("hashing.json", '{"frequent": 1, "sublinear_tf": false}'),
    ("hashing.json", '{"frequent": "many", "sublinear_tf": false}'),
    ("hashing.json", '{"frequent": 1, "sublinear_tf": null, "words": "some"}'),
    ("neighbours.npy", "no array"),
    ("bigrams/keys.npy", "no array"),
]


def test_damaged_files_are_named(sequences, vocabulary, tmp_path):
    built(sequences, vocabulary, bins=2, ngrams=2).save(tmp_path / "hashing")
    for name, content in DAMAGED:
        path = tmp_path / "hashing" / name
        whole = path.read_bytes()
        path.write_text(content)
        with pytest.raises(ArtifactError, match=name):
            CorrelatedHashing.load(tmp_path / "hashing", len(vocabulary))
        path.unlink()
        with pytest.raises(ArtifactError, match=f"{name} is missing"):
            CorrelatedHashing.load(tmp_path / "hashing", len(vocabulary))
        path.write_bytes(whole)


# All features of a text


@pytest.fixture(params=["words", "hashed words", "hashed 2-grams", "hashed words and 2-grams", "two vocabularies"])
def features(request, sequences, vocabulary) -> Features:
    documents = TfIdf(vocabulary, sublinear_tf=True)
    if request.param == "two vocabularies":
        return Features(TfIdf(Vocabulary.build([["sea", "ship"], ["ship"]]), sublinear_tf=True), documents)
    ngrams = {"words": None, "hashed words": 1, "hashed 2-grams": 2, "hashed words and 2-grams": "1+2"}[request.param]
    hashing = None if ngrams is None else built(sequences, vocabulary, bins=2, ngrams=ngrams)
    return Features(documents, documents, hashing)


LONG = "the war ship sea war ship: a zebra, a corvette at sea"


def test_queries_and_documents_over_any_vocabulary(features, tmp_path):
    texts = [LONG, "", "unicorn war"]
    sequences, terms = pack_texts(texts)
    documents = features.read_documents(sequences, Vocabulary(terms))
    features.save(tmp_path)
    for one in (features, Features.load(tmp_path)):
        again = one.read_documents(tokenise_packed(texts, one.documents.vocabulary), one.documents.vocabulary)
        for matrix, expected in zip(again, documents, strict=True):
            assert (matrix is None) == (expected is None)
            if matrix is not None:
                np.testing.assert_array_equal(matrix.toarray(), expected.toarray())
        arrays, parts = one.identity_parts()
        assert parts == features.identity_parts()[1]
        assert {"query_idf", "document_idf"} <= arrays.keys()
    queries = features.read_queries(texts)
    if features.shared:
        np.testing.assert_allclose(queries.terms.toarray(), documents.terms.toarray(), atol=1e-7)
    else:
        assert queries.terms.shape == (3, 2)
    lengths = np.linalg.norm(documents.terms.toarray(), axis=1)
    np.testing.assert_allclose(lengths, [1, 0, 1], atol=1e-6)
    if features.hashing is not None:  # vectors are cut to length 1
        assert (np.linalg.norm(documents.hashed.toarray(), axis=1) <= 1 + 1e-6).all()
        assert documents.take(slice(2)).hashed.shape == (2, FREQUENT)
    words = features.read_words("document", np.array([3, 0]))
    assert words.terms.toarray().argmax(axis=1).tolist() == [3, 0]
    assert words.terms.data.tolist() == [1, 1]


@pytest.mark.parametrize("side", ["query", "document"])
def test_parts_of_a_text_sum_to_its_vectors(features, side):
    parts = split_text(features, side, LONG)
    sequences = tokenise_packed([LONG], features.documents.vocabulary)
    whole = features.read_queries([LONG])
    if side == "document":
        whole = features.read_documents(sequences, features.documents.vocabulary)
    for rows, vector in zip(parts.vectors, whole, strict=True):
        assert (rows is None) == (vector is None)
        if rows is not None:
            assert rows.shape == (len(parts.names), vector.shape[1])
            np.testing.assert_allclose(rows.sum(axis=0), vector.toarray()[0], atol=1e-6)
    known = ["sea", "ship"] if side == "query" and not features.shared else ["corvette", "sea", "ship", "war"]
    assert sorted(name for name in parts.names if " " not in name) == known
    bigrams = [name for name in parts.names if " " in name]
    with_bigrams = features.hashing is not None and features.hashing.bigrams is not None
    assert set(bigrams) == ({"war ship", "ship sea"} if with_bigrams else set())
