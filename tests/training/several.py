"""Fits rankers in one of several processes, and writes what each has in the end; torchrun runs it as a script.

The script's arguments are a folder, and a list of cases as JSON. A case has settings of pn.Training, whether to fit
``triples``, and what ``fails``. A relative ``checkpoint_dir`` is in the working folder of the process.
"""

import json
import os
import sys
from pathlib import Path

import pt_neural as pn
from pt_neural.training.sampling import GroupBatches
from tests.rankers.test_trained import DEV, DEV_QRELS, TRAIN, TRAIN_QRELS

SETTINGS = {"epochs": 6, "batch_size": 8, "learning_rate": 0.02, "negatives": "retrieved", "device": "cpu"}
MESSAGE = "the disk has no more sectors"


def fit(folder: Path, rank: int, case: dict, *, catches: bool = True) -> None:
    """Fit, and write the model, its history, its report and its settings, or the error, to a folder."""
    case, prepared, prepare = dict(case), [], pn.DSSM._prepare
    fails, triples = case.pop("fails", None), case.pop("triples", False)
    training = pn.Training(**{**SETTINGS, "verbose": False, **case})
    ranker = pn.DSSM((16, 8), training=training, device="cpu")
    ranker._prepare = lambda *arguments: prepared.append(prepare(ranker, *arguments)) or prepared[0]
    train = TRAIN
    if fails == "preparation" and rank == 1:
        train = TRAIN.head(0)
    if fails == "other data" and rank == 1:
        train = TRAIN.iloc[:-16]
    if fails == "evaluation" and rank == 0:
        ranker._dev_measure = lambda *arguments: broken
    if fails == "batch" and rank == 1:
        GroupBatches._negatives = broken
    if fails == "interruption" and rank == 0:
        die_before(epoch=3)
    try:
        if triples:
            ranker.documents = pn.ForwardIndex.build("forward", documents(), overwrite=True, verbose=False)
            ranker.fit_triples(some_triples(), TRAIN[["qid", "query"]].drop_duplicates(), DEV, DEV_QRELS)
        else:
            ranker.fit(train, TRAIN_QRELS, DEV, DEV_QRELS)
    except Exception as error:
        (folder / f"{rank}.error").write_text(str(error))
        if fails == "batch" or not catches:
            raise
        return
    finally:
        ranker.__dict__.pop("_prepare"), ranker.__dict__.pop("_dev_measure", None)
    ranker.save(folder / f"{rank}.model")
    result = {"report": repr(ranker.report), "training": repr(ranker.training), "prepared": len(prepared)}
    (folder / f"{rank}.json").write_text(json.dumps(result))


def documents() -> list[dict[str, str]]:
    columns = [frame[["docno", "text"]].drop_duplicates() for frame in (TRAIN, DEV)]
    return [row for frame in columns for row in frame.to_dict("records")]


def some_triples() -> list[tuple[str, str, str]]:
    """37 triples, so that the last batch of an epoch is smaller; one is unknown."""
    relevant = list(zip(TRAIN_QRELS["qid"], TRAIN_QRELS["docno"], strict=True))
    return [*((qid, docno, f"d{(int(docno[1:]) + 1) % 16}") for qid, docno in relevant[:36]), ("q0", "d0", "nowhere")]


def broken(*arguments: object) -> None:
    raise RuntimeError(MESSAGE)


def die_before(epoch: int) -> None:
    batch = GroupBatches.__getitem__

    def dying(batches: GroupBatches, key: tuple[int, int]) -> object:
        if key[0] == epoch:
            os._exit(3)
        return batch(batches, key)

    GroupBatches.__getitem__ = dying


if __name__ == "__main__":
    for name, case in json.loads(sys.argv[2]).items():
        results = Path(sys.argv[1]) / name
        results.mkdir(exist_ok=True)
        fit(results, int(os.environ["RANK"]), case)
