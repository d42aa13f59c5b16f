"""Which words of a document DESM finds close to the query (DESM paper, Figure 3)."""

import numpy as np

from pt_neural.explain.explanation import Document, both_texts
from pt_neural.explain.words import WordExplanation, word_occurrences
from pt_neural.models.desm import DESM


def explain_desm(model: DESM, query: str, text: Document, *, threshold: float | None = None) -> WordExplanation:
    """Shade the words of a document by their similarity to the query (section 2.2, Figure 3).

    The similarity of a document word is its mean cosine with the query's words, each in its own embedding space. The
    score is the mean of these similarities over the document's words, divided by the length of the centroid (equations
    5 and 6), so every occurrence has a contribution, and the contributions add up to the score. If the model is
    centred, a word's similarity is that of its unit vector minus the mean: an average word has 0.

    Args:
        model: The model.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        threshold: Words at least this similar are shaded. The paper fixes one (-0.03) for its embeddings; by default it
            is the similarity that one word in ten of the whole vocabulary reaches for this query.

    Returns:
        An explanation of the document's words. Its frame has ``similarity`` too, NaN for words that the model does
        not know.
    """
    query, text = both_texts(model, query, text)
    query_vector = model.encode_queries([query])[0]
    vectors = model.document_word_vectors
    words = word_occurrences(text, "document", query)
    ids = np.asarray(model.spaces.vocabulary.ids(words["word"].tolist()), dtype=np.int64)
    known = ids >= 0
    similarity = np.full(len(ids), np.nan)
    similarity[known] = vectors[ids[known]] @ query_vector
    centroid_length = np.linalg.norm(vectors[ids[known]].sum(axis=0))
    words["contribution"] = np.nan_to_num(similarity) / max(centroid_length, 1e-12)
    words["similarity"] = similarity
    if threshold is None:
        threshold = float(np.quantile(vectors @ query_vector, 0.9))
    above = np.where(similarity >= threshold, similarity - threshold, np.nan)
    return WordExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(words["contribution"].sum()) if known.any() else model.least_score,
        note=f"Blue: words whose similarity to the query is {threshold:.3f} or more; the stronger, the more.",
        words=words,
        shades=above / max(np.nan_to_num(above).max(initial=0), 1e-9),
        per="occurrence",
    )
