import math
import pickle
from collections import Counter

import pandas as pd
import pyterrier as pt
import pytest

from pt_neural import LatentConceptExpansion, LuceneIndex

MU = 5
TEXTS = [
    "okapi forest congo okapi",
    "okapi river ituri forest leaf",
    "forest congo ituri river",
    "giraffe leaf savanna giraffe okapi leaf",
    "savanna lion zebra savanna grass lion",
    "river boat congo boat river sand river sand",
    "okapi savanna sand boat lion zebra grass leaf congo congo congo congo congo congo",  # okapi below its share
]
TERMS = [text.split() for text in TEXTS]
LENGTH = sum(map(len, TERMS))
COLLECTION = Counter(term for terms in TERMS for term in terms)


@pytest.fixture
def animals(build):
    return build([{"docno": f"d{i}", "text": text} for i, text in enumerate(TEXTS)], stemmer="none", stopwords="none")


def likelihood(query, document):
    """The textbook's P(Q|D) with Dirichlet smoothing, except that Lucene adds one to the collection's counts."""
    share = {term: (COLLECTION[term] + 1) / (LENGTH + 1) for term in query}
    return math.prod((document.count(t) + MU * share[t]) / (len(document) + MU) for t in query)


def normalised(weights, number=None):
    best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:number]
    return {term: weight / sum(weight for _, weight in best) for term, weight in best}


def results(query, scores):
    rows = [("q1", query, f"d{i}", score) for i, score in scores.items()]
    return pd.DataFrame(rows, columns=["qid", "query", "docno", "score"])


def concepts(lce, frame):
    """The concepts of a frame's only query, whose own terms weigh next to nothing."""
    lce.original_weight = 1e-12
    (weights,) = lce(frame)["query_toks"]
    return normalised(weights)


@pytest.mark.parametrize("query", ["okapi", "okapi congo okapi", "okapi unheard congo"])
def test_it_is_the_relevance_model_where_only_terms_count(animals, query):
    sdm = animals.sdm(weights=(1, 0, 0), mu=MU)
    lce = LatentConceptExpansion(animals, sdm=sdm, smoothing=0, filter_terms=False, fb_terms=50)
    known = [term for term in query.split() if term in COLLECTION]
    relevance_model = Counter()
    for document in (document for document in TERMS if set(known) & set(document)):
        for term in document:
            relevance_model[term] += likelihood(known, document) / len(document)
    frame = lce.concepts(query)
    found = dict(zip(frame["term"], frame["weight"], strict=True))
    assert found == pytest.approx(normalised(relevance_model), rel=1e-4)
    assert frame["weight"].is_monotonic_decreasing


def test_concepts_by_the_equation(animals):
    scores = {0: 1.3, 3: 0.4, 5: -0.2}
    expected = {}
    for term in set().union(*(TERMS[i] for i in scores)):
        share = COLLECTION[term] / LENGTH
        expected[term] = sum(
            math.exp(
                score + 0.7 * math.log(0.8 * TERMS[i].count(term) / len(TERMS[i]) + 0.2 * share) - 0.4 * math.log(share)
            )
            for i, score in scores.items()
        )
    lce = LatentConceptExpansion(
        animals,
        fb_terms=6,
        smoothing=0.2,
        document_weight=0.7,
        collection_weight=0.4,
        filter_terms=False,
        sdm=animals.sdm("bm25"),
    )
    found = concepts(lce, results("okapi congo", scores))
    assert found == pytest.approx(normalised(expected, 6))
    assert list(found) == list(normalised(expected, 6))


def test_the_query_keeps_its_weights_and_the_concepts_have_the_rest(animals):
    lce = LatentConceptExpansion(animals, original_weight=0.8, filter_terms=False, fb_terms=3)
    (weights,) = lce(pd.DataFrame({"qid": ["q1"], "query": ["okapi congo okapi"]}))["query_toks"]
    found = lce.concepts("okapi congo okapi").set_index("term")["weight"]
    expected = Counter({"okapi": 2.0, "congo": 1.0})
    expected.update({term: 3 * 0.2 / 0.8 * weight for term, weight in found.items()})
    assert weights == pytest.approx(dict(expected))
    lce.original_weight = 1.0
    (weights,) = lce(pd.DataFrame({"qid": ["q1"], "query": ["okapi congo okapi"]}))["query_toks"]
    assert {term: weight for term, weight in weights.items() if weight} == {"okapi": 2.0, "congo": 1.0}


