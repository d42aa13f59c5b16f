"""A Lucene index in shards: built one by one, searched as one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pt_neural._artifacts import METADATA, atomic_directory, read_metadata, refuse_existing, write_metadata
from pt_neural.cluster.building import build_by_shards, require_shards_for
from pt_neural.cluster.workers import Workers
from pt_neural.datasets.corpus_shards import CorpusShards
from pt_neural.datasets.docnos import DocnoTable, DocnoWriter
from pt_neural.lucene.index.indexer import LuceneIndexer
from pt_neural.lucene.index.reader import DOCNOS_FOLDER
from pt_neural.lucene.lucene_index import LuceneIndex
from pt_neural.lucene.ray_shards import RayShards
from pt_neural.lucene.searchable import SearchableIndex

KIND = {"type": "sparse_index", "format": "lucene_shards"}


class LuceneShards(SearchableIndex):
    """A Lucene index in shards, for collections that are built, resumed or searched in parts.

    Each shard is a directory with a complete Lucene index of some of the documents, which :class:`LuceneIndex` and
    Anserini's tools can open. Together they are searched as one index: statistics, scores, ranks and ties are those of
    a :class:`LuceneIndex` of all documents.

    Args:
        path: The directory of the shards.
        stemmer: The stemmer of queries. Default: the one that the shards were built with.
        stopwords: The stop words of queries, with the same default.

    Example:
        >>> import pt_neural as pn
        >>> documents = [{"docno": "d1", "text": "The okapi"}, {"docno": "d2", "text": "The giraffe"}]
        >>> index = pn.LuceneShards("animals.shards").index(documents, shards=2, verbose=False)
        >>> index.bm25().search("okapi")["docno"].tolist()
        ['d1']
    """

    ARTIFACT_TYPE = KIND["type"]
    ARTIFACT_FORMAT = KIND["format"]

    @property
    def parts(self) -> list[Path]:
        """The directories of the shards; their documents are numbered in this order."""
        return [self.path / shard_name(number) for number in range(read_metadata(self.path, **KIND)["shards"])]

    def built(self) -> bool:
        """Whether all shards are at the path."""
        return (self.path / METADATA).is_file()

    def index(
        self,
        corpus: Iterable[Mapping[str, Any]] | CorpusShards,
        *,
        shards: int | None = None,
        overwrite: bool = False,
        verbose: bool = True,
        workers: int | Workers | None = None,
        **options: Any,
    ) -> LuceneShards:
        """Build the shards; if that is interrupted, the same call goes on and builds no finished shard again.

        Args:
            corpus: Corpus shards; or documents with a unique ``docno`` and text fields, as for
                :meth:`LuceneIndex.index`, which are written to a temporary file first.
            shards: The number of shards; needed unless the corpus is cut already.
            overwrite: Replace an existing index, which stays untouched until the new one is complete.
            verbose: Show a progress bar.
            workers: Processes of Ray that build a shard of a cut corpus each; without, shards are built one after the
                other, on all cores.
            **options: As in :class:`LuceneIndexer`, for all shards.

        Returns:
            The index, ready to search.

        Raises:
            FileExistsError: If there is something at the path already, or an unfinished index of another corpus or
                with other options beside it.
            ValueError: If there are fewer documents than shards, if a docno is in two shards, or as for
                :meth:`LuceneIndex.index`.
        """
        LuceneIndexer(LuceneIndex(self.path), **options)  # refuses impossible options
        refuse_existing(self.path, overwrite=overwrite, **KIND)
        require_shards_for(workers, corpus)
        with _cut(corpus, shards, self.path.with_name(f".{self.path.name}.corpus"), verbose=verbose) as cut:
            build_by_shards(
                self.path,
                cut,
                partial(_index_shard, options),
                partial(self._join, overwrite=overwrite),
                plan=json.loads(json.dumps(options, default=str)),
                kind=KIND,
                overwrite=overwrite,
                workers=workers,
                verbose=verbose,
            )
        return self

    def on_ray(self, *, actors: int | None = None, cpus: float = 1, heap: str | None = None) -> RayShards:
        """Let actors of the Ray cluster search the shards, which each finds at the same path.

        Args:
            actors: Number of actors, among which the shards are divided. Default: one for each shard, but no more
                than there are CPUs for.
            cpus: Number of CPUs of each actor.
            heap: The largest heap of each actor's Java, such as ``"2g"``.

        Returns:
            An object with ``bm25``, ``ql`` and ``sdm``, whose frames are those of this index. RM3 and latent concept
            expansion need the documents of all shards in one process: they are methods of this index alone, and
            ``pn.on_ray(index.rm3())`` shares out their queries.

        Raises:
            ImportError: If Ray is not installed.
            ValueError: If there are fewer shards than actors, or if no machine has room for an actor.

        Example::

            with pn.LuceneShards("l.shards").on_ray(actors=8, heap="2g") as shards:
                candidates = shards.bm25(num_results=100)(topics)
        """
        return RayShards(self, actors=actors, cpus=cpus, heap=heap)

    def _join(self, parts: Sequence[Path], *, overwrite: bool) -> None:
        """Write the index of complete shards, which stay where they are until it is at its path."""
        with atomic_directory(self.path, overwrite=overwrite, **KIND) as directory:
            (directory / DOCNOS_FOLDER).mkdir()
            with DocnoWriter(directory / DOCNOS_FOLDER) as docnos:
                for part in parts:
                    docnos.extend(DocnoTable(part / DOCNOS_FOLDER))
            count = len(DocnoTable(directory / DOCNOS_FOLDER))
            write_metadata(directory, **KIND, shards=len(parts), documents=count)
            for number, part in enumerate(parts):
                _link_files(part, directory / shard_name(number))


def shard_name(number: int) -> str:
    """The folder of a shard within an index."""
    return f"shard-{number:05}"


def _link_files(source: Path, target: Path) -> None:
    """Give a new directory the files of another one: one file under two names, or a copy where there are no links."""
    target.mkdir()
    for path in sorted(source.rglob("*")):  # a folder before what is in it
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir()
            continue
        try:
            os.link(path, place)
        except OSError:  # some file systems, such as FAT and some network shares
            shutil.copyfile(path, place)


def _index_shard(options: Mapping[str, Any], directory: Path, documents: Iterable[Mapping[str, Any]]) -> None:
    LuceneIndex(directory).index(documents, verbose=False, **options)


@contextmanager
def _cut(
    corpus: Iterable[Mapping[str, Any]] | CorpusShards, shards: int | None, folder: Path, *, verbose: bool
) -> Iterator[CorpusShards]:
    """A corpus in shards: as it is, or written to a temporary folder."""
    if isinstance(corpus, CorpusShards):
        if shards not in (None, len(corpus)):
            raise ValueError(f"shards={shards}, but the corpus is cut into {len(corpus)} shards already")
        yield corpus
        return
    if shards is None:
        raise ValueError("into how many shards? Pass shards=..., such as one for each million documents")
    try:  # the folder may have been left by a process that was killed
        CorpusShards.spool(folder, corpus, documents_per_shard=2**62, overwrite=True, verbose=verbose)
        yield CorpusShards(folder, shards=shards)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
