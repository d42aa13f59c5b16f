import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural._files import ArtifactError
from pt_neural.text import PackedSequences, Vocabulary, tokenise_packed
from pt_neural.text.vocabulary import LastVocabulary, OwnIds, PerTerm

TERMS = st.text(st.characters(exclude_characters="\n\t"))
DOCUMENTS = [["b", "a", "b"], ["c", "a"], [], ["b", "d"]]


def test_counts_by_hand():
    vocabulary = Vocabulary.build(DOCUMENTS)
    assert vocabulary.terms == Vocabulary.build(DOCUMENTS[::-1]).terms == ["b", "a", "c", "d"]
    assert vocabulary.collection_frequency.tolist() == [3, 2, 1, 1]
    assert vocabulary.document_frequency.tolist() == [2, 2, 1, 1]
    assert (vocabulary.num_documents, len(vocabulary)) == (4, 4)
    assert "d" in vocabulary
    assert "e" not in vocabulary


def test_rare_terms_are_left_out():
    assert Vocabulary.build(DOCUMENTS, min_count=2).terms == ["b", "a"]
    assert Vocabulary.build(DOCUMENTS, max_terms=3).terms == ["b", "a", "c"]
    assert Vocabulary.build(DOCUMENTS, max_terms=0).terms == []


def test_a_subset_keeps_the_counts():
    vocabulary = Vocabulary.build([["a", "b", "a"], ["c", "a"]])
    subset = vocabulary.subset(["c", "a"])
    assert subset.terms == ["c", "a"]
    assert subset.collection_frequency.tolist() == [1, 3]
    assert subset.document_frequency.tolist() == [1, 2]
    assert subset.num_documents == 2
    assert Vocabulary(["a", "b"]).subset(["b"]).collection_frequency is None


def test_ids_and_mapping():
    one, other = Vocabulary(["x", "y", "z"]), Vocabulary(["z", "w", "x"])
    assert one.ids(["y", "q", "x"]).tolist() == [1, -1, 0]
    assert one.ids([]).dtype == np.int32
    assert one.mapping_to(other).tolist() == [2, -1, 0]
    assert one.mapping_to(other).dtype == np.int32


@settings(max_examples=20)
@given(terms=st.lists(TERMS, unique=True))
def test_any_terms_survive_the_disk(tmp_path_factory, terms):
    directory = tmp_path_factory.mktemp("vocabulary")
    Vocabulary(terms).save(directory)
    loaded = Vocabulary.load(directory)
    assert loaded.terms == terms
    assert loaded.document_frequency is None


def test_odd_line_ends_and_lone_surrogates_survive(tmp_path):
    terms = ["", "\ud800", "\u2028", "\x85", "\r", "plain"]
    Vocabulary(terms, np.arange(6), np.arange(6), 9).save(tmp_path)
    loaded = Vocabulary.load(tmp_path)
    assert loaded.terms == terms
    assert loaded.collection_frequency.tolist() == loaded.document_frequency.tolist() == list(range(6))
    assert loaded.num_documents == 9


def test_terms_and_counts_that_do_not_fit_are_refused():
    for terms in (["a\n"], ["a\tb"], ["a", "b", "a"]):
        with pytest.raises(ValueError, match="term"):
            Vocabulary(terms)
    with pytest.raises(ValueError, match="2 terms need 2 counts"):
        Vocabulary(["a", "b"], [1])


@pytest.mark.parametrize("name", ["terms.txt", "counts.json", "collection_frequency.npy"])
def test_damage_is_named(tmp_path, name):
    Vocabulary.build(DOCUMENTS).save(tmp_path)
    content = (tmp_path / name).read_bytes()
    for damage in (content[:-2], b"\xff\xfe garbage", None):
        if damage is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_bytes(damage)
        with pytest.raises(ArtifactError, match=name.replace(".", r"\.")):
            Vocabulary.load(tmp_path)


