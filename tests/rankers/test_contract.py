"""What every ranker promises, whatever its model; what those with kept vectors do; and what two-tower rankers do."""

import inspect
import json
import pickle
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed

import pt_neural as pn
from pt_neural.models import TopicCosine
from pt_neural.rankers import TwoTower
from pt_neural.rankers.embedded_ranker import EmbeddedRanker
from pt_neural.text import PackedSequences, Vocabulary, tokenise

CORPUS = [
    {"docno": "d1", "title": "Cambridge", "text": "The university city of Cambridge lies on the River Cam."},
    {"docno": "d2", "title": "Oxford", "text": "Oxford is a university city, home of the oldest university."},
    {"docno": "d3", "title": "Giraffes", "text": "The giraffe is the tallest living animal, with a long neck."},
    {"docno": "d4", "title": "", "text": "The okapi is the closest relative of the giraffe."},
    {"docno": "d5", "title": "BM25", "text": "A ranking function that counts the terms of a query."},
    {"docno": "d6", "title": "Rivers", "text": "The river runs long past the city to the sea."},
    {"docno": "d7", "title": "?", "text": "..."},
    {"docno": "d8", "title": "Ελλάδα", "text": "Ο ποταμός 𐐀𐐁 東京"},
]
TOPICS = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["university city", "giraffe neck", "city ranking terms"]})
CANDIDATES = TOPICS.merge(pd.DataFrame(CORPUS), how="cross")
BARE = CANDIDATES[["qid", "query", "docno"]]
QRELS = pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": ["d1", "d3", "d5"], "label": 1})
TRAINING = pn.Training(epochs=3, verbose=False, device="cpu")


@cache
def spaces() -> pn.EmbeddingSpaces:
    words = list(
        dict.fromkeys(word for document in CORPUS for word in tokenise(f"{document['title']} {document['text']}"))
    )
    random = np.random.default_rng(1)
    vectors = (random.normal(size=(len(words), 5)).astype("f4") for _ in range(2))
    return pn.EmbeddingSpaces.from_vectors(Vocabulary(words), *vectors)


def desm() -> pn.DESM:
    return pn.DESM(spaces())


def lsa() -> pn.LSA:
    return pn.LSA(dim=4, min_count=1).fit_corpus(CORPUS, verbose=False)


def tfidf() -> pn.TFIDF:
    return pn.TFIDF().fit_corpus(CORPUS, verbose=False)


SSI = {"dim": 4, "embedded_terms": 15, "hash_size": 50_000, "nonzeros": 4, "rounds": 1, "training": TRAINING}


def ssi() -> pn.SSI:
    return pn.SSI(**SSI).fit(CANDIDATES, QRELS)


def ssi_latent() -> pn.SSI:
    return pn.SSI("symmetric", identity=False, **{**SSI, "embedded_terms": 1000}).fit(CANDIDATES, QRELS)


def ssi_sparse() -> pn.SSI:
    return pn.SSI("sparse", **SSI).fit(CANDIDATES, QRELS)


def ssi_hash() -> pn.SSI:
    return pn.SSI("hash", **SSI).fit(CANDIDATES, QRELS)


def ssi_correlated() -> pn.SSI:
    return pn.SSI("correlated-hash", ngrams=2, **SSI).fit(CANDIDATES, QRELS)


def ssi_two_vocabularies() -> pn.SSI:
    return pn.SSI(shared_vocabulary=False, **{**SSI, "embedded_terms": 1000}).fit(CANDIDATES, QRELS)


def dssm() -> pn.DSSM:
    return pn.DSSM((8, 6), training=TRAINING, device="cpu").fit(CANDIDATES, QRELS)


def clsm() -> pn.CLSM:
    return pn.CLSM(filters=8, dim=6, max_terms=5, training=TRAINING, device="cpu").fit(CANDIDATES, QRELS)


SIZES = {"document_terms": 20, "filters": 8, "hidden": 6, "training": TRAINING, "device": "cpu"}


def duet_local() -> pn.DuetLocal:
    return pn.DuetLocal(**SIZES).fit(CANDIDATES, QRELS)


def duet_distributed() -> pn.DuetDistributed:
    return pn.DuetDistributed(pooling=5, **SIZES).fit(CANDIDATES, QRELS)


def duet() -> pn.Duet:
    return pn.Duet(pooling=5, **SIZES).fit(CANDIDATES, QRELS)


def drmm() -> pn.DRMM:
    return pn.DRMM(spaces(), training=TRAINING, device="cpu").fit(CANDIDATES, QRELS)


READERS = {"projection": 4, "document_units": 5, "query_units": 3, "hidden": 6, "document_terms": 20, "device": "cpu"}
TENSOR = {"tensor_size": 4, "filters": 3, "second_filters": 4}


def ssm() -> pn.SSM:
    return pn.SSM(spaces(), **READERS, training=TRAINING).fit(CANDIDATES, QRELS)


