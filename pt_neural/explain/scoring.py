"""Scores of rankers that turn query and document each by itself into vectors, as the rankers themselves have them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pt_neural.rankers import BilinearRanker, TwoTower
from pt_neural.rankers.document_counts import DocumentCounts
from pt_neural.rankers.language_model import LanguageModelRanker
from pt_neural.rankers.row_scores import row_scores
from pt_neural.rankers.weighed import Weighed, products
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.packed import pack_texts


class Towers(NamedTuple):
    """What a ranker makes of texts, and the scores of that.

    Attributes:
        queries: Of texts of queries.
        documents: Of texts of documents.
        sequences: Of documents given as term ids over a vocabulary.
        scores: Of queries and documents row by row, or of one of either with all of the other; float32.
    """

    queries: Callable[[Sequence[str]], Any]
    documents: Callable[[Sequence[str]], Any]
    sequences: Callable[[PackedSequences, Vocabulary], Any]
    scores: Callable[[Any, Any], np.ndarray]


def towers(model: TwoTower | BilinearRanker | LanguageModelRanker) -> Towers:
    """What a ranker makes of texts, with its scores."""
    if isinstance(model, BilinearRanker):
        scores = partial(_weighed_scores, model)
        return Towers(model.weigh_queries, model.weigh_documents, model.weigh_sequences, scores)
    if isinstance(model, LanguageModelRanker):
        return Towers(list, partial(_read_texts, model), model.read_sequences, partial(_likelihoods, model))
    scores = partial(vector_scores, least=model.least_score)
    return Towers(model.encode_queries, model.encode_documents, model.encode_sequences, scores)


def vector_scores(queries: np.ndarray, documents: np.ndarray, *, least: float) -> np.ndarray:
    """Dot products of query and document vectors, row by row.

    Args:
        queries: float32 of shape ``(n, dimensions)``, or one row for all documents.
        documents: float32 of shape ``(n, dimensions)``, or one row for all queries.
        least: What a document without a vector scores.

    Returns:
        float32 array of shape ``(n,)``.
    """
    rows = np.arange(max(len(queries), len(documents)))
    return row_scores(queries, rows % len(queries), documents, rows % len(documents), least=least)


def _read_texts(model: LanguageModelRanker, texts: Sequence[str]) -> DocumentCounts:
    sequences, terms = pack_texts(texts)
    return model.read_sequences(sequences, Vocabulary(terms))


def _likelihoods(model: LanguageModelRanker, queries: list[str], documents: DocumentCounts) -> np.ndarray:
    if len(queries) == 1:
        return model.log_likelihoods(model.query_words(queries[0]), documents).astype(np.float32)
    one = zip(queries, np.arange(len(queries)) % len(documents), strict=True)
    scores = [model.log_likelihoods(model.query_words(text), documents.take(np.array([row])))[0] for text, row in one]
    return np.array(scores, dtype=np.float32)


def _weighed_scores(model: BilinearRanker, queries: Weighed, documents: Weighed) -> np.ndarray:
    counts = [(side.terms if side.latent is None else side.latent).shape[0] for side in (queries, documents)]
    rows = np.arange(max(counts))
    document_rows = rows % counts[1]
    return model.with_least_score(
        products(queries, rows % counts[0], documents, document_rows), documents, document_rows
    )
