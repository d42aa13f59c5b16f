"""Anserini's own indexing program, for collections in formats that it knows: TREC, HTML, WARC and others."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyterrier as pt

from pt_neural._artifacts import atomic_directory, write_metadata
from pt_neural.lucene.index.analysis import Analysis
from pt_neural.lucene.index.reader import keep_docnos
from pt_neural.lucene.java.jvm import in_java, java_class

KIND = {"type": "sparse_index", "format": "anserini"}
POLLING_INTERVAL = 200  # milliseconds between two looks at a running build
ANALYSIS_OPTIONS = ("language", "stemmer", "stopwords", "keepStopwords", "pretokenized")
ANALYSIS_OPTIONS += ("analyzeWithHuggingFaceTokenizer", "useCompositeAnalyzer", "useAutoCompositeAnalyzer")
TIMEOUT = 10_000  # milliseconds that an interrupted build gets to end


def index_collection(
    path: Path,
    collection: str,
    input: str | Path,
    *,
    generator: str = "DefaultLuceneDocumentGenerator",
    positions: bool = True,
    vectors: bool = True,
    raw: bool = False,
    stemmer: str = "porter",
    stopwords: str = "default",
    threads: int = 4,
    options: Sequence[str] = (),
    overwrite: bool = False,
    verbose: bool = True,
) -> None:
    """Run Anserini's IndexCollection; see :meth:`LuceneIndex.index_collection` for the arguments."""
    if not Path(input).is_dir():
        raise ValueError(f"{input} is not a directory; IndexCollection reads all files of a directory")
    analysis = Analysis.read(stemmer, stopwords)
    with atomic_directory(path, overwrite=overwrite) as directory:
        settings = analysis.save(directory)
        flags = ["-collection", collection, "-generator", generator, "-threads", str(threads)]
        flags += ["-input", str(Path(input).absolute()), "-index", str(directory), "-quiet"]
        flags += analysis.as_options(directory)
        flags += storage_flags(positions=positions, vectors=vectors, raw=raw)
        _require_same_analysis(flags, options)
        count = _run([*flags, *options], verbose)
        if not count or not any(directory.glob("segments_*")):
            raise ValueError(f"Anserini's {collection} found no documents in {input}; Java's messages say more")
        keep_docnos(directory)
        write_metadata(directory, **KIND, documents=count, analysis=settings)


def storage_flags(*, positions: bool, vectors: bool, raw: bool) -> list[str]:
    """Anserini's options for what an index stores besides terms and frequencies."""
    flags = {"-storePositions": positions, "-storeDocvectors": vectors, "-storeRaw": raw}
    return [flag for flag, wanted in flags.items() if wanted]


def parse_options(flags: Sequence[str]) -> Any:
    """Options of IndexCollection as Anserini's Java object; ValueError if Anserini refuses one."""
    options = java_class("io.anserini.index.IndexCollection$Args")()
    try:
        java_class("org.kohsuke.args4j.CmdLineParser")(options).parseArgument(*flags)
    except Exception as error:  # jnius has one exception type for all of Java's
        raise ValueError(f"Anserini's IndexCollection refuses {' '.join(flags)}: {error}") from None
    return options


@in_java
def _require_same_analysis(flags: Sequence[str], options: Sequence[str]) -> None:
    """Raise ValueError if options change how documents are analysed; queries would still be analysed as flags say."""
    before, after = parse_options(flags), parse_options([*flags, *options])
    changed = [f"-{name}" for name in ANALYSIS_OPTIONS if getattr(before, name) != getattr(after, name)]
    if after.impact and "-pretokenized" in changed:
        changed.remove("-pretokenized")  # queries of LuceneIndex.impact() are not analysed either
    if changed:
        raise ValueError(
            f"options={list(options)} changes how documents are analysed ({', '.join(changed)}), but not queries, "
            "which would not find them; use the arguments stemmer= and stopwords=, both 'none' for words as they are. "
            "Only impacts can be pretokenized: ['-impact', '-pretokenized']"
        )


def _run(flags: Sequence[str], verbose: bool) -> int:
    """Build in a Java thread, so that Ctrl-C and other Python threads get their turn; returns the number indexed."""
    program, thread = _start(flags)
    bar = pt.tqdm(desc="indexing", unit=" documents", disable=not verbose)
    try:
        running = True
        while running:
            running = _wait(thread)
            bar.update(_count(program) - bar.n)
    except BaseException:
        _stop(program, thread)
        raise
    finally:
        bar.close()
    return _count(program)


@in_java
def _start(flags: Sequence[str]) -> tuple[Any, Any]:
    arguments = parse_options(flags)
    try:
        program = java_class("io.anserini.index.IndexCollection")(arguments)
    except Exception as error:  # jnius has one exception type for all of Java's
        raise ValueError(f"Anserini's IndexCollection cannot start: {error}") from None
    thread = java_class("java.lang.Thread")(program, signature="(Ljava/lang/Runnable;)V")
    thread.setDaemon(True)
    thread.start()
    return program, thread


@in_java
def _wait(thread: Any) -> bool:
    thread.join(POLLING_INTERVAL)
    return thread.isAlive()


@in_java
def _count(program: Any) -> int:
    counters = program.getCounters()
    return counters.indexed.get()


@in_java
def _stop(program: Any, thread: Any) -> None:
    """Close Anserini's writer, which ends its workers, and wait until nothing writes to the directory."""
    program.writer.rollback()
    thread.join(TIMEOUT)