def ssm_attention() -> pn.SSM:
    return pn.SSM(spaces(), pooling="attention", **READERS, training=TRAINING).fit(CANDIDATES, QRELS)


def match_tensor() -> pn.MatchTensor:
    return pn.MatchTensor(spaces(), **READERS, **TENSOR, training=TRAINING).fit(CANDIDATES, QRELS)


def match_tensor_ssm() -> pn.MatchTensorSSM:
    return pn.MatchTensorSSM(spaces(), **READERS, **TENSOR, training=TRAINING).fit(CANDIDATES, QRELS)


def match_tensor_exact() -> pn.MatchTensorSSM:
    model = pn.MatchTensorSSM(spaces(), channels="exact", boundaries=False, **READERS, **TENSOR, training=TRAINING)
    return model.fit(CANDIDATES, QRELS)


def plsa() -> pn.PLSA:
    return pn.PLSA(3).fit_corpus(CORPUS, verbose=False)


def topic_cosine() -> TwoTower:
    return plsa().cosine()


def lda() -> pn.LDA:
    return pn.LDA(3, iterations=20).fit_corpus(CORPUS, verbose=False)


def bltm() -> pn.BLTM:
    return pn.BLTM(3).fit(CANDIDATES, QRELS, verbose=False)


def word_translation() -> pn.WordTranslation:
    return pn.WordTranslation().fit(CANDIDATES, QRELS, verbose=False)


def phrase_translation() -> pn.PhraseTranslation:
    return pn.PhraseTranslation().fit(CANDIDATES, QRELS, verbose=False)


INTERACTION = (duet_local, duet_distributed, duet, drmm, match_tensor, match_tensor_ssm, match_tensor_exact)
TOWERS = {make.__name__: cache(make) for make in (desm, lsa, topic_cosine, dssm, clsm, ssm)}
SUPERVISED = {
    make.__name__: cache(make) for make in (ssi, ssi_latent, ssi_sparse, ssi_hash, ssi_correlated, ssi_two_vocabularies)
}
BILINEAR = {"tfidf": cache(tfidf), **SUPERVISED}
KEEPERS = {**TOWERS, **BILINEAR}
RERANKERS = {make.__name__: cache(make) for make in (*INTERACTION, ssm_attention)}
LANGUAGE = {make.__name__: cache(make) for make in (plsa, lda, bltm, word_translation, phrase_translation)}
FITTED = {**KEEPERS, **RERANKERS, **LANGUAGE}
TRAINED = ["dssm", "clsm", "ssm", *SUPERVISED, *RERANKERS]
UNFITTED = {
    "lsa": pn.LSA,
    "topic_cosine": lambda **options: pn.PLSA().cosine(**options),
    "dssm": pn.DSSM,
    "clsm": pn.CLSM,
    "ssm": lambda **options: pn.SSM(spaces(), **options),
}
UNFITTED_BILINEAR = {
    "tfidf": pn.TFIDF,
    "ssi": pn.SSI,
    "ssi_latent": lambda **options: pn.SSI("symmetric", identity=False, **options),
    "ssi_sparse": lambda **options: pn.SSI("sparse", **options),
    "ssi_hash": lambda **options: pn.SSI("hash", **options),
    "ssi_correlated": lambda **options: pn.SSI("correlated-hash", ngrams=2, **options),
    "ssi_two_vocabularies": lambda **options: pn.SSI(shared_vocabulary=False, **options),
}
UNFITTED_LANGUAGE = {
    "plsa": pn.PLSA,
    "lda": pn.LDA,
    "bltm": pn.BLTM,
    "word_translation": pn.WordTranslation,
    "phrase_translation": pn.PhraseTranslation,
}
UNFITTED_RERANKERS = {
    "duet_local": pn.DuetLocal,
    "duet_distributed": pn.DuetDistributed,
    "duet": pn.Duet,
    "drmm": lambda: pn.DRMM(spaces()),
    "match_tensor": lambda: pn.MatchTensor(spaces()),
    "match_tensor_ssm": lambda: pn.MatchTensorSSM(spaces()),
    "match_tensor_exact": lambda: pn.MatchTensorSSM(spaces(), channels="exact"),
    "ssm_attention": lambda: pn.SSM(spaces(), pooling="attention"),
}
UNFITTED_ALIKE = {**UNFITTED_RERANKERS, **UNFITTED_BILINEAR, **UNFITTED_LANGUAGE}  # all but two towers


@pytest.fixture(params=FITTED)
def ranker(request):
    return FITTED[request.param]()


@pytest.fixture(params=TOWERS)
def tower(request):
    return TOWERS[request.param]()


@pytest.fixture(params=KEEPERS)
def keeper(request):
    return KEEPERS[request.param]()


