"""Query likelihood beside probabilities worked out word by word, with a model of relative frequencies."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.rankers.language_model import DocumentCounts, LanguageModelRanker
from pt_neural.text import PackedSequences, Vocabulary, tokenise


class Frequencies(LanguageModelRanker):
    """P_model(w|d) is the relative frequency of the word in the document.

    Args:
        power: A setting that cannot change after fitting.
        unigram_weight: Weight of the unigram model.
        mu: Weight of the collection.
    """

    artifact_format = "frequencies"
    fitting = "model.count(corpus)"

    def __init__(self, *, power=1, unigram_weight=0.7, mu=10, **options):
        self.power = power
        super().__init__(unigram_weight=unigram_weight, mu=mu, **options)

    def count(self, corpus):
        texts = [tokenise(f"{document['title']} {document['text']}") for document in corpus]
        self._set_vocabulary(Vocabulary.build(texts))
        self._mark_fitted()
        return self

    def _extra(self, sequences, counts):
        return counts.lengths

    def word_probabilities(self, words, documents):
        return documents.occurrences(words) / np.maximum(documents.extra, 1)[:, None]

    def _arrays(self):
        return {}

    def _set_arrays(self, vocabulary, arrays):
        self._set_vocabulary(vocabulary)

    def __repr__(self):
        return "Frequencies()"


def likelihood(query: str, text: str, corpus, unigram_weight: float, mu: float) -> float:
    collection = [word for document in corpus for word in tokenise(f"{document['title']} {document['text']}")]
    words = [word for word in tokenise(text) if word in collection]
    total = 0.0
    for word in tokenise(query):
        if word in collection:
            everywhere = collection.count(word) / len(collection)
            unigram = (words.count(word) + mu * everywhere) / (len(words) + mu)
            model = words.count(word) / len(words) if words else 0
            total += math.log(unigram_weight * unigram + (1 - unigram_weight) * model)
    return total


@pytest.fixture
def model(corpus) -> Frequencies:
    return Frequencies().count(corpus)


@pytest.fixture
def candidates(corpus, topics) -> pd.DataFrame:
    return topics.merge(pd.DataFrame(corpus), how="cross")


@pytest.fixture
def forward(tmp_path, corpus) -> pn.ForwardIndex:
    return pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)


@pytest.mark.parametrize(("unigram_weight", "mu"), [(0.3, 0.5), (0.7, 10), (1, 2000)])
def test_scores_are_logarithms_of_query_likelihoods(model, corpus, candidates, unigram_weight, mu):
    model.unigram_weight, model.mu = unigram_weight, mu
    scored = model.transform(candidates)
    expected = [
        likelihood(row.query, f"{row.title} {row.text}", corpus, unigram_weight, mu) for row in candidates.itertuples()
    ]
    np.testing.assert_allclose(scored["score"], expected, rtol=1e-5)
    assert scored.groupby("qid")["rank"].apply(sorted).tolist() == [list(range(6))] * 3
    pd.testing.assert_frame_equal(scored[candidates.columns], candidates)


def test_with_no_unigram_model_a_word_that_is_missing_is_next_to_impossible(model, candidates):
    model.unigram_weight = 0
    scored = model.transform(candidates).set_index(["qid", "docno"])["score"]
    assert scored["q1", "d1"] == pytest.approx(2 * math.log(1 / 11) + math.log(1), rel=1e-5)
    assert scored["q1", "d4"] == pytest.approx(2 * math.log(1e-30))
    assert scored["q1", "d6"] == pytest.approx(math.log(1e-30) + math.log(1 / 11), rel=1e-5)


def test_words_of_the_query_count_as_often_as_they_occur_and_unknown_ones_not_at_all(model, corpus):
    queries = ["city", "city city", "city zebra", "zebra", "", None]
    frame = pd.DataFrame({"qid": list("123456"), "query": queries, **corpus[0]})
    one, two, unknown, *none = model.transform(frame)["score"]
    assert (two, unknown) == pytest.approx((2 * one, one))
    assert none == [0, 0, 0]


def test_what_a_model_adds_is_not_asked_for_where_it_has_no_weight(model, candidates, monkeypatch):
    model.unigram_weight = 1
    expected = model.transform(candidates)["score"]
    monkeypatch.setattr(model, "word_probabilities", None)
    pd.testing.assert_series_equal(model.transform(candidates)["score"], expected)


def test_fingerprints_tell_settings_and_words_apart(corpus):
    same, other, fewer = (
        Frequencies().count(corpus),
        Frequencies(power=2).count(corpus),
        Frequencies().count(corpus[1:]),
    )
    assert len({model.fingerprint() for model in (Frequencies().count(corpus), same, other, fewer)}) == 3
    assert Frequencies().fingerprint() is None


def test_documents_without_known_words_have_the_probabilities_of_the_collection(model, corpus):
    texts = ["", None, float("nan"), "?!", "zebra zebra", "😀"]
    frame = pd.DataFrame({"qid": "1", "query": "city", "docno": list("abcdef"), "text": texts})
    expected = likelihood("city", "", corpus, 0.7, 10)
    assert model.transform(frame)["score"].tolist() == pytest.approx([expected] * 6)


def test_a_word_that_the_collection_lacks_counts_as_half_an_occurrence(corpus):
    model = Frequencies(unigram_weight=1)
    model._set_vocabulary(Vocabulary(["city", "town"], np.array([3, 0])))
    model._mark_fitted()
    frame = pd.DataFrame({"qid": "1", "query": "town", "docno": ["a"], "text": [""]})
    assert model.transform(frame)["score"].tolist() == pytest.approx([math.log(0.5 / 3.5)])


@pytest.mark.parametrize("option", ["documents", "vectors"])
def test_documents_of_a_forward_index_score_as_their_texts(model, corpus, candidates, forward, option):
    expected = model.transform(candidates)["score"]
    bare = candidates[["qid", "query", "docno"]].sample(frac=1, random_state=1)
    for batch_size in (1, 4, 1024):
        stored = Frequencies(**{option: forward}, batch_size=batch_size).count(corpus)
        np.testing.assert_allclose(stored.transform(bare)["score"], expected[bare.index], rtol=1e-6)
    copy = pickle.loads(pickle.dumps(stored))
    pd.testing.assert_frame_equal(copy.transform(bare), stored.transform(bare))
    stored.count([{"title": "", "text": "university"}])  # what is in memory must be forgotten
    assert not np.allclose(stored.transform(bare)["score"], expected[bare.index])


def test_what_it_keeps_of_a_collection_is_a_forward_index(model, corpus, topics, candidates, forward, tmp_path):
    written = model.index(tmp_path / "written", corpus, verbose=False)
    copied = model.index(tmp_path / "copied", forward)
    expected = model.retriever(forward).transform(topics)
    for index in (written, copied, tmp_path / "written"):
        pd.testing.assert_frame_equal(model.retriever(index).transform(topics), expected)
    assert model.retriever(written) == model.retriever(tmp_path / "written") != model.retriever(copied)
    with pytest.raises(FileExistsError):
        model.index(tmp_path / "copied", corpus, verbose=False)
    model.index(tmp_path / "copied", corpus, overwrite=True, verbose=False)
    with pytest.raises(ValueError, match="holds title, text"):
        Frequencies(fields="title").count(corpus).index(tmp_path / "other", forward)
    with pytest.raises(RuntimeError, match="not fitted yet"):
        Frequencies().index(tmp_path / "other", corpus)


def test_scores_do_not_depend_on_the_other_rows(model, candidates):
    whole = model.transform(candidates)["score"]
    single = pd.concat(model.transform(candidates.iloc[[row]]) for row in range(len(candidates)))["score"]
    np.testing.assert_allclose(single, whole, rtol=1e-6)
    twice = model.transform(pd.concat([candidates, candidates]))["score"]
    np.testing.assert_allclose(twice, [*whole, *whole], rtol=1e-6)


def test_retrieval_finds_the_best_of_all_documents(model, corpus, topics, candidates, tmp_path):
    extra = [*corpus, {"docno": "d0", "title": "", "text": "zebra"}]
    index = pn.ForwardIndex.build(tmp_path / "more", extra, verbose=False)
    retriever = model.retriever(index, num_results=4)
    expected = model.transform(candidates).sort_values(["qid", "rank"]).query("rank < 4").reset_index(drop=True)
    for again in (retriever, retriever, pickle.loads(pickle.dumps(retriever))):  # the second time from memory
        found = again.transform(topics)
        assert found["docno"].tolist() == expected["docno"].tolist()
        np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-6)
    every = model.retriever(index).transform(topics)
    assert "d0" not in set(every["docno"])
    assert len(every) == 18
    cut = (model.retriever(index) % 4).compile()
    assert cut.num_results == 4
    assert cut.transform(topics)["docno"].tolist() == expected["docno"].tolist()
    nothing = pd.DataFrame({"qid": ["1", "2"], "query": ["zebra", ""]})
    assert len(retriever.transform(nothing)) == 0
    assert len(retriever.transform(topics.iloc[:0])) == 0
    model.mu = 1000
    assert retriever.transform(topics)["score"].tolist() != pytest.approx(expected["score"].tolist())


def test_misuse_is_named(model, candidates, forward, topics):
    with pytest.raises(TypeError, match="forward index"):
        model.retriever(topics)
    with pytest.raises(ValueError, match="at least 1"):
        model.retriever(forward, num_results=0)
    with pytest.raises(ValueError, match="holds title, text"):
        Frequencies(fields="title").retriever(forward)
    unfitted = Frequencies()
    for use in (
        lambda: unfitted.retriever(forward).transform(topics),
        lambda: unfitted.represent_texts(["a text"]),
        lambda: unfitted.represent_queries(["a query"]),
    ):
        with pytest.raises(RuntimeError, match=r"not fitted yet: call model\.count\(corpus\)"):
            use()


def test_settings_out_of_range():
    for setting, message in (
        ({"unigram_weight": 1.1}, "unigram_weight must be at most 1"),
        ({"unigram_weight": -0.1}, "unigram_weight must be at least 0"),
        ({"mu": 0}, "mu must be above 0"),
        ({"mu": float("inf")}, "mu must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            Frequencies(**setting)


@pytest.mark.parametrize(("name", "value"), [("mu", -3), ("mu", "many"), ("unigram_weight", 1.1)])
def test_settings_that_are_set_later_are_checked_too(model, candidates, topics, forward, name, value):
    retriever = model.retriever(forward)
    setattr(model, name, value)
    for use in (lambda: model.transform(candidates), lambda: retriever.transform(topics)):
        with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
            use()


def test_settings_of_ranking_may_differ_in_what_is_loaded(model, candidates, tmp_path):
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(
        Frequencies.load(tmp_path / "model").transform(candidates), model.transform(candidates)
    )
    loaded = Frequencies.load(tmp_path / "model", unigram_weight=1, mu=3)
    model.unigram_weight, model.mu = 1, 3
    pd.testing.assert_frame_equal(loaded.transform(candidates), model.transform(candidates))
    with pytest.raises(ValueError, match="power cannot be changed by loading"):
        Frequencies.load(tmp_path / "model", power=3)


def test_progress_is_shown_if_asked_for(model, candidates, capsys):
    model.transform(candidates)
    assert capsys.readouterr().err == ""
    model.verbose, model.batch_size = True, 2
    model.transform(candidates)
    assert "Frequencies() documents" in capsys.readouterr().err


def test_damaged_files_are_named(model, tmp_path):
    model.save(tmp_path / "model")
    counts = tmp_path / "model" / "vocabulary" / "counts.json"
    counts.write_text('{"num_documents": 3, "counted": []}')
    with pytest.raises(ArtifactError, match=r"counts\.json is damaged: no collection frequencies"):
        Frequencies.load(tmp_path / "model")
    for name in (
        "history.json",
        "vocabulary/terms.txt",
        "vocabulary/counts.json",
        "weights.safetensors",
        "config.json",
    ):
        model.save(tmp_path / "model", overwrite=True)
        path = tmp_path / "model" / name
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(ArtifactError, match=f"{path.name} is damaged"):
            Frequencies.load(tmp_path / "model")
        path.unlink()
        with pytest.raises(ArtifactError, match=f"{path.name} is missing"):
            Frequencies.load(tmp_path / "model")
    for history in ("5", "[1, 2]", '{"iteration": 1}'):
        model.save(tmp_path / "model", overwrite=True)
        (tmp_path / "model" / "history.json").write_text(history)
        with pytest.raises(ArtifactError, match=r"history\.json is damaged"):
            Frequencies.load(tmp_path / "model")


# Counts of words


def test_counts_by_document_and_by_word_are_the_same():
    counts = DocumentCounts.of(PackedSequences.from_lists([[2, 0, 2, -1], [], [1]]), 3)
    words = np.array([2, 1])
    assert counts.occurrences(words).tolist() == [[2, 0], [0, 0], [0, 1]]
    assert counts.lengths.tolist() == [3, 0, 1]
    np.testing.assert_array_equal(counts.with_postings().occurrences(words), counts.occurrences(words))
    weights = DocumentCounts.of(PackedSequences.from_lists([[0, 2], [1, 1]]), 3).counts
    assert counts.weighted_sums(weights).tolist() == [[3, 0], [0, 0], [0, 2]]
    assert counts.weighted_sums(weights[:0]).shape == (3, 0)
    random = np.random.default_rng(5)
    matrix, weights = (random.poisson(0.3, (rows, 30)).astype("f4") for rows in (7, 50))
    documents = DocumentCounts(csr_array(matrix), matrix.sum(axis=1))
    np.testing.assert_allclose(documents.weighted_sums(csr_array(weights)), matrix @ weights.T, rtol=1e-6)


@pytest.mark.parametrize("sparse", [True, False])
def test_parts_are_joined_with_what_a_model_adds(sparse):
    counts = DocumentCounts.of(PackedSequences.from_lists([[2, 0, 2, -1], [], [1]]), 3)
    assert DocumentCounts.joined([counts, counts]).extra is None
    whole = replace(counts, extra=counts.counts if sparse else counts.counts.toarray())
    joined = DocumentCounts.joined([whole, whole.take(np.array([0]))])
    assert joined.counts.toarray().tolist() == [[1, 0, 2], [0, 0, 0], [0, 1, 0], [1, 0, 2]]
    assert joined.lengths.tolist() == [3, 0, 1, 3]
    np.testing.assert_array_equal(joined.extra.toarray() if sparse else joined.extra, joined.counts.toarray())
