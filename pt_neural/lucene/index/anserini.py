"""Anserini's own indexing program, for collections in formats that it knows: TREC, HTML, WARC and others."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyterrier as pt

from pt_neural._artifacts import atomic_directory, write_metadata
from pt_neural.lucene.index.analysis import Analysis
from pt_neural.lucene.index.reader import keep_docnos
from pt_neural.lucene.java.jvm import as_interface, in_java, java_class

KIND = {"type": "sparse_index", "format": "anserini"}
POLLING_INTERVAL = 200  # milliseconds between two looks at a running build
ANALYSIS_OPTIONS = ("language", "stemmer", "stopwords", "keepStopwords", "pretokenized")
ANALYSIS_OPTIONS += ("analyzeWithHuggingFaceTokenizer", "useCompositeAnalyzer", "useAutoCompositeAnalyzer")
INDEXER = "io.anserini.index.AbstractIndexer"  # whose logger has the errors of reading files
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
        errors = _run([*flags, *options], verbose)
        count = keep_docnos(directory) if any(directory.glob("segments_*")) else 0
        if not count:
            raise ValueError(f"Anserini's {collection} found no documents in {input}; Java's messages say more")
        write_metadata(directory, **KIND, documents=count, analysis=settings)
    if errors:
        warnings.warn(
            f"Anserini went on after errors, so documents are missing from {path}, which has {count:,}, or from an "
            f"index that was built at the same time; Java's messages say why: {' '.join(errors.split()):.1000}",
            stacklevel=3,
        )


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


def _run(flags: Sequence[str], verbose: bool) -> str:
    """Build, and return what Anserini logs as errors: at a file that it cannot read, it goes on to the next one."""
    appender, errors = _log_errors()
    try:
        _build(flags, verbose)
        return in_java(errors.toString)()
    finally:
        _log_no_more(appender)


@in_java
def _log_errors() -> tuple[Any, Any]:
    """An appender that gets the errors of Anserini's indexer, and the Java writer that gathers them."""
    level, filters = "org.apache.logging.log4j.Level", "org.apache.logging.log4j.core.filter.ThresholdFilter"
    result = java_class("org.apache.logging.log4j.core.Filter$Result")
    only_errors = java_class(filters).createFilter(java_class(level).ERROR, result.ACCEPT, result.DENY)
    errors = java_class("java.io.StringWriter")()
    appender = java_class("org.apache.logging.log4j.core.appender.WriterAppender").createAppender(
        None, only_errors, errors, f"pt_neural-{id(errors)}", False, True
    )
    appender.start()
    _, logger = _logging()
    logger.addAppender(appender)
    return appender, errors


@in_java
def _log_no_more(appender: Any) -> None:
    """Remove an appender, and with the last one the settings of the logger, which else would keep its level."""
    context, logger = _logging()
    logger.removeAppender(appender)
    if logger.getAppenders().isEmpty():
        context.getConfiguration().removeLogger(INDEXER)
        context.updateLoggers()


def _logging() -> tuple[Any, Any]:
    """The context in which Java's own classes log, which is that of their class loader, and the indexer's logger."""
    loader = java_class("java.lang.ClassLoader").getSystemClassLoader()
    context = java_class("org.apache.logging.log4j.LogManager").getContext(loader, False)
    logger = as_interface("org.apache.logging.log4j.core.Logger", context.getLogger(INDEXER))
    return as_interface("org.apache.logging.log4j.core.LoggerContext", context), logger


def _build(flags: Sequence[str], verbose: bool) -> None:
    """Build in a Java thread, so that Ctrl-C and other Python threads get their turn."""
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
