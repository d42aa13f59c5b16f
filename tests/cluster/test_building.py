"""What is built a shard at a time equals what is built at once, also after interruptions."""

import hashlib
import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.cluster import building
from tests.rankers import fitted


@pytest.fixture(scope="module")
def documents():
    random = np.random.default_rng(6)
    words = sorted({word for document in fitted.CORPUS for word in document["text"].lower().split()})
    texts = [" ".join(random.choice(words, size=random.integers(0, 30))) for _ in range(100)]
    return [{"docno": f"d{i}", "title": " ".join(text.split()[:2]), "text": text} for i, text in enumerate(texts)]


@pytest.fixture(scope="module")
def shards(documents, tmp_path_factory):
    place = tmp_path_factory.mktemp("shards") / "spooled"
    return pn.CorpusShards.spool(place, documents, documents_per_shard=30, verbose=False)


def digests(path):
    """SHA-256 of each file of an artifact."""
    files = (file for file in Path(path).rglob("*") if file.is_file())
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


ARTIFACTS = {
    "forward index": lambda path, corpus, **options: pn.ForwardIndex.build(path, corpus, verbose=False, **options),
    "vectors": lambda path, corpus, **options: fitted.fitted("DSSM").index(path, corpus, verbose=False, **options),
    "CLSM's": lambda path, corpus, **options: fitted.fitted("CLSM").index(path, corpus, verbose=False, **options),
    "term vectors": lambda path, corpus, **options: fitted.fitted("SSI").index(path, corpus, verbose=False, **options),
    "TFIDF's": lambda path, corpus, **options: fitted.fitted("TFIDF").index(path, corpus, verbose=False, **options),
}


@pytest.mark.parametrize("name", ARTIFACTS)
def test_shards_are_merged_into_the_files_of_a_serial_run(name, documents, shards, tmp_path):
    ARTIFACTS[name](tmp_path / "serial", documents)
    ARTIFACTS[name](tmp_path / "merged", shards)
    assert digests(tmp_path / "merged") == digests(tmp_path / "serial")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merged", "serial"]


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_encoded_documents_are_merged(documents, shards, tmp_path, dtype):
    model = fitted.like("Duet")
    serial = model.index(tmp_path / "serial", documents, dtype=dtype, verbose=False)
    merged = model.index(tmp_path / "merged", shards, dtype=dtype, verbose=False)
    assert digests(merged.path / "documents") == digests(serial.path / "documents")
    frame = pd.DataFrame({"qid": "q", "query": "city river", "docno": [document["docno"] for document in documents]})
    scores = []
    for model.representations in (serial, merged):
        scores.append(model(frame)["score"])
    np.testing.assert_allclose(*scores, atol=1e-2 if dtype == "int8" else 1e-3)


def build(calls, path, documents):
    """An artifact that counts its documents; the third one is interrupted once."""
    calls.append(path.name)
    if calls.count("00002") == 1 and path.name == "00002":
        raise KeyboardInterrupt
    path.mkdir()
    (path / "count").write_text(str(sum(1 for _ in documents)))


def run(path, shards, calls, **options):
    def merge(parts):
        path.mkdir()
        (path / "counts").write_text(" ".join((part / "count").read_text() for part in parts))

    settings = {"plan": "plan", "kind": {}, "overwrite": False, "workers": None, "verbose": False, **options}
    building.build_by_shards(path, shards, partial(build, calls), merge, **settings)
    return (path / "counts").read_text()


def test_an_interrupted_run_builds_no_shard_twice(shards, tmp_path):
    calls = []
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "built", shards, calls)
    assert run(tmp_path / "built", shards, calls) == "25 25 25 25"
    assert calls == ["00000", "00001", "00002", "00002", "00003"]
    assert [path.name for path in tmp_path.iterdir()] == ["built"]


def test_shards_of_another_corpus_or_model_are_not_taken_up(shards, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "built", shards, [])
    with pytest.raises(FileExistsError, match="holds shards of an interrupted run with another corpus, model"):
        run(tmp_path / "built", shards, ["00002"], plan="other")
    assert run(tmp_path / "built", shards, ["00002"], plan="other", overwrite=True) == "25 25 25 25"


def test_shards_of_other_fields_are_not_taken_up(shards, tmp_path, monkeypatch):
    read = pn.CorpusShards.shard

    def interrupted(self, number):
        if number == 1:
            raise KeyboardInterrupt
        return read(self, number)

    for name in ("DSSM", "Duet"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(pn.CorpusShards, "shard", interrupted)
            fitted.fitted(name).index(tmp_path / name, shards, verbose=False)
        titles = fitted.like(name)
        titles.fields = ["title"]
        with pytest.raises(FileExistsError, match="another corpus, model or settings"):
            titles.index(tmp_path / name, shards, verbose=False)


def test_a_docno_in_two_shards_is_refused(documents, tmp_path):
    for name in ("a", "b"):
        pn.CorpusShards.spool(tmp_path / name, documents[:5], verbose=False)
    files = [*(tmp_path / "a").glob("*.jsonl"), *(tmp_path / "b").glob("*.jsonl")]
    shards = pn.CorpusShards(files, documents_per_shard=5)
    for name in ("forward index", "vectors"):
        with pytest.raises(ValueError, match="occurs twice"):
            ARTIFACTS[name](tmp_path / name, shards)


def test_workers_need_shards(documents, tmp_path):
    for artifact in (ARTIFACTS["forward index"], ARTIFACTS["vectors"]):
        with pytest.raises(TypeError, match=r"workers= needs a corpus .* pn\.CorpusShards"):
            artifact(tmp_path / "built", documents, workers=2)


class DiesOnce:
    """Builds a forward index; the process of shard 1 is killed the first time."""

    def __init__(self, marker):
        self.marker = marker

    def __call__(self, path, documents):
        if path.name == "00001" and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        with (self.marker.parent / "built").open("a") as file:
            file.write(f"{path.name}\n")
        pn.ForwardIndex.build(path, documents, verbose=False)


@pytest.mark.long
@pytest.mark.parametrize("name", ["forward index", "vectors"])
def test_workers_write_the_files_of_a_serial_run(cluster, name, documents, shards, tmp_path):
    ARTIFACTS[name](tmp_path / "serial", documents)
    ARTIFACTS[name](tmp_path / "merged", shards, workers=2)
    assert digests(tmp_path / "merged") == digests(tmp_path / "serial")


@pytest.mark.long
def test_a_killed_worker_costs_its_own_shard_only(cluster, documents, shards, tmp_path):
    serial = pn.ForwardIndex.build(tmp_path / "serial", documents, verbose=False)
    path = tmp_path / "merged"
    building.build_by_shards(
        path,
        shards,
        DiesOnce(tmp_path / "died"),
        partial(pn.ForwardIndex.merge, path),
        plan=None,
        kind={},
        overwrite=False,
        workers=2,
        verbose=False,
    )
    assert digests(path) == digests(serial.path)
    assert sorted((tmp_path / "built").read_text().split()) == ["00000", "00001", "00002", "00003"]


@pytest.mark.long
def test_an_error_in_a_shard_is_raised_here(cluster, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"docno": "d1", "text": "x"}\n{"docno": "d2", "text": "x"}\n{"text": "x"}\n')
    shards = pn.CorpusShards(tmp_path / "a.jsonl", documents_per_shard=1)
    with pytest.raises(ValueError, match=r"a\.jsonl, document 3: expected a JSON object"):
        ARTIFACTS["forward index"](tmp_path / "built", shards, workers=2)
