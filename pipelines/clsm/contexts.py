"""Table 2 of the CLSM paper: one word in several contexts, by the cosine of its feature vectors."""

from collections import Counter
from collections.abc import Iterable

import pandas as pd

import pt_neural as pn
from pt_neural.text import tokenise

LETTERS = 3  # shorter words are mostly function words
SHOWN = 3  # contexts, nearest and furthest


def context_table(model: pn.CLSM, queries: Iterable[str], words: int = 2) -> pd.DataFrame:
    """The nearest and the furthest contexts of the words that have most contexts.

    A context is three words of a query with the word in the middle; the others are compared with the most frequent.

    Args:
        model: The model, fitted.
        queries: Texts to take contexts from.
        words: Number of words.

    Returns:
        ``word, first, context, similarity``, the nearest contexts of each word first; fewer rows if there are few
        contexts.
    """
    contexts: dict[str, Counter[str]] = {}
    for query in queries:
        terms = tokenise(query)
        for before, word, after in zip(terms, terms[1:], terms[2:], strict=False):
            if len(word) >= LETTERS:
                contexts.setdefault(word, Counter())[f"{before} {word} {after}"] += 1
    most = sorted(contexts, key=lambda word: (-len(contexts[word]), word))[:words]
    tables = []
    for word in most:
        (first, _), *_ = ranked = sorted(contexts[word].items(), key=lambda found: (-found[1], found[0]))
        if len(ranked) > 1:
            found = model.context_similarities(word, [context for context, _ in ranked])
            found = found.sort_values("similarity", ascending=False, kind="stable")
            shown = found if len(found) <= 2 * SHOWN else pd.concat([found.head(SHOWN), found.tail(SHOWN)])
            tables.append(shown.assign(word=word, first=first))
    columns = ["word", "first", "context", "similarity"]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)
