"""Retrieval by blocks of documents finds what a full sort finds, whatever the blocks and the other queries."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.rankers import retriever
from pt_neural.rankers.vectors import Vectors, all_products
from tests.rankers.fitted import CORPUS, KEEPERS, LANGUAGE, TOPICS, fitted, forward, like, vectors

SPLITS = (1, 2, 3, 7, 15, 16, 33)


class Table:
    """Docnos, and how many of them were asked for."""

    def __init__(self, docnos):
        self.docnos, self.asked = np.array(docnos), 0

    def tie_order(self, rows):
        self.asked += len(rows)
        return -np.argsort(np.argsort(self.docnos[rows]))


class Kept:
    def __init__(self, docnos):
        self.docnos = Table(docnos)

    def __len__(self):
        return len(self.docnos.docnos)


def scored(scores: np.ndarray):
    """A model with these scores, ``(queries, documents)``; its queries are row numbers."""
    return SimpleNamespace(score_all=lambda queries, kept, block: scores[queries, block])


def found(scores: np.ndarray, docnos: list[str], num_results: int) -> list[list[tuple[str, float]]]:
    kept = Kept(docnos)
    results = retriever.search(scored(scores), np.arange(len(scores)), len(scores), kept, num_results)
    return [[(docnos[d], s) for d, s in zip(best.documents, best.scores, strict=True)] for best in results]


def sorted_by_hand(scores: np.ndarray, docnos: list[str], num_results: int) -> list[list[tuple[str, float]]]:
    rows = [[(d, float(s)) for d, s in zip(docnos, row, strict=True) if s > -np.inf] for row in scores]
    for row in rows:
        row.sort(key=lambda hit: hit[0], reverse=True)
        row.sort(key=lambda hit: hit[1], reverse=True)
    return [row[:num_results] for row in rows]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("num_results", [1, 5, 40, 1000])
@pytest.mark.parametrize("distinct", [1, 3, 1000])
def test_search_is_a_full_sort(monkeypatch, kind, num_results, distinct):
    random = np.random.default_rng(num_results)
    scores = random.integers(distinct, size=(11, 300)).astype(kind)
    scores[random.random(scores.shape) < 0.1] = -np.inf
    scores[3], scores[4, 7:] = -np.inf, -np.inf
    scores[5].sort()
    scores[6] = -np.sort(-scores[6])
    docnos = [f"d{number}" for number in random.permutation(300)]
    expected = sorted_by_hand(scores, docnos, num_results)
    for documents, queries in [(16_384, 256), (7, 4), (300, 1), (1, 11)]:
        monkeypatch.setattr(retriever, "DOCUMENTS_PER_BLOCK", documents)
        monkeypatch.setattr(retriever, "QUERIES_PER_BLOCK", queries)
        assert found(scores, docnos, num_results) == expected


def test_docnos_are_read_only_where_scores_tie():
    scores, kept = np.random.default_rng(1).random((5, 50_000), dtype=np.float32), Kept(np.arange(50_000).astype(str))
    scores[0, [3, 4]] = 2
    retriever.search(scored(scores), np.arange(5), 5, kept, 100)
    assert 2 <= kept.docnos.asked < 20


@pytest.mark.parametrize("dimensions", [1, 5, 128])
@pytest.mark.parametrize("number", [1, 9, 4096, 5003])
def test_products_do_not_depend_on_the_other_queries(dimensions, number):
    random = np.random.default_rng(dimensions)
    documents, queries = (random.normal(size=(size, dimensions)).astype("f4") for size in (number, 49))
    whole = all_products(queries, documents)
    np.testing.assert_allclose(whole, queries.astype("f8") @ documents.astype("f8").T, atol=1e-4)
    for split in SPLITS:
        parts = [all_products(queries[start : start + split], documents) for start in range(0, 49, split)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    order = random.permutation(49)
    np.testing.assert_array_equal(all_products(queries[order], documents), whole[order])


@pytest.mark.parametrize("dimensions", [1, 5, 128, 300])
def test_products_do_not_depend_on_the_other_documents(dimensions):
    random = np.random.default_rng(dimensions)
    documents, queries = (random.normal(size=(size, dimensions)).astype("f4") for size in (300, 20))
    whole = all_products(queries, documents)
    for split in (*SPLITS, 100):
        parts = [all_products(queries, documents[start : start + split]) for start in range(0, 300, split)]
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


def retrieving(name: str):
    return fitted(name).retriever(forward() if name in LANGUAGE else vectors(name), num_results=4)


@pytest.mark.parametrize("name", [*KEEPERS, *LANGUAGE])
def test_results_do_not_depend_on_blocks_or_other_queries(monkeypatch, name):
    transformer, words = retrieving(name), " ".join(document["text"] for document in CORPUS).split()[:30]
    topics = pd.DataFrame({"query": [*TOPICS["query"], *words, "?", "zebra city", TOPICS["query"][0]]})
    topics.insert(0, "qid", [f"q{number}" for number in range(len(topics))])
    expected = transformer.transform(topics)
    for size in SPLITS:
        parts = [transformer.transform(topics[start : start + size]) for start in range(0, len(topics), size)]
        exact = {"check_exact": True} if name != "SSM" else {"rtol": 0, "atol": 1e-6}  # see test_parts.py
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), expected, **exact)
    for documents, queries, others in [(3, 2, 5), (1, 256, 1024), (8, 1, 1)]:
        monkeypatch.setattr(retriever, "DOCUMENTS_PER_BLOCK", documents)
        monkeypatch.setattr(retriever, "QUERIES_PER_BLOCK", queries)
        monkeypatch.setattr(retriever, "QUERIES_PER_PASS", others)
        again, tolerance = transformer.transform(topics), 1e-6 if name in (*LANGUAGE, "SSM") else 0
        pd.testing.assert_frame_equal(again, expected, check_exact=False, rtol=0, atol=tolerance)


@pytest.mark.parametrize("number", [1001, 1002, 1003])
def test_language_models_score_equal_documents_alike_wherever_they_stand(number, tmp_path):
    random = np.random.default_rng(number)
    words = [f"w{word}" for word in range(40)]
    corpus = [{"docno": f"d{place:04}", "text": " ".join(random.choice(words, 30))} for place in range(number - 1)]
    corpus.append({**corpus[5], "docno": "last"})
    documents = pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)
    model = pn.PLSA(2, unigram_weight=1.0, documents=documents).fit_corpus(documents, verbose=False)
    queries = [" ".join(random.choice(words, length)) for length in (3, 4, 7) for _ in range(5)]
    topics = pd.DataFrame({"qid": [f"q{place}" for place in range(len(queries))], "query": queries})
    found = model.retriever(documents, num_results=number)(topics)
    last, first = (found[found["docno"] == docno].set_index("qid") for docno in ("last", "d0005"))
    assert last["score"].tolist() == first["score"].tolist()
    assert (last["rank"] < first["rank"]).all()  # equal scores by descending docno
    assert len(last) == len(first) == len(queries)


def peak(number: int) -> int:
    """Bytes at the peak of a search among so many documents."""
    documents = np.random.default_rng(7).normal(size=(number, 4)).astype("f4")
    queries, model = Vectors(documents[:8]), pn.LSA(dim=4)
    kept = Kept(np.arange(number))
    kept.vectors = Vectors(documents)
    tracemalloc.start()
    retriever.search(model, queries, 8, kept, 50)
    _, found = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return found


def test_memory_does_not_grow_with_the_collection():
    assert peak(200_000) - peak(40_000) < 160_000  # one byte a document


@pytest.mark.parametrize("name", ["PLSA", "PhraseTranslation"])
def test_language_models_represent_a_collection_once_and_hold_it_on_disk(monkeypatch, name):
    monkeypatch.setattr(retriever, "DOCUMENTS_PER_BLOCK", 3)
    model = like(name)
    transformer, represented = model.retriever(forward()), []
    of_rows = type(model)._represent_rows
    monkeypatch.setattr(
        type(model), "_represent_rows", lambda self, index, rows: represented.extend(rows) or of_rows(self, index, rows)
    )
    first = transformer.transform(TOPICS)
    pd.testing.assert_frame_equal(transformer.transform(TOPICS), first)
    assert represented == list(range(len(CORPUS)))
    documents = model.represent_block(forward(), slice(0, 3))
    for array in (documents.counts.data, documents.lengths, documents.postings.indices):
        assert not array.flags.owndata
        assert not array.flags.writeable
