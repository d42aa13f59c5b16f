"""The change of a score when a term is dropped, for rankers that take query and document each by itself."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from pt_neural.explain import dropping
from pt_neural.explain.dropping import LEGEND, checked_terms, left_out
from pt_neural.explain.explanation import SIDES
from pt_neural.explain.marking import side_shades
from pt_neural.explain.scoring import towers
from pt_neural.explain.words import WordExplanation, word_occurrences
from pt_neural.rankers import BilinearRanker, TwoTower
from pt_neural.rankers.language_model import LanguageModelRanker
from pt_neural.text import PackedSequences, Vocabulary
from pt_neural.text.packed import offsets_of

Scorer = Callable[[PackedSequences, Vocabulary], np.ndarray]


def explain_terms(
    model: TwoTower | BilinearRanker | LanguageModelRanker, query: str, text: str, *, terms: int = 200
) -> WordExplanation:
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
    terms = checked_terms(terms)
    tower = towers(model)
    of_query, of_document = tower.queries([query]), tower.documents([text])
    score = float(tower.scores(of_query, of_document)[0])
    sides = [word_occurrences(query, "query", text), word_occurrences(text, "document", query)]
    scorers: list[Scorer] = [
        lambda rests, vocabulary: tower.scores(tower.queries(_texts(rests, vocabulary)), of_document),
        lambda rests, vocabulary: tower.scores(of_query, tower.sequences(rests, vocabulary)),
    ]
    for words, scorer in zip(sides, scorers, strict=True):
        without = _scores_without(words["word"].tolist(), _chosen(words, terms), scorer)
        words["contribution"] = score - words["word"].map(without).astype(float)
    both = pd.concat(sides, ignore_index=True)
    return WordExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=score,
        note=_note(sides, terms),
        words=both,
        shades=side_shades(both, "contribution"),
        per="term",
    )


def _chosen(words: pd.DataFrame, terms: int) -> list[str]:
    """The terms to drop, in the order that :func:`explain_terms` tells."""
    distinct = words.groupby("word", sort=False).agg(match=("match", "first"), count=("match", "size"))
    return distinct.sort_values(["match", "count"], ascending=False, kind="stable").index[:terms].tolist()


def _scores_without(words: list[str], dropped: list[str], scorer: Scorer) -> dict[str, float]:
    """The score of a text without each of the terms; what is left is encoded together, in batches of bounded size."""
    vocabulary = Vocabulary(list(dict.fromkeys(words)))
    ids = np.array(vocabulary.ids(words), dtype=np.int32)
    size = max(1, dropping.WORDS_A_BATCH // max(1, len(words)))
    scores: dict[str, float] = {}
    for start in range(0, len(dropped), size):
        batch = dropped[start : start + size]
        rests = [ids[ids != term] for term in vocabulary.ids(batch)]
        packed = PackedSequences(np.concatenate(rests), offsets_of(np.array([len(rest) for rest in rests])))
        scores.update(zip(batch, scorer(packed, vocabulary).tolist(), strict=True))
    return scores


def _texts(sequences: PackedSequences, vocabulary: Vocabulary) -> list[str]:
    return [" ".join(vocabulary.terms[term] for term in sequence) for sequence in sequences]


def _note(sides: list[pd.DataFrame], terms: int) -> str:
    counts = zip(SIDES, (words["word"].nunique() for words in sides), strict=True)
    omitted = "".join(left_out(side, there, terms, "terms") for side, there in counts)
    return f"Orange: words that query and document share. {LEGEND}{omitted}"
