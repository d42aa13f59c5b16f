"""Retrieval from generated collections of growing size: CPU time for a query and a million documents, and memory.

Documents are random unit vectors, or bags of random words with the frequencies of Zipf's law; both lie in files that
are mapped. The time should not grow with the number of documents, and neither should the memory that the process holds
itself.

    python benchmarks/retrieval_blocks.py
    python benchmarks/retrieval_blocks.py --documents 1000000 5000000 20000000 --kinds dense
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scale import Memory
from scipy.sparse import csr_array

import pt_neural as pn
from pt_neural.datasets.docnos import DocnoTable, DocnoWriter
from pt_neural.rankers.kept.term_vectors import TermVectors
from pt_neural.rankers.retriever import search
from pt_neural.rankers.vectors import Vectors

DIMENSIONS = 32
WORDS, LENGTH = 50_000, 20  # distinct words, and words of a document
QUERY_WORDS = 5
BLOCK = 100_000
NUM_RESULTS = 1000


class Dense:
    """Kept vectors, without what a FlexIndex adds."""

    def __init__(self, folder: Path, number: int):
        self.matrix = np.lib.format.open_memmap(folder / "m.npy", "w+", np.float32, (number, DIMENSIONS))
        random = np.random.default_rng(1)
        with DocnoWriter(folder) as docnos:
            for start in range(0, number, BLOCK):
                rows = random.normal(size=(min(BLOCK, number - start), DIMENSIONS)).astype(np.float32)
                self.matrix[start : start + BLOCK] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
                docnos.extend(f"d{row}" for row in range(start, start + len(rows)))
        self.docnos, self.vectors = DocnoTable(folder), Vectors(self.matrix)

    def __len__(self) -> int:
        return len(self.matrix)


def sparse(folder: Path, number: int) -> TermVectors:
    """Documents as weights of terms."""
    random = np.random.default_rng(1)

    def batches() -> object:
        for start in range(0, number, BLOCK):
            rows = words(random, min(BLOCK, number - start), LENGTH)
            yield [f"d{row}" for row in range(start, start + rows.shape[0])], Vectors(None, rows)

    return TermVectors.build(folder / "terms", batches(), fingerprint=None, overwrite=False)


def words(random: np.random.Generator, number: int, length: int) -> csr_array:
    """Random words of so many texts, each with the weight 1 / sqrt(length)."""
    drawn = np.minimum(WORDS ** random.random(number * length), WORDS).astype(np.int32) - 1  # about Zipf's law
    weights = np.full(len(drawn), length**-0.5, dtype=np.float32)
    rows = csr_array((weights, drawn, np.arange(0, len(drawn) + 1, length)), shape=(number, WORDS))
    rows.sum_duplicates()
    return rows


def measure(kind: str, number: int, num_queries: int, folder: Path) -> str:
    """A row of the table."""
    random = np.random.default_rng(2)
    if kind == "dense":
        kept, queries = Dense(folder, number), Vectors(random.normal(size=(num_queries, DIMENSIONS)).astype(np.float32))
        model = pn.LSA(DIMENSIONS)
    else:
        kept, queries = sparse(folder, number), Vectors(None, words(random, num_queries, QUERY_WORDS))
        model = pn.TFIDF()
    search(model, queries.take(slice(0, 16)), 16, kept, NUM_RESULTS)  # loads libraries, and files into memory
    with Memory() as memory:
        before, began = memory_now(memory), time.process_time()
        search(model, queries, num_queries, kept, NUM_RESULTS)
        seconds = time.process_time() - began
    each = 1000 * seconds / num_queries / (number / 1e6)
    return f"| {kind} | {number:,} | {each:.2f} | {max(0, memory.own - before) / 1e6:,.0f} |"


def memory_now(memory: Memory) -> int:
    """What the process holds itself, as soon as it has been sampled."""
    while not memory.own:
        time.sleep(0.01)
    return memory.own


def main() -> None:
    """Print a table."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--documents", type=int, nargs="+", default=[250_000, 1_000_000])
    arguments.add_argument("--kinds", nargs="+", choices=["dense", "sparse"], default=["dense", "sparse"])
    arguments.add_argument("--queries", type=int, default=256)
    options = arguments.parse_args()
    print(f"{options.queries} queries, {NUM_RESULTS} results, {DIMENSIONS} dimensions or {LENGTH} words a document\n")
    print("| kind | documents | CPU ms per query and million documents | MB held while searching |\n|---|---|---|---|")
    for kind in options.kinds:
        for number in options.documents:
            with TemporaryDirectory() as folder:
                print(measure(kind, number, options.queries, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
