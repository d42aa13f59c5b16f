"""How text becomes terms: Anserini's English analyzer, by stemmer and stop words."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pt_neural.lucene.jvm import in_java, java_class

STEMMERS = ("porter", "krovetz", "none")


@dataclass(frozen=True)
class Analysis:
    """Stemmer and stop words of an index, for its documents and for the queries put to it.

    Attributes:
        stemmer: ``"porter"``, ``"krovetz"`` or ``"none"``.
        stopwords: ``"default"`` for Lucene's 33 English words, ``"none"``, or the path of a file with one word
            a line.
    """

    stemmer: str = "porter"
    stopwords: str = "default"

    def __post_init__(self) -> None:
        if self.stemmer not in STEMMERS:
            raise ValueError(f"stemmer={self.stemmer!r}, but the stemmers are {', '.join(STEMMERS)}")
        if self.stopwords not in ("default", "none") and not Path(self.stopwords).is_file():
            raise ValueError(f"stopwords={self.stopwords!r} is neither 'default' nor 'none' nor a file of words")

    @property
    def stopwords_file(self) -> str | None:
        """The file of stop words, if they come from one."""
        return None if self.stopwords in ("default", "none") else self.stopwords

    def to_java(self) -> Any:
        """The Lucene analyzer. Analyzers are safe to share between threads."""
        return _analyzer(self)

    @in_java
    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        from pt_neural.lucene.batch import lines

        line = lines([text]).findFirst().get()
        found = java_class("io.anserini.analysis.AnalyzerUtils").analyze(self.to_java(), line)
        return list(found.toArray())


@functools.cache
def _analyzer(analysis: Analysis) -> Any:
    english = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
    return english.fromArguments(analysis.stemmer, analysis.stopwords == "none", analysis.stopwords_file)
