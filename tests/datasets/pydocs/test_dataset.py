import subprocess
import sys
import threading
import warnings

import pandas as pd
import pyterrier as pt
import pytest

from pt_neural._files import ArtifactError
from pt_neural.datasets import NeuralDatasetProvider
from pt_neural.datasets.pydocs import PACKAGES, dataset, packages
from pt_neural.text import tokenise

INSTALLED = dataset.installed
SPLITS = ["train", "dev", "test"]
OTHER_PARTS = {"ma", "stats", "sparse", "optimize", "ndimage", "interpolate", "spatial", "integrate", "cluster"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A PyTerrier home with the collection made from parts of two packages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTERRIER_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setattr(packages, "_SKIPPED", packages._SKIPPED | OTHER_PARTS)
        versions = {name: version for name, version in dataset.installed().items() if name in ("numpy", "scipy")}
        patch.setattr(dataset, "installed", lambda: versions)
        dataset.cached_collection()
        yield


@pytest.fixture(scope="module")
def docs(home):
    return pt.get_dataset("neural:pydocs")


@pytest.fixture(scope="module")
def links(home):
    return pt.get_dataset("neural:pydocs/links")


def test_documents(docs):
    corpus = list(docs.get_corpus_iter(verbose=False))
    assert len(corpus) == len(docs) == docs.packages()["documents"].sum()
    assert all(list(document) == ["docno", "title", "text", "package"] for document in corpus)
    assert all(isinstance(value, str) and value for document in corpus for value in document.values())
    by_name = {document["docno"]: document for document in corpus}
    assert len(by_name) == len(corpus)
    norm = by_name["numpy.linalg.norm"]
    assert norm["title"] == "numpy.linalg.norm"
    assert norm["package"] == "numpy"
    assert norm["text"].startswith("This function is able to return one of eight different matrix norms")
    assert not any("\nSee Also\n---" in document["text"] for document in corpus)
    assert {"numpy.add", "numpy.random.Generator.choice", "scipy.special.gamma"} <= by_name.keys()
    assert all(count > 400 for count in docs.packages()["documents"])


def test_queries_and_judgements(docs):
    topics = {split: docs.get_topics(split) for split in SPLITS}
    qrels = {split: docs.get_qrels(split) for split in SPLITS}
    docnos = {document["docno"] for document in docs.get_corpus_iter(verbose=False)}
    for split in SPLITS:
        assert set(topics[split]["qid"]) == set(qrels[split]["qid"])
        assert set(qrels[split]["docno"]) <= docnos
        assert set(qrels[split]["label"]) == {1, 2}
        assert qrels[split]["label"].dtype == "int64"
        assert not qrels[split].duplicated(["qid", "docno"]).any()
    everything = pd.concat(topics.values())
    assert everything["qid"].is_unique
    assert everything["query"].str.lower().is_unique
    assert not everything["query"].str.contains("`").any()
    assert everything["query"].str.split().str.len().between(3, 40).all()
    assert len(topics["train"]) > 800
    assert 0.16 < len(topics["test"]) / len(everything) < 0.24
    assert docs.get_topics().equals(topics["test"])
    assert docs.get_qrels().equals(qrels["test"])
    with pytest.raises(ValueError, match="it has: dev, test, train"):
        docs.get_qrels("tests")


def test_grades(docs):
    topics = pd.concat([docs.get_topics(split) for split in SPLITS]).set_index("query")
    qrels = pd.concat([docs.get_qrels(split) for split in SPLITS])
    found = qrels[qrels["qid"] == topics["qid"]["Return the Kaiser window."]]
    assert dict(zip(found["docno"], found["label"], strict=True)) == {
        "numpy.kaiser": 2,
        "scipy.signal.windows.kaiser": 1,
    }


def test_links(docs, links):
    qrels = pd.concat([links.get_qrels(split) for split in SPLITS])
    topics = pd.concat([links.get_topics(split) for split in SPLITS]).drop_duplicates().set_index("qid")["query"]
    assert topics.index.is_unique
    docnos = {document["docno"] for document in docs.get_corpus_iter(verbose=False)}
    assert set(qrels["qid"]) == set(topics.index) <= docnos
    assert set(qrels["docno"]) <= docnos
    assert (qrels["qid"] != qrels["docno"]).all()
    assert (qrels["label"] == 1).all()
    assert len(qrels) > 1000
    assert topics.str.split().str.len().max() == 100
    related = set(qrels[qrels["qid"] == "numpy.hstack"]["docno"])
    assert {"numpy.concatenate", "numpy.stack", "numpy.vstack", "numpy.hsplit"} <= related
    assert topics["numpy.hstack"].startswith("numpy.hstack This is equivalent to concatenation along the second axis")


def test_no_link_has_its_reverse_in_another_split(links):
    splits = {(row.qid, row.docno): split for split in SPLITS for row in links.get_qrels(split).itertuples(index=False)}
    reversed_pairs = [(qid, docno) for qid, docno in splits if (docno, qid) in splits]
    assert len(reversed_pairs) > 300
    assert all(splits[qid, docno] == splits[docno, qid] for qid, docno in reversed_pairs)


def test_no_query_is_in_two_splits_after_tokenising(docs):
    texts = {split: set(map(tuple, map(tokenise, docs.get_topics(split)["query"]))) for split in SPLITS}
    assert not texts["test"] & (texts["train"] | texts["dev"])
    assert not texts["dev"] & texts["train"]


def test_text_loader(docs, links):
    loader = docs.text_loader(["text", "package"])
    loaded = loader(docs.get_qrels())
    assert loaded.columns.tolist() == ["qid", "docno", "label", "text", "package"]
    assert (loaded["package"] == loaded["docno"].str.partition(".")[0]).all()
    assert links.text_loader(["text", "package"]) == loader


def test_what_it_says_of_itself(docs, links):
    assert (repr(docs), repr(links)) == ("PyDocs()", "PyDocsLinks()")
    assert (docs.get_corpus_lang(), docs.get_topics_lang(), docs.info_url()) == ("en", "en", None)
    assert docs._describe_component("topics") == SPLITS
    assert docs._describe_component("index") is None
    assert docs.packages().columns.tolist() == ["package", "version", "documents", "words"]


def test_built_twice_is_the_same_to_the_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "_SKIPPED", packages._SKIPPED | {"algorithms", "drawing"})
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        dataset.build(tmp_path / name, {"networkx": "3"})
    files = [file.relative_to(tmp_path / "a") for file in (tmp_path / "a").rglob("*") if file.is_file()]
    assert len(files) == 10
    assert all((tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes() for file in files)


def test_provider():
    provider = NeuralDatasetProvider()
    assert provider.get_dataset("pydocs") is not provider.get_dataset("pydocs")
    assert provider.list_dataset_names() == ["pydocs", "pydocs/links"]
    with pytest.raises(KeyError, match=r"neural:pydocs, neural:pydocs/links, neural:folder:PATH"):
        provider.get_dataset("pydoc")


def test_importing_is_light():
    script = "import sys, pt_neural.datasets as d; d.NeuralDatasetProvider().get_dataset('pydocs'); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "scipy", "sklearn", "matplotlib", "jnius"} & set(modules)


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    """A PyTerrier home where building writes one small file."""
    monkeypatch.setenv("PYTERRIER_HOME", str(tmp_path))
    monkeypatch.setattr(dataset, "installed", lambda: {"numpy": "1"})
    monkeypatch.setattr(dataset, "build", write_small)
    return tmp_path


def write_small(directory, versions):
    (directory / "corpus.jsonl").write_text('{"_id": "d1", "title": "One", "text": "first"}\n')
    dataset.write_metadata(directory, type="dataset", format="pydocs", packages=[], sizes={"corpus.jsonl": 47})


def test_a_killed_build_leaves_nothing(empty_home, monkeypatch):
    def killed(directory, versions):
        write_small(directory, versions)
        raise KeyboardInterrupt

    monkeypatch.setattr(dataset, "build", killed)
    with pytest.raises(KeyboardInterrupt):
        dataset.cached_collection()
    assert list((empty_home / "neural").iterdir()) == []


def test_two_builds_at_once(empty_home, monkeypatch):
    both_started = threading.Barrier(2, timeout=120)

    def slow(directory, versions):
        both_started.wait()
        write_small(directory, versions)

    monkeypatch.setattr(dataset, "build", slow)
    found = []
    threads = [threading.Thread(target=lambda: found.append(dataset.cached_collection())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert list((empty_home / "neural").iterdir()) == [found[0]]


def test_a_damaged_collection_is_named_with_the_remedy(empty_home):
    path = dataset.cached_collection()
    (path / "corpus.jsonl").write_text("cut off")
    with pytest.raises(ArtifactError, match=r"corpus\.jsonl is damaged or missing; delete .*pydocs-"):
        dataset.cached_collection()
    (path / "pt_meta.json").unlink()
    with pytest.raises(ArtifactError, match=r"pt_meta\.json is missing; .*; delete .*pydocs-"):
        dataset.cached_collection()


def test_a_home_that_cannot_be_written(empty_home):
    (empty_home / "neural").write_text("a file is in the way")
    with pytest.raises(OSError, match="neural"):
        dataset.cached_collection()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(dataset, "installed", INSTALLED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(dataset.installed()) == list(PACKAGES)
    monkeypatch.setitem(dataset.PACKAGES, "sklearn", "no-such-distribution")
    with pytest.warns(UserWarning, match="built without no-such-distribution; to include it: pip install"):
        assert "sklearn" not in dataset.installed()
