import json
import pickle
import shutil
import signal
import warnings
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.rankers import trained

QUERY_WORDS = ["kiwi plum fig pear", "oboe lute harp drum", "iron zinc lead gold", "rain snow hail dew"]
DOCUMENT_WORDS = ["orchard juice", "concert stage", "furnace mine", "cloudy sky"]


def planted(first, queries, seed):
    """Four topics; a query and its relevant documents have no word in common, so that matching must be learned."""
    rng = np.random.default_rng(seed)
    numbers = range(first, first + queries)
    topics = [(f"q{number}", " ".join(rng.choice(QUERY_WORDS[number % 4].split(), 2))) for number in numbers]
    documents = [(f"d{number}", " ".join(rng.choice(DOCUMENT_WORDS[number % 4].split(), 4))) for number in numbers]
    frame = pd.DataFrame(topics, columns=["qid", "query"]).merge(
        pd.DataFrame(documents, columns=["docno", "text"]), how="cross"
    )
    same = frame["qid"].str[1:].astype(int) % 4 == frame["docno"].str[1:].astype(int) % 4
    return frame, frame.loc[same, ["qid", "docno"]].assign(label=1)


TRAIN, TRAIN_QRELS = planted(0, 16, seed=1)
DEV, DEV_QRELS = planted(100, 12, seed=2)


def model(**settings):
    defaults = {"epochs": 8, "batch_size": 8, "learning_rate": 0.02, "negatives": "retrieved", "verbose": False}
    return pn.DSSM((16, 8), training=pn.Training(**{**defaults, "device": "cpu", **settings}), device="cpu")


@pytest.fixture(scope="module")
def fitted():
    return model().fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)


def scores(ranker):
    return ranker.transform(DEV)["score"].to_numpy()


def weights(ranker):
    return {name: weight.numpy() for name, weight in ranker.network.state_dict().items()}


def assert_same(first, second):
    for name, weight in weights(first).items():
        np.testing.assert_array_equal(weight, weights(second)[name])
    np.testing.assert_array_equal(scores(first), scores(second))


def ndcg(run):
    import ir_measures

    qrels = DEV_QRELS.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    run = run.rename(columns={"qid": "query_id", "docno": "doc_id"})
    return ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, run)[ir_measures.nDCG @ 10]


def test_what_is_planted_is_learned(fitted):
    assert ndcg(fitted.transform(DEV)) > 0.95
    one_step = model(epochs=1, batch_size=999, learning_rate=1e-9).fit(TRAIN, TRAIN_QRELS)
    assert ndcg(one_step.transform(DEV)) < 0.8


def test_the_history_is_a_frame_of_what_happened(fitted):
    history = fitted.history
    assert list(history) == ["epoch", "loss", "seconds", "dev nDCG@10"]
    assert history["epoch"].tolist() == list(range(len(history)))
    assert np.isnan(history["loss"].iloc[0])  # epoch 0 is the start
    assert history["loss"].iloc[-1] < history["loss"].iloc[1]
    assert history["dev nDCG@10"].max() == pytest.approx(ndcg(fitted.transform(DEV)))


def test_a_pipeline_passes_its_candidates_on():
    topics, dev_topics = (frame[["qid", "query"]].drop_duplicates() for frame in (TRAIN, DEV))
    candidates = pt.Transformer.from_df(pd.concat([TRAIN, DEV]).assign(score=0.0))
    ranker = model()
    (candidates >> ranker).fit(topics, TRAIN_QRELS, dev_topics, DEV_QRELS)
    assert_same(ranker, model().fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS))


def test_fit_returns_the_model():
    ranker = model(epochs=1)
    assert ranker.fit(TRAIN, TRAIN_QRELS) is ranker


def test_without_dev_all_epochs_are_done():
    ranker = model(epochs=5, patience=1).fit(TRAIN, TRAIN_QRELS)
    assert list(ranker.history) == ["epoch", "loss", "seconds"]
    assert len(ranker.history) == 5


@pytest.mark.parametrize(
    ("settings", "negatives"),
    [
        ({"precision": "bf16-mixed"}, "retrieved"),
        ({"loss": "margin"}, "random"),
        ({"loss": "pointwise"}, "retrieved"),
        ({}, "in-batch"),
    ],
)
def test_every_loss_and_source_of_negatives_teaches(settings, negatives):
    ranker = model(negatives=negatives, epochs=12, **settings).fit(TRAIN, TRAIN_QRELS)
    assert ndcg(ranker.transform(DEV)) > 0.9


