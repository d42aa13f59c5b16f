"""What each word adds to the score of a ranker that compares a vector of the query with one of the document."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch

from pt_neural.explain.dropping import limits_of
from pt_neural.explain.explanation import SIDES, Document, both_texts, read_end
from pt_neural.explain.models.interaction import read_pair
from pt_neural.explain.pictures import SHADES_NOTE, shades
from pt_neural.explain.words import WordExplanation, word_occurrences
from pt_neural.models.convolutions.arc import ARCI, ARCINetwork
from pt_neural.rankers.readers.word_sequences import WordGroups, WordTexts


def explain_words(model: ARCI, query: str, text: Document) -> "WordSumExplanation":
    """Show what each word of the query and of the document adds to the score.

    ARC-I has convolutions, maxima, ReLU and linear layers, so its score is piecewise linear in the vectors of the
    words. The contribution of an occurrence is the product of its vector and the slope of the score. On the linear
    piece that a pair lies on, the score is the sum of all contributions and of what biases add. Words without a vector
    add nothing.

    Args:
        model: The model, fitted. Texts are read from the arguments, even if it has a forward index or representations.
        query: The query's text.
        text: The document's text, or a dict of its fields.

    Returns:
        An explanation of the words of both sides. Words that the model does not read have a contribution of 0.

    Example::

        explanation = pn.explain(arc_i, "pairwise distance", text)
        explanation.to_frame().nlargest(5, "contribution")
        explanation.biases
    """
    network = model._fitted()
    query, text = both_texts(model, query, text)
    score, *contributions = word_contributions(network, read_pair(model, query, text))
    sides = [word_occurrences(query, "query", text), word_occurrences(text, "document", query)]
    for words, found in zip(sides, contributions, strict=True):
        words["contribution"] = np.pad(found, (0, len(words) - len(found)))
    limits = limits_of(model, text)
    return WordSumExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=score,
        note=f"What a word adds to the score. {SHADES_NOTE}",
        words=pd.concat(sides, ignore_index=True),
        shades=np.concatenate([shades(words["contribution"].to_numpy()) for words in sides]),
        per="occurrence",
        read={side: read_end(both, limits[side]) for side, both in zip(SIDES, (query, text), strict=True)},
        biases=score - float(sum(found.sum() for found in contributions)),
    )


def word_contributions(network: ARCINetwork, groups: WordGroups) -> tuple[float, np.ndarray, np.ndarray]:
    """The score of one query and one document, and what each word of both adds to it, float64 of shape (words,)."""
    texts = [_apart(one) for one in (groups.queries, groups.documents)]
    with torch.no_grad():
        vectors = [network.vectors(one.ids).requires_grad_() for one in texts]
    with torch.enable_grad():
        score = network.compare(network.query(vectors[0], texts[0]), network.document(vectors[1], texts[1]))
        slopes = torch.autograd.grad(score.sum(), vectors, materialize_grads=True)
    products = [(slope * one.detach()).sum(1) for slope, one in zip(slopes, vectors, strict=True)]
    return score.item(), *(one.double().cpu().numpy() for one in products)


def _apart(texts: WordTexts) -> WordTexts:
    """The same texts with a vector for each occurrence of a word."""
    return texts._replace(ids=texts.ids[texts.words], words=torch.arange(len(texts.words), device=texts.words.device))


@dataclass(frozen=True, repr=False)
class WordSumExplanation(WordExplanation):
    """What each word adds to a score that is the sum of these contributions and of what biases add.

    Attributes:
        biases: What biases add.
    """

    biases: float = field(kw_only=True)

    def _total(self) -> str:
        of_sides = self.words.groupby("side")["contribution"].sum()
        addends = {f"words of the {side}": of_sides.get(side, 0.0) for side in SIDES}
        return self._sum_of({**addends, "biases": self.biases})
