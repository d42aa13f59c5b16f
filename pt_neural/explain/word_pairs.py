"""What each pair of a query word and a document word adds to a score q'Wd (SSI paper, equation 1)."""

from collections.abc import Callable
from itertools import chain

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Side
from pt_neural.explain.scoring import towers
from pt_neural.explain.word_pairs_explanation import WordPairsExplanation
from pt_neural.explain.words import word_occurrences
from pt_neural.models import SSI, TFIDF
from pt_neural.models.ssi.features import Features, TextParts, split_text
from pt_neural.rankers.weighed import Weighed, products, query_blocks
from pt_neural.text import TfIdf

NOTE = (
    "Blue: words whose pairs with the other text raise the score; purple and underlined: words whose pairs lower it; "
    "the stronger the colour, the more, within each text."
)
BOLD = " Bold: words that query and document share."

Weigh = Callable[[csr_array, csr_array | None], Weighed]


def explain_word_pairs(model: SSI | TFIDF, query: str, text: str, *, pairs: int | None = None) -> WordPairsExplanation:
    """Tell what each word of the query adds to the score together with each word of the document.

    The score is a sum over all pairs (equation 1),

        f(q, d) = sum over i and j of q_i W_ij d_j,

    with the tf-idf q_i of word i in the query and d_j of word j in the document; a term of the sum is the contribution
    of the pair. A word that occurs several times is one word. With :class:`~pt_neural.TFIDF` W is the identity, and
    only words that query and document share contribute.

    With ``kind="correlated-hash"`` what the hashed features add is told by the words or 2-grams that were hashed: a
    pair of words has the sum of both models, and 2-grams, such as "pearl harbor", are beside the words, and have pairs
    with one another. W_ij then includes the factors by which hashed features are scaled in both texts.

    Args:
        model: The model, fitted.
        query: The query's text.
        text: The document's text.
        pairs: Frame and figure tell only of so many pairs, those that contribute most; None for all.

    Returns:
        An explanation; its frame is empty where query or document has no known word.

    Raises:
        ValueError: If ``pairs`` is below 1.

    Example::

        explanation = pn.explain(ssi, "pairwise distance", text)
        explanation.to_frame().head()
        explanation.plot()
    """
    checked_number("pairs", pairs, int, least=1, optional=True)
    tower = towers(model)
    score = tower.scores(tower.queries([query]), tower.documents([text]))[0]
    features, weigh = _features(model)
    queries, documents = split_text(features, "query", query), split_text(features, "document", text)
    contributions = _products(queries, documents, weigh)
    words = [
        _words("query", query, text, queries, contributions.sum(axis=1)),
        _words("document", text, query, documents, contributions.sum(axis=0)),
    ]
    same = np.array(queries.names, dtype=object)[:, None] == np.array(documents.names, dtype=object)
    occurrences = pd.concat(words, ignore_index=True)
    return WordPairsExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(score),
        note=NOTE + BOLD * features.shared,
        words=occurrences.assign(match=occurrences["match"] & features.shared),
        query_words=pd.DataFrame({"word": queries.names, "weight": queries.weights}),
        document_words=pd.DataFrame({"word": documents.names, "weight": documents.weights}),
        contributions=contributions,
        match=same & features.shared,
        pairs=pairs,
    )


def _features(model: SSI | TFIDF) -> tuple[Features, tuple[Weigh, Weigh]]:
    """What turns texts into vectors, and what weighs those of queries and those of documents."""
    if isinstance(model, SSI):
        return model.features, (model.network.weigh_queries, model.network.weigh_documents)
    weights = TfIdf(model.vocabulary, sublinear_tf=model.sublinear_tf)
    return Features(weights, weights), (_as_it_is, _as_it_is)


def _as_it_is(terms: csr_array, _: None) -> Weighed:
    """W = I."""
    return Weighed(None, terms)


def _products(queries: TextParts, documents: TextParts, weigh: tuple[Weigh, Weigh]) -> np.ndarray:
    """What each pair of parts adds to the score: float32 of shape (parts of the query, parts of the document)."""
    weigh_queries, weigh_documents = weigh
    weighed = weigh_documents(*documents.vectors)
    found = np.zeros((len(queries.names), len(documents.names)), dtype=np.float32)
    for some in query_blocks(len(found)):
        rows, columns = np.indices(found[some].shape).reshape(2, -1)
        block = weigh_queries(*(part if part is None else part[some] for part in queries.vectors))
        found[some] = products(block, rows, weighed, columns).reshape(found[some].shape)
    return found


def _words(side: Side, text: str, other: str, parts: TextParts, totals: np.ndarray) -> pd.DataFrame:
    """The words of a text, with what each adds to the score: its pairs, and half of those of its 2-grams."""
    names = [name.split(" ") for name in parts.names]
    counts = np.array([len(name) for name in names], dtype=np.int64)
    by_word = pd.Series(np.repeat(totals / counts, counts), index=[*chain.from_iterable(names)]).groupby(level=0).sum()
    words = word_occurrences(text, side, other)
    return words.assign(contribution=words["word"].map(by_word).fillna(0.0).astype(float))
