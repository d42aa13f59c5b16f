"""The embedded collection: ``neural:pydocs`` and ``neural:pydocs/links``, built on first use."""

import gc
import gzip
import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd
import pyterrier as pt

from pt_neural._artifacts import atomic_directory, read_metadata, write_metadata
from pt_neural._files import ArtifactError
from pt_neural.datasets.beir import BeirFolder
from pt_neural.datasets.folder import FolderDataset
from pt_neural.datasets.pydocs.documents import Document, collect, fold_documents
from pt_neural.datasets.pydocs.tasks import SPLITS, Query, link_queries, summary_queries

#: Import name -> distribution of the packages whose documentation makes up the collection.
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
#: Raise this whenever a change here gives other documents, queries or judgements for the same packages.
BUILDER_VERSION = 3


class PyDocs(FolderDataset):
    """Documentation of installed packages: find the docstring that a summary sentence was taken from.

    Documents are the docstrings of numpy, scipy, pandas, scikit-learn, torch, matplotlib, statsmodels and networkx,
    one for each public function, class, method or module. ``docno`` and ``title`` are its name
    (``numpy.linalg.norm``), ``text`` is the docstring without its first sentence and without "See Also", ``package``
    the distribution. Documents of fewer than 10 words are left out. Of near-identical ones (Jaccard similarity of
    their 5-word shingles at least 0.8, as with inherited methods), only the one with the shortest name is kept.

    Queries are those first sentences, 3 to 40 words long. Grades: 2 for a document that the sentence was taken from;
    1 for a namesake, a document whose name ends in the same part, such as ``numpy.kaiser`` and
    ``scipy.signal.windows.kaiser``. If at most 4 documents share that part, all of them are namesakes; if more do
    (``fit``), only those whose own first sentence shares two thirds of the distinct content words. A sentence is not
    a query if more than 10 documents are relevant to it, if it still occurs word for word in the text of a document
    of grade 2, or if it is boilerplate ("Alias for ...", "Parameters x : ..."). Splits are by a hash of the words:
    about 70 % train, 10 % dev, 20 % test.

    The collection is built on first use, in 10 to 20 seconds, and kept under PyTerrier's home, one folder for each set
    of package versions. Figures are comparable only between equal versions; see :meth:`packages`.

    Example::

        dataset = pt.get_dataset("neural:pydocs")
        index.index(dataset.get_corpus_iter())
        pt.Experiment([index.bm25()], dataset.get_topics(), dataset.get_qrels(), ["ndcg_cut_10"])
    """

    _task = "summaries"

    def __init__(self):
        self._built: BeirFolder | None = None

    def get_corpus_iter(self, *, verbose: bool = True) -> Iterable[dict[str, str]]:
        """Stream the documents as dicts of docno, title, text and package; the stream has a length."""
        return pt.utils.GeneratorLen(super().get_corpus_iter(verbose=verbose), len(self))

    def get_topics(self, variant: str | None = None) -> pd.DataFrame:
        """The queries of ``train``, ``dev`` or ``test`` (the default): qid, query."""
        return super().get_topics(variant or "test")

    def get_corpus_lang(self) -> str:
        """English."""
        return "en"

    def get_topics_lang(self) -> str:
        """English."""
        return "en"

    def info_url(self) -> None:
        """None: the collection has no page of its own."""

    def packages(self) -> pd.DataFrame:
        """What the collection was made from: package, version, documents, words."""
        metadata = read_metadata(self._folder().corpus_path, type="dataset", format="pydocs")
        return pd.DataFrame(metadata["packages"])

    def __len__(self) -> int:
        return int(self.packages()["documents"].sum())

    def _count(self) -> int:
        return len(self)

    def _folder(self) -> BeirFolder:
        if self._built is None:
            path = cached_collection()
            self._built = BeirFolder(path / self._task, path)
        return self._built

    def _describe_component(self, component: str) -> bool | list[str] | None:
        if component in ("topics", "qrels"):
            return list(SPLITS)
        return True if component == "corpus" else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PyDocsLinks(PyDocs):
    """The same documents: find those that a document's "See Also" section names.

    The query is a document: ``qid`` is its docno, ``query`` its name and the first 100 words of its text, which has no
    "See Also" section in the corpus. The documents named there have grade 1. Splits are by a hash of the unordered pair
    of docnos, so that a link is never in another split than its reverse; a document may have links in several splits.
    Before you measure on the links of one split, remove the query document itself and its links of the other splits
    from the ranking.

    Example::

        dataset = pt.get_dataset("neural:pydocs/links")
        known = pd.concat([dataset.get_qrels("train"), dataset.get_qrels("dev")]).set_index(["qid", "docno"]).index
        new = pt.apply.generic(
            lambda res: res[(res["qid"] != res["docno"]) & ~res.set_index(["qid", "docno"]).index.isin(known)]
        )
        pt.Experiment([index.bm25() >> new], *dataset.get_topicsqrels("test"), ["map"])
    """

    _task = "links"


