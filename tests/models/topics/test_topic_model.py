"""What PLSA and LDA share: ranking by topics, P(z|d) of documents, files and errors; and the cosine of topics."""

import copy
import shutil

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural._files import ArtifactError, read_tensors, write_tensors
from pt_neural.models.topics import topic_model
from pt_neural.models.topics.topic_model import TopicCosine
from pt_neural.text import Vocabulary, tokenise
from pt_neural.text.tokens import pack_texts

# "car" and "automobile" share no document; neither do "rose" and "tulip".
THEMES = [("car", "automobile", "engine wheel road repair"), ("rose", "tulip", "garden soil flower water")]
PLANTED = [
    {"docno": f"{word}{i}", "text": f"{word} {word} {' '.join(np.roll(others.split(), i)[:3])}"}
    for *names, others in THEMES
    for word in names
    for i in range(12)
]
QUERIES = pd.DataFrame({"qid": ["1", "2"], "query": ["car", "tulip"]})
CANDIDATES = QUERIES.merge(pd.DataFrame(PLANTED), how="cross")
BARE = CANDIDATES[["qid", "query", "docno"]]
KINDS = {"plsa": {"iterations": 60, "tolerance": 0}, "lda": {"alpha": 0.1, "iterations": 60}}


def make(kind: str, num_topics: int = 2, **options):
    model = {"plsa": pn.PLSA, "lda": pn.LDA}[kind]
    return model(num_topics, **{"fields": "text", "mu": 10, **KINDS[kind], **options})


@pytest.fixture(scope="module")
def fitted() -> dict:
    return {kind: make(kind).fit_corpus(PLANTED, verbose=False) for kind in KINDS}


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def model(kind, fitted):
    return copy.copy(fitted[kind])


@pytest.fixture
def plsa(fitted) -> pn.PLSA:
    return copy.copy(fitted["plsa"])


@pytest.fixture(scope="module")
def forward(tmp_path_factory) -> pn.ForwardIndex:
    return pn.ForwardIndex.build(tmp_path_factory.mktemp("index") / "forward", PLANTED, fields=["text"], verbose=False)


def test_words_that_share_no_document_are_brought_together(model):
    texts = ["automobile", "rose", "car", "tulip"]
    frame = QUERIES.merge(pd.DataFrame({"docno": texts, "text": texts}), how="cross")
    found = model.transform(frame).sort_values(["qid", "rank"]).groupby("qid")["docno"].apply(list)
    assert found["1"][:2] == ["car", "automobile"]
    assert found["2"][:2] == ["tulip", "rose"]
    model.unigram_weight = 1
    alone = model.transform(frame).set_index(["qid", "docno"])["score"]
    assert alone["1", "automobile"] == pytest.approx(alone["1", "rose"])


def test_topics_are_the_planted_themes(model):
    top = model.topics(6).groupby("topic")["word"].apply(set).tolist()
    themes = [{first, second, *others.split()} for first, second, others in THEMES]
    assert sorted(top, key=sorted) == sorted(themes, key=sorted)
    table = model.topics(3)
    assert list(table) == ["topic", "rank", "word", "probability"]
    assert table["rank"].tolist() == [0, 1, 2] * 2
    assert len(model.topics(1000)) == 2 * 12


def test_scores_are_query_likelihoods_with_the_topics_of_the_document(plsa):
    collection = [word for document in PLANTED for word in tokenise(document["text"])]
    word, text = "car", "car engine engine zebra"
    theta = plsa.document_topics([text])[0]
    p_model = plsa.word_topics[plsa.vocabulary.terms.index(word)].astype(float) @ theta
    unigram = (1 + 10 * collection.count(word) / len(collection)) / (3 + 10)
    frame = pd.DataFrame({"qid": ["1"], "query": ["car car zebra"], "docno": ["d"], "text": [text]})
    for weight in (0, 0.7, 1):
        plsa.unigram_weight = weight
        expected = 2 * np.log(weight * unigram + (1 - weight) * p_model)
        assert plsa.transform(frame)["score"].tolist() == pytest.approx([expected], rel=1e-5)


