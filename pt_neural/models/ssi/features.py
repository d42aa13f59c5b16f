"""The features of SSI: tf-idf vectors of queries and documents, and the frequent words that they are hashed to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from pt_neural._arguments import checked_choice
from pt_neural._files import ArtifactError, finite, load_array, read_object, write_array, write_json
from pt_neural.models.ssi.network import no_rows, rows_of
from pt_neural.models.ssi.steps import Texts
from pt_neural.text import Bigrams, PackedSequences, TfIdf, Vocabulary, tokenise_packed
from pt_neural.text.co_occurrence import dice_neighbours
from pt_neural.text.counts import bag_of_words
from pt_neural.text.vocabulary import OwnIds

MIN_DOCUMENTS = 2  # of a 2-gram; in a single document all words would be equal neighbours

Side = Literal["query", "document"]
HashedWords = Literal["all", "others"]
Ngrams = Literal[1, 2, "1+2"]


class TextVectors(NamedTuple):
    """tf-idf vectors of texts, ``(texts, terms)``, and their hashed features, ``(texts, F)``, if there are any."""

    terms: csr_array
    hashed: csr_array | None = None

    def take(self, rows: np.ndarray | slice) -> "TextVectors":
        """Some of the texts."""
        return TextVectors(self.terms[rows], None if self.hashed is None else self.hashed[rows])


@dataclass(frozen=True)
class Features:
    """Turns texts into vectors; ``queries`` and ``documents`` are one object where they share a vocabulary."""

    queries: TfIdf
    documents: TfIdf
    hashing: "CorrelatedHashing | None" = None
    _own_ids: OwnIds = field(default_factory=OwnIds, repr=False, compare=False)

    @property
    def shared(self) -> bool:
        """Whether queries and documents have one vocabulary."""
        return self.queries is self.documents

    def read_queries(self, texts: list[str]) -> TextVectors:
        """Vectors of queries."""
        return self._vectors(self.queries, tokenise_packed(texts, self.queries.vocabulary))

    def read_documents(self, sequences: PackedSequences, vocabulary: Vocabulary) -> TextVectors:
        """Vectors of documents, given as term ids over any vocabulary; -1 is an unknown term."""
        return self._vectors(self.documents, self.own_sequences(sequences, vocabulary))

    def read_words(self, side: Side, ids: np.ndarray) -> TextVectors:
        """Vectors of single words with weight 1, as queries or as documents."""
        tf_idf = self.queries if side == "query" else self.documents
        entries = np.ones(len(ids), dtype=np.float32), (np.arange(len(ids)), ids)
        words = csr_array(entries, shape=(len(ids), len(tf_idf.vocabulary)))
        if self.hashing is None:
            return TextVectors(words)
        return TextVectors(words, self._hashed(words, PackedSequences.from_lists([[word] for word in ids.tolist()])))

    def own_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> PackedSequences:
        """Documents as ids of the vocabulary of documents, from ids of any vocabulary; -1 is an unknown term."""
        if vocabulary is self.documents.vocabulary:
            return sequences
        return self._own_ids(sequences, vocabulary, self.documents.vocabulary)

    def _vectors(self, tf_idf: TfIdf, sequences: PackedSequences) -> TextVectors:
        terms = tf_idf.of_sequences(sequences)
        return TextVectors(terms, None if self.hashing is None else self._hashed(terms, sequences))

    def _hashed(self, terms: csr_array, sequences: PackedSequences) -> csr_array:
        """Hashed features; the mean over bins (equation 6) is a factor of both sides; vectors are cut to length 1."""
        # A product, since scipy would divide in float64.
        hashed = self.hashing.features(terms, sequences) * np.float32(self.hashing.bins**-0.5)
        rows = np.repeat(np.arange(hashed.shape[0]), np.diff(hashed.indptr))
        squares = np.square(hashed.data, dtype=np.float64)
        lengths = np.sqrt(np.bincount(rows, squares, minlength=hashed.shape[0]))
        hashed.data /= np.maximum(lengths, 1)[rows].astype(np.float32)
        return hashed

    def identity_parts(self) -> tuple[dict[str, np.ndarray], list[bytes]]:
        """Arrays by name, and the words as bytes, that tell these features from others."""
        arrays = {"query_idf": self.queries.idf, "document_idf": self.documents.idf}
        if self.hashing is not None:
            arrays["neighbours"] = self.hashing.neighbours
            if self.hashing.bigrams is not None:
                arrays |= {"bigrams": self.hashing.bigrams.vocabulary.keys, "bigram_idf": self.hashing.bigrams.idf}
        words = [self.documents.vocabulary.terms, [] if self.shared else self.queries.vocabulary.terms]
        return arrays, ["\n".join(terms).encode(errors="surrogatepass") for terms in words]

    def save(self, directory: Path) -> None:
        """Write vocabularies, how terms are weighed, and the hashing."""
        parts = {"shared": self.shared, "hashed": self.hashing is not None}
        write_json(directory / "features.json", {**parts, "sublinear_tf": self.documents.sublinear_tf})
        self.documents.vocabulary.save(directory / "vocabulary")
        if not self.shared:
            self.queries.vocabulary.save(directory / "query_vocabulary")
        if self.hashing is not None:
            self.hashing.save(directory / "hashing")

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read what :meth:`save` wrote."""
        weighing = read_object(directory / "features.json")
        shared, hashed, sublinear_tf = map(weighing.get, ("shared", "hashed", "sublinear_tf"))
        if not all(isinstance(setting, bool) for setting in (shared, hashed, sublinear_tf)):
            raise ArtifactError(
                f"{directory / 'features.json'} is damaged: it does not say shared, hashed, sublinear_tf"
            )
        documents = queries = TfIdf(Vocabulary.load(directory / "vocabulary"), sublinear_tf=sublinear_tf)
        if not shared:
            queries = TfIdf(Vocabulary.load(directory / "query_vocabulary"), sublinear_tf=sublinear_tf)
        hashing = CorrelatedHashing.load(directory / "hashing", len(documents.vocabulary)) if hashed else None
        return cls(queries, documents, hashing)


