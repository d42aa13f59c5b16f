"""SSI across languages and types of text, which share no vocabulary (sections 2.4.2 and 2.4.3 of the SSI paper)."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn

CONCEPTS = 40


def training(**options) -> pn.Training:
    settings = {"epochs": 10, "num_negatives": 8, "learning_rate": 0.2, "verbose": False}
    return pn.Training(**{**settings, **options})


def said(language: str, concepts: np.ndarray, version: str = "") -> str:
    return " ".join(f"{language}{number}{version}" for number in concepts)


def mates(count: int, seed: int, *, query: str = "f", text: str = "e", version: str = "") -> pd.DataFrame:
    """Documents and their translations, in another order of words; every text is a candidate for every other."""
    random, rows = np.random.default_rng(seed), []
    for number in range(count):
        concepts = random.choice(CONCEPTS, 6)
        text_of = said(text, random.permutation(concepts), version)
        rows.append((f"{seed}-{number}", said(query, concepts), f"{seed}-{number}", text_of))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text"])
    return frame[["qid", "query"]].merge(frame[["docno", "text"]], how="cross")


def qrels(frame: pd.DataFrame) -> pd.DataFrame:
    same = frame["qid"] == frame["docno"]
    return frame.loc[same, ["qid", "docno"]].assign(label=1).reset_index(drop=True)


def found_mates(model: pn.SSI | pn.TFIDF, frame: pd.DataFrame) -> float:
    """How often the mate of a document is the first of all."""
    first = model.transform(frame).query("rank == 0")
    return float((first["qid"] == first["docno"]).mean())


KINDS = {
    "low-rank": {"dim": 40},
    "full": {"training": training(learning_rate=1.0)},
    "sparse": {"nonzeros": 3, "rounds": 2, "training": training(learning_rate=1.0)},
    "hash": {"hash_size": 20_000, "training": training(learning_rate=1.0)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_mates_are_found(kind, tmp_path):
    train, test = mates(150, 1), mates(80, 2)
    options = {"training": training(), **KINDS[kind]}
    model = pn.SSI(kind, shared_vocabulary=False, **options).fit(train, qrels(train))
    assert found_mates(model, test) > 0.9  # of one in 80 by chance
    assert {word[0] for word in model.features.queries.vocabulary.terms} == {"f"}
    assert {word[0] for word in model.features.documents.vocabulary.terms} == {"e"}
    documents = test.drop_duplicates("docno")[["docno", "text"]].to_dict("records")
    found = model.retriever(model.index(tmp_path / "vectors", documents, verbose=False), num_results=1)
    topics = test.drop_duplicates("qid")[["qid", "query"]]
    first = found.transform(topics)
    assert (first["qid"] == first["docno"]).mean() == pytest.approx(found_mates(model, test))


@pytest.mark.parametrize("own_queries", [False, True])
def test_monolingual_tuples_help_where_translations_are_few(own_queries, tmp_path):
    """Only monolingual queries say that words e5v2 mean what words e5 do, of which translations were seen."""
    train, test = mates(150, 1), mates(80, 2, version="v2")
    monolingual = pd.concat([mates(200, 3, query="e", version="v2"), mates(200, 4, query="e")])
    documents = pd.concat([train, test, monolingual]).drop_duplicates("docno")[["docno", "text"]]
    forward = pn.ForwardIndex.build(tmp_path / "forward", documents.to_dict("records"), verbose=False)
    model = pn.SSI(dim=40, shared_vocabulary=False, documents=forward, training=training(epochs=20))
    alone = found_mates(model.fit(train, qrels(train)), test)
    both = model.fit(train, qrels(train), monolingual=(monolingual, qrels(monolingual)), own_queries=own_queries)
    assert alone < 0.15
    assert found_mates(both, test) > (0.25 if own_queries else 0.7)  # of one in 80 by chance
    assert both.network.other_query_vectors.numel() == 0


def adverts(count: int, seed: int) -> pd.DataFrame:
    """Pages of words w, and advertisements of words that are spelled alike but belong to the pages of others."""
    frame = mates(count, seed, query="w", text="w")
    moved = {f"w{number}": f"w{(number + 7) % CONCEPTS}" for number in range(CONCEPTS)}
    return frame.assign(text=[" ".join(map(moved.get, text.split())) for text in frame["text"]])


@pytest.mark.parametrize("kind", KINDS)
def test_types_of_text_that_spell_alike_need_not_mean_alike(kind):
    train, test = adverts(150, 1), adverts(80, 2)
    options = {"training": training(), **KINDS[kind]}
    model = pn.SSI(kind, shared_vocabulary=False, **options).fit(train, qrels(train))
    assert found_mates(model, test) > 0.9
    tfidf = pn.TFIDF().fit_corpus(train.drop_duplicates("docno")[["docno", "text"]], verbose=False)
    assert found_mates(tfidf, test) < 0.1
    weights = model.word_weights()
    pairs = [weights.loc[f"w{number}", f"w{(number + 7) % CONCEPTS}"] for number in range(CONCEPTS)]
    assert np.mean(pairs) > 5 * np.mean([abs(weights.loc[f"w{number}", f"w{number}"]) for number in range(CONCEPTS)])
