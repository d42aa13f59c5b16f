"""Where the probability of each query word comes from, for rankers that score by query likelihood."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_number
from pt_neural._pictures import fit_labels, legend_above
from pt_neural.explain.explanation import Document, Side, TextExplanation, both_texts
from pt_neural.explain.pictures import (
    IN_BOTH,
    SHADES_NOTE,
    SUPPORT_COLOUR,
    WORD_LENGTH,
    Mark,
    embolden,
    shortened,
    swatch,
    titled_axes,
    word_marks,
    write_instead,
)
from pt_neural.explain.words import WORD_COLUMNS, divided, word_occurrences
from pt_neural.models.topics.steps import LEAST
from pt_neural.models.topics.topic_model import TopicModel
from pt_neural.rankers.language_model import DocumentCounts, LanguageModelRanker
from pt_neural.text import tokenise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAME_WORD, COLLECTION, TRANSLATION, TOPIC = KINDS = ("same word", "collection", "translation", "topic")
KIND_COLOURS = dict(zip(KINDS, (SUPPORT_COLOUR, "#BBBBBB", "#56B4E9", "#56B4E9"), strict=True))
WORDS_PER_TOPIC = 3  # in its name
ROW = 0.42  # inches per word of the query
LETTERS_PER_PERCENT = 0.85  # that a bar has room for


def explain_likelihood(
    model: LanguageModelRanker, query: str, text: Document, *, sources: int = 5
) -> "LikelihoodExplanation":
    """Show how probable the document makes each word of the query, and why.

    The score is the sum of log P(w|d) over the words w of the query, and P(w|d) is a sum over its sources: the same
    word in the document (in the unigram model, and as its own translation); the collection; and either other words u of
    the document, t(w|u) times the share of u in it, or topics of the document, P(w|z) P(z|d). The factor
    P(w|d) / P(w|C) measures how strongly the word speaks for this document.

    Word by word, the contribution of a query word is the logarithm of that factor; the contribution of a document word
    is its share of P(w|d), summed over all words of the query. A topic's share is divided among the words of the
    document in proportion to their part in P(z|d), n(d, u) P(z|d, u).

    Args:
        model: The model, fitted.
        query: The query's text.
        text: The document's text, or a dict of its fields.
        sources: Number of translations or topics to list for each query word, the largest ones first.

    Returns:
        An explanation; its frame is empty if the query has no known word.

    Raises:
        ValueError: If ``sources`` is below 1.

    Example::

        explanation = pn.explain(lda, "pairwise distance", text)
        explanation.to_frame().head()
        explanation.plot()
    """
    checked_number("sources", sources, int, least=1)
    query, text = both_texts(model, query, text)
    words, document = model.represent_queries([query])[0], model.represent_texts([text])
    distinct, first, counts = np.unique(words, return_index=True, return_counts=True)
    order = np.argsort(first)
    distinct, counts = distinct[order], counts[order]
    query_words = pd.DataFrame(
        {
            "word": [model.vocabulary.terms[word] for word in distinct],
            "count": counts,
            "probability": model.mixed_probabilities(distinct, document)[0].astype(float),
            "collection": model.collection_probabilities(distinct).astype(float),
        }
    )
    return LikelihoodExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(model.log_likelihoods(words, document)[0]),
        note=_note(model, query),
        words=_words(query, text, query_words, _parts_by_document_word(model, distinct, document)),
        query_words=query_words,
        all_sources=_sources(model, distinct, document),
        sources=sources,
    )


def _words(query: str, text: str, query_words: pd.DataFrame, parts: pd.DataFrame) -> pd.DataFrame:
    """The words of both texts with their contributions, as described in :func:`explain_likelihood`."""
    by_word = query_words.set_index("word")
    factors = by_word["count"] * np.log(by_word["probability"] / by_word["collection"])
    shares = parts.mul(by_word["count"] / by_word["probability"], axis=0).sum()
    sides = [
        words.assign(contribution=words["word"].map(totals).astype(float).fillna(0.0))
        for words, totals in (
            (word_occurrences(query, "query", text), factors),
            (word_occurrences(text, "document", query), shares),
        )
    ]
    return divided(pd.concat(sides, ignore_index=True))


def _parts_by_document_word(model: LanguageModelRanker, words: np.ndarray, document: DocumentCounts) -> pd.DataFrame:
    """What each known word of the document, a column, adds to P(w|d) of each word of the query, a row."""
    document_words, counts = document.counts.indices, document.counts.data
    added = _model_sources(model, words, document)[2]
    if isinstance(model, TopicModel):
        topic_counts = model.word_topics[document_words] * document.extra[0]  # P(z, u|d)
        topic_counts *= (counts / np.maximum(topic_counts.sum(axis=1), LEAST))[:, None]  # n(d, u) P(z|d, u)
        added = added @ (topic_counts / np.maximum(topic_counts.sum(axis=0), LEAST)).T
    same = (words[:, None] == document_words) * counts / (document.lengths[0] + model.mu)
    parts = model.unigram_weight * same + (1 - model.unigram_weight) * added
    rows, columns = ([model.vocabulary.terms[word] for word in ids] for ids in (words, document_words))
    return pd.DataFrame(parts, index=rows, columns=columns)


def _sources(model: LanguageModelRanker, words: np.ndarray, document: DocumentCounts) -> pd.DataFrame:
    """One row per source of a word's probability: ``word``, ``kind``, ``source``, ``probability``."""
    weight, smoothed_length = model.unigram_weight, document.lengths[0] + model.mu
    terms = [model.vocabulary.terms[word] for word in words]
    same = weight * document.occurrences(words)[0] / smoothed_length
    collection = weight * model.mu * model.collection_probabilities(words) / smoothed_length
    names, kind, added = _model_sources(model, words, document)
    is_same = np.array(terms, dtype=object)[:, None] == np.array(names, dtype=object)
    same = same + (1 - weight) * (added * is_same).sum(axis=1)
    rows, columns = np.nonzero(added * ~is_same)
    model_words, model_names = [terms[row] for row in rows], [names[column] for column in columns]
    frames = [
        _source_frame(terms, SAME_WORD, terms, same),
        _source_frame(terms, COLLECTION, [""] * len(terms), collection),
        _source_frame(model_words, kind, model_names, (1 - weight) * added[rows, columns]),
    ]
    sources = pd.concat(frames, ignore_index=True)
    return sources[sources["probability"] > 0].reset_index(drop=True)


