"""Training in several processes: all end with the same, or with the error of the one that failed."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from pt_neural.training import processes
from tests.rankers.test_trained import TRAIN, TRAIN_QRELS, model
from tests.training import several

ROOT = Path(pn.__file__).parents[1]
TWO_NODES = {"nodes": 2, "strategy": "ddp"}


@pytest.fixture
def folder(tmp_path):
    """Where processes write their results; ``node0`` and ``node1`` are the working folders of two nodes."""
    for node in range(2):
        (tmp_path / f"node{node}" / "temporary").mkdir(parents=True)
    return tmp_path


def torchrun(folder: Path, **cases: dict) -> list[tuple[int, str]]:
    """Fit in two processes, as if on two nodes that share no files; the exit code and the output of each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = ["--master-addr", "127.0.0.1", "--master-port", str(free.getsockname()[1])]
    nodes = []
    for node in range(2):
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(node), *address]
        place = folder / f"node{node}"
        environment = {"PYTHONPATH": str(ROOT), "TMPDIR": str(place / "temporary"), "OMP_NUM_THREADS": "1"}
        nodes.append(
            subprocess.Popen(
                [*command, several.__file__, str(folder), json.dumps(cases)],
                cwd=place,
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    outputs = [node.communicate(timeout=300)[0] for node in nodes]
    return [(node.returncode, output) for node, output in zip(nodes, outputs, strict=True)]


def assert_all_have_the_same(results: Path) -> pn.DSSM:
    """The ranker of the first process, after a comparison of all that both have."""
    first, second = (pn.DSSM.load(results / f"{rank}.model") for rank in range(2))
    assert first.fingerprint() == second.fingerprint()  # of all weights and n-grams, to the bit
    pd.testing.assert_frame_equal(first.history, second.history, check_exact=True)
    firsts, seconds = (json.loads((results / f"{rank}.json").read_text()) for rank in range(2))
    assert (firsts["report"], firsts["training"]) == (seconds["report"], seconds["training"])
    assert first.history["dev nDCG@10"].max() > 0.8
    assert f"best={float(first.history['dev nDCG@10'].max())!r}" in firsts["report"]
    return first


def errors(results: Path) -> list[str]:
    return [(results / f"{rank}.error").read_text() for rank in range(2)]


@pytest.mark.long
def test_two_nodes_that_share_no_files(folder):
    cases = {
        "whole": TWO_NODES,
        "early": {**TWO_NODES, "patience": 1, "epochs": 50},
        "triples": {**TWO_NODES, "triples": True},
        "unprepared": {**TWO_NODES, "fails": "preparation"},
        "unlike": {**TWO_NODES, "fails": "other data"},
        "unevaluated": {**TWO_NODES, "fails": "evaluation"},
        "infinite": {**TWO_NODES, "learning_rate": 1e38, "optimiser": "sgd"},
        "alone": {"strategy": "auto"},
        "interrupted": {**TWO_NODES, "fails": "interruption", "checkpoint_dir": "checkpoints"},
    }
    ended = torchrun(folder, **cases)
    assert ended[0][0] != 0, ended  # since the first process dies in the end
    assert "peer" in (folder / "interrupted" / "1.error").read_text()  # what gloo says of a process that is gone
    whole = assert_all_have_the_same(folder / "whole")
    early = assert_all_have_the_same(folder / "early")
    assert len(early.history) < 12
    assert_all_have_the_same(folder / "triples")
    assert all(json.loads((folder / "whole" / f"{rank}.json").read_text())["prepared"] for rank in range(2))
    first, second = errors(folder / "unprepared")
    assert second == "there are no candidates to fit on: the frame is empty"
    assert first == f"process 1 of 2 that train together failed: ValueError: {second}"
    first, second = errors(folder / "unlike")
    assert first == second
    assert first.startswith("process 1 of 2 has other training data than the first one: give all the same settings")
    first, second = errors(folder / "unevaluated")
    assert first == several.MESSAGE
    assert second == f"process 0 of 2 that train together failed: RuntimeError: {several.MESSAGE}"
    first, second = errors(folder / "infinite")
    assert first == second
    assert first.startswith("the loss became nan in epoch 1")
    alone = pn.DSSM.load(folder / "alone" / "1.model")
    assert whole.fingerprint() != alone.fingerprint()

    assert (folder / "node0" / "checkpoints" / "last.ckpt").exists()
    assert not (folder / "node1" / "checkpoints").exists()
    resumed = {"resumed": {**cases["interrupted"], "fails": None, "verbose": True}}
    ended = torchrun(folder, **resumed, broken={**TWO_NODES, "fails": "batch"})
    assert "resuming after epoch 3" in ended[0][1]
    assert "resuming" not in ended[1][1]
    resumed = assert_all_have_the_same(folder / "resumed")
    assert resumed.fingerprint() == whole.fingerprint()
    assert all(code != 0 for code, _ in ended), ended
    assert several.MESSAGE in ended[1][1]
    assert "peer" in (folder / "broken" / "0.error").read_text()
    assert not list(folder.glob("node1/temporary/pt_neural-*"))


def fit_in_ray(config: dict) -> None:
    """What a worker of Ray Train does."""
    import ray.train

    rank, folder = ray.train.get_context().get_world_rank(), Path(config["folder"])
    os.chdir(folder / f"node{rank}")
    tempfile.tempdir = str(folder / f"node{rank}" / "temporary")
    for name, case in config["cases"].items():
        (folder / name).mkdir(exist_ok=True)
        several.fit(folder / name, rank, case, catches=False)


@pytest.mark.long
def test_two_workers_of_ray_train(cluster, folder):
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    in_ray = {"strategy": "ray"}
    cases = {"whole": in_ray, "triples": {**in_ray, "triples": True}, "broken": {**in_ray, "fails": "evaluation"}}
    trainer = TorchTrainer(
        fit_in_ray,
        train_loop_config={"folder": str(folder), "cases": cases},
        scaling_config=ScalingConfig(
            num_workers=2, resources_per_worker={"CPU": 1}, placement_strategy="STRICT_SPREAD"
        ),
        run_config=RunConfig(storage_path=str(folder / "storage")),
    )
    with pytest.raises(Exception, match=several.MESSAGE):
        trainer.fit()
    assert_all_have_the_same(folder / "whole")
    assert_all_have_the_same(folder / "triples")
    prepared = [json.loads((folder / "whole" / f"{rank}.json").read_text())["prepared"] for rank in range(2)]
    assert prepared == [1, 0]  # Ray takes processes of one address for those of one node


def test_ray_needs_a_worker_of_ray():
    pytest.importorskip("ray")
    with pytest.raises(RuntimeError, match="strategy='ray' is for a fit in the workers of Ray Train"):
        model(strategy="ray").fit(TRAIN, TRAIN_QRELS)


def test_arrays_reach_other_processes_in_files(tmp_path):
    large, small = np.arange(100_000), np.arange(3)
    np.save(tmp_path / "kept.npy", large[::-1])
    kept = np.load(tmp_path / "kept.npy", mmap_mode="r")
    folder = tmp_path / "files"
    folder.mkdir()
    processes._write({"large": large, "again": large, "small": small, "kept": kept, "part": kept[5:]}, folder)
    read = processes._read(folder)
    assert read["large"] is read["again"]
    for name, expected in {"large": large, "small": small, "kept": kept, "part": kept[5:]}.items():
        np.testing.assert_array_equal(read[name], expected)
    assert [Path(read[name].filename).name for name in ("large", "kept", "part")] == ["0.npy", "kept.npy", "1.npy"]
    assert sorted(path.name for path in folder.iterdir()) == ["0.npy", "1.npy", "value.pickle"]
    read["large"][0] = 7  # copied on writing
    assert np.load(folder / "0.npy")[0] == 0