def test_judged_negatives_teach():
    everything = TRAIN[["qid", "docno"]].merge(TRAIN_QRELS, how="left").fillna({"label": 0})
    assert ndcg(model(negatives="judged").fit(TRAIN, everything).transform(DEV)) > 0.9


def test_same_seed_same_model(fitted):
    assert_same(fitted, model().fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS))
    other = model(seed=14).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
    assert (scores(other) != scores(fitted)).any()


@pytest.mark.parametrize("kind", [pn.DSSM, pn.CLSM])
def test_what_is_not_set_is_the_model_s_own(kind, monkeypatch):
    seen = []
    monkeypatch.setattr("pt_neural.training.loop.train", lambda *args, **options: seen.append(args[3]))
    kind(training=pn.Training(epochs=1, verbose=False)).fit(TRAIN, TRAIN_QRELS)
    kind(training=pn.Training(batch_size=8, learning_rate=0.5, verbose=False)).fit(TRAIN, TRAIN_QRELS)
    assert [(used.batch_size, used.learning_rate) for used in seen] == [(256, 1e-3), (8, 0.5)]
    assert (seen[0].loss, seen[0].gamma, seen[0].negatives) == ("softmax", 10.0, "in-batch")


def test_fitting_again_starts_anew(fitted):
    ranker = model().fit(TRAIN.iloc[::-1], TRAIN_QRELS.head(30))
    ranker.fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
    assert_same(ranker, fitted)
    without_times = fitted.history.drop(columns="seconds")
    pd.testing.assert_frame_equal(ranker.history.drop(columns="seconds"), without_times)


def test_the_random_numbers_of_the_user_stay_as_they_are():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    model(epochs=1).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


def test_at_most_so_many_dev_queries(monkeypatch):
    seen, scorer = [], pn.DSSM._scorer

    def spied(ranker, preparation, frame):
        seen.append(set(frame["qid"]))
        return scorer(ranker, preparation, frame)

    monkeypatch.setattr(pn.DSSM, "_scorer", spied)
    for seed in (1, 1, 2):
        with_unjudged = pd.concat([DEV, DEV.assign(qid=DEV["qid"] + "-unjudged")])
        model(epochs=1, dev_queries=5, seed=seed).fit(TRAIN, TRAIN_QRELS, with_unjudged, DEV_QRELS)
    assert [len(qids & set(DEV["qid"])) for qids in seen] == [5, 5, 5]
    assert seen[0] == seen[1] != seen[2]


def test_numbers_as_names():
    train, train_qrels, dev, dev_qrels = (
        frame.assign(qid=frame["qid"].str[1:].astype(int), docno=frame["docno"].str[1:].astype(int))
        for frame in (TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
    )
    ranker = model().fit(train, train_qrels, dev, dev_qrels)
    np.testing.assert_array_equal(scores(ranker), scores(model().fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)))
    assert ranker.history["dev nDCG@10"].max() > 0.9


