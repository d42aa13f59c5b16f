"""Rankers as packages: written for upload, and brought to this machine by PyTerrier's artifacts."""

import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyterrier as pt


class Package(pt.Artifact):
    """A folder that holds an artifact of any type, which PyTerrier packs, uploads and downloads.

    Args:
        path: The folder.

    Example::

        Package("pydocs.dssm").build_package("dssm.tar.lz4")
    """

    @classmethod
    def load(cls, path: str, **options: Any) -> "Package":
        """The folder; a package of this machine is unpacked to PyTerrier's cache."""
        return cls(path if Path(path).is_dir() else _unpacked(Path(path)))


@contextmanager
def packed(save: Callable[[Path], None]) -> Iterator[Package]:
    """What ``save`` writes to a temporary folder, as a package that lasts as long as the block."""
    with tempfile.TemporaryDirectory(prefix="pt_neural-") as folder:
        save(Path(folder, "ranker"))
        yield Package(Path(folder, "ranker"))


def downloaded(url: str, expected_sha256: str | None = None) -> Path:
    """The folder in PyTerrier's cache with what is at a URL, which may be a package or a folder of this machine.

    Args:
        url: An address that ``pt.Artifact.from_url`` knows, ``file:///...``, or a path.
        expected_sha256: The SHA-256 of the package.

    Raises:
        OSError: If it cannot be read.
        ValueError: If the package has another SHA-256.
    """
    if urlsplit(url).scheme == "file":
        url = url2pathname(urlsplit(url).path)
    if expected_sha256 is not None and Path(url).is_file() and (found := _digest(Path(url))) != expected_sha256.lower():
        raise ValueError(f"{url} has the SHA-256 {found}, not {expected_sha256}")
    return Path(Package.from_url(url, expected_sha256=expected_sha256).path)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _unpacked(package: Path) -> Path:
    """The folder in PyTerrier's cache with the files of a package, which may not lie outside of it."""
    folder = Path(pt.io.pyterrier_home(), "artifacts", _digest(package))
    folder.parent.mkdir(exist_ok=True)
    if not folder.exists():
        try:
            with (
                pt.io.finalized_directory(str(folder)) as made,
                pt.io.autoopen(str(package), "rb") as stream,
                tarfile.open(fileobj=stream, mode="r|") as archive,
            ):
                for member in archive:
                    target = Path(made, member.name)
                    if member.isfile() and target.resolve().is_relative_to(Path(made).resolve()):
                        target.parent.mkdir(parents=True, exist_ok=True)
                        with target.open("wb") as file:
                            shutil.copyfileobj(archive.extractfile(member), file)
        except (tarfile.TarError, RuntimeError, EOFError) as error:
            raise ValueError(f"{package} is not a package that build_package made: {error}") from None
    return folder
