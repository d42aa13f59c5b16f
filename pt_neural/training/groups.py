"""Training groups: pairs of a query and a relevant document, and the candidates for their negatives."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pt_neural._frames import as_texts, require_columns
from pt_neural.text import PackedSequences
from pt_neural.text.packed import offsets_of
from pt_neural.training.report import Report
from pt_neural.training.settings import Training

ROWS = 2**16  # candidates or judgements that are looked at together
_NOT_RETRIEVED = "relevant documents that are not among the candidates"


@dataclass(frozen=True)
class Groups:
    """Groups of a query, a relevant document and a pool of negatives; queries and documents are numbers."""

    queries: np.ndarray  # (groups,), int32 or int64
    positives: np.ndarray  # (groups,), int32 or int64: the relevant document
    labels: np.ndarray  # (groups,), float32: its grade
    relevant: np.ndarray  # all pairs judged relevant, as sorted numbers query * num_documents + document
    num_documents: int  # that negatives may be drawn from
    pools: np.ndarray | None = None  # (groups,), int32 or int64: the pool of negatives; None if they are not candidates
    pool_documents: PackedSequences | None = None  # one sequence of documents per pool, in random order
    pool_labels: np.ndarray | None = None  # float32: the grade of each document in pool_documents.terms

    def __len__(self) -> int:
        return len(self.queries)

    def is_relevant(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Whether documents were judged relevant to queries; the arrays are broadcast together."""
        return _contains(self.relevant, queries.astype(np.int64) * self.num_documents + documents)


