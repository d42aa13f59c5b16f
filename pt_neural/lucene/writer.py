"""Lucene's index writer, fed with JSON documents by Anserini's own document generator."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pt_neural.lucene.analysis import Analysis
from pt_neural.lucene.batch import lines
from pt_neural.lucene.handles import chain, function, method, signature, static
from pt_neural.lucene.jvm import in_java, java_class

_DOCUMENT = "io.anserini.collection.JsonCollection$Document"
_GENERATOR = "io.anserini.index.generator.DefaultLuceneDocumentGenerator"
_LUCENE_DOCUMENT = "org.apache.lucene.document.Document"
_WRITER = "org.apache.lucene.index.IndexWriter"


class Writer:
    """A context in which documents are added to a new index, all of them or none.

    Args:
        directory: An existing directory.
        analysis: How text becomes terms.
        positions: Keep positions of terms.
        vectors: Keep document vectors.
        memory: Megabytes that are filled before a segment is written.
    """

    def __init__(self, directory: Path, analysis: Analysis, *, positions: bool, vectors: bool, memory: int):
        self.directory = directory
        self.analysis = analysis
        self.positions = positions
        self.vectors = vectors
        self.memory = memory

    @in_java
    def __enter__(self) -> Self:
        config = java_class("org.apache.lucene.index.IndexWriterConfig")(self.analysis.to_java())
        config.setRAMBufferSizeMB(float(self.memory))
        config.setUseCompoundFile(False)
        place = java_class("java.nio.file.Paths").get(str(self.directory))
        self.java = java_class(_WRITER)(java_class("org.apache.lucene.store.FSDirectory").open(place), config)
        self._add = function(self._add_one())
        return self

    @in_java
    def add(self, documents: Sequence[str]) -> None:
        """Add a chunk of JSON documents (``id``, ``contents``, other fields to index), on all cores."""
        lines(documents).map(self._add).toArray()

    @in_java
    def __exit__(self, kind: type | None, *_: Any) -> None:
        if kind is None:
            self.java.close()  # commits
        else:
            self.java.rollback()  # releases the lock

    def _add_one(self) -> Any:
        """Handle from JSON to the sequence number of the addition."""
        parse = static(_DOCUMENT, "fromString", _DOCUMENT, "java.lang.String")
        source = "io.anserini.collection.SourceDocument"
        convert = method(_GENERATOR, "createDocument", _LUCENE_DOCUMENT, source)
        generate = convert.bindTo(java_class(_GENERATOR)(self._arguments()))
        add = method(_WRITER, "addDocument", "long", "java.lang.Iterable").bindTo(self.java)
        convert_json = generate.asType(signature(_LUCENE_DOCUMENT, _DOCUMENT))
        return chain(parse, convert_json, add.asType(signature("long", _LUCENE_DOCUMENT)))

    def _arguments(self) -> Any:
        arguments = java_class("io.anserini.index.IndexCollection$Args")()
        arguments.storePositions = self.positions
        arguments.storeDocvectors = self.vectors
        return arguments
