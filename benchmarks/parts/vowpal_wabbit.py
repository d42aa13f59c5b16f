"""Hash kernels of SSI and of Vowpal Wabbit, learned in one pass from the same tuples.

Vowpal Wabbit can have its own environment, made once:

    python3.11 -m venv vw
    vw/bin/pip install vowpalwabbit==9.11.9

Its two namespaces q and d are crossed (-q qd), without the constant, so that a feature is a pair of a query word and a
document word. The weights share a table of 2^20 entries; ours has a million. There are two differences. It has no loss
on pairs of documents, so it learns (q, d+) as an example of +1 and (q, d-) as one of -1 by the hinge loss, whereas ours
increases the difference of their scores. And it has no identity beside the table, so ours is left out here.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from parts.collection import Collection
from parts.rates import rate, text
from scipy.sparse import csr_array

from pt_neural.models.ssi.network import Network, Shape, no_rows, rows_of
from pt_neural.models.ssi.ssi import LEARNING_RATES
from pt_neural.models.ssi.steps import Rates, Texts, learn
from pt_neural.models.ssi.steps import Tuples as Numbers
from pt_neural.text import TfIdf

SCRIPT = Path(__file__).parents[1] / "peers" / "vowpal_wabbit.py"
BITS = 20
HASH_SIZE = 1_000_000  # the default of SSI


class Tuples(NamedTuple):
    """Texts as tf-idf vectors, and the two documents of each query.

    Attributes:
        queries: A row for each tuple.
        documents: A row for each document.
        pairs: d+ and d- of each tuple, int64 of shape (tuples, 2).
    """

    queries: csr_array
    documents: csr_array
    pairs: np.ndarray

    def rows(self, part: slice) -> "Tuples":
        """A slice of the tuples."""
        return self._replace(queries=self.queries[part], pairs=self.pairs[part])


def measure(
    python: str | None, collection: Collection, folder: Path, *, tuples: int, held_out: int, rounds: int
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Our and its examples per second (two per tuple), and the rank loss on held-out tuples."""
    given = tuples_of(collection, tuples, held_out)
    train, test = given.rows(slice(tuples)), given.rows(slice(tuples, None))
    return ours(train, test, rounds), theirs(python, train, test, folder, rounds) if python else None


def tuples_of(collection: Collection, *counts: int) -> Tuples:
    """Parts of so many tuples each, from the first pairs.

    d- is d+ of the tuple before it in the same part, so that training does not see held-out documents as irrelevant.
    """
    documents, pairs = collection.documents, collection.pairs.head(sum(counts))
    numbers = {docno: number for number, docno in enumerate(documents.docnos)}
    relevant = np.split(pairs["docno"].map(numbers).to_numpy(), np.cumsum(counts)[:-1])
    weights = TfIdf(documents.vocabulary, sublinear_tf=True)
    return Tuples(
        weights.of_texts(pairs["query"]),
        weights.of_sequences(documents.all()),
        np.concatenate([np.column_stack([part, np.roll(part, 1)]) for part in relevant]),
    )


def ours(train: Tuples, test: Tuples, rounds: int) -> dict[str, Any]:
    """Our margin ranking steps, which start from W = 0, as in SSI."""
    terms = train.documents.shape[1]
    texts, rates = texts_of(train), Rates(LEARNING_RATES["hash"], 0.0, 0.0, 0.0, 1.0)
    shape = Shape(terms, terms, pairs=HASH_SIZE, shared_pairs=True)
    networks = [Network.start(shape, torch.Generator()) for _ in range(rounds + 1)]
    learn_from(networks.pop(), texts, train.pairs[:10], rates)  # compiles
    fresh = iter(networks)
    learning = rate(
        lambda: learn_from(next(fresh), texts, train.pairs, rates), train.pairs.size, rounds, clock=time.process_time
    )
    return {"rate": learning, "rank loss": rank_loss(networks[0], test)}


def learn_from(network: Network, texts: Texts, pairs: np.ndarray, rates: Rates, first: int = 0) -> float:
    """Learn from tuples in order; their queries are numbered from ``first``. Returns the sum of their losses."""
    queries, valid = first + np.arange(len(pairs)), np.ones(pairs.shape, dtype=bool)
    return learn(network.parts(), texts, Numbers(queries, np.ascontiguousarray(pairs), valid), rates)[0]


def rank_loss(network: Network, tuples: Tuples) -> float:
    """The share of tuples whose d+ scores no higher than d-: those with a loss at a tiny margin."""
    texts, no_change = texts_of(tuples), Rates(0.0, 0.0, 0.0, 0.0, 1e-12)
    losses = [learn_from(network, texts, tuples.pairs[[row]], no_change, row) for row in range(len(tuples.pairs))]
    return float(np.mean(np.array(losses) > 0))


def texts_of(tuples: Tuples) -> Texts:
    """The texts as the compiled loop takes them."""
    matrices = tuples.queries, tuples.documents
    return Texts(*map(rows_of, matrices), *(no_rows(matrix.shape[0]) for matrix in matrices))


def theirs(python: str, train: Tuples, test: Tuples, folder: Path, rounds: int) -> dict[str, Any]:
    """The figures that benchmarks/peers/vowpal_wabbit.py prints, with the rank loss of its scores."""
    for name, tuples in (("train", train), ("test", test)):
        (folder / f"{name}.txt").write_text("".join(examples(tuples)), encoding="utf-8")
    command = [python, str(SCRIPT), "--folder", str(folder), "--rounds", str(rounds), "--bits", str(BITS)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"Vowpal Wabbit failed; the end of its output:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    for one in found["settings"].values():
        relevant, other = np.reshape(one.pop("scores"), (-1, 2)).T
        one["rank loss"] = float(np.mean(relevant <= other))
    return found


def examples(tuples: Tuples) -> Iterator[str]:
    """A line for (q, d+) and one for (q, d-), in the format of Vowpal Wabbit."""
    queries = [features(tuples.queries, row) for row in range(len(tuples.pairs))]
    for query, pair in zip(queries, tuples.pairs, strict=True):
        for label, document in zip((1, -1), pair, strict=True):
            yield f"{label} |q {query} |d {features(tuples.documents, document)}\n"


def features(matrix: csr_array, row: int) -> str:
    """The terms of a text with their weights."""
    entries = slice(*matrix.indptr[row : row + 2])
    terms = zip(matrix.indices[entries], matrix.data[entries], strict=True)
    return " ".join(f"{term}:{weight:.6f}" for term, weight in terms)


def print_rates(ours: dict[str, Any], theirs: dict[str, Any] | None) -> None:
    """Print a line for each, with the ratio of medians."""
    print(f"{'SSI':58}{text(ours['rate']):>30}   rank loss {ours['rank loss']:.3f}")
    if theirs is None:
        print("Vowpal Wabbit is not measured: set PT_NEURAL_VOWPAL_WABBIT to the python of an environment that has it;")
        print("the head of benchmarks/parts/vowpal_wabbit.py says how to make one")
        return
    for name, found in theirs["settings"].items():
        label = f"Vowpal Wabbit {theirs['version']}, {name}"
        times = f"{ours['rate'][1] / found['rate'][1]:.1f}"
        print(f"{label:58}{text(found['rate']):>30}   rank loss {found['rank loss']:.3f}, ours {times} times as fast")
