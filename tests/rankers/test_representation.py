"""What rankers do that represent queries and documents by themselves: keep, retrieve, encode."""

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural.text import PackedSequences, Vocabulary
from tests.rankers.fitted import (
    BARE,
    CANDIDATES,
    CORPUS,
    KEEPERS,
    LANGUAGE,
    QRELS,
    TOPICS,
    TOWERS,
    fit,
    fitted,
    forward,
    like,
    scores,
    unfitted,
    vectors,
)

REFITTED = [name for name in KEEPERS if name not in ("DESM", "TopicCosine")]


@pytest.fixture(params=KEEPERS)
def name(request) -> str:
    return request.param


@pytest.fixture
def keeper(name):
    return fitted(name)


def other_than(name: str):
    """A model of the same class and dimensions."""
    if name == "DESM":
        return pn.DESM(fitted(name).spaces, document="in")
    if name == "TopicCosine":
        return pn.PLSA(3, seed=99).fit_corpus(CORPUS, verbose=False).cosine()
    if hasattr(fitted(name), "fit_corpus"):
        return fit(unfitted(name), corpus=[*CORPUS, {**CORPUS[0], "docno": "copy"}])
    training = pn.Training(epochs=1, seed=99, verbose=False, device="cpu")
    return fit(unfitted(name, training=training))


def test_stored_representations_score_as_texts_do(name, keeper):
    by_text, model = scores(keeper, CANDIDATES), like(name, vectors=vectors(name))
    np.testing.assert_allclose(scores(model, BARE), by_text, atol=1e-5)
    assert len(pickle.dumps(model)) < len(pickle.dumps(keeper)) + 3000
    np.testing.assert_allclose(scores(pickle.loads(pickle.dumps(model)), BARE), by_text, atol=1e-5)
    with pytest.raises(ValueError, match="d99"):
        model.transform(BARE.assign(docno=["d99", *BARE["docno"][1:]]))
    model.vectors, model.documents = None, forward()  # as pt.GridSearch sets attributes
    np.testing.assert_allclose(scores(model, BARE), by_text, atol=1e-5)
    with pytest.raises(ValueError, match="documents or vectors, not both"):
        unfitted(name, vectors=vectors(name), documents=forward())


def test_retrieval_is_brute_force(name, keeper):
    retriever = keeper.retriever(vectors(name), num_results=4)
    found = retriever.transform(TOPICS)
    ranked = keeper.transform(CANDIDATES).sort_values(["qid", "rank"])
    by_terms = [0] if name in ("SSI sparse", "TFIDF") else []  # which find documents that share a word
    expected = ranked[~ranked["score"].isin([keeper.least_score, *by_terms])].groupby("qid").head(4)
    expected = expected.reset_index(drop=True)
    expected["rank"] = expected.groupby("qid").cumcount()
    pd.testing.assert_frame_equal(found[["qid", "docno", "rank"]], expected[["qid", "docno", "rank"]])
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-5)
    assert found["query"].tolist() == expected["query"].tolist()
    assert retriever == keeper.retriever(vectors(name), num_results=4)
    assert retriever.fuse_rank_cutoff(2) == keeper.retriever(vectors(name), num_results=2)
    assert keeper.retriever(vectors(name)).transform(TOPICS.assign(query="?")).empty
    pipeline = pt.Transformer.from_df(BARE.assign(score=0.0)) >> like(name, vectors=vectors(name))
    table = pt.Experiment([pipeline, retriever], TOPICS, QRELS, ["recip_rank"])
    assert table["recip_rank"].between(0, 1).all()


@pytest.mark.parametrize("name", LANGUAGE)
def test_language_models_retrieve_what_they_score_best(name):
    model = like(name, documents=forward())
    ranked = model.transform(BARE).sort_values(["qid", "rank"])
    found = model.retriever(forward(), num_results=4).transform(TOPICS)
    known = ranked[ranked["docno"] != "d7"]
    if name not in ("PLSA", "LDA"):  # which have learned the words of all documents
        known = known[known["docno"].isin(found["docno"])]
    expected = known.groupby("qid").head(4).reset_index(drop=True)
    assert found["docno"].tolist() == expected["docno"].tolist()
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-5)
    again = pickle.loads(pickle.dumps(model)).retriever(forward(), num_results=4).transform(TOPICS)
    pd.testing.assert_frame_equal(again, found)
    assert model.retriever(forward()).transform(TOPICS.assign(query="鬱")).empty


