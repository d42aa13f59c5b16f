"""How data walks through the package: the files that a call touches, and how often it returns to one that it has left.

Each step from one file of the package to another, by a call or at its end, is a move; a move to a file that was touched
before is a return. If there are few returns, a reader can follow the data from file to file.

    python benchmarks/walk.py
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import pt_neural as pn

PACKAGE = str(Path(pn.__file__).parent)
WORDS = ["river", "city", "neck", "leaf", "stone", "sea", "cloud", "grass", "bread", "lamp", "wheel", "rope"]


class Walk:
    """Counts the files that are touched and the returns while a function runs.

    Args:
        function: What to run.
    """

    def __init__(self, function: Callable[[], Any]):
        self.files: list[str] = []
        self.returns = 0
        self._last = ""
        sys.setprofile(self._event)
        try:
            function()
        finally:
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, argument: object) -> None:
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if event == "return":
            frame = frame.f_back
            while frame is not None and not frame.f_code.co_filename.startswith(PACKAGE):
                frame = frame.f_back
        file = self._last if frame is None else frame.f_code.co_filename
        if file == self._last:
            return
        self._last = file
        if file in self.files:
            self.returns += 1
        else:
            self.files.append(file)


def collection(documents: int = 60, queries: int = 12) -> tuple[list[dict[str, str]], pd.DataFrame, pd.DataFrame]:
    """A corpus, topics and judgements of random words."""
    random = np.random.default_rng(1)
    corpus = [
        {"docno": f"d{i}", "title": WORDS[i % 12], "text": " ".join(random.choice(WORDS, 30))} for i in range(documents)
    ]
    topics = pd.DataFrame({"qid": [f"q{i}" for i in range(queries)], "query": [WORDS[i % 12] for i in range(queries)]})
    qrels = pd.DataFrame({"qid": topics["qid"], "docno": [f"d{i}" for i in range(queries)], "label": 1})
    return corpus, topics, qrels


def main() -> None:
    """Print a line for each walk through the package."""
    corpus, topics, qrels = collection()
    with tempfile.TemporaryDirectory() as folder:
        index = pn.LuceneIndex(f"{folder}/index")
        index.index(iter(corpus))
        candidates = index.bm25(num_results=20) >> index.text_loader(["title", "text"])
        training = pn.Training(epochs=2, verbose=False, device="cpu")
        duet = pn.Duet(document_terms=40, filters=8, hidden=8, pooling=5, training=training, device="cpu")
        ssi = pn.SSI(dim=4, training=training)
        dssm = pn.DSSM((8, 4), training=training, device="cpu")
        results = candidates.transform(topics)
        for model in (duet, ssi, dssm):
            model.fit(results, qrels, results, qrels)  # imports and compiles
        vectors = dssm.index(f"{folder}/vectors", corpus, verbose=False)
        text = corpus[0]["text"]
        walks = {
            "bm25 >> text_loader >> Duet": lambda: (candidates >> duet).transform(topics),
            "re-rank by Duet": lambda: duet.transform(results),
            "fit of Duet": lambda: duet.fit(results, qrels, results, qrels),
            "fit of SSI": lambda: ssi.fit(results, qrels, results, qrels),
            "retrieve by DSSM": lambda: dssm.retriever(vectors).transform(topics),
            "explain Duet": lambda: pn.explain(duet, "river", text),
        }
        for name, function in walks.items():
            walk = Walk(function)
            print(f"{name:28s} {len(walk.files):4d} files {walk.returns:6d} returns")


if __name__ == "__main__":
    main()