@pytest.fixture
def like(tmp_path):
    """Gives a copy of a ranker that differs in some arguments, by way of the disk."""

    def copy(ranker, **options):
        if not (tmp_path / "saved.pn").exists():
            ranker.save(tmp_path / "saved.pn")
        return type(ranker).load(tmp_path / "saved.pn", **options)

    return copy


@pytest.fixture
def forward(tmp_path) -> pn.ForwardIndex:
    return pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)


@pytest.fixture
def vectors(request, tmp_path):
    model = request.getfixturevalue("tower" if "tower" in request.fixturenames else "keeper")
    return model.index(tmp_path / "vectors", CORPUS, verbose=False)


def scores(ranker, frame: pd.DataFrame) -> np.ndarray:
    return ranker.transform(frame)["score"].to_numpy()


# Rows, columns, order


def test_rows_and_other_columns_stay_and_the_input_too(ranker):
    frame = CANDIDATES.sample(frac=1, random_state=0).assign(note=range(len(CANDIDATES)), score=7.0, rank=-1)
    before = frame.copy()
    scored = ranker.transform(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert list(scored.columns) == list(frame.columns)
    kept = scored.columns.difference(["score", "rank"])
    pd.testing.assert_frame_equal(scored[kept], frame[kept])
    assert scored.dtypes[["score", "rank"]].tolist() == ["float64", "int64"]


def test_ranks_go_by_score_then_docno(ranker):
    scored = ranker.transform(pd.concat([CANDIDATES, CANDIDATES[::3].assign(docno="d0")]))
    for _, one in scored.groupby("qid"):
        expected = one.sort_values(["score", "docno"], ascending=[False, True], kind="stable")
        assert expected["rank"].tolist() == list(range(len(one)))


@pytest.mark.parametrize(
    ("columns", "added"),
    [
        (["qid", "query", "docno", "text"], ["score", "rank"]),
        (["qid", "query", "docno", "title", "text"], ["score", "rank"]),
        (["qid", "query_vec", "docno", "doc_vec"], ["score", "rank"]),
        (["qid", "query"], ["query_vec"]),
        (["docno", "text"], ["doc_vec"]),
    ],
)
def test_empty_frames_get_their_columns(tower, columns, added):
    for model in (tower, *UNFITTED.values()):
        model = model if model is tower else model()
        done = model.transform(pd.DataFrame(columns=columns))
        assert list(done.columns) == columns + added
        assert len(done) == 0
        if "score" in added:
            assert done.dtypes[["score", "rank"]].tolist() == ["float64", "int64"]


@pytest.mark.parametrize(("lacking", "named"), [(["title", "text"], "text"), (["query"], "query"), (["qid"], "qid")])
def test_missing_columns_are_named(keeper, lacking, named):
    with pytest.raises(KeyError, match=named):
        keeper.text_scorer().transform(CANDIDATES.drop(columns=lacking))


def test_a_forgotten_text_loader_is_named(ranker):
    with pytest.raises(KeyError) as raised:
        ranker.transform(BARE.assign(score=1.0, rank=0))
    assert str(raised.value).startswith(f"the frame has no text for {ranker!r}, none of the columns title, text: add")
    assert ">> index.text_loader(['title', 'text'])" in str(raised.value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("name", UNFITTED_ALIKE)
def test_rerankers_give_empty_frames_their_columns(name):
    for model in (FITTED[name](), UNFITTED_ALIKE[name]()):
        done = model.transform(CANDIDATES[:0])
        assert list(done.columns) == [*CANDIDATES.columns, "score", "rank"]
        assert done.dtypes[["score", "rank"]].tolist() == ["float64", "int64"]


def test_duplicate_rows_score_alike(ranker):
    scored = ranker.transform(pd.concat([CANDIDATES, CANDIDATES, CANDIDATES[:1]], ignore_index=True))
    whole = scores(ranker, CANDIDATES)
    np.testing.assert_allclose(scored["score"], np.concatenate([whole, whole, whole[:1]]), atol=1e-6)
    assert sorted(scored[scored["qid"] == "q1"]["rank"]) == list(range(17))


def test_scores_do_not_depend_on_the_other_rows_or_the_batch(ranker, like):
    whole = scores(ranker, CANDIDATES)
    order = np.random.default_rng(0).permutation(len(CANDIDATES))
    np.testing.assert_allclose(scores(ranker, CANDIDATES.iloc[order]), whole[order], atol=1e-5)
    alone = [scores(ranker, CANDIDATES.iloc[[row]])[0] for row in range(len(CANDIDATES))]
    np.testing.assert_allclose(alone, whole, atol=1e-5)
    for batch_size in (1, 3):
        np.testing.assert_allclose(scores(like(ranker, batch_size=batch_size), CANDIDATES), whole, atol=1e-5)


def test_the_same_frame_gets_the_same_scores(ranker):
    np.testing.assert_array_equal(scores(ranker, CANDIDATES), scores(ranker, CANDIDATES))


def test_fields_name_the_text(ranker, like):
    only = scores(ranker, CANDIDATES.assign(text=""))
    np.testing.assert_allclose(scores(ranker, CANDIDATES.drop(columns="text")), only, atol=1e-6)
    assert not np.allclose(scores(ranker, CANDIDATES), only)
    if ranker.tells_fields_apart:
        with pytest.raises(ValueError, match="tells apart the 2 fields that it was trained on"):
            like(ranker, fields="title")
    else:
        titles = like(ranker, fields="title")
        np.testing.assert_allclose(scores(titles, CANDIDATES), only, atol=1e-6)
        np.testing.assert_allclose(scores(titles, CANDIDATES.drop(columns="text")), only, atol=1e-6)


# Where vectors come from


def test_text_forward_index_and_kept_vectors_score_alike(keeper, like, forward, vectors):
    by_text = scores(keeper, CANDIDATES)
    np.testing.assert_allclose(scores(like(keeper, documents=forward), BARE), by_text, atol=1e-5)
    np.testing.assert_allclose(scores(like(keeper, vectors=vectors), BARE), by_text, atol=1e-5)


@pytest.mark.parametrize("name", [*RERANKERS, *LANGUAGE])
def test_rerankers_score_text_and_forward_index_alike(name, like, forward):
    ranker = FITTED[name]()
    by_text, model = scores(ranker, CANDIDATES), like(ranker, documents=forward)
    np.testing.assert_allclose(scores(model, BARE), by_text, atol=1e-5)
    np.testing.assert_allclose(scores(pickle.loads(pickle.dumps(model)), BARE), by_text, atol=1e-5)
    with pytest.raises(ValueError, match="d99"):
        model.transform(BARE.assign(docno=["d99", *BARE["docno"][1:]]))
    model.documents = None
    np.testing.assert_allclose(scores(model, CANDIDATES), by_text, atol=1e-5)


def test_what_is_set_later_counts(keeper, like, forward, vectors):
    """pt.GridSearch sets attributes; and vectors are made by the model that will use them."""
    by_text, model = scores(keeper, CANDIDATES), like(keeper)
    model.vectors = vectors
    np.testing.assert_allclose(scores(model, BARE), by_text, atol=1e-5)
    model.vectors, model.documents = None, forward
    np.testing.assert_allclose(scores(model, BARE), by_text, atol=1e-5)
    model.documents, model.fields = None, ["title", "note"]
    noted = CANDIDATES.assign(note="The giraffe is the tallest living animal.")
    np.testing.assert_array_equal(scores(model, noted), scores(keeper, noted.assign(text=noted["note"])))


def test_results_without_their_queries_do_not_keep_the_first_stage_s_scores(ranker):
    with pytest.raises(KeyError, match="query"):
        ranker.transform(CANDIDATES.drop(columns="query"))


@pytest.mark.parametrize("name", [*(name for name in UNFITTED if name != "topic_cosine"), *UNFITTED_BILINEAR])
def test_kept_vectors_are_not_those_of_a_new_training(name):
    model = {**UNFITTED, **UNFITTED_BILINEAR}[name](vectors="kept")
    with pytest.raises(ValueError, match=r"train without them, then set model\.vectors"):
        fit(model, CORPUS, QRELS)


def fit(model, corpus, qrels):
    """Fit a model to what it learns from."""
    if hasattr(model, "fit_corpus"):
        return model.fit_corpus(corpus, verbose=False)
    return model.fit(CANDIDATES, qrels)


def other_than(ranker):
    """A model of the same class and dimensions."""
    if isinstance(ranker, pn.DESM):
        return pn.DESM(ranker.spaces, document="in")
    if isinstance(ranker, pn.LSA):
        return pn.LSA(dim=4, min_count=1).fit_corpus(CORPUS[:-2], verbose=False)
    if isinstance(ranker, TopicCosine):
        return pn.PLSA(3, seed=99).fit_corpus(CORPUS, verbose=False).cosine()
    if isinstance(ranker, pn.TFIDF):
        return pn.TFIDF().fit_corpus([*CORPUS, {**CORPUS[0], "docno": "copy"}], verbose=False)
    other = pickle.loads(pickle.dumps(ranker))
    other.training = pn.Training(epochs=1, seed=99, verbose=False, device="cpu")
    return other.fit(CANDIDATES, QRELS)


def test_vectors_of_another_model_are_refused(keeper, like, vectors, tmp_path):
    other = other_than(keeper)
    message = r"made by another model than this .*index the collection again: model\.index\("
    with pytest.raises(ValueError, match=message):
        other.vectors = vectors
    assert other.vectors is None
    with pytest.raises(ValueError, match=message):
        other.retriever(vectors)
    with pytest.raises(ValueError, match=message):
        like(keeper, vectors=other.index(tmp_path / "other", CORPUS, verbose=False))
    like(keeper, vectors=vectors).transform(BARE)
    other.vectors = other.index(tmp_path / "vectors", CORPUS, overwrite=True, verbose=False)
    other.transform(BARE)
    with pytest.raises(ValueError, match=message):
        like(keeper, vectors=tmp_path / "vectors")


def test_vectors_that_do_not_say_who_made_them_are_taken(keeper, like, vectors):
    metadata = Path(vectors.path) / "pt_meta.json"
    content = json.loads(metadata.read_text())
    assert len(content.pop("model_fingerprint")) == 64
    metadata.write_text(json.dumps(content))
    np.testing.assert_allclose(scores(like(keeper, vectors=vectors), BARE), scores(keeper, CANDIDATES), atol=1e-5)
    other = other_than(keeper)
    other.vectors = vectors
    assert len(other.retriever(vectors).transform(TOPICS))


@pytest.mark.parametrize("name", ["lsa", "dssm", "clsm", "ssm", *BILINEAR])
def test_a_retriever_is_not_that_of_its_model_fitted_anew(name, tmp_path):
    model = pickle.loads(pickle.dumps(FITTED[name]()))
    retriever = model.retriever(model.index(tmp_path / "vectors", CORPUS, verbose=False))
    before = retriever.transform(TOPICS)
    model.seed = 5
    fit(model, CORPUS[1:], QRELS[:2])
    with pytest.raises(ValueError, match="before it was fitted anew"):
        retriever.transform(TOPICS)
    assert len(before)


def test_pyterrier_drs_scorer_orders_alike(tower, vectors):
    native = (tower.query_encoder() >> vectors.scorer()).transform(BARE)
    both = tower.transform(CANDIDATES).merge(native, on=["qid", "docno"], suffixes=("", "_native"))
    known = both[both["score"] != tower.least_score]  # it knows only the product, 0 for an empty document
    np.testing.assert_allclose(known["score_native"], known["score"], atol=1e-5)
    assert len(known) >= 3 * 6


def test_a_corpus_and_its_forward_index_have_the_same_vectors(tower, like, vectors, forward, tmp_path):
    again = like(tower, batch_size=3).index(tmp_path / "again", forward, verbose=False)
    assert list(again.payload()[0]) == [document["docno"] for document in CORPUS]
    np.testing.assert_allclose(again.payload()[1], vectors.payload()[1], atol=1e-6)


def test_whole_collection_retrieval_is_brute_force(keeper, vectors):
    found = keeper.retriever(vectors, num_results=4).transform(TOPICS)
    ranked = keeper.transform(CANDIDATES).sort_values(["qid", "rank"])
    sparse = getattr(keeper, "kind", None) == "sparse"  # which finds documents that share a word with q'W
    nothing = [keeper.least_score, *([0] if sparse else [])]
    expected = ranked[~ranked["score"].isin(nothing)].groupby("qid").head(4).reset_index(drop=True)
    expected["rank"] = expected.groupby("qid").cumcount()
    pd.testing.assert_frame_equal(found[["qid", "docno", "rank"]], expected[["qid", "docno", "rank"]])
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-5)
    assert found["query"].tolist() == expected["query"].tolist()


@pytest.mark.parametrize("name", LANGUAGE)
def test_language_models_retrieve_what_they_score_best(name, like, forward):
    model = like(LANGUAGE[name](), documents=forward)
    ranked = model.transform(BARE).sort_values(["qid", "rank"])
    found = model.retriever(forward, num_results=4).transform(TOPICS)
    worded = ranked[ranked["docno"].isin(document_lengths(model, forward))]
    expected = worded.groupby("qid").head(4).reset_index(drop=True)
    assert found["docno"].tolist() == expected["docno"].tolist()
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-5)
    again = pickle.loads(pickle.dumps(model)).retriever(forward, num_results=4).transform(TOPICS)
    pd.testing.assert_frame_equal(again, found)
    assert model.retriever(forward).transform(TOPICS.assign(query="鬱")).empty


