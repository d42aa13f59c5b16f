"""Artifacts on disk: directories that are complete or absent, also after a crash, and replaced in one step."""

import ctypes
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import Any

from pt_neural._files import DISK_FULL, ArtifactError, DiskFullError, free_bytes, read_json, sync, write_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

METADATA = "pt_meta.json"
DIGESTS, OWN_DIGEST = "sha256", "metadata_sha256"  # in the metadata; of the files, and of all other metadata

_HERE, _EXCHANGE = -100, 2  # arguments of renameat2: AT_FDCWD, RENAME_EXCHANGE
_CANNOT_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
_LOOKS, _PAUSE = 20, 0.01  # and the seconds between two of them
_CHANGED_MEANWHILE = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY)


@contextmanager
def atomic_directory(
    path: str | os.PathLike, *, overwrite: bool = False, type: str | None = None, format: str | None = None
) -> Iterator[Path]:
    """Yield a temporary directory beside ``path`` to write to, and move it to ``path`` if the block succeeds.

    Everything is on the disk before it is moved. Metadata that the block has written get the digests of all files. What
    writers that were killed have left beside ``path`` is removed.

    Args:
        path: The directory to create. Missing parents are created.
        overwrite: Replace an artifact that is already there. It stays untouched until the block ends, and is then
            replaced in one step where the system can do that. If two writers replace it, the later one wins.
        type: Type of the artifact to be written. If given, an artifact of another type or format at ``path`` is refused
            at once, not only at the end.
        format: Its format.

    Raises:
        FileExistsError: If ``path`` exists and ``overwrite`` is false, if it is a file, or if it holds anything but an
            artifact of the type and format that was written.
        OSError: If the disk is full, or fails.
    """
    path = Path(path)
    if path.is_symlink():
        path = path.resolve()  # the link stays
    refuse_existing(path, overwrite=overwrite, type=type, format=format)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    temporary, lock = _make_temporary(path)
    try:
        try:
            yield temporary
            _seal(temporary)
        except OSError as error:
            if error.errno not in DISK_FULL or isinstance(error, DiskFullError):
                raise
            written = sum(file.stat().st_size for file in _files(temporary))
            message = f"the disk is full: more than {written:,} bytes are needed, and {free_bytes(path)} are free"
            raise DiskFullError(error.errno, message, os.fspath(path)) from None
        written = read_json(temporary / METADATA) if (temporary / METADATA).exists() else {}
        refuse_existing(path, overwrite=overwrite, type=written.get("type"), format=written.get("format"))
        if overwrite:
            _replace_directory(temporary, path)
        else:
            _move_directory(temporary, path)
        sync(path.parent)
    finally:
        _remove(temporary)  # what was written, or what it has replaced
        if lock is not None:
            os.close(lock)


def _make_temporary(path: Path) -> tuple[Path, int | None]:
    """A new directory beside a path, and its lock."""
    while True:
        directory = _sibling(path, "tmp")
        directory.mkdir()
        with suppress(BlockingIOError, FileNotFoundError):  # another writer takes it for a leftover
            lock = _lock(directory)
            if lock is None or directory.exists():
                return directory, lock
            os.close(lock)


def _lock(directory: Path) -> int | None:
    """Lock a directory until the handle is closed or the process ends; None where there are no such locks.

    BlockingIOError if it is locked already.
    """
    if fcntl is None:
        return None
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:  # some network file systems
        os.close(handle)
        return None
    return handle