def test_results_that_come_in_are_the_feedback_documents(animals):
    sdm = animals.sdm(mu=MU)
    lce = LatentConceptExpansion(animals, fb_docs=2, filter_terms=False, sdm=sdm)
    topics = pd.DataFrame({"qid": ["q1", "q2"], "query": ["okapi congo", "river sand"], "quality": [1, 2]})
    retrieved, given = lce(topics), (sdm >> lce)(topics)
    assert list(given.columns) == ["qid", "query", "quality", "query_toks"]
    for one, other in zip(retrieved["query_toks"], given["query_toks"], strict=True):
        assert one == pytest.approx(other)
    assert (lce >> sdm)(topics)["docno"].tolist() == (sdm >> lce >> sdm)(topics)["docno"].tolist()
    alone = lce(topics.iloc[1:])
    assert alone["query_toks"][0] == retrieved["query_toks"][1]


def test_the_best_rows_count_once_each_in_any_order(animals):
    lce = LatentConceptExpansion(animals, fb_docs=2, filter_terms=False)
    best = results("okapi", {0: 2.0, 1: 1.0})
    others = pd.concat([results("okapi", {5: 0.5, 4: math.nan, 2: math.inf}), best, best])
    assert lce(others)["query_toks"][0] == lce(best)["query_toks"][0]


def test_likelihoods_and_not_orders_weigh_documents(animals):
    lce = LatentConceptExpansion(animals, filter_terms=False, smoothing=0, sdm=animals.sdm("bm25"))
    equal = concepts(lce, results("boat", {0: 0.0, 4: 0.0}))
    unequal = concepts(lce, results("boat", {0: math.log(3), 4: 0.0}))
    assert unequal["congo"] / unequal["lion"] == pytest.approx(3 * equal["congo"] / equal["lion"])
    huge = concepts(lce, results("boat", {0: 5000 + math.log(3), 4: 5000.0}))
    assert huge == pytest.approx(unequal)


def test_equal_concepts_are_in_order_of_terms(animals):
    lce = LatentConceptExpansion(animals, filter_terms=False, fb_terms=3, smoothing=0)
    found = concepts(lce, results("leaf", {2: 1.0}))
    assert list(found) == ["congo", "forest", "ituri", "leaf"]
    assert found["congo"] == found["forest"] == found["ituri"]


def test_terms_that_rm3_would_not_add(build):
    words = ["a", "b" * 21, "x-ray", "common", "fine", "neuf", "40"]
    others = [{"docno": f"x{i}", "text": f"filler{i}" + " common" * (i < 3)} for i in range(20)]
    index = build([{"docno": "d1", "text": " ".join(["okapi", *words])}, *others], stemmer="none", stopwords="none")
    lce = LatentConceptExpansion(index, fb_terms=50)
    assert set(lce.concepts("okapi")["term"]) == {"okapi", "fine", "neuf", "40", "ray"}
    lce.filter_terms = False
    assert set(lce.concepts("okapi")["term"]) == {"okapi", "fine", "neuf", "40", "ray", "a", "b" * 21, "x", "common"}


def test_queries_without_terms_or_documents(animals):
    lce = LatentConceptExpansion(animals, filter_terms=False)
    topics = pd.DataFrame({"qid": list("abcd"), "query": ["", None, "unheard unheard", "okapi"]})
    weights = lce(topics)["query_toks"].tolist()
    assert weights[:3] == [{}, {}, {"unheard": 2.0}]
    assert len(weights[3]) == 10
    assert lce.concepts("unheard").empty
    assert lce.concepts("unheard").dtypes.tolist() == lce.concepts("okapi").dtypes.tolist()


def test_a_document_without_terms_adds_nothing(build):
    documents = [{"docno": "full", "text": "okapi forest"}, {"docno": "empty", "text": ""}]
    lce = LatentConceptExpansion(build(documents), filter_terms=False)
    frame = pd.DataFrame({"qid": "q1", "query": "okapi", "docno": ["full", "empty"], "score": [1.0, 2.0]})
    assert lce(frame)["query_toks"][0] == lce(frame[:1])["query_toks"][0]
    assert lce(frame[1:])["query_toks"][0] == {"okapi": 1.0}
    assert list(lce(frame.assign(note=1).rename(columns={"note": 5})).columns) == ["qid", "query", "query_toks"]


def test_weights_that_come_in_are_expanded_once_more(animals):
    lce = LatentConceptExpansion(animals, filter_terms=False, original_weight=0.5, fb_terms=4)
    frame = pd.DataFrame({"qid": ["q1"], "query": ["okapi"], "query_toks": [{"okapi": 1.0, "congo": 3.0}]})
    (weights,) = lce(frame)["query_toks"]
    assert sum(weights.values()) == pytest.approx(8)
    assert weights["congo"] > 3
    found = (lce >> animals.sdm() >> lce >> animals.sdm()).search("okapi")
    assert found["docno"][0] == "d0"
    numbered = lce(frame.assign(query_toks=[{1886: 2.0}]))["query_toks"][0]
    assert numbered["1886"] == 2