def document_lengths(model, forward) -> dict[str, float]:
    """Words of each document that a model knows, without those documents that have none."""
    lengths = zip(forward.docnos, model.read_whole(forward).lengths, strict=True)
    return {docno: length for docno, length in lengths if length}


@pytest.mark.parametrize("name", LANGUAGE)
def test_language_models_with_all_weight_on_it_are_the_unigram_model(name, like):
    scored = like(LANGUAGE[name](), unigram_weight=1, mu=20).transform(CANDIDATES.assign(query="city river city"))
    counts = [pd.Series(tokenise(f"{document['title']} {document['text']}")).value_counts() for document in CORPUS]
    collection = sum((count.reindex(["city", "river"], fill_value=0) for count in counts), start=0)
    total = sum(map(sum, counts)) + 0.5 * sum_of_query_words(LANGUAGE[name]())
    for row in scored.drop_duplicates("docno").itertuples():
        count = counts[[document["docno"] for document in CORPUS].index(row.docno)]
        by_hand = [
            (count.get(w, 0) + 20 * collection[w] / total) / (sum(count) + 20) for w in ("city", "river", "city")
        ]
        assert row.score == pytest.approx(np.log(by_hand).sum(), abs=1e-4)


def sum_of_query_words(model) -> int:
    """How many words only training queries have, which count half."""
    return int((model.vocabulary.collection_frequency == 0).sum())


