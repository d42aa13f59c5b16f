"""IN and OUT word vectors over one vocabulary."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._artifacts import atomic_directory, write_metadata
from pt_neural.embeddings.storage import check_shapes, read_spaces, write_spaces
from pt_neural.embeddings.train import Word2VecSettings, train_word2vec
from pt_neural.embeddings.word2vec_files import read_pair
from pt_neural.text import TEXT_FIELDS, Vocabulary

Space = Literal["in", "out"]


class EmbeddingSpaces(pt.Artifact):
    """The IN and the OUT vector of every word (DESM paper, section 2.1).

    Words whose IN vectors are close are of one type (*harvard*, *yale*); a word's IN vector is close to the OUT
    vectors of words that occur beside it (*yale*, *faculty*). Make them with :meth:`train`, :meth:`load_word2vec` or
    :meth:`from_vectors`; the class itself opens a directory that :meth:`save` wrote.

    Args:
        path: The directory. Its matrices are memory-mapped.

    Attributes:
        vocabulary: A :class:`~pt_neural.text.Vocabulary`; a word's id is its row in both matrices.
        in_vectors: float32 matrix of shape ``(len(self), dim)``.
        out_vectors: float32 matrix of the same shape.
        settings: How the vectors were trained, or where they come from.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory is damaged or holds something else; the file is named.

    Example::

        >>> spaces = EmbeddingSpaces.train(["a river runs past a city"] * 50, dim=20, verbose=False)
        >>> spaces.neighbours("river", "in", "out", k=3).columns.tolist()
        ['word', 'similarity']
    """

    ARTIFACT_TYPE = "embedding_spaces"
    ARTIFACT_FORMAT = "pt_neural"

    def __init__(self, path: str | os.PathLike):
        super().__init__(Path(path).expanduser().absolute())
        self._set(*read_spaces(self.path, type=self.ARTIFACT_TYPE, format=self.ARTIFACT_FORMAT))

    @classmethod
    def from_vectors(
        cls,
        vocabulary: Vocabulary | Sequence[str],
        in_vectors: np.ndarray,
        out_vectors: np.ndarray,
        settings: dict[str, Any] | None = None,
    ) -> "EmbeddingSpaces":
        """Hold vectors that are in memory.

        Args:
            vocabulary: The words, in the order of the rows.
            in_vectors: Matrix of shape ``(len(vocabulary), dim)``; kept as float32.
            out_vectors: Matrix of the same shape.
            settings: What to note about their origin, as JSON can hold it.

        Raises:
            ValueError: If the shapes do not fit.
        """
        spaces = cls.__new__(cls)  # __init__ opens a directory, as pyterrier's artifacts do
        pt.Artifact.__init__(spaces, pt.Artifact.NO_PATH)
        spaces._set(
            vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary(vocabulary),
            np.asarray(in_vectors, dtype=np.float32),
            np.asarray(out_vectors, dtype=np.float32),
            settings or {},
        )
        return spaces

    def _set(self, vocabulary: Vocabulary, in_vectors: np.ndarray, out_vectors: np.ndarray, settings: dict) -> None:
        check_shapes(vocabulary, in_vectors, out_vectors)
        self.vocabulary = vocabulary
        self.in_vectors = in_vectors
        self.out_vectors = out_vectors
        self.settings = settings
        self._units: dict[str, np.ndarray] = {}

    @classmethod
    def train(
        cls,
        texts: Iterable[Any] | pd.DataFrame,
        *,
        dim: int = 200,
        algorithm: Literal["cbow", "skipgram"] = "cbow",
        window: int = 20,
        negative: int = 5,
        epochs: int = 30,
        min_count: int = 5,
        subsample: float | None = None,
        learning_rate: float | None = None,
        workers: int | None = None,
        seed: int = 13,
        fields: Sequence[str] = TEXT_FIELDS,
        verbose: bool = True,
    ) -> "EmbeddingSpaces":
        """Train word2vec with negative sampling (section 2.1, equations 2 and 3) on documents or on queries.

        The texts are read once and kept on disk as term ids while training. With ``workers=1`` a seed gives the same
        vectors every time; more workers update the matrices without locks and are not repeatable.

        The paper gives few settings. Window, epochs and subsampling (5, 5 and 1e-3 in the word2vec program) were
        chosen on the dev queries of ``neural:pydocs``, a collection of 2.6 million words, by
        ``pipelines/embedding_settings.py``. Many times more text needs fewer epochs.

        Args:
            texts: A corpus iterator, a frame of topics (column ``query``, else ``fields``), or an iterable of
                documents, strings or lists of tokens.
            dim: Dimensions; 200 in the paper.
            algorithm: ``"cbow"`` as in the paper, or ``"skipgram"``.
            window: Words on each side that may be context.
            negative: Negative samples for each word.
            epochs: Passes over the texts.
            min_count: Words that occur less often get no vectors.
            subsample: Words with a larger share of all occurrences are skipped at random; 0 keeps all. By default
                the share that 30 occurrences have, but at least 1e-5 and at most 1e-3.
            learning_rate: First learning rate, which falls linearly; by default 0.05 for CBOW and 0.025 for
                skip-gram, as in the word2vec program.
            workers: Threads; by default one for each processor, 4 at most.
            seed: Seed of the first vectors and of all sampling.
            fields: Fields of documents that hold their text.
            verbose: Show progress bars.

        Raises:
            TypeError: If a text is none of these.
            ValueError: If a setting is out of range, or no word occurs ``min_count`` times.

        Example::

            >>> EmbeddingSpaces.train(["a river runs past a city"] * 50, dim=20, verbose=False)
            EmbeddingSpaces(5 words, 20 dimensions)
        """
        settings = Word2VecSettings(
            dim=dim,
            algorithm=algorithm,
            window=window,
            negative=negative,
            epochs=epochs,
            min_count=min_count,
            subsample=subsample,
            learning_rate=learning_rate or {"cbow": 0.05}.get(algorithm, 0.025),
            workers=workers or min(4, os.cpu_count() or 1),
            seed=seed,
        )
        trained = train_word2vec(texts, settings, fields=fields, verbose=verbose)
        return cls.from_vectors(*trained, asdict(settings))

    @classmethod
    def load_word2vec(
        cls,
        in_path: str | os.PathLike,
        out_path: str | os.PathLike,
        *,
        vocabulary: Iterable[str] | Vocabulary | None = None,
        verbose: bool = True,
    ) -> "EmbeddingSpaces":
        """Read a pair of word2vec files, such as the published DESM embeddings (``in.txt`` and ``out.txt``).

        The format of each is detected: text, separated by spaces or tabs, with or without a first line ``count dim``;
        binary; either one gzipped or plain. Words that both files have are kept, in the order of the first; of a
        word that occurs twice, the first vector.

        Args:
            in_path: File of the IN vectors.
            out_path: File of the OUT vectors.
            vocabulary: Words to keep, such as ``index.vocabulary.terms`` of a forward index; the others are passed
                over without memory for them. None keeps all.
            verbose: Show progress bars.

        Raises:
            ValueError: If a file is broken (file and line are named), the dimensions differ, or no word remains.
        """
        if vocabulary is not None and not isinstance(vocabulary, Vocabulary):
            vocabulary = set(vocabulary)
        words, in_vectors, out_vectors = read_pair(in_path, out_path, vocabulary=vocabulary, verbose=verbose)
        return cls.from_vectors(words, in_vectors, out_vectors, {"in": str(in_path), "out": str(out_path)})

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write a directory, atomically: words as plain text, both matrices as ``.npy``.

        Args:
            path: The directory.
            overwrite: Replace what stands there.

        Raises:
            FileExistsError: If something stands there and ``overwrite`` is false.
        """
        kind = {"type": self.ARTIFACT_TYPE, "format": self.ARTIFACT_FORMAT}
        with atomic_directory(Path(path).expanduser(), overwrite=overwrite, **kind) as directory:
            write_spaces(directory, self.vocabulary, self.in_vectors, self.out_vectors, self.settings)
            write_metadata(directory, **kind)

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.in_vectors.shape[1]

    def vectors(self, space: Space) -> np.ndarray:
        """The matrix of a space, ``"in"`` or ``"out"``."""
        if space not in ("in", "out"):
            raise ValueError(f"space must be 'in' or 'out', not {space!r}")
        return self.in_vectors if space == "in" else self.out_vectors

    def unit_vectors(self, space: Space) -> np.ndarray:
        """The matrix of a space with rows of length 1; zero vectors stay zero. Computed once."""
        if space not in self._units:
            vectors = self.vectors(space)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            self._units[space] = vectors / np.where(lengths > 0, lengths, 1)
        return self._units[space]

    def ids(self, tokens: Iterable[str]) -> np.ndarray:
        """Rows of words, int32; -1 where a word has no vectors."""
        return self.vocabulary.ids(tokens)

    def neighbours(
        self, word: str, source: Space = "in", target: Space = "out", k: int = 10, *, exclude_self: bool = False
    ) -> pd.DataFrame:
        """The words nearest to a word by cosine similarity (equation 4), as in the paper's Table 1.

        Args:
            word: A word of the vocabulary.
            source: Space of its vector.
            target: Space of its neighbours' vectors.
            k: Number of neighbours.
            exclude_self: Leave the word itself out. The paper lists it, so it stays by default.

        Returns:
            Frame with ``word`` and ``similarity``, most similar first.

        Raises:
            KeyError: If the word has no vectors.
        """
        if word not in self:
            raise KeyError(self._unknown(word))
        own = int(self.ids([word])[0])
        similarity = self.unit_vectors(target) @ self.unit_vectors(source)[own]
        nearest = np.argsort(-similarity, kind="stable")
        nearest = nearest[nearest != own][:k] if exclude_self else nearest[:k]
        words = [self.vocabulary.terms[i] for i in nearest]
        return pd.DataFrame({"word": words, "similarity": similarity[nearest]})

    def _unknown(self, word: str) -> str:
        # The most frequent words stand first, and spelling a word against millions would take minutes.
        close = get_close_matches(str(word).lower(), self.vocabulary.terms[:50_000], n=3)
        return f"{word!r} has no vectors" + (f"; did you mean {', '.join(map(repr, close))}?" if close else "")

    def __contains__(self, word: object) -> bool:
        return word in self.vocabulary

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __reduce__(self) -> tuple:
        if isinstance(self.path, Path):
            return EmbeddingSpaces, (str(self.path),)
        return EmbeddingSpaces.from_vectors, (self.vocabulary, self.in_vectors, self.out_vectors, self.settings)

    def __repr__(self) -> str:
        return f"EmbeddingSpaces({len(self):,} words, {self.dim:,} dimensions)"
