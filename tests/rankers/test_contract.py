"""What every ranker promises, whatever its model. A new row of the registry is tested here without another line."""

import inspect
import json
import pickle
import resource
import shutil
import warnings
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed

import pt_neural as pn
from pt_neural._files import ArtifactError, read_tensors, write_tensors
from pt_neural.rankers import Ranker
from pt_neural.rankers.registry import load_ranker
from pt_neural.training.processes import _read, _write
from tests.rankers.fitted import (
    BARE,
    CANDIDATES,
    KEEPERS,
    LANGUAGE,
    NAMES,
    QRELS,
    RERANKS_ONLY,
    TRAINED,
    fit,
    fitted,
    folder,
    forward,
    like,
    ranker_class,
    saved,
    scores,
    unfitted,
)

WITH_OPTIONS = [name for name in NAMES if name != "Rocchio"]  # whose options are those of its TFIDF
LEARNERS = [name for name in WITH_OPTIONS if name not in ("DESM", "TopicCosine")]


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return request.param


@pytest.fixture
def ranker(name) -> Ranker:
    return fitted(name)


def test_rows_stay_and_ranks_go_by_score_then_descending_docno(ranker):
    repeated = pd.concat([CANDIDATES, CANDIDATES[::3].assign(docno="d0"), CANDIDATES[:1]])
    frame = repeated.sample(frac=1, random_state=0).assign(note=range(len(repeated)), score=7.0, rank=-1)
    before = frame.copy()
    scored = ranker.transform(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert list(scored.columns) == list(frame.columns)
    kept = scored.columns.difference(["score", "rank"])
    pd.testing.assert_frame_equal(scored[kept], frame[kept])
    assert scored.dtypes[["score", "rank"]].tolist() == ["float64", "int64"]
    for _, one in scored.groupby("qid"):
        expected = one.sort_values(["score", "docno"], ascending=False, kind="stable")
        assert expected["rank"].tolist() == list(range(len(one)))


def test_scores_do_not_depend_on_the_other_rows_or_the_batch(name, ranker):
    whole = scores(ranker, CANDIDATES)
    np.testing.assert_array_equal(scores(ranker, CANDIDATES), whole)
    by_query = name == "Rocchio"  # its first documents expand the query
    order = np.random.default_rng(0).permutation(len(CANDIDATES))
    np.testing.assert_allclose(scores(ranker, CANDIDATES.iloc[order]), whole[order], atol=1e-5)
    if not by_query:
        alone = [scores(ranker, CANDIDATES.iloc[[row]])[0] for row in range(0, len(CANDIDATES), 3)]
        np.testing.assert_allclose(alone, whole[::3], atol=1e-5)
        twice = scores(ranker, pd.concat([CANDIDATES, CANDIDATES], ignore_index=True))
        np.testing.assert_allclose(twice, np.concatenate([whole, whole]), atol=1e-6)
        np.testing.assert_allclose(scores(like(name, batch_size=3), CANDIDATES), whole, atol=1e-5)


def test_a_mixture_with_the_score_that_comes_in(ranker):
    incoming = CANDIDATES.assign(score=np.arange(len(CANDIDATES), dtype=float))
    mixed = scores(pn.Mixture(ranker, alpha=0.25), incoming)
    np.testing.assert_allclose(mixed, 0.25 * scores(ranker, CANDIDATES) + 0.75 * incoming["score"], atol=1e-5)


@pytest.mark.parametrize("name", TRAINED)
def test_a_fit_goes_on_where_another_one_stopped(name, tmp_path, capsys):
    def trained(epochs, folder):
        training = replace(unfitted(name).training, epochs=epochs, checkpoint_dir=folder, verbose=True)
        return unfitted(name, training=training).fit(CANDIDATES, QRELS)

    trained(1, tmp_path / "both")
    capsys.readouterr()
    resumed = trained(2, tmp_path / "both")
    assert "resuming after epoch 1" in "".join(capsys.readouterr())
    assert resumed.fingerprint() == trained(2, tmp_path / "one").fingerprint()


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_fields_name_the_text(name):
    ranker = fitted(name)
    titles_only = scores(ranker, CANDIDATES.assign(text=""))
    np.testing.assert_allclose(scores(ranker, CANDIDATES.drop(columns="text")), titles_only, atol=1e-6)
    assert not np.allclose(scores(ranker, CANDIDATES), titles_only)
    if ranker.tells_fields_apart:
        with pytest.raises(ValueError, match="tells apart the 2 fields that it was trained on"):
            like(name, fields="title")
    else:
        np.testing.assert_allclose(scores(like(name, fields="title"), CANDIDATES), titles_only, atol=1e-6)


def test_what_lacks_is_named(ranker):
    with pytest.raises(KeyError) as raised:
        ranker.transform(BARE.assign(score=1.0, rank=0))
    assert str(raised.value).startswith(f"the frame has no text for {ranker!r}, none of the columns title, text: add")
    assert ">> index.text_loader(['title', 'text'])" in str(raised.value)
    assert len(str(raised.value)) < 200
    with pytest.raises(KeyError, match="query"):  # which must not keep the first stage's scores
        ranker.transform(CANDIDATES.drop(columns="query"))


def test_empty_frames_get_their_columns(name, ranker):
    for model in (ranker, unfitted(name)):
        done = model.transform(CANDIDATES[:0])
        assert list(done.columns) == [*CANDIDATES.columns, "score", "rank"]
        assert done.dtypes[["score", "rank"]].tolist() == ["float64", "int64"]


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_text_and_forward_index_score_alike(name):
    by_text, model = scores(fitted(name), CANDIDATES), like(name, documents=forward())
    np.testing.assert_allclose(scores(model, BARE), by_text, atol=1e-5)
    pickled = pickle.dumps(model)
    assert len(pickled) < len(pickle.dumps(fitted(name))) + 3000  # the forward index is its path
    np.testing.assert_allclose(scores(pickle.loads(pickled), BARE), by_text, atol=1e-5)
    for unknown in ("d99", None):
        with pytest.raises(ValueError, match="not in ForwardIndex"):
            model.transform(BARE.assign(docno=[unknown, *BARE["docno"][1:]]))
    model.documents = None
    np.testing.assert_allclose(scores(model, CANDIDATES), by_text, atol=1e-5)


@pytest.mark.parametrize("name", TRAINED)
def test_the_dev_measure_sees_the_scores_that_users_get(name):
    for model, frame in ((fitted(name), CANDIDATES), (like(name, documents=forward(), batch_size=2), BARE)):
        seen = model._scorer(model.reader, frame)(model.network)
        np.testing.assert_allclose(seen, scores(model, frame), atol=1e-6)
        assert len(np.unique(seen)) > 5


@pytest.mark.parametrize("name", TRAINED)
def test_training_again_forgets_what_was_read_of_the_forward_index(name):
    again, once = like(name, documents=forward()), like(name, documents=forward())
    scores(again, BARE)
    other = BARE.assign(query="entirely different queries " + BARE["query"])
    for model in (again, once):
        model.fit(other, QRELS, other, QRELS)
    histories = [model.history.drop(columns="seconds") for model in (again, once)]
    pd.testing.assert_frame_equal(*histories)
    np.testing.assert_array_equal(scores(again, BARE), scores(once, BARE))
    with pytest.raises(ValueError, match="not in ForwardIndex"):
        once.fit(BARE, QRELS, BARE.assign(docno=[None, *BARE["docno"][1:]]), QRELS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("name", TRAINED)
def test_networks_and_their_gradients_are_finite_in_mixed_precision(name, dtype):
    model = fitted(name)
    examples = model._make_examples(CANDIDATES, QRELS, model.training.completed(model.own_training))
    pairs = model.reader.pair(examples.query_texts, *model._training_documents(examples))
    batch = pairs.batch(np.arange(3), np.tile(np.arange(8), (3, 1)))  # an empty text is among the documents
    network = deepcopy(model.network).train()
    with torch.autocast("cpu", dtype=dtype):
        found = network(batch)
    exact = network.eval()(batch)
    assert found.isfinite().all()
    torch.testing.assert_close(found.float(), exact, atol=0.3, rtol=0.1)
    found.float().square().sum().backward()
    for weight, values in network.named_parameters():
        assert values.grad.isfinite().all(), weight


@pytest.mark.parametrize("name", TRAINED)
def test_what_a_fit_has_read_reaches_other_processes(name, tmp_path):
    model = fitted(name)
    training = replace(model.training, verbose=False).completed(model.own_training)
    prepared = model._prepare(CANDIDATES, QRELS, (None, None), training)
    _write(prepared, tmp_path)
    read, numbers = _read(tmp_path), (np.arange(3), np.tile(np.arange(8), (3, 1)))
    expected, found = (each.network.eval()(each.pairs.batch(*numbers)) for each in (prepared, read))
    assert torch.equal(expected, found)
    np.testing.assert_array_equal(read.groups.relevant, prepared.groups.relevant)
    assert read.report == prepared.report


# Hostile frames


@pytest.mark.parametrize("name", [*RERANKS_ONLY, *LANGUAGE])
def test_nothing_is_like_an_empty_text(name):
    ranker, frame = fitted(name), CANDIDATES.drop(columns="title")
    for column in ("query", "text"):
        empty = scores(ranker, frame.assign(**{column: ""}))
        assert np.isfinite(empty).all()
        for nothing in ("?!", None, np.nan, pd.NA):
            np.testing.assert_array_equal(scores(ranker, frame.assign(**{column: nothing})), empty)


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.text(max_size=20) | st.none(), st.text(max_size=60) | st.none()), max_size=6))
def test_hostile_frames_get_finite_scores(name, rows):
    frame = pd.DataFrame(rows, columns=["query", "text"]).assign(qid=[str(i) for i in range(len(rows))], docno="d")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scores(fitted(name), frame)
    assert np.isfinite(found).all()
    if name in KEEPERS and not name.startswith("SS"):  # the others are cosines
        assert (np.abs(found) <= 1 + 1e-5).all()


