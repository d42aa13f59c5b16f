"""Uses of artifacts on disk that other processes can be given: each opens its artifact anew.

So that the first use of lazily opened files is concurrent too.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pandas as pd
import pyterrier as pt

import pt_neural as pn
from pt_neural.rankers import DocumentRepresentations
from tests.rankers.fitted import BARE, CORPUS, TOPICS, fitted, folder, forward, saved, vectors


@cache
def lucene() -> Path:
    return Path(pn.LuceneIndex(folder() / "readers.lucene").index(CORPUS, verbose=False).path)


@cache
def matrices(name: str) -> Path:
    return Path(fitted(name).index(folder() / f"{name}.matrices", CORPUS, verbose=False).path)


def vectors_path(name: str) -> Path:
    """Where the vectors of a ranker are, a FlexIndex or term vectors."""
    kept = vectors(name)
    return Path(kept.index_path if hasattr(kept, "index_path") else kept.path)


def by_docno(ranker: Path, index: Path) -> pd.DataFrame:
    return pt.Artifact.load(str(ranker), documents=pn.ForwardIndex(index)).transform(BARE)


def by_matrices(ranker: Path, kept: Path) -> pd.DataFrame:
    return pt.Artifact.load(str(ranker), representations=DocumentRepresentations(kept)).transform(BARE)


def from_all(ranker: Path, kept: Path) -> pd.DataFrame:
    return pt.Artifact.load(str(ranker)).retriever(kept).transform(TOPICS)


def by_lucene(path: Path, kind: str) -> pd.DataFrame:
    index = pn.LuceneIndex(path)
    return index.text_loader().transform(BARE) if kind == "text" else getattr(index, kind)().transform(TOPICS)


def readers() -> dict[str, Callable[[], pd.DataFrame]]:
    """One use of every kind of artifact."""
    uses = {f"Lucene {kind}": partial(by_lucene, lucene(), kind) for kind in ("bm25", "ql", "sdm", "rm3", "text")}
    for name in ("DSSM", "Duet", "LDA", "SSI"):
        uses[f"{name} by docno"] = partial(by_docno, saved(name), forward().path)
    for name in ("MatchTensor", "MatchTensorSSM"):
        uses[f"{name} by matrices"] = partial(by_matrices, saved(name), matrices(name))
    for name in ("CLSM", "LSA", "SSI", "TFIDF"):
        uses[f"{name} from all"] = partial(from_all, saved(name), vectors_path(name))
    return uses
