"""How a score changes when a word is dropped from the query or from the document."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import reduce
from html import escape
from itertools import pairwise
from operator import pow
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import (
    SIDES,
    Document,
    Side,
    TextExplanation,
    checked_side,
    document_text,
    query_text,
    read_end,
)
from pt_neural.explain.pictures import (
    DIRECTIONS,
    IN_BOTH,
    MODEL_COLOURS,
    SHADES_NOTE,
    Mark,
    directions,
    draw_words,
    paragraph,
    shades,
    strongest,
    word_marks,
)
from pt_neural.explain.words import WORD_COLUMNS, WordExplanation, word_occurrences
from pt_neural.rankers.ranker import Ranker
from pt_neural.text import PackedSequences, Vocabulary, pack_fields, tokenise
from pt_neural.text.packed import offsets_of
from pt_neural.text.tokens import FIELD_END

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pt_neural.rankers.representation import RepresentationRanker

WORDS_PER_BATCH = 1_000_000
LIMITS: dict[Side, str] = {"query": "query_terms", "document": "document_terms"}  # attributes of models
MASK = "\ua66e"  # a letter of one Slavic manuscript, in place of a word: no model knows it
BAR_COLOURS = ("0.45", *MODEL_COLOURS[:2])  # of the score, and of two parts

Scorer = Callable[[PackedSequences, Vocabulary], np.ndarray]


def explain_terms(model: "RepresentationRanker", query: str, text: Document, *, terms: int = 200) -> WordExplanation:
    """Drop each term from the query or the document, all its occurrences at once, and score what is left.

    For rankers that represent query and document separately. The contribution of a term is the score of the full text
    minus the score of the text without it. The words around it become neighbours, which changes windows of words; only
    for a ranker that reads a fixed number of terms does an unknown word take its place, so that no other word moves.
    Contributions do not add up to the score: two words may replace each other, or mean something only together.

    The text is encoded again for each dropped term, so the number of terms is limited: first come the terms that both
    texts have, then the most frequent ones, then those that occur first.

    Args:
        model: The ranker.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        terms: Largest number of distinct terms of each side to drop; the others have a contribution of NaN.

    Returns:
        An explanation of the words of both sides. All occurrences of a term have the term's contribution.

    Raises:
        ValueError: If ``terms`` is below 1.
    """
    checked_number("terms", terms, int, least=1)
    query, marked = query_text(query), document_text(model, text, keep_ends=True)
    text, ends = marked.replace(FIELD_END, "\n"), {"query": np.zeros(0, int), "document": _field_ends(model, marked)}
    full_query, full_document = model.represent_queries([query]), model.represent_texts([marked])
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
    limits = limits_of(model, marked)
    for side, words, scorer in zip(SIDES, sides, (score_queries, score_documents), strict=True):
        without = _scores_without(
            words["word"].tolist(),
            _chosen_terms(words, terms),
            scorer,
            masked=limits[side] is not None,
            field_ends=ends[side],
        )
        words["contribution"] = score - words["word"].map(without).astype(float)
    read = {side: read_end(both, limits[side]) for side, both in zip(SIDES, (query, text), strict=True)}
    notes = (
        _not_dropped(side, words["word"].nunique(), terms, "terms") for side, words in zip(SIDES, sides, strict=True)
    )
    return WordExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=score,
        note=f"What the score loses without a word. {SHADES_NOTE}{''.join(notes)}",
        words=pd.concat(sides, ignore_index=True),
        read=read,
        shades=np.concatenate([shades(words["contribution"].to_numpy()) for words in sides]),
        per="term",
    )


def _chosen_terms(words: pd.DataFrame, count: int) -> list[str]:
    """The terms to drop, in the order described in :func:`explain_terms`."""
    distinct = words.groupby("word", sort=False).agg(match=("match", "first"), count=("match", "size"))
    return distinct.sort_values(["match", "count"], ascending=False, kind="stable").index[:count].tolist()


def limits_of(model: Ranker, document: str) -> dict[Side, int | None]:
    """How many words of each text a model reads; None for all of them.

    Args:
        model: The ranker.
        document: The document's text, with the characters that mark where fields end.
    """
    limits = {side: getattr(model, name, None) for side, name in LIMITS.items()}
    if limits["document"] is not None and getattr(model, "boundaries", False):
        ends = _field_ends(model, document)
        starts = np.concatenate([[0], ends[:-1]])
        places = limits["document"] - 1 - np.arange(len(ends))  # a boundary before each field takes one, too
        limits["document"] = int(np.clip(places - starts, 0, ends - starts).sum())
    return limits


def _fields(model: Ranker) -> Sequence[str]:
    """The fields that the model tells apart; one of them, which takes a whole text, if it does not."""
    return model.fields if model.tells_fields_apart else model.fields[-1:]


def _field_ends(model: Ranker, text: str) -> np.ndarray:
    """After how many words each of these fields ends in a text with marks."""
    return pack_fields([text], len(_fields(model)))[0].field_ends[0]


def _scores_without(
    words: list[str], dropped: list[str], scorer: Scorer, *, masked: bool, field_ends: np.ndarray
) -> dict[str, float]:
    """The score of a text without each term, or with a mask for it; texts are encoded in batches of bounded size."""
    vocabulary = Vocabulary([*dict.fromkeys(words), *([MASK] if MASK not in words else [])])
    ids, mask = np.array(vocabulary.ids(words), dtype=np.int32), vocabulary.ids([MASK])[0]
    size = max(1, WORDS_PER_BATCH // max(1, len(words)))
    scores: dict[str, float] = {}
    for start in range(0, len(dropped), size):
        batch = dropped[start : start + size]
        places = [ids != term for term in vocabulary.ids(batch)]
        rests = [np.where(kept, ids, mask) if masked else ids[kept] for kept in places]
        ends = np.array([field_ends if masked else offsets_of(kept)[field_ends] for kept in places])
        packed = PackedSequences(np.concatenate(rests), offsets_of(np.array([len(rest) for rest in rests])), ends)
        scores.update(zip(batch, scorer(packed, vocabulary).tolist(), strict=True))
    return scores


def explain_occurrences(model: Ranker, query: str, text: Document, *, terms: int = 200) -> "PartsExplanation":
    """Drop each word of the query or the document by itself, and score what is left (Duet paper, Figure 1).

    For rankers that read query and document together. The contribution of an occurrence is the score of the full text
    minus the score of the text without it. If the ranker reads a fixed number of terms, an unknown word takes its
    place: the words after it stay where they are, and no word from beyond the end moves in. Otherwise the words around
    it become neighbours. For a Duet, whose score joins a local and a distributed model, there are also contributions
    to each part: to its output before its tanh.

    The text is scored again for each dropped word, so the number of words is limited: first come the words that both
    texts have, then those that occur first.

    Args:
        model: The ranker. Texts are read from the arguments, even if it has a forward index or representations.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        terms: Largest number of occurrences of each side to drop; the others have a contribution of NaN. Words that the
            model does not read have a contribution of 0.

    Returns:
        An explanation of the words of both sides.

    Raises:
        ValueError: If ``terms`` is below 1.
    """
    checked_number("terms", terms, int, least=1)
    query, marked = query_text(query), document_text(model, text, keep_ends=True)
    text, field_ends = marked.replace(FIELD_END, "\n"), _field_ends(model, marked)
    words = {"query": word_occurrences(query, "query", text), "document": word_occurrences(text, "document", query)}
    limits = limits_of(model, marked)
    masks: dict[Side, list[str]] = {side: [] if limits[side] is None else [MASK] for side in SIDES}
    tokens = {side: words[side]["word"].tolist()[: limits[side]] for side in SIDES}
    dropped = {
        side: np.argsort(~words[side]["match"].to_numpy()[: limits[side]], kind="stable")[:terms] for side in SIDES
    }
    field_ends = np.minimum(field_ends, len(tokens["document"]))
    scores = _scores(_reading_texts(model), _pairs(tokens, dropped, masks, field_ends))
    full, rests = scores.iloc[0], scores.to_numpy()[1:]
    split = len(dropped["query"])
    for side, rest in (("query", rests[:split]), ("document", rests[split:])):
        losses = np.full((len(words[side]), len(full)), np.nan)
        losses[len(tokens[side]) :] = 0
        losses[dropped[side]] = full.to_numpy() - rest
        words[side][scores.columns.tolist()] = losses
    notes = (_not_dropped(side, len(tokens[side]), len(dropped[side]), "words that the model reads") for side in SIDES)
    read = {side: read_end(both, limits[side]) for side, both in zip(SIDES, (query, text), strict=True)}
    return PartsExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(full["contribution"]),
        note=f"What the score loses without a word. {SHADES_NOTE}{''.join(notes)}",
        words=pd.concat(words.values(), ignore_index=True),
        parts=full.drop("contribution").to_dict(),
        read=read,
    )


def _pairs(
    tokens: dict[Side, list[str]], dropped: dict[Side, np.ndarray], masks: dict[Side, list[str]], field_ends: np.ndarray
) -> list[tuple[str, str]]:
    """Query and document in full, then what is left of the query, then what is left of the document."""

    def marked(words: list[str], ends: np.ndarray) -> str:
        return FIELD_END.join(" ".join(words[start:end]) for start, end in pairwise([0, *ends]))

    def rests(side: Side) -> list[list[str]]:
        return [tokens[side][:place] + masks[side] + tokens[side][place + 1 :] for place in dropped[side]]

    query, document = " ".join(tokens["query"]), marked(tokens["document"], field_ends)
    moved = 0 if masks["document"] else 1  # the fields that end behind a word, if nothing takes its place
    ends = [field_ends - moved * (field_ends > place) for place in dropped["document"]]
    return [
        (query, document),
        *((" ".join(rest), document) for rest in rests("query")),
        *((query, marked(rest, ends_of_rest)) for rest, ends_of_rest in zip(rests("document"), ends, strict=True)),
    ]


def _reading_texts(model: Ranker) -> Ranker:
    """A copy of the model that scores the texts of a frame, without forward index or stored representations."""
    reader = copy(model)
    reader.documents, reader.verbose = None, False
    if hasattr(reader, "representations"):
        reader.representations = None
    return reader


def _scores(model: Ranker, pairs: list[tuple[str, str]]) -> pd.DataFrame:
    """Scores of the pairs as ``contribution``, and the outputs of the model's parts if it has several."""
    names = np.arange(len(pairs)).astype(str)
    rows = [
        (name, name, query, *document.split(FIELD_END)) for name, (query, document) in zip(names, pairs, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["qid", "docno", "query", *_fields(model)])
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
    """How much the score, and the output of each part of the model, loses without an occurrence of a word.

    Attributes:
        words: One row per occurrence; see :meth:`to_frame`.
        parts: The output of each part for the full text, by name; empty for a model without parts.
        read: Where the part of each text ends that the model reads, in characters; empty if it reads all.
    """

    words: pd.DataFrame
    parts: dict[str, float]
    read: dict[Side, int | None] = field(default_factory=dict, kw_only=True)

    lost: ClassVar[str] = "score lost without an occurrence, summed over the word's occurrences"

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

    def _read(self, side: Side) -> int | None:
        return self.read.get(side)

    def _marks(self, side: Side, column: str = "contribution") -> list[Mark]:
        return word_marks(self._text_of(side), self.words[self.words["side"] == side], column, hint="loses")

    def _body_html(self) -> str:
        """One panel for each part, as in Figure 1 of the Duet paper."""
        if not self.parts:
            return super()._body_html()
        panels = []
        for name, output in self.parts.items():
            part = self._part_name(name)
            panels.append(f"<p>{escape(part[:1].upper() + part[1:])}: {output:.4f}</p>")
            panels.append(paragraph(self._marked("document", self._marks("document", name))))
        return "".join(panels)

    def _part_name(self, name: str) -> str:
        return f"{name} model"

    def plot(self, ax: "Axes | None" = None, *, words: int = 15, side: Side = "document") -> "Axes":
        """Draw the words without which the score, or the output of a part, changes most.

        Args:
            ax: Axes to draw on; None for a new figure.
            words: Number of distinct words to show.
            side: Which text's words.

        Raises:
            ValueError: If the side is neither ``"query"`` nor ``"document"``.
        """
        occurrences = self._read_part(self.words, checked_side(side))
        columns = {"contribution": "score", **{name: self._part_name(name) for name in self.parts}}
        totals = strongest(occurrences, list(columns), "sum", words)
        colours = dict(zip(columns, BAR_COLOURS, strict=False))
        legend = {colours[column]: name for column, name in columns.items()} if self.parts else DIRECTIONS
        if not self.parts:
            colours = {"contribution": directions(totals["contribution"])}
        return draw_words(
            ax,
            totals,
            colours,
            legend,
            title=self._title(),
            label=f"{self.lost} ({IN_BOTH})",
            nothing=f"no word of the {side} to show",
            matches=totals["match"],
        )
