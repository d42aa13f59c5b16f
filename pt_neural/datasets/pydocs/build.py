"""The collection built from the installed packages, and its place on disk."""

import gc
import gzip
import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pyterrier as pt

from pt_neural._artifacts import ArtifactError, atomic_directory, read_metadata, write_metadata
from pt_neural.datasets.pydocs.collect import Document, collect
from pt_neural.datasets.pydocs.folding import fold
from pt_neural.datasets.pydocs.tasks import SPLITS, Query, link_queries, summary_queries, tokens

#: Import name -> distribution of the packages whose documentation makes the collection.
PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "pandas": "pandas",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "matplotlib": "matplotlib",
    "statsmodels": "statsmodels",
    "networkx": "networkx",
}
#: Raised whenever the same packages would give other documents, queries or judgements.
BUILDER_VERSION = 2


def installed() -> dict[str, str]:
    """Version of each of the packages, by import name; a warning names those that are missing."""
    versions, missing = {}, []
    for module, distribution in PACKAGES.items():
        try:
            versions[module] = version(distribution)
        except PackageNotFoundError:
            missing.append(distribution)
    if missing:
        names = " ".join(missing)
        warnings.warn(f"neural:pydocs is made without {names}; to include it: pip install {names}", stacklevel=2)
    return versions


def cached_collection() -> Path:
    """The folder of the collection for the installed versions, built if it is not there yet.

    Raises:
        ArtifactError: If the folder is damaged.
    """
    versions = installed()
    key = hashlib.sha256(json.dumps([BUILDER_VERSION, versions]).encode()).hexdigest()[:12]
    path = Path(pt.io.pyterrier_home()) / "neural" / f"pydocs-{key}"
    if not path.exists():
        _build_once(path, versions)
    check(path)
    return path


def _build_once(path: Path, versions: dict[str, str]) -> None:
    """Build; where another process was faster, its result is as good as ours."""
    try:
        with atomic_directory(path) as directory, _without_garbage_collection():
            build(directory, versions)
    except OSError:
        if not path.is_dir():
            raise


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Syntax trees are millions of objects without a cycle: to search them for cycles costs a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def build(directory: Path, versions: dict[str, str]) -> None:
    """Write the collection: a corpus, and a BEIR folder for each of the two tasks.

    Args:
        directory: An empty folder.
        versions: Import name -> version of the packages to read.
    """
    documents: list[Document] = []
    for module in pt.tqdm(versions, desc="neural:pydocs", unit="package"):
        documents += collect(module, PACKAGES[module])
    documents, kept = fold_documents(documents)
    _write_corpus(directory, documents)
    _write_task(directory / "summaries", summary_queries(documents))
    _write_task(directory / "links", link_queries(documents, kept))
    files = (file for file in directory.rglob("*") if file.is_file())
    sizes = {file.relative_to(directory).as_posix(): file.stat().st_size for file in sorted(files)}
    packages = [_statistics(module, versions[module], documents) for module in versions]
    write_metadata(directory, type="dataset", format="pydocs", packages=packages, sizes=sizes)


def fold_documents(documents: Iterable[Document]) -> tuple[list[Document], dict[str, str]]:
    """The documents without near-identical ones, and the name of the document that each name stands for.

    Of near-identical documents the one with the shortest name stays.
    """
    documents = sorted(documents, key=lambda document: (document.name.count("."), len(document.name), document.name))
    twins = fold([tokens(document.text) for document in documents])
    kept = {}
    for document, twin in zip(documents, twins, strict=True):
        for name in (document.name, *document.aliases):
            kept.setdefault(name, documents[twin].name)
    own = [document for position, document in enumerate(documents) if twins[position] == position]
    return sorted(own, key=lambda document: document.name), kept


def check(path: Path) -> None:
    """Raise ArtifactError, naming file and remedy, where the collection on disk is not as it was written."""
    remedy = f"delete {path}; it is built again when next asked for"
    try:
        sizes = read_metadata(path, type="dataset", format="pydocs")["sizes"]
    except (ArtifactError, KeyError) as error:
        raise ArtifactError(f"{error}; {remedy}") from None
    for name, size in sizes.items():
        file = path / name
        if not file.is_file() or file.stat().st_size != size:
            raise ArtifactError(f"{file} is damaged or missing; {remedy}")


def _write_corpus(directory: Path, documents: list[Document]) -> None:
    with gzip.GzipFile(directory / "corpus.jsonl.gz", "wb", compresslevel=6, mtime=0) as file:
        for document in documents:
            title = document.name
            record = {"_id": title, "title": title, "text": document.text, "package": document.package}
            file.write(json.dumps(record).encode() + b"\n")


def _write_task(directory: Path, queries: list[Query]) -> None:
    (directory / "qrels").mkdir(parents=True)
    lines = (json.dumps({"_id": query.qid, "text": query.text}) + "\n" for query in queries)
    (directory / "queries.jsonl").write_text("".join(lines), encoding="utf-8")
    for split in SPLITS:
        rows = ["query-id\tcorpus-id\tscore\n"]
        for query in queries:
            if query.split == split:
                rows += [f"{query.qid}\t{docno}\t{label}\n" for docno, label in query.labels.items()]
        (directory / "qrels" / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")


def _statistics(module: str, installed_version: str, documents: list[Document]) -> dict[str, str | int]:
    own = [document for document in documents if document.package == PACKAGES[module]]
    words = sum(len(document.text.split()) for document in own)
    return {"package": PACKAGES[module], "version": installed_version, "documents": len(own), "words": words}
