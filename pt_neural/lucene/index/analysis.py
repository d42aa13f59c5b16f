"""How text becomes terms: Anserini's English analyzer, by stemmer and stop words."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pt_neural._artifacts import METADATA
from pt_neural._files import ArtifactError, read_json, reading
from pt_neural.lucene.java.handles import clean, java_list
from pt_neural.lucene.java.jvm import in_java, java_class

STOPWORDS_FILE = "stopwords.txt"
STEMMERS = ("porter", "krovetz", "none")


@dataclass(frozen=True)
class Analysis:
    """The stemmer and stop words of an index, for its documents and its queries; equal ones make equal terms.

    Attributes:
        stemmer: ``"porter"``, ``"krovetz"`` or ``"none"``.
        stopwords: ``"default"`` for Lucene's 33 English words, ``"none"``, or the words.
    """

    stemmer: str = "porter"
    stopwords: str | tuple[str, ...] = "default"

    def __post_init__(self) -> None:
        if self.stemmer not in STEMMERS:
            raise ValueError(f"stemmer={self.stemmer!r}, but the stemmers are {', '.join(STEMMERS)}")

    @classmethod
    def read(cls, stemmer: str, stopwords: str) -> Self:
        """As a user gives it: ``stopwords`` may be the path of a file with one word per line."""
        if stopwords in ("default", "none"):
            return cls(stemmer, stopwords)
        if not Path(stopwords).is_file():
            raise ValueError(f"stopwords={stopwords!r} is neither 'default' nor 'none' nor a file of words")
        return cls(stemmer, _read_words(Path(stopwords)))

    @classmethod
    def of_index(cls, path: Path) -> Self:
        """The settings in the metadata of an index; Anserini's defaults if there are none."""
        metadata = read_json(path / METADATA) if (path / METADATA).is_file() else {}
        built_with = metadata.get("analysis", {}) if isinstance(metadata, dict) else None
        if not isinstance(built_with, dict):
            raise ArtifactError(f"{path / METADATA} is damaged: it does not say how texts were analysed")
        stemmer, stopwords = built_with.get("stemmer", "porter"), built_with.get("stopwords", "default")
        if stemmer not in STEMMERS or stopwords not in ("default", "none", STOPWORDS_FILE):
            raise ArtifactError(f"{path / METADATA} names stemmer={stemmer!r:.80} and stopwords={stopwords!r:.80}")
        return cls(stemmer, _read_words(path / STOPWORDS_FILE) if stopwords == STOPWORDS_FILE else stopwords)

    def replaced_by(self, *, stemmer: str | None, stopwords: str | None) -> "Analysis":
        """These settings, but for those that are given as a user gives them."""
        given = Analysis.read(stemmer or self.stemmer, stopwords or "default")
        return given if stopwords else Analysis(given.stemmer, self.stopwords)

    def save(self, directory: Path) -> dict[str, str]:
        """Keep any words beside an index; returns the metadata that :meth:`of_index` reads."""
        if isinstance(self.stopwords, str):
            return {"stemmer": self.stemmer, "stopwords": self.stopwords}
        (directory / STOPWORDS_FILE).write_text("".join(f"{word}\n" for word in self.stopwords), encoding="utf-8")
        return {"stemmer": self.stemmer, "stopwords": STOPWORDS_FILE}

    def as_options(self, directory: Path) -> list[str]:
        """These settings, saved in a directory, as options of Anserini's programs."""
        options = {"default": [], "none": ["-keepStopwords"]}
        own_words = ["-stopwords", str(directory / STOPWORDS_FILE)]
        return ["-stemmer", self.stemmer, *options.get(self.stopwords, own_words)]

    def to_java(self) -> Any:
        """The Lucene analyzer, which threads may share."""
        return _analyzer(self)

    @in_java
    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        analyzer = self.to_java()
        terms = java_class("io.anserini.analysis.AnalyzerUtils").analyze(analyzer, clean(text))
        return list(terms.toArray())


def _read_words(file: Path) -> tuple[str, ...]:
    with reading(file):
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    return tuple(line for line in lines if line)


@functools.lru_cache(maxsize=64)
def _analyzer(analysis: Analysis) -> Any:
    words, english = analysis.stopwords, java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
    if words == "default":
        return english.newStemmingInstance(analysis.stemmer)
    listed = java_list(() if words == "none" else words)
    java_words = java_class("org.apache.lucene.analysis.CharArraySet")(listed, False)
    return english.newStemmingInstance(analysis.stemmer, java_words)
