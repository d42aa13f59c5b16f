"""Every ranker of the registry, fitted on eight small documents, once a process."""

import atexit
import inspect
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pt_neural as pn
from pt_neural.rankers import InteractionRanker, LanguageModelRanker, Ranker, RepresentationRanker, Trained
from pt_neural.rankers.registry import RANKERS
from pt_neural.text import Vocabulary, tokenise

CORPUS = [
    {"docno": "d1", "title": "Cambridge", "text": "The university city of Cambridge lies on the River Cam."},
    {"docno": "d2", "title": "Oxford", "text": "Oxford is a university city, home of the oldest university."},
    {"docno": "d3", "title": "Giraffes", "text": "The giraffe is the tallest living animal, with a long neck."},
    {"docno": "d4", "title": "", "text": "The okapi is the closest relative of the giraffe."},
    {"docno": "d5", "title": "BM25", "text": "A ranking function that counts the terms of a query."},
    {"docno": "d6", "title": "Rivers", "text": "The river runs long past the city to the sea."},
    {"docno": "d7", "title": "?", "text": "..."},
    {"docno": "d8", "title": "Ελλάδα", "text": "Ο ποταμός 𐐀𐐁 東京"},
]
TOPICS = pd.DataFrame({"qid": ["q1", "q2", "q3"], "query": ["university city", "giraffe neck", "city ranking terms"]})
CANDIDATES = TOPICS.merge(pd.DataFrame(CORPUS), how="cross")
BARE = CANDIDATES[["qid", "query", "docno"]]
QRELS = pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": ["d1", "d3", "d5"], "label": 1})
TRAINING = pn.Training(epochs=2, verbose=False, device="cpu")

_SEQUENCES = {"projection": 4, "document_units": 5, "query_units": 3, "hidden": 6, "document_terms": 20}
_TENSOR = {**_SEQUENCES, "tensor_size": 4, "filters": 3, "second_filters": 4}
_SSI = {"dim": 4, "embedded_terms": 15, "hash_size": 50_000, "nonzeros": 4, "rounds": 1}

# Settings that make a model small; a ranker without a row is fitted with its defaults.
SETTINGS: dict[str, dict[str, Any]] = {
    "ARCI": {"layers": (6, 5), "hidden": 4, "document_terms": 20},
    "ARCII": {"layers": (4, 5), "hidden": 4, "document_terms": 20},
    "BLTM": {"num_topics": 3},
    "CLSM": {"filters": 8, "dim": 6, "max_terms": 5},
    "ConvKNRM": {"filters": 6, "document_terms": 20},
    "DSSM": {"layers": (8, 6)},
    "Duet": {"pooling": 5, "document_terms": 20, "filters": 8, "hidden": 6},
    "DuetDistributed": {"pooling": 5, "document_terms": 20, "filters": 8, "hidden": 6},
    "DuetLocal": {"document_terms": 20, "filters": 8, "hidden": 6},
    "LDA": {"num_topics": 3, "iterations": 20},
    "LSA": {"dim": 4, "min_count": 1},
    "MVLSTM": {"units": 4, "top_k": 3, "hidden": 5, "document_terms": 20},
    "MatchPyramid": {"filters": 3, "query_fields": 2, "document_fields": 3, "hidden": 5, "document_terms": 20},
    "MatchTensor": _TENSOR,
    "MatchTensorSSM": _TENSOR,
    "PACRR": {"filters": 3, "document_terms": 20},
    "POSITDRMM": {"num_layers": 1, "document_terms": 20},
    "PLSA": {"num_topics": 3},
    "SSI": _SSI,
    "SSM": _SEQUENCES,
    "TK": {"heads": 3, "projection": 6, "hidden": 5, "document_terms": 20},
}
# What a setting changes so much that it is a ranker of its own.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ANMM two nodes": ("ANMM", {"nodes": 2}),
    "MatchTensorSSM exact": ("MatchTensorSSM", {"channels": "exact", "boundaries": False}),
    "PACRR dense": ("PACRR", {"combination": "dense", "selection": "k-window", "window_terms": 6}),
    "SSI correlated-hash": ("SSI", {"kind": "correlated-hash", "ngrams": 2}),
    "SSI hash": ("SSI", {"kind": "hash"}),
    "SSI sparse": ("SSI", {"kind": "sparse"}),
    "SSI symmetric": ("SSI", {"kind": "symmetric", "identity": False, "embedded_terms": 1000}),
    "SSI two vocabularies": ("SSI", {"shared_vocabulary": False, "embedded_terms": 1000}),
    "SSM attention": ("SSM", {"pooling": "attention"}),
}
NAMES = [row.name for row in RANKERS]
NAMES += [name for name, (base, _) in VARIANTS.items() if base in NAMES]