def test_nothing_known_has_a_defined_score(keeper):
    for nothing in ("", "?!", "鬱鬱鬱", None, np.nan, pd.NA):
        frame = pd.DataFrame({"qid": ["1", "2"], "query": [nothing, "city"], "docno": "d", "text": ["city", nothing]})
        assert scores(keeper, frame).tolist() == [0, keeper.least_score]
        assert scores(keeper, frame.assign(query=nothing)).tolist() == [0, keeper.least_score]


def test_vectors_of_another_model_are_refused(name, tmp_path):
    other, kept = other_than(name), vectors(name)
    message = r"made by another model than this .*index the collection again: model\.index\("
    for use in (lambda: setattr(other, "vectors", kept), lambda: other.retriever(kept)):
        with pytest.raises(ValueError, match=message):
            use()
    assert other.vectors is None
    others = other.index(tmp_path / "other", CORPUS, verbose=False)
    with pytest.raises(ValueError, match=message):
        like(name, vectors=others)
    metadata = Path(others.path) / "pt_meta.json"
    content = json.loads(metadata.read_text())
    assert len(content.pop("model_fingerprint")) == 64
    metadata.write_text(json.dumps(content))
    like(name, vectors=tmp_path / "other").transform(BARE)  # it no longer says who made it


@pytest.mark.parametrize("name", REFITTED)
def test_vectors_are_not_those_of_a_model_fitted_anew(name):
    model = unfitted(name, vectors=vectors(name))
    with pytest.raises(ValueError, match=r"train without them, then set model\.vectors"):
        fit(model)
    model = pickle.loads(pickle.dumps(fitted(name)))
    retriever = model.retriever(vectors(name))
    assert len(retriever.transform(TOPICS))
    fit(model, CANDIDATES, QRELS[:2], CORPUS[1:])
    with pytest.raises(ValueError, match="before it was fitted anew"):
        retriever.transform(TOPICS)