class TestBadInput:
    @pytest.mark.parametrize("column", ["qid", "query", "docno"])
    def test_missing_columns_are_named(self, column):
        with pytest.raises(ValueError, match=f"frame to fit on lacks {column}; it has"):
            model().fit(TRAIN.drop(columns=column), TRAIN_QRELS)
        with pytest.raises(ValueError, match=f"the dev frame lacks {column}; it has"):
            model().fit(TRAIN, TRAIN_QRELS, DEV.drop(columns=column), DEV_QRELS)

    @pytest.mark.parametrize("column", ["qid", "docno", "label"])
    def test_missing_columns_of_judgements_are_named(self, column):
        with pytest.raises(ValueError, match=f"^qrels lacks {column}; it has"):
            model().fit(TRAIN, TRAIN_QRELS.drop(columns=column))
        with pytest.raises(ValueError, match=f"dev qrels lacks {column}; it has"):
            model().fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS.drop(columns=column))

    def test_missing_text_is_named(self):
        with pytest.raises(ValueError, match="none of the fields title, text"):
            model().fit(TRAIN.drop(columns="text"), TRAIN_QRELS)

    def test_dev_without_judgements(self):
        with pytest.raises(ValueError, match="dev candidates need dev qrels"):
            model().fit(TRAIN, TRAIN_QRELS, DEV)

    @pytest.mark.parametrize("dev", [DEV.head(0), DEV.assign(qid="elsewhere")])
    def test_dev_without_a_judged_query(self, dev):
        with pytest.raises(ValueError, match="no dev query has a judgement"):
            model().fit(TRAIN, TRAIN_QRELS, dev, DEV_QRELS)

    def test_dev_labels_that_are_no_numbers(self):
        with pytest.raises(ValueError, match="dev qrels has 36 rows whose label is not a number"):
            model().fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS.assign(label=np.nan))

    def test_dev_labels_that_are_no_whole_numbers(self):
        with pytest.raises(ValueError, match=r"dev qrels has 36 labels that are not whole numbers, such as 0\.5"):
            model().fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS.assign(label=0.5))
        assert len(model(epochs=1).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS.assign(label=1.0)).history)

    @pytest.mark.parametrize("change", [{"label": 0}, {"docno": "elsewhere"}])
    def test_dev_without_anything_relevant(self, change):
        with pytest.raises(ValueError, match="no dev candidate is judged relevant"):
            model().fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS.assign(**change))

    def test_an_empty_frame(self):
        with pytest.raises(ValueError, match="the frame is empty"):
            model().fit(TRAIN.head(0), TRAIN_QRELS)

    def test_no_positives(self):
        with pytest.raises(ValueError, match="no positives"):
            model().fit(TRAIN, TRAIN_QRELS.assign(label=0))

    def test_missing_texts_and_queries_are_empty_ones(self):
        holes = TRAIN.copy()
        holes.loc[::3, "text"] = np.nan
        holes.loc[1::5, "text"] = None
        holes.loc[holes["qid"].isin(["q1", "q2"]), "query"] = np.nan
        dev = DEV.copy()
        dev.loc[dev["qid"] == "q100", "query"] = None
        dev.loc[dev["docno"] == "d101", "text"] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ranker = model().fit(holes, TRAIN_QRELS, dev, DEV_QRELS)
            found = ranker.transform(dev)
        assert np.isfinite(found["score"]).all()
        assert (found.loc[found["docno"] == "d101", "score"] == -1).all()
        assert ranker.history["loss"][1:].notna().all()

    def test_texts_without_a_single_word(self):
        with pytest.raises(ValueError, match="no query has a word"):
            model().fit(TRAIN.assign(query="!?"), TRAIN_QRELS)
        with pytest.raises(ValueError, match="no candidate has a word in title or text"):
            model().fit(TRAIN.assign(text=""), TRAIN_QRELS)

    def test_a_device_that_is_not_there(self, fitted, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        with pytest.raises(ValueError, match=r"device='cuda' is not available here; choose device='cpu'"):
            model(device="cuda").fit(TRAIN, TRAIN_QRELS)
        for name in ("cuda", "cuda:1"):
            ranker = pickle.loads(pickle.dumps(fitted))
            ranker.device = name
            with pytest.raises(ValueError, match=f"device='{name}' is not available here"):
                ranker.transform(DEV)

    @pytest.mark.parametrize("name", ["quantum", 3.5, None])
    def test_a_device_that_there_never_is(self, name):
        with pytest.raises(ValueError, match="device must be 'auto', 'cpu', 'cuda' or 'mps', not"):
            pn.DSSM(device=name)

    def test_training_that_is_no_training(self):
        with pytest.raises(TypeError, match=r"training must be a pn\.Training"):
            pn.DSSM(training={"epochs": 3})


class TestUnfitted:
    def test_rows_need_a_fitted_model(self):
        for frame in (DEV, DEV[["qid", "query"]], DEV[["docno", "text"]]):
            with pytest.raises(RuntimeError, match=r"is not fitted yet: call .*fit.* or load one with pn\.DSSM\.load"):
                model().transform(frame)

    def test_saving_needs_a_fitted_model(self, tmp_path):
        with pytest.raises(RuntimeError, match="is not fitted yet"):
            model().save(tmp_path / "model")
        assert not list(tmp_path.iterdir())

    def test_all_else_does_not(self):
        ranker = model()
        assert repr(ranker) == "DSSM(16-8)"
        assert list(ranker.transform(DEV.head(0))) == [*DEV, "score", "rank"]
        assert "score" in pt.inspect.transformer_outputs(ranker, list(DEV))
        assert list(ranker.history) == ["epoch", "loss", "seconds"]
        assert ranker.report is None
        assert pickle.loads(pickle.dumps(ranker)).network is None


class TestTrouble:
    def interrupt(self, monkeypatch, at, error=KeyboardInterrupt):
        """Let the given evaluation of the dev measure end in an error."""
        calls, evaluator = [], trained.dev_evaluator

        def evaluation(*args):
            used, measure = evaluator(*args)

            def measured(scores):
                calls.append(None)
                if len(calls) == at:
                    raise error
                return measure(scores)

            return used, measured

        monkeypatch.setattr(trained, "dev_evaluator", evaluation)

    def test_an_interrupted_fit_keeps_the_best_so_far(self, monkeypatch):
        handler = signal.getsignal(signal.SIGINT)
        expected = model(epochs=2).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
        ranker = model()
        self.interrupt(monkeypatch, at=4)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
        assert ranker.history["epoch"].tolist() == [0, 1, 2]
        assert_same(ranker, expected)
        assert signal.getsignal(signal.SIGINT) is handler

    @pytest.mark.parametrize("evaluations", [1, 2])
    def test_an_interrupt_in_the_first_epoch_leaves_the_model_as_it_was(self, monkeypatch, fitted, evaluations):
        ranker = pickle.loads(pickle.dumps(fitted))
        self.interrupt(monkeypatch, at=evaluations)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
        assert_same(ranker, fitted)
        pd.testing.assert_frame_equal(ranker.history, fitted.history)

    def test_an_error_leaves_the_model_as_it_was(self, monkeypatch, fitted):
        ranker = pickle.loads(pickle.dumps(fitted))
        self.interrupt(monkeypatch, at=3, error=OSError("no space left"))
        with pytest.raises(OSError, match="no space left"):
            ranker.fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
        assert_same(ranker, fitted)
        pd.testing.assert_frame_equal(ranker.history, fitted.history)

    @pytest.mark.parametrize("optimiser", ["sgd", "adam"])
    def test_a_loss_that_is_no_number_leaves_the_model_as_it_was(self, fitted, optimiser):
        ranker = pickle.loads(pickle.dumps(fitted))
        ranker.training = model(learning_rate=1e30, weight_decay=1e20, optimiser=optimiser).training
        with pytest.raises(FloatingPointError, match=r"lower learning_rate \(now 1e\+30\)"):
            ranker.fit(TRAIN, TRAIN_QRELS)
        assert_same(ranker, fitted)

    def test_first_weights_that_are_no_numbers(self, monkeypatch):
        make_network = pn.DSSM.make_network

        def broken(ranker, reader):
            network = make_network(ranker, reader)
            torch.nn.init.constant_(network.query.dense[0].weight, float("nan"))
            return network

        monkeypatch.setattr(pn.DSSM, "make_network", broken)
        ranker = model()
        with pytest.raises(FloatingPointError, match="the loss became nan in epoch 1, batch 1"):
            ranker.fit(TRAIN, TRAIN_QRELS)
        assert ranker.network is None

    def test_an_interrupted_fit_goes_on_from_its_checkpoint(self, monkeypatch, tmp_path, fitted):
        with monkeypatch.context() as patch:
            self.interrupt(patch, at=3)
            with pytest.raises(KeyboardInterrupt):
                model(checkpoint_dir=tmp_path).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
        resumed = model(checkpoint_dir=tmp_path).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
        assert_same(resumed, fitted)
        without_times = fitted.history.drop(columns="seconds")
        pd.testing.assert_frame_equal(resumed.history.drop(columns="seconds"), without_times)

    def test_checkpoints_of_other_judgements_are_refused(self, tmp_path):
        model(checkpoint_dir=tmp_path, epochs=1).fit(TRAIN, TRAIN_QRELS)
        with pytest.raises(ValueError, match="checkpoints of another run"):
            model(checkpoint_dir=tmp_path, epochs=1).fit(TRAIN, TRAIN_QRELS.head(40))

    @pytest.mark.parametrize(
        "changed",
        [
            (TRAIN.assign(text=TRAIN["text"].iloc[::-1].to_numpy()), TRAIN_QRELS, DEV, DEV_QRELS),
            (TRAIN, TRAIN_QRELS.assign(label=2), DEV, DEV_QRELS),
            (TRAIN.head(-1), TRAIN_QRELS, DEV, DEV_QRELS),
            (TRAIN, TRAIN_QRELS, DEV.head(-1), DEV_QRELS),
            (TRAIN, TRAIN_QRELS, DEV, DEV_QRELS.head(-1)),
        ],
        ids=["texts", "grades", "candidates", "dev candidates", "dev judgements"],
    )
    def test_checkpoints_of_other_data_are_refused(self, tmp_path, changed):
        model(checkpoint_dir=tmp_path, epochs=1).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
        with pytest.raises(ValueError, match="checkpoints of another run"):
            model(checkpoint_dir=tmp_path, epochs=1).fit(*changed)

    def test_checkpoints_of_another_model_of_the_same_shape_are_refused(self, tmp_path):
        training = model(checkpoint_dir=tmp_path, epochs=1).training
        pn.CLSM(filters=4, dim=3, training=training).fit(TRAIN, TRAIN_QRELS)
        with pytest.raises(ValueError, match="checkpoints of another run"):
            pn.CLSM(filters=4, dim=3, max_terms=2, training=training).fit(TRAIN, TRAIN_QRELS)


class TestChangedSettings:
    """pt.GridSearch sets attributes, which do not change a trained network."""

    def test_fitting_again_makes_it_one(self, fitted):
        ranker = pickle.loads(pickle.dumps(fitted))
        ranker.layers = [8, 4]
        ranker.fit(TRAIN, TRAIN_QRELS)
        assert ranker.encode_queries(["kiwi"]).shape == (1, 4)


class TestWords:
    def test_silence(self, capfd):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model(epochs=2).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
        assert capfd.readouterr() == ("", "")

    def test_report_and_bars(self, capfd):
        unjudged = TRAIN[TRAIN["qid"] == "q3"].assign(qid="q99")
        ranker = model(verbose=True, epochs=2).fit(pd.concat([TRAIN, unjudged]), TRAIN_QRELS, DEV, DEV_QRELS)
        out, err = capfd.readouterr()
        out = "".join(line for line in out.splitlines(keepends=True) if "Lightning" not in line)
        assert out == (
            "DSSM(16-8): training on 64 groups of 16 queries with retrieved negatives, 16 documents; left out: 1 "
            f"queries without judgements\n{ranker.report.result()}\n"
        )
        assert str(ranker.report) == f"{ranker.report.data()}; {ranker.report.result()}"
        lines = [line.split("\r")[-1] for line in err.strip().split("\n")]
        assert [line[:10] for line in lines] == ["Epoch 1/2:", "Epoch 2/2:"]
        for line, record in zip(lines, ranker.history.to_dict("records")[1:], strict=True):
            assert f"loss {record['loss']:.4f}, dev nDCG@10 {record['dev nDCG@10']:.4f}" in line

    def test_a_line_before_the_seconds_of_importing_lightning(self, capsys, monkeypatch):
        import pt_neural.training.loop  # noqa: F401

        for present, lines in ((True, 0), (False, 1)):
            for verbose in (False, True):
                if not present:
                    monkeypatch.setattr("pt_neural.rankers.trained.sys", SimpleNamespace(modules={}))
                model(verbose=verbose, epochs=1).fit(TRAIN, TRAIN_QRELS)
                assert capsys.readouterr().out.count("importing Lightning") == lines * verbose


@pytest.fixture(scope="module")
def kept(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "dssm"
    fitted.save(path)
    return path


@pytest.fixture
def copied(kept, tmp_path):
    return Path(shutil.copytree(kept, tmp_path / "model"))


PARTS = ["pt_meta.json", "config.json", "history.json", "weights.safetensors"]
FILES = [*PARTS, "reader/ngrams.txt", "reader/ngrams.json"]


class Touch:
    """Unpickling it leaves a trace."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


class TestKeeping:
    def test_what_is_loaded_is_what_was_saved(self, kept, fitted):
        loaded = pt.Artifact.load(kept)
        assert type(loaded) is pn.DSSM
        assert_same(loaded, fitted)
        assert loaded.training == fitted.training
        assert loaded.settings() == fitted.settings()
        assert repr(loaded) == repr(fitted)
        pd.testing.assert_frame_equal(loaded.history, fitted.history)

    def test_a_loaded_model_can_be_fitted(self, kept, fitted):
        assert_same(pn.DSSM.load(kept).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS), fitted)

    def test_the_directory_holds_plain_files(self, kept):
        assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*.*")) == sorted(FILES)

    def test_nothing_is_overwritten_unasked(self, copied, fitted):
        with pytest.raises(FileExistsError, match="overwrite=True"):
            fitted.save(copied)
        fitted.save(copied, overwrite=True)
        assert_same(pn.DSSM.load(copied), fitted)

    @pytest.mark.parametrize(
        ("where", "failing"),
        [("trained", "write_tensors"), ("ranker", "write_json"), ("ranker", "write_metadata")],
    )
    def test_a_failed_save_leaves_the_old_model(self, copied, fitted, monkeypatch, where, failing):
        def fail(*args, **kwargs):
            raise OSError("no space left")

        monkeypatch.setattr(f"pt_neural.rankers.{where}.{failing}", fail)
        other = model(epochs=1).fit(TRAIN, TRAIN_QRELS)
        with pytest.raises(OSError, match="no space left"):
            other.save(copied, overwrite=True)
        assert_same(pn.DSSM.load(copied), fitted)
        assert [path.name for path in copied.parent.iterdir()] == [copied.name]

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "pickle"])
    def test_damaged_files_are_named_and_nothing_is_unpickled(self, copied, tmp_path, name, damage):
        damaged, trace = copied / name, tmp_path / "trace"
        content = damaged.read_bytes()
        damaged.unlink()
        if damage == "empty":
            damaged.write_bytes(b"")
        elif damage == "truncated":
            damaged.write_bytes(content[: len(content) // 2])
        elif damage == "pickle":
            damaged.write_bytes(pickle.dumps(Touch(trace)))
        with pytest.raises(ArtifactError) as raised:
            pn.DSSM.load(copied)
        # How many n-grams there are is known from the weights only.
        assert name in str(raised.value) or (name.endswith("ngrams.txt") and "weights.safetensors" in str(raised.value))
        assert not trace.exists()

    @pytest.mark.parametrize("change", [{"version": 99}, {"format": "clsm"}, {"type": "index"}])
    def test_newer_and_foreign_models(self, copied, change):
        metadata = json.loads((copied / "pt_meta.json").read_text())
        (copied / "pt_meta.json").write_text(json.dumps({**metadata, **change}))
        with pytest.raises(ArtifactError, match=r"pt_meta\.json"):
            pn.DSSM.load(copied)

    @pytest.mark.parametrize(
        "change",
        [
            lambda config: [],
            lambda config: {},
            lambda config: {**config, "settings": []},
            lambda config: {**config, "training": None},
            lambda config: {**config, "training": {**config["training"], "momentum": 0.9}},
            lambda config: {**config, "training": {**config["training"], "epochs": "many"}},
            lambda config: {**config, "settings": {**config["settings"], "depth": 3}},
            lambda config: {**config, "settings": {**config["settings"], "layers": "16-8"}},
            lambda config: {**config, "settings": {**config["settings"], "layers": [16.5, 8]}},
            lambda config: {**config, "settings": {**config["settings"], "layers": [16, 9]}},
            lambda config: {**config, "settings": {**config["settings"], "shared": True}},
            lambda config: {**config, "settings": {**config["settings"], "ngram_sizes": 3}},
            lambda config: {**config, "fields": 3},
        ],
    )
    def test_a_configuration_that_does_not_fit(self, copied, change):
        config = json.loads((copied / "config.json").read_text())
        (copied / "config.json").write_text(json.dumps(change(config)))
        with pytest.raises(ArtifactError, match=r"config\.json"):
            pn.DSSM.load(copied)

    @pytest.mark.parametrize("history", [{}, 3, None, [1, 2], "none"])
    def test_a_history_that_is_none(self, copied, history):
        (copied / "history.json").write_text(json.dumps(history))
        with pytest.raises(ArtifactError, match=r"history\.json is damaged"):
            pn.DSSM.load(copied)

    def test_no_directory(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
            pn.DSSM.load(tmp_path / "nowhere")

    @pytest.mark.parametrize("option", [{"layers": (16, 8)}, {"shared": True}, {"ngram_sizes": (2,)}])
    def test_what_makes_the_model_cannot_be_changed(self, kept, option):
        with pytest.raises(ValueError, match=f"{next(iter(option))} cannot be changed by loading"):
            pn.DSSM.load(kept, **option)

    def test_an_option_that_is_none_is_no_damage(self, kept):
        with pytest.raises(TypeError, match="window"):
            pn.DSSM.load(kept, window=5)

    def test_what_else_may_differ(self, kept, fitted):
        loaded = pn.DSSM.load(kept, training=pn.Training(epochs=99), fields="body", batch_size=3)
        assert (loaded.training.epochs, loaded.fields, loaded.batch_size) == (99, ("body",), 3)
        renamed = DEV.rename(columns={"text": "body"})
        np.testing.assert_allclose(loaded.transform(renamed)["score"], scores(fitted), atol=1e-6)

    def test_with_vectors(self, kept, fitted, tmp_path):
        documents = DEV[["docno", "text"]].drop_duplicates()
        vectors = fitted.index(tmp_path / "vectors", documents.to_dict("records"), verbose=False)
        loaded = pn.DSSM.load(kept, vectors=vectors)
        np.testing.assert_allclose(loaded.transform(DEV.drop(columns="text"))["score"], scores(fitted), atol=1e-6)

    @pytest.mark.parametrize("how", ["pickle", "joblib"])
    def test_pickling(self, fitted, tmp_path, how):
        if how == "pickle":
            copy = pickle.loads(pickle.dumps(fitted))
        else:
            joblib.dump(fitted, tmp_path / "model.joblib")
            copy = joblib.load(tmp_path / "model.joblib")
        assert_same(copy, fitted)
        assert copy.report == fitted.report


def test_candidates_may_come_as_a_stream_of_frames(tmp_path):
    corpus = pd.concat([TRAIN, DEV])[["docno", "text"]].drop_duplicates("docno").to_dict("records")
    documents = pn.ForwardIndex.build(tmp_path / "forward", corpus, verbose=False)

    def fit(candidates, **settings):
        ranker = model(**settings)
        ranker.documents = documents
        return ranker.fit(candidates, TRAIN_QRELS, DEV, DEV_QRELS)

    def stream():
        return (block.drop(columns="text") for block in pt.model.split_df(TRAIN, batch_size=5))

    whole = fit(pd.concat(stream()))
    assert_same(fit(stream()), whole)
    fit(stream(), epochs=2, checkpoint_dir=tmp_path / "checkpoints")
    assert_same(fit(stream(), checkpoint_dir=tmp_path / "checkpoints"), whole)
    with pytest.raises(ValueError, match="checkpoints of another run"):
        other = (block.assign(query="kiwi") for block in stream())
        fit(other, checkpoint_dir=tmp_path / "checkpoints")


def test_loggers_of_lightning_are_told(tmp_path, fitted):
    pytest.importorskip("tensorboardX")
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

    csv, board = CSVLogger(tmp_path, "csv"), TensorBoardLogger(tmp_path, "board")
    logged = model(logger=[csv, board]).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
    assert_same(logged, fitted)
    metrics = pd.read_csv(Path(csv.log_dir) / "metrics.csv")
    assert metrics["step"].tolist() == logged.history["epoch"].tolist()
    assert metrics["dev nDCG@10"].to_numpy() == pytest.approx(logged.history["dev nDCG@10"].to_numpy())
    assert metrics["loss"].iloc[1:].to_numpy() == pytest.approx(logged.history["loss"].iloc[1:].to_numpy())
    assert "learning_rate: 0.02" in (Path(csv.log_dir) / "hparams.yaml").read_text()
    events = b"".join(path.read_bytes() for path in Path(board.log_dir).glob("events*"))
    assert events.replace(b" ", b"_").replace(b"@", b"_").count(b"dev_nDCG_10") >= len(metrics)
    logged.save(tmp_path / "logged")
    assert pn.DSSM.load(tmp_path / "logged").training.logger is None


def test_ssi_tells_loggers_too(tmp_path):
    from lightning.pytorch.loggers import CSVLogger

    csv = CSVLogger(tmp_path, "csv")
    training = pn.Training(epochs=2, negatives="random", logger=csv, verbose=False)
    ssi = pn.SSI(dim=4, training=training).fit(TRAIN, TRAIN_QRELS, DEV, DEV_QRELS)
    metrics = pd.read_csv(Path(csv.log_dir) / "metrics.csv")
    assert metrics["step"].tolist() == ssi.history["epoch"].tolist()


def test_a_logger_is_one_of_lightning():
    with pytest.raises(TypeError, match="logger must be a logger of Lightning"):
        pn.Training(logger="csv")
