"""Queries and judgements made from a collection alone, to train rankers where nobody has asked or judged anything."""

import csv
import gzip
import hashlib
import json
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_choice, checked_number
from pt_neural._artifacts import atomic_directory
from pt_neural._frames import require_columns
from pt_neural.datasets.documents import read_documents
from pt_neural.datasets.folder import FolderDataset
from pt_neural.text import tokenise
from pt_neural.text.tokens import token_spans

Kind = Literal["title", "sentence", "span", "anchor", "bm25"]
MAX_SHARED = 10  # a query of more documents than that is too vague to be one
ANCHORS = "anchors"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*\n\s*")


def pseudo_queries(
    corpus: Iterable[Mapping[str, Any]] | pd.DataFrame,
    kind: Kind = "sentence",
    *,
    title: str = "title",
    text: str = "text",
    min_words: int = 3,
    max_words: int = 40,
    kept: float = 0.1,
    dev: float = 0.1,
    first_stage: pt.Transformer | None = None,
    queries: pd.DataFrame | Literal["title", "sentence", "span"] = "sentence",
    num_positives: int = 10,
    path: str | Path | None = None,
    seed: int = 13,
) -> "PseudoQueries":
    """Make topics and judgements from a collection alone.

    - ``"title"``: a document's title is a query for its body. The documents lose their titles, and a title that the
      body begins with is cut off there.
    - ``"sentence"``: a sentence drawn at random is a query for the rest of its document, the inverse cloze task (Lee,
      Chang & Toutanova, ACL 2019, section 4). As there, one in ten documents keeps the sentence, so that a ranker also
      learns that matching words are a good sign. A sentence ends with a line, or with a full stop, exclamation mark or
      question mark before a space.
    - ``"span"``: the same for a run of words, its length drawn from ``min_words`` to 10, where texts have no sentences
      (as in vaswani) or queries are shorter than sentences (compare the random crops of Izacard et al., TMLR 2022).
    - ``"anchor"``: the text of a link is a query for the document that it leads to. Documents have their links in a
      field ``anchors``, a list of (text, docno); documents stay as they are.
    - ``"bm25"``: weak supervision (Dehghani et al., SIGIR 2017). The first ``num_positives`` documents of a first stage
      are relevant, the first of them with the highest label, the last with label 1; documents stay as they are. The
      queries are a log without judgements, or made as above.

    A query that is too short or too long, or that more than 10 documents share, is left out; one that fewer share is
    relevant to all of them. A hash of its distinct words assigns a query to ``train`` or ``dev``. What is drawn depends
    on the seed and the docno, not on the order of the documents.

    Args:
        corpus: Documents: dicts of ``docno`` and text, or a frame. It is read once, and may be a generator; its texts
            go to disk, and only queries and judgements are held in memory.
        kind: What the queries are.
        title: The field that holds the title.
        text: The field that holds the body.
        min_words: Fewest words of a query, and of the text that is left when it is taken out.
        max_words: Most words of a query.
        kept: Share of the documents that keep their sentence or span.
        dev: Share of the queries in ``dev``.
        first_stage: For ``"bm25"``: a retriever over the same documents, such as ``index.bm25()``.
        queries: For ``"bm25"``: queries (``qid, query``), or the kind to make.
        num_positives: For ``"bm25"``: relevant documents per query.
        path: Folder to write, in the BEIR layout; by default a temporary one that is deleted with the result. A folder
            is opened again by ``pt.get_dataset("neural:folder:PATH")``.
        seed: Seed of all that is drawn.

    Returns:
        A dataset with the splits ``train`` and ``dev``, whose documents are those to train on.

    Raises:
        TypeError: If the corpus does not consist of dicts, or if there is no first stage for ``"bm25"``.
        ValueError: If an argument is out of range, or if no document gives a query; the message says why.
        FileExistsError: If ``path`` exists.

    Example::

        vaswani = pt.get_dataset("irds:vaswani")
        docs = pn.pseudo_queries(vaswani.get_corpus_iter(), kind="span")
        documents = pn.ForwardIndex.build("spans.forward", docs.get_corpus_iter())
        pairs = docs.get_topics("train").merge(docs.get_qrels("train"), on="qid")
        dssm = pn.DSSM(documents=documents).fit(pairs, docs.get_qrels("train"))
    """
    checked_choice("kind", kind, ("title", "sentence", "span", "anchor", "bm25"))
    if kind == "bm25" and not isinstance(first_stage, pt.Transformer):
        raise TypeError("weak supervision needs a first stage to label documents: first_stage=index.bm25()")
    if isinstance(queries, pd.DataFrame):
        require_columns(queries, ("qid", "query"), "queries")
    else:
        checked_choice("queries", queries, ("title", "sentence", "span"))
    maker = _Maker(
        title,
        text,
        checked_number("min_words", min_words, int, least=1),
        checked_number("max_words", max_words, int, least=min_words),
        checked_number("kept", kept, float, least=0, most=1),
        checked_number("seed", seed, int, least=0),
    )
    makers = {"title": maker.title_query, "sentence": maker.sentence_query, "span": maker.span_query}
    makers["anchor"] = maker.anchors
    source = queries if kind == "bm25" else kind
    make = makers[source] if isinstance(source, str) else maker.nothing
    dev = checked_number("dev", dev, float, least=0, most=1)
    num_positives = checked_number("num_positives", num_positives, int, least=1)
    temporary = tempfile.TemporaryDirectory(prefix="pseudo-queries-") if path is None else None
    path = Path(temporary.name) / "collection" if temporary else Path(path)
    with atomic_directory(path) as directory:
        texts, labels = _shared(_write_corpus(directory, corpus, make, maker, change=kind != "bm25"), maker)
        if make == maker.nothing:
            texts = dict(zip(queries["qid"].astype(str), queries["query"], strict=True))
        if kind == "bm25":
            labels = _weak_labels(first_stage, texts, num_positives)
        splits = {qid: _split(texts[qid], dev) for qid in labels}
        if not splits:
            raise ValueError(f"no document gives a query of kind {kind!r}: {dict(maker.counts)}")
        _write_queries(directory, texts, labels, splits)
    maker.counts.update({f"{split} queries": count for split, count in sorted(Counter(splits.values()).items())})
    return PseudoQueries(path, dict(maker.counts), temporary)


