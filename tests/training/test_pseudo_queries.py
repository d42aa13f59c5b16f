import random

import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural.text import tokenise

ANIMALS = [
    {"docno": "o", "title": "The shy okapi", "text": "The shy okapi. It lives in Congo. Its neck is long! It eats."},
    {"docno": "g", "title": "Giraffes of Africa", "text": "They eat leaves of trees.\nThey are very tall animals"},
    {"docno": "z", "title": "", "text": "A single sentence about the zebra and nothing else"},
    {"docno": "e", "title": "Empty", "text": ""},
]


def texts(docs):
    return {document["docno"]: document for document in docs.get_corpus_iter(verbose=False)}


def judged(docs):
    """The documents of each query's text, over both splits."""
    splits = [docs.get_topics(split).merge(docs.get_qrels(split), on="qid") for split in ("train", "dev")]
    frame = pd.concat(splits)
    return frame.groupby("query").apply(lambda rows: dict(zip(rows["docno"], rows["label"], strict=True))).to_dict()


def many(number=300):
    drawn = random.Random(1)
    words = [f"w{place}" for place in range(500)]
    sentences = [[" ".join(drawn.choices(words, k=6)) + "." for _ in range(4)] for _ in range(number)]
    return [{"docno": f"d{place}", "text": " ".join(each)} for place, each in enumerate(sentences)]


def test_titles_are_queries_for_documents_that_have_none_any_more():
    docs = pn.pseudo_queries(iter(ANIMALS), kind="title", dev=0)
    assert judged(docs) == {"The shy okapi": {"o": 1}, "Giraffes of Africa": {"g": 1}}
    found = texts(docs)
    assert {document["title"] for document in found.values()} == {""}
    assert found["o"]["text"] == "It lives in Congo. Its neck is long! It eats."
    assert found["g"]["text"] == ANIMALS[1]["text"]
    assert docs.report == {"documents": 4, "no title": 1, "no text beside the title": 1, "train queries": 2}
    assert repr(docs).startswith("PseudoQueries(documents: 4, no title: 1")


def test_a_sentence_is_a_query_for_the_rest():
    docs = pn.pseudo_queries(ANIMALS, kind="sentence", kept=0, dev=0)
    queries, found = judged(docs), texts(docs)
    assert sorted(document for labels in queries.values() for document in labels) == ["g", "o"]
    for query, labels in queries.items():
        (docno,) = labels
        before = next(document for document in ANIMALS if document["docno"] == docno)
        assert query in before["text"].replace("\n", " ")
        assert len(tokenise(query)) >= 3
        rest = sorted(tokenise(query) + tokenise(found[docno]["text"]))
        assert rest == sorted(tokenise(before["text"]))
        assert found[docno]["title"] == before["title"]
    assert found["z"]["text"] == ANIMALS[2]["text"]
    assert docs.report["no sentence to take out"] == 2


def test_one_document_in_ten_keeps_its_sentence_and_one_query_in_ten_is_dev():
    corpus = many()
    docs = pn.pseudo_queries(corpus)
    found, before = texts(docs), {document["docno"]: document["text"] for document in corpus}
    kept = [docno for docno in before if found[docno]["text"] == before[docno]]
    assert 15 <= len(kept) <= 45
    train, dev = docs.get_topics("train"), docs.get_topics("dev")
    assert 15 <= len(dev) <= 45
    assert len(train) + len(dev) == len(corpus) == docs.report["train queries"] + docs.report["dev queries"]
    assert not {*map(frozenset, map(tokenise, train["query"]))} & {*map(frozenset, map(tokenise, dev["query"]))}
    assert docs.report["dev queries"] == len(docs.get_qrels("dev"))


@pytest.mark.parametrize("kind", ["sentence", "span"])
def test_the_seed_decides_and_the_order_of_documents_does_not(kind):
    corpus = many(40)
    first, again = (pn.pseudo_queries(each, kind=kind) for each in (corpus, corpus[::-1]))
    assert judged(first) == judged(again)
    assert texts(first) == texts(again)
    assert judged(first) != judged(pn.pseudo_queries(corpus, kind=kind, seed=14))


def test_spans_need_no_sentences():
    corpus = [{"docno": f"d{n}", "text": " ".join(f"w{n}x{place}" for place in range(20))} for n in range(60)]
    docs = pn.pseudo_queries(corpus, kind="span", kept=0, dev=0)
    found, lengths = texts(docs), set()
    for query, labels in judged(docs).items():
        (docno,) = labels
        words, whole = query.split(), corpus[int(docno[1:])]["text"].split()
        place = whole.index(words[0])
        assert whole[place : place + len(words)] == words
        assert found[docno]["text"].split() == whole[:place] + whole[place + len(words) :]
        lengths.add(len(words))
    assert lengths == set(range(3, 11))
    short = pn.pseudo_queries([*corpus, {"docno": "short", "text": "five words are not enough"}], kind="span")
    assert short.report["too short to take words out"] == 1


