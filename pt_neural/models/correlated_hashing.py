"""Correlated feature hashing: words or 2-grams become the frequent words that they occur with (SSI paper, 2.2.3).

Hash kernels let pairs of words share a weight at random; here words share those of frequent words of close meaning.
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from pt_neural._artifacts import ArtifactError, read_json, write_json
from pt_neural.text import Bigrams, PackedSequences, TfIdf, Vocabulary
from pt_neural.text.arrays import load_array
from pt_neural.text.co_occurrence import dice_neighbours
from pt_neural.text.counts import bag_of_words

MIN_DOCUMENTS = 2  # of a 2-gram: one that occurs in one document has all its words as neighbours alike


class CorrelatedHashing:
    """Maps features to their ``bins`` nearest ones of the F most frequent words, by their DICE coefficients.

    Args:
        neighbours: S_1 to S_k of each feature, int32 of shape ``(features, bins)``; -1 where there are fewer.
        coefficients: Their DICE coefficients, float32 of the same shape.
        frequent: F.
        bigrams: Weights of 2-grams, if the features are those; None if they are the words, the frequent ones included,
            as in algorithm 1.
    """

    def __init__(
        self, neighbours: np.ndarray, coefficients: np.ndarray, frequent: int, *, bigrams: TfIdf | None = None
    ):
        if neighbours.shape != coefficients.shape or neighbours.max(initial=-1) >= frequent:
            raise ValueError(f"neighbours must be below {frequent}, with one coefficient each")
        self.neighbours, self.coefficients, self.frequent, self.bigrams = neighbours, coefficients, frequent, bigrams
        rows, places = np.nonzero(neighbours >= 0)
        ones = np.ones(len(rows), dtype=np.float32)
        self._map = csr_array((ones, (rows, neighbours[rows, places])), shape=(len(neighbours), frequent))

    @classmethod
    def build(
        cls,
        sequences: PackedSequences,
        vocabulary: Vocabulary,
        *,
        frequent: int,
        bins: int,
        ngrams: Literal[1, 2],
        sublinear_tf: bool,
        verbose: bool,
    ) -> "CorrelatedHashing":
        """Count which words occur in the same documents.

        Args:
            sequences: Documents as ids of the vocabulary; -1 is an unknown word.
            vocabulary: Words by falling frequency.
            frequent: F, how many of the first words features are mapped to.
            bins: k, how many words each feature is mapped to.
            ngrams: Whether the features are words (1) or 2-grams (2).
            sublinear_tf: How 2-grams are weighed, see :class:`~pt_neural.text.TfIdf`.
            verbose: Show a progress bar.
        """
        words = bag_of_words(sequences, len(vocabulary))
        frequent = min(frequent, len(vocabulary))
        if ngrams == 1:
            neighbours = dice_neighbours(words, words[:, :frequent], bins, verbose=verbose)
            return cls(*neighbours, frequent)
        bigrams = Bigrams.build(sequences, len(vocabulary), min_documents=MIN_DOCUMENTS)
        features = bag_of_words(bigrams.sequences(sequences), len(bigrams))
        neighbours = dice_neighbours(features, words[:, :frequent], bins, verbose=verbose)
        return cls(*neighbours, frequent, bigrams=TfIdf(bigrams, sublinear_tf=sublinear_tf))

    def features(self, words: csr_array, sequences: PackedSequences) -> csr_array:
        """Texts over hashed features: the vectors a and b of algorithm 1.

        Args:
            words: Vectors of the texts over the vocabulary.
            sequences: The texts as ids.

        Returns:
            float32 matrix of shape ``(texts, F)``.
        """
        own = words if self.bigrams is None else self.bigrams.of_sequences(self._bigrams(sequences))
        return csr_array(own @ self._map)

    def _bigrams(self, sequences: PackedSequences) -> PackedSequences:
        return self.bigrams.vocabulary.sequences(sequences)

    @property
    def bins(self) -> int:
        """k, how many words each feature is mapped to."""
        return self.neighbours.shape[1]

    def nearest(self, text: str, vocabulary: Vocabulary, k: int) -> pd.DataFrame:
        """The frequent words that a word or 2-gram goes with (Tables 7 and 8).

        Args:
            text: A word, or a 2-gram such as ``"star trek"``, as the model has them.
            vocabulary: The words.
            k: At most so many.

        Returns:
            Frame with ``word`` and ``dice``, largest first.

        Raises:
            KeyError: If it is no feature.
        """
        feature = self._number(text, vocabulary)
        found = self.neighbours[feature][:k]
        found = found[found >= 0]
        words = [vocabulary.terms[number] for number in found]
        return pd.DataFrame({"word": words, "dice": self.coefficients[feature][: len(found)]})

    def _number(self, text: str, vocabulary: Vocabulary) -> int:
        words = vocabulary.ids(text.split())
        if self.bigrams is None and len(words) == 1 and words[0] >= 0:
            return int(words[0])
        if self.bigrams is not None and len(words) == 2:
            found = self._bigrams(PackedSequences.from_lists([words]))
            if len(found.terms):
                return int(found.terms[0])
        kind = "words" if self.bigrams is None else "2-grams"
        raise KeyError(f"{text!r} is none of the {len(self.neighbours):,} {kind} that are hashed")

    def save(self, directory: Path) -> None:
        """Write the neighbours, and the 2-grams if there are any."""
        directory.mkdir()
        np.save(directory / "neighbours.npy", self.neighbours)
        np.save(directory / "coefficients.npy", self.coefficients)
        weighing: dict[str, Any] = {"frequent": self.frequent, "sublinear_tf": None}
        if self.bigrams is not None:
            weighing["sublinear_tf"] = self.bigrams.sublinear_tf
            self.bigrams.vocabulary.save(directory / "bigrams")
        write_json(directory / "hashing.json", weighing)

    @classmethod
    def load(cls, directory: Path) -> "CorrelatedHashing":
        """Read what :meth:`save` wrote.

        Raises:
            ArtifactError: If a file is missing or damaged; it is named.
        """
        weighing = read_json(directory / "hashing.json")
        neighbours = load_array(directory / "neighbours.npy", dtype=np.int32, ndim=2, memory_map=False)
        coefficients = load_array(directory / "coefficients.npy", dtype=np.float32, ndim=2, memory_map=False)
        try:
            sublinear_tf = weighing["sublinear_tf"]
            bigrams = None
            if sublinear_tf is not None:
                bigrams = TfIdf(Bigrams.load(directory / "bigrams"), sublinear_tf=sublinear_tf)
            return cls(neighbours, coefficients, weighing["frequent"], bigrams=bigrams)
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{directory / 'hashing.json'} does not fit the other files: {error!r}") from None
