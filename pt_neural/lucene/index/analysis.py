"""How text becomes terms: Anserini's English analyzer, by stemmer and stop words."""

import functools
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pt_neural._artifacts import METADATA
from pt_neural._files import read_json
from pt_neural.lucene.java.handles import clean
from pt_neural.lucene.java.jvm import in_java, java_class

STOPWORDS_FILE = "stopwords.txt"
STEMMERS = ("porter", "krovetz", "none")


@dataclass(frozen=True)
class Analysis:
    """The stemmer and stop words of an index, for its documents and its queries.

    Attributes:
        stemmer: ``"porter"``, ``"krovetz"`` or ``"none"``.
        stopwords: ``"default"`` for Lucene's 33 English words, ``"none"``, or the path of a file with one word
            per line.
    """

    stemmer: str = "porter"
    stopwords: str = "default"

    def __post_init__(self) -> None:
        if self.stemmer not in STEMMERS:
            raise ValueError(f"stemmer={self.stemmer!r}, but the stemmers are {', '.join(STEMMERS)}")
        if self.stopwords not in ("default", "none") and not Path(self.stopwords).is_file():
            raise ValueError(f"stopwords={self.stopwords!r} is neither 'default' nor 'none' nor a file of words")

    def as_options(self) -> list[str]:
        """These settings as options of Anserini's programs."""
        if self.stopwords == "none":
            return ["-stemmer", self.stemmer, "-keepStopwords"]
        return ["-stemmer", self.stemmer, *(["-stopwords", self.stopwords_file] if self.stopwords_file else [])]

    def save(self, directory: Path) -> dict[str, str]:
        """Copy any file of stop words beside an index; returns the metadata that :meth:`of_index` reads."""
        if self.stopwords_file is None:
            return {"stemmer": self.stemmer, "stopwords": self.stopwords}
        shutil.copyfile(self.stopwords_file, directory / STOPWORDS_FILE)
        return {"stemmer": self.stemmer, "stopwords": STOPWORDS_FILE}

    @classmethod
    def of_index(cls, path: Path, *, stemmer: str | None, stopwords: str | None) -> "Analysis":
        """The settings in the metadata of an index, if any; ``stemmer`` and ``stopwords`` take precedence."""
        built_with = read_json(path / METADATA).get("analysis", {}) if (path / METADATA).is_file() else {}
        if built_with.get("stopwords") == STOPWORDS_FILE:
            built_with["stopwords"] = str(path / STOPWORDS_FILE)
        return cls(stemmer or built_with.get("stemmer", "porter"), stopwords or built_with.get("stopwords", "default"))

    @property
    def stopwords_file(self) -> str | None:
        """The path of the file of stop words, if they come from one."""
        return None if self.stopwords in ("default", "none") else str(Path(self.stopwords).absolute())

    def to_java(self) -> Any:
        """The Lucene analyzer, which threads may share."""
        return _analyzer(self)

    @in_java
    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        analyzer = self.to_java()
        terms = java_class("io.anserini.analysis.AnalyzerUtils").analyze(analyzer, clean(text))
        return list(terms.toArray())


@functools.cache
def _analyzer(analysis: Analysis) -> Any:
    english = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
    return english.fromArguments(analysis.stemmer, analysis.stopwords == "none", analysis.stopwords_file)