class Pairs:
    """Candidates (qid, docno) and judgements (qid, docno, label) as numbers, each (query, document) pair once.

    If a pair is judged twice, the first judgement counts. Queries are those with judgements and candidates, numbered in
    the order of the candidates.

    Args:
        blocks: Candidates as frames with ``qid``, ``query`` and ``docno``, each with whole queries; read once, one at a
            time.
        qrels: Judgements.
        rows: The numbers of documents by their docnos, -1 for unknown ones.
        num_documents: The number of documents.
        retrieved: Whether to keep the candidates, and not only their queries.
    """

    def __init__(
        self,
        blocks: Iterable[pd.DataFrame],
        qrels: pd.DataFrame,
        rows: Callable[[pd.Series], np.ndarray],
        num_documents: int,
        *,
        retrieved: bool,
    ):
        self.num_documents, self._rows = num_documents, rows
        codes, distinct = pd.factorize(qrels["qid"])
        judged = pd.Index(distinct, dtype=object)  # strings of Arrow would be converted for each block
        numbers = np.full(len(judged) + 1, -1, dtype=np.int64)  # of judged queries; the last is that of all others
        self.query_texts: list[str] = []
        self.unjudged_queries, chunks = 0, [np.empty(0, dtype=np.int64)]
        for block in blocks:
            require_columns(block, ("qid", "query", "docno"), "the frame to fit on")
            rows_of_queries, qids = pd.factorize(block["qid"])
            places = np.append(judged.get_indexer(qids), -1)
            self.unjudged_queries += int((places[:-1] < 0).sum())
            new = np.flatnonzero((places >= 0) & (numbers[places] < 0))
            numbers[places[new]] = len(self.query_texts) + np.arange(len(new))
            texts = block["query"].iloc[np.unique(rows_of_queries, return_index=True)[1][-len(qids) :][new]]
            self.query_texts += as_texts(texts)
            if retrieved:
                chunks.append(np.unique(self._keys(numbers[places[rows_of_queries]], block["docno"])[0]))
        self.candidates = np.concatenate(chunks)
        if (self.candidates[1:] <= self.candidates[:-1]).any():  # a query in several blocks
            self.candidates = np.unique(self.candidates)
        self.unretrieved_queries = int((numbers[:-1] < 0).sum())
        queries, labels = numbers[codes], qrels["label"].to_numpy(dtype=np.float32)
        keys, known = self._keys(queries, qrels["docno"])
        self.judged, order = np.unique(keys, return_index=True)
        self.labels = labels[known][order]
        self.unknown_positives = int(((labels > 0) & (queries >= 0) & ~known).sum())

    def _keys(self, queries: np.ndarray, docnos: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """Pairs as numbers, without unknown ones, and which are known; docnos are looked up some at a time."""
        known, keys = np.empty(len(queries), dtype=bool), [np.empty(0, dtype=np.int64)]
        for start in range(0, len(queries), ROWS):
            block = slice(start, start + ROWS)
            documents = self._rows(docnos.iloc[block])
            known[block] = (queries[block] >= 0) & (documents >= 0)
            keys.append((queries[block] * self.num_documents + documents)[known[block]])
        return np.concatenate(keys), known

    @property
    def num_queries(self) -> int:
        """Number of queries."""
        return len(self.query_texts)

    def split(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The queries and the documents of pairs."""
        return keys // self.num_documents, keys % self.num_documents

    def labels_of(self, keys: np.ndarray) -> np.ndarray:
        """The grades of pairs; NaN for pairs without a judgement."""
        labels, judged = np.full(len(keys), np.nan, dtype=np.float32), _contains(self.judged, keys)
        labels[judged] = self.labels[np.searchsorted(self.judged, keys[judged])]
        return labels


def make_groups(pairs: Pairs, training: Training) -> tuple[Groups, Report]:
    """One group for each query and relevant document with negatives; a ValueError says why if there are none."""
    relevant = pairs.judged[pairs.labels > 0]
    positive, labels = relevant, pairs.labels[pairs.labels > 0]
    if training.positives == "retrieved":
        retrieved = _contains(pairs.candidates, positive)
        positive, labels = positive[retrieved], labels[retrieved]
    allowed = positive
    if training.grades is not None:
        kept = np.isin(labels, list(training.grades))
        positive, labels = positive[kept], labels[kept]
    queries, documents = pairs.split(positive)
    pools = None
    if training.negatives in ("judged", "retrieved") and len(positive):
        pools = _Pools(pairs, queries, labels, training)
        usable = pools.lengths[pools.group_pools] > 0
    else:
        usable = _have_negatives(pairs, relevant, queries, documents, training)
    report = _account(pairs, relevant, allowed, queries, usable, training)
    _require_groups(pairs, report, training)
    in_pools = () if pools is None else (_compact(pools.group_pools[usable], len(pools.lengths)), *pools.content)
    return _groups(pairs, queries[usable], documents[usable], labels[usable], relevant, *in_pools), report


def _groups(
    pairs: Pairs, queries: np.ndarray, documents: np.ndarray, labels: np.ndarray, relevant: np.ndarray, *pools: Any
) -> Groups:
    queries, documents = _compact(queries, pairs.num_queries), _compact(documents, pairs.num_documents)
    return Groups(queries, documents, labels, relevant, pairs.num_documents, *pools)


def _have_negatives(
    pairs: Pairs, relevant: np.ndarray, queries: np.ndarray, documents: np.ndarray, training: Training
) -> np.ndarray:
    """Whether each group has any document that may be a negative."""
    relevant_queries, relevant_documents = pairs.split(relevant)
    num_drawn_from = pairs.num_documents
    if training.negatives == "in-batch":  # drawn from the documents of groups only
        num_drawn_from = len(np.unique(documents))
        relevant_queries = relevant_queries[np.isin(relevant_documents, documents)]
    return np.bincount(relevant_queries, minlength=pairs.num_queries)[queries] < num_drawn_from


def positives_alone(pairs: Pairs) -> tuple[Groups, Report]:
    """One group for each query and relevant document, for models that learn without negatives."""
    _require_relevant(pairs)
    relevant, labels = pairs.judged[pairs.labels > 0], pairs.labels[pairs.labels > 0]
    queries, documents = pairs.split(relevant)
    dropped = {**_without_relevant(pairs, relevant), _NOT_RETRIEVED: pairs.unknown_positives}
    report = Report(len(np.unique(queries)), len(relevant), pairs.num_documents, "no", dropped)
    return _groups(pairs, queries, documents, labels, relevant), report


def _account(
    pairs: Pairs,
    relevant: np.ndarray,
    allowed: np.ndarray,
    queries: np.ndarray,
    usable: np.ndarray,
    training: Training,
) -> Report:
    """What is used; ``allowed`` are the relevant pairs that may be positives, whatever their grades."""
    with_relevant, with_allowed = (len(np.unique(pairs.split(keys)[0])) for keys in (relevant, allowed))
    with_positive, used = len(np.unique(queries)), len(np.unique(queries[usable]))
    dropped = {
        **_without_relevant(pairs, relevant),
        "queries without a relevant document that was retrieved": with_relevant - with_allowed,
        "queries without a relevant document of the wanted grades": with_allowed - with_positive,
        f"queries without {training.negatives} negatives": with_positive - used,
        _NOT_RETRIEVED: pairs.unknown_positives + len(relevant) - len(allowed),
    }
    groups = int(usable.sum())
    known = {"recipe": training.recipe, "start": training.start}
    return Report(used, groups, pairs.num_documents, training.negatives, dropped, **known)


def _without_relevant(pairs: Pairs, relevant: np.ndarray) -> dict[str, int]:
    """Numbers of queries that no training can use, by reason."""
    with_relevant = len(np.unique(pairs.split(relevant)[0]))
    return {
        "queries without judgements": pairs.unjudged_queries,
        "judged queries without candidates": pairs.unretrieved_queries,
        "queries without a relevant document among the candidates": pairs.num_queries - with_relevant,
    }


class _Pools:
    """The candidates that may be negatives, for each query and each grade of its positives."""

    def __init__(self, pairs: Pairs, queries: np.ndarray, labels: np.ndarray, training: Training):
        kinds, self.group_pools = np.unique(np.stack([queries, labels]), axis=1, return_inverse=True)
        queries, grades = kinds[0].astype(np.int64), kinds[1]
        source = pairs.candidates if training.negatives == "retrieved" else pairs.judged
        starts, ends = (np.searchsorted(source, (queries + after) * pairs.num_documents) for after in (0, 1))
        blocks = (ends - starts).cumsum() // ROWS
        parts = [([], [], [])]
        for number, block in enumerate(np.split(np.arange(len(queries)), np.flatnonzero(np.diff(blocks)) + 1)):
            lengths = (ends - starts)[block]
            pools = np.repeat(block, lengths)
            rows = np.repeat(starts[block] - offsets_of(lengths)[:-1], lengths) + np.arange(len(pools))
            found = pairs.labels_of(source[rows])
            may_be = _may_be_negative(found, grades[pools], training)
            rows, pools, found = rows[may_be], pools[may_be], found[may_be]
            random = np.random.default_rng([training.seed, number]).random(len(rows))
            order = np.lexsort((random, pools))  # since a pool is read in stretches
            lengths = np.bincount(pools - block[0], minlength=len(block))
            documents = _compact(pairs.split(source[rows[order]])[1], pairs.num_documents)
            parts.append((lengths, documents, np.nan_to_num(found[order])))
        lengths, documents, labels = (np.concatenate(arrays) for arrays in zip(*parts[1:], strict=True))
        self.lengths = lengths
        self.content = PackedSequences(documents, offsets_of(lengths)), labels


def _may_be_negative(labels: np.ndarray, grades: np.ndarray, training: Training) -> np.ndarray:
    """Whether candidates with these labels may be negatives of positives with these grades."""
    if training.negatives == "retrieved":
        return ~(labels > 0)
    if training.grades is None:
        return labels < grades
    may_be = np.zeros(len(labels), dtype=bool)
    for grade, lower in training.grades.items():
        may_be |= (grades == grade) & np.isin(labels, lower)
    return may_be


def _compact(numbers: np.ndarray, limit: int) -> np.ndarray:
    """Numbers below a limit, in four bytes each if they fit."""
    return numbers.astype(np.int32) if limit <= 2**31 else numbers


def _require_groups(pairs: Pairs, report: Report, training: Training) -> None:
    if report.groups:
        return
    _require_relevant(pairs)
    if training.grades is not None and not np.isin(pairs.labels, list(training.grades)).any():
        raise ValueError(f"no candidate has one of the grades {sorted(training.grades)} that grades= names")
    if training.positives == "retrieved" and not np.isin(pairs.judged[pairs.labels > 0], pairs.candidates).any():
        raise ValueError(
            "no query has a relevant document among its candidates: retrieve more candidates, or train on all relevant "
            "documents with Training(positives='all')"
        )
    raise ValueError(
        f"no query has {training.negatives} negatives: retrieve more candidates, or choose other negatives, such as "
        f"Training(negatives={'retrieved' if training.negatives == 'random' else 'random'!r})"
    )


def _require_relevant(pairs: Pairs) -> None:
    if not len(pairs.judged):
        raise ValueError(
            "no judgement in qrels is for a query and a document of the frame: are they of the same collection and "
            "split, and are qid and docno strings in both?"
        )
    if not (pairs.labels > 0).any():
        raise ValueError("no candidate is judged relevant (label above 0): there are no positives to train on")


def _contains(sorted_keys: np.ndarray, keys: np.ndarray) -> np.ndarray:
    if not len(sorted_keys):
        return np.zeros(np.shape(keys), dtype=bool)
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return sorted_keys[places] == keys
