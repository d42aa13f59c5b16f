"""Everything that this package writes to disk, each in an old and a new version that its readers can tell apart."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pt_neural as pn
from tests.rankers import fitted

OLD, NEW = 1, 2
DOCUMENTS = int(os.environ.get("PT_NEURAL_FAULTS_DOCUMENTS", "40"))


QUICK = [
    "forward index",
    "forward index of shards",
    "term vectors",
    "spaces",
    "ranker with parts",
    "corpus shards",
    "pseudo-queries",
]
FITS = ["fit of DSSM", "fit of SSI"]
LUCENE = ["Lucene index", "Lucene shards"]
NAMES = [*QUICK, "merged forward index", "vectors", "representations", "ranker", *FITS, *LUCENE]


class Writer(NamedTuple):
    """How to write a version to a path, and what a user gets who reads it."""

    write: Callable[[Path, int], Any]
    use: Callable[[Path], Any]
    overwrites: bool = True


def corpus(version: int) -> list[dict[str, str]]:
    """Documents that are different in each version."""
    texts = ["the river runs past the city", "giraffe and okapi", "a ranking function", "the oldest university"]
    return [
        {"docno": f"v{version}d{number}", "title": f"title {number}", "text": f"{texts[number % 4]} version{version}"}
        for number in range(DOCUMENTS + version)
    ]


def prepare(folder: Path) -> None:
    """Write what the writers read."""
    for name in ("TFIDF", "Duet", "DSSM"):
        fitted.fitted(name).save(folder / name)
    for version in (OLD, NEW):
        fitted.fit(fitted.unfitted("DSSM", training=replace(fitted.TRAINING, seed=version))).save(
            folder / f"DSSM{version}"
        )
        pn.CorpusShards.spool(folder / f"shards{version}", corpus(version), verbose=False)
        for part, place in enumerate((slice(None, 20), slice(20, None))):
            pn.ForwardIndex.build(folder / f"part{part}{version}", corpus(version)[place], verbose=False)


def writers(folder: Path) -> dict[str, Writer]:
    """All of them by name; they read what is prepared in the folder."""
    from pt_neural.rankers import DocumentRepresentations, TermVectors
    from pt_neural.rankers.kept.vectors import VectorTable

    def index(name: str, **options: Any) -> Callable[[Path, int], Any]:
        load = getattr(pn, name).load
        options |= {"overwrite": True, "verbose": False}
        return lambda path, version: load(folder / name).index(path, corpus(version), **options)

    def merge(path: Path, version: int) -> None:
        pn.ForwardIndex.merge(path, [folder / f"part{part}{version}" for part in (0, 1)], overwrite=True)

    def of_forward(path: Path) -> Any:
        index = pn.ForwardIndex(path)
        sequences = index.sequences(list(index.docnos))
        return list(index.docnos), index.vocabulary.terms, sequences.terms, sequences.field_ends

    def of_term_vectors(path: Path) -> Any:
        kept = TermVectors(path)
        return list(kept.docnos), kept.terms.toarray(), kept.postings.toarray()

    def of_vectors(path: Path) -> Any:
        kept = VectorTable(path)
        return list(kept.docnos), np.array(kept.matrix)

    def of_representations(path: Path) -> Any:
        kept = DocumentRepresentations(path)
        return list(kept.docnos), *kept.read(np.arange(len(kept)))

    def spaces(version: int) -> pn.EmbeddingSpaces:
        words = [f"w{number}" for number in range(DOCUMENTS + version)]
        return pn.EmbeddingSpaces.from_vectors(words, *np.full((2, len(words), 3), version))

    def of_spaces(path: Path) -> Any:
        opened = pn.EmbeddingSpaces(path)
        return opened.vocabulary.terms, np.array(opened.in_vectors), np.array(opened.out_vectors)

    def pseudo_queries(path: Path, version: int) -> None:
        pn.pseudo_queries(corpus(version), path=path, kind="title", min_words=2)

    def of_pseudo_queries(path: Path) -> Any:
        from pt_neural.datasets.folder import FolderDataset

        made = FolderDataset(path)
        return list(made.get_corpus_iter(verbose=False)), made.get_topics("train").to_dict("list")

    def of_lucene(opened: Any) -> Any:
        found = (opened.bm25() >> opened.text_loader()).search("river city version1 version2")
        return sorted(opened.docnos()), found[["docno", "score", "rank", "text"]].to_dict("list")

    def fit(name: str, path: Path) -> Any:
        """Fit, or go on with a fit that was interrupted: the weights are the same."""
        training = replace(fitted.TRAINING, epochs=3, checkpoint_dir=str(path))
        model = fitted.fit(fitted.unfitted(name, training=training))
        return model.fingerprint()

    def by_shards(path: Path, version: int) -> None:
        shards = pn.CorpusShards(folder / f"shards{version}", shards=2)
        pn.ForwardIndex.build(path, shards, overwrite=True, verbose=False)

    fits = {
        f"fit of {name}": Writer(lambda path, version, name=name: fit(name, path), partial(fit, name), overwrites=False)
        for name in ("DSSM", "SSI")
    }
    return {
        "forward index": Writer(
            lambda path, version: pn.ForwardIndex.build(path, corpus(version), overwrite=True, verbose=False),
            of_forward,
        ),
        "merged forward index": Writer(merge, of_forward),
        "forward index of shards": Writer(by_shards, of_forward),
        "term vectors": Writer(index("TFIDF"), of_term_vectors),
        "vectors": Writer(index("DSSM"), of_vectors),
        "representations": Writer(index("Duet", dtype="int8"), of_representations),
        "spaces": Writer(lambda path, version: spaces(version).save(path, overwrite=True), of_spaces),
        "ranker": Writer(
            lambda path, version: pn.DSSM.load(folder / f"DSSM{version}").save(path, overwrite=True),
            lambda path: pn.DSSM.load(path).fingerprint(),
        ),
        "ranker with parts": Writer(
            lambda path, version: pn.DESM(spaces(version)).save(path, overwrite=True),
            lambda path: pn.DESM.load(path).fingerprint(),
        ),
        "corpus shards": Writer(
            lambda path, version: pn.CorpusShards.spool(path, corpus(version), overwrite=True, verbose=False),
            lambda path: list(pn.CorpusShards(path, documents_per_shard=9)),
        ),
        "pseudo-queries": Writer(pseudo_queries, of_pseudo_queries, overwrites=False),
        **fits,
        "Lucene index": Writer(
            lambda path, version: pn.LuceneIndex(path).index(corpus(version), overwrite=True, verbose=False),
            lambda path: of_lucene(pn.LuceneIndex(path)),
        ),
        "Lucene shards": Writer(
            lambda path, version: pn.LuceneShards(path).index(corpus(version), shards=2, overwrite=True, verbose=False),
            lambda path: of_lucene(pn.LuceneShards(path)),
        ),
    }


def digest(used: Any) -> str:
    """A short text that differs if what a user gets differs."""
    return hashlib.sha256(json.dumps(used, default=np.ndarray.tolist).encode()).hexdigest()
