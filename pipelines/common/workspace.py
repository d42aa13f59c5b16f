"""The folder of a pipeline: artifacts are built once; tables, pictures and settings are written there."""

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import matplotlib.pyplot as plt
import pandas as pd
import pyterrier as pt

import pt_neural as pn
from pipelines.common.arguments import as_json, command, package_versions, run_settings
from pipelines.common.collection import FIELDS, Collection, with_pseudo_queries
from pipelines.common.runs import SavedRuns, write_whole
from pt_neural._pictures import DPI
from pt_neural.datasets.beir import BeirFolder
from pt_neural.text import tokenise

SplitText = Literal["stems", "words"]
SETTINGS = "settings.json"
TIMES = "seconds.json"  # command -> its seconds so far
PSEUDO_DEV = 500  # pseudo-queries at most to stop training by


class Workspace:
    """A folder for one pipeline on one dataset; whatever has been built there is reused.

    Args:
        arguments: The arguments of the pipeline; results go to ``arguments.out``.
        pipeline: Name of the pipeline.
        collection: The dataset. All pipelines share its artifacts; each package version has its own.
        others: More datasets that the artifacts depend on.
    """

    def __init__(self, arguments: argparse.Namespace, pipeline: str, collection: Collection, *others: Collection):
        self.arguments, self.pipeline, self.collection = arguments, pipeline, collection
        label = slug(collection.label)
        self.results = arguments.out / f"{pipeline}-{label}"
        self.artifacts = arguments.out / "artifacts" / "-".join([label, *map(fingerprint, [collection, *others])])
        self.results.mkdir(parents=True, exist_ok=True)
        self.artifacts.mkdir(parents=True, exist_ok=True)
        self.learned: set[str] = set()  # names of trained rankers
        self._started = time.perf_counter() - self._times().get(self._command, 0.0)

    def _times(self) -> dict[str, float]:
        path = self.results / TIMES
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def _record_time(self) -> float:
        """The seconds of this command so far, recorded because it may be interrupted and go on where it stopped."""
        seconds = round(time.perf_counter() - self._started, 1)
        times = as_json({**self._times(), self._command: seconds})
        write_whole(self.results / TIMES, lambda file: file.write(times))
        return seconds

    @property
    def _command(self) -> str:
        return command(self.pipeline, sys.argv[1:], self.collection)

    @cached_property
    def learning(self) -> "Workspace":
        """The workspace to train in: this one, or one with pseudo-queries if the arguments ask for them."""
        kind, seed = getattr(self.arguments, "pseudo_queries", None), self.arguments.seed
        if kind is None:
            return self

        def make(path: Path) -> None:
            print(pn.pseudo_queries(self.documents(), kind, seed=seed, path=path), flush=True)

        folder = self.built(f"pseudo-queries-{kind}-seed{seed}", make, Path)
        made, other = with_pseudo_queries(self.collection, folder.resolve()), copy(self)
        other.collection = replace(made, dev=made.dev and made.dev.sample(PSEUDO_DEV, seed))
        other.learning, other.artifacts = other, self.artifacts / f"{folder.name}-artifacts"
        other.artifacts.mkdir(exist_ok=True)
        return other

    @property
    def seeds_note(self) -> str:
        """The number of seeds for a caption, if there are several."""
        return f", {len(self.arguments.seeds)} seeds" if len(self.arguments.seeds) > 1 else ""

    def built(self, name: str, build: Callable[[Path], Any], load: Callable[[Path], Any]) -> Any:
        """Load an artifact, and build it first if necessary; how long that took is kept beside it."""
        path = self.artifacts / name
        if not path.exists():
            print(f"building {path}", flush=True)
            started = time.perf_counter()
            with suppress(FileExistsError):  # another pipeline may have built it meanwhile
                build(path)
            self._seconds(name).write_text(f"{time.perf_counter() - started:.3f}\n", encoding="utf-8")
            self._record_time()
        return load(path)

    def _seconds(self, name: str) -> Path:
        return self.artifacts / f"{name}.seconds"

    def index(self, fields: Sequence[str] = FIELDS, *, split: SplitText | None = None) -> pn.LuceneIndex:
        """The Lucene index of the collection.

        Args:
            fields: The fields of a document.
            split: None for Lucene's own tokens, which are stemmed and without stop words. Else texts are first split as
                our models split them, as queries must be, too: ``"stems"`` also stems and leaves out stop words,
                ``"words"`` does neither.
        """
        options = {"stemmer": "none", "stopwords": "none"} if split == "words" else {}
        return self.built(
            _with_fields(f"lucene-split-{split}" if split else "lucene", fields),
            lambda path: pn.LuceneIndex(path).index(
                map(split_document, self.documents()) if split else self.documents(), fields=fields, **options
            ),
            pn.LuceneIndex,
        )

    def forward_index(
        self, fields: Sequence[str] = FIELDS, *, phrases: bool = False, docnos: Sequence[str] | None = None
    ) -> pn.ForwardIndex:
        """The term sequences of the collection.

        Args:
            fields: The fields of a document.
            phrases: Whether two-word phrases are joined.
            docnos: The documents; None for all.
        """
        name = "forward-phrases" if phrases else "forward"
        if docnos is not None:
            name = f"{name}-{hashlib.sha256(repr(sorted(docnos)).encode()).hexdigest()[:12]}"

        def build(path: Path) -> None:
            documents = self.joined_documents() if phrases else self.documents()
            chosen = (each for each in documents if docnos is None or each["docno"] in docnos)
            pn.ForwardIndex.build(path, chosen, fields=fields)

        return self.built(_with_fields(name, fields), build, pn.ForwardIndex)

    @cached_property
    def phrases(self) -> pn.PhraseJoiner:
        """The phrases of the collection."""
        return self.built(
            "phrases", lambda path: pn.PhraseJoiner.learn(self.documents()).save(path), pn.PhraseJoiner.load
        )

    def joined_documents(self) -> Iterable[dict[str, str]]:
        """The documents of the collection with the words of phrases joined."""
        return self.phrases.documents(self.documents())

    def documents(self) -> Iterable[dict[str, str]]:
        """The documents of the collection."""
        return self.collection.dataset.get_corpus_iter(verbose=False)

    def spaces(self, name: str, texts: Callable[[], Any], **options: Any) -> pn.EmbeddingSpaces:
        """Word embeddings trained on documents or queries."""
        settings = "-".join(f"{key}{value}" for key, value in sorted(options.items()))
        return self.built(
            f"spaces-{slug(name)}-{settings}",
            lambda path: pn.EmbeddingSpaces.train(texts(), **options).save(path),
            pn.EmbeddingSpaces.load,
        )

    def desm(
        self, spaces: pn.EmbeddingSpaces, pair: str, corpus: str, centre: str = "none"
    ) -> tuple[pn.DESM, pt.Transformer]:
        """A DESM over stored centroids.

        Args:
            spaces: Word embeddings.
            pair: Spaces of query and document, such as ``"in-out"``.
            corpus: What the embeddings were trained on; part of the name of the stored centroids.
            centre: Whether mean vectors are subtracted.

        Returns:
            A re-ranker by docno, and a retriever over all documents.
        """
        query, document = pair.split("-")
        desm = pn.DESM(spaces, query, document, centre=centre)
        name = f"{'' if centre == 'none' else 'centred-'}centroids-{document}-{corpus}-{spaces.dim}"
        vectors = self._vectors(name, desm, self.forward_index())
        return pn.DESM(spaces, query, document, centre=centre, vectors=vectors), desm.retriever(vectors)

    def lsa(self, dim: int, seed: int, fields: Sequence[str] = FIELDS, max_terms: int | None = None) -> pn.LSA:
        """LSA of the collection, over stored vectors."""
        documents = self.forward_index(fields)
        limit = f"-terms{max_terms}" if max_terms else ""
        return self.over_vectors(
            _with_fields(f"lsa-dim{dim}-seed{seed}{limit}", fields),
            lambda path: pn.LSA(dim, seed=seed, fields=fields, max_terms=max_terms).fit_corpus(documents).save(path),
            pn.LSA.load,
            documents,
        )

    def tfidf(self, fields: Sequence[str] = FIELDS, max_terms: int | None = None) -> pn.TFIDF:
        """TFIDF of the collection, over stored vectors."""
        documents = self.forward_index(fields)
        settings = {"sublinear_tf": True, "max_terms": max_terms, "fields": fields}
        return self.over_vectors(
            _with_fields(f"tf-idf{f'-terms{max_terms}' if max_terms else ''}", fields),
            lambda path: pn.TFIDF(**settings).fit_corpus(documents).save(path),
            pn.TFIDF.load,
            documents,
        )

    def trained(
        self,
        model: Any,
        *examples: pd.DataFrame,
        documents: pn.ForwardIndex | None = None,
        **others: Sequence[pd.DataFrame],
    ) -> Any:
        """A model trained once; it re-ranks over stored vectors if it has vectors.

        Args:
            model: The untrained model, with a forward index of its documents.
            *examples: Arguments of its ``fit``. These and all settings identify the stored model.
            documents: The documents to rank; by default those that it is trained on.
            **others: Named arguments of its ``fit``, which identify it too.
        """
        documents = documents or model.documents
        name = f"{model.artifact_format}-{_digest(model, [*examples, *chain.from_iterable(others.values())])}"

        def build(path: Path) -> None:
            model.fit(*examples, **others).save(path)

        if hasattr(model, "vectors"):
            return self.over_vectors(name, build, type(model).load, documents)
        return self.built(name, build, partial(type(model).load, documents=documents))

    def fitted(self, model: Any, *examples: pd.DataFrame, documents: pn.ForwardIndex | None = None) -> Any:
        """A model fitted once, to examples or else to all documents; it re-ranks over the forward index.

        Args:
            model: The unfitted model, with a forward index of its documents.
            *examples: Arguments of its ``fit``. These and all settings identify the stored model.
            documents: The documents to rank; by default those that it is fitted to.
        """

        def build(path: Path) -> None:
            fitted = model.fit(*examples) if examples else model.fit_corpus(model.documents)
            fitted.save(path)

        load = partial(type(model).load, documents=documents or model.documents)
        return self.built(_fitted_name(model, examples), build, load)

    def seconds_of_fitting(self, model: Any, *examples: pd.DataFrame) -> float:
        """How long :meth:`fitted` took when it fitted a model with these settings to these examples."""
        return float(self._seconds(_fitted_name(model, examples)).read_text(encoding="utf-8"))

    def over_vectors(
        self, name: str, build: Callable[[Path], Any], load: Callable[..., Any], documents: pn.ForwardIndex
    ) -> Any:
        """A ranker that re-ranks by docno over stored vectors of all documents; ranker and vectors are built once."""
        vectors = self._vectors(f"{name}-vectors", self.built(name, build, load), documents)
        return load(self.artifacts / name, vectors=vectors)

    def _vectors(self, name: str, ranker: Any, documents: pn.ForwardIndex) -> Any:
        """What a ranker stores for each document."""
        vectors = self.built(name, lambda path: ranker.index(path, documents), pt.Artifact.load)
        if hasattr(vectors, "verbose"):  # a FlexIndex, which takes long to import
            vectors.verbose = False  # no progress bars
        return vectors

    def chosen(self, name: str, choose: Callable[[], dict[str, Any]], *depends_on: Any) -> dict[str, Any]:
        """Settings that are chosen once.

        Args:
            name: What the settings are for.
            choose: The function that chooses them; JSON must be able to represent them.
            *depends_on: Whatever distinguishes this choice from others.
        """
        digest = hashlib.sha256(f"{depends_on} {run_settings(self.arguments)}".encode()).hexdigest()[:12]
        path = self.artifacts / f"chosen-{slug(name)}-{digest}.json"
        if not path.exists():
            chosen = choose()
            write_whole(path, lambda file: json.dump(chosen, file))
        return json.loads(path.read_text(encoding="utf-8"))

    def runs(self, name: str = "runs") -> SavedRuns:
        """The runs on one set of queries, each made once as long as settings and collection are the same."""
        return SavedRuns(self.results / name, {**run_settings(self.arguments), "artifacts": self.artifacts.name})

    def save_table(self, name: str, table: pd.DataFrame, caption: str, frame: pd.DataFrame | None = None) -> None:
        """Print a table, and write it as Markdown and CSV.

        Args:
            name: Name of the files.
            table: The table to print.
            caption: What it shows.
            frame: The same in machine-readable form, for the CSV; by default the table itself.
        """
        (table if frame is None else frame).to_csv(self.results / f"{name}.csv", index=False)
        table, caption = self._marked(table, caption)
        print(f"\n{caption}\n\n{table.to_string(index=False)}", flush=True)
        (self.results / f"{name}.md").write_text(f"{caption}\n\n{markdown(table)}\n", encoding="utf-8")

    def _marked(self, table: pd.DataFrame, caption: str) -> tuple[pd.DataFrame, str]:
        """The table with the rankers marked that learned from pseudo-queries, if there are any."""
        if not self.learned or self.learning is self or "system" not in table:
            return table, caption
        marked = [f"{name} †" if any(learned in name for learned in self.learned) else name for name in table["system"]]
        kind = self.arguments.pseudo_queries
        return table.assign(system=marked), f"{caption}; † learned from pseudo-queries ({kind}), not from real ones"

    def save_picture(self, name: str, figure: plt.Figure) -> None:
        """Write a picture as PNG, and close it."""
        figure.savefig(self.results / f"{name}.png", dpi=DPI)
        plt.close(figure)

    def save_settings(self, **chosen: Any) -> None:
        """Record how the results were made, and the time so far, with that of earlier runs of the same command.

        Args:
            **chosen: Settings that the pipeline chose by itself.
        """
        settings = {
            "command": self._command,
            "pipeline": self.pipeline,
            "collection": self.collection.label,
            "arguments": {name: value for name, value in vars(self.arguments).items() if name != "seed"},
            "chosen": chosen,
            "packages": package_versions(),
            "seconds": self._record_time(),
        }
        (self.results / SETTINGS).write_text(as_json(settings), encoding="utf-8")


