"""How PyTerrier recognises an index that Anserini or Pyserini has built, without ``pt_meta.json``."""

from collections.abc import Sequence


def lucene_metadata(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    """Metadata for :meth:`pyterrier.Artifact.load` if the files in ``listing`` are those of a Lucene index."""
    if any(name.startswith("segments_") for name in listing):
        return {"type": "sparse_index", "format": "anserini", "package_hint": "pt-neural"}
    return None
