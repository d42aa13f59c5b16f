"""IN and OUT word vectors over one vocabulary."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from pt_neural._artifacts import atomic_directory, read_metadata, unchanged, write_metadata
from pt_neural._files import ArtifactError, finite, load_array, read_json, write_array, write_json
from pt_neural._frames import strings
from pt_neural.embeddings.train import Word2VecSettings, train_word2vec
from pt_neural.embeddings.word2vec_files import read_pair
from pt_neural.text import TEXT_FIELDS, Vocabulary

Space = Literal["in", "out"]


class EmbeddingSpaces(pt.Artifact):
    """The IN and the OUT vector of every word (DESM paper, section 2.1).

    Words with similar IN vectors are of one type (*harvard*, *yale*); a word's IN vector is similar to the OUT vectors
    of words that occur near it (*yale*, *faculty*). Create them with :meth:`train`, :meth:`load_word2vec` or
    :meth:`from_vectors`; the class itself opens a directory that :meth:`save` wrote.

    Args:
        path: The directory. Its matrices are memory-mapped.
        verify: Compare all files with the digests that were written with them, which reads them all. By default, only
            what ``from_url`` and ``from_hf`` have downloaded.

    Attributes:
        vocabulary: A :class:`~pt_neural.text.Vocabulary`; a word's id is its row in both matrices.
        in_vectors: float32 matrix of shape ``(len(self), dim)``.
        out_vectors: float32 matrix of the same shape.
        settings: How the vectors were trained, or where they come from.

    Raises:
        FileNotFoundError: If there is no such directory.
        ArtifactError: If the directory is damaged or holds something else; the message names the file.

    Example::

        >>> spaces = EmbeddingSpaces.train(["a river runs past a city"] * 50, dim=20, verbose=False)
        >>> spaces.neighbours("river", "in", "out", k=3).columns.tolist()
        ['word', 'similarity']
    """

    ARTIFACT_TYPE = "embedding_spaces"
    ARTIFACT_FORMAT = "pt_neural"

    def __init__(self, path: str | os.PathLike, *, verify: bool | None = None):
        super().__init__(Path(path).expanduser().absolute())
        kind = {"type": self.ARTIFACT_TYPE, "format": self.ARTIFACT_FORMAT}
        with unchanged(self.path, read_metadata(self.path, **kind, verify=verify)):
            vocabulary, settings = Vocabulary.load(self.path / "vocabulary"), read_json(self.path / "config.json")
            vectors = [load_array(self.path / f"{space}.npy", dtype=np.float32, ndim=2) for space in ("in", "out")]
        try:
            self._set(vocabulary, *vectors, settings)
        except ValueError as error:
            raise ArtifactError(f"{self.path / 'in.npy'}, out.npy and vocabulary do not fit: {error}") from None

    @classmethod
    def from_vectors(
        cls,
        vocabulary: Vocabulary | Sequence[str],
        in_vectors: np.ndarray,
        out_vectors: np.ndarray,
        settings: dict[str, Any] | None = None,
    ) -> "EmbeddingSpaces":
        """Make spaces of vectors in memory.

        Args:
            vocabulary: The words, in the order of the rows.
            in_vectors: Matrix of shape ``(len(vocabulary), dim)``; kept as float32.
            out_vectors: Matrix of the same shape.
            settings: Notes on their origin, which JSON can hold.

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
        if in_vectors.ndim != 2 or in_vectors.shape != out_vectors.shape or len(in_vectors) != len(vocabulary):
            raise ValueError(f"{len(vocabulary)} words, IN {in_vectors.shape}, OUT {out_vectors.shape}")
        self.vocabulary = vocabulary
        self.in_vectors = in_vectors
        self.out_vectors = out_vectors
        self.settings = settings
        self._checked: set[str] = set()  # spaces without NaN and infinity
        self._units: dict[str, np.ndarray] = {}
        self._centred: dict[str, np.ndarray] = {}

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

        The texts are read once and kept on disk as term ids during training. With ``workers=1`` a seed gives the same
        vectors every time; more workers update the matrices without locks, so results vary.

        The paper gives few settings. Window, epochs and subsampling (5, 5 and 1e-3 in the word2vec program) were
        chosen on the dev queries of ``neural:pydocs``, a collection of 2.6 million words, by
        ``pipelines/settings.py``. Much larger collections need fewer epochs.

        Args:
            texts: A corpus iterator, a frame of topics (column ``query``, else ``fields``), or an iterable of
                documents, strings or lists of tokens.
            dim: Dimensions; 200 in the paper.
            algorithm: ``"cbow"`` as in the paper, or ``"skipgram"``.
            window: Number of words on each side that may be context.
            negative: Negative samples for each word.
            epochs: Passes over the texts.
            min_count: Words that occur less often get no vectors.
            subsample: Words that make up a larger share of the text are skipped at random; 0 skips none. By default the
                share of 30 occurrences, but at least 1e-5 and at most 1e-3.
            learning_rate: Initial learning rate, which falls linearly; by default 0.05 for CBOW and 0.025 for
                skip-gram, as in the word2vec program.
            workers: Number of threads; by default one per processor, but at most 4.
            seed: Seed of the initial vectors and of all sampling.
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

        The format of each is detected: binary, or text separated by spaces or tabs, with or without a first line
        ``count dim``; gzipped or plain. Words in both files are kept, in the order of the first file; if a word is
        repeated, its first vector counts.

        Args:
            in_path: File of the IN vectors.
            out_path: File of the OUT vectors.
            vocabulary: Words to keep, such as ``index.vocabulary`` of a forward index; the others take up no memory.
                The words of a :class:`~pt_neural.text.Vocabulary` also keep their counts. None keeps all words.
            verbose: Show progress bars.

        Raises:
            ValueError: If a file is broken (file and line are named), the dimensions differ, or no word remains.
        """
        if vocabulary is not None and not isinstance(vocabulary, Vocabulary):
            vocabulary = set(vocabulary)
        words, in_vectors, out_vectors = read_pair(in_path, out_path, vocabulary=vocabulary, verbose=verbose)
        if isinstance(vocabulary, Vocabulary):
            words = vocabulary.subset(words)
        return cls.from_vectors(words, in_vectors, out_vectors, {"in": str(in_path), "out": str(out_path)})

    def save(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write a directory, atomically: words as plain text, both matrices as ``.npy`` files.

        Args:
            path: The directory.
            overwrite: Replace spaces that are already there.

        Raises:
            FileExistsError: If something is there and ``overwrite`` is false.
        """
        kind = {"type": self.ARTIFACT_TYPE, "format": self.ARTIFACT_FORMAT}
        with atomic_directory(Path(path).expanduser(), overwrite=overwrite, **kind) as directory:
            self.vocabulary.save(directory / "vocabulary")
            for space in ("in", "out"):
                write_array(directory / f"{space}.npy", self.vectors(space))
            write_json(directory / "config.json", self.settings)
            write_metadata(directory, **kind)

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        return self.in_vectors.shape[1]

    def vectors(self, space: Space) -> np.ndarray:
        """The matrix of a space, ``"in"`` or ``"out"``."""
        if space not in ("in", "out"):
            raise ValueError(f"space must be 'in' or 'out', not {space!r}")
        matrix = self.in_vectors if space == "in" else self.out_vectors
        if space not in self._checked:
            if isinstance(self.path, Path) and not finite(matrix):  # read only now, as opening reads no vectors
                raise ArtifactError(f"{self.path / f'{space}.npy'} is damaged: it holds NaN or infinity")
            self._checked.add(space)
        return matrix

    def unit_vectors(self, space: Space) -> np.ndarray:
        """The matrix of a space with rows of length 1; zero vectors stay zero. Computed once."""
        if space not in self._units:
            self._units[space] = unit_rows(self.vectors(space))
        return self._units[space]

    def require_counts(self) -> None:
        """Raise ValueError if the words have no counts, by which the mean of :meth:`centred_vectors` weighs them."""
        counts = self.vocabulary.collection_frequency
        if counts is None or not counts.any():
            raise ValueError(
                f"the mean vector of {self!r} needs the counts of its words: load word2vec files with "
                "vocabulary=documents.vocabulary of a forward index, or make spaces from a vocabulary with counts"
            )

    def centred_vectors(self, space: Space) -> np.ndarray:
        """The unit vectors of a space minus their mean, in which each word counts as often as it occurred.

        The rows are not of length 1; zero vectors stay zero. Computed once.

        Raises:
            ValueError: If the words have no counts. Trained spaces have those of the training texts; word2vec files
                have none, but the ``vocabulary`` given to :meth:`load_word2vec` may.
        """
        if space not in self._centred:
            self.require_counts()
            counts, units = self.vocabulary.collection_frequency, self.unit_vectors(space)
            mean = (counts / counts.sum()).astype(np.float32) @ units
            self._centred[space] = np.where(units.any(axis=1, keepdims=True), units - mean, 0)
        return self._centred[space]

    def ids(self, tokens: Iterable[str]) -> np.ndarray:
        """Rows of words, int32; -1 for a word without vectors."""
        return self.vocabulary.ids(tokens)

    def neighbours(
        self, word: str, source: Space = "in", target: Space = "out", k: int = 10, *, exclude_self: bool = False
    ) -> pd.DataFrame:
        """The words most similar to a word by cosine (equation 4), as in the paper's Table 1.

        Args:
            word: A word of the vocabulary.
            source: Space of its vector.
            target: Space of its neighbours' vectors.
            k: Number of neighbours.
            exclude_self: Leave out the word itself, which the paper lists.

        Returns:
            Frame with ``word`` and ``similarity``, most similar first.

        Raises:
            KeyError: If the word has no vectors.
        """
        if word not in self:
            # The most frequent words come first; comparing spellings with millions would take minutes.
            close = get_close_matches(str(word).lower(), self.vocabulary.terms[:50_000], n=3)
            hint = f"; did you mean {', '.join(map(repr, close))}?" if close else ""
            raise KeyError(f"{word!r} has no vectors{hint}")
        row = int(self.ids([word])[0])
        similarity = self.unit_vectors(target) @ self.unit_vectors(source)[row]
        nearest = np.argsort(-similarity, kind="stable")
        nearest = nearest[nearest != row][:k] if exclude_self else nearest[:k]
        words = [self.vocabulary.terms[i] for i in nearest]
        return pd.DataFrame({"word": strings(words), "similarity": similarity[nearest]})

    def __contains__(self, word: object) -> bool:
        return word in self.vocabulary

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __reduce__(self) -> tuple:
        if isinstance(self.path, Path):
            return partial(EmbeddingSpaces, verify=False), (str(self.path),)
        return EmbeddingSpaces.from_vectors, (self.vocabulary, self.in_vectors, self.out_vectors, self.settings)

    def __repr__(self) -> str:
        return f"EmbeddingSpaces({len(self):,} words, {self.dim:,} dimensions)"


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """The rows of a matrix at length 1; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)
