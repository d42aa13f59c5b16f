"""From candidates and judgements to training groups with their texts."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pt_neural._frames import require_columns, with_numeric_labels
from pt_neural.text import ForwardIndex, frame_texts, tokenise
from pt_neural.training.groups import Groups, Pairs, Report, make_groups, positives_alone
from pt_neural.training.settings import Training


@dataclass(frozen=True)
class Examples:
    """Training groups with the texts that their numbers stand for.

    Attributes:
        groups: The groups.
        query_texts: The text of each query.
        document_texts: The text of each document; None if they are those of a forward index, in its order.
        report: What was used and dropped.
    """

    groups: Groups
    query_texts: list[str]
    document_texts: list[str] | None
    report: Report


def make_examples(
    candidates: pd.DataFrame,
    qrels: pd.DataFrame,
    training: Training | None,
    *,
    fields: Sequence[str],
    documents: ForwardIndex | None = None,
    mark_ends: bool = False,
) -> Examples:
    """Make training groups from the candidates that a first stage retrieved and the judgements.

    With a forward index, relevant documents that were not retrieved are trained on as well, and random negatives come
    from the whole collection. Without one, the documents are those of all candidates, whichever query retrieved them.

    Args:
        candidates: Frame with ``qid, query, docno`` and, without a forward index, text.
        qrels: Frame with ``qid, docno, label``.
        training: Where negatives come from, and which grades count; None for groups without negatives.
        fields: Text columns of the candidates.
        documents: Forward index of the collection.
        mark_ends: Whether texts tell where their fields end.

    Raises:
        ValueError: If columns are missing, if all queries or all texts are empty, or if there is nothing to train on;
            the message says why.
    """
    require_columns(candidates, ("qid", "query", "docno"), "the frame to fit on")
    qrels = with_numeric_labels(qrels, "qrels")
    if candidates.empty:
        raise ValueError("there are no candidates to fit on: the frame is empty")
    first = candidates.drop_duplicates("qid")
    qids = pd.Index(first["qid"])
    if documents is None:
        distinct = candidates.drop_duplicates("docno")
        docnos, texts = pd.Index(distinct["docno"]), frame_texts(distinct, fields, mark_ends=mark_ends)
    else:
        docnos, texts = pd.Index(documents.docnos), None
    queries = [text if isinstance(text, str) else "" for text in first["query"]]
    _require_words(queries, texts, documents, fields)
    pairs = Pairs(candidates, qrels, qids, docnos)
    groups, report = positives_alone(pairs) if training is None else make_groups(pairs, training)
    return Examples(groups, queries, texts, report)


def _require_words(
    queries: list[str], texts: list[str] | None, documents: ForwardIndex | None, fields: Sequence[str]
) -> None:
    """Raise ValueError if all queries or all documents are empty."""
    if not any(map(tokenise, queries)):
        raise ValueError("no query has a word: is the text of the queries in the column 'query'?")
    if texts is None:
        if not len(documents.all().terms):
            raise ValueError(f"no document of {documents!r} has a word; build it over the fields that hold the text")
    elif not any(map(tokenise, texts)):
        raise ValueError(
            f"no candidate has a word in {' or '.join(fields)}: name the fields that hold the text with fields=[...]"
        )


def digest(settings: Any, frames: Iterable[pd.DataFrame | None], *, fields: Sequence[str]) -> str:
    """Changes with all that a training run is made from.

    Args:
        settings: Those of the model, as JSON can hold them.
        frames: Candidates and judgements; None for those that there are not.
        fields: Text columns of the candidates.
    """
    total = hashlib.sha256(json.dumps([settings, list(fields)], sort_keys=True).encode())
    for number, frame in enumerate(frames):
        for column in ("qid", "query", "docno", "label", *fields):
            if frame is not None and column in frame:
                total.update(f"{number} {column}".encode())
                total.update(pd.util.hash_pandas_object(frame[column], index=False).to_numpy().tobytes())
    return total.hexdigest()
