"""word2vec, keeping both of its matrices (DESM paper, section 2.1)."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural.datasets.documents import with_bar
from pt_neural.text import PackedSequences, Vocabulary, frame_texts, join_fields, tokenise
from pt_neural.text.term_spool import TermSpool, load_sequences

_FREQUENT = 30  # a word that occurs more often is skipped at random
_LONGEST = 10_000  # gensim drops the words of a sequence beyond this many


@dataclass(frozen=True, kw_only=True)
class Word2VecSettings:
    """The settings of word2vec, checked at construction; :meth:`pt_neural.EmbeddingSpaces.train` explains them."""

    dim: int
    algorithm: str
    window: int
    negative: int
    epochs: int
    min_count: int
    subsample: float | None
    learning_rate: float
    workers: int
    seed: int

    def __post_init__(self) -> None:
        if self.algorithm not in ("cbow", "skipgram"):
            raise ValueError(f"algorithm must be 'cbow' or 'skipgram', not {self.algorithm!r}")
        for name in ("dim", "window", "negative", "epochs", "min_count", "workers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if (self.subsample or 0) < 0 or self.learning_rate <= 0:
            raise ValueError("subsample must not be negative, and learning_rate must be above 0")

    def subsample_of(self, num_words: int) -> float:
        """The share of a corpus of this length above which a word is skipped at random.

        By default the share of ``_FREQUENT`` occurrences, within the bounds that word2vec's authors recommend.
        """
        if self.subsample is not None:
            return self.subsample
        return min(max(_FREQUENT / num_words, 1e-5), 1e-3)


def train_word2vec(
    texts: Iterable[Any] | pd.DataFrame, settings: Word2VecSettings, *, fields: Sequence[str], verbose: bool
) -> tuple[Vocabulary, np.ndarray, np.ndarray]:
    """Train on texts, which are read once and kept on disk as term ids meanwhile; see :func:`token_lists`.

    Returns the vocabulary and the IN and OUT matrices, float32 (words, dim); ValueError if no word is frequent enough.
    """
    with TemporaryDirectory() as name:
        directory = Path(name)
        with TermSpool(directory) as spool:
            documents = token_lists(texts, fields)
            for tokens in with_bar(documents, texts, desc="reading texts", verbose=verbose):
                spool.append(tokens)
            vocabulary = spool.finish(min_count=settings.min_count)
        if len(vocabulary) == 0:
            raise ValueError(
                f"none of the words of {vocabulary.num_documents:,} texts occurs {settings.min_count} times; "
                "give more texts or a smaller min_count"
            )
        return vocabulary, *_fit(vocabulary, load_sequences(directory), settings, verbose)


def _fit(
    vocabulary: Vocabulary, sequences: PackedSequences, settings: Word2VecSettings, verbose: bool
) -> tuple[np.ndarray, np.ndarray]:
    from gensim.models import Word2Vec

    num_words = int(vocabulary.collection_frequency.sum())
    model = Word2Vec(
        vector_size=settings.dim,
        sg=int(settings.algorithm == "skipgram"),
        hs=0,
        cbow_mean=1,
        window=settings.window,
        negative=settings.negative,
        sample=settings.subsample_of(num_words),
        alpha=settings.learning_rate,
        workers=settings.workers,
        seed=settings.seed,
        min_count=1,
        sorted_vocab=0,
    )
    # gensim's words are our term ids, so that its index of a word is the same number.
    model.build_vocab_from_freq(dict(enumerate(vocabulary.collection_frequency.tolist())))
    total = num_words * settings.epochs
    with pt.tqdm(total=total, desc="word2vec", unit="word", unit_scale=True, disable=not verbose) as bar:
        sentences = _Sentences(sequences, bar)
        model.train(corpus_iterable=sentences, total_words=num_words, epochs=settings.epochs)
    return model.wv.vectors, model.syn1neg


class _Sentences:
    """What gensim iterates over in each epoch: lists of term ids, without unknown words (-1)."""

    def __init__(self, sequences: PackedSequences, bar: Any):
        self.sequences = sequences
        self.bar = bar

    def __iter__(self) -> Iterator[list[int]]:
        for sequence in self.sequences:
            known = sequence[sequence >= 0].tolist()
            for start in range(0, len(known), _LONGEST):
                yield known[start : start + _LONGEST]
            self.bar.update(len(known))


def token_lists(texts: Iterable[Any] | pd.DataFrame, fields: Sequence[str]) -> Iterator[list[str]]:
    """Tokens of each text: the rows of a frame, or documents (mappings), strings or lists of tokens.

    None and NaN are texts without tokens; anything else raises TypeError.
    """
    if isinstance(texts, pd.DataFrame):
        return map(tokenise, frame_texts(texts, ["query"] if "query" in texts.columns else fields))
    if isinstance(texts, (str, bytes, os.PathLike)):
        raise TypeError(f"texts must be a frame or an iterable of texts, not one {type(texts).__name__}")
    return (_tokens(text, fields) for text in texts)


def _tokens(text: Any, fields: Sequence[str]) -> list[str]:
    if isinstance(text, str):
        return tokenise(text)
    if isinstance(text, Mapping):
        return tokenise(join_fields(text, fields))
    if isinstance(text, (list, tuple)) and all(isinstance(token, str) for token in text):
        return list(text)
    if pd.api.types.is_scalar(text) and pd.isna(text):
        return []
    raise TypeError(f"a text must be a document (a dict), a string or a list of tokens, not {text!r:.80}")
