"""What SSI has learned of words: W, the nearest words under it, and the words that stand for others in a hashed W."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from pt_neural._arguments import checked_choice, checked_number
from pt_neural.models.bilinear_network import BilinearNetwork
from pt_neural.models.ssi_features import Features
from pt_neural.models.ssi_ranker import SSIRanker
from pt_neural.rankers.weighed import query_blocks
from pt_neural.text import TfIdf


class SSIWords(SSIRanker):
    """Base of SSI that tells what it has learned of words."""

    def word_weights(
        self, query_words: Sequence[str] | None = None, document_words: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """A part of W: how much words of a query speak for words of a document.

        Args:
            query_words: Known words, in lower case; None for all.
            document_words: Likewise.

        Returns:
            Frame of float32 with the words of the query as index and those of the document as columns.

        Raises:
            TypeError: If words are no sequence.
            KeyError: If a word is unknown.
        """
        network, features = self._fitted(), self.features
        rows = self._words("queries", features.queries, query_words)
        columns = self._words("documents", features.documents, document_words)
        weights = _word_weights(network, features, rows, columns)
        terms = features.queries.vocabulary.terms, features.documents.vocabulary.terms
        return pd.DataFrame(weights, index=[terms[0][i] for i in rows], columns=[terms[1][i] for i in columns])

    def _words(self, side: str, weighing: TfIdf, words: Sequence[str] | None) -> np.ndarray:
        """Numbers of words, or an error that names the first unknown one."""
        if words is None:
            return np.arange(len(weighing.vocabulary))
        if isinstance(words, str):
            raise TypeError(f"words must be a list, such as [{words!r}], not {words!r}")
        ids = weighing.vocabulary.ids(words)
        if (ids < 0).any():
            known = f"the {len(weighing.vocabulary):,} words that {self!r} knows in {side}"
            raise KeyError(f"{words[int(np.argmin(ids))]!r} is none of {known}, all in lower case")
        return ids

    def neighbours(self, word: str, k: int = 10, side: Literal["query", "document"] = "query") -> pd.DataFrame:
        """The words of documents that a word of a query speaks for most under W; or those that speak for it.

        Args:
            word: A known word, in lower case.
            k: Number of words; fewer if no more have a weight above 0.
            side: ``"query"`` takes the word's row of W, ``"document"`` its column.

        Returns:
            Frame with ``word`` and ``weight``, the largest first.

        Raises:
            KeyError: If the word is unknown.
        """
        if checked_choice("side", side, ("query", "document")) == "query":
            weights = self.word_weights([word]).iloc[0]
        else:
            weights = self.word_weights(None, [word]).iloc[:, 0]
        weights = weights[weights > 0].nlargest(checked_number("k", k, int, least=1))
        return pd.DataFrame({"word": weights.index, "weight": weights.to_numpy()})

    def dice_neighbours(self, text: str, k: int = 5) -> pd.DataFrame:
        """The frequent words that stand for a word or 2-gram in correlated feature hashing (Tables 7 and 8).

        Args:
            text: A hashed word, or 2-gram such as ``"star trek"``, in lower case.
            k: At most so many.

        Returns:
            Frame with ``word`` and ``dice``, the largest first.

        Raises:
            KeyError: If it is not hashed.
            ValueError: If the kind is another one, or ``k`` below 1.
        """
        k = checked_number("k", k, int, least=1)
        self._fitted()
        if self.features.hashing is None:
            raise ValueError(f"only kind='correlated-hash' replaces words by others, not {self.kind!r}")
        return self.features.hashing.nearest(text, self.features.documents.vocabulary, k)


def _word_weights(
    network: BilinearNetwork, features: Features, query_words: np.ndarray, document_words: np.ndarray
) -> np.ndarray:
    """W of some words, as texts of one word each show it: float32 of shape (words of queries, words of documents)."""
    documents = network.weigh_documents(*features.of_words("document", document_words))
    weights = np.zeros((len(query_words), len(document_words)), dtype=np.float32)
    for some in query_blocks(len(query_words)):
        queries = network.weigh_queries(*features.of_words("query", query_words[some]))
        if queries.latent is not None:
            weights[some] += queries.latent @ documents.latent.T
        if queries.terms is not None:
            products = queries.terms @ documents.terms.T
            weights[some] += products if isinstance(products, np.ndarray) else products.toarray()
    return weights