class PseudoQueries(FolderDataset):
    """A collection with queries and judgements made from it; :func:`pseudo_queries` makes one.

    Attributes:
        report: How many documents there were, how many of them gave no query and why, and how many queries each split
            has.
    """

    def __init__(self, path: Path, report: dict[str, int], temporary: tempfile.TemporaryDirectory | None = None):
        super().__init__(path)
        self.report, self._temporary = report, temporary

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {count:,}" for name, count in self.report.items())
        return f"PseudoQueries({counts})"


Made = tuple[list[tuple[str, str]], dict[str, str]]


@dataclass(frozen=True)
class _Maker:
    """Makes queries of a document; returns them with their documents, and the fields that are without them."""

    title: str
    text: str
    min_words: int
    max_words: int
    kept: float
    seed: int
    counts: Counter = field(default_factory=Counter)  # what became of the documents

    def nothing(self, docno: str, document: Mapping[str, Any]) -> Made:
        """No queries."""
        return [], {}

    def anchors(self, docno: str, document: Mapping[str, Any]) -> Made:
        """The texts of the document's links, with the documents that they lead to."""
        return [(text, str(target)) for text, target in document.get(ANCHORS) or []], {}

    def title_query(self, docno: str, document: Mapping[str, Any]) -> Made:
        """The title; all documents lose theirs, so that a title does not tell that a document is not relevant."""
        title, body = _string(document, self.title), _string(document, self.text)
        spans, head = token_spans(body), tokenise(title)
        if head and [word for word, _, _ in spans[: len(head)]] == head:
            body = body[spans[len(head) - 1][2] :].lstrip(" \t.:;,-\n")
        without = {self.title: "", self.text: body}
        if not head:
            return self._none("no title", without)
        if len(tokenise(body)) < self.min_words:
            return self._none("no text beside the title", without)
        return [(title, docno)], without

    def sentence_query(self, docno: str, document: Mapping[str, Any]) -> Made:
        """A sentence of the body."""
        body = _string(document, self.text)
        bounds = [0, *(place for end in _SENTENCE_END.finditer(body) for place in end.span()), len(body)]
        sentences = list(zip(bounds[::2], bounds[1::2], strict=True))
        words = [len(tokenise(body[start:end])) for start, end in sentences]
        fits = [
            sentence
            for sentence, count in zip(sentences, words, strict=True)
            if self.min_words <= count <= self.max_words and sum(words) - count >= self.min_words
        ]
        if not fits:
            return self._none("no sentence to take out", {})
        drawn = random.Random(f"{self.seed} {docno}")
        return self._taken_out(docno, body, *drawn.choice(fits), drawn)

    def span_query(self, docno: str, document: Mapping[str, Any]) -> Made:
        """A run of words of the body."""
        body = _string(document, self.text)
        spans, drawn = token_spans(body), random.Random(f"{self.seed} {docno}")
        most = min(self.max_words, max(10, self.min_words), len(spans) - self.min_words)
        if most < self.min_words:
            return self._none("too short to take words out", {})
        length = drawn.randint(self.min_words, most)
        first = drawn.randint(0, len(spans) - length)
        return self._taken_out(docno, body, spans[first][1], spans[first + length - 1][2], drawn)

    def _taken_out(self, docno: str, body: str, start: int, end: int, drawn: random.Random) -> Made:
        keeps = drawn.random() < self.kept
        return [(body[start:end], docno)], {} if keeps else {self.text: f"{body[:start]} {body[end:]}".strip()}

    def _none(self, why: str, fields: dict[str, str]) -> Made:
        self.counts[why] += 1
        return [], fields


