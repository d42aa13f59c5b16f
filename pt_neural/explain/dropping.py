"""How a score changes when a word is dropped from the query or from the document."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import reduce
from html import escape
from operator import pow
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import SIDES, Document, Side, TextExplanation, both_texts, checked_side
from pt_neural.explain.pictures import (
    MATCH_COLOUR,
    SUPPORT_COLOUR,
    Mark,
    draw_words,
    embolden,
    marked,
    paragraph,
    shades,
    strongest,
    word_marks,
)
from pt_neural.explain.words import WORD_COLUMNS, WordExplanation, word_occurrences
from pt_neural.rankers.ranker import Ranker
from pt_neural.text import PackedSequences, Vocabulary, tokenise
from pt_neural.text.packed import offsets_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pt_neural.rankers.representation import RepresentationRanker

WORDS_PER_BATCH = 1_000_000
LEGEND = (
    "Blue: words whose loss lowers the score; purple and underlined: words whose loss raises it; the stronger the "
    "colour, the more, within each text."
)
LIMITS: dict[Side, str] = {"query": "query_terms", "document": "document_terms"}  # attributes of models
BAR_COLOURS = ("0.6", SUPPORT_COLOUR, MATCH_COLOUR)  # of the score, and of two parts

Scorer = Callable[[PackedSequences, Vocabulary], np.ndarray]


def explain_terms(model: "RepresentationRanker", query: str, text: Document, *, terms: int = 200) -> WordExplanation:
    """Drop each term from the query or the document, all its occurrences at once, and score what is left.

    For rankers that represent query and document separately. The contribution of a term is the score of the full text
    minus the score of the text without it. The words around it close up, which windows of words notice. Contributions
    do not add up to the score: two words may stand for one another, or mean something only together.

    A text of many distinct terms would have to be encoded as many times, so only some terms are dropped: first those
    that both texts have, then the most frequent ones, then those that come first.

    Args:
        model: The ranker.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        terms: Number of distinct terms of each side to drop at most; the others have a contribution of NaN.

    Returns:
        An explanation of the words of both sides. All occurrences of a term have the term's contribution.

    Raises:
        ValueError: If ``terms`` is below 1.
    """
    checked_number("terms", terms, int, least=1)
    query, text = both_texts(model, query, text)
    full_query, full_document = model.represent_queries([query]), model.represent_texts([text])
    row = np.zeros(1, dtype=np.int64)
    score = float(model.score_pairs(full_query, row, full_document, row)[0])

    def score_queries(rests: PackedSequences, vocabulary: Vocabulary) -> np.ndarray:
        queries = [" ".join(vocabulary.terms[term] for term in rest) for rest in rests]
        rows = np.arange(len(queries))
        return model.score_pairs(model.represent_queries(queries), rows, full_document, np.zeros_like(rows))

    def score_documents(rests: PackedSequences, vocabulary: Vocabulary) -> np.ndarray:
        rows = np.arange(len(rests))
        return model.score_pairs(full_query, np.zeros_like(rows), model.represent_documents(rests, vocabulary), rows)

    sides = [word_occurrences(query, "query", text), word_occurrences(text, "document", query)]
    for words, scorer in zip(sides, (score_queries, score_documents), strict=True):
        without = _scores_without(words["word"].tolist(), _chosen_terms(words, terms), scorer)
        words["contribution"] = score - words["word"].map(without).astype(float)
    notes = (
        _not_dropped(side, words["word"].nunique(), terms, "terms") for side, words in zip(SIDES, sides, strict=True)
    )
    return WordExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=score,
        note=f"Orange: words that query and document share. {LEGEND}{''.join(notes)}",
        words=pd.concat(sides, ignore_index=True),
        shades=np.concatenate([shades(words["contribution"].to_numpy()) for words in sides]),
        per="term",
    )


def _chosen_terms(words: pd.DataFrame, count: int) -> list[str]:
    """The terms to drop, in the order described in :func:`explain_terms`."""
    distinct = words.groupby("word", sort=False).agg(match=("match", "first"), count=("match", "size"))
    return distinct.sort_values(["match", "count"], ascending=False, kind="stable").index[:count].tolist()


def _scores_without(words: list[str], dropped: list[str], scorer: Scorer) -> dict[str, float]:
    """The score of a text without each term; texts are encoded in batches of bounded size."""
    vocabulary = Vocabulary(list(dict.fromkeys(words)))
    ids = np.array(vocabulary.ids(words), dtype=np.int32)
    size = max(1, WORDS_PER_BATCH // max(1, len(words)))
    scores: dict[str, float] = {}
    for start in range(0, len(dropped), size):
        batch = dropped[start : start + size]
        rests = [ids[ids != term] for term in vocabulary.ids(batch)]
        packed = PackedSequences(np.concatenate(rests), offsets_of(np.array([len(rest) for rest in rests])))
        scores.update(zip(batch, scorer(packed, vocabulary).tolist(), strict=True))
    return scores


def explain_occurrences(model: Ranker, query: str, text: Document, *, terms: int = 200) -> "PartsExplanation":
    """Drop each word of the query or the document by itself, and score what is left (Duet paper, Figure 1).

    For rankers that read query and document together. The contribution of an occurrence is the score of the full text
    minus the score of the text without it. The words after it move up by one place, which models that look at
    positions notice, and where a text is longer than what the model reads, one more word is read. For a Duet, whose
    score joins those of a local and a distributed model, there are contributions to each part too: to the part's
    output before its tanh.

    A long text would have to be scored as many times, so only some words are dropped: first those that both texts
    have, then those that come first.

    Args:
        model: The ranker. Texts are read from the arguments, even if it has a forward index or representations.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        terms: Number of occurrences of each side to drop at most; the others have a contribution of NaN. Words that
            the model does not read have a contribution of 0.

    Returns:
        An explanation of the words of both sides.

    Raises:
        ValueError: If ``terms`` is below 1.
    """
    checked_number("terms", terms, int, least=1)
    query, text = both_texts(model, query, text)
    words = {"query": word_occurrences(query, "query", text), "document": word_occurrences(text, "document", query)}
    limits = {side: getattr(model, name, None) or len(words[side]) for side, name in LIMITS.items()}
    dropped = {
        side: np.argsort(~words[side]["match"].to_numpy()[: limits[side]], kind="stable")[:terms] for side in SIDES
    }
    # One word more than the model reads, because one is dropped.
    tokens = {side: words[side]["word"].tolist()[: limits[side] + 1] for side in SIDES}
    scores = _scores(_reading_texts(model), _pairs(tokens, dropped))
    full, rests = scores.iloc[0], scores.to_numpy()[1:]
    split = len(dropped["query"])
    for side, rest in (("query", rests[:split]), ("document", rests[split:])):
        losses = np.full((len(words[side]), len(full)), np.nan)
        losses[limits[side] :] = 0
        losses[dropped[side]] = full.to_numpy() - rest
        words[side][scores.columns.tolist()] = losses
    notes = (
        _not_dropped(side, min(limits[side], len(words[side])), len(dropped[side]), "words that the model reads")
        for side in SIDES
    )
    return PartsExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(full["contribution"]),
        note=f"Bold: words that query and document share. {LEGEND}{''.join(notes)}",
        words=pd.concat(words.values(), ignore_index=True),
        parts=full.drop("contribution").to_dict(),
    )


def _pairs(tokens: dict[Side, list[str]], dropped: dict[Side, np.ndarray]) -> list[tuple[str, str]]:
    """Query and document in full, then what is left of the query, then what is left of the document."""
    query, document = (" ".join(tokens[side]) for side in SIDES)
    rests = {
        side: [" ".join(tokens[side][:place] + tokens[side][place + 1 :]) for place in dropped[side]] for side in SIDES
    }
    return [
        (query, document),
        *((rest, document) for rest in rests["query"]),
        *((query, rest) for rest in rests["document"]),
    ]


def _reading_texts(model: Ranker) -> Ranker:
    """The model as it scores texts, wherever it reads documents from."""
    reader = copy(model)
    reader.documents, reader.verbose = None, False
    if hasattr(reader, "representations"):
        reader.representations = None
    return reader


def _scores(model: Ranker, pairs: list[tuple[str, str]]) -> pd.DataFrame:
    """Scores of the pairs as ``contribution``, and the outputs of the model's parts if it has several."""
    names = np.arange(len(pairs)).astype(str)
    frame = pd.DataFrame(pairs, columns=["query", model.fields[-1]]).assign(qid=names, docno=names)
    size = max(1, WORDS_PER_BATCH // max(1, len(tokenise(pairs[0][1]))))
    batches = [frame[start : start + size] for start in range(0, len(frame), size)]
    parts = getattr(model, "parts", ()) if hasattr(model, "fuse_feature_union") else ()  # a Duet's, from one pass
    if not parts:
        values = [model.transform(batch)["score"].to_numpy() for batch in batches]
        return pd.DataFrame({"contribution": np.concatenate(values)})
    features = reduce(pow, [model, *(getattr(model, part) for part in parts)]).compile()
    values = [np.stack(features.transform(batch)["features"]) for batch in batches]
    return pd.DataFrame(np.concatenate(values), columns=["contribution", *parts])


def _not_dropped(side: str, count: int, dropped: int, kind: str) -> str:
    """A sentence on how many words were dropped; empty if all were."""
    return "" if count <= dropped else f" Of the {count:,} {kind} of the {side}, {dropped:,} were dropped in turn."


@dataclass(frozen=True, repr=False)
class PartsExplanation(TextExplanation):
    """How much the score, and each part of the model, loses without an occurrence of a word.

    Attributes:
        words: One row per occurrence; see :meth:`to_frame`.
        parts: The output of each part for the full text, by name; empty for a model without parts.
    """

    words: pd.DataFrame
    parts: dict[str, float]

    lost: ClassVar[str] = "lost without an occurrence, summed over the word's occurrences"

    def to_frame(self) -> pd.DataFrame:
        """One row per occurrence of a word, in the order of the text.

        Returns:
            Frame with ``word``, ``start`` and ``end`` (character positions), ``side`` (``"query"`` or ``"document"``,
            the text that it stands in), ``match`` (whether the other text has the word too), ``contribution`` (what
            the score loses without it; NaN if it was not dropped) and, for a model of several parts, a column for what
            each part loses.
        """
        return self.words.copy()

    def by_word(self) -> pd.DataFrame:
        """What the score loses without each occurrence."""
        return self.words[list(WORD_COLUMNS)]

    def _marks(self, side: Side, column: str = "contribution") -> list[Mark]:
        return word_marks(self._text_of(side), self.words[self.words["side"] == side], column, hint="loses")

    def _body_html(self) -> str:
        """One panel for each part, as in Figure 1 of the Duet paper."""
        if not self.parts:
            return super()._body_html()
        panels = []
        for name, output in self.parts.items():
            part = self._part_name(name)
            panels.append(f"<p><b>{escape(part[:1].upper() + part[1:])}</b>: {output:.4f}</p>")
            panels.append(paragraph(marked(self.text, self._marks("document", name))))
        return "".join(panels)

    def _part_name(self, name: str) -> str:
        return f"{name} model"

    def plot(self, ax: "Axes | None" = None, *, words: int = 15, side: Side = "document") -> "Axes":
        """Draw the words whose loss changes the score, or the output of a part, most.

        Args:
            ax: Axes to draw on; None for a new figure.
            words: Number of distinct words to show.
            side: Which text's words.

        Raises:
            ValueError: If the side is neither ``"query"`` nor ``"document"``.
        """
        occurrences = self.words[self.words["side"] == checked_side(side)]
        columns = {"contribution": "score", **{name: self._part_name(name) for name in self.parts}}
        totals = strongest(occurrences, list(columns), "sum", words)
        colours = dict(zip(columns, BAR_COLOURS if self.parts else [SUPPORT_COLOUR], strict=True))
        ax = draw_words(
            ax,
            totals,
            colours,
            {colours[column]: name for column, name in columns.items()} if self.parts else {},
            label=f"{self.lost}\n(bold: in query and document)",
            nothing=f"no word of the {side} to show",
        )
        embolden(ax, totals["match"])
        self._set_title(ax, pad=26 if self.parts else 6, loc="left")
        return ax
