"""The change of an interaction ranker's score when one occurrence of a word is dropped (Duet paper, Figure 1)."""

from copy import copy

import numpy as np
import pandas as pd

from pt_neural.explain import dropping
from pt_neural.explain.dropping import LEGEND, checked_terms, left_out
from pt_neural.explain.explanation import SIDES, Side
from pt_neural.explain.parts import PartsExplanation
from pt_neural.explain.words import word_occurrences
from pt_neural.models.duet.duet import Duet, DuetParts
from pt_neural.rankers.interaction import Interaction
from pt_neural.rankers.kept_documents import KeptDocuments
from pt_neural.text import tokenise

LIMITS: dict[Side, str] = {"query": "query_terms", "document": "document_terms"}  # what models call them


def explain_occurrences(model: Interaction, query: str, text: str, *, terms: int = 200) -> PartsExplanation:
    """Drop each word of the query or of the document by itself, and score what is left (Duet paper, Figure 1).

    The contribution of an occurrence is the score of the full text minus that of the text without it. The words after
    it move up by one place, which models that look at positions notice, and where a text is longer than what the model
    reads, one more word is read. For a Duet, whose score joins those of a local and a distributed model, there are
    contributions to each part too: drops of the part's output before its tanh.

    A long text would have to be scored as often, so only some of its words are dropped: first those that the other
    text has as well, then those that come first.

    Args:
        model: The ranker. Texts are read from the arguments, also where it has a forward index or representations.
        query: The query's text.
        text: The document's text.
        terms: Occurrences of each side to drop at most; the others have a contribution of NaN. Those that the model
            does not read have a contribution of 0.

    Returns:
        An explanation of the words of both sides.

    Raises:
        ValueError: If ``terms`` is below 1.
    """
    terms = checked_terms(terms)
    words = {"query": word_occurrences(query, "query", text), "document": word_occurrences(text, "document", query)}
    limits = {side: getattr(model, name, None) or len(words[side]) for side, name in LIMITS.items()}
    dropped = {side: _chosen(words[side]["match"].to_numpy()[: limits[side]], terms) for side in SIDES}
    # One word more than the model reads, as one is dropped.
    tokens = {side: words[side]["word"].tolist()[: limits[side] + 1] for side in SIDES}
    scores = _scores(_reading_texts(model), _pairs(tokens, dropped))
    rests = dict(zip(SIDES, np.split(scores.to_numpy()[1:], [len(dropped["query"])]), strict=True))
    for side in SIDES:
        losses = np.full((len(words[side]), scores.shape[1]), np.nan)
        losses[limits[side] :] = 0
        losses[dropped[side]] = scores.to_numpy()[0] - rests[side]
        words[side][scores.columns.tolist()] = losses
    whole = scores.iloc[0]
    return PartsExplanation(
        model=repr(model),
        query=query,
        text=text,
        score=float(whole["contribution"]),
        note=_note({side: min(limits[side], len(words[side])) for side in SIDES}, dropped),
        words=pd.concat(words.values(), ignore_index=True),
        parts=whole.drop("contribution").to_dict(),
    )


def _chosen(matches: np.ndarray, terms: int) -> np.ndarray:
    """Places of the words to drop, in the order that :func:`explain_occurrences` tells."""
    return np.argsort(~matches, kind="stable")[:terms]


def _pairs(tokens: dict[Side, list[str]], dropped: dict[Side, np.ndarray]) -> list[tuple[str, str]]:
    """Query and document in full, then with what is left of the query, then with what is left of the document."""
    query, document = (" ".join(tokens[side]) for side in SIDES)
    rests = {side: [_without(tokens[side], place) for place in dropped[side]] for side in SIDES}
    return [
        (query, document),
        *((rest, document) for rest in rests["query"]),
        *((query, rest) for rest in rests["document"]),
    ]


def _without(tokens: list[str], place: int) -> str:
    return " ".join(tokens[:place] + tokens[place + 1 :])


def _reading_texts(model: Interaction) -> Interaction:
    """The model as it scores texts, wherever it reads documents from."""
    reader = copy(model)
    reader.documents, reader.verbose = None, False
    if isinstance(reader, KeptDocuments):
        reader.representations = None
    return reader


def _scores(model: Interaction, pairs: list[tuple[str, str]]) -> pd.DataFrame:
    """Scores of the pairs as ``contribution``, and the outputs of the model's parts if it has several."""
    names = np.arange(len(pairs)).astype(str)
    frame = pd.DataFrame(pairs, columns=["query", model.fields[-1]]).assign(qid=names, docno=names)
    size = max(1, dropping.WORDS_A_BATCH // max(1, len(tokenise(pairs[0][1]))))
    batches = [frame[start : start + size] for start in range(0, len(frame), size)]
    if isinstance(model, Duet):
        values = [np.stack(DuetParts(model, "duet", *model.parts).transform(batch)["features"]) for batch in batches]
        return pd.DataFrame(np.concatenate(values), columns=["contribution", *model.parts])
    values = [model.transform(batch)["score"].to_numpy() for batch in batches]
    return pd.DataFrame({"contribution": np.concatenate(values)})


def _note(read: dict[Side, int], dropped: dict[Side, np.ndarray]) -> str:
    omitted = "".join(left_out(side, read[side], len(dropped[side]), "words that the model reads") for side in SIDES)
    return f"Bold: words that query and document share. {LEGEND}{omitted}"
