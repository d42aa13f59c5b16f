"""Indexing documents: checked, handed to Lucene in chunks, written to a directory that appears only when complete."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import pandas as pd
import pyterrier as pt

from pt_neural._artifacts import atomic_directory, refuse_existing, write_metadata
from pt_neural.datasets.docnos import DocnoTable
from pt_neural.datasets.documents import documents_of, read_documents, with_bar
from pt_neural.lucene.index.analysis import Analysis
from pt_neural.lucene.index.anserini import KIND, parse_options, storage_flags
from pt_neural.lucene.index.directory import IndexDirectory
from pt_neural.lucene.index.reader import DOCNOS_FOLDER, SEPARATOR, keep_docnos
from pt_neural.lucene.index.text import TEXT_FOLDER, TextStoreWriter, write_slots
from pt_neural.lucene.java.handles import (
    bind,
    chain,
    clean,
    constructor,
    feed,
    function,
    lines,
    method,
    setter,
    signature,
)
from pt_neural.lucene.java.jackson import MAPPER, json_mapper
from pt_neural.lucene.java.jvm import MORE_HEAP, in_java, java_class, java_path, refuse_if_out_of_files
from pt_neural.text.tokens import join_fields

CHUNK, CHUNK_BYTES = 500, 16_000_000  # documents per Java call, and bytes of their JSON
RESERVED = ("id", "contents", "raw")  # Anserini's own fields
BLANKS = "".join(map(chr, range(33)))  # what Java trims
NO_WORDS = "\N{NO-BREAK SPACE}"  # Anserini drops an empty document; one with only this is kept, and has no terms

_DOCUMENT = "io.anserini.collection.JsonCollection$Document"
_GENERATOR = "io.anserini.index.generator.DefaultLuceneDocumentGenerator"
_STRING = "java.lang.String"
_NODE = "com.fasterxml.jackson.databind.JsonNode"
_LUCENE_DOCUMENT = "org.apache.lucene.document.Document"
_WRITER = "org.apache.lucene.index.IndexWriter"


class LuceneIndexer(pt.Indexer):
    """Builds a Lucene index that Anserini's tools can read; made by :meth:`LuceneIndex.indexer`.

    Args:
        index: The index to build.
        fields: Fields of a document to join into Anserini's field ``contents``; a document need not have all of them.
        separate_fields: Fields that can also be searched on their own, as in ``index.bm25(field="title")``.
        metadata: Fields that are kept with the text, for :meth:`LuceneIndex.text_loader`, but not searched.
        positions: Keep positions of terms, which SDM needs.
        vectors: Keep the term vector of each document, which RM3 and latent concept expansion need.
        store_text: Keep the text of all these fields beside Lucene, for :meth:`LuceneIndex.text_loader`.
        raw: Store each document in Lucene as well, as JSON, for other tools. Slow to read and large.
        stemmer: ``"porter"``, ``"krovetz"`` or ``"none"``.
        stopwords: ``"default"`` (Lucene's 33 English words), ``"none"``, or a file with one word per line.
        memory: Megabytes that Lucene fills before it writes a segment. Default: a quarter of Java's heap, at
            most 1024.
        overwrite: Replace an existing index, which stays untouched until the new one is complete.
        verbose: Show a progress bar.
    """

    def __init__(
        self,
        index: IndexDirectory,
        *,
        fields: Sequence[str] = ("title", "text"),
        separate_fields: Sequence[str] = (),
        metadata: Sequence[str] = (),
        positions: bool = True,
        vectors: bool = True,
        store_text: bool = True,
        raw: bool = False,
        stemmer: str = "porter",
        stopwords: str = "default",
        memory: int | None = None,
        overwrite: bool = False,
        verbose: bool = True,
    ):
        self._index = index
        self.fields = [fields] if isinstance(fields, str) else list(fields)
        self.separate_fields = [separate_fields] if isinstance(separate_fields, str) else list(separate_fields)
        self.metadata = [metadata] if isinstance(metadata, str) else list(metadata)
        self.positions = positions
        self.vectors = vectors
        self.store_text = store_text
        self.raw = raw
        self.stemmer = stemmer
        self.stopwords = stopwords
        self.memory = memory
        self.overwrite = overwrite
        self.verbose = verbose
        Analysis.read(stemmer, stopwords)  # refuses unknown stemmers and files
        if self.metadata and not store_text:
            raise ValueError(f"metadata={self.metadata!r:.80} is kept with the text, which store_text=False drops")
        for name in self.separate_fields:
            if name in RESERVED:
                raise ValueError(f"separate_fields has {name!r}, a name that Anserini reserves; rename the field")
            if not isinstance(name, str) or not name or clean(name) != name or SEPARATOR in name:
                raise ValueError(f"separate_fields has {name!r:.80}, but a name is text, not empty and without NUL")

    def index_inputs(self) -> list[list[str]]:
        """What a document needs, for PyTerrier's inspection."""
        return [["docno", *self.fields]]

    def index(self, iter: Iterable[Mapping[str, Any]] | pd.DataFrame) -> IndexDirectory:
        """Build the index. If anything goes wrong, or on Ctrl-C, nothing is left behind.

        Args:
            iter: Documents with a unique ``docno`` (a string or an integer, which becomes a string) and at least
                one of the fields, as dicts or as the rows of a frame. Values other than strings count as empty; a
                document without words is kept.

        Returns:
            The index, ready to search.

        Raises:
            FileExistsError: If there is something at the path already.
            ValueError: If there are no documents, if a docno is missing or occurs twice, or if a document has none of
                the fields.
        """
        path = self._index.path
        refuse_existing(path, overwrite=self.overwrite, **KIND)
        documents = with_bar(documents_of(iter), iter, desc=f"indexing {path.name}", verbose=self.verbose)
        with atomic_directory(path, overwrite=self.overwrite, **KIND) as directory:
            analysis = Analysis.read(self.stemmer, self.stopwords)
            count = self._write(directory, documents, analysis)
            keep_docnos(directory)
            if self.store_text:
                write_slots(directory / TEXT_FOLDER, DocnoTable(directory / DOCNOS_FOLDER))
            write_metadata(directory, **KIND, documents=count, analysis=analysis.save(directory))
        return self._index

    def _write(self, directory: Path, documents: Iterable[Mapping[str, Any]], analysis: Analysis) -> int:
        stored = list(dict.fromkeys([*self.fields, *self.separate_fields, *self.metadata])) if self.store_text else []
        prepared = prepare(documents, self.fields, self.separate_fields, stored)
        if not self.store_text:
            return self._write_lucene(directory, prepared, analysis)
        with TextStoreWriter(directory / TEXT_FOLDER, stored) as store:
            return self._write_lucene(directory, _store(prepared, store), analysis)

    def _write_lucene(self, directory: Path, documents: Iterable[PreparedDocument], analysis: Analysis) -> int:
        with LuceneWriter(directory, self, analysis) as writer:
            for chunk in in_chunks(documents, writer.chunk_bytes):
                writer.add(chunk)
            return writer.count

    def subtransformers(self) -> dict[str, Any]:
        """None; PyTerrier would take an empty list of fields for a list of transformers."""
        return {}

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """How PyTerrier draws it."""
        return {"label": "Lucene indexer", "help_url": None}

    def __repr__(self) -> str:
        return f"LuceneIndexer({self._index.name!r}, fields={self.fields!r})"


class PreparedDocument(NamedTuple):
    """A document for Lucene and for the text store."""

    docno: str
    json: str  # as Anserini's JsonCollection reads it
    texts: list[str]  # one for each stored field


def prepare(
    documents: Iterable[Mapping[str, Any]],
    fields: Sequence[str],
    separate_fields: Sequence[str],
    stored_fields: Sequence[str],
) -> Iterator[PreparedDocument]:
    """Check documents one by one before they reach Lucene, whose errors say little; see :func:`read_documents`.

    A field that is missing or not a string counts as empty. A document without words is kept; no query finds it.
    """
    for docno, document in read_documents(documents):
        contents = clean(join_fields(document, fields))
        record = {"id": docno, "contents": contents if contents.strip(BLANKS) else NO_WORDS}
        record |= {name: text for name in separate_fields if (text := _text(document, name)).strip(BLANKS)}
        yield PreparedDocument(docno, json.dumps(record), [_text(document, name) for name in stored_fields])


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    return clean(value) if isinstance(value, str) else ""


def _store(documents: Iterable[PreparedDocument], store: TextStoreWriter) -> Iterator[PreparedDocument]:
    for document in documents:
        store.add(document.docno, document.texts)
        yield document


def in_chunks(documents: Iterable[PreparedDocument], most_bytes: int) -> Iterator[list[PreparedDocument]]:
    """Documents in chunks of up to 500 and so many bytes of JSON; a longer document makes one by itself."""
    chunk: list[PreparedDocument] = []
    size = 0
    for document in documents:
        if chunk and (len(chunk) == CHUNK or size + len(document.json) > most_bytes):
            yield chunk
            chunk, size = [], 0
        chunk.append(document)
        size += len(document.json)
    if chunk:
        yield chunk


class LuceneWriter:
    """A context that adds documents to a new index in a directory, as an indexer's settings say: all or none."""

    def __init__(self, directory: Path, settings: LuceneIndexer, analysis: Analysis):
        self.directory = directory
        self.settings = settings
        self.analysis = analysis
        self.count = 0

    @in_java
    def __enter__(self) -> Self:
        to_document = self._to_document()
        config = java_class("org.apache.lucene.index.IndexWriterConfig")(self.analysis.to_java())
        config.setRAMBufferSizeMB(float(self.settings.memory or _default_memory()))
        config.setUseCompoundFile(False)
        directory = java_class("org.apache.lucene.store.FSDirectory").open(java_path(self.directory))
        self.java = self._open(directory, config)
        self.chunk_bytes = min(CHUNK_BYTES, _heap() // 16)
        add = method(_WRITER, "addDocument", "long", "java.lang.Iterable").bindTo(self.java)
        self._add = function(chain(to_document, add.asType(signature("long", _LUCENE_DOCUMENT))))
        return self

    @in_java
    def add(self, documents: Sequence[PreparedDocument]) -> None:
        """Add documents, on all cores."""
        try:
            lines([document.json for document in documents]).map(self._add).toArray()
        except Exception as error:  # jnius has one exception type for all of Java's
            refuse_if_out_of_files(error, self.directory)
            names = f"{documents[0].docno!r} to {documents[-1].docno!r}"
            megabytes = sum(len(document.json) for document in documents) / 1e6
            remedy = f"; {MORE_HEAP}" if "OutOfMemoryError" in str(error) else ""
            raise RuntimeError(
                f"Lucene failed on one of the documents {names} ({megabytes:.1f} MB){remedy}: {error}"
            ) from error
        self.count += len(documents)

    @in_java
    def __exit__(self, kind: type | None, *_: Any) -> None:
        """Commit, or undo everything; either way Lucene's lock is released."""
        written = self.java.getDocStats().numDocs
        if kind is None and written == self.count:
            self._close()
            return
        self.java.rollback()
        if kind is None:
            raise RuntimeError(f"{self.count} documents were sent, but Lucene holds {written}")

    def _open(self, directory: Any, config: Any) -> Any:
        try:
            return java_class(_WRITER)(directory, config)
        except Exception as error:  # jnius has one exception type for all of Java's
            refuse_if_out_of_files(error, self.directory)
            raise

    def _close(self) -> None:
        try:
            self.java.close()
        except Exception as error:  # jnius has one exception type for all of Java's
            self.java.rollback()
            refuse_if_out_of_files(error, self.directory)
            raise

    def _to_document(self) -> Any:
        """Handle from JSON to a Lucene document."""
        settings = self.settings
        flags = ["-collection", "JsonCollection", "-input", "", "-index", str(self.directory)]
        flags += storage_flags(positions=settings.positions, vectors=settings.vectors, raw=settings.raw)
        options = parse_options(flags)
        _set_fields(options, settings.separate_fields)  # not by a flag, which would cut names at their spaces
        generator = java_class(_GENERATOR)(options)
        read = method(MAPPER, "readTree", _NODE, _STRING).bindTo(json_mapper())
        parse = chain(read, constructor(_DOCUMENT, _NODE))
        create = method(_GENERATOR, "createDocument", _LUCENE_DOCUMENT, "io.anserini.collection.SourceDocument")
        return chain(parse, create.bindTo(generator).asType(signature(_LUCENE_DOCUMENT, _DOCUMENT)))


def _set_fields(options: Any, names: Sequence[str]) -> None:
    """Tell Anserini which fields to index by themselves; jnius cannot set a field to an array."""
    cut = bind(method(_STRING, "split", f"{_STRING}[]", _STRING), 1, SEPARATOR)
    store = setter("io.anserini.index.IndexCollection$Args", "fields", f"{_STRING}[]").bindTo(options)
    function(feed(store, 0, cut)).apply(SEPARATOR.join(names))


def _default_memory() -> int:
    """A quarter of Java's heap in megabytes, between 16 and 1024."""
    return min(1024, max(16, _heap() // 4 // 2**20))


def _heap() -> int:
    """The largest size of Java's heap in bytes."""
    return java_class("java.lang.Runtime").getRuntime().maxMemory()
