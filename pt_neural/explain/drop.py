"""The change of a two-tower ranker's score when a term is dropped."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from pt_neural.explain.scoring import vector_scores
from pt_neural.explain.words import WordExplanation, word_occurrences
from pt_neural.rankers import TwoTower
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.packed import offsets_of

WORDS_A_BATCH = 1_000_000
LEAST_SHADE = 0.1

Scorer = Callable[[PackedSequences, Vocabulary], np.ndarray]


def explain_drop(model: TwoTower, query: str, text: str, *, terms: int = 200) -> WordExplanation:
    """Drop each term from the query or from the document, all its occurrences at once, and score what is left.

    The contribution of a term is the score of the full text minus that of the text without it. The words around it
    close up, which windows of words notice. Contributions do not add up to the score: two words may stand for one
    another, or mean something only together.

    A text of many distinct terms would have to be encoded as often, so only some of them are dropped: first those
    that the other text has as well, then those that occur most often, then those that come first.

    Args:
        model: The ranker.
        query: The query's text.
        text: The document's text.
        terms: Distinct terms of each side to drop at most; the others have a contribution of NaN.

    Returns:
        An explanation of the words of both sides. All occurrences of a term have the term's contribution.

    Raises:
        ValueError: If ``terms`` is below 1.
    """
    if terms < 1:
        raise ValueError(f"terms must be at least 1, not {terms}")
    query_vector, document_vector = model.encode_queries([query]), model.encode_documents([text])
    score = float(vector_scores(query_vector, document_vector)[0])
    sides = [word_occurrences(query, "query", text), word_occurrences(text, "document", query)]
    scorers: list[Scorer] = [
        lambda rests, vocabulary: vector_scores(model.encode_queries(_texts(rests, vocabulary)), document_vector),
        lambda rests, vocabulary: vector_scores(query_vector, model.encode_sequences(rests, vocabulary)),
    ]
    for words, scorer in zip(sides, scorers, strict=True):
        without = _scores_without(words["word"].tolist(), _chosen(words, terms), scorer)
        words["contribution"] = score - words["word"].map(without).astype(float)
    return WordExplanation(
        title=repr(model),
        query=query,
        text=text,
        score=score,
        note=_note(sides, terms),
        words=pd.concat(sides, ignore_index=True),
        shades=np.concatenate([_shades(words["contribution"].to_numpy()) for words in sides]),
        per="term",
    )


def _chosen(words: pd.DataFrame, terms: int) -> list[str]:
    """The terms to drop, in the order that :func:`explain_drop` tells."""
    distinct = words.groupby("word", sort=False).agg(match=("match", "first"), count=("match", "size"))
    return distinct.sort_values(["match", "count"], ascending=False, kind="stable").index[:terms].tolist()


def _scores_without(words: list[str], dropped: list[str], scorer: Scorer) -> dict[str, float]:
    """The score of a text without each of the terms; what is left is encoded together, in batches of bounded size."""
    vocabulary = Vocabulary(list(dict.fromkeys(words)))
    ids = np.array(vocabulary.ids(words), dtype=np.int32)
    size = max(1, WORDS_A_BATCH // max(1, len(words)))
    scores: dict[str, float] = {}
    for start in range(0, len(dropped), size):
        batch = dropped[start : start + size]
        rests = [ids[ids != term] for term in vocabulary.ids(batch)]
        packed = PackedSequences(np.concatenate(rests), offsets_of(np.array([len(rest) for rest in rests])))
        scores.update(zip(batch, scorer(packed, vocabulary).tolist(), strict=True))
    return scores


def _texts(sequences: PackedSequences, vocabulary: Vocabulary) -> list[str]:
    return [" ".join(vocabulary.terms[term] for term in sequence) for sequence in sequences]


def _shades(contributions: np.ndarray) -> np.ndarray:
    """From -1 to 1, relative to the strongest contribution; NaN for weak ones, which would colour the whole text."""
    shades = contributions / max(np.nan_to_num(np.abs(contributions)).max(initial=0), 1e-9)
    return np.where(np.abs(shades) >= LEAST_SHADE, shades, np.nan)


def _note(sides: list[pd.DataFrame], terms: int) -> str:
    note = (
        "Orange: words that query and document share. Blue: words whose loss lowers the score; purple and underlined: "
        "words whose loss raises it; the stronger the colour, the more, within each text."
    )
    for words in sides:
        if (distinct := words["word"].nunique()) > terms:
            note += f" Of the {distinct:,} terms of the {words['side'].iloc[0]}, {terms:,} were dropped in turn."
    return note