def test_long_texts_and_queries_that_are_numbers(ranker):
    texts = ["river city " * 100_000, "x" * 1_000_000, " ".join(map(str, range(150_000)))]
    frame = pd.DataFrame({"qid": "1", "query": "city", "docno": ["a", "b", "c"], "text": texts})
    assert np.isfinite(scores(ranker, frame)).all()
    numbers = CANDIDATES.assign(query=25)
    np.testing.assert_allclose(scores(ranker, numbers), scores(ranker, numbers.assign(query="25")), atol=1e-6)


# Copies, workers, settings


def test_saving_and_loading_give_the_same_scores(name, ranker):
    expected = ranker.transform(CANDIDATES)
    for loaded in (ranker_class(name).load(saved(name)), pt.Artifact.load(str(saved(name)))):
        assert type(loaded) is type(ranker)
        assert loaded.settings() == ranker.settings()
        pd.testing.assert_frame_equal(loaded.transform(CANDIDATES), expected)
        assert loaded.fingerprint() == ranker.fingerprint()
    other = "DSSM" if name != "DSSM" else "CLSM"
    with pytest.raises(pn._files.ArtifactError, match=r"pt_meta\.json describes a ranker"):
        ranker_class(other).load(saved(name))
    with pytest.raises(FileExistsError, match="to be replaced; it stays as it is"):
        fitted(other).save(saved(name), overwrite=True)


