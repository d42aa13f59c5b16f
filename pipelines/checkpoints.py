"""Small rankers trained on documentation once, for use elsewhere, and whether they help there.

Trains DSSM, CLSM (both shared) and word embeddings on the queries of some datasets that were made from their own
documents: synopses of packages, first sentences of docstrings. Measures them on another collection: as they are
(zero-shot), fine-tuned, and beside training there from scratch, as re-rankers of BM25 and mixed with it. A collection
without training queries has five folds. Checkpoints trained on other datasets or with other settings have a folder of
their own.
"""

import argparse
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pyterrier as pt
from ir_measures import nDCG

import pt_neural as pn
from pipelines.common.arguments import as_json, parsed, parser
from pipelines.common.collection import FIELDS, Collection, Split, load
from pipelines.common.first_stage import tuned_bm25
from pipelines.common.workspace import Workspace, fingerprint
from pt_neural.experiment import per_query, significance
from pt_neural.experiment.alpha import assign_folds
from pt_neural.rankers import load_ranker

DEV_QUERIES, DEV_DEPTH, DEPTH, FOLDS = 200, 20, 100, 5
SIZES = {
    "DSSM": lambda **options: pn.DSSM((100, 64), shared=True, **options),
    "CLSM": lambda **options: pn.CLSM(window=1, filters=64, dim=64, shared=True, **options),
}
SPACES = {"dim": 50, "min_count": 20, "epochs": 10}
MEGABYTES = 20  # of the checkpoints of one folder together, at most
TUNING = {"learning_rate": 3e-4}  # a third of the usual one, which forgets what was learned before
SCRATCH, ZERO_SHOT, TUNED = "{}, from scratch", "{} checkpoint, zero-shot", "{} checkpoint, fine-tuned"


def main() -> None:
    """Train what is not there yet; print and save a table of the other collection."""
    arguments = options()
    collection, sources = load(arguments.dataset), [load(name) for name in arguments.sources]
    check(sources, collection)
    workspace = Workspace(arguments, "checkpoints", collection)  # first, since its seconds include training
    measure(workspace, sources, train_all(arguments, sources))


def options() -> argparse.Namespace:
    """The arguments of the pipeline."""
    arguments = parser(__doc__, "irds:vaswani", one_seed=True)
    arguments.add_argument("--sources", nargs="+", default=["neural:pydocs"], help="datasets to train checkpoints on")
    arguments.add_argument("--models", nargs="+", choices=list(SIZES), default=list(SIZES), help="rankers")
    arguments.add_argument("--epochs", type=int, default=10, help="maximum number of training epochs")
    arguments.add_argument("--queries", type=int, help="training queries of the dataset, drawn; None: all")
    return parsed(arguments)


def check(sources: Iterable[Collection], collection: Collection) -> None:
    """SystemExit if checkpoints cannot learn from a source, or should not, since they are measured on it."""
    for source in sources:
        if (source.folder or source.name) == (collection.folder or collection.name):
            raise SystemExit(
                f"{source.name} is the dataset itself, on which checkpoints that learned from it would not be "
                "zero-shot: choose other --sources, or another --dataset"
            )
        if source.train is None or source.dev is None:
            raise SystemExit(
                f"{source.name} lacks training or dev queries, which checkpoints learn from and stop by: choose other "
                "--sources"
            )


