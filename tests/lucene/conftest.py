import json
import random
import shutil

import pandas as pd
import pytest

from pt_neural import LuceneIndex, LuceneShards


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


@pytest.fixture(scope="session")
def impacts():
    """The impacts of four documents, as a model of learned sparse retrieval gives them; "the" is in all of them."""
    return {
        "d1": {"okapi": 7, "##pi": 2, "the": 1},
        "d2": {"okapi": 3, "giraffe": 9, "the": 1},
        "d3": {"giraffe": 1, "the": 1, "neck": 120},
        "d4": {"the": 1},
    }


@pytest.fixture(scope="session")
def impact_index(impacts, tmp_path_factory):
    """Their index, built by Anserini as its prebuilt ones are; tests must not change it."""
    folder = tmp_path_factory.mktemp("impacts")
    lines = (json.dumps({"id": docno, "contents": "", "vector": vector}) for docno, vector in impacts.items())
    (folder / "source").mkdir()
    (folder / "source" / "vectors.jsonl").write_text("\n".join(lines))
    options = {"positions": False, "options": ["-impact", "-pretokenized"], "verbose": False}
    return LuceneIndex(folder / "index").index_collection("JsonVectorCollection", folder / "source", **options)


@pytest.fixture
def own_index(index, tmp_path):
    """A copy of the index, which the test may change."""
    return LuceneIndex(shutil.copytree(index.path, tmp_path / "own"))


WORDS = [f"word{i}" for i in range(60)]


def skewed_texts(number, seed):
    """Texts of skewed words, short enough for many ties."""
    rng = random.Random(seed)
    weights = [1 / (1 + i) for i in range(len(WORDS))]
    return [" ".join(rng.choices(WORDS, weights, k=rng.randint(3, 12))) for _ in range(number)]


@pytest.fixture(scope="session")
def word_documents():
    """400 documents; only the first three have a note."""
    docnos = [f"d{i:03}" for i in range(400)]
    random.Random(1).shuffle(docnos)
    texts = skewed_texts(400, 2)
    notes = [{"note": "word1 word2"}] * 3 + [{}] * 397
    return [
        {"docno": docno, "title": text[:20], "text": text} | note
        for docno, text, note in zip(docnos, texts, notes, strict=True)
    ]


@pytest.fixture(scope="session")
def word_topics():
    """Queries for these documents."""
    queries = [*skewed_texts(30, 3), "word3 word3", "unheard", ""]
    return pd.DataFrame({"qid": [f"q{i}" for i in range(len(queries))], "query": queries})


@pytest.fixture(scope="session")
def whole(build, word_documents):
    """One index of these documents."""
    return build(word_documents, separate_fields=["title", "note"])


@pytest.fixture(scope="session")
def in_shards(word_documents, tmp_path_factory):
    """Return these documents in a number of shards, built once a session: tests must not change them."""
    made = {}

    def in_shards(number):
        if number not in made:
            index = LuceneShards(tmp_path_factory.mktemp("shards") / "index")
            made[number] = index.index(word_documents, shards=number, separate_fields=["title", "note"], verbose=False)
        return made[number]

    return in_shards
