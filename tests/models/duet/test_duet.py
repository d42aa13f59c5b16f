"""The Duet and its two parts as rankers: settings, scores from texts, what is kept, what is learned in one pass."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

import pt_neural as pn
from pt_neural._artifacts import ArtifactError
from pt_neural.models import duet_scoring
from pt_neural.models.duet_networks import joint_scores
from pt_neural.text import WordHashing, pack_texts, tokenise

SIZES = {"query_terms": 5, "document_terms": 20, "filters": 4, "hidden": 6}
MAKERS = {
    "DuetLocal": lambda **options: pn.DuetLocal(**SIZES, **options),
    "DuetDistributed": lambda **options: pn.DuetDistributed(**SIZES, pooling=7, **options),
    "Duet": lambda **options: pn.Duet(**SIZES, pooling=7, **options),
}
WORDS = "the river runs past the old city to sea boys girls boats mississippi mississippi a".split()


def made_up(count: int, longest: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(longest + 1))) for _ in range(count)]


TOPICS = [*made_up(12, 7, seed=0), "", "unknown words"]
TEXTS = [*made_up(15, 30, seed=1), "", "nothing of it"]


def pairs(topics=TOPICS, texts=TEXTS) -> pd.DataFrame:
    queries = pd.DataFrame({"qid": [f"q{i}" for i in range(len(topics))], "query": topics})
    return queries.merge(pd.DataFrame({"docno": [f"d{i}" for i in range(len(texts))], "text": texts}), how="cross")


def with_random_weights(model, scale: float = 0.3):
    """The model with n-grams of the words above, and weights that nothing has trained."""
    hashing = WordHashing.build(sorted(set(WORDS)), sizes=model.ngram_sizes) if model.reads_words else None
    network = model._new_network(hashing)
    random = np.random.default_rng(5)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.from_numpy(random.normal(scale=scale, size=weight.shape)))
    model._install(hashing, network.eval())
    return model


@pytest.fixture(params=MAKERS)
def model(request):
    return with_random_weights(MAKERS[request.param]())


def batch_outputs(model, frame: pd.DataFrame) -> torch.Tensor:
    """Outputs before the tanh, all pairs in one batch as in training."""
    rows, topics = pd.factorize(frame["query"])
    columns, texts = pd.factorize(frame["text"])
    documents, terms = pack_texts(texts)
    prepared = model._texts(list(topics), documents, pn.text.Vocabulary(terms), model.hashing)
    with torch.no_grad():
        return model.network.parts(prepared.take(rows, columns))


@pytest.mark.parametrize("batch_size", [1, 3, 128])
def test_scores_of_frames_are_those_of_training_batches(model, batch_size):
    frame = pairs().sample(frac=0.9, random_state=0)
    model.batch_size = batch_size
    expected = batch_outputs(model, frame)
    torch.testing.assert_close(model.part_outputs(frame), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(model.transform(frame)["score"], joint_scores(expected), atol=1e-5)


def test_a_row_has_its_score_among_any_others(model):
    frame = pairs()
    scored = model.transform(frame)["score"]
    for row in range(0, len(frame), 17):
        assert model.transform(frame.iloc[[row]])["score"].iloc[0] == pytest.approx(scored[row], abs=1e-5)


def test_queries_and_rounds_of_any_number(model, monkeypatch):
    expected = model.transform(pairs())["score"]
    monkeypatch.setattr(duet_scoring, "QUERIES_PER_STEP", 3)
    monkeypatch.setattr(duet_scoring, "PAIRS_PER_ROUND", 2)
    np.testing.assert_allclose(model.transform(pairs())["score"], expected, atol=1e-5)


def test_only_the_first_terms_count(model):
    query, text = "city boys river past the", " ".join(WORDS + WORDS[:5])
    assert (len(tokenise(query)), len(tokenise(text))) == (5, 20)
    scores = model.transform(pairs([query, query + " sea"], [text, text + " city sea"]))["score"]
    np.testing.assert_allclose(scores, scores[0], atol=1e-6)
    shorter = model.transform(pairs([query], [" ".join(tokenise(text)[:12])]))["score"][0]
    assert shorter != pytest.approx(scores[0], abs=1e-4)


@pytest.mark.parametrize("name", ["DuetDistributed", "Duet"])
def test_a_word_is_projected_once_however_often_it_occurs(name, monkeypatch):
    model = with_random_weights(MAKERS[name]())
    looked_up = []
    original = F.embedding_bag

    def spy(ngrams, weight, *args, **options):
        if len(weight) == len(model.hashing):
            looked_up.append(len(ngrams))
        return original(ngrams, weight, *args, **options)

    monkeypatch.setattr(F, "embedding_bag", spy)
    texts = ["boys " * 10 + "city", "city boys boys", "boys"]
    model.transform(pairs(["boys river boys", "river"], texts))

    def ngraphs(*words):
        return int((model.hashing.bags(words).toarray() > 0).sum())

    assert looked_up == [ngraphs("boys", "river"), ngraphs("boys", "city")]


# Parts as features


@pytest.fixture
def duet() -> pn.Duet:
    return with_random_weights(MAKERS["Duet"]())


def test_parts_are_the_outputs_before_the_tanh(duet):
    frame = pairs()
    outputs = duet.part_outputs(frame)
    np.testing.assert_allclose(duet.local.transform(frame)["score"], outputs[:, 0], atol=1e-6)
    np.testing.assert_allclose(duet.distributed.transform(frame)["score"], outputs[:, 1], atol=1e-6)
    sums = np.tanh(outputs.double().numpy()).sum(axis=1)
    np.testing.assert_allclose(np.tanh(duet.transform(frame)["score"]) * 2, sums, atol=1e-5)  # equation 1


def test_a_part_is_ranked_by_its_own_score(duet):
    scored = duet.local.transform(pairs())
    for _, one in scored.groupby("qid"):
        ordered = one.sort_values(["score", "docno"], ascending=[False, True])
        assert ordered["rank"].tolist() == list(range(len(one)))


UNIONS = {
    "parts": lambda duet: duet.local**duet.distributed,
    "turned": lambda duet: duet.distributed**duet.local,
    "all": lambda duet: duet.local**duet.distributed**duet,
    "first": lambda duet: duet**duet.local,
    "twice": lambda duet: duet.local**duet.local,
}


@pytest.mark.parametrize("union", UNIONS.values(), ids=UNIONS)
def test_features_come_from_one_pass_and_are_those_of_each_part(duet, union, monkeypatch):
    passes = []
    original = pn.Duet.part_outputs

    def counting(self, frame):
        passes.append(len(frame))
        return original(self, frame)

    frame = pairs()
    features = union(duet)
    compiled = features.compile()
    apart = features.transform(frame)
    monkeypatch.setattr(pn.Duet, "part_outputs", counting)
    together = compiled.transform(frame)
    assert passes == [len(frame)]
    keys = ["qid", "docno"]
    both = together.merge(apart[[*keys, "features"]], on=keys, suffixes=("", "_apart"))
    np.testing.assert_allclose(np.stack(both["features"]), np.stack(both["features_apart"]), atol=1e-5)
    assert len(both) == len(frame)
    assert together["features"].iloc[0].dtype == np.float64


def test_features_of_no_rows(duet):
    compiled = (duet.local**duet.distributed).compile()
    done = compiled.transform(pairs()[:0])
    assert len(done) == 0
    assert "features" in done


def test_other_models_are_not_fused(duet):
    other = with_random_weights(MAKERS["Duet"]())
    assert duet.local.fuse_feature_union(other.local, True) is None
    assert duet.fuse_feature_union(other.local, True) is None
    assert duet.fuse_feature_union(pn.DuetLocal(), False) is None
    features = (duet.local**other.distributed).compile().transform(pairs())["features"]
    assert np.stack(features).shape == (len(pairs()), 2)


def test_a_part_needs_what_its_model_needs(duet):
    with pytest.raises(KeyError, match="text"):
        duet.local.transform(pairs().drop(columns="text"))
    with pytest.raises(RuntimeError, match="not trained yet"):
        pn.Duet().local.transform(pairs())


# Copies


def test_pickles_and_saved_models_score_alike(model, tmp_path):
    expected = model.transform(pairs())
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(model)).transform(pairs()), expected)
    model.save(tmp_path / "model.pn")
    loaded = type(model).load(tmp_path / "model.pn")
    pd.testing.assert_frame_equal(loaded.transform(pairs()), expected)
    assert loaded.settings() == model.settings()
    assert loaded.fingerprint() == model.fingerprint()
    for other in set(MAKERS) - {type(model).__name__}:
        with pytest.raises(ArtifactError, match="describes ranker"):
            getattr(pn, other).load(tmp_path / "model.pn")


def test_parts_pickle_with_their_model(duet):
    expected = duet.distributed.transform(pairs())
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(duet.distributed)).transform(pairs()), expected)


def saved_files(model, path) -> list[str]:
    model.save(path)
    return sorted(file.name for file in path.iterdir())


def test_damaged_files_are_named(model, tmp_path):
    names = saved_files(model, tmp_path / "model.pn")
    assert ("ngrams.txt" in names) == model.reads_words
    for name in names:
        path = tmp_path / name
        model.save(path)
        content = (path / name).read_bytes()
        for damaged in (b"", content[: len(content) // 2], None):
            (path / name).unlink() if damaged is None else (path / name).write_bytes(damaged)
            with pytest.raises((ArtifactError, FileNotFoundError), match=r"ngrams|" + name.split(".")[0]):
                type(model).load(path)


# Arguments


@pytest.mark.parametrize("make", [pn.DuetLocal, pn.DuetDistributed, pn.Duet])
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"query_terms": 0}, ValueError, "query_terms must be at least 1"),
        ({"document_terms": "1000"}, TypeError, "document_terms must be an integer"),
        ({"filters": 2.5}, TypeError, "filters must be an integer"),
        ({"hidden": -1}, ValueError, "hidden must be at least 1"),
        ({"dropout": 1}, ValueError, "dropout must be below 1"),
        ({"dropout": -0.1}, ValueError, "dropout must be at least 0"),
        ({"dropout": "a"}, TypeError, "dropout must be a number"),
        ({"training": 3}, TypeError, r"training must be a pn\.Training"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(make, wrong, kind, message):
    with pytest.raises(kind, match=message):
        make(**wrong)


@pytest.mark.parametrize("make", [pn.DuetDistributed, pn.Duet])
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"window": 0}, ValueError, "window must be at least 1"),
        ({"window": 11}, ValueError, "window must be at most query_terms, 10"),
        ({"pooling": 999}, ValueError, "pooling must be at most 998"),
        ({"document_terms": 50}, ValueError, "pooling must be at most 48"),
        ({"num_ngrams": 0}, ValueError, "num_ngrams must be at least 1"),
        ({"ngram_sizes": ()}, ValueError, "ngram_sizes must hold at least one"),
        ({"ngram_sizes": 3}, TypeError, "ngram_sizes must be a sequence"),
        ({"representations": "kept.duet"}, TypeError, r"what model\.index\(path, corpus\) gave"),
    ],
)
def test_wrong_arguments_of_the_distributed_model_are_named(make, wrong, kind, message):
    with pytest.raises(kind, match=message):
        make(**wrong)


def test_sizes_can_be_set_until_the_model_is_trained(model):
    fresh = MAKERS[type(model).__name__]()
    fresh.filters = 9
    assert fresh.settings()["filters"] == 9
    with_random_weights(fresh)
    assert all(9 in weight.shape for name, weight in fresh.network.named_parameters() if name.endswith("positions"))
    model.filters = 9
    with pytest.raises(RuntimeError, match=r"filters of .* changed after training"):
        model.transform(pairs())


@pytest.mark.parametrize(
    ("name", "size", "error", "message"),
    [
        ("query_terms", "x", TypeError, "query_terms must be an integer"),
        ("pooling", 400, ValueError, "pooling must be at most 18"),
        ("window", 6, ValueError, "window must be at most query_terms, 5"),
        ("num_ngrams", -1, ValueError, "num_ngrams must be at least 1"),
    ],
)
def test_sizes_set_later_are_checked_by_fit(name, size, error, message):
    model = MAKERS["Duet"](training=pn.Training(epochs=1, verbose=False))
    setattr(model, name, size)
    frame = pairs()
    with pytest.raises(error, match=message):
        model.fit(frame, frame.drop_duplicates("qid")[["qid", "docno"]].assign(label=1))


@pytest.mark.parametrize("name", MAKERS)
def test_training_in_mixed_precision(name):
    frame = pairs()
    model = MAKERS[name](training=pn.Training(epochs=1, batch_size=4, precision="bf16-mixed", verbose=False))
    model.fit(frame, frame.drop_duplicates("qid")[["qid", "docno"]].assign(label=1))
    assert np.isfinite(model.history["loss"]).all()
    assert all(weight.dtype == torch.float32 for weight in model.network.parameters())


def test_representations_are_short():
    assert [repr(make()) for make in MAKERS.values()] == [f"{name}()" for name in MAKERS]
    assert repr(pn.Duet().local) == "Duet().local"
