"""SSI learns what was planted in small collections, within and across languages, and no more than its W can say."""

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn

CONCEPTS, NOISE = 24, [f"n{number}" for number in range(30)]


def training(**options) -> pn.Training:
    return pn.Training(**{"epochs": 6, "num_negatives": 8, "verbose": False, **options})


def first_share(model, frame: pd.DataFrame) -> float:
    """How often the relevant document, the first of each query's, is above all others."""
    scores = model.transform(frame)["score"].to_numpy().reshape(frame["qid"].nunique(), -1)
    return float((scores[:, :1] > scores[:, 1:] + 1e-5).all(axis=1).mean())


def qrels(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.groupby("qid", sort=False).head(1)[["qid", "docno"]].assign(label=1)


def tf_idf(frame: pd.DataFrame) -> pn.TFIDF:
    return pn.TFIDF(sublinear_tf=True).fit_corpus(frame.drop_duplicates("docno")[["docno", "text"]], verbose=False)


def candidates(rows: list[tuple[str, str, str]], others: int, random: np.random.Generator) -> pd.DataFrame:
    """Each query with its relevant document, then with documents of other queries and ones that hold its words.

    Args:
        rows: The query, its relevant document, and one that misleads.
        others: Documents of other queries for each.
        random: What draws them.
    """
    frame = []
    for number, (query, text, misleading) in enumerate(rows):
        drawn = random.choice([other for other in range(len(rows)) if other != number], others, replace=False)
        documents = [(f"d{number}", text), (f"m{number}", misleading), *((f"d{one}", rows[one][1]) for one in drawn)]
        frame += [(f"q{number}", query, docno, text) for docno, text in documents]
    return pd.DataFrame(frame, columns=["qid", "query", "docno", "text"])


def shuffled(words: list[str], random: np.random.Generator) -> str:
    return " ".join(random.permutation([*words, *random.choice(NOISE, 4)]))


@pytest.fixture(scope="module")
def synonyms() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A query has words x of two concepts; the relevant document has the words y of both, and another one its words x.

    No query word is in its relevant document, so that equal words mislead.
    """
    random, rows = np.random.default_rng(0), []
    for _ in range(300):
        a, b = random.choice(CONCEPTS, 2, replace=False)
        rows.append((f"x{a} x{b}", shuffled([f"y{a}", f"y{b}"], random), shuffled([f"x{a}", f"x{b}"], random)))
    return candidates(rows[:200], 4, random), candidates(rows[200:], 9, random)


LEARNERS = {
    "low-rank": {"dim": 32},
    "symmetric": {"dim": 32},
    "low-rank-diagonal": {"dim": 32},
    "full": {},
    "off-diagonal": {},
    "sparse": {"nonzeros": 4, "rounds": 2},
    "hash": {"hash_size": 50_000},
    "correlated-hash": {"dim": 32},
}
RATES = {"full": 1.0, "off-diagonal": 1.0, "sparse": 1.0, "hash": 1.0}


@pytest.mark.parametrize("kind", LEARNERS)
def test_synonyms_are_learned(synonyms, kind):
    train, test = synonyms
    rates = {"learning_rate": RATES.get(kind, 0.2)}
    model = pn.SSI(kind, **LEARNERS[kind], training=training(**rates)).fit(train, qrels(train))
    # U'U has one vector for a word on either side, and cannot be rid of the identity and keep synonyms.
    assert first_share(model, test) > (0.4 if kind == "symmetric" else 0.9)
    assert first_share(tf_idf(train), test) == 0
    slow = pn.SSI(kind, **LEARNERS[kind], training=training(epochs=1, learning_rate=1e-12)).fit(train, qrels(train))
    assert first_share(slow, test) < 0.2  # as it started
    assert model.history["loss"].iloc[-1] < 0.2 * model.history["loss"].iloc[0]


def test_a_diagonal_knows_no_synonyms(synonyms):
    train, test = synonyms
    model = pn.SSI("diagonal", training=training()).fit(train, qrels(train))
    assert first_share(model, test) < 0.05
    W = model.word_weights().to_numpy()
    assert np.array_equal(W, np.diag(np.diag(W)))


def test_without_a_diagonal_only_different_words_count(synonyms):
    train, _ = synonyms
    model = pn.SSI("off-diagonal", training=training(learning_rate=1.0)).fit(train, qrels(train))
    W = model.word_weights().to_numpy()
    assert np.abs(W).max() > 0.1
    assert not np.diag(W).any()
    alone = pd.DataFrame({"qid": ["q"], "query": ["x1"], "docno": ["d"], "text": ["x1"]})
    assert model.transform(alone)["score"].tolist() == [0]


def test_w_pairs_the_synonyms(synonyms):
    train, _ = synonyms
    model = pn.SSI("low-rank", dim=32, training=training(learning_rate=0.2)).fit(train, qrels(train))
    found = [model.neighbours(f"x{number}", k=1)["word"][0] for number in range(CONCEPTS)]
    assert np.mean([word == f"y{number}" for number, word in enumerate(found)]) > 0.9
    found = [model.neighbours(f"y{number}", k=1, side="document")["word"][0] for number in range(CONCEPTS)]
    assert np.mean([word == f"x{number}" for number, word in enumerate(found)]) > 0.9


@pytest.mark.parametrize("kind", ["diagonal", "low-rank-diagonal"])
def test_a_diagonal_learns_which_words_mislead(kind):
    """A query has a word that tells and a rarer one that does not: many documents of other queries hold the latter."""
    random, rows = np.random.default_rng(1), []
    for _ in range(300):
        telling, misleading = random.choice(CONCEPTS), random.choice(2 * CONCEPTS)
        query = f"t{telling} m{misleading}"
        rows.append((query, shuffled([f"t{telling}"], random), shuffled([f"m{misleading}"] * 2, random)))
    train, test = candidates(rows[:200], 4, random), candidates(rows[200:], 0, random)
    rates = {"learning_rate": 1.0 if kind == "diagonal" else 0.2, "negatives": "retrieved"}
    model = pn.SSI(kind, dim=8, training=training(**rates)).fit(train, qrels(train))
    assert first_share(model, test) > 0.9
    assert first_share(tf_idf(train), test) < 0.1
    D = pd.Series(model.network.diagonal, model.features.documents.vocabulary.terms)
    assert D[[f"m{number}" for number in range(2 * CONCEPTS)]].mean() < 0.8
    assert D[[f"t{number}" for number in range(CONCEPTS)]].mean() > 1.5


@pytest.fixture(scope="module")
def rare_words() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rare words r of a concept occur with its frequent word f, rare words s with its frequent word g.

    A query of words r is for documents with words s of its concept; the words of test queries and their documents were
    in no tuple of training, and are known from documents that nobody asked for.
    """
    random, rows = np.random.default_rng(2), {"train": [], "test": []}
    unasked = [
        " ".join([frequent, *[f"{rare}{concept}v{version}"] * 2, *random.choice(NOISE, 3)])
        for concept in range(CONCEPTS)
        for version in range(12)
        for rare, frequent in (("r", f"f{concept} f{concept}"), ("s", f"g{concept} g{concept}"))
    ]
    for part, versions, count in (("train", range(9), 200), ("test", range(9, 12), 60)):
        for _ in range(count):
            concept, other = random.choice(CONCEPTS, 2, replace=False)
            query, text, misleading = (
                " ".join(f"{rare}{number}v{version}" for version in random.choice(versions, 2, replace=False))
                for rare, number in (("r", concept), ("s", concept), ("s", other))
            )
            rows[part].append((query, f"{text} {random.choice(NOISE)}", f"{misleading} {random.choice(NOISE)}"))
    train, test = (candidates(rows[part], 4, random) for part in ("train", "test"))
    extra = pd.DataFrame({"docno": [f"u{number}" for number in range(len(unasked))], "text": unasked})
    return pd.concat([train, extra.assign(qid="q0", query=train["query"][0])], ignore_index=True), test


def test_correlated_hashing_knows_rare_words_by_their_neighbours(rare_words):
    train, test = rare_words
    options = {"dim": 32, "embedded_terms": len(NOISE) + 2 * CONCEPTS, "training": training(learning_rate=0.2)}
    hashed = pn.SSI("correlated-hash", bins=1, **options).fit(train, qrels(train))
    for concept in range(CONCEPTS):
        assert hashed.dice_neighbours(f"r{concept}v10")["word"].tolist() == [f"f{concept}"]
    assert first_share(hashed, test) > 0.6
    for kind, more in (("low-rank", {}), ("low-rank", {"embedded_terms": 10_000}), ("full", {}), ("hash", {})):
        rates = {"training": training(learning_rate=RATES.get(kind, 0.2))}
        other = pn.SSI(kind, **{**options, **more, **rates}).fit(train, qrels(train))
        assert first_share(other, test) < 0.35  # of one in six by chance


# Across languages and types of text, which share no vocabulary (sections 2.4.2 and 2.4.3)


def across(**options) -> pn.Training:
    return training(**{"epochs": 10, "learning_rate": 0.2, **options})


def said(language: str, concepts: np.ndarray, version: str = "") -> str:
    return " ".join(f"{language}{number}{version}" for number in concepts)


def mates(count: int, seed: int, *, query: str = "f", text: str = "e", version: str = "") -> pd.DataFrame:
    """Documents and their translations, in another order of words; every text is a candidate for every other."""
    random, rows = np.random.default_rng(seed), []
    for number in range(count):
        concepts = random.choice(40, 6)
        text_of = said(text, random.permutation(concepts), version)
        rows.append((f"{seed}-{number}", said(query, concepts), f"{seed}-{number}", text_of))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text"])
    return frame[["qid", "query"]].merge(frame[["docno", "text"]], how="cross")


def mate_qrels(frame: pd.DataFrame) -> pd.DataFrame:
    same = frame["qid"] == frame["docno"]
    return frame.loc[same, ["qid", "docno"]].assign(label=1).reset_index(drop=True)


def found_mates(model: pn.SSI | pn.TFIDF, frame: pd.DataFrame) -> float:
    """How often the mate of a document is the first of all."""
    first = model.transform(frame).query("rank == 0")
    return float((first["qid"] == first["docno"]).mean())


@pytest.mark.parametrize(
    ("kind", "options"),
    [("low-rank", {"dim": 40}), ("hash", {"hash_size": 20_000, "training": across(learning_rate=1.0)})],
)
def test_mates_are_found(kind, options):
    train, test = mates(150, 1), mates(60, 2)
    model = pn.SSI(kind, shared_vocabulary=False, **{"training": across(), **options}).fit(train, mate_qrels(train))
    assert found_mates(model, test) > 0.9  # of one in 60 by chance
    assert {word[0] for word in model.features.queries.vocabulary.terms} == {"f"}
    assert {word[0] for word in model.features.documents.vocabulary.terms} == {"e"}


@pytest.mark.parametrize("own_queries", [False, True])
def test_monolingual_tuples_help_where_translations_are_few(own_queries, tmp_path):
    """Only monolingual queries say that words e5v2 mean what words e5 do, of which translations were seen."""
    train, test = mates(150, 1), mates(60, 2, version="v2")
    monolingual = pd.concat([mates(150, 3, query="e", version="v2"), mates(150, 4, query="e")])
    documents = pd.concat([train, test, monolingual]).drop_duplicates("docno")[["docno", "text"]]
    forward = pn.ForwardIndex.build(tmp_path / "forward", documents.to_dict("records"), verbose=False)
    model = pn.SSI(dim=40, shared_vocabulary=False, documents=forward, training=across(epochs=20))
    alone = found_mates(model.fit(train, mate_qrels(train)), test)
    both = model.fit(
        train, mate_qrels(train), monolingual=(monolingual, mate_qrels(monolingual)), own_queries=own_queries
    )
    assert alone < 0.15
    assert found_mates(both, test) > (0.25 if own_queries else 0.6)  # of one in 60 by chance


@pytest.mark.parametrize(("kind", "rate"), [("low-rank", 0.2), ("full", 1.0)])
def test_types_of_text_that_spell_alike_need_not_mean_alike(kind, rate):
    """Pages of words w, and advertisements of words that are spelled alike but belong to the pages of others."""
    moved = {f"w{number}": f"w{(number + 7) % 40}" for number in range(40)}
    train, test = (
        frame.assign(text=[" ".join(map(moved.get, text.split())) for text in frame["text"]])
        for frame in (mates(150, 1, query="w", text="w"), mates(60, 2, query="w", text="w"))
    )
    options = {"dim": 40, "shared_vocabulary": False, "training": across(learning_rate=rate)}
    model = pn.SSI(kind, **options).fit(train, mate_qrels(train))
    assert found_mates(model, test) > 0.9
    assert found_mates(tf_idf(train), test) < 0.1
    weights = model.word_weights()
    pairs = [weights.loc[word, other] for word, other in moved.items()]
    assert np.mean(pairs) > 5 * np.mean([abs(weights.loc[word, word]) for word in moved])