def _sibling(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.{kind}")


def _siblings(path: Path, kind: str) -> list[Path]:
    """What writers have beside a path: ``tmp``, unfinished, or ``old``, moved aside; the latest first."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\.{kind}")
    times = {}
    with suppress(FileNotFoundError), os.scandir(path.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name):
                with suppress(FileNotFoundError):
                    times[Path(entry.path)] = entry.stat(follow_symlinks=False).st_ctime_ns
    return sorted(times, key=times.__getitem__, reverse=True)


def _remove_leftovers(path: Path) -> None:
    """Remove what writers that are gone have left beside a path."""
    for leftover in [*_siblings(path, "tmp"), *_siblings(path, "old")]:
        with suppress(OSError):
            lock = _lock(leftover)
            if lock is not None:
                _remove(leftover)
                os.close(lock)


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _seal(directory: Path) -> None:
    """Add the digests of all files to the metadata, and wait until everything is on the disk."""
    if (directory / METADATA).exists():
        metadata = read_json(directory / METADATA)
        metadata[DIGESTS] = digests(directory)
        metadata[OWN_DIGEST] = _own_digest(metadata)
        write_json(directory / METADATA, metadata)
    for file in _files(directory):
        sync(file)
    for folder in [directory, *(folder for folder in directory.rglob("*") if folder.is_dir())]:
        sync(folder)


def digests(directory: Path) -> dict[str, str]:
    """The SHA-256 of each file of an artifact but its metadata, by its path in the directory."""
    files = (file for file in _files(directory) if file != directory / METADATA)
    return {file.relative_to(directory).as_posix(): _digest(file) for file in files}


def _files(directory: Path) -> list[Path]:
    return [file for file in sorted(directory.rglob("*")) if file.is_file()]


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _own_digest(metadata: dict[str, Any]) -> str:
    """The SHA-256 of everything else in the metadata."""
    others = {name: value for name, value in metadata.items() if name != OWN_DIGEST}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def refuse_existing(
    path: str | os.PathLike, *, overwrite: bool, type: str | None = None, format: str | None = None
) -> None:
    """Raise FileExistsError if writing an artifact to ``path`` would destroy something."""
    # Where artifacts are replaced in two steps, another writer may be between them: what is there is looked at again.
    for _ in range(0 if _renameat2() is not None else _LOOKS):
        with suppress(FileExistsError, FileNotFoundError):
            return _refuse(Path(path), overwrite=overwrite, type=type, format=format)
        time.sleep(_PAUSE)
    return _refuse(Path(path), overwrite=overwrite, type=type, format=format)


def _refuse(path: Path, *, overwrite: bool, type: str | None, format: str | None) -> None:
    recover(path)
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


def recover(path: str | os.PathLike) -> None:
    """Put back what a writer had moved aside when it was killed, if there is nothing at a path."""
    path = Path(path)
    if not path.exists():
        for aside in _siblings(path, "old")[:1]:
            with suppress(OSError):  # another process does the same
                aside.rename(path)


def _kind(directory: Path) -> tuple[str | None, str | None]:
    """Type and format of an artifact; None if its metadata does not say."""
    try:
        metadata = read_json(directory / METADATA)
    except ArtifactError:
        return None, None
    return _type_and_format(metadata)


def _type_and_format(metadata: Any) -> tuple[str | None, str | None]:
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
    """Move in one step, so that ``source`` is what was at ``target``, or is gone."""
    while True:
        try:
            if not target.exists():
                source.rename(target)
            elif not _exchange(source, target):
                _move_aside(source, target)
            return
        except OSError as error:
            if error.errno not in _CHANGED_MEANWHILE or not source.exists():
                raise
            # Another writer has put something there, or has moved it; its artifact is replaced in turn.


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two directories in one step; false where the system or the file system cannot."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), os.fspath(second))


@cache
def _renameat2() -> Any:
    """The function of the C library, which Linux has."""
    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (TypeError, AttributeError):
        return None


def _move_aside(source: Path, target: Path) -> None:
    """Move in two steps, between which there is nothing at the target; :func:`recover` puts it back."""
    aside, lock = _sibling(target, "old"), None
    with suppress(BlockingIOError):  # it is locked as it should be
        lock = _lock(target)
    try:
        target.rename(aside)
        try:
            source.rename(target)
        except OSError:
            if not target.exists():
                aside.rename(target)
            raise
        finally:
            if target.exists():
                _remove(aside)
    finally:
        if lock is not None:
            os.close(lock)


def write_metadata(directory: str | os.PathLike, *, type: str, format: str, version: int = 1, **details: Any) -> None:
    """Write ``pt_meta.json``, which tells :meth:`pyterrier.Artifact.load` what a directory holds."""
    metadata = {"type": type, "format": format, "package_hint": "pt-neural", "version": version, **details}
    write_json(Path(directory) / METADATA, metadata)


def read_metadata(
    directory: str | os.PathLike, *, type: str, format: str, version: int = 1, verify: bool | None = False
) -> dict[str, Any]:
    """Read and check ``pt_meta.json``.

    Args:
        directory: The artifact.
        type: Its type.
        format: Its format.
        version: The newest version of the format that can be read.
        verify: Compare all files with their digests. None: only those of artifacts that ``from_url`` or ``from_hf`` has
            downloaded, if they have digests.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory holds something else, is damaged, or has a newer version.
    """
    directory = Path(directory)
    recover(directory)
    if not directory.exists():
        raise FileNotFoundError(f"{directory} does not exist; it was to hold a {type}")
    if not directory.is_dir():
        raise ArtifactError(f"{directory} is a file; a {type} is a directory")
    metadata = read_json(directory / METADATA)
    found = _type_and_format(metadata)
    if found != (type, format):
        raise ArtifactError(f"{directory / METADATA} describes {found[0]}.{found[1]}, not {type}.{format}")
    if not isinstance(metadata.get("version", 1), int):
        raise ArtifactError(f"{directory / METADATA} is damaged: its version is {metadata['version']!r}")
    if metadata.get("version", 1) > version:
        raise ArtifactError(
            f"{directory / METADATA} has version {metadata['version']}, newer than the {version} that this "
            "pt_neural reads; upgrade with: pip install -U pt-neural"
        )
    if verify or (verify is None and has_digests(metadata) and _is_downloaded(directory)):
        require_digests(directory)
    return metadata


def require_unchanged(directory: str | os.PathLike, metadata: dict[str, Any]) -> None:
    """Raise ArtifactError if an artifact is no longer the one that these metadata are of."""
    try:
        found = read_json(Path(directory) / METADATA)
    except ArtifactError:
        found = None
    if found != metadata:
        raise ArtifactError(f"{directory} was rebuilt or deleted since it was opened; open it again")


@contextmanager
def unchanged(directory: str | os.PathLike, metadata: dict[str, Any]) -> Iterator[None]:
    """Read files of an artifact in the block; ArtifactError if they may be those of one that has taken its place."""
    try:
        yield
    finally:
        require_unchanged(directory, metadata)


def opened_lazily(read: Callable[[Any], Any]) -> cached_property:
    """A property of an artifact that is read from its files on first use, if they are still those of ``_metadata``.

    Example::

        @opened_lazily
        def vocabulary(self) -> Vocabulary:
            return Vocabulary.load(self.path / "vocabulary")
    """

    @wraps(read)
    def read_unchanged(artifact: Any) -> Any:
        with unchanged(artifact.path, artifact._metadata):
            return read(artifact)

    return cached_property(read_unchanged)


def has_digests(metadata: Any) -> bool:
    """Whether metadata have digests, as all since this package writes them; damaged ones still count."""
    return isinstance(metadata, dict) and bool(metadata.keys() & {DIGESTS, OWN_DIGEST})


def require_digests(directory: Path) -> None:
    """Raise ArtifactError unless the files of an artifact are, bit by bit, those that were written."""
    metadata = read_json(directory / METADATA)
    if not has_digests(metadata):
        raise ArtifactError(
            f"{directory / METADATA} has no digests to verify the files by: an earlier pt_neural, or another program, "
            "wrote them; write the artifact again"
        )
    if metadata.get(OWN_DIGEST) != _own_digest(metadata):
        raise ArtifactError(f"{directory / METADATA} is damaged: it does not have its digest")
    written, found = metadata[DIGESTS], digests(directory)
    if missing := sorted(written.keys() - found.keys()):
        raise ArtifactError(f"{directory / missing[0]} is missing; the directory is not a complete artifact")
    if changed := [name for name in written if found[name] != written[name]]:
        raise ArtifactError(f"{directory / changed[0]} is damaged: it does not have the digest that {METADATA} names")
    if added := sorted(found.keys() - written.keys()):
        raise ArtifactError(f"{directory / added[0]} was not written with the artifact; delete it")


def _is_downloaded(directory: Path) -> bool:
    """Whether an artifact is in the folder that PyTerrier downloads to."""
    import pyterrier as pt  # which takes a second; some artifacts are read without it

    return directory.resolve().parent == Path(pt.io.pyterrier_home(), "artifacts").resolve()
