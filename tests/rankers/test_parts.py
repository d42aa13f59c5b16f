"""What a text becomes, and what a pair scores, does not depend on the texts and pairs that come with it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pt_neural as pn
from tests.rankers.fitted import CORPUS, TRAINING, fit, fitted, spaces

SPLITS = (1, 2, 3, 7, 15, 16, 33)
WORDS = " ".join(document["text"] for document in CORPUS).split()
# With the sizes of the papers, as products of small matrices are computed in another way.
LARGE: dict[str, dict[str, Any]] = {"DSSM": {}, "CLSM": {}, "SSM": {"document_terms": 50}}
EXACT = ["DSSM", "CLSM", "SSM", "LSA"]


def texts(number: int) -> list[str]:
    random = np.random.default_rng(5)
    return [" ".join(random.choice(WORDS, size=random.integers(50))) for _ in range(number)]


def large(name: str):
    arguments = (spaces(),) if name == "SSM" else ()
    return fit(getattr(pn, name)(*arguments, training=TRAINING, **LARGE[name]))


@pytest.fixture(params=[*EXACT, "DSSM large", "CLSM large", "SSM large"], scope="module")
def tower(request):
    name, _, size = request.param.partition(" ")
    return large(name) if size else fitted(name)


def tolerance(model: pn.rankers.Ranker) -> float:
    """How much results may differ: some processors' matrix products of other sizes add up in another order."""
    return 1e-6 if isinstance(model, pn.Duet | pn.MatchTensor | pn.SSM | pn.DRMM) else 0


@pytest.mark.parametrize("batch_size", [8192, 64])
def test_vectors_do_not_depend_on_the_batch(tower, batch_size):
    before, tower.batch_size = tower.batch_size, batch_size
    some = texts(67)
    for encode in (tower.encode_documents, tower.encode_queries):
        whole = encode(some)
        for split in SPLITS:
            parts = [encode(some[start : start + split]) for start in range(0, len(some), split)]
            np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=tolerance(tower))
        order = np.random.default_rng(1).permutation(len(some))
        again = encode([some[place] for place in order])
        np.testing.assert_allclose(again, whole[order], rtol=0, atol=tolerance(tower))
    tower.batch_size = before


def candidates() -> pd.DataFrame:
    """Candidates of queries, some with a single one."""
    documents = pd.DataFrame({"docno": [f"d{number}" for number in range(60)], "text": texts(60)})
    documents["title"] = ""
    queries = pd.DataFrame({"query": [" ".join(text.split()[:3]) for text in texts(9)]})
    queries["qid"] = [f"q{number}" for number in range(9)]
    frame = queries.merge(documents, how="cross").sample(frac=1, random_state=2)
    return frame[(frame["qid"] != "q3") | (frame["docno"] == "d7")].reset_index(drop=True)


@pytest.mark.parametrize("name", [*EXACT, "Duet", "MatchTensor", "SSM attention", "DRMM", "SSI", "PLSA", "DESM"])
def test_scores_do_not_depend_on_the_part_of_a_frame(name):
    model, frame = fitted(name), candidates()
    whole = model.transform(frame)
    halves = [frame[frame["qid"] < "q4"], frame[frame["qid"] >= "q4"]]
    by_query = [group for _, group in frame.groupby("qid")]
    shuffled = [frame.sample(frac=1, random_state=3)]
    for parts in (halves, by_query, shuffled):
        again = pd.concat([model.transform(part) for part in parts]).sort_index()
        np.testing.assert_allclose(again["score"], whole["score"], rtol=0, atol=tolerance(model))
        assert (again["rank"] == whole["rank"]).all()