def test_encoders_add_pyterrier_drs_columns_and_the_model_scores_them(tower):
    queries = tower.query_encoder().transform(TOPICS)
    documents = tower.doc_encoder().transform(pd.DataFrame(CORPUS))
    pd.testing.assert_frame_equal(queries, tower.transform(TOPICS))
    pd.testing.assert_frame_equal(documents, tower.transform(pd.DataFrame(CORPUS)))
    for vector in [*queries["query_vec"], *documents["doc_vec"]]:
        assert vector.dtype == np.float32
        assert vector.shape == queries["query_vec"][0].shape
    lengths = [float(np.linalg.norm(vector)) for vector in documents["doc_vec"]]
    assert [length > 0 for length in lengths[:7]] == [True] * 6 + [False]
    if not isinstance(tower, pn.SSM):
        assert lengths[:6] == pytest.approx([1] * 6, abs=1e-5)
    pairs = queries[["qid", "query_vec"]].merge(documents[["docno", "doc_vec"]], how="cross")
    np.testing.assert_allclose(scores(tower, pairs), scores(tower, CANDIDATES), atol=1e-5)
    half = queries.merge(documents[["docno", "doc_vec"]], how="cross").drop(columns="query_vec")
    np.testing.assert_allclose(scores(tower, half), scores(tower, CANDIDATES), atol=1e-5)


