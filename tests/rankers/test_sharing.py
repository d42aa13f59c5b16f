"""Rankers go to other machines and come back, without a network: by file, by HTTP and by stand-ins of the services."""

import functools
import http.server
import json
import shutil
import tarfile
import threading
from contextlib import contextmanager
from pathlib import Path

import lz4.frame
import numpy as np
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural._files import ArtifactError
from tests.rankers.fitted import CANDIDATES, CORPUS, fitted, forward, unfitted


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """PyTerrier's cache, empty."""
    monkeypatch.setenv("PYTERRIER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def package(tmp_path) -> Path:
    return Path(fitted("DSSM").build_package(tmp_path / "dssm.tar.lz4", verbose=False))


@pytest.fixture
def website(tmp_path):
    """The address of a server of this machine that gives the files of the temporary folder."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def require_equal(ranker, name: str = "DSSM") -> None:
    """Both give the same scores."""
    assert type(ranker) is type(fitted(name))
    np.testing.assert_array_equal(ranker(CANDIDATES)["score"], fitted(name)(CANDIDATES)["score"])


@pytest.mark.parametrize("address", ["{}", "file://{}"])
def test_a_package_of_this_machine_loads(package, address, home):
    require_equal(pn.DSSM.from_url(address.format(package)))
    require_equal(pn.DSSM.from_url(address.format(package), batch_size=2))  # which is unpacked already
    assert len([path for path in (home / "artifacts").iterdir() if path.is_dir()]) == 1


def test_a_package_from_a_server_loads_by_its_class_and_by_its_type(package, website, monkeypatch):
    kept = pn.DSSM.from_url(f"{website}/{package.name}", documents=forward())
    require_equal(kept)
    assert kept.documents is forward()
    package.unlink()  # it is in the cache
    require_equal(pt.Artifact.from_url(f"{website}/{package.name}"))
    with pytest.raises(OSError, match="404"):
        pn.DSSM.from_url(f"{website}/none.tar.lz4")


@pytest.mark.parametrize("name", ["DESM", "LDA", "Duet"])
def test_rankers_of_each_kind_come_back(name, tmp_path):
    path = fitted(name).build_package(tmp_path / "ranker.tar.lz4", verbose=False)
    require_equal(getattr(pn, name).from_url(path), name)


def test_the_class_must_be_right(package, tmp_path):
    with pytest.raises(ArtifactError, match=r"dssm\.tar\.lz4 cannot be loaded as CLSM: .* a ranker 'dssm', not 'clsm'"):
        pn.CLSM.from_url(str(package))
    index = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    other = index.build_package(str(tmp_path / "forward.tar.lz4"), verbose=False)
    with pytest.raises(ArtifactError, match=r"as DSSM: .* describes forward_index\.pt_neural, not ranker\.pt_neural"):
        pn.DSSM.from_url(other)


def test_only_fitted_rankers_are_packed(tmp_path):
    with pytest.raises(RuntimeError, match="is not fitted yet"):
        unfitted("DSSM").build_package(tmp_path / "none.tar.lz4")
    assert not (tmp_path / "none.tar.lz4").exists()


@pytest.mark.parametrize("place", ["{}", "{site}/dssm.tar.lz4"])
def test_a_package_must_have_the_expected_digest(package, website, place):
    found = json.loads(Path(f"{package}.json").read_text())["expected_sha256"]
    address = place.format(package, site=website)
    with pytest.raises((ValueError, AssertionError)):
        pn.DSSM.from_url(address, expected_sha256="0" * 64)
    require_equal(pn.DSSM.from_url(address, expected_sha256=found.upper()))


def test_a_file_that_changed_on_its_way_is_found(tmp_path):
    fitted("DSSM").save(tmp_path / "changed")
    history = tmp_path / "changed" / "history.json"
    history.write_text(history.read_text().replace("1", "2", 1))
    path = pt.Artifact(tmp_path / "changed").build_package(str(tmp_path / "changed.tar.lz4"), verbose=False)
    with pytest.raises(ArtifactError, match=r"history\.json is damaged: it does not have the digest"):
        pn.DSSM.from_url(path)


def test_other_files_are_no_packages(tmp_path):
    (tmp_path / "text.tar.lz4").write_text("words")
    with pytest.raises(ValueError, match="is not a package that build_package made"):
        pn.DSSM.from_url(str(tmp_path / "text.tar.lz4"))


def test_a_package_writes_nothing_outside_of_its_folder(package, tmp_path, home):
    bad = tmp_path / "bad.tar.lz4"
    (tmp_path / "words").write_text("words")
    with lz4.frame.open(bad, "wb") as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        archive.add(tmp_path / "words", "../outside")
        archive.add(tmp_path / "words", str(tmp_path / "absolute"))
    with pytest.raises(ArtifactError, match=r"pt_meta\.json"):
        pn.DSSM.from_url(str(bad))
    assert not (tmp_path / "absolute").exists()
    assert list(home.rglob("outside")) == []


def test_the_hub_keeps_rankers(tmp_path, monkeypatch):
    import huggingface_hub

    hub, made = tmp_path / "hub", []
    monkeypatch.setattr(huggingface_hub, "create_repo", lambda repo, **options: made.append(repo))
    monkeypatch.setattr(huggingface_hub, "create_branch", lambda repo, branch, **options: made.append((repo, branch)))
    monkeypatch.setattr(
        huggingface_hub,
        "upload_folder",
        lambda repo_id, folder_path, revision, **options: shutil.copytree(folder_path, hub / repo_id / revision),
    )

    @contextmanager
    def download(url: str, **options):
        repo, revision, file = url.removeprefix("https://huggingface.co/datasets/").rsplit("/", 2)
        path = hub / repo.removesuffix("/resolve") / revision / file
        if not path.exists():
            raise OSError(url)
        with path.open("rb") as stream:
            yield stream

    monkeypatch.setattr(pt.io, "download_stream", download)
    fitted("DSSM").to_hf("me/dssm@small", pretty_name="A DSSM")
    assert made == ["me/dssm", ("me/dssm", "small")]
    assert "pt.Artifact.from_hf('me/dssm@small')" in (hub / "me" / "dssm" / "small" / "README.md").read_text()
    require_equal(pn.DSSM.from_hf("me/dssm", "small"))
    require_equal(pt.Artifact.from_hf("me/dssm@small"))
    with pytest.raises(ArtifactError, match="hf:me/dssm@small cannot be loaded as Duet"):
        pn.Duet.from_hf("me/dssm@small")
    with pytest.raises(ValueError, match="give one of them"):
        pn.DSSM.from_hf("me/dssm@small", "large")


def test_zenodo_keeps_rankers(tmp_path, monkeypatch):
    kept = {}

    class Answer:
        def json(self):
            places = {name: name for name in ("html", "latest_draft", "bucket", "discard")}
            return {"id": 1234, "links": places}

        def raise_for_status(self):
            pass

    def put(url: str, *, data=None, **options):
        kept[url] = data and b"".join(iter(lambda: data.read(8192), b""))
        return Answer()

    monkeypatch.setattr(pt._artifact.requests, "post", lambda *_, **__: Answer())
    monkeypatch.setattr(pt._artifact.requests, "put", put)
    fitted("DSSM").to_zenodo(sandbox=True)
    assert set(kept) == {"latest_draft", "bucket/artifact.tar.lz4", "bucket/artifact.tar.lz4.json"}

    @contextmanager
    def download(url: str, **options):
        path = tmp_path / "download"
        path.write_bytes(kept[url.replace("https://zenodo.org/records/1234/files", "bucket")])
        with path.open("rb") as stream:
            yield stream

    monkeypatch.setattr(pt.io, "download_stream", download)
    require_equal(pn.DSSM.from_zenodo("1234"))
