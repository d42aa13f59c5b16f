"""Two-word phrases treated as single words, in texts and in word vectors."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from pt_neural._arguments import checked_number
from pt_neural._artifacts import atomic_directory, read_metadata, unchanged, write_metadata
from pt_neural._files import ArtifactError, read_object, write_json
from pt_neural._frames import as_texts, validated
from pt_neural.datasets.documents import with_bar
from pt_neural.embeddings.train import token_lists
from pt_neural.text import TEXT_FIELDS, tokenise

JOINT = "\u0332"  # a combining low line, at which tokenise() does not split: "new" and "york" become "new̲york"
FILE = "phrases.json"


class PhraseJoiner(pt.Artifact, pt.Transformer):
    """Joins the two words of a phrase, such as *new york*, so that rankers and word vectors read them as one word.

    Match-Tensor reads "phrase embeddings [...] with a vocabulary [...] containing unigrams and selected bigrams" (its
    section 5.1). They are selected as by Mikolov et al. (2013, equation 6), with gensim's scaling by the number of
    distinct words and pairs: two adjacent words that occur together more than ``min_count`` times and score above
    ``threshold``. From left to right, each pair of words of a text that is a phrase becomes a single word.

    As a transformer it joins the words of queries, and of the fields of documents that a frame has. The documents of a
    forward index, and the texts that word vectors are trained on, are joined by :meth:`documents`. First stages index
    plain words, so put them before the joiner. Joined texts are in lower case, without punctuation.

    Create it with :meth:`learn` or :meth:`from_phrases`; the class itself opens a directory that :meth:`save` wrote.

    Args:
        path: The directory.
        verify: Compare all files with the digests that were written with them. By default, only what ``from_url`` and
            ``from_hf`` have downloaded.

    Attributes:
        phrases: The score of each phrase, by its two words.
        fields: The fields of documents that hold their text.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory is damaged or holds something else; the message names the file.

    Example::

        >>> joiner = PhraseJoiner.from_phrases(["new york"])
        >>> len(joiner.join("A new car, from New York").split())
        5

    In a pipeline::

        corpus = dataset.get_corpus_iter
        joiner = pn.PhraseJoiner.learn(corpus())
        documents = pn.ForwardIndex.build("phrases.forward", joiner.documents(corpus()))
        spaces = pn.EmbeddingSpaces.train(joiner.documents(corpus()), dim=256)
        pipeline = bm25 % 100 >> joiner >> pn.MatchTensor(spaces, documents=documents)
    """

    ARTIFACT_TYPE = "phrase_joiner"
    ARTIFACT_FORMAT = "pt_neural"

    def __init__(self, path: str | os.PathLike, *, verify: bool | None = None):
        super().__init__(Path(path).expanduser().absolute())
        kind = {"type": self.ARTIFACT_TYPE, "format": self.ARTIFACT_FORMAT}
        with unchanged(self.path, read_metadata(self.path, **kind, verify=verify)):
            content = read_object(self.path / FILE)
        try:
            phrases = {(first, second): float(score) for first, second, score in content["phrases"]}
            self._set(phrases, content["fields"])
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{self.path / FILE} is damaged: {error!r}") from None

    def _set(self, phrases: Mapping[tuple[str, str], float], fields: Sequence[str]) -> None:
        for words in phrases:
            if len(words) != 2 or any(tokenise(word) != [word] for word in words):
                raise ValueError(f"a phrase is two words in lower case, not {words!r}")
        self.phrases, self.fields = dict(phrases), (fields,) if isinstance(fields, str) else tuple(fields)

    @classmethod
    def from_phrases(
        cls, phrases: Mapping[tuple[str, str], float] | Iterable[str], fields: Sequence[str] = TEXT_FIELDS
    ) -> "PhraseJoiner":
        """A joiner of given phrases.

        Args:
            phrases: Texts of two words each, or the score of each pair of words.
            fields: Fields of documents that hold their text.

        Raises:
            ValueError: If a phrase is not exactly two words in lower case.
        """
        if not isinstance(phrases, Mapping):
            phrases = {tuple(tokenise(phrase)): 0.0 for phrase in phrases}
        joiner = cls.__new__(cls)  # __init__ opens a directory, as pyterrier's artifacts do
        pt.Artifact.__init__(joiner, pt.Artifact.NO_PATH)
        joiner._set(phrases, fields)
        return joiner

    @classmethod
    def learn(
        cls,
        texts: Iterable[Any] | pd.DataFrame,
        *,
        min_count: int = 5,
        threshold: float = 10.0,
        fields: Sequence[str] = TEXT_FIELDS,
        verbose: bool = True,
    ) -> "PhraseJoiner":
        """Select phrases from texts, by gensim's ``Phrases``.

        Args:
            texts: A corpus iterator, a frame of topics (column ``query``, else ``fields``), or an iterable of
                documents, strings or lists of tokens. They are read once. No phrase crosses a field boundary.
            min_count: Discount on the count of a pair (delta in equation 6); a phrase must occur more often.
            threshold: Score above which a pair is a phrase: (count of the pair - ``min_count``) x (number of distinct
                words and pairs) / (product of the counts of both words).
            fields: Fields of documents that hold their text.
            verbose: Show a progress bar, but not for a frame.

        Raises:
            TypeError: If a text is none of these.
            ValueError: If a setting is out of range, or if a document has none of the fields.
        """
        from gensim.models.phrases import Phrases

        fields = (fields,) if isinstance(fields, str) else tuple(fields)
        min_count = checked_number("min_count", min_count, int, least=1)
        threshold = checked_number("threshold", threshold, float, above=0)
        if not isinstance(texts, (pd.DataFrame, str, bytes, os.PathLike)):
            texts = with_bar(texts, texts, desc="reading texts", verbose=verbose)
        found = Phrases(_token_lists(texts, fields), min_count=min_count, threshold=threshold, delimiter=" ")
        scores = {tuple(name.split(" ")): float(score) for name, score in sorted(found.export_phrases().items())}
        return cls.from_phrases(scores, fields)

    def join(self, text: Any) -> str:
        """The tokens of a text, with phrases joined, as a string; empty if the text is not a string."""
        words, free = tokenise(text), 0  # the first word that is not in a phrase already
        for place in [place for place, pair in enumerate(pairwise(words)) if pair in self.phrases]:
            if place >= free:
                free = place + 2
                words[place:free] = JOINT.join(words[place:free]), ""
        return " ".join(filter(None, words))

    def documents(self, corpus: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """The documents of a corpus with the words of phrases joined; other columns stay as they are."""
        for document in corpus:
            joined = {field: self.join(document[field]) for field in self.fields if field in document}
            yield {**document, **joined}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Join the words of phrases in ``query``, and in the fields of documents.

        Args:
            inp: Frame with ``query``, or with fields of documents.

        Returns:
            The same rows; an earlier query is kept as ``query_0``, as by PyTerrier's other query rewriters.

        Raises:
            ColumnsError: If the frame has neither.
        """
        with validated(inp, self, self.fields) as validator:
            validator.query_frame(["query"], mode="queries")
            validator.result_frame(["query"], mode="results")
            for field in self.fields:
                validator.document_frame([field], mode=f"documents with {field}")
        columns = [name for name in self.fields if name in inp]
        joined = inp.assign(**{name: [self.join(text) for text in inp[name]] for name in columns})
        if "query" not in inp:
            return joined
        distinct = inp["query"].unique()
        texts = dict(zip(distinct, map(self.join, as_texts(distinct)), strict=True))
        return pt.model.push_queries(joined, keep_original=True).assign(query=inp["query"].map(texts))

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write a directory with the phrases as JSON, atomically.

        Args:
            path: The directory.
            overwrite: Replace a joiner that is already there.

        Raises:
            FileExistsError: If something is there and ``overwrite`` is false.
        """
        kind = {"type": self.ARTIFACT_TYPE, "format": self.ARTIFACT_FORMAT}
        phrases = [[*words, score] for words, score in self.phrases.items()]
        with atomic_directory(Path(path).expanduser(), overwrite=overwrite, **kind) as directory:
            write_json(directory / FILE, {"fields": self.fields, "phrases": phrases})
            write_metadata(directory, **kind)

    def __repr__(self) -> str:
        return f"PhraseJoiner({len(self.phrases):,} phrases)"


def _token_lists(texts: Iterable[Any] | pd.DataFrame, fields: Sequence[str]) -> Iterator[list[str]]:
    """The tokens of each text, and of each field of a document by itself."""
    if isinstance(texts, pd.DataFrame):
        columns = ["query"] if "query" in texts else [field for field in fields if field in texts]
        if not columns:
            raise ValueError(f"the frame has no query, and none of the fields {', '.join(fields)}")
        for column in columns:
            yield from map(tokenise, texts[column])
    elif isinstance(texts, (str, bytes, os.PathLike)):
        yield from token_lists(texts, fields)  # which raises
    else:
        for text in texts:
            if isinstance(text, Mapping):
                if not any(field in text for field in fields):
                    raise ValueError(f"a document has none of the fields {', '.join(fields)}; it has {', '.join(text)}")
                yield from (tokenise(text.get(field)) for field in fields)
            else:
                yield from token_lists([text], fields)