@pytest.mark.parametrize("name", LEARNERS)
def test_unfitted_models_say_what_to_do(name, tmp_path):
    model = unfitted(name)
    assert model.fingerprint() is None
    for use in (lambda: model.transform(CANDIDATES), lambda: model.save(tmp_path / "model.pn")):
        with pytest.raises(RuntimeError, match=r"call .*fit"):
            use()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", LEARNERS)
def test_settings_that_change_after_fitting_are_refused(name):
    model = pickle.loads(pickle.dumps(fitted(name)))
    fixed = [setting for setting in model.settings() if setting not in model.free_settings]
    for setting in fixed[:2]:
        value = getattr(model, setting)
        setattr(model, setting, changed(value))
        with pytest.raises(RuntimeError, match=f"{setting} of .* changed after fitting"):
            model._require_fitted()
        setattr(model, setting, value)
    scores(model, CANDIDATES)


def changed(value):
    """Another value of the same kind."""
    if isinstance(value, bool | None):
        return not value
    return (*value, 7) if isinstance(value, tuple) else value + type(value)(1)


def test_settings_can_be_inspected_and_changed(name, ranker):
    arguments = inspect.signature(type(ranker)).parameters
    assert [attribute.name for attribute in pt.inspect.transformer_attributes(ranker)] == list(arguments)
    assert "options" not in arguments
    for argument in arguments:
        assert f"\n    {argument}: " in type(ranker).__doc__
    if name in WITH_OPTIONS:
        changed = pt.inspect.transformer_apply_attributes(ranker, fields="title", batch_size=3)
        assert (changed.fields, changed.batch_size) == (("title",), 3)
    with pytest.raises(TypeError, match="no_such_option"):
        type(ranker)(**{component: getattr(ranker, component) for component in ranker.components}, no_such_option=1)


