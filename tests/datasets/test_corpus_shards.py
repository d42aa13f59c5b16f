import gzip
import json
import pickle
from itertools import chain

import ir_datasets
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.datasets.beir import BeirFolder

DOCUMENTS = [{"docno": f"d{i}", "title": f"Title {i}", "text": "word " * (i % 7)} for i in range(10_000)]


def write(path, documents, name="docno", blank=False):
    records = [{name: doc["docno"], "title": doc["title"], "text": doc["text"], "year": 1999} for doc in documents]
    lines = "".join(json.dumps(record) + "\n" + ("\n" if blank else "") for record in records).encode()
    path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)


@pytest.fixture
def files(tmp_path):
    """10,000 documents in a plain file, a gzipped one, one with blank lines and another name for docnos."""
    write(tmp_path / "a.jsonl", DOCUMENTS[:6000])
    write(tmp_path / "b.jsonl.gz", DOCUMENTS[6000:6500], name="_id")
    write(tmp_path / "c.jsonl", DOCUMENTS[6500:], name="id", blank=True)
    return tmp_path


@pytest.mark.parametrize("size", [1, 4096, 4097, 3333, 10_000, 1_000_000])
def test_shards_are_all_documents_in_order(files, size):
    shards = pn.CorpusShards(files, documents_per_shard=size)
    assert len(shards) == -(-10_000 // size)
    assert shards.num_documents == 10_000
    if size > 1:
        assert list(chain.from_iterable(shards.shard(i) for i in range(len(shards)))) == DOCUMENTS
        lengths = [sum(1 for _ in shards.shard(i)) for i in range(len(shards))]
        assert max(lengths) - min(lengths) <= 1
    else:
        assert [next(shards.shard(i)) for i in (0, 5999, 6000, 6499, 6500, 9999)] == [
            DOCUMENTS[i] for i in (0, 5999, 6000, 6499, 6500, 9999)
        ]
    with pytest.raises(IndexError, match="but there are"):
        next(shards.shard(len(shards)))


def test_so_many_shards(files):
    shards = pn.CorpusShards(files, shards=7)
    assert [sum(1 for _ in shards.shard(i)) for i in range(len(shards))] == [1428, 1429, 1428, 1429, 1428, 1429, 1429]
    with pytest.raises(ValueError, match="shards=10001, but there are only 10000 documents"):
        pn.CorpusShards(files, shards=10_001)


def test_it_is_a_corpus(files):
    shards = pn.CorpusShards(files, documents_per_shard=3000)
    assert list(shards) == list(shards) == DOCUMENTS
    assert repr(shards) == "CorpusShards(10,000 documents, 4 shards)"
    copy = pickle.loads(pickle.dumps(shards))
    assert list(copy.shard(2)) == list(shards.shard(2))
    assert len(pickle.dumps(shards)) < 2000


def test_paths_lists_and_patterns(files):
    assert list(pn.CorpusShards(files / "a.jsonl")) == DOCUMENTS[:6000]
    assert list(pn.CorpusShards(str(files / "*.jsonl"))) == DOCUMENTS[:6000] + DOCUMENTS[6500:]
    listed = pn.CorpusShards([files / "c.jsonl", str(files / "b.jsonl.gz")])
    assert list(listed) == DOCUMENTS[6500:] + DOCUMENTS[6000:6500]
    with pytest.raises(FileNotFoundError, match="no file of documents at"):
        pn.CorpusShards(files / "*.xml")


def test_a_beir_folder_gives_its_corpus(tmp_path):
    write(tmp_path / "corpus.jsonl", DOCUMENTS[:20], name="_id")
    write(tmp_path / "queries.jsonl", DOCUMENTS[:3], name="_id")
    assert list(pn.CorpusShards(tmp_path)) == list(BeirFolder(tmp_path).documents())


def test_trec_files(tmp_path):
    text = "".join(f"<DOC>\n<DOCNO> T{i} </DOCNO>\n<TEXT>\nwords of {i}\n</TEXT>\n</DOC>\n" for i in range(7))
    (tmp_path / "a.trec").write_text(text)
    with gzip.open(tmp_path / "b.gz", "wt") as file:
        file.write(text.replace("T", "U"))
    shards = pn.CorpusShards(tmp_path, format="trec", documents_per_shard=5)
    found = list(chain.from_iterable(shards.shard(i) for i in range(len(shards))))
    assert [document["docno"] for document in found] == [f"T{i}" for i in range(7)] + [f"U{i}" for i in range(7)]
    assert found[3]["text"].split() == ["words", "of", "3"]
    identity = shards.identity()
    (tmp_path / "a.trec").write_text(text.replace("words of 3", "words of 4"))  # as many bytes
    assert pn.CorpusShards(tmp_path, format="trec", documents_per_shard=5).identity() != identity
    (tmp_path / "b.gz").write_bytes((tmp_path / "b.gz").read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"b\.gz: broken gzip .* download the file again"):
        pn.CorpusShards(tmp_path, format="trec")


def test_patterns_pass_over_folders_without_documents(files):
    (files / "logs").mkdir()
    assert list(pn.CorpusShards(files / "*")) == list(pn.CorpusShards(files))
    with pytest.raises(FileNotFoundError, match="no file of documents at"):
        pn.CorpusShards(files / "l*")


def test_trec_files_may_lie_in_folders_of_a_folder(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "disk" / name).mkdir(parents=True)
        text = f"<DOC>\n<DOCNO> {name} </DOCNO>\n<TEXT>\nwords\n</TEXT>\n</DOC>\n"
        (tmp_path / "disk" / name / "1").write_text(text)
    for source in (tmp_path / "disk", tmp_path / "disk" / "*"):
        shards = pn.CorpusShards(source, format="trec", shards=2)
        assert [document["docno"] for document in shards] == ["a", "b"]
        assert [name for name, *_ in shards.identity()["sources"]] == ["1", "1"]


def test_a_collection_of_ir_datasets_that_has_not_been_counted(tmp_path):
    (tmp_path / "documents.tsv").write_text("d1\tokapi\nd2\tgiraffe\n")
    ir_datasets.registry.register("uncounted", ir_datasets.create_dataset(docs_tsv=str(tmp_path / "documents.tsv")))
    assert ir_datasets.load("uncounted").docs_count() is None
    assert [document["docno"] for document in pn.CorpusShards("irds:uncounted", shards=2).shard(1)] == ["d2"]


def test_any_documents_can_be_spooled(tmp_path):
    documents = [
        {"docno": 7, "text": "é\ud800", "vector": [1]},
        {"docno": "b", "text": "y"},
        {"docno": "c", "text": ""},
    ]
    shards = pn.CorpusShards.spool(tmp_path / "spooled", iter(documents), documents_per_shard=2, verbose=False)
    expected = [
        {"docno": "7", "text": "é\ud800", "vector": ""},
        {"docno": "b", "text": "y"},
        {"docno": "c", "text": ""},
    ]
    assert list(shards) == expected
    assert len(shards) == 2
    assert list(pn.CorpusShards(tmp_path / "spooled")) == expected
    with pytest.raises(FileExistsError, match="exists already"):
        pn.CorpusShards.spool(tmp_path / "spooled", documents, verbose=False)
    frame = pd.DataFrame({"docno": ["x", "x"], "text": "t"})
    with pytest.raises(ValueError, match="'x' occurs twice"):
        pn.CorpusShards.spool(tmp_path / "spooled", frame, overwrite=True, verbose=False)
    assert list(pn.CorpusShards(tmp_path / "spooled")) == expected


def test_what_is_no_document_is_named(tmp_path):
    for line, message in (("{", "document 2: not valid JSON"), ('{"text": "x"}', "document 2: expected a JSON object")):
        (tmp_path / "a.jsonl").write_text(f'{{"docno": "d1"}}\n{line}\n')
        with pytest.raises(ValueError, match=rf"a\.jsonl, {message}"):
            list(pn.CorpusShards(tmp_path))
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(ValueError, match="there are no documents"):
        pn.CorpusShards(tmp_path)
    with pytest.raises(ValueError, match="documents_per_shard must be at least 1"):
        pn.CorpusShards(tmp_path, documents_per_shard=0)
    with pytest.raises(ValueError, match="format='xml'"):
        pn.CorpusShards(tmp_path, format="xml")


def test_a_broken_gzip_is_named(tmp_path):
    file = tmp_path / "a.jsonl.gz"
    write(file, DOCUMENTS[:100])
    whole, shards = file.read_bytes(), pn.CorpusShards(file)
    file.write_bytes(bytes(20) + whole[20:])
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz, after line 0: broken gzip .* download the file again"):
        list(shards)
    file.write_bytes(whole[:-20])
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz, after line \d+: broken gzip"):
        pn.CorpusShards(file)


def test_the_same_files_have_the_same_identity(files):
    shards, same = (pn.CorpusShards(files, documents_per_shard=3000) for _ in range(2))
    assert shards.identity() == same.identity() == json.loads(json.dumps(shards.identity()))
    assert shards.identity() != pn.CorpusShards(files, documents_per_shard=2000).identity()
    write(files / "a.jsonl", [{**DOCUMENTS[0], "title": "title 0"}, *DOCUMENTS[1:6000]])
    assert shards.identity() != pn.CorpusShards(files, documents_per_shard=3000).identity(), "another content"
    write(files / "a.jsonl", DOCUMENTS[:5999])
    assert shards.identity() != pn.CorpusShards(files, documents_per_shard=3000).identity()
    with pytest.raises(ValueError, match=r"a\.jsonl has changed since it was cut"):
        list(shards)
