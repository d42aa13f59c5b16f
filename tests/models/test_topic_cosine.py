"""TopicCosine beside cosines of topics computed pair by pair."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural._artifacts import ArtifactError
from pt_neural.models import TopicCosine


@pytest.fixture(params=["plsa", "lda"])
def topics_model(request, corpus):
    model = pn.PLSA(3, iterations=30) if request.param == "plsa" else pn.LDA(3, alpha=0.2, iterations=30)
    return model.fit_corpus(corpus, verbose=False)


@pytest.fixture
def cosine(topics_model) -> TopicCosine:
    return topics_model.cosine()


@pytest.fixture
def candidates(corpus, topics) -> pd.DataFrame:
    return topics.merge(pd.DataFrame(corpus), how="cross")


@pytest.fixture
def forward(tmp_path, corpus) -> pn.ForwardIndex:
    return pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)


def test_scores_are_cosines_of_topics(cosine, topics_model, candidates):
    expected = []
    for row in candidates.itertuples():
        q, d = topics_model.query_topics([row.query])[0], topics_model.document_topics([f"{row.title} {row.text}"])[0]
        expected.append(q @ d / (np.linalg.norm(q) * np.linalg.norm(d)))
    np.testing.assert_allclose(cosine.transform(candidates)["score"], expected, atol=1e-5)


def test_texts_without_known_words(cosine):
    frame = pd.DataFrame({"qid": list("112"), "query": ["city", "city", "zebra"], "docno": list("aba")})
    scored = cosine.transform(frame.assign(text=["river", "zebra", "river"]))["score"].tolist()
    assert scored[1:] == [-1, 0]
    assert 0 < scored[0] <= 1 + 1e-6
    assert np.linalg.norm(cosine.encode_documents(["river", "zebra", ""]), axis=1).tolist() == pytest.approx([1, 0, 0])


def test_texts_forward_index_and_kept_vectors_score_alike_and_all_are_retrieved(
    cosine, corpus, topics, candidates, forward, tmp_path
):
    expected = cosine.transform(candidates)["score"]
    bare = candidates[["qid", "query", "docno"]]
    stored = cosine.topics.cosine(documents=forward)
    np.testing.assert_allclose(stored.transform(bare)["score"], expected, atol=1e-6)
    for source, name in ((corpus, "texts"), (forward, "ids")):
        vectors = cosine.index(tmp_path / name, source, verbose=False)
        kept = cosine.topics.cosine(vectors=vectors)
        np.testing.assert_allclose(kept.transform(bare)["score"], expected, atol=1e-6)
        found = cosine.retriever(vectors).transform(topics).set_index(["qid", "docno"])["score"]
        np.testing.assert_allclose(found[pd.MultiIndex.from_frame(bare[["qid", "docno"]])], expected, atol=1e-6)
    cosine.topics.fit_corpus([*corpus, {"docno": "d9", "text": "zebra"}], verbose=False)
    with pytest.raises(ValueError, match="another model"):
        cosine.retriever(vectors).transform(topics)


def test_save_and_load_keep_the_topic_model_inside(cosine, candidates, tmp_path):
    cosine.save(tmp_path / "cosine")
    for loaded in (TopicCosine.load(tmp_path / "cosine"), pt.Artifact.load(str(tmp_path / "cosine"))):
        pd.testing.assert_frame_equal(loaded.transform(candidates), cosine.transform(candidates))
        assert type(loaded.topics) is type(cosine.topics)
        assert loaded.fingerprint() == cosine.fingerprint()
        assert repr(loaded) == repr(cosine) == f"TopicCosine({cosine.topics!r})"


@pytest.mark.parametrize("config", ['{"fields": ["text"], "topics": "LSA"}', '{"fields": ["text"]}', '{"topics": "X"}'])
def test_a_strange_config_is_named(cosine, tmp_path, config):
    cosine.save(tmp_path / "cosine")
    (tmp_path / "cosine" / "config.json").write_text(config)
    with pytest.raises(ArtifactError, match=r"config\.json is damaged"):
        TopicCosine.load(tmp_path / "cosine")


def test_a_damaged_topic_model_is_named(cosine, tmp_path):
    cosine.save(tmp_path / "cosine")
    (tmp_path / "cosine" / "topics" / "weights.safetensors").write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"topics/weights\.safetensors is damaged"):
        TopicCosine.load(tmp_path / "cosine")


def test_fields_are_those_of_the_topic_model(corpus):
    model = pn.PLSA(2, fields="text").fit_corpus(corpus, verbose=False)
    assert model.cosine().fields == ("text",)
    assert model.cosine(fields="title").fields == ("title",)


def test_clear_errors(candidates, tmp_path):
    with pytest.raises(TypeError, match="topics must be a topic model"):
        TopicCosine(pn.LSA())
    cosine = pn.PLSA(2).cosine()
    assert cosine.fingerprint() is None
    for use in (lambda: cosine.transform(candidates), lambda: cosine.save(tmp_path / "cosine")):
        with pytest.raises(RuntimeError, match="not fitted yet"):
            use()
