import gzip
import json
import pickle

import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt_neural.datasets.beir import BeirFolder
from pt_neural.datasets.folder import FolderDataset, TextLoader

DOCUMENTS = [
    {"_id": "d1", "title": "One", "text": "first text", "lang": "en", "metadata": {"url": "x"}},
    {"_id": "d2", "title": None, "text": "second\u2028text", "lang": "de"},
    {"_id": 3, "text": "third text"},
]
QUERIES = [{"_id": "q1", "text": "first"}, {"_id": "q2", "text": "second"}, {"_id": "q3", "text": "unjudged"}]


def write_lines(path, records):
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "a folder"
    (path / "qrels").mkdir(parents=True)
    write_lines(path / "corpus.jsonl.gz", DOCUMENTS)
    write_lines(path / "queries.jsonl", QUERIES)
    (path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n")
    (path / "qrels" / "dev.tsv").write_text("q2\td2\t1\r\n\n")
    return path


def test_reads_every_part(folder):
    dataset = pt.get_dataset(f"neural:folder:{folder}")
    documents = list(dataset.get_corpus_iter(verbose=False))
    assert documents == [
        {"docno": "d1", "title": "One", "text": "first text", "lang": "en"},
        {"docno": "d2", "title": "", "text": "second\u2028text", "lang": "de"},
        {"docno": "3", "title": "", "text": "third text"},
    ]
    assert dataset.get_topics()["qid"].tolist() == ["q1", "q2", "q3"]
    assert dataset.get_topics("test").values.tolist() == [["q1", "first"]]
    assert dataset.get_topics("dev").values.tolist() == [["q2", "second"]]
    assert dataset.get_qrels("test").values.tolist() == [["q1", "d1", 2], ["q1", "d2", 0]]
    assert dataset.get_qrels("dev").values.tolist() == [["q2", "d2", 1]]
    assert dataset.get_qrels().equals(dataset.get_qrels("test"))
    assert dataset.get_qrels()["label"].dtype == "int64"
    assert dataset.get_corpus_lang() is None
    assert dataset.get_topics_lang() is None
    assert dataset.info_url() is None
    assert repr(dataset) == f"FolderDataset({str(folder)!r})"


def test_documents_are_named_by_their_id_and_hidden_files_are_no_splits(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "docno": "other", "title": "a", "text": "b", "url": "c"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "b"}\n')
    for name in ("dev.tsv", "._dev.tsv"):  # as macOS writes
        (tmp_path / "qrels" / name).write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    folder = BeirFolder(tmp_path)
    assert list(folder.documents()) == [{"docno": "d1", "title": "a", "text": "b", "url": "c"}]
    assert folder.splits() == ["dev"]


def test_documents_are_streamed(folder):
    with (folder / "corpus.jsonl").open("w") as file:
        file.write(json.dumps(DOCUMENTS[0]) + "\nthe rest is broken")
    assert next(iter(FolderDataset(folder).get_corpus_iter(verbose=False)))["docno"] == "d1"


def test_relative_and_home_paths(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    for name in ("a folder", "~/a folder"):
        dataset = pt.get_dataset(f"neural:folder:{name}")
        monkeypatch.chdir("/")
        assert len(dataset.get_topics()) == 3
        monkeypatch.chdir(folder.parent)


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere is not a folder; .*corpus\.jsonl"):
        pt.get_dataset(f"neural:folder:{tmp_path / 'nowhere'}")
    with pytest.raises(FileNotFoundError, match=r"is not a test collection; expected corpus\.jsonl"):
        FolderDataset(tmp_path)


def test_folder_without_qrels(folder):
    for file in (folder / "qrels").iterdir():
        file.unlink()
    dataset = FolderDataset(folder)
    assert len(dataset.get_topics()) == 3
    assert len(list(dataset.get_corpus_iter(verbose=False))) == 3
    for call in (dataset.get_qrels, lambda: dataset.get_topics("test")):
        with pytest.raises(FileNotFoundError, match=r"test\.tsv is missing: .* has no judgements"):
            call()


def test_missing_corpus_and_queries(folder):
    (folder / "corpus.jsonl.gz").unlink()
    (folder / "queries.jsonl").unlink()
    dataset = FolderDataset(folder)
    with pytest.raises(FileNotFoundError, match=r"neither corpus\.jsonl nor corpus\.jsonl\.gz"):
        dataset.get_corpus_iter(verbose=False)
    with pytest.raises(FileNotFoundError, match=r"neither queries\.jsonl nor queries\.jsonl\.gz"):
        dataset.get_topics()


def test_unknown_or_ambiguous_split(folder):
    with pytest.raises(ValueError, match="no split 'tset'; it has: dev, test"):
        FolderDataset(folder).get_qrels("tset")
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "train.tsv")
    with pytest.raises(ValueError, match="several splits; pass one of: dev, train"):
        FolderDataset(folder).get_qrels()
    (folder / "qrels" / "train.tsv").unlink()
    assert FolderDataset(folder).get_qrels()["qid"].tolist() == ["q2"]


def test_broken_queries(folder):
    content = (folder / "queries.jsonl").read_text()
    for line, message in [
        ('{"_id": "q4", "text": ', r"queries\.jsonl, line 4: not valid JSON"),
        ('["q4", "text"]', r'queries\.jsonl, line 4: expected a JSON object with an "_id"'),
        ('{"text": "no id"}', r'queries\.jsonl, line 4: expected a JSON object with an "_id"'),
        ('{"_id": "q2", "text": "again"}', r"queries\.jsonl, line 4: query 'q2' is already on line 2"),
    ]:
        (folder / "queries.jsonl").write_text(f"{content}{line}\n")
        with pytest.raises(ValueError, match=message):
            FolderDataset(folder).get_topics()


def test_broken_qrels(folder):
    content = (folder / "qrels" / "test.tsv").read_bytes()
    for row, message in [
        (b"q1\td3\tvery", r"test\.tsv, line 4: the score 'very' is not an integer"),
        (b"q1 0 d3 1", r"test\.tsv, line 4: expected 3 fields separated by tabs, found 1"),
        (b"q\xff\td3\t1", r"test\.tsv, line 4: not UTF-8"),
    ]:
        (folder / "qrels" / "test.tsv").write_bytes(content + row + b"\n")
        with pytest.raises(ValueError, match=message):
            FolderDataset(folder).get_qrels("test")


def test_broken_gzip(folder):
    file = folder / "corpus.jsonl.gz"
    for damage in (file.read_bytes()[:-20], b"no gzip at all"):
        file.write_bytes(damage)
        with pytest.raises(ValueError, match=r"corpus\.jsonl\.gz, after line \d+: broken gzip"):
            list(FolderDataset(folder).get_corpus_iter(verbose=False))


@settings(max_examples=25)
@given(st.lists(st.text(), min_size=1, max_size=5))
def test_any_text_survives(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("any")
    write_lines(path / "corpus.jsonl", [{"_id": f"d{n}", "text": text} for n, text in enumerate(texts)])
    dataset = FolderDataset(path)
    assert [document["text"] for document in dataset.get_corpus_iter(verbose=False)] == texts
    docnos = [f"d{n}" for n in range(len(texts))]
    loaded = dataset.text_loader("text")(pd.DataFrame({"docno": docnos[::-1]}))
    assert loaded["text"].tolist() == texts[::-1]


def test_a_link_that_git_wrote_as_text(folder):
    (folder / "corpus.jsonl.gz").rename(folder.parent / "corpus.jsonl.gz")
    (folder / "corpus.jsonl.gz").write_text("../corpus.jsonl.gz")
    assert len(list(FolderDataset(folder).get_corpus_iter(verbose=False))) == 3


def test_folds(folder):
    with pytest.raises(FileNotFoundError, match="no folds"):
        FolderDataset(folder).get_folds()
    (folder / "folds.tsv").write_text("query-id\tfold\nq1\t0\nq2\t1\n")
    assert FolderDataset(folder).get_folds().values.tolist() == [["q1", "0"], ["q2", "1"]]


def test_text_loader(folder):
    loader = FolderDataset(folder).text_loader()
    frame = pd.DataFrame({"qid": "1", "docno": ["3", "d1", "3"], "text": "old"}, index=[7, 5, 9])
    loaded = loader(frame)
    assert loaded.columns.tolist() == ["qid", "docno", "text", "title"]
    assert loaded["text"].tolist() == ["third text", "first text", "third text"]
    assert loaded["title"].tolist() == ["", "One", ""]
    assert loaded.index.tolist() == [7, 5, 9]
    assert frame["text"].tolist() == ["old"] * 3
    assert FolderDataset(folder).text_loader("*").fields == ["title", "text", "lang"]
    assert FolderDataset(folder).text_loader("lang")(frame)["lang"].tolist() == ["", "en", ""]


def test_text_loader_refuses(folder):
    with pytest.raises(ValueError, match="no field body; it has: title, text, lang"):
        FolderDataset(folder).text_loader(["text", "body"])
    loader = FolderDataset(folder).text_loader()
    with pytest.raises(ValueError, match=r"2 docnos are not in .*, such as 'd9', (nan|None)"):
        loader(pd.DataFrame({"docno": ["d1", "d9", "d9", None]}))
    with pytest.raises(KeyError, match="docno"):
        loader(pd.DataFrame({"qid": ["1"]}))
    write_lines(folder / "corpus.jsonl.gz", [*DOCUMENTS, DOCUMENTS[0]])
    with pytest.raises(ValueError, match="'d1' occurs twice"):
        loader(pd.DataFrame({"docno": ["d1"]}))


def test_text_loader_reads_a_changed_corpus_anew(folder):
    loader, frame = FolderDataset(folder).text_loader("text"), pd.DataFrame({"docno": ["d1"]})
    assert loader(frame)["text"].tolist() == ["first text"]
    write_lines(folder / "corpus.jsonl.gz", [{"_id": "d1", "title": "", "text": "a changed text"}])
    assert loader(frame)["text"].tolist() == ["a changed text"]


def test_text_loader_as_a_transformer(folder):
    loader, other = FolderDataset(folder).text_loader(), FolderDataset(folder).text_loader("text")
    assert loader == FolderDataset(folder).text_loader(verbose=True)
    assert hash(loader) == hash(FolderDataset(folder).text_loader())
    assert loader != other
    assert loader != "loader"
    assert repr(other) == f"TextLoader({str(folder)!r}, ['text'])"
    assert loader.fuse_rank_cutoff(3) == pt.RankCutoff(3) >> loader
    assert pickle.loads(pickle.dumps(loader)) == loader
    empty = loader(pd.DataFrame({"docno": []}))
    assert empty.columns.tolist() == ["docno", "title", "text"]
    assert empty["text"].dtype == pd.Series(["a"], dtype=str).dtype


class TestTextLoaderContract(pt.testing.TransformerTestCase):
    @staticmethod
    def get_transformer():
        import tempfile
        from pathlib import Path

        folder = Path(tempfile.mkdtemp())
        write_lines(folder / "corpus.jsonl", DOCUMENTS)
        return TextLoader(str(folder))


#: Documents, queries and judged queries of each split, as the collections' own notes give them.
REAL = {
    "cacm": (3204, 64, {"test": 52}),
    "cranfield": (1400, 225, {"test": 225}),
    "vaswani": (11429, 93, {"test": 93}),
    "cpp-docs/keywords": (9740, 7328, {"train": 5835, "dev": 762, "test": 731}),
    "cpp-docs/anchors": (9740, 2084, {"train": 1668, "dev": 211, "test": 205}),
    "cpp-docs/links": (9740, 7417, {"train": 6459, "dev": 1847, "test": 4755}),
    "tldr-xling/ko-mates": (6695, 6056, {"train": 4246, "dev": 633, "test": 1177}),
    "tldr-xling/es-seealso": (6695, 504, {"train": 349, "dev": 44, "test": 111}),
}


@pytest.mark.parametrize(
    "name", [name if name in ("cacm", "cranfield") else pytest.param(name, marks=pytest.mark.long) for name in REAL]
)
def test_real_collections(collections, name):
    documents, queries, judged = REAL[name]
    dataset = pt.get_dataset(f"neural:folder:{collections / name}")
    assert sum(1 for _ in dataset.get_corpus_iter(verbose=False)) == documents
    assert len(dataset.get_topics()) == queries
    for split, count in judged.items():
        topics, qrels = dataset.get_topicsqrels(split)
        assert len(topics) == qrels["qid"].nunique() == count


@pytest.mark.long
def test_every_real_folder_loads(collections):
    for corpus in collections.glob("**/corpus.jsonl.gz"):
        dataset = FolderDataset(corpus.parent)
        assert next(iter(dataset.get_corpus_iter(verbose=False)))["text"]
        for split in dataset._describe_component("qrels") or ():
            assert not dataset.get_qrels(split).empty
    assert FolderDataset(collections / "cacm").get_folds().columns.tolist() == ["qid", "fold"]
