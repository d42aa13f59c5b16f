import json
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pt_neural._files import ArtifactError
from pt_neural.datasets.docnos import DocnoTable
from pt_neural.text import ForwardIndex, Vocabulary, tokenise


def build(path, corpus, **options):
    return ForwardIndex.build(path, corpus, verbose=False, **options)


def words(index, sequences):
    return [[index.vocabulary.terms[i] for i in sequence] for sequence in sequences]


@pytest.fixture
def index(tmp_path, corpus):
    return build(tmp_path / "index", iter(corpus))


def test_every_document_comes_back(index, corpus):
    expected = [tokenise(f"{document['title']} {document['text']}") for document in corpus]
    assert words(index, index.all()) == expected
    assert list(index.docnos) == [document["docno"] for document in corpus]
    assert len(index) == 6
    assert index.fields == ("title", "text")


def test_counts_equal_a_vocabulary_built_in_memory(index, corpus):
    expected = Vocabulary.build(tokenise(f"{document['title']} {document['text']}") for document in corpus)
    assert index.vocabulary.terms == expected.terms
    assert index.vocabulary.collection_frequency.tolist() == expected.collection_frequency.tolist()
    assert index.vocabulary.document_frequency.tolist() == expected.document_frequency.tolist()
    assert index.vocabulary.num_documents == 6


def test_blocks_do_not_show(tmp_path, corpus, index, monkeypatch):
    monkeypatch.setattr("pt_neural.text.term_spool._BLOCK", 7)
    small = build(tmp_path / "small", corpus)
    assert small.vocabulary.terms == index.vocabulary.terms
    assert small.vocabulary.document_frequency.tolist() == index.vocabulary.document_frequency.tolist()
    assert small.vocabulary.collection_frequency.tolist() == index.vocabulary.collection_frequency.tolist()
    assert small.all().terms.tolist() == index.all().terms.tolist()
    assert small.all().offsets.tolist() == index.all().offsets.tolist()


def test_by_docno(index, corpus):
    docnos = pd.Series(["d4", "d1", "d4"])
    expected = [tokenise(f"{corpus[i]['title']} {corpus[i]['text']}") for i in (3, 0, 3)]
    assert words(index, index.sequences(docnos)) == expected
    assert words(index, index.sequences(docnos.to_numpy())) == expected
    assert index.rows(["d2", "nowhere", "d6"]).tolist() == [1, -1, 5]
    assert index.rows([]).dtype == np.int64
    assert len(index.sequences([])) == 0


def test_unknown_docnos_are_named(index):
    with pytest.raises(ValueError, match=r"2 docnos are not in ForwardIndex.*'x7', None.*ForwardIndex\.build"):
        index.sequences(["d1", "x7", None])
    with pytest.raises(ValueError, match=r"2 docnos are not in .*, such as 1, 2; docnos are strings, not numbers"):
        index.sequences(np.array([1, 2]))


def test_opens_again_by_path_artifact_and_pickle(index):
    for again in (ForwardIndex(index.path), pt.Artifact.load(str(index.path)), pickle.loads(pickle.dumps(index))):
        assert isinstance(again, ForwardIndex)
        assert again.all().terms.tolist() == index.all().terms.tolist()
        assert isinstance(again.all().terms, np.memmap)
    assert repr(index) == f"ForwardIndex({index.path.name!r}, 6 documents)"


def test_fields_are_chosen(tmp_path, corpus):
    index = build(tmp_path / "titles", corpus, fields=["title"])
    assert words(index, index.sequences(["d2"])) == [["oxford"]]


def test_collections_without_a_word(tmp_path):
    index = build(tmp_path / "index", [{"docno": "d1", "text": None}, {"docno": "d2", "text": "..."}])
    assert len(index) == 2
    assert index.all().lengths.tolist() == [0, 0]
    assert len(index.vocabulary) == 0


def test_bad_docnos_leave_nothing_behind(tmp_path):
    for docnos, message in [
        (["d1", "d2", "d1"], "docno 'd1' occurs twice, the second time in document 2"),
        (["d1", None], r"document 1 \(from 0\) has docno None"),
        ([], "no documents to index"),
    ]:
        with pytest.raises(ValueError, match=message):
            build(tmp_path / "index", ({"docno": docno, "text": "x"} for docno in docnos))
        assert list(tmp_path.iterdir()) == []


def test_refuses_to_overwrite_before_it_reads(index, corpus):
    unread = iter(corpus)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        build(index.path, unread)
    assert len(list(unread)) == 6
    assert len(build(index.path, corpus[:2], overwrite=True)) == 2