def test_indexing_reads_and_encodes_a_batch_at_a_time(tower, like, tmp_path, monkeypatch):
    model = like(tower, batch_size=3)
    read, encoded = [], []
    encode = model.encode_documents

    def spy(texts):
        encoded.append((len(read), len(texts)))
        return encode(texts)

    monkeypatch.setattr(model, "encode_documents", spy)
    corpus = (read.append(document) or document for document in CORPUS)
    model.index(tmp_path / "batches", corpus, verbose=False)
    assert encoded == [(3, 3), (6, 3), (8, 2)]


def test_indexing_shows_progress(keeper, tmp_path, capfd):
    keeper.index(tmp_path / "shown", CORPUS)
    assert "vectors" in capfd.readouterr().err


def test_unknown_terms_of_a_sequence_are_no_terms_of_the_vocabulary(tower):
    vocabulary = Vocabulary(["city", "river"])
    sequences = PackedSequences(np.array([0, 0, -1, -1]), np.array([0, 1, 3, 4]), np.array([[0, 1], [0, 2], [0, 1]]))
    known, unknown, nothing = tower.encode_sequences(sequences, vocabulary)
    np.testing.assert_allclose(known, tower.encode_documents(["city"])[0], atol=1e-6)
    np.testing.assert_allclose(unknown, tower.encode_documents(["city ☂ 鬱"])[0], atol=1e-6)
    assert not nothing.any()
    turned, other = PackedSequences(np.array([1]), np.array([0, 1]), np.array([[0, 1]])), Vocabulary(["river", "city"])
    np.testing.assert_allclose(tower.encode_sequences(turned, other)[0], known, atol=1e-6)


def test_no_texts_give_no_vectors(tower):
    dimensions = tower.encode_queries(["city"]).shape[1]
    for encode in (tower.encode_queries, tower.encode_documents):
        assert encode([]).shape == (0, dimensions)


def preparation(model):
    """What turns texts into tensors, whatever the model calls it."""
    if isinstance(model, EmbeddedRanker):
        return model.vectors_of_words
    if isinstance(model, pn.SSI):
        return model.features
    return model.frequencies if isinstance(model, pn.DRMM) else model.hashing


@pytest.mark.parametrize("name", TRAINED)
def test_the_dev_measure_sees_the_scores_that_users_get(name, like, forward):
    ranker = FITTED[name]()
    for model, frame in ((ranker, CANDIDATES), (like(ranker, documents=forward, batch_size=2), BARE)):
        seen = model._scorer(preparation(model), frame)(model.network)
        np.testing.assert_allclose(seen, scores(model, frame), atol=1e-6)
        assert len(np.unique(seen)) > 5


@pytest.mark.parametrize("name", TRAINED)
def test_training_again_forgets_what_was_kept_of_the_forward_index(name, like, forward):
    again = like(FITTED[name](), documents=forward)
    once = like(FITTED[name](), documents=forward)
    scores(again, BARE)
    other = BARE.assign(query="entirely different queries " + BARE["query"])
    for model in (again, once):
        model.fit(other, QRELS, other, QRELS)
    histories = [model.history.drop(columns="seconds") for model in (again, once)]
    pd.testing.assert_frame_equal(*histories)
    np.testing.assert_array_equal(scores(again, BARE), scores(once, BARE))


