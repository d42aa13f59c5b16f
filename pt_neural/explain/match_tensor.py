"""Which cells and channels of the match tensor carried a score of Match-Tensor or of its hybrid with SSM."""

import numpy as np
import pandas as pd

from pt_neural.explain.match_tensor_cells import contributions
from pt_neural.explain.match_tensor_explanation import MatchTensorExplanation
from pt_neural.models.match_tensor_ranker import MatchTensorRanker
from pt_neural.rankers.pairs import moved
from pt_neural.text import Vocabulary, token_spans
from pt_neural.text.fields import FIELD_END


def explain_match_tensor(model: MatchTensorRanker, query: str, text: str) -> MatchTensorExplanation:
    """Tell what each cell of the match tensor, a query word beside a document word, adds to the score.

    From the match tensor on, the network is piecewise linear, so that the score s is a sum: with t(i, j, c) the number
    of query word i, document word j and channel c,

        s = sum over i, j and c of t(i, j, c) * ds/dt(i, j, c) + what biases add.

    A term of the sum is the contribution of a channel in a cell; those of a cell, or of a channel, are added up. Where
    several places share a maximum, it is divided among them. For :class:`~pt_neural.MatchTensorSSM` there is one more
    addend: what the comparison of query and document as wholes adds, as in SSM.

    The contributions tell which numbers made the score what it is. They do not tell what it would be without a word,
    which changes the states of those around it too; ``method="drop"`` does.

    Args:
        model: The model, fitted. Texts are read from the arguments, also where it has a forward index or
            representations.
        query: The query's text.
        text: The document's text. Fields end with ``FIELD_END``, as :func:`~pt_neural.text.join_fields` makes them
            with ``mark_ends``; where there is none, the text is the last field.

    Returns:
        An explanation; its frame is empty where query or document has no words.

    Example::

        explanation = pn.explain(match_tensor, "pairwise distance", {"title": title, "text": text})
        explanation.to_frame().nlargest(5, "contribution")
        explanation.plot()
    """
    network = model._fitted()
    before = "" if FIELD_END in text or not model.boundaries else FIELD_END * (len(model.fields) - 1)
    sequences, terms = model._pack([before + text])
    pairs = model._pairs([query], sequences, Vocabulary(terms), model.vectors_of_words)
    inputs = moved(pairs(np.array([0]), np.array([[0]])), next(network.parameters()).device)
    found = contributions(network, inputs)
    words = {
        "query": _words(token_spans(query)[: found.cells.shape[0]]),
        "document": _document_words(model, before, text, pairs.documents.sequences[0] - len(terms)),
    }
    exact = words["query"]["word"].to_numpy()[:, None] == words["document"]["word"].to_numpy()
    shown = text.replace(FIELD_END, "\n")
    return MatchTensorExplanation(
        model=repr(model),
        query=query,
        text=shown,
        score=found.cells.sum() + found.wholes + found.biases,
        note=(
            "Blue: words whose cells of the match tensor raise the score; purple and underlined: words whose cells "
            "lower it; the stronger the colour, the more, within each text. Outlined: words of query and document."
        ),
        query_words=words["query"].assign(match=exact.any(axis=1)),
        document_words=words["document"].assign(match=exact.any(axis=0)),
        contributions=found.cells,
        match=exact,
        wholes=found.wholes if model.compares_wholes else None,
        biases=found.biases,
    )


def _words(spans: list[tuple[str, int, int]]) -> pd.DataFrame:
    words = pd.DataFrame(spans, columns=["word", "start", "end"])
    return words.astype({"word": object, "start": "int64", "end": "int64"}).assign(boundary=False)


def _document_words(model: MatchTensorRanker, before: str, text: str, numbers: np.ndarray) -> pd.DataFrame:
    """The words and boundaries that the model reads, in order.

    Args:
        model: The model.
        before: What stands before the text as the model reads it.
        text: The text.
        numbers: Negative for words; 0 for the boundary after the last field, and one more for those before each.
    """
    words = iter(token_spans(text))
    ends = [place for place, character in enumerate(before + text) if character == FIELD_END]
    starts = np.clip(np.array([len(before + text), 0, *(end + 1 for end in ends)]) - len(before), 0, None)
    names = ["[end]", *(f"[{field}]" for field in model.fields)]
    spans = [
        next(words) if number < 0 else (names[number], int(starts[number]), int(starts[number])) for number in numbers
    ]
    return _words(spans).assign(boundary=numbers >= 0)
