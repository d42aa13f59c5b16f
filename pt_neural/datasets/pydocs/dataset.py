"""The embedded collection: ``neural:pydocs`` and ``neural:pydocs/links``."""

from collections.abc import Iterable

import pandas as pd
import pyterrier as pt

from pt_neural._artifacts import read_metadata
from pt_neural.datasets.beir import BeirFolder
from pt_neural.datasets.folder import FolderDataset
from pt_neural.datasets.pydocs.build import cached_collection


class PyDocs(FolderDataset):
    """Documentation of installed packages: find the docstring that a summary sentence was taken from.

    Documents are the docstrings of numpy, scipy, pandas, scikit-learn, torch, matplotlib, statsmodels and
    networkx, one for each public thing. ``docno`` and ``title`` are its name (``numpy.linalg.norm``), ``text``
    is the docstring without its first sentence and without "See Also", ``package`` the distribution. Documents
    of fewer than 10 words are left out. Of near-identical ones (Jaccard similarity of their 5-word shingles at
    least 0.8, as with inherited methods) only the one with the shortest name is kept.

    Queries are those first sentences, 3 to 40 words long. Grades: 2 for a document that the sentence was taken
    from; 1 for a namesake: the last part of its name is the same, as with ``numpy.kaiser`` and
    ``scipy.signal.windows.kaiser``. Where at most 4 documents have that last part, all of them are namesakes;
    where more have it (``fit``), those whose own first sentence shares two thirds of the distinct content words.
    A sentence is no query if it answers to more than 10 documents, if it still stands word for word in the text
    of a document of grade 2, or if it is boilerplate ("Alias for ...", "Parameters x : ..."). Splits are by hash
    of the words: about 70 % train, 10 % dev, 20 % test.

    Made on first use, in 10 to 20 seconds, and kept under PyTerrier's home, one folder for each set of package
    versions: figures are comparable between equal versions only, see :meth:`packages`.

    Example::

        dataset = pt.get_dataset("neural:pydocs")
        index.index(dataset.get_corpus_iter())
        pt.Experiment([index.bm25()], dataset.get_topics(), dataset.get_qrels(), ["ndcg_cut_10"])
    """

    _task = "summaries"

    def __init__(self):
        self._built: BeirFolder | None = None

    def get_corpus_iter(self, *, verbose: bool = True) -> Iterable[dict[str, str]]:
        """Stream the documents as dicts of docno, title, text and package; has a length."""
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
        """None: the collection is described here."""

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
            return ["train", "dev", "test"]
        return True if component == "corpus" else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PyDocsLinks(PyDocs):
    """The same documents: find those that a document's "See Also" section names.

    The query is a document: ``qid`` is its docno, ``query`` its name and the first 100 words of its text, in
    which "See Also" is left out as it is in the corpus. Grade 1 for each document named there. Splits are by
    hash of the docno. The document itself is in the corpus; take it out of a ranking before you measure.

    Example::

        dataset = pt.get_dataset("neural:pydocs/links")
        without_itself = pt.apply.generic(lambda res: res[res["qid"] != res["docno"]])
        pt.Experiment([index.bm25() >> without_itself], *dataset.get_topicsqrels("test"), ["map"])
    """

    _task = "links"