def _string(document: Mapping[str, Any], field: str) -> str:
    value = document.get(field)
    return value if isinstance(value, str) else ""


def _write_corpus(
    directory: Path, corpus: Any, make: Callable[[str, Mapping[str, Any]], Made], maker: _Maker, *, change: bool
) -> list[tuple[str, str]]:
    """Write the documents, with what has changed in them if wanted; return queries and the document of each."""
    found = []
    with gzip.GzipFile(directory / "corpus.jsonl.gz", "wb", compresslevel=6, mtime=0) as file:
        for docno, document in read_documents(corpus):
            maker.counts["documents"] += 1
            fields = {name: value for name, value in document.items() if isinstance(value, str) and name != "docno"}
            made, without = make(docno, document)
            found += made
            fields |= without if change else {}
            file.write(json.dumps({"_id": docno, **fields}).encode() + b"\n")
    return found


def _shared(found: list[tuple[str, str]], maker: _Maker) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
    """The text of each query, and the labels of its documents; queries of the same words are one."""
    texts, documents = {}, defaultdict(dict)
    for query, docno in found:
        words = tokenise(query)
        qid = "p" + hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]
        if maker.min_words <= len(words) <= maker.max_words:
            texts.setdefault(qid, " ".join(query.split()))
            documents[qid][docno] = 1
        else:
            maker.counts["queries too short or too long"] += 1
    vague = {qid for qid, labels in documents.items() if len(labels) > MAX_SHARED}
    if vague:
        maker.counts[f"queries shared by more than {MAX_SHARED} documents"] += len(vague)
    kept = [qid for qid in sorted(documents) if qid not in vague]
    return {qid: texts[qid] for qid in kept}, {qid: documents[qid] for qid in kept}


def _weak_labels(first_stage: pt.Transformer, texts: dict[str, str], most: int) -> dict[str, dict[str, int]]:
    topics = pd.DataFrame({"qid": list(texts), "query": list(texts.values())})
    run = (first_stage % most).transform(topics)
    labels: dict[str, dict[str, int]] = defaultdict(dict)
    for qid, docno, rank in zip(run["qid"], run["docno"], run["rank"].tolist(), strict=True):
        labels[qid][docno] = most - rank
    return labels


def _split(text: str, dev: float) -> str:
    key = " ".join(sorted(set(tokenise(text))))
    return "dev" if int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") < dev * 2**64 else "train"


def _write_queries(
    directory: Path, texts: dict[str, str], labels: dict[str, dict[str, int]], splits: dict[str, str]
) -> None:
    lines = (json.dumps({"_id": qid, "text": texts[qid]}) + "\n" for qid in labels)
    (directory / "queries.jsonl").write_text("".join(lines), encoding="utf-8")
    rows = [(splits[qid], qid, docno, label) for qid in labels for docno, label in labels[qid].items()]
    qrels = pd.DataFrame(rows, columns=["split", "query-id", "corpus-id", "score"])
    (directory / "qrels").mkdir()
    for split in ("train", "dev"):
        judged = qrels[qrels["split"] == split].drop(columns="split")
        judged.to_csv(directory / "qrels" / f"{split}.tsv", sep="\t", index=False, quoting=csv.QUOTE_NONE)
