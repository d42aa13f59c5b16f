"""What PLSA and LDA share: ranking by topics, P(z|d) of documents, files, and errors."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from joblib import Parallel, delayed

import pt_neural as pn
from pt_neural._artifacts import ArtifactError, read_tensors, write_tensors
from pt_neural.models import topic_model
from pt_neural.text import Vocabulary, tokenise
from pt_neural.text.packed import pack_texts

# "car" and "automobile" share no document, "rose" and "tulip" neither.
THEMES = [("car", "automobile", "engine wheel road repair"), ("rose", "tulip", "garden soil flower water")]
PLANTED = [
    {"docno": f"{word}{i}", "text": f"{word} {word} {' '.join(np.roll(others.split(), i)[:3])}"}
    for *names, others in THEMES
    for word in names
    for i in range(12)
]
QUERIES = pd.DataFrame({"qid": ["1", "2"], "query": ["car", "tulip"]})
KINDS = {"plsa": {"iterations": 60, "tolerance": 0}, "lda": {"alpha": 0.1, "iterations": 60}}


def make(kind: str, num_topics: int = 2, **options):
    model = {"plsa": pn.PLSA, "lda": pn.LDA}[kind]
    return model(num_topics, **{"fields": "text", "mu": 10, **KINDS[kind], **options})


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def model(kind):
    return make(kind).fit_corpus(PLANTED, verbose=False)


@pytest.fixture
def candidates() -> pd.DataFrame:
    return QUERIES.merge(pd.DataFrame(PLANTED), how="cross")


@pytest.fixture
def forward(tmp_path) -> pn.ForwardIndex:
    return pn.ForwardIndex.build(tmp_path / "forward", PLANTED, fields=["text"], verbose=False)


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
    ids = model.vocabulary.ids(table["word"])
    np.testing.assert_array_equal(table["probability"], model.word_topics[ids, table["topic"]])
    assert (table.groupby("topic")["probability"].diff().dropna() <= 0).all()
    assert len(model.topics(1000)) == 2 * 12
    with pytest.raises(ValueError, match="words must be at least 1"):
        model.topics(0)


def test_scores_are_query_likelihoods_with_the_topics_of_the_document(model, candidates):
    collection = [word for document in PLANTED for word in tokenise(document["text"])]
    word, text = "car", "car engine engine zebra"
    theta = model.document_topics([text])[0]
    p_model = model.word_topics[model.vocabulary.terms.index(word)].astype(float) @ theta
    unigram = (1 + 10 * collection.count(word) / len(collection)) / (3 + 10)
    frame = pd.DataFrame({"qid": ["1"], "query": ["car car zebra"], "docno": ["d"], "text": [text]})
    for weight in (0, 0.7, 1):
        model.unigram_weight = weight
        expected = 2 * np.log(weight * unigram + (1 - weight) * p_model)
        assert model.transform(frame)["score"].tolist() == pytest.approx([expected], rel=1e-5)


def test_the_probabilities_of_all_words_add_up_to_one(model):
    sequences, terms = pack_texts(["car engine engine zebra", "zebra", "rose " * 300, ""])
    documents = model.read_sequences(sequences, Vocabulary(terms))
    every = np.arange(len(model.vocabulary))
    np.testing.assert_allclose(model.word_probabilities(every, documents).sum(axis=1), [1, 0, 1, 0], rtol=1e-5)
    np.testing.assert_allclose(model.unigram_probabilities(every, documents).sum(axis=1), 1, rtol=1e-5)


def test_topics_of_documents_are_where_expectation_maximisation_rests(model):
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


def test_documents_of_a_forward_index_are_read_once(model, kind, candidates, forward, monkeypatch):
    read = []
    fold_in = topic_model.fold_in
    monkeypatch.setattr(
        topic_model, "fold_in", lambda counts, *others: read.append(counts.shape[0]) or fold_in(counts, *others)
    )
    expected = model.transform(candidates)["score"]
    assert read == [len({document["text"] for document in PLANTED})]
    model.documents, bare = forward, candidates[["qid", "query", "docno"]]
    read.clear()
    for rows in (bare.head(20), bare, bare):
        np.testing.assert_allclose(model.transform(rows)["score"], expected[rows.index], rtol=1e-6)
    assert sum(read) == len(PLANTED)
    found = model.retriever(forward).transform(QUERIES)
    assert sum(read) == len(PLANTED)
    scores = candidates.assign(score=expected).set_index(["qid", "docno"])["score"]
    np.testing.assert_allclose(found["score"], scores[pd.MultiIndex.from_frame(found[["qid", "docno"]])], rtol=1e-6)
    assert len(found) == 2 * len(PLANTED)
    before = model.transform(bare)["score"]
    model.fit_corpus([*PLANTED, {"docno": "new", "text": "car garden"}], verbose=False)
    assert not np.allclose(model.transform(bare)["score"], before, rtol=1e-6)


def test_a_seed_gives_the_same_topics_from_corpus_frame_and_forward_index(kind, forward):
    one = make(kind).fit_corpus(iter(PLANTED), verbose=False)
    for source in (PLANTED, pd.DataFrame(PLANTED), forward):
        again = make(kind).fit_corpus(source, verbose=False)
        assert again.vocabulary.terms == one.vocabulary.terms
        np.testing.assert_array_equal(again.word_topics, one.word_topics)
        assert again.fingerprint() == one.fingerprint()
    other = make(kind, seed=14).fit_corpus(PLANTED, verbose=False)
    assert not other.history["log_likelihood"].equals(one.history["log_likelihood"])


def test_rare_words_are_left_out(kind):
    model = make(kind, min_count=20, max_terms=3).fit_corpus(PLANTED, verbose=False)
    assert len(model.vocabulary) == 3
    assert min(model.vocabulary.collection_frequency) >= 20
    np.testing.assert_allclose(model.word_topics.sum(axis=0), [1, 1], atol=1e-5)


def test_the_likelihood_grows(kind, model):
    history = model.history
    assert history["iteration"].iloc[0] == 0
    assert history["iteration"].is_monotonic_increasing
    assert (history["seconds"] >= 0).all()
    assert history["log_likelihood"].iloc[-1] > history["log_likelihood"].iloc[0]


def test_words_of_topics_are_ranked_by_probability_and_by_how_they_differ_from_the_collection(model):
    count = len(model.vocabulary)
    frequency = model.vocabulary.collection_frequency / model.vocabulary.collection_frequency.sum()
    for relevance in (1, 0.6, 0):
        table = model.topics(count, relevance=relevance)
        for topic, rows in table.groupby("topic"):
            ids = model.vocabulary.ids(rows["word"])
            probability = model.word_topics[ids, topic]
            np.testing.assert_array_equal(rows["probability"], probability)
            lift = np.log(np.maximum(probability, 1e-30) / frequency[ids])
            value = relevance * np.log(np.maximum(probability, 1e-30)) + (1 - relevance) * lift
            assert (np.diff(value) <= 1e-4).all()
    for options in ({"relevance": 1.5}, {"side": "title"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            model.topics(**options)


@pytest.mark.parametrize("verbose", [True, False])
def test_progress_shows_the_likelihood_if_asked_for(kind, capsys, verbose):
    make(kind, iterations=3).fit_corpus(PLANTED, verbose=verbose)
    shown = capsys.readouterr()
    assert ("log-likelihood -" in shown.err) == verbose
    assert shown.out == ""


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("last", [0, 10])
def test_an_interruption_keeps_what_was_learned(kind, fitted, last):
    model = make(kind)
    if fitted:
        model.fit_corpus([{"docno": "1", "text": "one"}, {"docno": "2", "text": "two"}], verbose=False)
    before, estimates = model.fingerprint(), model._estimates

    def interrupted(*arguments, **options):
        for estimate in estimates(*arguments, **options):
            yield estimate
            if estimate.number == last:
                raise KeyboardInterrupt

    model._estimates = interrupted
    with pytest.raises(KeyboardInterrupt):
        model.fit_corpus(PLANTED, verbose=False)
    if last == 0:
        assert model.fingerprint() == before
    else:
        assert model.history["iteration"].iloc[-1] == 10
        assert len(model.vocabulary) == 12
        np.testing.assert_allclose(model.word_topics.sum(axis=0), [1, 1], atol=1e-5)


def test_save_and_load_give_the_same_scores(model, kind, candidates, tmp_path):
    model.save(tmp_path / "model")
    expected = model.transform(candidates)
    for loaded in (type(model).load(tmp_path / "model"), pt.Artifact.load(str(tmp_path / "model"))):
        pd.testing.assert_frame_equal(loaded.transform(candidates), expected)
        pd.testing.assert_frame_equal(loaded.history, model.history)
        assert loaded.fingerprint() == model.fingerprint()
        assert loaded.settings() == model.settings()
        assert loaded.query_word_topics is loaded.word_topics
    with pytest.raises(ValueError, match="num_topics cannot be changed by loading"):
        type(model).load(tmp_path / "model", num_topics=3)
    copies = Parallel(n_jobs=2)(delayed(model.transform)(candidates) for _ in range(2))
    for copy in (*copies, pickle.loads(pickle.dumps(model)).transform(candidates)):
        pd.testing.assert_frame_equal(copy, expected)


@pytest.mark.parametrize(
    "name", ["weights.safetensors", "history.json", "config.json", "vocabulary/terms.txt", "vocabulary/counts.json"]
)
def test_missing_and_cut_files_are_named(model, tmp_path, name):
    model.save(tmp_path / "model")
    path = tmp_path / "model" / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ArtifactError, match=f"{path.name} is damaged"):
        type(model).load(tmp_path / "model")
    path.unlink()
    with pytest.raises(ArtifactError, match=f"{path.name} is missing"):
        type(model).load(tmp_path / "model")


@pytest.mark.parametrize("history", ["5", "[1, 2]", '{"iteration": 1}'])
def test_a_history_of_no_records_is_named(model, tmp_path, history):
    model.save(tmp_path / "model")
    (tmp_path / "model" / "history.json").write_text(history)
    with pytest.raises(ArtifactError, match=r"history\.json is damaged"):
        type(model).load(tmp_path / "model")


@pytest.mark.parametrize(
    "damage",
    [
        {"prior": np.ones(3, "f4")},
        {"prior": np.array([-1, 1], "f4")},
        {"prior": None},
        {"word_topics": np.ones((12, 2))},
        {"word_topics": np.full((12, 2), np.nan, "f4")},
    ],
)
def test_weights_that_do_not_fit_name_the_file(model, tmp_path, damage):
    model.save(tmp_path / "model")
    weights = tmp_path / "model" / "weights.safetensors"
    arrays = {**read_tensors(weights), **damage}
    write_tensors(weights, {name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(ArtifactError, match=r"weights\.safetensors does not fit"):
        type(model).load(tmp_path / "model")


def test_a_vocabulary_without_frequencies_is_named(model, tmp_path):
    model.save(tmp_path / "model")
    counts = tmp_path / "model" / "vocabulary" / "counts.json"
    counts.write_text('{"num_documents": 3, "counted": []}')
    with pytest.raises(ArtifactError, match=r"counts\.json is damaged: no collection frequencies"):
        type(model).load(tmp_path / "model")


def test_a_single_text_is_not_taken_for_many(model):
    for topics in (model.document_topics, model.query_topics):
        with pytest.raises(TypeError, match=r"list of texts, such as \['car'\]"):
            topics("car")


def test_an_unfitted_model_says_what_to_do(kind, candidates, tmp_path):
    model = make(kind)
    assert model.fingerprint() is None
    assert model.history.empty
    for use in (
        lambda: model.transform(candidates),
        lambda: model.topics(),
        lambda: model.document_topics(["car"]),
        lambda: model.query_topics(["car"]),
        lambda: model.save(tmp_path / "model"),
    ):
        with pytest.raises(RuntimeError, match=r"call model\.fit_corpus\(docs\.get_corpus_iter\(\)\) first"):
            use()


def test_collections_that_teach_nothing(kind):
    with pytest.raises(ValueError, match=r"no word of the 2 documents occurs at least 1 times"):
        make(kind).fit_corpus([{"docno": "1", "text": ""}, {"docno": "2", "text": None}], verbose=False)
    with pytest.raises(ValueError, match="no documents"):
        make(kind).fit_corpus([], verbose=False)
    with pytest.raises(TypeError, match="iterable of dicts"):
        make(kind).fit_corpus("car", verbose=False)


def test_odd_collections(kind):
    odd = [{"docno": "1", "text": "ποταμός 東京 \ud800x"}, {"docno": "2", "text": ""}, {"docno": "3", "text": "x"}]
    model = make(kind, num_topics=5).fit_corpus(odd, verbose=False)
    frame = pd.DataFrame({"qid": "1", "query": "ποταμός", "docno": ["a", "b"], "text": ["東京", "😀"]})
    assert np.isfinite(model.transform(frame)["score"]).all()
    one = make(kind, num_topics=1).fit_corpus(odd, verbose=False)
    np.testing.assert_allclose(one.document_topics(["x", "東京"]), [[1], [1]])


@pytest.mark.parametrize(("name", "value"), [("num_topics", 3), ("iterations", 7), ("min_count", 2), ("seed", 1)])
def test_a_fitted_model_is_not_another_one(model, candidates, name, value):
    setattr(model, name, value)
    with pytest.raises(RuntimeError, match=f"{name} of .* changed after fitting: fit again"):
        model.transform(candidates)


@pytest.mark.parametrize("name", ["num_topics", "iterations", "min_count", "max_terms"])
def test_settings_out_of_range(kind, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1"):
        make(kind, **{name: 0})
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        make(kind, **{name: 1.5})
