"""A collection so small that its figures mean nothing, and a function that runs a pipeline on it."""

import json
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

SUBJECTS = {
    "city": "university college town county river bridge station museum library street".split(),
    "animal": "neck legs savanna herd leaves mammal coat africa hooves grazing".split(),
    "music": "chord rhythm melody tempo harmony violin concert singer record stage".split(),
}


def write_collection(folder, documents, queries, qrels):
    """A folder in the BEIR layout; qrels by split, as triples of query, document and label."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, records in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    for split, rows in qrels.items():
        frame = pd.DataFrame(rows, columns=["query-id", "corpus-id", "score"])
        frame.to_csv(folder / "qrels" / f"{split}.tsv", sep="\t", index=False)
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Sixty documents and thirty-six queries on three subjects, with train, dev and test judgements."""
    random = np.random.default_rng(3)
    documents, queries, qrels = [], [], {"train": [], "dev": [], "test": []}
    for number in range(60):
        words = SUBJECTS[sorted(SUBJECTS)[number % 3]]
        text = " ".join(random.choice(words, 40))
        documents.append({"_id": f"d{number}", "title": f"Document {number}", "text": text})
    for number in range(36):
        words = documents[number]["text"].split()
        queries.append({"_id": f"q{number}", "text": " ".join(random.choice(words, 3))})
        split = ("train", "dev", "test")[number // 3 % 3]
        qrels[split] += [(f"q{number}", f"d{number}", 2), (f"q{number}", f"d{(number + 3) % 60}", 1)]
    return write_collection(tmp_path_factory.mktemp("collection") / "folder", documents, queries, qrels)


@pytest.fixture(scope="session")
def test_only(folder, tmp_path_factory):
    """The same collection with test queries only."""
    place = tmp_path_factory.mktemp("test-only")
    shutil.copytree(folder, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("train.tsv", "dev.tsv"))
    return place


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    """The folder of all results, whose artifacts the pipelines share."""
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="session")
def run(folder, out):
    """Runs the main function of a pipeline with options; returns the folder of its results."""

    def start(module, *options, dataset=folder, out=out):
        name = module.__name__.removesuffix(".__main__").rpartition(".")[2].replace("_", "-")
        arguments = ["pipeline", "--dataset", f"neural:folder:{dataset}", "--out", str(out), *options]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", arguments)
            module.main()
        return out / f"{name}-{dataset.name}"

    return start
