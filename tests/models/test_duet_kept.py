"""Documents that a Duet encodes beforehand: scores near those by text, and who may use them."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch

import pt_neural as pn
from pt_neural.text import WordHashing

# Of the standard deviation of scores. Trained models, whose scores differ by more, are held to what the docstring of
# DuetDistributed says where they are trained.
TOLERANCE = {"float16": 0.005, "int8": 0.05}
SIZES = {"query_terms": 5, "document_terms": 30, "filters": 16, "hidden": 16, "pooling": 7}
WORDS = [f"{letter}{number}mm" for letter in "abcd" for number in range(6)]


def made_up(count: int, longest: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(longest + 1))) for _ in range(count)]


CORPUS = [{"docno": f"d{i}", "title": "", "text": text} for i, text in enumerate([*made_up(40, 45, seed=1), "", "?"])]
TOPICS = pd.DataFrame({"qid": [f"q{i}" for i in range(12)], "query": made_up(12, 7, seed=0)})
CANDIDATES = TOPICS.merge(pd.DataFrame(CORPUS), how="cross").sample(frac=0.8, random_state=0)
BARE = CANDIDATES[["qid", "query", "docno"]]


def with_weights(kind, seed: int = 5):
    model = kind(**SIZES)
    hashing = WordHashing.build(WORDS, sizes=model.ngram_sizes)
    network = model._new_network(hashing)
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.from_numpy(random.normal(scale=0.3, size=weight.shape)))
    model._install(hashing, network.eval())
    return model


@pytest.fixture(params=[pn.DuetDistributed, pn.Duet])
def model(request):
    return with_weights(request.param)


def scores(model, frame: pd.DataFrame) -> np.ndarray:
    return model.transform(frame)["score"].to_numpy()


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_scores_by_docno_stay_near_those_by_text(model, dtype, tmp_path):
    by_text = scores(model, CANDIDATES)
    model.representations = model.index(tmp_path / "kept", CORPUS, dtype=dtype, verbose=False)
    differences = np.abs(scores(model, BARE) - by_text)
    assert differences.max() < TOLERANCE[dtype] * by_text.std()
    assert differences.max() > 0
    for row in range(0, len(BARE), 31):
        assert scores(model, BARE.iloc[[row]])[0] == pytest.approx(by_text[row], abs=TOLERANCE[dtype] * by_text.std())


def test_what_is_kept_does_not_depend_on_the_batch(model, tmp_path):
    together = model.index(tmp_path / "together", CORPUS, verbose=False)
    model.batch_size = 3
    apart = model.index(tmp_path / "apart", iter(CORPUS), verbose=False)
    every = np.arange(len(CORPUS))
    rows, offsets = together.read(every)
    np.testing.assert_allclose(apart.read(every)[0], rows, atol=2e-3)
    assert rows.shape == (42 * 16, 16)
    np.testing.assert_array_equal(offsets, np.arange(0, 42 * 16 + 1, 16))


def test_a_forward_index_is_encoded_as_its_corpus(model, tmp_path):
    forward = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    kept = model.index(tmp_path / "kept", forward, verbose=False)
    same = model.index(tmp_path / "same", CORPUS, verbose=False)
    np.testing.assert_array_equal(kept.read(np.arange(42))[0], same.read(np.arange(42))[0])
    assert kept.documents.docnos == forward.docnos


def test_documents_are_not_read_again(model, tmp_path, monkeypatch):
    model.representations = model.index(tmp_path / "kept", CORPUS, verbose=False)
    expected = scores(model, BARE)
    monkeypatch.setattr(type(model.network.distributed), "read_documents", None)
    np.testing.assert_array_equal(scores(model, BARE), expected)


def test_features_by_docno(tmp_path):
    model = with_weights(pn.Duet)
    features = (model.local**model.distributed).compile()
    by_text = np.stack(features.transform(CANDIDATES)["features"])
    model.representations = model.index(tmp_path / "kept", CORPUS, verbose=False)
    np.testing.assert_allclose(np.stack(features.transform(BARE)["features"]), by_text, atol=0.005 * by_text.std())


def test_representations_of_another_model_are_refused(model, tmp_path):
    kept = model.index(tmp_path / "kept", CORPUS, verbose=False)
    other = with_weights(type(model), seed=6)
    other.representations = kept
    with pytest.raises(ValueError, match=r"made by another model than this .*index the collection again: model\.index"):
        other.transform(BARE)


def test_representations_serve_the_saved_model(model, tmp_path):
    model.save(tmp_path / "model.pn")
    kept = model.index(tmp_path / "kept", CORPUS, verbose=False)
    loaded = type(model).load(tmp_path / "model.pn", representations=kept)
    model.representations = kept
    expected = model.transform(BARE)
    pd.testing.assert_frame_equal(loaded.transform(BARE), expected)
    pickled = pickle.dumps(model)
    pd.testing.assert_frame_equal(pickle.loads(pickled).transform(BARE), expected)


def test_a_new_training_needs_the_text(model, tmp_path):
    model.representations = model.index(tmp_path / "kept", CORPUS, verbose=False)
    with pytest.raises(ValueError, match="train without them"):
        model.fit(CANDIDATES, pd.DataFrame({"qid": ["q0"], "docno": ["d1"], "label": [1]}))


def test_kept_documents_come_before_those_of_training(model, tmp_path):
    model.documents = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    kept = model.representations = model.index(tmp_path / "kept", model.documents, verbose=False)
    assert model.kept_documents() is kept.documents
    assert len(model.transform(BARE)) == len(BARE)


def test_an_unknown_kind_of_number_is_named_before_anything_is_read(model, tmp_path):
    with pytest.raises(ValueError, match="dtype must be one of 'float16', 'int8', not 'float32'"):
        model.index(tmp_path / "kept", iter(CORPUS), dtype="float32")


def test_unknown_docnos_are_refused(model, tmp_path):
    model.representations = model.index(tmp_path / "kept", CORPUS, verbose=False)
    with pytest.raises(ValueError, match="d99"):
        model.transform(BARE.assign(docno="d99"))


def test_other_fields_than_the_models_are_refused(model, tmp_path):
    titles = pn.ForwardIndex.build(tmp_path / "titles", CORPUS, fields=["title"], verbose=False)
    model.fields = ["title", "text"]
    with pytest.raises(ValueError, match="holds title"):
        model.index(tmp_path / "kept", titles, verbose=False)


def test_an_unfitted_model_has_nothing_to_keep(tmp_path):
    with pytest.raises(RuntimeError, match="not trained yet"):
        pn.Duet().index(tmp_path / "kept", CORPUS)
    assert not list(tmp_path.iterdir())


def test_indexing_shows_progress(model, tmp_path, capfd):
    model.index(tmp_path / "kept", CORPUS)
    assert f"{len(CORPUS)}/{len(CORPUS)}" in capfd.readouterr().err


def test_in_pipelines(model, tmp_path):
    model.representations = model.index(tmp_path / "kept", CORPUS, verbose=False)
    done = (pt.Transformer.from_df(BARE.assign(score=0.0, rank=0)) >> model).transform(TOPICS)
    assert len(done) == len(BARE)
    needs = [sorted(columns) for columns in pt.inspect.transformer_inputs(model)]
    assert ["docno", "qid", "query"] in needs