class CorrelatedHashing:
    """Replaces words, 2-grams, or both by the frequent words that they occur with (SSI paper, algorithm 1).

    Hash kernels let pairs of words share a weight at random; here words share the weights of frequent words of similar
    meaning. Each feature becomes its ``bins`` nearest ones of the F most frequent words, by their DICE coefficients.

    Args:
        neighbours: S_1 to S_k of each feature, int32 of shape ``(features, bins)``; -1 where there are fewer. Those of
            words come before those of 2-grams.
        coefficients: Their DICE coefficients, float32 of the same shape.
        frequent: F.
        bigrams: Weighs 2-grams, if some features are; None if all are words.
        words: Which words are replaced: ``"all"``, also the frequent ones, as in algorithm 1; or only the ``"others"``,
            as in section 4.1.
    """

    def __init__(
        self,
        neighbours: np.ndarray,
        coefficients: np.ndarray,
        frequent: int,
        *,
        bigrams: TfIdf | None = None,
        words: HashedWords = "all",
    ):
        if neighbours.shape != coefficients.shape or neighbours.max(initial=-1) >= frequent or not neighbours.shape[1]:
            raise ValueError(f"neighbours must be below {frequent}, with one coefficient each")
        if neighbours.min(initial=-1) < -1 or not finite(coefficients):
            raise ValueError("neighbours must be at least -1, and coefficients finite")
        self.neighbours, self.coefficients, self.frequent, self.bigrams = neighbours, coefficients, frequent, bigrams
        self.words = checked_choice("words", words, ("all", "others"))
        replaced = neighbours >= 0
        if words == "others" and self._num_words:
            replaced[:frequent] = False
        rows, places = np.nonzero(replaced)
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
        ngrams: Ngrams,
        sublinear_tf: bool,
        verbose: bool,
        hashed_words: HashedWords = "all",
    ) -> Self:
        """Count which words occur in the same documents.

        ``sequences`` are ids of the vocabulary, whose words are sorted by falling frequency. Each feature, a word or a
        2-gram, is mapped to ``bins`` (k) of its first ``frequent`` (F) words.
        """
        words = bag_of_words(sequences, len(vocabulary))
        frequent = min(frequent, len(vocabulary))
        features, tf_idf = words, None
        if ngrams != 1:
            bigrams = Bigrams.build(sequences, len(vocabulary), min_documents=MIN_DOCUMENTS)
            features = bag_of_words(bigrams.sequences(sequences), len(bigrams))
            if ngrams == "1+2":
                features = csr_array(hstack([words, features], format="csr"))
            tf_idf = TfIdf(bigrams, sublinear_tf=sublinear_tf)
        neighbours = dice_neighbours(features, words[:, :frequent], bins, verbose=verbose)
        return cls(*neighbours, frequent, bigrams=tf_idf, words=hashed_words)

    def features(self, words: csr_array, sequences: PackedSequences) -> csr_array:
        """Texts over hashed features, ``(texts, F)``: the vectors a and b of algorithm 1."""
        found = words
        if self.bigrams is not None:
            found = self.bigrams.of_sequences(self.bigrams.vocabulary.sequences(sequences))
            if self._num_words:
                found = hstack([words, found], format="csr")
        return csr_array(found @ self._map)

    @property
    def _num_words(self) -> int:
        """How many of the features are words."""
        return len(self.neighbours) - (0 if self.bigrams is None else len(self.bigrams.vocabulary))

    @property
    def ngrams(self) -> Ngrams:
        """What the features are."""
        if self.bigrams is None:
            return 1
        return "1+2" if self._num_words else 2

    @property
    def bins(self) -> int:
        """k, how many words each feature is mapped to."""
        return self.neighbours.shape[1]

    def nearest(self, text: str, vocabulary: Vocabulary, k: int) -> pd.DataFrame:
        """The frequent words that stand for a word or 2-gram, with their DICE coefficients; KeyError if unknown."""
        feature = self._number(text, vocabulary)
        found = self.neighbours[feature][:k]
        found = found[found >= 0]
        words = [vocabulary.terms[number] for number in found]
        return pd.DataFrame({"word": words, "dice": self.coefficients[feature][: len(found)]})

    def _number(self, text: str, vocabulary: Vocabulary) -> int:
        words = vocabulary.ids(text.split())
        if self._num_words and len(words) == 1 and words[0] >= 0:
            return int(words[0])
        if self.bigrams is not None and len(words) == 2:
            found = self.bigrams.vocabulary.sequences(PackedSequences.from_lists([words]))
            if len(found.terms):
                return self._num_words + int(found.terms[0])
        kind = {1: "words", 2: "2-grams", "1+2": "words and 2-grams"}[self.ngrams]
        raise KeyError(f"{text!r} is not one of the {len(self.neighbours):,} {kind} that are hashed")

    def save(self, directory: Path) -> None:
        """Write the neighbours, and the 2-grams if there are any."""
        directory.mkdir()
        write_array(directory / "neighbours.npy", self.neighbours)
        write_array(directory / "coefficients.npy", self.coefficients)
        weighing: dict[str, Any] = {"frequent": self.frequent, "sublinear_tf": None, "words": self.words}
        if self.bigrams is not None:
            weighing["sublinear_tf"] = self.bigrams.sublinear_tf
            self.bigrams.vocabulary.save(directory / "bigrams")
        write_json(directory / "hashing.json", weighing)

    @classmethod
    def load(cls, directory: Path, num_words: int) -> Self:
        """Read what :meth:`save` wrote, for a vocabulary of so many words."""
        weighing = read_object(directory / "hashing.json")
        neighbours = load_array(directory / "neighbours.npy", dtype=np.int32, ndim=2, memory_map=False)
        coefficients = load_array(directory / "coefficients.npy", dtype=np.float32, ndim=2, memory_map=False)
        try:
            sublinear_tf = checked_choice("sublinear_tf", weighing["sublinear_tf"], (None, True, False))
            bigrams = None
            if sublinear_tf is not None:
                bigrams = TfIdf(Bigrams.load(directory / "bigrams"), sublinear_tf=sublinear_tf)
            if bigrams is not None and bigrams.vocabulary.num_terms != num_words:
                raise ValueError(f"the 2-grams are of {bigrams.vocabulary.num_terms:,} words, not {num_words:,}")
            pairs = 0 if bigrams is None else len(bigrams.vocabulary)
            if len(neighbours) != num_words + pairs and (bigrams is None or len(neighbours) != pairs):
                raise ValueError(
                    f"neighbours of {len(neighbours):,} features, for {num_words:,} words and {pairs:,} 2-grams"
                )
            words = weighing.get("words", "all")  # as they all were before there was a choice
            return cls(neighbours, coefficients, weighing["frequent"], bigrams=bigrams, words=words)
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{directory / 'hashing.json'} does not fit the other files: {error!r}") from None


