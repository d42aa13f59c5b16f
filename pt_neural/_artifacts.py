"""Artifacts on disk: directories that are either complete or absent."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pt_neural._files import ArtifactError, read_json, write_json

METADATA = "pt_meta.json"


@contextmanager
def atomic_directory(
    path: str | os.PathLike, *, overwrite: bool = False, type: str | None = None, format: str | None = None
) -> Iterator[Path]:
    """Yield a temporary directory beside ``path`` to write to, and move it to ``path`` if the block succeeds.

    Args:
        path: The directory to create. Missing parents are created.
        overwrite: Replace an artifact that is already there; it stays untouched until the block ends.
        type: Type of the artifact to be written. If given, an artifact of another type or format at ``path`` is refused
            at once, not only at the end.
        format: Its format.

    Raises:
        FileExistsError: If ``path`` exists and ``overwrite`` is false, if it is a file, or if it holds anything but an
            artifact of the type and format that was written.
    """
    path = Path(path)
    refuse_existing(path, overwrite=overwrite, type=type, format=format)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        written = read_json(temporary / METADATA) if (temporary / METADATA).exists() else {}
        refuse_existing(path, overwrite=overwrite, type=written.get("type"), format=written.get("format"))
        if overwrite:
            _replace_directory(temporary, path)
        else:
            _move_directory(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def refuse_existing(
    path: str | os.PathLike, *, overwrite: bool, type: str | None = None, format: str | None = None
) -> None:
    """Raise FileExistsError if writing an artifact to ``path`` would destroy something."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file; name a directory that does not exist yet")
    if not path.exists() or not any(path.iterdir()):
        return
    if not overwrite:
        raise FileExistsError(f"{path} exists already; pass overwrite=True to replace it, or choose another path")
    if not (path / METADATA).exists():
        raise FileExistsError(f"{path} is not an artifact ({METADATA} is missing); it stays as it is")
    found = _kind(path)
    if type is not None and found != (type, format):
        raise FileExistsError(
            f"{path} holds a {found[0]}.{found[1]}, not a {type}.{format} to be replaced; it stays as it is. "
            "Choose another path, or delete it"
        )


def _kind(directory: Path) -> tuple[str | None, str | None]:
    """Type and format of an artifact; None if its metadata does not say."""
    try:
        metadata = read_json(directory / METADATA)
    except ArtifactError:
        return None, None
    return (metadata.get("type"), metadata.get("format")) if isinstance(metadata, dict) else (None, None)


def _move_directory(source: Path, target: Path) -> None:
    """Move in one step: if another process was faster, its directory stays and is never missing for a moment."""
    with suppress(OSError):  # an empty directory may be there
        target.rmdir()
    try:
        source.rename(target)
    except OSError:
        refuse_existing(target, overwrite=False)
        raise


def _replace_directory(source: Path, target: Path) -> None:
    if not target.exists():
        source.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    target.rename(aside)
    try:
        source.rename(target)
    except OSError:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def write_metadata(directory: str | os.PathLike, *, type: str, format: str, version: int = 1, **details: Any) -> None:
    """Write ``pt_meta.json``, which tells :meth:`pyterrier.Artifact.load` what a directory holds."""
    metadata = {"type": type, "format": format, "package_hint": "pt-neural", "version": version, **details}
    write_json(Path(directory) / METADATA, metadata)


def read_metadata(directory: str | os.PathLike, *, type: str, format: str, version: int = 1) -> dict[str, Any]:
    """Read and check ``pt_meta.json``; ``version`` is the newest version of the format that can be read.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory holds something else, is damaged, or has a newer version.
    """
    directory = Path(directory)
    if not directory.exists():
        raise FileNotFoundError(f"{directory} does not exist")
    if not directory.is_dir():
        raise ArtifactError(f"{directory} is a file; a {type} is a directory")
    metadata = read_json(directory / METADATA)
    found = _kind(directory)
    if found != (type, format):
        raise ArtifactError(f"{directory / METADATA} describes {found[0]}.{found[1]}, not {type}.{format}")
    if not isinstance(metadata.get("version", 1), int):
        raise ArtifactError(f"{directory / METADATA} is damaged: its version is {metadata['version']!r}")
    if metadata.get("version", 1) > version:
        raise ArtifactError(
            f"{directory / METADATA} has version {metadata['version']}, newer than the {version} that this "
            "pt_neural reads; upgrade with: pip install -U pt-neural"
        )
    return metadata