@cache
def spaces() -> pn.EmbeddingSpaces:
    texts = (f"{document['title']} {document['text']}" for document in CORPUS)
    words = list(dict.fromkeys(word for text in texts for word in tokenise(text)))
    random = np.random.default_rng(1)
    vectors = (random.normal(size=(len(words), 5)).astype("f4") for _ in range(2))
    return pn.EmbeddingSpaces.from_vectors(Vocabulary(words), *vectors)


def ranker_class(name: str) -> type[Ranker]:
    return getattr(pn, VARIANTS.get(name, (name, {}))[0])


def unfitted(name: str, **options: Any) -> Ranker:
    """A ranker as a user makes it, before it is fitted."""
    base, variant = VARIANTS.get(name, (name, {}))
    arguments = {**SETTINGS.get(base, {}), **variant}
    taken = inspect.signature(ranker_class(name)).parameters
    if "training" in taken:
        arguments["training"] = TRAINING
    if "device" in taken:
        arguments["device"] = "cpu"
    components = {"spaces": spaces, "tfidf": lambda: fitted("TFIDF"), "topics": lambda: fitted("PLSA")}
    for component in ranker_class(name).components:
        arguments[component] = components[component]()
    return ranker_class(name)(**{**arguments, **options})


def fit(model: Ranker, candidates: pd.DataFrame = CANDIDATES, qrels: pd.DataFrame = QRELS, corpus: list = CORPUS):
    """Fit a model to whatever it learns from."""
    if hasattr(model, "fit_corpus"):
        return model.fit_corpus(corpus, verbose=False)
    if hasattr(model, "fit"):
        quiet = {"verbose": False} if "verbose" in inspect.signature(model.fit).parameters else {}
        return model.fit(candidates, qrels, **quiet)
    return model


@cache
def fitted(name: str) -> Ranker:
    return fit(unfitted(name))


@cache
def folder() -> Path:
    """A folder for what is made once; it goes when the process ends."""
    path = Path(tempfile.mkdtemp(prefix="pt_neural-tests-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def saved(name: str) -> Path:
    path = folder() / f"{name}.saved"
    fitted(name).save(path)
    return path


def like(name: str, **options: Any) -> Ranker:
    """A copy that differs in some options, by way of the disk."""
    return ranker_class(name).load(saved(name), **options)


@cache
def forward() -> pn.ForwardIndex:
    return pn.ForwardIndex.build(folder() / "forward", CORPUS, verbose=False)


@cache
def vectors(name: str) -> Any:
    """What the ranker keeps of the documents."""
    return fitted(name).index(folder() / f"{name}.vectors", CORPUS, verbose=False)


def scores(ranker: Ranker, frame: pd.DataFrame) -> np.ndarray:
    return ranker.transform(frame)["score"].to_numpy()


def subclasses(kind: type) -> list[str]:
    return [name for name in NAMES if issubclass(ranker_class(name), kind)]


LANGUAGE = subclasses(LanguageModelRanker)
INTERACTION = subclasses(InteractionRanker)
TRAINED = subclasses(Trained)
RERANKS_ONLY = [*INTERACTION, *(name for name in NAMES if name == "SSM attention")]
KEEPERS = [name for name in subclasses(RepresentationRanker) if name not in (*LANGUAGE, "SSM attention")]
TOWERS = [name for name in KEEPERS if ranker_class(name).has_encoders]