def test_the_probabilities_of_all_words_add_up_to_one(model):
    sequences, terms = pack_texts(["car engine engine zebra", "zebra", "rose " * 300, ""])
    documents = model.represent_documents(sequences, Vocabulary(terms))
    every = np.arange(len(model.vocabulary))
    np.testing.assert_allclose(model.word_probabilities(every, documents).sum(axis=1), [1, 0, 1, 0], rtol=1e-5)
    np.testing.assert_allclose(model.unigram_probabilities(every, documents).sum(axis=1), 1, rtol=1e-5)


def test_topics_of_documents_are_a_fixed_point_of_expectation_maximisation(model):
    texts = ["car engine engine", "rose garden wheel", "zebra", "", None, "car " * 500]
    topics = model.document_topics(texts)
    np.testing.assert_allclose(topics.sum(axis=1), [1, 1, 0, 0, 0, 1], atol=1e-5)
    for text, theta in zip(texts, topics, strict=True):
        words = model.vocabulary.ids(tokenise(text))
        if not (words >= 0).any():
            continue
        joint = model.word_topics[words[words >= 0]] * theta
        share = model.prior + (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0)
        np.testing.assert_allclose(theta, share / share.sum(), atol=1e-3)
    np.testing.assert_array_equal(model.query_topics(texts), topics)


def test_documents_of_a_forward_index_are_read_once(plsa, forward, monkeypatch):
    read = []
    fold_in = topic_model.fold_in
    monkeypatch.setattr(
        topic_model, "fold_in", lambda counts, *others: read.append(counts.shape[0]) or fold_in(counts, *others)
    )
    expected = plsa.transform(CANDIDATES)["score"]
    assert read == [len({document["text"] for document in PLANTED})]
    plsa.documents = forward
    read.clear()
    for rows in (BARE.head(20), BARE, BARE):
        np.testing.assert_allclose(plsa.transform(rows)["score"], expected[rows.index], rtol=1e-6)
    assert sum(read) == len(PLANTED)
    found = plsa.retriever(forward).transform(QUERIES)
    assert sum(read) == len(PLANTED)
    scores = CANDIDATES.assign(score=expected).set_index(["qid", "docno"])["score"]
    np.testing.assert_allclose(found["score"], scores[pd.MultiIndex.from_frame(found[["qid", "docno"]])], rtol=1e-6)
    assert len(found) == 2 * len(PLANTED)
    before = plsa.transform(BARE)["score"]
    plsa.fit_corpus([*PLANTED, {"docno": "new", "text": "car garden"}], verbose=False)
    assert not np.allclose(plsa.transform(BARE)["score"], before, rtol=1e-6)


def test_a_seed_gives_the_same_topics_from_any_source_and_rare_words_can_be_left_out(kind, model, forward):
    for source in (iter(PLANTED), pd.DataFrame(PLANTED), forward):
        again = make(kind).fit_corpus(source, verbose=False)
        assert again.vocabulary.terms == model.vocabulary.terms
        np.testing.assert_array_equal(again.word_topics, model.word_topics)
        assert again.fingerprint() == model.fingerprint()
    other = make(kind, seed=14, min_count=20, max_terms=3).fit_corpus(PLANTED, verbose=False)
    assert len(other.vocabulary) == 3
    assert min(other.vocabulary.collection_frequency) >= 20
    np.testing.assert_allclose(other.word_topics.sum(axis=0), [1, 1], atol=1e-5)
    other = make(kind, seed=14).fit_corpus(PLANTED, verbose=False)
    assert not other.history["log_likelihood"].equals(model.history["log_likelihood"])


