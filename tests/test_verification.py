import shutil
import threading
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural._files import ArtifactError, read_json, write_json
from pt_neural.rankers import DocumentRepresentations, TermVectors
from tests.rankers import fitted


@cache
def spaces() -> Path:
    path = fitted.folder() / "spaces"
    fitted.spaces().save(path)
    return path


@cache
def phrases() -> Path:
    path = fitted.folder() / "phrases"
    pn.PhraseJoiner.from_phrases(["new york"]).save(path)
    return path


ARTIFACTS = {
    "forward index": (lambda: fitted.forward().path, pn.ForwardIndex),
    "term vectors": (
        lambda: fitted.vectors("SSI").path,
        lambda path, **options: TermVectors(path, **options)._metadata,
    ),
    "representations": (lambda: fitted.vectors("Duet").path, DocumentRepresentations),
    "spaces": (spaces, pn.EmbeddingSpaces),
    "phrases": (phrases, pn.PhraseJoiner),
    "ranker": (lambda: fitted.saved("DSSM"), pn.DSSM.load),
    "ranker with parts": (lambda: fitted.saved("DESM"), pn.DESM.load),
}


@pytest.fixture(params=ARTIFACTS)
def artifact(request, tmp_path):
    """The path of an artifact, and the function that opens it."""
    make, load = ARTIFACTS[request.param]
    return Path(shutil.copytree(make(), tmp_path / "artifact")), load


def damages(path, count):
    """Change one bit of a random file, so many times; each is put back."""
    random = np.random.default_rng(7)
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    for file in random.choice(np.array([file for file in files if file.stat().st_size], dtype=object), count):
        content = file.read_bytes()
        changed = bytearray(content)
        changed[random.integers(len(changed))] ^= 1 << random.integers(8)
        file.write_bytes(changed)
        yield file
        file.write_bytes(content)


def test_no_changed_bit_stays_unseen(artifact):
    path, load = artifact
    load(path, verify=True)
    for file in damages(path, 100):
        with pytest.raises(ArtifactError, match=r"damaged|describes|no digests|missing"):
            pn.verify(path)
        with pytest.raises(ArtifactError):
            load(path, verify=True)
        assert file.exists()
    pn.verify(path)


def test_files_that_are_missing_too_short_or_too_many(artifact):
    path, load = artifact
    files = [file for file in path.rglob("*.*") if file.name != "pt_meta.json"]
    file = max(files, key=lambda file: file.stat().st_size)
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(ArtifactError, match=rf"{file.name} is damaged: it does not have the digest"):
        load(path, verify=True)
    file.unlink()
    with pytest.raises(ArtifactError, match=f"{file.name} is missing"):
        load(path, verify=True)
    file.write_bytes(content)
    (path / "more.npy").write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"more\.npy was not written with the artifact"):
        load(path, verify=True)
    load(path)


def test_without_digests(artifact):
    path, load = artifact
    metadata = read_json(path / "pt_meta.json")
    for name in ("sha256", "metadata_sha256"):
        del metadata[name]
    write_json(path / "pt_meta.json", metadata)
    load(path)
    for check in (pn.verify, partial(load, verify=True)):
        with pytest.raises(ArtifactError, match=r"pt_meta\.json has no digests to verify the files by.*write the"):
            check(path)


def test_no_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a directory; verify takes the path"):
        pn.verify(tmp_path / "none")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_what_is_downloaded_is_verified(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pt.io, "pyterrier_home", lambda: str(tmp_path / "home"))
    fitted.forward().build_package(str(tmp_path / "good.tar.lz4"), verbose=False)
    path = Path(shutil.copytree(fitted.forward().path, tmp_path / "damaged"))
    with (path / "terms.npy").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    pn.ForwardIndex(path).build_package(str(tmp_path / "bad.tar.lz4"), verbose=False)
    with ThreadingHTTPServer(("localhost", 0), partial(Quiet, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://localhost:{server.server_port}"
        good = pt.Artifact.from_url(f"{url}/good.tar.lz4")
        for door in (pt.Artifact, pn.ForwardIndex):
            with pytest.raises(ArtifactError, match=r"terms\.npy is damaged"):
                door.from_url(f"{url}/bad.tar.lz4")
        assert len(pn.ForwardIndex.from_url(f"{url}/bad.tar.lz4", verify=False)) == len(good)
        server.shutdown()


def test_a_lucene_index(tmp_path):
    index = pn.LuceneIndex(tmp_path / "index").index(fitted.CORPUS, verbose=False)
    pn.verify(index.path)
    file = min(index.path.glob("*.tim"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"\.tim is damaged"):
        pn.verify(index.path)
    (index.path / "pt_meta.json").unlink()  # as Anserini's
    with pytest.raises(ArtifactError, match="index is damaged"):
        pn.verify(index.path)
