"""Where the probability of each query word comes from, for rankers that score by query likelihood."""

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.explain.likelihood_explanation import KINDS, LikelihoodExplanation
from pt_neural.explain.words import divided, word_occurrences
from pt_neural.models import WordTranslation
from pt_neural.models.topics.steps import LEAST
from pt_neural.models.topics.topic_model import TopicModel
from pt_neural.rankers.language_model import DocumentCounts, LanguageModelRanker
from pt_neural.text import Vocabulary, tokenise
from pt_neural.text.packed import pack_texts

NAMED_BY = 3  # words a topic


def explain_likelihood(model: LanguageModelRanker, query: str, text: str, *, sources: int = 5) -> LikelihoodExplanation:
    """Tell how probable the document makes each word of the query, and why.

    The score is the sum of log P(w|d) over the words w of the query, and P(w|d) is a sum over its sources: the same
    word in the document (in the unigram model, and where it is its own translation), the collection, and what the model
    adds: other words u of the document, t(w|u) times the share of u in it, or topics of the document, P(w|z) P(z|d).
    The factor P(w|d) / P(w|C) tells what the word speaks for this document.

    Word by word, the contribution of a word of the query is the logarithm of that factor; that of a word of the
    document is its share of P(w|d), over all words of the query. What a topic adds is divided among the words of the
    document by how much of P(z|d) is due to each, n(d, u) P(z|d, u).

    Args:
        model: The model, fitted.
        query: The query's text.
        text: The document's text.
        sources: So many of the words or topics that add most to a query word are told one by one.

    Returns:
        An explanation; its frame is empty where the query has no known word.

    Raises:
        ValueError: If ``sources`` is below 1.

    Example::

        explanation = pn.explain(lda, "pairwise distance", text)
        explanation.to_frame().head()
        explanation.plot()
    """
    checked_number("sources", sources, int, least=1)
    packed, terms = pack_texts([text])
    words, document = _read(model, query), model.represent_documents(packed, Vocabulary(terms))
    distinct, first, counts = np.unique(words, return_index=True, return_counts=True)
    order = np.argsort(first)
    distinct, counts = distinct[order], counts[order]
    found = _sources(model, distinct, document)
    probability = model.mixed_probabilities(distinct, document)[0].astype(float)
    query_words = pd.DataFrame(
        {
            "word": [model.vocabulary.terms[word] for word in distinct],
            "count": counts,
            "probability": probability,
            "collection": model.collection_probabilities(distinct).astype(float),
        }
    )
    return LikelihoodExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(model.log_likelihoods(words, document)[0]),
        note=_note(model, query),
        words=_words(model, query, text, query_words, _of_document_words(model, distinct, document)),
        query_words=query_words,
        all_sources=found,
        sources=sources,
    )


def _words(
    model: LanguageModelRanker, query: str, text: str, query_words: pd.DataFrame, parts: pd.DataFrame
) -> pd.DataFrame:
    """The words of both texts with their contributions, as :func:`explain_likelihood` tells."""
    of_query = query_words.set_index("word")
    factors = of_query["count"] * np.log(of_query["probability"] / of_query["collection"])
    shares = parts.mul(of_query["count"] / of_query["probability"], axis=0).sum()
    sides = [
        words.assign(contribution=words["word"].map(totals).astype(float).fillna(0.0))
        for words, totals in (
            (word_occurrences(query, "query", text), factors),
            (word_occurrences(text, "document", query), shares),
        )
    ]
    return divided(pd.concat(sides, ignore_index=True))