def test_words_of_topics_are_ranked_by_probability_and_by_lift_over_the_collection(plsa):
    count = len(plsa.vocabulary)
    frequency = plsa.vocabulary.collection_frequency / plsa.vocabulary.collection_frequency.sum()
    for relevance in (1, 0.6, 0):
        for topic, rows in plsa.topics(count, relevance=relevance).groupby("topic"):
            ids = plsa.vocabulary.ids(rows["word"])
            probability = plsa.word_topics[ids, topic]
            np.testing.assert_array_equal(rows["probability"], probability)
            lift = np.log(np.maximum(probability, 1e-30) / frequency[ids])
            value = relevance * np.log(np.maximum(probability, 1e-30)) + (1 - relevance) * lift
            assert (np.diff(value) <= 1e-4).all()
    for options in ({"relevance": 1.5}, {"side": "title"}, {"words": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            plsa.topics(**options)


def test_history_and_progress_show_the_likelihood(kind, capsys):
    history = make(kind, iterations=3).fit_corpus(PLANTED, verbose=False).history
    assert capsys.readouterr() == ("", "")
    assert history["iteration"].iloc[[0, -1]].tolist() == [0, 3]
    assert (history["seconds"] >= 0).all()
    assert history["log_likelihood"].iloc[-1] > history["log_likelihood"].iloc[0]
    make(kind, iterations=3).fit_corpus(PLANTED)
    out, err = capsys.readouterr()
    assert "log-likelihood -" in err
    assert out == ""


@pytest.mark.parametrize("last", [0, 10])
def test_an_interruption_keeps_what_was_learned(kind, model, last):
    before, estimates = model.fingerprint(), model._estimates

    def interrupted(*arguments, **options):
        for estimate in estimates(*arguments, **options):
            yield estimate
            if estimate.number == last:
                raise KeyboardInterrupt

    for interrupted_model in (model, make(kind)):
        interrupted_model._estimates = interrupted
        with pytest.raises(KeyboardInterrupt):
            interrupted_model.fit_corpus([*PLANTED, {"docno": "new", "text": "new"}], verbose=False)
    if last == 0:
        assert (model.fingerprint(), interrupted_model.fingerprint()) == (before, None)
    else:
        assert model.fingerprint() == interrupted_model.fingerprint() != before
        assert model.history["iteration"].iloc[-1] == 10
        assert len(model.vocabulary) == 13


def test_what_is_loaded_has_the_history_and_one_array_for_both_sides(plsa, tmp_path):
    plsa.save(tmp_path / "model")
    loaded = pn.PLSA.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.history, plsa.history)
    assert loaded.query_word_topics is loaded.word_topics
    with pytest.raises(ValueError, match="num_topics cannot be changed by loading"):
        pn.PLSA.load(tmp_path / "model", num_topics=3)


def test_weights_that_do_not_fit_name_the_file(plsa, tmp_path):
    plsa.save(tmp_path / "model")
    weights = tmp_path / "model" / "weights.safetensors"
    arrays = read_tensors(weights)
    for damage in (
        {"prior": np.ones(3, "f4")},
        {"prior": np.array([-1, 1], "f4")},
        {"prior": None},
        {"word_topics": np.ones((12, 2))},
        {"word_topics": np.full((12, 2), np.nan, "f4")},
    ):
        write_tensors(weights, {name: array for name, array in {**arrays, **damage}.items() if array is not None})
        with pytest.raises(ArtifactError, match=r"weights\.safetensors does not fit"):
            pn.PLSA.load(tmp_path / "model")


def test_a_single_text_is_not_taken_for_many(plsa):
    for topics in (plsa.document_topics, plsa.query_topics):
        with pytest.raises(TypeError, match=r"list of texts, such as \['car'\]"):
            topics("car")


def test_an_unfitted_model_says_what_to_do():
    model = pn.PLSA()
    assert model.history.empty
    for use in (model.topics, lambda: model.document_topics(["car"]), lambda: model.query_topics(["car"])):
        with pytest.raises(RuntimeError, match=r"call model\.fit_corpus\(docs\.get_corpus_iter\(\)\)"):
            use()


def test_collections_that_teach_nothing():
    with pytest.raises(ValueError, match=r"no term of the 2 documents occurs at least 1 times"):
        pn.PLSA().fit_corpus([{"docno": "1", "text": ""}, {"docno": "2", "text": None}], verbose=False)
    with pytest.raises(ValueError, match="no documents"):
        pn.PLSA().fit_corpus([], verbose=False)
    with pytest.raises(TypeError, match="iterable of dicts"):
        pn.PLSA().fit_corpus("car", verbose=False)


def test_odd_collections(kind):
    odd = [{"docno": "1", "text": "ποταμός 東京 \ud800x"}, {"docno": "2", "text": ""}, {"docno": "3", "text": "x"}]
    model = make(kind, num_topics=5).fit_corpus(odd, verbose=False)
    frame = pd.DataFrame({"qid": "1", "query": "ποταμός", "docno": ["a", "b"], "text": ["東京", "😀"]})
    assert np.isfinite(model.transform(frame)["score"]).all()
    one = make(kind, num_topics=1).fit_corpus(odd, verbose=False)
    np.testing.assert_allclose(one.document_topics(["x", "東京"]), [[1], [1]])


def test_settings_out_of_range(kind):
    for name in ("num_topics", "iterations", "min_count", "max_terms"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1"):
            make(kind, **{name: 0})
        with pytest.raises(TypeError, match=f"{name} must be an integer"):
            make(kind, **{name: 1.5})


# The cosine of topics


@pytest.fixture
def cosine(plsa) -> TopicCosine:
    return plsa.cosine()


def test_scores_are_cosines_of_topics(cosine):
    queries, documents = (
        cosine.topics.query_topics(CANDIDATES["query"]),
        cosine.topics.document_topics(CANDIDATES["text"]),
    )
    norms = np.linalg.norm(queries, axis=1) * np.linalg.norm(documents, axis=1)
    np.testing.assert_allclose(
        cosine.transform(CANDIDATES)["score"], (queries * documents).sum(axis=1) / norms, atol=1e-5
    )


def test_texts_without_known_words(cosine):
    frame = pd.DataFrame({"qid": list("112"), "query": ["car", "car", "zebra"], "docno": list("aba")})
    scored = cosine.transform(frame.assign(text=["engine", "zebra", "engine"]))["score"].tolist()
    assert scored[1:] == [-1, 0]
    assert 0 < scored[0] <= 1 + 1e-6
    assert np.linalg.norm(cosine.encode_documents(["car", "zebra", ""]), axis=1).tolist() == pytest.approx([1, 0, 0])


def test_a_topic_model_that_is_fitted_again_makes_other_vectors(plsa):
    cosine = plsa.cosine()
    before = cosine.fingerprint()
    plsa.fit_corpus([*PLANTED, {"docno": "d9", "text": "zebra"}], verbose=False)
    assert cosine.fingerprint() != before


def test_save_and_load_keep_the_topic_model_inside(cosine, tmp_path):
    cosine.save(tmp_path / "cosine")
    for loaded in (TopicCosine.load(tmp_path / "cosine"), pt.Artifact.load(str(tmp_path / "cosine"))):
        pd.testing.assert_frame_equal(loaded.transform(CANDIDATES), cosine.transform(CANDIDATES))
        assert type(loaded.topics) is type(cosine.topics)
        assert loaded.fingerprint() == cosine.fingerprint()
        assert repr(loaded) == repr(cosine) == f"TopicCosine({cosine.topics!r})"
    (tmp_path / "cosine" / "topics" / "weights.safetensors").write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"topics/weights\.safetensors is damaged"):
        TopicCosine.load(tmp_path / "cosine")


def test_a_component_that_is_no_topic_model_is_refused(plsa, tmp_path):
    plsa.cosine().save(tmp_path / "cosine")
    shutil.rmtree(tmp_path / "cosine" / "topics")
    with pytest.raises(ArtifactError, match="topics"):
        TopicCosine.load(tmp_path / "cosine")
    pn.TopicCosine(plsa).save(tmp_path / "cosine" / "topics")
    with pytest.raises(ArtifactError, match=r"config\.json is damaged.*topics must be a topic model"):
        TopicCosine.load(tmp_path / "cosine")


def test_fields_are_those_of_the_topic_model(plsa):
    assert plsa.cosine().fields == ("text",)
    assert plsa.cosine(fields="title").fields == ("title",)


def test_clear_errors_of_the_cosine(tmp_path):
    with pytest.raises(TypeError, match="topics must be a topic model"):
        TopicCosine(pn.LSA())
    cosine = pn.PLSA(2).cosine()
    assert cosine.fingerprint() is None
    for use in (lambda: cosine.transform(CANDIDATES), lambda: cosine.save(tmp_path / "cosine")):
        with pytest.raises(RuntimeError, match="not fitted yet"):
            use()
