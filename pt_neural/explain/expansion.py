"""Which terms the expansion of a query brings in, and with which weights."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from pt_neural.explain.expansion_explanation import ExpansionExplanation
from pt_neural.explain.methods import Document, document_text, query_text
from pt_neural.lucene import LatentConceptExpansion
from pt_neural.models import Rocchio
from pt_neural.rankers.weighed import products


def explain_expansion(
    model: Rocchio | LatentConceptExpansion, query: str, texts: Document | Sequence[Document] | None = None
) -> ExpansionExplanation:
    """Tell which terms come into a query, and what becomes of its own.

    Args:
        model: The expansion. :class:`~pt_neural.LatentConceptExpansion` retrieves its feedback documents itself and
            weighs analysed terms by counts; :class:`~pt_neural.Rocchio` chooses its own from the texts, and weighs
            words by vectors of length 1, before and after.
        query: The query's text.
        texts: For Rocchio the documents that come in with the query; None for latent concept expansion.

    Returns:
        An explanation of the expanded query.

    Raises:
        TypeError: If texts are lacking or not needed.

    Example::

        pn.explain(pn.LatentConceptExpansion(index), "pairwise distance").plot()
        found = (bm25 % 100 >> index.text_loader()).search("pairwise distance")
        pn.explain(pn.Rocchio(tfidf), "pairwise distance", found["text"]).to_frame()
    """
    query = query_text(query)
    if isinstance(model, LatentConceptExpansion):
        if texts is not None:
            raise TypeError(f"{model!r} retrieves its feedback documents itself: leave out the text")
        before, after = _concepts(model, query)
    elif texts is None:
        raise TypeError(f"{model!r} expands a query by documents: give the texts of those that come in with it")
    else:
        one = isinstance(texts, str | Mapping)
        read = [document_text(model.tfidf, text, "expansion") for text in ([texts] if one else texts)]
        before, after = _rocchio(model, query, read)
    words = pd.DataFrame({"word": list(after), "weight": list(after.values())}).astype(
        {"word": object, "weight": float}
    )
    words["original"] = words["word"].map(before).astype(float).fillna(0.0)
    words.insert(1, "match", words["original"] > 0)
    return ExpansionExplanation(
        model=repr(model),
        query=query,
        note="Orange: terms of the query. Blue: terms that came in; the stronger the colour, the larger their weight.",
        words=words.sort_values("weight", ascending=False, kind="stable", ignore_index=True),
    )


def _concepts(model: LatentConceptExpansion, query: str) -> tuple[Mapping[str, float], Mapping[str, float]]:
    expanded = model.transform(pd.DataFrame({"qid": ["1"], "query": [query]}))
    return Counter(model.index.analysis.terms(query)), expanded["query_toks"].iloc[0]


def _rocchio(model: Rocchio, query: str, texts: Sequence[str]) -> tuple[Mapping[str, float], Mapping[str, float]]:
    queries, documents = model.tfidf.weigh_queries([query]), model.tfidf.weigh_documents(texts)
    rows = np.arange(len(texts))
    scores = products(queries, np.zeros_like(rows), documents, rows)
    best = np.argsort(-scores, kind="stable")[: model.feedback_docs]
    best = best[scores[best] > 0]
    ones = np.ones(len(best), dtype=np.float32)
    feedback = csr_array((ones, (np.zeros_like(best), best)), shape=(1, len(texts)))
    vectors = queries.terms, model.expand(queries, feedback, documents).terms
    terms = model.tfidf.vocabulary.terms
    before, after = (
        dict(zip([terms[number] for number in vector.indices], vector.data.tolist(), strict=True)) for vector in vectors
    )
    return before, after
