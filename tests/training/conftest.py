from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest


@dataclass
class Planted:
    """Four topics; a query and its relevant documents have no word in common, so that matching must be learned."""

    train: pd.DataFrame
    train_qrels: pd.DataFrame
    dev: pd.DataFrame
    dev_qrels: pd.DataFrame


QUERY_WORDS = ["kiwi plum fig pear", "oboe lute harp drum", "iron zinc lead gold", "rain snow hail dew"]
DOCUMENT_WORDS = ["orchard juice", "concert stage", "furnace mine", "cloudy sky"]


def planted_part(first: int, queries: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Candidates (every document of the part for every query of it) and judgements."""
    rng = np.random.default_rng(seed)
    numbers = range(first, first + queries)
    topics = [
        {"qid": f"q{number}", "query": " ".join(rng.choice(QUERY_WORDS[number % 4].split(), 2))} for number in numbers
    ]
    documents = [
        {"docno": f"d{number}", "text": " ".join(rng.choice(DOCUMENT_WORDS[number % 4].split(), 4))}
        for number in numbers
    ]
    frame = pd.DataFrame(topics).merge(pd.DataFrame(documents), how="cross")
    same = frame["qid"].str[1:].astype(int) % 4 == frame["docno"].str[1:].astype(int) % 4
    return frame, frame.loc[same, ["qid", "docno"]].assign(label=1).reset_index(drop=True)


@pytest.fixture(scope="session")
def planted() -> Planted:
    return Planted(*planted_part(0, 16, seed=1), *planted_part(100, 12, seed=2))
