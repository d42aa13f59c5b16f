"""Training groups: pairs of a query and a relevant document, and the candidates for their negatives."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pt_neural.text import PackedSequences
from pt_neural.text.packed import offsets_of
from pt_neural.training.report import Report
from pt_neural.training.settings import Training

_NOT_RETRIEVED = "relevant documents that are not among the candidates"


@dataclass(frozen=True)
class Groups:
    """Groups of a query, a relevant document and a pool of negatives; queries and documents are numbers."""

    queries: np.ndarray  # (groups,), int64
    positives: np.ndarray  # (groups,), int64: the relevant document
    labels: np.ndarray  # (groups,), float32: its grade
    relevant: np.ndarray  # all pairs judged relevant, as sorted numbers query * num_documents + document
    num_documents: int  # that negatives may be drawn from
    pools: np.ndarray | None = None  # (groups,), int64: the pool of negatives; None if they are not candidates
    pool_documents: PackedSequences | None = None  # one sequence of documents per pool
    pool_labels: np.ndarray | None = None  # float32: the grade of each document in pool_documents.terms

    def __len__(self) -> int:
        return len(self.queries)

    def is_relevant(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Whether documents were judged relevant to queries; the arrays are broadcast together."""
        return _contains(self.relevant, queries * self.num_documents + documents)


class Pairs:
    """Candidates (qid, docno) and judgements (qid, docno, label) as numbers, each (query, document) pair once.

    If a pair is judged twice, the first judgement counts. ``qids`` and ``docnos`` give the numbers.
    """

    def __init__(self, candidates: pd.DataFrame, qrels: pd.DataFrame, qids: pd.Index, docnos: pd.Index):
        self.qids, self.num_documents = qids, len(docnos)
        self.candidates = np.unique(self._keys(qids, candidates["qid"], docnos, candidates["docno"])[0])
        judged, known = self._keys(qids, qrels["qid"], docnos, qrels["docno"])
        judged, order = np.unique(judged, return_index=True)
        self.judged, self.labels = judged, qrels["label"].to_numpy(dtype=np.float32)[known][order]
        self.unjudged_queries = len(qids) - int(qids.isin(qrels["qid"]).sum())
        self.unretrieved_queries = int((~pd.Index(qrels["qid"].unique()).isin(qids)).sum())
        wanted = (qrels["label"] > 0).to_numpy() & qrels["qid"].isin(qids).to_numpy()
        self.unknown_positives = int((wanted & ~known).sum())

    def _keys(self, qids: pd.Index, rows: pd.Series, docnos: pd.Index, names: pd.Series) -> tuple[np.ndarray, ...]:
        queries, documents = qids.get_indexer(rows), docnos.get_indexer(names)
        known = (queries >= 0) & (documents >= 0)
        return queries[known].astype(np.int64) * self.num_documents + documents[known], known

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
    queries, documents, labels = queries[usable], documents[usable], labels[usable]
    in_pools = () if pools is None else (pools.group_pools[usable], *pools.content)
    return Groups(queries, documents, labels, relevant, pairs.num_documents, *in_pools), report


def _have_negatives(
    pairs: Pairs, relevant: np.ndarray, queries: np.ndarray, documents: np.ndarray, training: Training
) -> np.ndarray:
    """Whether each group has any document that may be a negative."""
    relevant_queries, relevant_documents = pairs.split(relevant)
    num_drawn_from = pairs.num_documents
    if training.negatives == "in-batch":  # drawn from the documents of groups only
        num_drawn_from = len(np.unique(documents))
        relevant_queries = relevant_queries[np.isin(relevant_documents, documents)]
    return np.bincount(relevant_queries, minlength=len(pairs.qids))[queries] < num_drawn_from


def positives_alone(pairs: Pairs) -> tuple[Groups, Report]:
    """One group for each query and relevant document, for models that learn without negatives."""
    _require_relevant(pairs)
    relevant, labels = pairs.judged[pairs.labels > 0], pairs.labels[pairs.labels > 0]
    queries, documents = pairs.split(relevant)
    dropped = {**_without_relevant(pairs, relevant), _NOT_RETRIEVED: pairs.unknown_positives}
    report = Report(len(np.unique(queries)), len(relevant), pairs.num_documents, "no", dropped)
    return Groups(queries, documents, labels, relevant, pairs.num_documents), report


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
    num_judged, with_relevant = len(pairs.qids) - pairs.unjudged_queries, len(np.unique(pairs.split(relevant)[0]))
    return {
        "queries without judgements": pairs.unjudged_queries,
        "judged queries without candidates": pairs.unretrieved_queries,
        "queries without a relevant document among the candidates": num_judged - with_relevant,
    }


class _Pools:
    """The candidates that may be negatives, for each query and each grade of its positives."""

    def __init__(self, pairs: Pairs, queries: np.ndarray, labels: np.ndarray, training: Training):
        kinds, self.group_pools = np.unique(np.stack([queries, labels]), axis=1, return_inverse=True)
        source = pairs.candidates if training.negatives == "retrieved" else pairs.judged
        candidate_queries, candidate_documents = pairs.split(source)
        candidate_labels = pairs.labels_of(source)
        order = np.random.default_rng(training.seed).permutation(len(source))  # since a pool is read in stretches
        order = order[np.argsort(candidate_queries[order], kind="stable")]
        bounds = np.searchsorted(candidate_queries[order], [kinds[0], kinds[0] + 1])
        chosen = []
        for grade, start, end in zip(kinds[1], *bounds, strict=True):
            rows = order[start:end]
            chosen.append(rows[_may_be_negative(candidate_labels[rows], grade, training)])
        rows = np.concatenate(chosen)
        self.lengths = np.array(list(map(len, chosen)), dtype=np.int64)
        documents = PackedSequences(candidate_documents[rows], offsets_of(self.lengths))
        self.content = documents, np.nan_to_num(candidate_labels[rows]).astype(np.float32)


def _may_be_negative(labels: np.ndarray, grade: float, training: Training) -> np.ndarray:
    if training.negatives == "retrieved":
        return ~(labels > 0)
    if training.grades is not None:
        return np.isin(labels, training.grades[int(grade)])
    return labels < grade


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