def test_no_class_has_more_than_four_ancestors_of_ours(ranker):
    ours = [kind for kind in type(ranker).__mro__[1:] if kind.__module__.startswith("pt_neural")]
    assert len(ours) <= 4, ours


def test_reprs_are_short(ranker):
    assert len(repr(ranker)) < 70
    assert repr(ranker).startswith(type(ranker).__name__)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(backend):
    rankers = list(map(fitted, NAMES))
    score = delayed(lambda ranker, frame: ranker.transform(frame)["score"].to_numpy())
    found = Parallel(n_jobs=2, backend=backend)(score(ranker, CANDIDATES) for ranker in rankers)
    for ranker, one in zip(rankers, found, strict=True):
        np.testing.assert_allclose(one, scores(ranker, CANDIDATES), atol=1e-6)


def test_rows_are_taken_once_and_own_rankers_too():
    from pt_neural.rankers.registry import RANKERS, load_ranker, register

    row = RANKERS[0]
    register(row.name, row.module, row.format)
    assert RANKERS.count(row) == 1
    with pytest.raises(ValueError, match="choose another"):
        register("Mine", "my_module", row.format)
    path = folder() / "strange"
    fitted("TFIDF").save(path)
    metadata = path / "pt_meta.json"
    metadata.write_text(metadata.read_text().replace('"tf-idf"', '"mine"'))
    with pytest.raises(ValueError, match=r"describes a ranker 'mine', which is not one of .*register your own"):
        load_ranker(path)


for number, one in enumerate(NAMES):
    for kind, make in (("Fitted", fitted), ("Unfitted", unfitted)):
        tested = pt.testing.transformer_test_class(lambda make=make, one=one: make(one))
        globals()[f"Test{kind}{number}{one.replace(' ', '').replace('-', '')}"] = tested
del tested  # pytest would run the last one twice


def test_fit_returns_the_model():
    model = unfitted("TFIDF")
    assert fit(model) is model


WEIGHTS = [name for name in NAMES if name not in ("DESM", "Rocchio", "TFIDF", "TopicCosine")]


@pytest.fixture
def weights(request, tmp_path) -> Path:
    """The file of the weights of a copy of a saved ranker."""
    return Path(shutil.copytree(saved(request.param), tmp_path / "copy")) / "weights.safetensors"


def refuse(weights: Path, message: str) -> None:
    with pytest.raises(ArtifactError, match=message) as raised:
        load_ranker(weights.parent)
    assert str(weights) in str(raised.value)


@pytest.mark.parametrize("weights", WEIGHTS, indirect=True)
def test_weights_that_are_labelled_as_another_type_are_refused(weights):
    content = weights.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = content[8:end]
    for before, after in ((b'"F32"', b'"I32"'), (b'"F32"', b'"U32"'), (b'"I32"', b'"F32"')):
        relabelled = header.replace(before, after, 1)
        weights.write_bytes(content[:8] + relabelled + content[end:])
        if relabelled != header:
            refuse(weights, "32")


@pytest.mark.parametrize("weights", WEIGHTS, indirect=True)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(weights, value):
    arrays = read_tensors(weights)
    for name, array in arrays.items():
        if array.dtype == np.float32 and array.size:
            damaged = array.copy()
            damaged.flat[-1] = value
            write_tensors(weights, {**arrays, name: damaged})
            refuse(weights, "NaN or infinity|not probabilities")


@pytest.mark.parametrize("name", TRAINED)
def test_networks_that_are_too_large_take_no_memory(name, tmp_path):
    copy = Path(shutil.copytree(saved(name), tmp_path / "copy"))
    config = json.loads((copy / "config.json").read_text())
    for setting, value in config["settings"].items():
        sizes = [300_000_000, *value[1:]] if setting == "layers" else 300_000_000
        if setting in ("layers", "dim", "filters", "hidden", "projection", "document_units"):
            changed = {**config, "settings": {**config["settings"], setting: sizes}}
            (copy / "config.json").write_text(json.dumps(changed))
            refuse(copy / "weights.safetensors", "of shape")  # of at least 1.2 GB
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20  # KB


@pytest.mark.parametrize("name", [name for name in KEEPERS if name != "TFIDF"])
def test_scores_that_are_no_numbers_are_an_error(name, monkeypatch):
    model = like(name)
    monkeypatch.setattr(model, "score_pairs", lambda queries, rows, *documents: np.full(len(rows), np.nan))
    with pytest.raises(ArtifactError, match="some scores are NaN or infinite"):
        model.transform(CANDIDATES)
