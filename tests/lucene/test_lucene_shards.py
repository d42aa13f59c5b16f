"""An index in shards: built in parts, and searched as if it were whole."""

import errno
import os
import pickle
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest
from pandas.testing import assert_frame_equal

from pt_neural import CorpusShards, LatentConceptExpansion, LuceneIndex, LuceneShards, _artifacts
from pt_neural._files import ArtifactError
from pt_neural.lucene.lucene_shards import shard_name

SHARDS = LuceneShards("nowhere")

TestBM25 = pt.testing.transformer_test_class(lambda: SHARDS.bm25())
TestTextLoader = pt.testing.transformer_test_class(lambda: SHARDS.text_loader())


def retrievers(index):
    yield from (index.bm25(num_results=20), index.bm25(k1=2, b=0, field="title"), index.ql(mu=50))
    yield from (index.sdm(num_results=50), index.sdm("bm25", window=4), index.rm3(fb_docs=5), index.rm3("ql"))
    yield index.sdm() >> LatentConceptExpansion(index, filter_terms=False) >> index.sdm(num_results=30)


@pytest.mark.parametrize("number", [1, 2, 4, 7])
def test_shards_score_as_the_whole_to_the_bit(whole, in_shards, word_topics, number):
    index = in_shards(number)
    assert len(index.parts) == number
    for expected, ours in zip(retrievers(whole), retrievers(index), strict=True):
        frame = expected(word_topics)
        assert len(frame) > 500
        assert_frame_equal(ours(word_topics), frame, check_exact=True)


def test_rows_are_scored_and_expanded_by_docno(whole, in_shards, word_topics):
    index = in_shards(4)
    rows = whole.bm25(num_results=30)(word_topics).sample(frac=1, random_state=3)
    for expected, ours in zip(retrievers(whole), retrievers(index), strict=True):
        assert_frame_equal(ours(rows), expected(rows), check_exact=True)
    lce = {"fb_docs": 3, "filter_terms": False, "keep_documents": True}
    found = LatentConceptExpansion(index, **lce)(rows)
    assert_frame_equal(found, LatentConceptExpansion(whole, **lce)(rows), check_exact=True)


def test_text_and_facts(whole, in_shards, word_documents):
    index = in_shards(7)
    rows = pd.DataFrame({"docno": [document["docno"] for document in reversed(word_documents)]})
    assert_frame_equal(index.text_loader()(rows), whole.text_loader()(rows))
    with pytest.raises(ValueError, match=r"docno 'nowhere' is not in "):
        index.text_loader()(pd.DataFrame({"docno": ["d001", "nowhere"]}))
    assert (len(index), index.fields(), index.built()) == (400, ["contents", "note", "title"], True)
    assert sorted(index.docnos()) == sorted(whole.docnos())
    assert index.document_frequencies(["word0"]).tolist() == whole.document_frequencies(["word0"]).tolist()
    assert sum(len(LuceneIndex(part)) for part in index.parts) == 400
    assert [len(LuceneIndex(part)) for part in index.parts] == [57, 57, 57, 57, 57, 57, 58]


def test_it_is_an_artifact_and_pickles(in_shards, monkeypatch):
    index = in_shards(2)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = project["entry-points"]  # as this source has them, whatever is installed
    find = lambda group: [EntryPoint(name, value, group) for name, value in points[group].items()]  # noqa: E731
    monkeypatch.setattr(pt.utils, "entry_points", find)
    loaded = pt.Artifact.load(str(index.path))
    assert isinstance(loaded, LuceneShards)
    assert loaded == index
    assert pickle.loads(pickle.dumps(index.bm25())) == index.bm25()
    assert repr(index) == "LuceneShards('index')"


def test_analysis_is_that_of_the_shards(tmp_path, corpus):
    (tmp_path / "stop.txt").write_text("okapi\n")
    options = {"stemmer": "krovetz", "stopwords": str(tmp_path / "stop.txt"), "verbose": False}
    index = LuceneShards(tmp_path / "index").index(corpus, shards=2, **options)
    assert index.analysis.terms("okapi rivers") == ["river"]
    assert index.bm25().search("okapi").empty


def test_any_corpus(tmp_path, corpus):
    frame = pd.DataFrame(corpus).assign(docno=range(6))
    for i, made in enumerate([frame, iter(frame.to_dict("records"))]):
        index = LuceneShards(tmp_path / str(i)).index(made, shards=3, verbose=False)
        assert sorted(index.docnos()) == list("012345")
    strange = [{"docno": "a", "text": None}, {"docno": "b", "text": "half \ud800 of it"}, {"docno": "c", "text": 1.5}]
    index = LuceneShards(tmp_path / "strange").index(strange, shards=1, verbose=False)
    assert index.text_loader("text")(pd.DataFrame({"docno": list("abc")}))["text"].tolist() == ["", "half ? of it", ""]


def cut(corpus, number, folder):
    """A corpus in shards."""
    CorpusShards.spool(folder / "corpus", corpus, verbose=False)
    return CorpusShards(folder / "corpus", shards=number)


