"""Lucene's index writer, fed with JSON documents through Anserini's own document generator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pt_neural.lucene.analysis import Analysis
from pt_neural.lucene.anserini_options import keep_flags, parse_options
from pt_neural.lucene.batch import lines
from pt_neural.lucene.documents import PreparedDocument
from pt_neural.lucene.handles import chain, function, method, signature, static
from pt_neural.lucene.jvm import in_java, java_class

if TYPE_CHECKING:
    from pt_neural.lucene.indexing import LuceneIndexer

_DOCUMENT = "io.anserini.collection.JsonCollection$Document"
_GENERATOR = "io.anserini.index.generator.DefaultLuceneDocumentGenerator"
_LUCENE_DOCUMENT = "org.apache.lucene.document.Document"
_WRITER = "org.apache.lucene.index.IndexWriter"


class Writer:
    """A context in which documents are added to a new index, all of them or none.

    Args:
        directory: An existing directory.
        settings: What is indexed, and how.
    """

    def __init__(self, directory: Path, settings: LuceneIndexer):
        self.directory = directory
        self.settings = settings
        self.count = 0

    @in_java
    def __enter__(self) -> Self:
        to_document = self._to_document()
        analyzer = Analysis(self.settings.stemmer, self.settings.stopwords).to_java()
        config = java_class("org.apache.lucene.index.IndexWriterConfig")(analyzer)
        config.setRAMBufferSizeMB(float(self.settings.memory or _default_memory()))
        config.setUseCompoundFile(False)
        place = java_class("java.nio.file.Paths").get(str(self.directory))
        directory = java_class("org.apache.lucene.store.FSDirectory").open(place)
        self.java = java_class(_WRITER)(directory, config)
        self._add = function(chain(to_document, _add_to(self.java)))
        return self

    @in_java
    def add(self, documents: Sequence[PreparedDocument]) -> int:
        """Add documents, on all cores. Returns their number."""
        try:
            lines([document.json for document in documents]).map(self._add).toArray()
        except Exception as error:  # jnius gives one exception type for all of Java's
            names = f"{documents[0].docno!r} to {documents[-1].docno!r}"
            raise RuntimeError(f"Lucene failed on one of the documents {names}: {error}") from error
        self.count += len(documents)
        return len(documents)

    @in_java
    def __exit__(self, kind: type | None, *_: Any) -> None:
        """Commit, or undo everything; either releases Lucene's lock."""
        written = self.java.getDocStats().numDocs
        if kind is None and written == self.count:
            self.java.close()
            return
        self.java.rollback()
        if kind is None:
            raise RuntimeError(f"{self.count} documents were sent, but Lucene holds {written}")

    def _to_document(self) -> Any:
        """Handle from JSON to a Lucene document."""
        parse = static(_DOCUMENT, "fromString", _DOCUMENT, "java.lang.String")
        create = method(_GENERATOR, "createDocument", _LUCENE_DOCUMENT, "io.anserini.collection.SourceDocument")
        generator = self._generator()
        return chain(parse, create.bindTo(generator).asType(signature(_LUCENE_DOCUMENT, _DOCUMENT)))

    def _generator(self) -> Any:
        """Anserini's own program from JSON to Lucene documents."""
        settings = self.settings
        flags = ["-collection", "JsonCollection", "-input", "", "-index", str(self.directory)]
        flags += keep_flags(positions=settings.positions, vectors=settings.vectors, raw=settings.raw)
        if settings.separate_fields:
            flags += ["-fields", *settings.separate_fields]
        return java_class(_GENERATOR)(parse_options(flags))


def _add_to(writer: Any) -> Any:
    """Handle from a Lucene document to the sequence number of its addition."""
    add = method(_WRITER, "addDocument", "long", "java.lang.Iterable").bindTo(writer)
    return add.asType(signature("long", _LUCENE_DOCUMENT))


def _default_memory() -> int:
    runtime = java_class("java.lang.Runtime").getRuntime()
    return min(1024, max(16, runtime.maxMemory() // 4 // 2**20))
