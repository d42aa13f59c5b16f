"""Tables 7 and 8 of the SSI paper: the words that stand for other words and for 2-grams in correlated hashing."""

from typing import Literal

import numpy as np
import pandas as pd

from pt_neural.models.ssi.features import CorrelatedHashing
from pt_neural.text import ForwardIndex

LEAST_DOCUMENTS, MOST_DOCUMENTS = 20, 0.01  # that an example occurs in: a number, and a share of all
LETTERS = 4  # of each word of an example; shorter words are mostly function words
SHOWN = 5  # nearest words, as in the paper


def hashing_table(
    documents: ForwardIndex, ngrams: Literal[1, 2], frequent: int, number: int, seed: int
) -> pd.DataFrame:
    """Words or 2-grams, drawn at random, and the frequent words with the highest DICE coefficients.

    Args:
        documents: Where they occur.
        ngrams: 1 for words, 2 for 2-grams.
        frequent: F, how many of the most frequent words may stand for others.
        number: Examples to draw, among those that occur in at least 20 documents and in at most 1% of all, and whose
            words have only letters, at least four each.
        seed: Of the draw.

    Returns:
        ``example, documents, nearest, dice``: the example, in how many documents it occurs, at most five words by
        falling DICE coefficient, the example itself excluded, and the coefficients; fewer rows if there are few such
        words or 2-grams.
    """
    vocabulary = documents.vocabulary
    hashing = CorrelatedHashing.build(
        documents.all(),
        vocabulary,
        frequent=frequent,
        bins=SHOWN + 1,
        ngrams=ngrams,
        sublinear_tf=False,
        verbose=True,
    )
    if ngrams == 1:
        names, frequencies = vocabulary.terms, vocabulary.document_frequency
    else:
        bigrams = hashing.bigrams.vocabulary
        names, frequencies = bigrams.names(vocabulary), bigrams.document_frequency
    suitable = (frequencies >= LEAST_DOCUMENTS) & (frequencies <= MOST_DOCUMENTS * len(documents))
    drawn = np.random.default_rng(seed).permutation(np.flatnonzero(suitable))
    rows = []
    for place in drawn:
        name = names[place]
        if len(rows) < number and all(word.isalpha() and len(word) >= LETTERS for word in name.split()):
            found = hashing.nearest(name, vocabulary, SHOWN + 1)
            found = found[found["word"] != name].head(SHOWN)
            nearest, dice = (", ".join(cells) for cells in (found["word"], found["dice"].map("{:.3f}".format)))
            rows.append((name, int(frequencies[place]), nearest, dice))
    return pd.DataFrame(rows, columns=["example", "documents", "nearest", "dice"])