def split_document(document: Mapping[str, str]) -> dict[str, str]:
    """A document with the words of its texts separated by spaces."""
    return {name: text if name == "docno" else split_text(text) for name, text in document.items()}


def split_text(text: str) -> str:
    """The words that our models read, with a space between them; Lucene leaves ``numpy.linalg.norm`` whole."""
    return " ".join(tokenise(text))


def slug(text: str) -> str:
    """A text as part of a file name."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-")


def fingerprint(collection: Collection) -> str:
    """Depends on our version, a folder's place and files, and the packages that an embedded collection is made from."""
    packages = getattr(collection.dataset, "packages", pd.DataFrame)()
    digest = hashlib.sha256(f"{pn.__version__} {collection.folder} {packages.to_csv()}".encode())
    if collection.folder is not None:
        # Contents, not times of modification: a checkout or a new copy changes the times of all files, and whatever
        # was trained would be trained again. Hashing takes seconds for a gigabyte.
        for path in _files(collection.dataset.path):
            with path.open("rb") as file:
                digest.update(f" {path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}".encode())
    return digest.hexdigest()[:8]


def _files(folder: Path) -> list[Path]:
    """The files of a collection in a folder: documents, which may be another folder's, queries and judgements."""
    return [
        BeirFolder(folder).corpus_file,
        *sorted(folder.glob("queries.jsonl*")),
        *sorted(folder.glob("qrels/*.tsv")),
    ]


def _with_fields(name: str, fields: Sequence[str]) -> str:
    """The name of an artifact that depends on the fields of a document."""
    return name if tuple(fields) == FIELDS else "-".join([name, *fields])


def _fitted_name(model: Any, examples: Iterable[pd.DataFrame]) -> str:
    return f"{model.artifact_format}-{_digest(model, examples)}"


def _digest(model: Any, examples: Iterable[pd.DataFrame]) -> str:
    """Depends on everything that a fitted model depends on."""
    settings = [model.settings(), list(model.fields)]
    if hasattr(model, "training"):
        settings.append({name: value for name, value in model.training.to_json().items() if name != "verbose"})
    if hasattr(model, "spaces"):
        settings.append([model.spaces.settings, len(model.spaces), model.spaces.dim])
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for frame in examples:
        columns = frame[[column for column in ("qid", "query", "docno", "label") if column in frame]]
        digest.update(pd.util.hash_pandas_object(columns, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:12]


def markdown(table: pd.DataFrame) -> str:
    """A frame as a Markdown table, with a dash for what is missing."""
    cells = table.astype(object).fillna("–").astype(str).to_numpy().tolist()
    rows = [list(map(str, table.columns)), ["---"] * len(table.columns), *cells]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