def train_all(arguments: argparse.Namespace, sources: Sequence[Collection]) -> Path:
    """Train the rankers and the word embeddings that are not there, and say how large they are.

    Returns:
        Their folder, whose name depends on the sources and the settings; a file in it says which these are.
    """
    names = [f"{source.label}-{fingerprint(source)}" for source in sources]
    text = as_json({"sources": names, "epochs": arguments.epochs, "seed": arguments.seed, "spaces": SPACES})
    folder = arguments.out / "checkpoints" / hashlib.sha256(text.encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trained-on.json").write_text(text, encoding="utf-8")
    if missing := [name for name in arguments.models if not path_of(folder, name).exists()]:
        examples = [
            pd.concat(frames, ignore_index=True)
            for frames in zip(*map(partial(_examples, arguments), sources), strict=True)
        ]
        for name in missing:
            model = SIZES[name](training=_training(arguments))
            model.fit(*examples).save(path_of(folder, name))
            print(model.report, flush=True)
    spaces = folder / "documentation-en.spaces"
    if not spaces.exists():
        pn.EmbeddingSpaces.train(_texts(sources), seed=arguments.seed, workers=1, **SPACES).save(spaces)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
    print(f"{folder}: {size:.1f} MB", flush=True)
    if size > MEGABYTES:
        raise ValueError(f"the checkpoints take {size:.1f} MB, more than {MEGABYTES}")
    return folder


def path_of(folder: Path, name: str) -> Path:
    """Where a checkpoint is."""
    return folder / f"documentation-en.{name.lower()}"


def _training(arguments: argparse.Namespace, **settings: object) -> pn.Training:
    return pn.Training(**{"epochs": arguments.epochs, "batch_size": 256, "seed": arguments.seed, **settings})


def _texts(collections: Iterable[Collection]) -> Iterator[dict[str, str]]:
    for collection in collections:
        yield from collection.dataset.get_corpus_iter(verbose=False)


def _examples(arguments: argparse.Namespace, collection: Collection) -> list[pd.DataFrame]:
    """The arguments of ``fit`` with texts; ids are those of the collection, so that collections can be joined."""
    loader, workspace = collection.dataset.text_loader(list(FIELDS)), Workspace(arguments, "checkpoints", collection)
    dev = collection.dev.sample(DEV_QUERIES, arguments.seed)
    candidates = workspace.index().bm25(num_results=DEV_DEPTH) >> loader
    pairs, qrels, *frames = replace(collection, dev=dev).examples(candidates)
    return [_own_ids(frame, collection.label) for frame in (loader(pairs), qrels, *frames)]


def _own_ids(frame: pd.DataFrame, label: str) -> pd.DataFrame:
    return frame.assign(**{name: f"{label} " + frame[name] for name in ("qid", "docno")})


def measure(workspace: Workspace, sources: Iterable[Collection], folder: Path) -> None:
    """Print and save a table of a collection: nDCG@10, and p against the same ranker from scratch."""
    arguments, collection = workspace.arguments, workspace.collection
    documents = workspace.forward_index()
    bm25 = tuned_bm25(workspace)
    parts, run = list(_parts(arguments, collection, bm25 % DEV_DEPTH)), (bm25 % DEPTH)(collection.test.judged)
    runs = {"BM25": run}
    for name in arguments.models:
        checkpoint = load_ranker(path_of(folder, name), documents=documents)
        start = workspace.built(f"start-{checkpoint.fingerprint()[:12]}", checkpoint.save, Path)
        unfitted = {
            SCRATCH: SIZES[name](documents=documents, training=_training(arguments)),
            TUNED: SIZES[name](documents=documents, training=_training(arguments, start=start, **TUNING)),
        }
        for system in (SCRATCH, ZERO_SHOT, TUNED):
            label = system.format(name)
            print(f"{collection.label}: {label}", flush=True)
            scored = []
            for examples, qids in parts:
                ranker = checkpoint if system == ZERO_SHOT else workspace.trained(unfitted[system], *examples)
                scored.append(ranker(run[run["qid"].isin(qids)]))
            runs[label] = pd.concat(scored, ignore_index=True)
            runs[f"BM25 + {label}"] = _mixed(collection, run, runs[label], arguments.seed)
    result = pt.Experiment(runs, collection.test.judged, collection.test.qrels, [nDCG @ 10], perquery=True)
    values = per_query(result)
    values.to_csv(workspace.results / "per-query.csv")
    table = pd.DataFrame({"system": list(runs), "nDCG@10": values.mean()[list(runs)].round(4).to_list()})
    table["p"] = [_p(values, system) for system in table["system"]]
    training = f"{arguments.queries or 'all'}" if collection.train else "those of the other folds"
    caption = (
        f"{collection.label}, {len(collection.test.judged):,} test queries, the top {DEPTH} of BM25; alpha by five "
        f"folds; training queries: {training}; p of a paired t-test against training from scratch; "
        f"checkpoints trained on {', '.join(source.label for source in sources)}; at most {arguments.epochs} epochs, "
        f"seed {arguments.seed}"
    )
    workspace.save_table("table", table, caption)
    workspace.save_settings(bm25=repr(bm25))


def _parts(
    arguments: argparse.Namespace, collection: Collection, candidates: pt.Transformer
) -> Iterator[tuple[list[pd.DataFrame], list[str]]]:
    """The arguments of ``fit`` and the test queries to measure on: one part, or five without training queries."""
    test = collection.test
    if collection.train is not None:
        train = collection.train.sample(arguments.queries or len(collection.train.topics), arguments.seed)
        dev = collection.dev and collection.dev.sample(DEV_QUERIES, arguments.seed)
        yield replace(collection, train=train, dev=dev).examples(candidates), test.judged["qid"].tolist()
        return
    qids = test.judged["qid"]
    fold_of = assign_folds(FOLDS, qids.tolist(), arguments.seed)
    for fold in range(FOLDS):
        train = Split(test.judged[fold_of != fold], test.qrels[test.qrels["qid"].isin(qids[fold_of != fold])])
        yield replace(collection, train=train).examples(candidates), qids[fold_of == fold].tolist()


def _mixed(collection: Collection, run: pd.DataFrame, scored: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The run of a mixture of both scores, each query with the alpha that is best on the other folds."""
    columns = ["qid", "docno", "score"]
    ranker = pt.apply.generic(lambda rows: rows.drop(columns="score").merge(scored[columns], on=["qid", "docno"]))
    mixture = pn.Mixture(ranker, normalise="minmax")
    return pn.tune_alpha(mixture, run, collection.test.qrels, nDCG @ 10, folds=FOLDS, seed=seed).run


def _p(values: pd.DataFrame, system: str) -> str:
    """How probable so large a difference from training from scratch is if there is none."""
    for name in SIZES:
        baseline = system.replace(ZERO_SHOT.format(name), SCRATCH.format(name))
        baseline = baseline.replace(TUNED.format(name), SCRATCH.format(name))
        if baseline != system:
            return f"{significance(values[[baseline, system]], baseline)['p'].iloc[-1]:.2g}"
    return ""


if __name__ == "__main__":
    main()
