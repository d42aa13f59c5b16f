"""How many tuples per second SSI learns from, and how many memory would allow."""

import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from parts.collection import Collection
from parts.rates import Rate, rate, spread

import pt_neural as pn
from pt_neural.models.ssi.features import training_texts
from pt_neural.models.ssi.network import Network
from pt_neural.models.ssi.steps import Rates, Texts, Tuples, learn

MARGIN = 1.0
SAMPLE = 1000  # tuples on which the share with a step is measured
IN_THE_LOOP = 20_000  # tuples on which the compiled loop alone is timed
EVERY, NO = 1e9, -1e9  # margins that every tuple violates, and that no tuple violates


class Work(NamedTuple):
    """What a training tuple demands of memory.

    Attributes:
        dim: N.
        query_terms: Distinct terms of a query, on average.
        document_terms: Distinct terms of a document, on average.
        negatives: Negatives of a group.
    """

    dim: int
    query_terms: float
    document_terms: float
    negatives: int

    def bytes(self, share: float) -> float:
        """Bytes of U and V that are read and written per tuple, if this share of the tuples makes a step.

        A step reads and writes the columns of the three texts. Scoring reads the columns of d-; it reads those of q and
        d+ only for the first tuple of a group and after a step, because otherwise their vectors are still valid.
        """
        anew = (1 + (self.negatives - 1) * share) / self.negatives
        scores = self.document_terms + (self.query_terms + self.document_terms) * anew
        steps = share * (self.query_terms + 2 * self.document_terms)
        return 4 * self.dim * (scores + 2 * steps)


class Trained(NamedTuple):
    """A trained model, and how fast it was trained.

    Attributes:
        model: The model.
        rates: Tuples per second of wall-clock time in the epochs after the first, by the name of the training stage.
        core: The share of one core that the process had in that time.
    """

    model: pn.SSI
    rates: dict[str, Rate]
    core: float


def fit(
    kind: str, collection: Collection, *, tuples: int, negatives: int, epochs: int, seed: int, **settings: Any
) -> Trained:
    """Train from frames, on this many tuples in each epoch."""
    groups = min(-(-tuples // negatives), len(collection.pairs))
    training = pn.Training(
        epochs=epochs,
        max_groups=groups,
        negatives="random",
        num_negatives=negatives,
        margin=MARGIN,
        seed=seed,
        verbose=False,
    )
    model = pn.SSI(kind, documents=collection.documents, training=training, **settings)
    started = time.process_time(), time.perf_counter()
    model.fit(collection.pairs, collection.qrels)
    core = (time.process_time() - started[0]) / (time.perf_counter() - started[1])
    return Trained(model, stage_rates(model.history, groups * negatives), core)


def stage_rates(history: pd.DataFrame, tuples: int) -> dict[str, Rate]:
    """Tuples per second of each stage: a sparse W loses weights from stage to stage, or parts of W learn in turn."""
    column = next((name for name in ("nonzeros", "model") if name in history), None)
    stages = [("", history)] if column is None else history.groupby(column, sort=False)
    names = {"nonzeros": "{:,} weights per row", "model": "{}", None: "{}"}
    return {names[column].format(stage): spread(tuples / records["seconds"].iloc[1:]) for stage, records in stages}


def share_of_steps(model: pn.SSI, collection: Collection, generator: np.random.Generator) -> float:
    """The share of random tuples that would make a step with the current weights."""
    pairs, docnos = collection.pairs.head(SAMPLE), np.array(list(collection.documents.docnos), dtype=object)
    others = pairs.assign(docno=docnos[generator.integers(len(docnos), size=len(pairs))])
    relevant, other = (model.transform(rows)["score"].to_numpy() for rows in (pairs, others))
    return float(np.mean(relevant - other < MARGIN))


def loop_rates(model: pn.SSI, collection: Collection, repeats: int, generator: np.random.Generator) -> dict[str, Rate]:
    """Tuples per second of processor time in the compiled loop alone, if every tuple makes a step and if none does."""
    negatives = model.training.num_negatives
    pairs = collection.pairs.head(IN_THE_LOOP // negatives)
    features, documents = model.features, collection.documents
    docnos = {docno: number for number, docno in enumerate(documents.docnos)}
    texts = training_texts(
        features.read_queries(pairs["query"].tolist()), features.read_documents(documents.all(), documents.vocabulary)
    )
    others = generator.integers(len(documents), size=(len(pairs), negatives))
    numbers = np.column_stack([pairs["docno"].map(docnos), others])
    tuples = Tuples(np.arange(len(pairs)), numbers, np.ones(numbers.shape, dtype=bool))
    found = {}
    for name, margin in (("each with a step", EVERY), ("none with a step", NO)):
        work = partial(take, model.network, texts, tuples, margin)
        found[name] = rate(work, others.size, repeats, clock=time.process_time)
    return found


def take(network: Network, texts: Texts, tuples: Tuples, margin: float) -> float:
    """The loss, after steps that are too small to change anything."""
    tiny = Rates(1e-12, 0.0, 0.0, 0.0, margin)
    return learn(network.parts(), texts, tuples, tiny)[0]


def distinct_terms(model: pn.SSI, collection: Collection) -> tuple[float, float]:
    """Distinct known terms of a query and of a document, on average."""
    queries = model.features.read_queries(collection.pairs["query"].head(SAMPLE).tolist()).terms
    documents = collection.documents
    all_documents = model.features.read_documents(documents.all(), documents.vocabulary).terms
    return tuple(matrix.nnz / matrix.shape[0] for matrix in (queries, all_documents))


def long_training(collection: Collection, tuples: int, options: dict[str, Any]) -> dict[str, Any]:
    """Train on this many tuples; run in a process of its own, so that the peak of memory is that of the training."""
    before = peak_memory()
    groups = len(collection.pairs)
    epochs = max(2, -(-tuples // (groups * options["negatives"])))
    model, rates, core = fit("low-rank", collection, tuples=-(-tuples // epochs), epochs=epochs, **options)
    return {
        "tuples": epochs * model.training.max_groups * options["negatives"],
        "seconds": float(model.history["seconds"].sum()),
        "rate": rates[""],
        "core": core,
        "before": before,
        "peak": peak_memory(),
        "weights": sum(array.nbytes for array in model.network.arrays().values()),
    }


def peak_memory() -> int:
    """Peak resident memory of this process so far, in bytes, without that of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