# Hostile frames


@pytest.mark.parametrize("nothing", ["", "?!", "鬱鬱鬱", None, np.nan, pd.NA])
def test_nothing_known_has_a_defined_score(keeper, nothing):
    frame = pd.DataFrame({"qid": ["1", "2"], "query": [nothing, "city"], "docno": "d", "text": ["city", nothing]})
    assert scores(keeper, frame).tolist() == [0, keeper.least_score]
    assert scores(keeper, frame.assign(query=nothing)).tolist() == [0, keeper.least_score]


@pytest.mark.parametrize("nothing", ["", "?!", None, np.nan, pd.NA])
@pytest.mark.parametrize("name", [*RERANKERS, *LANGUAGE])
def test_nothing_is_like_an_empty_text(name, nothing):
    ranker, frame = FITTED[name](), CANDIDATES.drop(columns="title")
    for column in ("query", "text"):
        found = scores(ranker, frame.assign(**{column: nothing}))
        np.testing.assert_array_equal(found, scores(ranker, frame.assign(**{column: ""})))
        assert np.isfinite(found).all()


@pytest.mark.parametrize("name", FITTED)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(st.tuples(st.text(max_size=20) | st.none(), st.text(max_size=60) | st.none()), max_size=6))
def test_hostile_frames_get_finite_scores(name, rows):
    frame = pd.DataFrame(rows, columns=["query", "text"]).assign(qid=[str(i) for i in range(len(rows))], docno="d")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scores(FITTED[name](), frame)
    assert np.isfinite(found).all()
    if name in KEEPERS and name not in ("ssm", *SUPERVISED):
        assert (np.abs(found) <= 1 + 1e-5).all()


def test_a_million_characters(ranker):
    texts = ["river city " * 100_000, "x" * 1_000_000, " ".join(map(str, range(150_000)))]
    frame = pd.DataFrame({"qid": "1", "query": "city", "docno": ["a", "b", "c"], "text": texts})
    assert np.isfinite(scores(ranker, frame)).all()


def test_queries_that_are_numbers(ranker):
    frame = CANDIDATES.assign(query=25)
    np.testing.assert_allclose(scores(ranker, frame), scores(ranker, frame.assign(query="25")), atol=1e-6)


def test_unknown_docnos_are_refused(keeper, like, forward, vectors):
    strange = BARE.assign(docno=["d99", *BARE["docno"][1:]])
    with pytest.raises(ValueError, match="d99"):
        like(keeper, documents=forward).transform(strange)
    with pytest.raises(ValueError, match="d99"):
        like(keeper, vectors=vectors).transform(strange)
    with pytest.raises(ValueError, match="not in ForwardIndex"):
        like(keeper, documents=forward).transform(BARE.assign(docno=[None, *BARE["docno"][1:]]))


@pytest.mark.parametrize("name", TRAINED)
def test_dev_candidates_without_a_docno_are_refused(name, like, forward):
    model = like(FITTED[name](), documents=forward)
    with pytest.raises(ValueError, match="not in ForwardIndex"):
        model.fit(BARE, QRELS, BARE.assign(docno=[None, *BARE["docno"][1:]]), QRELS)


# Copies, workers, pictures


def test_saving_and_loading_give_the_same_scores(ranker, like, tmp_path):
    expected = ranker.transform(CANDIDATES)
    pd.testing.assert_frame_equal(like(ranker).transform(CANDIDATES), expected)
    pd.testing.assert_frame_equal(pt.Artifact.load(str(tmp_path / "saved.pn")).transform(CANDIDATES), expected)