def test_tokenising_into_ids():
    vocabulary = Vocabulary(["river", "city"])
    texts = ["A River, a city", None, "nothing known", float("nan")]
    ids = [sequence.tolist() for sequence in tokenise_packed(texts, vocabulary)]
    assert ids == [[-1, 0, -1, 1], [], [-1, -1], []]
    known = [sequence.tolist() for sequence in tokenise_packed(texts, vocabulary, drop_unknown=True)]
    assert known == [[0, 1], [], [], []]
    assert len(tokenise_packed([], vocabulary)) == 0


def test_a_result_is_computed_once_for_the_same_objects():
    cache, first, second, calls = LastVocabulary(), Vocabulary(["a"]), Vocabulary(["a"]), []
    for vocabulary in (first, first, second, second, first):
        assert cache(lambda: calls.append(1) or len(calls), vocabulary, "shared") == len(calls)
    assert len(calls) == 3
    assert pickle.loads(pickle.dumps(cache))(lambda: "new", first) == "new"


def test_ids_of_another_vocabulary():
    own_ids, own = OwnIds(), Vocabulary(["a", "b"])
    sequences = PackedSequences.from_lists([[0, 1, -1], [], [2]])
    for other, expected in ((["b", "x", "a"], [[1, -1, -1], [], [0]]), (["a", "b", "x"], [[0, 1, -1], [], [-1]])):
        assert [ids.tolist() for ids in own_ids(sequences, Vocabulary(other), own)] == expected


def test_numbers_of_terms_are_computed_when_they_are_first_asked_for():
    asked = []

    def compute(terms):
        asked.append(terms)
        return list(map(len, terms))

    lengths = PerTerm(compute, ["a", "bb", "ccc"], np.array([7, 0], dtype=np.int32))
    assert len(lengths) == 5
    for ids, numbers, new in (([2, -1, 2], [3, 0, 3], ["ccc"]), ([3, 2], [7, 3], None), ([0, 2], [1, 3], ["a"])):
        assert lengths[np.array(ids)].tolist() == numbers
        assert asked == ([new] if new else [])
        asked.clear()
    assert pickle.loads(pickle.dumps(lengths))[np.arange(5)].tolist() == [1, 2, 3, 7, 0]
    assert asked == [["bb"]]


def test_a_vocabulary_after_another_keeps_its_ids():
    first, second = Vocabulary(["x", "b"], [5, 5], [5, 5], 9), Vocabulary.build([["a", "b", "b"], ["b", "c"]])
    grown = second.after(first)
    assert grown.terms == ["x", "b", "a", "c"]
    assert grown.collection_frequency.tolist() == [0, 3, 1, 1]
    assert grown.document_frequency.tolist() == [0, 2, 1, 1]
    assert grown.num_documents == 2
    assert Vocabulary(["a"]).after(first).collection_frequency is None


@pytest.mark.parametrize(
    "counts",
    [
        '{"num_documents": 4, "counted": 0}',
        '{"num_documents": Infinity, "counted": []}',
        '{"num_documents": -1, "counted": []}',
        '{"num_documents": "4", "counted": []}',
        '{"num_documents": ' + "9" * 5000 + ', "counted": []}',
        '{"a": ' * 100_000,
        "[]",
        "null",
    ],
)
def test_counts_that_are_none_are_damage(tmp_path, counts):
    Vocabulary.build(DOCUMENTS).save(tmp_path)
    (tmp_path / "counts.json").write_text(counts)
    with pytest.raises(ArtifactError, match=r"counts\.json is damaged"):
        Vocabulary.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "count"), [("document_frequency", 5), ("document_frequency", -1), ("collection_frequency", 2**62)]
)
def test_frequencies_that_cannot_be_are_damage(tmp_path, name, count):
    Vocabulary.build(DOCUMENTS).save(tmp_path)
    frequency = np.load(tmp_path / f"{name}.npy")
    frequency[1] = count
    np.save(tmp_path / f"{name}.npy", frequency)
    with pytest.raises(ArtifactError, match=rf"{name}\.npy is damaged"):
        Vocabulary.load(tmp_path)
