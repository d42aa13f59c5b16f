"""A collection so small that the figures mean nothing, and what starts a pipeline on it."""

import json
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

SUBJECTS = {
    "city": "university college town county river bridge station museum library street".split(),
    "animal": "neck legs savanna herd leaves mammal coat africa hooves grazing".split(),
    "music": "chord rhythm melody tempo harmony violin concert singer record stage".split(),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Ninety documents and sixty queries on three subjects, with train, dev and test judgements."""
    random = np.random.default_rng(3)
    place = tmp_path_factory.mktemp("folder")
    documents, queries, qrels = [], [], {"train": [], "dev": [], "test": []}
    for number in range(90):
        words = SUBJECTS[sorted(SUBJECTS)[number % 3]]
        text = " ".join(random.choice(words, 40))
        documents.append({"_id": f"d{number}", "title": f"Document {number}", "text": text})
    for number in range(60):
        words = documents[number]["text"].split()
        queries.append({"_id": f"q{number}", "text": " ".join(random.choice(words, 3))})
        split = ("train", "dev", "test")[number // 3 % 3]
        qrels[split] += [(f"q{number}", f"d{number}", 2), (f"q{number}", f"d{(number + 3) % 90}", 1)]
    for name, records in (("corpus", documents), ("queries", queries)):
        (place / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    (place / "qrels").mkdir()
    for split, rows in qrels.items():
        frame = pd.DataFrame(rows, columns=["query-id", "corpus-id", "score"])
        frame.to_csv(place / "qrels" / f"{split}.tsv", sep="\t", index=False)
    return place


@pytest.fixture(scope="session")
def run_in(folder):
    """Runs a pipeline's main with a folder for its output, and options; gives the folder of its results."""

    def start(out, module, *options, dataset=folder):
        arguments = ["pipeline", "--dataset", f"neural:folder:{dataset}", "--out", str(out), *options]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", arguments)
            module.main()
        return next(path for path in out.iterdir() if path.name != "artifacts")

    return start


@pytest.fixture
def run(run_in, tmp_path):
    """Likewise, with a folder of the test's own."""
    return partial(run_in, tmp_path)
