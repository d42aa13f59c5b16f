import pytest

from pt_neural import LuceneIndex


@pytest.fixture
def build(tmp_path):
    """Build an index in a fresh folder: ``build(documents, **options)``."""

    def build(documents, **options):
        path = tmp_path / f"index{len(list(tmp_path.iterdir()))}"
        return LuceneIndex(path).index(documents, verbose=False, **options)

    return build


@pytest.fixture
def index(build, corpus):
    return build(corpus, separate_fields=["title"])
