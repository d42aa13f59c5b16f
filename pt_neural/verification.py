"""Whether an artifact is, bit by bit, what was written."""

import os
from pathlib import Path

from pt_neural._artifacts import METADATA, has_digests, recover, require_digests
from pt_neural._files import read_json


def verify(path: str | os.PathLike) -> None:
    """Read all files of an artifact, and raise an error unless they are those that were written.

    Every file is compared with the SHA-256 that ``pt_meta.json`` has of it. For Lucene indexes, also of Anserini or
    Pyserini, Lucene's own CheckIndex runs as well, which starts Java. Whoever wants to can forge both: this finds
    damage, not bad intent.

    Args:
        path: The directory of any artifact of this package.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If a file is damaged, missing or was added; the message names it. Also if there are no digests,
            as in artifacts of earlier versions.

    Example::

        pn.verify("clsm.pn")
    """
    path = Path(path).expanduser()
    recover(path)
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is not a directory; verify takes the path of an artifact")
    lucene = sorted({file.parent for file in path.rglob("segments_*")})
    if not lucene or has_digests(read_json(path / METADATA) if (path / METADATA).exists() else None):
        require_digests(path)
    for folder in lucene:
        from pt_neural.lucene.index.check import check_index  # needs Java

        check_index(folder)