def test_places_and_overwriting(name, keeper, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    keeper.save("~/model.pn")
    keeper.index("~/vectors", CORPUS)
    assert "vectors" in capfd.readouterr().err  # progress
    assert not (tmp_path / "~").exists()
    with pytest.raises(FileExistsError, match="not a ranker"):
        keeper.save("vectors", overwrite=True)
    with pytest.raises(FileExistsError, match=r"holds a ranker\..*, not a (dense_index\.flex|term_vectors)"):
        keeper.index("model.pn", iter([]), overwrite=True, verbose=False)
    keeper.index("vectors", forward(), overwrite=True, verbose=False)
    keeper.save("model.pn", overwrite=True)
    loaded = type(keeper).load("~/model.pn", vectors="~/vectors")
    np.testing.assert_allclose(scores(loaded, BARE), scores(keeper, CANDIDATES), atol=1e-5)


@pytest.mark.parametrize("name", TOWERS)
def test_encoders_add_pyterrier_drs_columns_and_the_model_scores_them(name):
    tower = fitted(name)
    queries = tower.query_encoder().transform(TOPICS)
    documents = tower.doc_encoder().transform(pd.DataFrame(CORPUS))
    pd.testing.assert_frame_equal(queries, tower.transform(TOPICS))
    pd.testing.assert_frame_equal(documents, tower.transform(pd.DataFrame(CORPUS)))
    for vector in [*queries["query_vec"], *documents["doc_vec"]]:
        assert vector.dtype == np.float32
        assert vector.shape == queries["query_vec"][0].shape
    lengths = [float(np.linalg.norm(vector)) for vector in documents["doc_vec"]]
    assert [length > 0 for length in lengths[:7]] == [True] * 6 + [False]
    if name != "SSM":
        assert lengths[:6] == pytest.approx([1] * 6, abs=1e-5)
    pairs = queries[["qid", "query_vec"]].merge(documents[["docno", "doc_vec"]], how="cross")
    np.testing.assert_allclose(scores(tower, pairs), scores(tower, CANDIDATES), atol=1e-5)
    half = queries.merge(documents[["docno", "doc_vec"]], how="cross").drop(columns="query_vec")
    np.testing.assert_allclose(scores(tower, half), scores(tower, CANDIDATES), atol=1e-5)
    native = (tower.query_encoder() >> vectors(name).scorer()).transform(BARE)
    both = tower.transform(CANDIDATES).merge(native, on=["qid", "docno"], suffixes=("", "_native"))
    known = both[both["score"] != tower.least_score]  # pyterrier_dr has the product alone, 0 for an empty document
    np.testing.assert_allclose(known["score_native"], known["score"], atol=1e-5)
    for encode in (tower.encode_queries, tower.encode_documents):
        assert encode([]).shape == (0, len(queries["query_vec"][0]))


@pytest.mark.parametrize("name", TOWERS)
def test_a_corpus_and_its_forward_index_have_the_same_vectors(name, tmp_path):
    again = like(name, batch_size=3).index(tmp_path / "again", forward(), verbose=False)
    assert list(again.payload()[0]) == [document["docno"] for document in CORPUS]
    np.testing.assert_allclose(again.payload()[1], vectors(name).payload()[1], atol=1e-6)


@pytest.mark.parametrize("name", TOWERS)
def test_unknown_terms_of_a_sequence_are_no_terms_of_the_vocabulary(name):
    tower, vocabulary = fitted(name), Vocabulary(["city", "river"])
    sequences = PackedSequences(np.array([0, 0, -1, -1]), np.array([0, 1, 3, 4]), np.array([[0, 1], [0, 2], [0, 1]]))
    known, unknown, nothing = tower.represent_documents(sequences, vocabulary).dense
    np.testing.assert_allclose(known, tower.encode_documents(["city"])[0], atol=1e-6)
    np.testing.assert_allclose(unknown, tower.encode_documents(["city ☂ 鬱"])[0], atol=1e-6)
    assert not nothing.any()
    turned, other = PackedSequences(np.array([1]), np.array([0, 1]), np.array([[0, 1]])), Vocabulary(["river", "city"])
    np.testing.assert_allclose(tower.represent_documents(turned, other).dense[0], known, atol=1e-6)


@pytest.mark.parametrize(
    ("columns", "added"),
    [
        (["qid", "query_vec", "docno", "doc_vec"], ["score", "rank"]),
        (["qid", "query"], ["query_vec"]),
        (["docno", "text"], ["doc_vec"]),
    ],
)
def test_empty_frames_tell_what_is_wanted(columns, added):
    for name in TOWERS:
        for model in (fitted(name), unfitted(name)):
            done = model.transform(pd.DataFrame(columns=columns))
            assert list(done.columns) == columns + added


@pytest.mark.parametrize("name", TOWERS)
def test_inspection_knows_what_goes_in(name):
    text, tower = ["qid", "docno", "query", "title", "text"], fitted(name)
    inputs = pt.inspect.transformer_inputs(tower)
    assert inputs[0] == text
    assert ["query"] in inputs
    mixed = pt.inspect.transformer_inputs(pn.Mixture(tower))
    assert [set(columns) for columns in mixed[:2]] == [{*text, "score"}, {*text, "score"} - {"title"}]
    assert ["query"] not in mixed
    both = pn.Mixture(tower.retriever(vectors(name)), tower.retriever(vectors(name)))
    assert pt.inspect.transformer_inputs(both) == [["qid", "query"]]


def test_indexing_reads_a_batch_at_a_time(tmp_path, monkeypatch):
    model, read, represented = like("DESM", batch_size=3), [], []
    represent = model.represent_texts

    def spy(texts):
        represented.append((len(read), len(texts)))
        return represent(texts)

    monkeypatch.setattr(model, "represent_texts", spy)
    model.index(tmp_path / "batches", (read.append(document) or document for document in CORPUS), verbose=False)
    assert represented == [(3, 3), (6, 3), (8, 2)]


def test_queries_are_represented_in_blocks_that_stay_small(monkeypatch):
    model = like("TFIDF", vectors=vectors("TFIDF"))
    expected = scores(model, BARE), model.retriever(vectors("TFIDF")).transform(TOPICS)
    monkeypatch.setattr(type(model), "queries_per_block", 2)
    np.testing.assert_array_equal(scores(model, BARE), expected[0])
    pd.testing.assert_frame_equal(model.retriever(vectors("TFIDF")).transform(TOPICS), expected[1])


FACES = {
    "QueryEncoder": lambda model: model.query_encoder(),
    "DocEncoder": lambda model: model.doc_encoder(),
    "TextScorer": lambda model: model.text_scorer(),
    "Retriever": lambda model: model.retriever("nowhere"),
}
for one in ("DESM", "DSSM"):
    for face, turn in FACES.items():
        for kind, make in (("Fitted", fitted), ("Unfitted", unfitted)):
            tested = pt.testing.transformer_test_class(lambda make=make, one=one, turn=turn: turn(make(one)))
            globals()[f"Test{kind}{one}{face}"] = tested
del tested  # pytest would run the last one twice