def test_documents_are_kept_and_scored_anew(animals):
    bm25, sdm = animals.bm25(), animals.sdm(mu=MU)
    lce = LatentConceptExpansion(animals, filter_terms=False, fb_docs=2, keep_documents=True)
    candidates = bm25.search("okapi congo")
    scored = (lce >> sdm)(candidates)
    assert scored["docno"].tolist() == candidates["docno"].tolist()
    lce.keep_documents = False
    retrieved = sdm(lce(candidates)).set_index("docno")["score"]
    assert scored["score"].tolist() == pytest.approx(retrieved[scored["docno"]].tolist())
    assert scored["score"].tolist() != pytest.approx(sdm(candidates)["score"].tolist())


def test_concepts_of_a_field(build):
    documents = [
        {"docno": "d1", "title": "okapi facts", "text": "forest"},
        {"docno": "d2", "title": "x", "text": "okapi"},
    ]
    index = build(documents, separate_fields=["title"])
    lce = LatentConceptExpansion(index, sdm=index.sdm(field="title"), filter_terms=False)
    assert lce.concepts("okapi")["term"].tolist() == ["fact", "okapi"]
    with pytest.raises(ValueError, match="no field 'body'"):
        LatentConceptExpansion(index, sdm=index.sdm(field="body")).concepts("okapi")


def test_errors_say_what_to_do(animals, build, corpus):
    with pytest.raises(ValueError, match=r"which RM3 and LatentConceptExpansion need.*indexer\(vectors=True"):
        LatentConceptExpansion(build(corpus, positions=False, vectors=False, store_text=False)).concepts("okapi")
    with pytest.raises(ValueError, match=r"without positions.*indexer\(positions=True"):
        LatentConceptExpansion(build(corpus, positions=False)).concepts("okapi")
    lce = LatentConceptExpansion(animals)
    with pytest.raises(pt.validate.InputValidationError, match="score"):
        lce(pd.DataFrame({"qid": ["q1"], "query": ["okapi"], "docno": ["d1"]}))
    with pytest.raises(ValueError, match=r"docno 'd99' is not in "):
        lce(results("okapi", {99: 1.0}))
    with pytest.raises(ValueError, match="another index"):
        LatentConceptExpansion(animals, sdm=LuceneIndex("elsewhere").sdm())


def test_impossible_settings():
    for setting, error in [
        ({"fb_docs": 0}, "at least 1"),
        ({"fb_terms": 0}, "at least 1"),
        ({"original_weight": 0}, "above 0"),
        ({"original_weight": 1.1}, "at most 1"),
        ({"smoothing": 1}, "use less"),
        ({"smoothing": -0.1}, "at least 0"),
        ({"document_weight": 0}, "above 0"),
        ({"collection_weight": -1}, "at least 0"),
    ]:
        with pytest.raises(ValueError, match=error):
            LatentConceptExpansion(LuceneIndex("nowhere"), **setting)


def test_arguments_of_another_kind():
    index = LuceneIndex("nowhere")
    with pytest.raises(TypeError, match="index must be a Lucene index"):
        LatentConceptExpansion("pydocs.lucene")
    with pytest.raises(TypeError, match=r"made by index\.sdm"):
        LatentConceptExpansion(index, sdm=index.bm25())
    with pytest.raises(TypeError, match="smoothing must be a number"):
        LatentConceptExpansion(index, smoothing="much")


def test_names_equality_and_pickles(animals):
    def make(**options):
        return LatentConceptExpansion(animals, filter_terms=False, **options)

    name = animals.name
    assert repr(LatentConceptExpansion(animals)) == (
        f"LatentConceptExpansion('{name}', fb_docs=10, fb_terms=10, original_weight=0.7)"
    )
    assert repr(make(smoothing=0.2)).endswith("original_weight=0.7, smoothing=0.2, filter_terms=False)")
    assert "sdm=SDM(" in repr(make(sdm=animals.sdm(window=4)))
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make() != make(fb_docs=3)
    assert make() != make(sdm=animals.sdm(mu=7))
    assert pickle.loads(pickle.dumps(make())) == make()


def test_a_progress_bar_where_it_is_wanted(animals, capfd):
    LatentConceptExpansion(animals).concepts("okapi")
    assert capfd.readouterr().err == ""
    LatentConceptExpansion(animals, verbose=True).concepts("okapi")
    shown = capfd.readouterr().err
    assert "original_weight=0.7) documents" in shown
    assert "original_weight=0.7) concepts" in shown


def test_a_retriever_is_made_of_it(animals):
    lce, queries = LatentConceptExpansion(animals, fb_docs=2), pd.DataFrame({"qid": ["1"], "query": ["okapi congo"]})
    expected = (lce >> animals.sdm(num_results=3)).transform(queries)
    assert lce.retriever(num_results=3).transform(queries).equals(expected)
    assert len(expected) == 3
    with pytest.raises(Exception, match="num_result"):
        lce.retriever(num_result=3)