def test_places_in_the_user_s_home(keeper, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    keeper.save("~/model.pn")
    keeper.index("~/vectors", CORPUS, verbose=False)
    assert (tmp_path / "model.pn").is_dir()
    assert not (tmp_path / "~").exists()
    loaded = type(keeper).load("~/model.pn", vectors="~/vectors")
    np.testing.assert_allclose(scores(loaded, BARE), scores(keeper, CANDIDATES), atol=1e-5)


def test_nothing_but_its_own_kind_is_overwritten(keeper, tmp_path):
    vectors, model = tmp_path / "vectors", tmp_path / "model.pn"
    keeper.index(vectors, CORPUS, verbose=False)
    keeper.save(model)
    with pytest.raises(FileExistsError, match="not a ranker"):
        keeper.save(vectors, overwrite=True)
    with pytest.raises(FileExistsError, match=r"holds a ranker\..*, not a (dense_index\.flex|term_vectors)"):
        keeper.index(model, iter([]), overwrite=True, verbose=False)
    keeper.index(vectors, CORPUS, overwrite=True, verbose=False)
    keeper.save(model, overwrite=True)
    type(keeper).load(model, vectors=vectors).transform(BARE)


def test_pickles_do_not_hold_the_collection(keeper, like, vectors, tmp_path):
    small = len(pickle.dumps(keeper))
    many = [*CORPUS, {"docno": "many", "text": " ".join(map(str, range(10_000)))}]
    forward = pn.ForwardIndex.build(tmp_path / "many", many, verbose=False)
    for options in ({"documents": forward}, {"vectors": vectors}):
        model = like(keeper, **options)
        expected = model.transform(BARE)
        pickled = pickle.dumps(model)
        pd.testing.assert_frame_equal(pickle.loads(pickled).transform(BARE), expected)
        assert len(pickled) < small + 3000


@pytest.mark.parametrize("name", UNFITTED_ALIKE)
def test_unfitted_rerankers_say_what_to_do(name, tmp_path):
    model = UNFITTED_ALIKE[name]()
    for use in (lambda: model.transform(CANDIDATES), lambda: model.save(tmp_path / "model.pn")):
        with pytest.raises(RuntimeError, match=r"call .*fit"):
            use()


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(backend):
    rankers = [make() for make in FITTED.values()]
    found = Parallel(n_jobs=2, backend=backend)(delayed(scores)(ranker, CANDIDATES) for ranker in rankers)
    for ranker, one in zip(rankers, found, strict=True):
        np.testing.assert_allclose(one, scores(ranker, CANDIDATES), atol=1e-6)


def test_in_pipelines_and_experiments(keeper, like, vectors):
    pipeline = pt.Transformer.from_df(BARE.assign(score=0.0)) >> like(keeper, vectors=vectors)
    table = pt.Experiment([pipeline, keeper.retriever(vectors)], TOPICS, QRELS, ["recip_rank"])
    assert table["recip_rank"].between(0, 1).all()


def test_settings_can_be_inspected_and_changed(ranker):
    arguments = inspect.signature(type(ranker)).parameters
    assert [attribute.name for attribute in pt.inspect.transformer_attributes(ranker)] == list(arguments)
    changed = pt.inspect.transformer_apply_attributes(ranker, fields="title", batch_size=3)
    assert (changed.fields, changed.batch_size) == (("title",), 3)


def test_inspection_knows_what_goes_in(tower, vectors):
    text = ["qid", "docno", "query", "title", "text"]
    inputs = pt.inspect.transformer_inputs(tower)
    assert inputs[0] == text
    assert ["query"] in inputs
    mixed = pt.inspect.transformer_inputs(pn.Mixture(tower))
    assert [set(columns) for columns in mixed[:2]] == [{*text, "score"}, {*text, "score"} - {"title"}]
    assert ["query"] not in mixed
    both = pn.Mixture(tower.retriever(vectors), tower.retriever(vectors))
    assert pt.inspect.transformer_inputs(both) == [["qid", "query"]]


def test_representations_are_short(keeper, vectors):
    faces = [keeper, keeper.text_scorer(), keeper.retriever(vectors)]
    if isinstance(keeper, TwoTower):
        faces += [keeper.query_encoder(), keeper.doc_encoder()]
    assert max(len(repr(face)) for face in faces) < 70
    assert repr(keeper).startswith(type(keeper).__name__)


@pytest.mark.parametrize("name", UNFITTED)
def test_unfitted_models_say_what_to_do(name, tmp_path):
    model = UNFITTED[name]()
    for use in (
        lambda: model.transform(CANDIDATES),
        lambda: model.transform(TOPICS),
        lambda: model.transform(pd.DataFrame(CORPUS)),
        lambda: model.index(tmp_path / "vectors", CORPUS, verbose=False),
        lambda: model.save(tmp_path / "model.pn"),
    ):
        with pytest.raises(RuntimeError, match=r"call .*fit"):
            use()
    assert not [path for path in Path(tmp_path).iterdir() if not path.name.startswith(".")]


FACES = {
    "": lambda model: model,
    "QueryEncoder": lambda model: model.query_encoder(),
    "DocEncoder": lambda model: model.doc_encoder(),
    "TextScorer": lambda model: model.text_scorer(),
    "Retriever": lambda model: model.retriever("nowhere"),
}
FACES_OF = {
    **dict.fromkeys(BILINEAR, ("", "TextScorer", "Retriever")),
    **dict.fromkeys([*RERANKERS, *LANGUAGE], ("",)),
    **dict.fromkeys(TOWERS, tuple(FACES)),
}
for kind, makers in (("Fitted", FITTED), ("Unfitted", {**UNFITTED, **UNFITTED_ALIKE})):
    for name, make in makers.items():
        for face in FACES_OF[name]:
            turn = FACES[face]
            test_class = pt.testing.transformer_test_class(lambda make=make, turn=turn: turn(make()))
            globals()[f"Test{kind}{name.upper()}{face}"] = test_class
del test_class  # pytest would run the last one twice