def test_an_interrupted_build_resumes_and_repeats_no_finished_shard(tmp_path, corpus, monkeypatch):
    read, shard = [], CorpusShards.shard

    def interrupted(self, number):
        yield from shard(self, number)
        read.append(number)
        if read == [0, 1, 2]:
            raise KeyboardInterrupt

    monkeypatch.setattr(CorpusShards, "shard", interrupted)
    shards, index = cut(corpus, 3, tmp_path), LuceneShards(tmp_path / "index")
    with pytest.raises(KeyboardInterrupt):
        index.index(shards, verbose=False)
    assert not index.built()
    with pytest.raises(FileExistsError, match="an interrupted run with another corpus, model or settings"):
        index.index(shards, verbose=False, stemmer="none")
    index.index(shards, verbose=False)
    assert read == [0, 1, 2, 2]
    assert index.built()
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "index"}
    assert {path.name for path in index.path.iterdir()} == {"docnos", "pt_meta.json", *map(shard_name, range(3))}


def test_an_interrupted_build_of_an_iterator_resumes(tmp_path, corpus, monkeypatch):
    built, build = [], LuceneIndex.index

    def interrupted(self, documents, **options):
        build(self, documents, **options)
        built.append(self.path.name)
        if len(built) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(LuceneIndex, "index", interrupted)
    index = LuceneShards(tmp_path / "index")
    with pytest.raises(KeyboardInterrupt):
        index.index(iter(corpus), shards=3, verbose=False)
    with pytest.raises(FileExistsError, match="an interrupted run with another corpus"):
        index.index(corpus[:5], shards=3, verbose=False)
    index.index(iter(corpus), shards=3, verbose=False)
    assert built == ["00000", "00001", "00002"]
    assert len(index) == 6
    assert list(tmp_path.iterdir()) == [index.path]


def test_an_interruption_while_shards_are_joined_costs_none_of_them(tmp_path, corpus, monkeypatch):
    built, build, seal = [], LuceneIndex.index, _artifacts._seal

    def counted(self, documents, **options):
        built.append(self.path.name)
        return build(self, documents, **options)

    def interrupted(directory):
        if (directory / shard_name(0)).exists():
            raise KeyboardInterrupt
        seal(directory)

    monkeypatch.setattr(LuceneIndex, "index", counted)
    shards, index = cut(corpus, 3, tmp_path), LuceneShards(tmp_path / "index")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_artifacts, "_seal", interrupted)
        index.index(shards, verbose=False)
    parts = tmp_path / ".index.shards"
    assert {path.name for path in parts.iterdir()} == {"00000", "00001", "00002", "plan.json"}
    assert not index.built()
    index.index(shards, verbose=False)
    assert built == ["00000", "00001", "00002"]
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "index"}
    _artifacts.require_digests(index.path)
    for part in index.parts:
        _artifacts.require_digests(part)
    assert len(index.text_loader()(pd.DataFrame({"docno": index.docnos()}))) == 6


def test_shards_are_joined_where_files_cannot_have_two_names(tmp_path, corpus, monkeypatch):
    def refused(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    index = LuceneShards(tmp_path / "index").index(corpus, shards=2, verbose=False)
    assert list(tmp_path.iterdir()) == [index.path]
    for part in index.parts:
        _artifacts.require_digests(part)


def test_docnos_are_unique_over_shards(tmp_path, corpus):
    with pytest.raises(ValueError, match="'d1' occurs twice"):
        LuceneShards(tmp_path / "one").index([*corpus, corpus[0]], shards=2, verbose=False)
    assert list(tmp_path.iterdir()) == []
    cut(corpus, 1, tmp_path)
    twice = CorpusShards([tmp_path / "corpus", tmp_path / "corpus"], shards=4)
    with pytest.raises(ValueError, match="occurs twice"):
        LuceneShards(tmp_path / "two").index(twice, verbose=False)
    assert not LuceneShards(tmp_path / "two").built()


def test_impossible_requests(tmp_path, corpus):
    index = LuceneShards(tmp_path / "index")
    with pytest.raises(ValueError, match=r"how many shards\? Pass shards="):
        index.index(corpus)
    with pytest.raises(ValueError, match="shards=7, but there are only 6 documents"):
        index.index(corpus, shards=7, verbose=False)
    with pytest.raises(ValueError, match="shards=3, but the corpus is cut into 2"):
        index.index(cut(corpus, 2, tmp_path / "cut"), shards=3)
    with pytest.raises(ValueError, match="stemmer='snowball'"):
        index.index(corpus, shards=2, stemmer="snowball")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        index.bm25().search("okapi")
    assert [path.name for path in tmp_path.iterdir()] == ["cut"]
    index.index(corpus, shards=2, verbose=False)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        index.index(corpus, shards=2, verbose=False)
    assert len(index.index(corpus[:4], shards=2, verbose=False, overwrite=True)) == 4
    assert index.bm25().search("okapi")["docno"].tolist() == ["d4"]
    other = LuceneIndex(tmp_path / "other").index(corpus, verbose=False)
    with pytest.raises(ArtifactError, match=r"describes sparse_index\.anserini, not"):
        len(LuceneShards(other.path))


def test_a_progress_bar_where_it_is_wanted(tmp_path, corpus, capfd):
    LuceneShards(tmp_path / "quiet").index(corpus, shards=2, verbose=False)
    assert capfd.readouterr().err == ""
    LuceneShards(tmp_path / "loud").index(corpus, shards=2)
    assert "2/2" in capfd.readouterr().err