def _source_frame(words: list[str], kind: str, sources: list[str], probabilities: np.ndarray) -> pd.DataFrame:
    columns = {"word": words, "kind": kind, "source": sources, "probability": np.asarray(probabilities, dtype=float)}
    return pd.DataFrame(columns).astype({"word": object, "kind": object, "source": object})


def _model_sources(
    model: LanguageModelRanker, words: np.ndarray, document: DocumentCounts
) -> tuple[list[str], str, np.ndarray]:
    """The sources of P_model, their kind, and what each adds: float of shape ``(words, sources)``."""
    if isinstance(model, TopicModel):
        best = model.topics(words=WORDS_PER_TOPIC).groupby("topic", sort=True)["word"].agg(", ".join)
        names = [f"topic {number}: {best_words}" for number, best_words in best.items()]
        return names, TOPIC, model.query_word_topics[words] * document.extra[0]
    document_words = document.counts.indices
    shares = document.counts.data / max(document.lengths[0], 1)
    names = [model.vocabulary.terms[word] for word in document_words]
    return names, TRANSLATION, model.table[words][:, document_words].toarray() * shares


def _note(model: LanguageModelRanker, query: str) -> str:
    by_topics = isinstance(model, TopicModel)
    distinct = np.array(list(dict.fromkeys(tokenise(query))), dtype=object)
    unknown = ", ".join(distinct[model.vocabulary.ids(distinct) < 0])
    note = (
        "Coloured: words of the query that the document makes more probable than the collection, or less, and words of "
        f"the document that add to their probability, by {'topics' if by_topics else 'translation'} too. {SHADES_NOTE} "
        f"A word's probability comes from the unigram model, with weight {model.unigram_weight:g}, and from the "
        f"{'topics of the document' if by_topics else 'words of the document that translate into it'}; the factor is "
        "how much more probable the document makes it than the collection."
    )
    return f"{note} Not known to the model and left out: {unknown}." if unknown else note


