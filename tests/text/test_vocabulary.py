import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt_neural._artifacts import ArtifactError
from pt_neural.text import Vocabulary

TERMS = st.text(st.characters(exclude_characters="\n\t"))
DOCUMENTS = [["b", "a", "b"], ["c", "a"], [], ["b", "d"]]


def test_counts_by_hand():
    vocabulary = Vocabulary.build(DOCUMENTS)
    assert vocabulary.terms == ["b", "a", "c", "d"]
    assert vocabulary.collection_frequency.tolist() == [3, 2, 1, 1]
    assert vocabulary.document_frequency.tolist() == [2, 2, 1, 1]
    assert vocabulary.num_documents == 4
    assert len(vocabulary) == 4
    assert "d" in vocabulary
    assert "e" not in vocabulary


def test_rare_terms_are_left_out():
    assert Vocabulary.build(DOCUMENTS, min_count=2).terms == ["b", "a"]
    assert Vocabulary.build(DOCUMENTS, max_terms=3).terms == ["b", "a", "c"]
    assert Vocabulary.build(DOCUMENTS, max_terms=0).terms == []


def test_ids_do_not_depend_on_the_order_of_documents():
    assert Vocabulary.build(DOCUMENTS).terms == Vocabulary.build(DOCUMENTS[::-1]).terms


def test_ids_and_mapping():
    one, other = Vocabulary(["x", "y", "z"]), Vocabulary(["z", "w", "x"])
    assert one.ids(["y", "q", "x"]).tolist() == [1, -1, 0]
    assert one.ids([]).dtype == np.int32
    assert one.mapping_to(other).tolist() == [2, -1, 0]
    assert one.mapping_to(other).dtype == np.int32


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


@pytest.mark.parametrize("terms", [["a\n"], ["a\tb"], ["a", "b", "a"]])
def test_terms_that_no_file_can_hold_are_refused(terms):
    with pytest.raises(ValueError, match="term"):
        Vocabulary(terms)


def test_counts_must_fit():
    with pytest.raises(ValueError, match="2 terms need 2 counts"):
        Vocabulary(["a", "b"], [1])


@pytest.mark.parametrize("name", ["terms.txt", "counts.json", "collection_frequency.npy"])
@pytest.mark.parametrize("damage", ["missing", "cut", "garbage"])
def test_damage_is_named(tmp_path, name, damage):
    Vocabulary.build(DOCUMENTS).save(tmp_path)
    file = tmp_path / name
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-2] if damage == "cut" else b"\xff\xfe garbage")
    with pytest.raises(ArtifactError, match=name.replace(".", r"\.")):
        Vocabulary.load(tmp_path)
