"""Groups per second of training in one process and in two on one machine (DDP), each process with one thread.

A process of DDP takes batches of ``--batch-size``, and so do all others at the same time; gradients are averaged after
each. Seconds are those of the epochs after the first. Needs two idle cores.

    python benchmarks/ddp.py
    python benchmarks/ddp.py --model Duet --batch-size 16 --groups 512 --document-terms 200
"""

import argparse
import json
import os
import subprocess
import sys

import numpy as np
from parts.synthetic import synthetic_texts

import pt_neural as pn

MODELS = ("DSSM", "CLSM", "Duet", "DuetLocal")
REPEATS = 3


def train(arguments: argparse.Namespace) -> None:
    """Train for two epochs; the first process prints groups per second of the second one."""
    random = np.random.default_rng(13)
    texts = synthetic_texts(5_000, arguments.groups, random, terms=arguments.document_terms, shared=3)
    frame = texts.frame()
    training = pn.Training(
        epochs=2,
        batch_size=arguments.batch_size,
        negatives="random",
        num_negatives=4,
        devices=arguments.processes,
        device="cpu",
        verbose=False,
    )
    model = getattr(pn, arguments.model)(training=training).fit(frame, frame[["qid", "docno"]].assign(label=1))
    if os.environ.get("LOCAL_RANK", "0") == "0":
        weights = sum(weight.numel() for weight in model.network.parameters())
        print(json.dumps([arguments.groups / model.history["seconds"].iloc[-1], weights]))


def main() -> None:
    """Print groups per second of one process and of two, three times each, by turns, and their ratio."""
    arguments = argparse.ArgumentParser(description=main.__doc__)
    arguments.add_argument("--model", choices=MODELS, default="DSSM")
    arguments.add_argument("--groups", type=int, default=20_000)
    arguments.add_argument("--batch-size", type=int, default=1_024)
    arguments.add_argument("--document-terms", type=int, default=40)
    arguments.add_argument("--processes", type=int, help="train with so many, and print no table")
    parsed = arguments.parse_args()
    if parsed.processes:
        train(parsed)
        return
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    rates = {1: [], 2: []}
    for _ in range(REPEATS):
        for processes, found in rates.items():
            command = [sys.executable, *sys.argv, "--processes", str(processes)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
            rate, weights = json.loads(output.splitlines()[-1])
            found.append(rate)
    print(f"{parsed.model}, {weights:,} weights, {parsed.batch_size} groups a batch and process")
    for processes, found in rates.items():
        low, middle, high = sorted(found)
        print(f"{processes} processes {low:8.0f} /{middle:8.0f} /{high:8.0f} groups/s")
    print(f"{sorted(rates[2])[1] / sorted(rates[1])[1]:.2f} times")


if __name__ == "__main__":
    main()