def training_texts(queries: TextVectors, documents: TextVectors) -> Texts:
    """Queries and documents as the compiled loops take them."""
    if queries.hashed is None:
        hashed = (no_rows(vectors.terms.shape[0]) for vectors in (queries, documents))
    else:
        hashed = map(rows_of, (queries.hashed, documents.hashed))
    return Texts(rows_of(queries.terms), rows_of(documents.terms), *hashed)


class TextParts(NamedTuple):
    """The words of a text, and its 2-grams if they are hashed; the rows of ``vectors`` add up to those of the text."""

    names: list[str]
    weights: np.ndarray
    vectors: TextVectors


def split_text(features: Features, side: Side, text: str) -> TextParts:
    """Split a text into its words, so that a score of SSI can be told as a sum over pairs of words.

    Example::

        parts = split_text(ssi.features, "document", "the harbor of Honolulu")
        dict(zip(parts.names, parts.weights))
        ssi.network.weigh_documents(*parts.vectors)
    """
    tf_idf = features.queries if side == "query" else features.documents
    vocabulary = tf_idf.vocabulary
    sequences = tokenise_packed([text], vocabulary)
    terms, hashed = features._vectors(tf_idf, sequences)
    names = [vocabulary.terms[number] for number in terms.indices]
    if hashed is None:
        return TextParts(names, terms.data, TextVectors(_word_rows(terms)))
    pairs, pair_weights = _bigrams(features.hashing, sequences)
    names += [" ".join(vocabulary.terms[number] for number in pair) for pair in pairs]
    rows = _word_rows(terms, len(pairs))
    units = PackedSequences.from_lists([*terms.indices[:, None].tolist(), *pairs])
    parts = features.hashing.features(rows, units)  # where a 2-gram alone has weight 1
    shares = np.append(np.ones(terms.nnz, dtype=np.float32), pair_weights)
    parts.data *= np.repeat(shares, np.diff(parts.indptr))
    parts *= hashed.sum() / max(parts.sum(), np.finfo(np.float32).tiny)  # hashed features are scaled text by text
    return TextParts(names, np.append(terms.data, pair_weights), TextVectors(rows, parts))


def _word_rows(terms: csr_array, num_pairs: int = 0) -> csr_array:
    """A row with the weight of each word of a single text, then empty rows for its 2-grams."""
    starts = np.append(np.arange(terms.nnz + 1), np.full(num_pairs, terms.nnz))
    return csr_array((terms.data, terms.indices, starts), shape=(terms.nnz + num_pairs, terms.shape[1]))


def _bigrams(hashing: CorrelatedHashing, sequences: PackedSequences) -> tuple[list[list[int]], np.ndarray]:
    """The words of each distinct 2-gram of a text, as ids, and its tf-idf; empty where words are hashed."""
    if hashing.bigrams is None:
        return [], np.zeros(0, dtype=np.float32)
    bigrams = hashing.bigrams.vocabulary
    found = hashing.bigrams.of_sequences(bigrams.sequences(sequences))
    pairs = np.stack(np.divmod(bigrams.keys[found.indices], bigrams.num_terms), axis=1)
    return pairs.tolist(), found.data
