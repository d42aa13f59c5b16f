import pyterrier as pt
import pytest

from pt_neural.lucene.adapter import lucene_metadata


def test_an_index_is_recognised_without_our_metadata(index, monkeypatch):
    class Ours:
        def load(self):
            return lucene_metadata

    others = pt.utils.entry_points
    adapters = "pyterrier.artifact.metadata_adapter"
    monkeypatch.setattr(pt.utils, "entry_points", lambda group: [Ours()] if group == adapters else others(group))
    (index.path / "pt_meta.json").unlink()
    assert pt.Artifact.load(str(index.path)) == index
    with pytest.raises(ValueError, match="No implementation found"):
        pt.Artifact.load(str(index.path.parent))
