from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pt_neural as pn
from pt_neural.text import Vocabulary

PAIRS = pd.DataFrame(
    {
        "qid": ["1", "2"],
        "query": ["university city", "giraffe neck"],
        "docno": ["d1", "d2"],
        "text": ["Oxford is a city, home of the oldest university.", "The giraffe is the tallest animal by a river."],
    }
)
QRELS = pd.DataFrame({"qid": ["1", "2"], "docno": ["d1", "d2"], "label": [1, 1]})
SIZES = {"query_terms": 4, "document_terms": 12, "filters": 8, "hidden": 8}


@pytest.fixture(scope="session")
def duets() -> dict[str, pn.DuetLocal | pn.DuetDistributed]:
    training = pn.Training(epochs=2, negatives="random", num_negatives=1, verbose=False, device="cpu")
    models = {
        "DuetLocal": pn.DuetLocal(**SIZES, training=training),
        "DuetDistributed": pn.DuetDistributed(pooling=3, **SIZES, training=training),
        "Duet": pn.Duet(pooling=3, **SIZES, training=training),
    }
    return {name: model.fit(PAIRS, QRELS) for name, model in models.items()}


CORPUS = [*PAIRS[["docno", "text"]].to_dict("records"), {"docno": "d3", "text": "A long river runs past the city."}]
CANDIDATES = PAIRS[["qid", "query"]].merge(pd.DataFrame(CORPUS), how="cross")
WORDS = ["university", "city", "oxford", "home", "oldest", "river", "giraffe", "neck", "the", "is"]


@cache
def ranker_of(name: str) -> pt.Transformer:
    """Every public ranker of texts, tiny, by its name."""
    vectors = np.random.default_rng(3).normal(size=(2, len(WORDS), 5)).astype("f4")
    spaces = pn.EmbeddingSpaces.from_vectors(Vocabulary(WORDS), *vectors)
    training = pn.Training(epochs=1, negatives="random", num_negatives=1, verbose=False, device="cpu")
    of_words = {"projection": 4, "document_units": 4, "query_units": 3, "hidden": 4, "training": training}
    of_tensors = {**of_words, "tensor_size": 4, "filters": 12, "second_filters": 12}
    judged = {
        "SSM": lambda: pn.SSM(spaces, **of_words),
        "DSSM": lambda: pn.DSSM((8, 4), training=training),
        "CLSM": lambda: pn.CLSM(filters=10, dim=4, max_terms=6, training=training),
        "DRMM": lambda: pn.DRMM(spaces, training=training),
        "Duet": lambda: pn.Duet(pooling=3, **SIZES, training=training),
        "DuetLocal": lambda: pn.DuetLocal(**SIZES, training=training),
        "DuetDistributed": lambda: pn.DuetDistributed(pooling=3, **SIZES, training=training),
        "MatchTensor": lambda: pn.MatchTensor(spaces, **of_tensors),
        "MatchTensorSSM": lambda: pn.MatchTensorSSM(spaces, **of_tensors),
        "SSI": lambda: pn.SSI(dim=2, training=training),
        "BLTM": lambda: pn.BLTM(2, mu=5),
        "WordTranslation": lambda: pn.WordTranslation(mu=5),
        "PhraseTranslation": lambda: pn.PhraseTranslation(mu=5),
    }
    of_corpus = {
        "LSA": lambda: pn.LSA(dim=2, min_count=1),
        "TFIDF": pn.TFIDF,
        "PLSA": lambda: pn.PLSA(2, mu=5),
        "LDA": lambda: pn.LDA(2, mu=5),
    }
    if name in of_corpus:
        return of_corpus[name]().fit_corpus(CORPUS, verbose=False)
    if name == "DESM":
        return pn.DESM(spaces)
    if name == "TopicCosine":
        return ranker_of("PLSA").cosine()
    return judged["CLSM" if name == "CDSSM" else name]().fit(CANDIDATES, QRELS)


@pytest.fixture(scope="session")
def rankers() -> Callable[[str], pt.Transformer]:
    return ranker_of


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")
