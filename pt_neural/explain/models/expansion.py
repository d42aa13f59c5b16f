"""Which terms an expansion adds to a query, and with which weights."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import csr_array

from pt_neural._arguments import checked_number
from pt_neural.explain.explanation import Document, Explanation, document_text, query_text, quoted
from pt_neural.explain.pictures import SUPPORT_COLOUR, Mark, draw_words, paragraph, shortened, word_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pt_neural.lucene import LatentConceptExpansion
    from pt_neural.models.ssi.rocchio import Rocchio

TERMS_SHOWN = 50  # in a notebook


def explain_concepts(model: "LatentConceptExpansion", query: str, texts: None = None) -> "ExpansionExplanation":
    """Show which terms latent concept expansion adds to a query.

    It retrieves its feedback documents itself. Weights of analysed terms in the original query are counts.

    Args:
        model: The expansion.
        query: The query's text.
        texts: Must be left out.

    Returns:
        An explanation of the expanded query.

    Raises:
        TypeError: If there are texts.

    Example::

        pn.explain(pn.LatentConceptExpansion(index), "pairwise distance").plot()
    """
    if texts is not None:
        raise TypeError(f"{model!r} retrieves its feedback documents itself: leave out the text")
    query = query_text(query)
    expanded = model.transform(pd.DataFrame({"qid": ["1"], "query": [query]}))
    return _explanation(model, query, Counter(model.index.analysis.terms(query)), expanded["query_toks"].iloc[0])


def explain_rocchio(
    model: "Rocchio", query: str, texts: Document | Sequence[Document] | None = None
) -> "ExpansionExplanation":
    """Show which terms Rocchio's expansion adds to a query.

    It chooses its feedback documents from the texts. Weights are those of vectors of length 1, before and after.

    Args:
        model: The expansion.
        query: The query's text.
        texts: The candidate documents of the query.

    Returns:
        An explanation of the expanded query.

    Raises:
        TypeError: If there are no texts.

    Example::

        found = (bm25 % 100 >> index.text_loader()).search("pairwise distance")
        pn.explain(pn.Rocchio(tfidf), "pairwise distance", found["text"]).to_frame()
    """
    if texts is None:
        raise TypeError(f"{model!r} expands a query by documents: give the texts of its candidates")
    query = query_text(query)
    documents = [texts] if isinstance(texts, str | Mapping) else texts
    documents = [document_text(model.tfidf, document) for document in documents]
    query_vector, vectors = model.represent_queries([query]), model.tfidf.represent_texts(documents)
    rows = np.arange(len(documents))
    scores = model.tfidf.score_pairs(query_vector, np.zeros_like(rows), vectors, rows)
    best = np.argsort(-scores, kind="stable")[: model.feedback_docs]
    best = best[scores[best] > 0]
    ones = np.ones(len(best), dtype=np.float32)
    feedback = csr_array((ones, (np.zeros_like(best), best)), shape=(1, len(documents)))
    expanded = model.expand(query_vector, feedback, vectors)
    terms = model.tfidf.vocabulary.terms
    before, after = (
        dict(zip([terms[number] for number in vector.indices], vector.data.tolist(), strict=True))
        for vector in (query_vector.sparse, expanded.sparse)
    )
    return _explanation(model, query, before, after)


def _explanation(
    model: pt.Transformer, query: str, before: Mapping[str, float], after: Mapping[str, float]
) -> "ExpansionExplanation":
    """An explanation of the weights of a query's terms before and after expansion."""
    words = pd.DataFrame({"word": list(after), "weight": list(after.values())})
    words = words.astype({"word": object, "weight": float})
    words["original"] = words["word"].map(before).astype(float).fillna(0.0)
    words.insert(1, "match", words["original"] > 0)
    return ExpansionExplanation(
        model=repr(model),
        query=query,
        note="The stronger the colour, the larger the weight. Bold: terms of the query.",
        words=words.sort_values("weight", ascending=False, kind="stable", ignore_index=True),
    )


@dataclass(frozen=True, repr=False)
class ExpansionExplanation(Explanation):
    """Which terms an expansion adds to a query.

    Attributes:
        words: One row per term; see :meth:`to_frame`.
    """

    words: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """One row per term of the expanded query, the largest weight first.

        Returns:
            Frame with ``word``, ``match`` (whether the query has it), ``weight`` and ``original``, its weight before.
        """
        return self.words.copy()

    def plot(self, ax: "Axes | None" = None, *, words: int = 15) -> "Axes":
        """Draw the terms with the largest weights; a black line shows the weight that a query term had before.

        Args:
            ax: Axes to draw on; None for a new figure.
            words: Number of terms to show.

        Raises:
            ValueError: If ``words`` is below 1.
        """
        shown = self.words.head(checked_number("words", words, int, least=1)).iloc[::-1].set_index("word")
        ax = draw_words(
            ax,
            shown[["weight"]],
            {"weight": SUPPORT_COLOUR},
            {},
            title=[self.model, quoted(self.query)],
            label="weight in the expanded query (bold: in the query, black line: its weight there)",
            nothing="no term to show",
            matches=shown["match"],
        )
        places = np.flatnonzero(shown["match"])
        ax.vlines(shown["original"].to_numpy()[places], places - 0.4, places + 0.4, color="black", linewidth=2)
        return ax

    def _repr_html_(self) -> str:
        words = self.words.head(TERMS_SHOWN)
        marks = []
        for row, shade in zip(words.itertuples(), words["weight"] / words["weight"].max(), strict=True):
            style = word_style(row.match, shade)
            mark = Mark(0, 0, row.word, style, hint=f"before {row.original:.4g}", label=f"{row.weight:.3g}")
            marks.append(mark.to_html())
        hidden = len(self.words) - len(words)
        more = f" … ({hidden:,} more terms)" if hidden else ""
        return self._page(escape(self.query), "", paragraph(" ".join(marks) + more))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model}, {shortened(self.query)!r}, {len(self.words):,} terms)"
