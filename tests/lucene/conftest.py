import json
import shutil

import pytest

from pt_neural import LuceneIndex


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Return an index of ``build(documents, **options)``, built once a session: tests must not change it."""
    indexes = {}

    def build(documents, **options):
        key = json.dumps([list(documents), options], sort_keys=True)
        if key not in indexes:
            path = tmp_path_factory.mktemp("lucene") / f"index{len(indexes)}"
            indexes[key] = LuceneIndex(path).index(documents, verbose=False, **options)
        return indexes[key]

    return build


@pytest.fixture
def index(build, corpus):
    return build(corpus, separate_fields=["title"])


@pytest.fixture
def own_index(index, tmp_path):
    """A copy of the index, which the test may change."""
    return LuceneIndex(shutil.copytree(index.path, tmp_path / "own"))