def cached_collection() -> Path:
    """The folder of the collection for the installed versions, built if need be; ArtifactError if it is damaged."""
    versions = installed()
    key = hashlib.sha256(json.dumps([BUILDER_VERSION, versions]).encode()).hexdigest()[:12]
    path = Path(pt.io.pyterrier_home()) / "neural" / f"pydocs-{key}"
    if not path.exists():
        _build_once(path, versions)
    _check(path)
    return path


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
        warnings.warn(f"neural:pydocs is built without {names}; to include it: pip install {names}", stacklevel=2)
    return versions


def _build_once(path: Path, versions: dict[str, str]) -> None:
    """Build the collection, unless another process does so first."""
    try:
        with atomic_directory(path) as directory, _without_garbage_collection():
            build(directory, versions)
    except OSError:
        if not path.is_dir():
            raise


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Syntax trees are millions of objects without a cycle; searching them for cycles takes a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def build(directory: Path, versions: dict[str, str]) -> None:
    """Write the collection (a corpus, and a BEIR folder for each of the two tasks) to an empty folder."""
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


def _write_corpus(directory: Path, documents: list[Document]) -> None:
    with gzip.GzipFile(directory / "corpus.jsonl.gz", "wb", compresslevel=6, mtime=0) as file:
        for document in documents:
            title = document.name
            record = {"_id": title, "title": title, "text": document.text, "package": document.package}
            file.write(json.dumps(record).encode() + b"\n")


def _write_task(directory: Path, queries: list[Query]) -> None:
    (directory / "qrels").mkdir(parents=True)
    texts = {query.qid: query.text for query in queries}
    lines = (json.dumps({"_id": qid, "text": text}) + "\n" for qid, text in texts.items())
    (directory / "queries.jsonl").write_text("".join(lines), encoding="utf-8")
    for split in SPLITS:
        rows = ["query-id\tcorpus-id\tscore\n"]
        for query in queries:
            if query.split == split:
                rows += [f"{query.qid}\t{docno}\t{label}\n" for docno, label in query.labels.items()]
        (directory / "qrels" / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")


def _statistics(module: str, installed_version: str, documents: list[Document]) -> dict[str, str | int]:
    package = PACKAGES[module]
    lengths = [len(document.text.split()) for document in documents if document.package == package]
    return {"package": package, "version": installed_version, "documents": len(lengths), "words": sum(lengths)}


def _check(path: Path) -> None:
    """Raise ArtifactError, naming file and remedy, if a file of the collection is missing or has another size."""
    remedy = f"delete {path}; it is built again when next asked for"
    try:
        sizes = read_metadata(path, type="dataset", format="pydocs")["sizes"]
    except (ArtifactError, KeyError) as error:
        raise ArtifactError(f"{error}; {remedy}") from None
    for name, size in sizes.items():
        file = path / name
        if not file.is_file() or file.stat().st_size != size:
            raise ArtifactError(f"{file} is damaged or missing; {remedy}")
