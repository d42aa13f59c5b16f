"""Pyserini's prebuilt indexes, by name."""

import difflib
import importlib
import tarfile
from pathlib import Path
from types import ModuleType

from pt_neural.lucene.java.jvm import in_java

INVERTED = ("TF_INDEX_INFO", "IMPACT_INDEX_INFO")  # Pyserini's tables of indexes with terms, by name
VECTORS = ("LUCENE_HNSW_INDEX_INFO", "LUCENE_FLAT_INDEX_INFO", "FAISS_INDEX_INFO")


def download(name: str) -> Path:
    """The folder of a prebuilt index, which Pyserini downloads if it is not there yet.

    Errors are those of :meth:`LuceneIndex.from_prebuilt`.
    """
    try:
        pyserini = _import_pyserini()
        _require_inverted(name, pyserini)
    except OSError as error:  # pyserini 2 asks the network for its tables
        raise OSError(f"pyserini cannot reach its list of prebuilt indexes; is there a network? {error}") from error
    try:
        there = pyserini.check_downloaded(name)
        return Path(pyserini.download_prebuilt_index(name, verbose=not there))
    except (OSError, ValueError, AssertionError, tarfile.TarError) as error:  # what Pyserini raises, by its version
        raise OSError(
            f"pyserini could not download the prebuilt index {name!r} to {pyserini.get_cache_home()}: {error} "
            "(without a network, copy the folder of the index from elsewhere, and open it with LuceneIndex(path))"
        ) from error


@in_java
def _import_pyserini() -> ModuleType:
    """Pyserini's downloads; its tables come from Anserini's jar, or from the network, when they are imported."""
    try:
        return importlib.import_module("pyserini.util")
    except OSError:
        raise
    except Exception as error:  # pyserini is as good as what it imports, and jnius has one exception type for Java's
        raise ImportError(f"pyserini, whose prebuilt indexes these are, cannot be imported: {error!r:.500}") from error


def _require_inverted(name: str, pyserini: ModuleType) -> None:
    if any(name in getattr(pyserini, table) for table in INVERTED):
        return
    if any(name in getattr(pyserini, table) for table in VECTORS):
        raise ValueError(f"{name!r} is an index of vectors, which pyserini searches; LuceneIndex searches terms")
    known = [other for table in INVERTED for other in getattr(pyserini, table)]
    near = difflib.get_close_matches(name, known, n=5, cutoff=0)
    raise ValueError(f"pyserini has no prebuilt index {name!r}; the nearest names are {', '.join(near)}")