@dataclass(frozen=True, repr=False)
class LikelihoodExplanation(TextExplanation):
    """How probable a document makes each word of a query, and why.

    Attributes:
        words: One row per occurrence of a word; see :meth:`by_word`.
        query_words: One row per distinct known word of the query: ``word``, ``count`` (in the query), ``probability``
            (P(w|d)) and ``collection`` (P(w|C)).
        all_sources: One row per source of a word's probability: ``word``, ``kind``, ``source``, ``probability``.
        sources: Number of translations or topics to list for a word.
    """

    words: pd.DataFrame
    query_words: pd.DataFrame
    all_sources: pd.DataFrame
    sources: int

    def to_frame(self) -> pd.DataFrame:
        """One row per source of the probability of a query word, by query word, the largest first.

        Returns:
            Frame with ``word`` (of the query), ``kind`` (``"same word"``, ``"collection"``, ``"translation"`` or
            ``"topic"``), ``source`` (a word of the document, or a topic by its number and first words; empty for the
            collection), ``probability`` (the part of P(w|d) that comes from the source) and ``share`` (of P(w|d)). The
            strongest translations and topics are listed, the rest are summed up as ``"others"``.
        """
        frames = [self._sources_of(row.word, row.probability) for row in self.query_words.itertuples()]
        return pd.concat(frames, ignore_index=True) if frames else self.all_sources[:0].assign(share=0.0)

    def _sources_of(self, word: str, probability: float) -> pd.DataFrame:
        sources = self.all_sources[self.all_sources["word"] == word]
        sources = sources.sort_values("probability", ascending=False, kind="stable")
        from_model = sources["kind"].isin((TRANSLATION, TOPIC))
        listed, rest = sources[from_model][: self.sources], sources[from_model][self.sources :]
        if len(rest):
            others = rest[:1].assign(source=f"{len(rest):,} others", probability=rest["probability"].sum())
            listed = pd.concat([listed, others])
        kept = pd.concat([sources[~from_model], listed]).sort_values("probability", ascending=False, kind="stable")
        return kept.assign(share=kept["probability"] / probability)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw, for each word of the query, the share of its probability that comes from each source.

        The factor after each bar is P(w|d) / P(w|C). Translations and topics are named if there is room.

        Args:
            ax: Axes to draw on; None for a new figure.
        """
        words = self.query_words
        kinds = [kind for kind in KINDS if kind in set(self.all_sources["kind"])]
        ax = titled_axes(ax, self._title(), 8.5, 1.2 + ROW * max(1, len(words)), above=1)
        places = np.arange(len(words))[::-1]
        ax.set_yticks(places, [shortened(word, WORD_LENGTH) for word in words["word"]], parse_math=False)
        ax.set(
            xlim=(0, 100),
            ylim=(-0.6, max(1, len(words)) - 0.4),
            xlabel="share of P(word | document) by where it comes from, in percent (right: times as probable as in the "
            f"collection; {IN_BOTH})",
        )
        in_both = set(self.words.loc[self.words["match"], "word"])
        embolden(ax.get_yticklabels(), words["word"].isin(in_both))
        if words.empty:
            ax.set_xticks([])
            write_instead(ax, "no word of the query is known")
        for place, word in zip(places, words.itertuples(), strict=True):
            self._draw_word(ax, place, word.word, word.probability)
            factor = word.probability / word.collection
            ax.text(101, place, f"{factor:,.1f}×" if factor < 100 else f"{factor:,.0f}×", va="center", size="small")
        if kinds:
            legend_above(ax, handles=[swatch(KIND_COLOURS[kind]) for kind in kinds], names=kinds, left=True)
        fit_labels(ax)
        return ax

    def _draw_word(self, ax: "Axes", place: int, word: str, probability: float) -> None:
        sources, left = self._sources_of(word, probability), 0.0
        for kind in KINDS:
            listed = sources[sources["kind"] == kind]
            for share, source in zip(100 * listed["share"], listed["source"], strict=True):
                ax.barh(place, share, left=left, height=0.7, color=KIND_COLOURS[kind], edgecolor="white", linewidth=0.6)
                if kind in (TRANSLATION, TOPIC):
                    label = _fitting(source, int(share * LETTERS_PER_PERCENT))
                    ax.text(left + share / 2, place, label, ha="center", va="center", size="x-small", parse_math=False)
                left += share

    def by_word(self) -> pd.DataFrame:
        """What each word adds to the likelihood.

        For a query word w this is the logarithm of P(w|d) / P(w|C), for a document word its share of P(w|d), summed
        over all w.
        """
        return self.words[list(WORD_COLUMNS)]

    def _marks(self, side: Side) -> list[Mark]:
        return word_marks(self._text_of(side), self.words[self.words["side"] == side])

    def _body_html(self) -> str:
        """The document's text, and for each word of the query where its probability comes from."""
        lines = []
        for word in self.query_words.itertuples():
            sources = self._sources_of(word.word, word.probability).query("share > 0.005")
            parts = (f"{100 * row.share:.0f}% {escape(row.source or row.kind)}" for row in sources.itertuples())
            factor = word.probability / word.collection
            lines.append(f"<li><b>{escape(word.word)}</b>, {factor:,.1f} times as probable: {', '.join(parts)}</li>")
        return super()._body_html() + (f"<ul>{''.join(lines)}</ul>" if lines else "")


def _fitting(source: str, room: int) -> str:
    """As much of a source's name as fits: a topic's number and words, its number, or nothing."""
    for label in (source, source.split(":")[0]):
        if len(label) <= room:
            return label
    return ""