def test_damage_is_named(index):
    for name in ("docnos.txt", "terms.npy", "offsets.npy", "vocabulary/terms.txt", "pt_meta.json"):
        content = (index.path / name).read_bytes()
        (index.path / name).write_bytes(content[:-9])
        with pytest.raises(ArtifactError, match=name):
            use(index.path)
        (index.path / name).write_bytes(content)
    use(index.path)


def use(path):
    opened = ForwardIndex(path)
    return opened.sequences(["d1"]), opened.vocabulary


def test_another_artifact_is_refused(tmp_path):
    (tmp_path / "pt_meta.json").write_text('{"type": "sparse_index", "format": "anserini"}')
    with pytest.raises(ArtifactError, match=r"sparse_index\.anserini, not forward_index\.pt_neural"):
        ForwardIndex(tmp_path)


def test_ends_of_fields_are_kept(index, corpus, tmp_path):
    expected = [np.cumsum([len(tokenise(d["title"])), len(tokenise(d["text"]))]).tolist() for d in corpus]
    assert index.all().field_ends.tolist() == expected
    assert index.sequences(["d4", "d1"]).field_ends.tolist() == [expected[3], expected[0]]
    np.save(index.path / "field_ends.npy", np.zeros((6, 2), dtype="i4"))
    with pytest.raises(ArtifactError, match=r"field_ends.npy does not fit"):
        ForwardIndex(index.path).all()


def test_memory_for_a_document_is_a_few_bytes(tmp_path, monkeypatch):
    for name in ("text.term_spool._BLOCK", "datasets.docnos.BLOCK", "text.forward_index._BLOCK"):
        monkeypatch.setattr(f"pt_neural.{name}", 500)

    def peak(number: int) -> int:
        corpus = ({"docno": f"document-{i}", "text": f"w{i % 7} w{i % 5}"} for i in range(number))
        tracemalloc.start()
        index = build(tmp_path / str(number), corpus)
        index.sequences(["document-7"])
        _, found = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found

    peak(1000)
    assert peak(20_000) - peak(4_000) < 32 * 16_000


def test_opening_reads_no_docnos(tmp_path, monkeypatch):
    index = build(tmp_path / "index", [{"docno": f"d{i}", "text": "a"} for i in range(20_000)])
    monkeypatch.setattr(DocnoTable, "__iter__", lambda table: pytest.fail("all docnos are read"))
    read = []
    of_rows = DocnoTable._read
    monkeypatch.setattr(DocnoTable, "_read", lambda table, rows: read.extend(rows) or of_rows(table, rows))
    assert pickle.loads(pickle.dumps(index)).rows(["d19999", "d0"]).tolist() == [19_999, 0]
    assert len(read) < 10


@pytest.mark.parametrize("term", [2_000_000_000, 2**31 - 1, -2, -(2**31)])
def test_terms_that_the_vocabulary_does_not_have_are_named(index, term):
    terms = np.load(index.path / "terms.npy")
    terms[5] = term
    np.save(index.path / "terms.npy", terms)
    with pytest.raises(ArtifactError, match=r"terms\.npy is damaged"):
        ForwardIndex(index.path).all()


@pytest.mark.parametrize("end", [-1, 10_000])
def test_fields_that_end_outside_of_their_document_are_named(index, end):
    ends = np.load(index.path / "field_ends.npy")
    ends[2, 0] = end
    np.save(index.path / "field_ends.npy", ends)
    with pytest.raises(ArtifactError, match=r"field_ends\.npy does not fit"):
        ForwardIndex(index.path).all()


@pytest.mark.parametrize(
    "change", [{"num_documents": -1}, {"num_documents": 2**70}, {"fields": "text"}, {"fields": [1]}]
)
def test_metadata_of_another_kind_are_named(index, change):
    path = index.path / "pt_meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ArtifactError, match=r"pt_meta\.json is damaged"):
        ForwardIndex(index.path)


def test_it_is_built_like_other_artifacts(tmp_path):
    index = ForwardIndex(tmp_path / "forward")
    assert not index.built()
    assert repr(index) == "ForwardIndex('forward', not built)"
    with pytest.raises(FileNotFoundError, match="forward does not exist"):
        len(index)
    frame = pd.DataFrame({"docno": ["d1", "d2"], "text": ["river city", "okapi"]})
    assert index.index(frame, verbose=False) is index
    assert index.built()
    assert len(index) == len(ForwardIndex(tmp_path / "forward")) == 2
    assert index.sequences(["d1"]).lengths.tolist() == [2]
    index.index(frame[:1], overwrite=True, verbose=False)
    assert list(index.docnos) == ["d1"]
