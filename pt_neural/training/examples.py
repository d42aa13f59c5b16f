"""From candidates and judgements to training groups with their texts, and to the dev measure."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pt_neural._evaluation import RunEvaluator
from pt_neural._frames import require_columns, with_numeric_labels
from pt_neural.text import ForwardIndex, frame_texts, tokenise
from pt_neural.text.tokens import FIELD_END
from pt_neural.training.groups import Groups, Pairs, make_groups, positives_alone
from pt_neural.training.report import Report
from pt_neural.training.settings import Training


@dataclass(frozen=True)
class Examples:
    """Training groups with the texts that their numbers stand for."""

    groups: Groups
    query_texts: list[str]
    document_texts: list[str] | None  # None if the documents are those of a forward index, in its order
    report: Report

    def seen(self, candidates: pd.DataFrame | Iterable[pd.DataFrame]) -> pd.DataFrame:
        """The candidates as a frame that changes with them; of a stream, the queries are left."""
        if isinstance(candidates, pd.DataFrame):
            return candidates
        return pd.DataFrame({"query": self.query_texts})


def make_examples(
    candidates: pd.DataFrame | Iterable[pd.DataFrame],
    qrels: pd.DataFrame,
    training: Training | None,
    *,
    fields: Sequence[str],
    documents: ForwardIndex | None = None,
    mark_ends: bool = False,
) -> Examples:
    """Make training groups from the candidates of a first stage (qid, query, docno, text) and their judgements.

    Candidates are a frame or, with a forward index, a stream of frames with whole queries, of which only numbers are
    kept. With a forward index (``documents``), relevant documents that were not retrieved are used as well, and random
    negatives come from the whole collection. Without one, the documents are the candidates of all queries. With
    ``training=None``, groups have no negatives. ``mark_ends`` marks where the fields of a text end.

    Raises:
        ValueError: If columns are missing, if all queries or all texts are empty, or if there is nothing to train on;
            the message says why.
    """
    qrels = with_numeric_labels(qrels, "qrels")
    texts, blocks = None, [candidates] if isinstance(candidates, pd.DataFrame) else _frames(candidates)
    retrieved = training is not None and "retrieved" in (training.negatives, training.positives)
    if documents is not None:
        pairs = Pairs(blocks, qrels, documents.rows, len(documents), retrieved=retrieved)
    elif isinstance(candidates, pd.DataFrame):
        require_columns(candidates, ("qid", "query", "docno"), "the frame to fit on")
        docnos, texts = _documents(candidates, fields, mark_ends=mark_ends)
        pairs = Pairs(blocks, qrels, docnos.get_indexer, len(docnos), retrieved=retrieved)
    else:
        raise ValueError("candidates that come as a stream of frames need a forward index: set model.documents")
    if not pairs.num_queries + pairs.unjudged_queries:
        raise ValueError("there are no candidates to fit on: the frame is empty")
    if pairs.num_queries:
        _require_words(pairs.query_texts, texts, documents, fields)
    groups, report = positives_alone(pairs) if training is None else make_groups(pairs, training)
    return Examples(groups, pairs.query_texts, texts, report)


def _documents(candidates: pd.DataFrame, fields: Sequence[str], *, mark_ends: bool) -> tuple[pd.Index, list[str]]:
    """The docnos and the texts of the documents; ValueError if rows of one have different texts.

    A row without text stands for the document whose text other rows have.
    """
    known = [field for field in fields if field in candidates]
    documents, _ = pd.factorize(candidates["docno"], use_na_sentinel=False)
    _, firsts = np.unique(documents, return_index=True)
    differs = np.zeros(len(candidates), dtype=bool)
    for field in known:
        column = np.array([text if isinstance(text, str) else None for text in candidates[field]], dtype=object)
        differs |= column != column[firsts][documents]
    distinct = candidates.iloc[np.union1d(firsts, np.flatnonzero(differs))]
    texts = pd.Series(frame_texts(distinct, fields, mark_ends=mark_ends), distinct["docno"], dtype=object)
    if texts.index.is_unique:
        return texts.index, texts.tolist()
    with_text = texts[texts.str.strip(" " + FIELD_END) != ""]
    with_text = with_text[~pd.MultiIndex.from_arrays([with_text.index, with_text]).duplicated()]
    if not with_text.index.is_unique:
        docno = with_text.index[with_text.index.duplicated()][0]
        raise ValueError(
            f"docno {docno!r} has several texts in {' and '.join(known)}, and judgements are of docnos: give each "
            "passage or summary a docno of its own, also in the qrels"
        )
    docnos = texts.index.drop_duplicates()
    return docnos, with_text.reindex(docnos, fill_value="").tolist()


def _frames(candidates: Iterable[pd.DataFrame]) -> Iterable[pd.DataFrame]:
    if not isinstance(candidates, Iterable):
        raise TypeError(f"candidates must be a frame or a stream of frames, not {candidates!r:.80}")
    return candidates


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


def dev_evaluator(
    frame: pd.DataFrame, qrels: pd.DataFrame | None, training: Training
) -> tuple[pd.DataFrame, RunEvaluator]:
    """The dev candidates to score, and what turns their scores into the dev measure of each query.

    Raises:
        ValueError: If columns or judgements are missing, if grades are not whole numbers, or if no candidate is
            relevant, so that the measure would be the same for all models.
    """
    if qrels is None:
        raise ValueError("dev candidates need dev qrels: fit(train, train_qrels, dev, dev_qrels)")
    require_columns(frame, ("qid", "query", "docno"), "the dev frame")
    qrels = with_numeric_labels(qrels, "dev qrels")
    if (fractions := qrels.loc[qrels["label"] % 1 != 0, "label"]).size:
        raise ValueError(
            f"dev qrels has {len(fractions)} labels that are not whole numbers, such as {fractions.iloc[0]}, and "
            "measures only take whole grades; round them, or multiply them"
        )
    qrels = qrels.astype({"qid": str, "docno": str, "label": int})  # the types that measures take
    rows = frame[["qid", "docno"]].astype(str)
    qids = rows.loc[rows["qid"].isin(qrels["qid"]), "qid"].drop_duplicates()
    if qids.empty:
        raise ValueError("no dev query has a judgement: are dev candidates and dev qrels of the same split?")
    if training.dev_queries is not None:
        qids = qids.sample(min(training.dev_queries, len(qids)), random_state=training.seed)
    used = rows["qid"].isin(qids)
    if rows[used].merge(qrels[qrels["label"] > 0], on=["qid", "docno"]).empty:
        raise ValueError(
            "no dev candidate is judged relevant (label above 0), so the dev measure would be the same after every "
            "epoch: are dev candidates and dev qrels of the same split and collection?"
        )
    return frame[used], RunEvaluator(rows[used], qrels, qids, training.dev_measure)


def digest(settings: Any, frames: Iterable[pd.DataFrame | None], *, fields: Sequence[str]) -> str:
    """A hash of all that a training run depends on: settings, candidates and judgements, with text in ``fields``."""
    total = hashlib.sha256(json.dumps([settings, list(fields)], sort_keys=True).encode())
    for number, frame in enumerate(frames):
        for column in ("qid", "query", "docno", "label", *fields):
            if frame is not None and column in frame:
                total.update(f"{number} {column}".encode())
                total.update(pd.util.hash_pandas_object(frame[column], index=False).to_numpy().tobytes())
    return total.hexdigest()