def _of_document_words(model: LanguageModelRanker, words: np.ndarray, document: DocumentCounts) -> pd.DataFrame:
    """What each known word of the document, a column, adds to P(w|d) of each word of the query, a row."""
    there, counts = document.counts.indices, document.counts.data
    added = _of_model(model, words, document)[2]
    if isinstance(model, TopicModel):
        due = model.word_topics[there] * document.extra[0]  # P(z, u|d)
        due *= (counts / np.maximum(due.sum(axis=1), LEAST))[:, None]
        added = added @ (due / np.maximum(due.sum(axis=0), LEAST)).T
    same = (words[:, None] == there) * counts / (document.lengths[0] + model.mu)
    parts = model.unigram_weight * same + (1 - model.unigram_weight) * added
    of_query, of_document = ([model.vocabulary.terms[word] for word in ids] for ids in (words, there))
    return pd.DataFrame(parts, index=of_query, columns=of_document)


def _read(model: LanguageModelRanker, query: str) -> np.ndarray:
    model._require_fitted()
    return model.represent_queries([query])[0]


def _sources(model: LanguageModelRanker, words: np.ndarray, document: DocumentCounts) -> pd.DataFrame:
    """One row for each source of a word's probability: ``word``, ``kind``, ``source``, ``probability``."""
    weight, of_length = model.unigram_weight, 1 / (document.lengths[0] + model.mu)
    terms = [model.vocabulary.terms[word] for word in words]
    same = weight * of_length * document.occurrences(words)[0]
    collection = weight * of_length * model.mu * model.collection_probabilities(words)
    names, kind, added = _of_model(model, words, document)
    itself = np.array(terms, dtype=object)[:, None] == np.array(names, dtype=object)
    same = same + (1 - weight) * (added * itself).sum(axis=1)
    rows, columns = np.nonzero(added * ~itself)
    of_model = [terms[row] for row in rows], kind, [names[column] for column in columns]
    parts = [
        _rows(terms, "same word", terms, same),
        _rows(terms, "collection", [""] * len(terms), collection),
        _rows(*of_model, (1 - weight) * added[rows, columns]),
    ]
    found = pd.concat(parts, ignore_index=True)
    return found[found["probability"] > 0].reset_index(drop=True)


def _rows(words: list[str], kind: str, sources: list[str], probabilities: np.ndarray) -> pd.DataFrame:
    columns = {"word": words, "kind": kind, "source": sources, "probability": np.asarray(probabilities, dtype=float)}
    return pd.DataFrame(columns).astype({"word": object, "kind": object, "source": object})


def _of_model(
    model: LanguageModelRanker, words: np.ndarray, document: DocumentCounts
) -> tuple[list[str], str, np.ndarray]:
    """Sources of P_model, what they are, and what each adds: float of shape ``(words, sources)``."""
    if isinstance(model, TopicModel):
        return _topic_names(model), KINDS[3], model.query_word_topics[words] * document.extra[0]
    there = document.counts.indices
    shares = document.counts.data / max(document.lengths[0], 1)
    names = [model.vocabulary.terms[word] for word in there]
    return names, KINDS[2], model.table[words][:, there].toarray() * shares


def _topic_names(model: TopicModel) -> list[str]:
    best = model.topics(words=NAMED_BY).groupby("topic", sort=True)["word"].agg(", ".join)
    return [f"topic {number}: {words}" for number, words in best.items()]


def _note(model: LanguageModelRanker, query: str) -> str:
    translates = isinstance(model, WordTranslation)
    distinct = np.array(list(dict.fromkeys(tokenise(query))), dtype=object)
    unknown = ", ".join(distinct[model.vocabulary.ids(distinct) < 0])
    note = (
        "Bold: words that query and document share. Blue: words of the query that the document makes more probable "
        "than the collection (purple and underlined: less probable), and words of the document that add to their "
        f"probability, by {'translation' if translates else 'topics'} too; the stronger the colour, the more. A word's "
        f"probability is that of the unigram model, weighted by {model.unigram_weight:g}, and that of the document's "
        f"{'words that it may translate' if translates else 'topics'}; the factor tells how much more probable the "
        "document makes it than the collection."
    )
    return f"{note} Not known to the model and left out: {unknown}." if unknown else note