def test_link_texts_are_queries_for_their_targets():
    corpus = [
        {"docno": "a", "text": "see b", "anchors": [("the river cam", "b"), ("here", "b")]},
        {"docno": "b", "text": "a river", "anchors": [("The River Cam", "c")]},
        {"docno": "c", "text": "another"},
    ]
    docs = pn.pseudo_queries(corpus, kind="anchor", dev=0)
    assert judged(docs) == {"the river cam": {"b": 1, "c": 1}}
    assert docs.report["queries too short or too long"] == 1
    assert texts(docs)["a"]["text"] == "see b"


def test_a_query_of_many_documents_is_left_out():
    corpus = [
        {"docno": f"d{n}", "title": "Frequently asked questions", "text": f"about w{n} and more"} for n in range(11)
    ]
    corpus.append({"docno": "one", "title": "A title of its own", "text": "and some text"})
    docs = pn.pseudo_queries(corpus, kind="title", dev=0)
    assert judged(docs) == {"A title of its own": {"one": 1}}
    assert docs.report["queries shared by more than 10 documents"] == 1
    assert len(judged(pn.pseudo_queries(corpus[1:], kind="title", dev=0))["Frequently asked questions"]) == 10


def test_weak_labels_are_the_ranks_of_the_first_stage():
    log = pd.DataFrame({"qid": ["1", "2"], "query": ["long neck", "trees"]})
    run = pd.DataFrame(
        [("1", "o", 9.0, 0), ("1", "g", 5.0, 1), ("1", "z", 1.0, 2), ("2", "g", 3.0, 0)],
        columns=["qid", "docno", "score", "rank"],
    )
    first_stage = pt.Transformer.from_df(run)
    docs = pn.pseudo_queries(ANIMALS, kind="bm25", queries=log, first_stage=first_stage, num_positives=2, dev=0)
    assert judged(docs) == {"long neck": {"o": 2, "g": 1}, "trees": {"g": 2}}
    assert {docno: document["text"] for docno, document in texts(docs).items()} == {
        document["docno"]: document["text"] for document in ANIMALS
    }
    with pytest.raises(TypeError, match="weak supervision needs a first stage"):
        pn.pseudo_queries(ANIMALS, kind="bm25")


def test_a_folder_is_kept_and_a_temporary_one_goes_with_its_dataset(tmp_path):
    made = pn.pseudo_queries(many(20), path=tmp_path / "made")
    again = pt.get_dataset(f"neural:folder:{tmp_path / 'made'}")
    pd.testing.assert_frame_equal(again.get_topics("train"), made.get_topics("train"))
    with pytest.raises(FileExistsError):
        pn.pseudo_queries(many(20), path=tmp_path / "made")
    temporary = pn.pseudo_queries(many(20))
    path = temporary.path
    assert path.exists()
    del temporary
    assert not path.exists()


def test_clear_errors():
    with pytest.raises(ValueError, match="kind must be one of 'title'"):
        pn.pseudo_queries(ANIMALS, kind="summary")
    with pytest.raises(ValueError, match=r"no document gives a query of kind 'title': .*'no title': 1"):
        pn.pseudo_queries([{"docno": "a", "text": "words and words"}], kind="title")
    with pytest.raises(ValueError, match="max_words must be at least 9"):
        pn.pseudo_queries(ANIMALS, min_words=9, max_words=3)


def test_a_ranker_learns_from_them(tmp_path):
    """Sentences of one document share words, so a ranker of the sentence finds the rest."""
    drawn = random.Random(2)
    corpus = []
    for number in range(60):
        words = [f"w{number % 20}x{place}" for place in range(12)]
        corpus.append({"docno": f"d{number}", "text": ". ".join(" ".join(drawn.sample(words, 5)) for _ in range(4))})
    docs = pn.pseudo_queries(corpus, kept=0, dev=0)
    documents = pn.ForwardIndex.build(tmp_path / "forward", docs.get_corpus_iter(verbose=False))
    pairs, qrels = docs.get_topics("train").merge(docs.get_qrels("train"), on="qid"), docs.get_qrels("train")
    training = pn.Training(epochs=20, batch_size=16, learning_rate=0.01, verbose=False)
    dssm = pn.DSSM(layers=(32,), documents=documents, training=training).fit(pairs, qrels)
    topics = docs.get_topics("train")
    every = topics.merge(pd.DataFrame({"docno": [document["docno"] for document in corpus]}), how="cross")
    ranks = dssm.transform(every).merge(qrels, on=["qid", "docno"])["rank"]
    assert ranks.median() <= 3  # two others are of the same words; by chance it is 30
