"""DESM against equations 5 to 8, computed word by word."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.text import Vocabulary, tokenise

WORDS = ["university", "city", "river", "giraffe", "neck", "cam", "long"]


@pytest.fixture(scope="module")
def spaces() -> pn.EmbeddingSpaces:
    random = np.random.default_rng(1)
    shape = (len(WORDS), 5)
    return pn.EmbeddingSpaces.from_vectors(
        Vocabulary(WORDS), random.normal(size=shape).astype("f4"), random.normal(size=shape).astype("f4")
    )


@pytest.fixture
def candidates(corpus, topics) -> pd.DataFrame:
    return topics.merge(pd.DataFrame(corpus), how="cross")


@pytest.fixture
def forward(tmp_path, corpus) -> pn.ForwardIndex:
    return pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)


def cosine(a, b) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def equation_5(spaces, query: str, document: str, q_space: str, d_space: str) -> float:
    """DESM(Q, D), the way the paper writes it."""
    q_vectors = dict(zip(WORDS, spaces.vectors(q_space).astype("f8"), strict=True))
    d_vectors = dict(zip(WORDS, spaces.vectors(d_space).astype("f8"), strict=True))
    words = [d_vectors[word] / np.linalg.norm(d_vectors[word]) for word in tokenise(document) if word in d_vectors]
    query_words = [q_vectors[word] for word in tokenise(query) if word in q_vectors]
    if not words:
        return -1.0
    if not query_words:
        return 0.0
    centroid = sum(words) / len(words)
    return sum(cosine(q, centroid) for q in query_words) / len(query_words)


@pytest.mark.parametrize("query_space", ["in", "out"])
@pytest.mark.parametrize("document_space", ["in", "out"])
def test_scores_are_equations_5_and_6(spaces, candidates, query_space, document_space):
    scored = pn.DESM(spaces, query_space, document_space).transform(candidates)
    expected = [
        equation_5(spaces, row.query, f"{row.title} {row.text}", query_space, document_space)
        for row in candidates.itertuples()
    ]
    np.testing.assert_allclose(scored["score"], expected, atol=1e-5)
    assert (scored["docno"] == candidates["docno"]).all()
    assert scored.groupby("qid")["rank"].apply(sorted).tolist() == [list(range(6))] * 3


def test_repeated_words_count_each_time(spaces):
    frame = pd.DataFrame({"qid": ["1"], "query": ["city city river"], "docno": ["d"], "text": ["cam cam long neck"]})
    expected = equation_5(spaces, "city city river", "cam cam long neck", "in", "out")
    assert pn.DESM(spaces).transform(frame)["score"].iloc[0] == pytest.approx(expected, abs=1e-6)


def test_counting_unknown_words_scales_the_score(spaces):
    frame = pd.DataFrame({"qid": ["1"], "query": ["city nonsense"], "docno": ["d"], "text": ["cam"]})
    ignored, counted = (pn.DESM(spaces, count_unknown=flag).transform(frame)["score"].iloc[0] for flag in (False, True))
    assert counted == pytest.approx(ignored / 2)


@pytest.fixture
def counted() -> pn.EmbeddingSpaces:
    """Two words, of which the first occurs three times as often: the means are (0.45, 0.85) and (0.75, 0.25)."""
    vocabulary = Vocabulary(["city", "cam"], np.array([3, 1]), np.array([2, 1]), 2)
    return pn.EmbeddingSpaces.from_vectors(vocabulary, np.array([[3, 4], [0, 2]]), np.array([[5, 0], [0, 1]]))


@pytest.mark.parametrize(
    ("centre", "scores"),
    [
        # D̄ is (1/3, 2/3) and (1, 0), the query (0.6, 0.8)
        ("none", [2.2 / 5**0.5, 0.6, -1]),
        # D̄ - μ is (-5/12, 5/12) and (1/4, -1/4)
        ("document", [0.2 / 2**0.5, -0.2 / 2**0.5, -1]),
        # and the query (0.6, 0.8) - (0.45, 0.85) = (0.15, -0.05)
        ("both", [-0.2 / 2**0.5, 0.2 / 2**0.5, -2]),
    ],
)
def test_centring_by_hand(counted, centre, scores, tmp_path):
    texts = [{"docno": "d1", "text": "city cam, cam"}, {"docno": "d2", "text": "a city"}, {"docno": "d3", "text": "?"}]
    frame = pd.DataFrame(texts).assign(qid="1", query="city")
    desm = pn.DESM(counted, centre=centre)
    assert desm.transform(frame)["score"].tolist() == pytest.approx(scores, abs=1e-6)
    assert desm.transform(frame[1:2])["score"].tolist() == pytest.approx(scores[1:2], abs=1e-6)  # without the others
    vectors = desm.index(tmp_path / "vectors", texts, verbose=False)
    kept = pn.DESM(counted, centre=centre, vectors=vectors)
    assert kept.transform(frame[["qid", "query", "docno"]])["score"].tolist() == pytest.approx(scores, abs=1e-6)
    found = desm.retriever(vectors).search("city").set_index("docno")["score"]
    assert found.to_dict() == pytest.approx({"d1": scores[0], "d2": scores[1]}, abs=1e-6)
    desm.save(tmp_path / "desm.pn")
    loaded = pn.DESM.load(tmp_path / "desm.pn", vectors=vectors)
    assert loaded.transform(frame)["score"].tolist() == pytest.approx(scores, abs=1e-6)
    assert repr(loaded) == repr(desm)


def test_centroids_are_not_mistaken_for_centred_ones(counted, tmp_path):
    texts = [{"docno": "d1", "text": "city"}, {"docno": "d2", "text": "cam"}]
    none, document, both = (pn.DESM(counted, centre=centre) for centre in ("none", "document", "both"))
    assert none.fingerprint() != document.fingerprint() == both.fingerprint()
    vectors = document.index(tmp_path / "vectors", texts, verbose=False)
    pn.DESM(counted, centre="both", vectors=vectors)
    with pytest.raises(ValueError, match="made by another model"):
        pn.DESM(counted, vectors=vectors)
    others = Vocabulary(["city", "cam"], np.array([1, 3]), np.array([1, 1]), 2)
    recounted = pn.EmbeddingSpaces.from_vectors(others, counted.in_vectors, counted.out_vectors)
    assert pn.DESM(recounted).fingerprint() == none.fingerprint()
    assert pn.DESM(recounted, centre="document").fingerprint() != document.fingerprint()


def test_centring_needs_counts(spaces):
    with pytest.raises(ValueError, match="needs the counts of its words"):
        pn.DESM(spaces, centre="document")
    with pytest.raises(ValueError, match="centre must be one of 'none', 'document', 'both'"):
        pn.DESM(spaces, centre="query")


def test_an_empty_document_never_wins(spaces, tmp_path):
    words, opposite = ["city", "cam"], np.array([[1.0, 0.0], [1.0, 0.0]], dtype="f4")
    negative = pn.DESM(pn.EmbeddingSpaces.from_vectors(Vocabulary(words), opposite, -opposite))  # all cosines are -1
    texts = [{"docno": "full", "text": "cam"}, {"docno": "empty", "text": "???"}, {"docno": "also", "text": "city"}]
    frame = pd.DataFrame(texts).assign(qid="1", query="city")
    assert negative.transform(frame)["score"].tolist() == [-1.0, -1.0, -1.0]
    vectors = negative.index(tmp_path / "vectors", texts, verbose=False)
    assert negative.retriever(vectors).search("city")["docno"].tolist() == ["full", "also"]


def test_retrieved_ties_go_by_docno_also_at_the_cut(spaces, tmp_path):
    twins = [{"docno": name, "text": "river city"} for name in ("d9", "d1", "d5", "d3")]
    vectors = pn.DESM(spaces).index(tmp_path / "vectors", twins, verbose=False)
    assert pn.DESM(spaces).retriever(vectors, num_results=3).search("city")["docno"].tolist() == ["d9", "d5", "d3"]


def test_a_query_without_known_words_finds_nothing(spaces, tmp_path, corpus):
    vectors = pn.DESM(spaces).index(tmp_path / "vectors", corpus, verbose=False)
    topics = pd.DataFrame({"qid": ["1", "2", "3"], "query": ["zzz", "city", None]})
    found = pn.DESM(spaces).retriever(vectors).transform(topics)
    assert found["qid"].unique().tolist() == ["2"]
    assert found["query"].unique().tolist() == ["city"]


def test_retrieval_in_blocks_is_the_same(spaces, topics, tmp_path, corpus, monkeypatch):
    retriever = pn.DESM(spaces).retriever(pn.DESM(spaces).index(tmp_path / "vectors", corpus, verbose=False))
    whole = retriever.transform(topics)
    monkeypatch.setattr("pt_neural.rankers.retriever.DOCUMENTS_PER_BLOCK", 1)
    pd.testing.assert_frame_equal(retriever.transform(topics), whole)


def test_retrievers_fuse_cutoffs_and_compare(spaces, tmp_path, corpus):
    desm = pn.DESM(spaces)
    vectors = desm.index(tmp_path / "vectors", corpus, verbose=False)
    fused = (desm.retriever(vectors) % 2).compile()
    assert fused == desm.retriever(vectors, num_results=2)
    assert hash(fused) == hash(desm.retriever(vectors, num_results=2))
    assert pt.inspect.transformer_outputs(fused, ["qid", "query"]) == ["qid", "query", "docno", "score", "rank"]
    with pytest.raises(ValueError, match="num_results"):
        desm.retriever(vectors, num_results=0)


def test_a_million_characters(spaces):
    frame = pd.DataFrame({"qid": ["1"], "query": ["city"], "docno": ["d"], "text": ["river city " * 100_000]})
    expected = equation_5(spaces, "city", "river city", "in", "out")
    assert pn.DESM(spaces).transform(frame)["score"].iloc[0] == pytest.approx(expected, abs=1e-5)


def test_save_and_load_give_the_same_scores(spaces, candidates, tmp_path):
    desm = pn.DESM(spaces, "out", "in", count_unknown=True, fields="text")
    desm.save(tmp_path / "desm.pn")
    for loaded in (pn.DESM.load(tmp_path / "desm.pn"), pt.Artifact.load(str(tmp_path / "desm.pn"))):
        pd.testing.assert_frame_equal(loaded.transform(candidates), desm.transform(candidates))
    with pytest.raises(FileExistsError, match="overwrite"):
        desm.save(tmp_path / "desm.pn")


def test_words_of_a_latin_1_file(tmp_path):
    (tmp_path / "latin-1").write_bytes("café 1 0\ncity 0 1\nriver 3 4\n".encode("latin-1"))
    spaces = pn.EmbeddingSpaces.load_word2vec(tmp_path / "latin-1", tmp_path / "latin-1", verbose=False)
    desm = pn.DESM(spaces)
    texts = [{"docno": "d1", "text": "city river"}, {"docno": "d2", "text": "café"}]
    vectors = desm.index(tmp_path / "vectors", texts, verbose=False)
    desm.save(tmp_path / "desm.pn")
    loaded = pn.DESM.load(tmp_path / "desm.pn", vectors=vectors)
    assert loaded.spaces.vocabulary.terms == spaces.vocabulary.terms == ["caf\udce9", "city", "river"]
    assert loaded.fingerprint() == desm.fingerprint()
    frame = pd.DataFrame({"qid": "1", "query": "city", "docno": ["d1", "d2"]})
    assert loaded.transform(frame)["score"].tolist() == pytest.approx([1.8 / np.hypot(0.6, 1.8), -1.0])


def test_damaged_models_name_the_file(spaces, tmp_path):
    pn.DESM(spaces).save(tmp_path / "desm.pn")
    (tmp_path / "desm.pn" / "config.json").write_text("{")
    with pytest.raises(ArtifactError, match=r"config\.json is damaged"):
        pn.DESM.load(tmp_path / "desm.pn")


def test_clear_errors(spaces, candidates, forward, tmp_path, corpus):
    with pytest.raises(ValueError, match="one of 'in', 'out'"):
        pn.DESM(spaces, query="IN")
    with pytest.raises(KeyError, match="text"):
        pn.DESM(spaces).transform(candidates.drop(columns=["title", "text"]))
    with pytest.raises(KeyError, match="query"):
        pn.DESM(spaces, documents=forward).transform(candidates[["qid", "docno"]])
    vectors = pn.DESM(spaces).index(tmp_path / "vectors", corpus[:2], verbose=False)
    with pytest.raises(ValueError, match=r"4 docnos are not in .*, such as 'd3'"):
        pn.DESM(spaces, vectors=vectors).transform(candidates)
    with pytest.raises(ValueError, match="not both"):
        pn.DESM(spaces, documents=forward, vectors=vectors)
    with pytest.raises(ValueError, match="no documents"):
        pn.DESM(spaces).index(tmp_path / "none", [], verbose=False)
    with pytest.raises(ValueError, match="at least two"):
        pn.DESM(spaces).index(tmp_path / "none", corpus[:1], verbose=False)
    with pytest.raises(ValueError, match=r"docno .* is not in ForwardIndex"):
        pn.DESM(spaces, documents=forward).transform(candidates.assign(docno=[None, *candidates["docno"][1:]]))
    other = pn.EmbeddingSpaces.from_vectors(Vocabulary(["city"]), np.ones((1, 2), "f4"), np.ones((1, 2), "f4"))
    with pytest.raises(ValueError, match="made by another model"):
        pn.DESM(other, vectors=vectors).transform(candidates.iloc[:2])
    with pytest.raises(ValueError, match="made by another model"):
        pn.DESM(other).retriever(vectors).search("city")
    with pytest.raises(ValueError, match="'d1' occurs twice"):
        pn.DESM(spaces).index(tmp_path / "none", [corpus[0], corpus[0]], verbose=False)
    assert not (tmp_path / "none").exists()


# The perturbation analysis of Table 2: aboutness against term frequency, in a planted world of two subjects

CITY = "university college students town county river charters census population libraries museum lectures".split()
ANIMAL = "neck legs savannas woodlands herd leaves mammal coat africa hooves okapi grazing".split()
COMMON = "the a of in and is it has its with".split()


@pytest.fixture(scope="module")
def city_spaces() -> pn.EmbeddingSpaces:
    random = np.random.default_rng(7)

    def sentence(name: str, words: list[str]) -> str:
        tokens = [*random.choice(words, 6), *random.choice(COMMON, 4), name]
        return " ".join(random.permutation(tokens))

    names = {"cambridge": CITY, "oxford": CITY, "giraffe": ANIMAL, "zebra": ANIMAL}
    texts = [sentence(name, words) for _ in range(600) for name, words in names.items()]
    return pn.EmbeddingSpaces.train(texts, dim=30, window=5, epochs=5, subsample=1e-3, workers=1, verbose=False)


@pytest.fixture(scope="module")
def passages() -> dict[str, str]:
    about_cambridge = "cambridge is a university town of the county cambridge has students and a river " * 2
    about_giraffes = "the giraffe is a mammal of africa its neck and legs giraffe in savannas and woodlands " * 2
    return {
        "cambridge": about_cambridge,
        "oxford": about_cambridge.replace("cambridge", "oxford"),
        "giraffes": about_giraffes,
        "giraffes, stuffed with cambridge": about_giraffes.replace("giraffe", "cambridge"),
        "cambridge, called giraffe": about_cambridge.replace("cambridge", "giraffe"),
    }


def passage_scores(desm: pn.DESM, passages: dict[str, str]) -> dict[str, float]:
    frame = pd.DataFrame({"qid": "1", "query": "cambridge", "docno": passages.keys(), "text": passages.values()})
    scored = desm.transform(frame)
    return dict(zip(scored["docno"], scored["score"], strict=True))


def test_in_out_falls_where_term_frequency_does_not(city_spaces, passages):
    frequency = {name: tokenise(text).count("cambridge") for name, text in passages.items()}
    score = passage_scores(pn.DESM(city_spaces, "in", "out"), passages)
    assert frequency["giraffes, stuffed with cambridge"] == frequency["cambridge"] == 4
    assert score["giraffes, stuffed with cambridge"] < score["cambridge"] - 0.1
    assert score["cambridge, called giraffe"] > score["giraffes, stuffed with cambridge"]
    assert score["giraffes"] < score["giraffes, stuffed with cambridge"]


def test_a_passage_about_oxford_is_a_false_positive(city_spaces, passages):
    score = passage_scores(pn.DESM(city_spaces, "in", "out"), passages)
    assert score["oxford"] > score["giraffes, stuffed with cambridge"]


def test_supporting_words_are_those_of_the_subject(city_spaces):
    frame = pn.explain(pn.DESM(city_spaces), "cambridge", "students of giraffe neck and university").to_frame()
    similarity = frame.set_index("word")["similarity"]
    assert min(similarity["students"], similarity["university"]) > max(similarity["giraffe"], similarity["neck"])
