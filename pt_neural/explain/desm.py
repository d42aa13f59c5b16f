"""DESM's evidence, word by word (DESM paper, Figure 3)."""

import numpy as np

from pt_neural.explain.words import WordExplanation, word_occurrences
from pt_neural.models import DESM


def explain_desm(model: DESM, query: str, text: str, *, threshold: float | None = None) -> WordExplanation:
    """Shade a document's words by their similarity to the query's words (section 2.2, Figure 3).

    The similarity of a document word is its mean cosine with the query's words, each from its space. The score is
    the mean of these similarities over the document's words, divided by the length of the centroid (equations 5 and
    6), so every occurrence has a contribution, and they add up to the score.

    Args:
        model: The model.
        query: The query's text.
        text: The document's text.
        threshold: Words at least this similar are shaded. The paper fixes one (-0.03) for its embeddings; the default
            is the similarity that one word in ten of the whole vocabulary reaches for this query.

    Returns:
        An explanation of the document's words. Its frame has ``similarity`` too, NaN for words that the model does
        not know.
    """
    query_vector = model.encode_queries([query])[0]
    units = model.spaces.unit_vectors(model.document)
    words = word_occurrences(text, "document", query)
    ids = np.asarray(model.spaces.vocabulary.ids(words["word"].tolist()), dtype=np.int64)
    known = ids >= 0
    similarity = np.full(len(ids), np.nan)
    similarity[known] = units[ids[known]] @ query_vector
    centroid_length = np.linalg.norm(units[ids[known]].sum(axis=0))
    words["contribution"] = np.nan_to_num(similarity) / max(centroid_length, 1e-12)
    words["similarity"] = similarity
    if threshold is None:
        threshold = float(np.quantile(units @ query_vector, 0.9))
    return WordExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(words["contribution"].sum()) if known.any() else model.least_score,
        note=f"Orange: words of the query. Blue: words whose similarity to the query is {threshold:.3f} or more.",
        words=words,
        shades=_shades(similarity, threshold),
        per="occurrence",
    )


def _shades(similarity: np.ndarray, threshold: float) -> np.ndarray:
    """From 0 at the threshold to 1 at the most similar word; NaN below the threshold."""
    above = np.where(similarity >= threshold, similarity - threshold, np.nan)
    return above / max(np.nan_to_num(above).max(initial=0), 1e-9)
