"""The task of the SSI paper: pages as queries, and the pages that they link to as relevant documents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pyterrier as pt

from pipelines.common.collection import FIELDS, SPLITS, Collection, Split
from pt_neural.experiment import keyword_queries, with_random_documents


@dataclass(frozen=True)
class LinkTask:
    """A collection whose judgements are links.

    Attributes:
        collection: The queries, by splits.
        docnos: The documents.
        links: The links of all splits: ``qid, docno``.
        own: The page that each query is made from, which is not a candidate: ``qid, docno``.
        seed: Seed of all random choices.
    """

    collection: Collection
    docnos: pd.Index
    links: pd.DataFrame
    own: pd.DataFrame
    seed: int

    @classmethod
    def of(cls, collection: Collection, docnos: Iterable[str], seed: int, mates: pd.DataFrame | None = None):
        """The task of a collection that has training links.

        Args:
            collection: The queries. A query with the name of a document is made from it.
            docnos: The documents.
            seed: Seed of all random choices.
            mates: The documents that queries in another language are translations of: ``qid, docno``.
        """
        docnos = pd.Index(list(docnos), dtype=object)
        splits = {name: _with_objects(getattr(collection, name)) for name in SPLITS}
        links = pd.concat([split.qrels[["qid", "docno"]] for split in splits.values()], ignore_index=True)
        named = links["qid"].drop_duplicates()
        own = pd.DataFrame({"qid": named, "docno": named})[named.isin(docnos).to_numpy()]
        own = own if mates is None else pd.concat([own, mates[["qid", "docno"]]], ignore_index=True)
        return cls(replace(collection, **splits), docnos, links, own, seed)

    def sample(self, queries: int | None) -> "LinkTask":
        """At most this many queries of dev and of test; None for all."""
        return self if queries is None else replace(self, collection=self.collection.sample(queries, self.seed))

    def excluded(self, split: Split) -> pd.DataFrame:
        """Documents that must not be candidates of a query: its own page, and its links in other splits."""
        known = pd.concat([self.links, self.own], ignore_index=True)
        known = known[known["qid"].isin(split.topics["qid"])]
        links = pd.MultiIndex.from_frame(split.qrels[["qid", "docno"]])
        return known[~pd.MultiIndex.from_frame(known).isin(links)]

    def candidates(self, split: Split, number: int, *, shift: int = 0) -> pd.DataFrame:
        """The links of the queries and a number of random documents; each ``shift`` draws different ones."""
        options = {"seed": self.seed + shift, "exclude": self.excluded(split)}
        return with_random_documents(split.topics, split.qrels, self.docnos, number, **options)

    def examples(self, dev_documents: int) -> list[pd.DataFrame]:
        """The arguments of ``fit``: linked pairs of train, and for each dev query its links and random documents."""
        dev = self.collection.dev
        candidates = pt.Transformer.from_df(dev and self.candidates(dev, dev_documents))
        return self.collection.examples(candidates)

    def with_keywords(self, k: int) -> "LinkTask":
        """The same task with k random words of each query, drawn independently in each split."""
        splits = {name: getattr(self.collection, name) for name in SPLITS}
        keywords = {
            name: replace(split, topics=keyword_queries(split.topics, k, seed=self.seed + place))
            for place, (name, split) in enumerate(splits.items())
        }
        return self._with(**keywords)

    def with_texts(self, texts: Mapping[str, str]) -> "LinkTask":
        """The same task with other texts of the queries, given by qid."""
        splits = {}
        for name in SPLITS:
            split = getattr(self.collection, name)
            queries = split.topics["qid"].map(texts).astype(object)
            if queries.isna().any():
                qid = split.topics["qid"][queries.isna()].iloc[0]
                raise SystemExit(f"there is no page for query {qid!r}: leave out --query page, or choose other --mates")
            splits[name] = replace(split, topics=split.topics.assign(query=queries))
        return self._with(**splits)

    def with_share(self, share: float) -> "LinkTask":
        """The same task with a share of the training links, drawn at random."""
        train = self.collection.train
        qrels = train.qrels.sample(max(1, round(share * len(train.qrels))), random_state=self.seed)
        topics = train.topics[train.topics["qid"].isin(qrels["qid"])].reset_index(drop=True)
        return self._with(train=Split(topics, qrels))

    @cached_property
    def _parts(self) -> dict[str, pd.Index]:
        """The documents in three parts, drawn at random: 30% for test, 15% for dev, the others for train."""
        place = np.random.default_rng(self.seed).random(len(self.docnos))
        parts = {"train": place >= 0.45, "dev": (place >= 0.3) & (place < 0.45), "test": place < 0.3}
        return {name: self.docnos[chosen] for name, chosen in parts.items()}

    def between_test_documents(self) -> "LinkTask":
        """The same task with only the test documents, and the test links between them (Table 3)."""
        documents = self._parts["test"]
        return replace(self._with(test=_between([self.collection.test], documents)), docnos=documents)

    def apart_from_test_documents(self) -> "LinkTask":
        """The task of the other documents, whatever the splits of their links.

        Train has the links between some of them, and dev those between the rest, which are its candidates. So dev
        queries meet new documents, as test queries do.
        """
        splits = [getattr(self.collection, name) for name in SPLITS]
        train, dev = (_between(splits, self._parts[name]) for name in ("train", "dev"))
        return replace(self._with(train=train, dev=dev), docnos=self._parts["dev"])

    def _with(self, **splits: Split) -> "LinkTask":
        return replace(self, collection=replace(self.collection, **splits))


def _between(splits: Sequence[Split], docnos: pd.Index) -> Split:
    """The links of splits between these documents."""
    qrels = pd.concat([split.qrels for split in splits], ignore_index=True)
    qrels = qrels[qrels["qid"].isin(docnos) & qrels["docno"].isin(docnos)]
    topics = pd.concat([split.topics for split in splits]).drop_duplicates("qid")
    return Split(topics[topics["qid"].isin(qrels["qid"])].reset_index(drop=True), qrels)


def _with_objects(split: Split | None) -> Split | None:
    """Queries as Python objects, so that a frame of many candidates holds the text of each page once."""
    return split and replace(split, topics=split.topics.astype({"query": object}))


def page_texts(documents: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The whole text of each document."""
    return {page["docno"]: " ".join(page.get(field) or "" for field in FIELDS) for page in documents}
