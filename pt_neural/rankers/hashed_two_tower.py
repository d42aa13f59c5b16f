"""Trained two-tower rankers over letter n-grams."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import torch
from scipy.sparse import csr_array
from torch import nn

from pt_neural._arguments import checked_choice, checked_integers
from pt_neural.rankers.columns import distinct_queries
from pt_neural.rankers.hashed import PADDING, HashedCorpus, HashedTexts, word_bags
from pt_neural.rankers.last_vocabulary import LastVocabulary
from pt_neural.rankers.towers import TowerCollate, Towers
from pt_neural.rankers.trained import Scorer
from pt_neural.rankers.trained_two_tower import TrainedTwoTower
from pt_neural.text import (
    PackedSequences,
    Vocabulary,
    WordHashing,
    pack_texts,
)
from pt_neural.training.examples import Examples
from pt_neural.training.sampling import Collate

if TYPE_CHECKING:
    pass


class HashedTwoTower(TrainedTwoTower):
    """Base of DSSM and CLSM: two networks over the letter n-grams of words, trained on groups.

    Args:
        shared: One network for queries and documents, instead of two (CLSM paper, section 5.2).
        ngram_sizes: Lengths of the letter n-grams; ``(3,)`` in the papers.
        **options: What :class:`~pt_neural.rankers.trained_two_tower.TrainedTwoTower` takes.
    """

    own_training: ClassVar[dict[str, Any]] = {
        "batch_size": 256,
        "learning_rate": 1e-3,
        "loss": "softmax",
        "gamma": 10.0,
        "negatives": "in-batch",
    }

    def __init__(
        self,
        *,
        shared: bool,
        ngram_sizes: Sequence[int],
        **options: Any,
    ):
        super().__init__(**options)
        self.shared = checked_choice("shared", shared, (True, False))
        self.ngram_sizes = WordHashing([], checked_integers("ngram_sizes", ngram_sizes, least=1)).sizes
        self.hashing: WordHashing | None = None
        self._bags = LastVocabulary()

    hashes_padding = False

    @abstractmethod
    def tower(self, num_ngrams: int) -> nn.Module:
        """A new network from :class:`~pt_neural.rankers.hashed.HashedTexts` to vectors."""

    def corpus(self, sequences: PackedSequences, bags: csr_array) -> HashedCorpus:
        """Texts as the towers take them."""
        return HashedCorpus(sequences, bags)

    def settings(self) -> dict[str, Any]:
        """What makes the model what it is."""
        return {"shared": self.shared, "ngram_sizes": list(self.ngram_sizes)}

    def _texts(self, texts: Iterable[str], hashing: WordHashing) -> HashedCorpus:
        sequences, terms = pack_texts(texts)
        return self.corpus(sequences, word_bags(terms, hashing))

    def _sequences(self, sequences: PackedSequences, vocabulary: Vocabulary, hashing: WordHashing) -> HashedCorpus:
        return self.corpus(sequences, self._bags(lambda: word_bags(vocabulary.terms, hashing), vocabulary, hashing))

    def _towers(self, hashing: WordHashing) -> Towers:
        query = self.tower(len(hashing))
        # Two networks that start alike match equal words from the first step on, which few examples do not teach.
        return Towers(query, None if self.shared else deepcopy(query))

    def _begin(self, examples: Examples) -> tuple[WordHashing, nn.Module, Collate]:
        self._require_no_vectors()
        query_sequences, query_terms = pack_texts(examples.query_texts)
        sequences, vocabulary = self._training_documents(examples)
        words = dict.fromkeys([*query_terms, *vocabulary.terms, *([PADDING] if self.hashes_padding else [])])
        hashing = WordHashing.build(words, sizes=self.ngram_sizes)
        if not len(hashing):
            raise ValueError(
                f"no word to train on has {' or '.join(map(str, self.ngram_sizes))} letters, its boundaries included; "
                f"the texts of {', '.join(self.fields)} and the queries are empty"
            )
        queries = self.corpus(query_sequences, word_bags(query_terms, hashing))
        documents = self.corpus(sequences, word_bags(vocabulary.terms, hashing))
        return hashing, self._towers(hashing), TowerCollate(queries, documents)

    def _scorer(self, preparation: WordHashing, frame: pd.DataFrame) -> Scorer:
        query_rows, query_texts = distinct_queries(frame)
        queries = self._texts(query_texts, preparation)
        document_rows, sequences, vocabulary = self._frame_documents(frame)
        documents = self._sequences(sequences, vocabulary, preparation)
        return self._tower_scorer(queries, query_rows, documents, document_rows)

    def _install(self, preparation: WordHashing, network: Towers) -> None:
        super()._install(preparation, network)
        self.hashing = preparation

    def _encode(self, network: Towers, side: str, corpus: HashedCorpus) -> np.ndarray:
        """Unit vectors of all texts of a corpus, float32 of shape ``(len(corpus), dimensions)``."""
        device = next(network.parameters()).device
        blocks = []
        with torch.inference_mode():
            for start in range(0, max(len(corpus), 1), self.batch_size):  # no texts give a matrix without rows
                texts = corpus.take(np.arange(start, min(start + self.batch_size, len(corpus))))
                texts = HashedTexts(*(part.to(device) for part in texts))
                blocks.append(network.encode(side, texts).cpu().numpy())
        return np.concatenate(blocks)

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of queries."""
        return self._encode(self._fitted(), "query", self._texts(texts, self.hashing))

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of document texts."""
        return self._encode(self._fitted(), "document", self._texts(texts, self.hashing))

    def encode_sequences(self, sequences: PackedSequences, vocabulary: Vocabulary) -> np.ndarray:
        """Unit vectors of documents given as term ids over a vocabulary."""
        return self._encode(self._fitted(), "document", self._sequences(sequences, vocabulary, self.hashing))

    def _save_preparation(self, directory: Path) -> None:
        self.hashing.save(directory)

    def _load_preparation(self, directory: Path) -> tuple[WordHashing, nn.Module]:
        hashing = WordHashing.load(directory)
        return hashing, self._towers(hashing)
