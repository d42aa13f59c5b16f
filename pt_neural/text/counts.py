"""Texts as bags of words: the matrix of term counts."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.sparse import csr_array, vstack

from pt_neural.text.corpus import read_documents
from pt_neural.text.fields import TEXT_FIELDS, join_fields
from pt_neural.text.forward_index import ForwardIndex
from pt_neural.text.packed import PackedSequences, offsets_of
from pt_neural.text.spool import TermSpool, load_sequences
from pt_neural.text.tokeniser import tokenise
from pt_neural.text.vocabulary import Vocabulary

_BLOCK = 4096  # documents whose terms are in memory at a time


def bag_of_words(sequences: PackedSequences, num_terms: int) -> csr_array:
    """Count the terms of each sequence; ids outside ``range(num_terms)`` are passed over.

    Args:
        sequences: Sequences of term ids.
        num_terms: Size of the vocabulary.

    Returns:
        float32 matrix of shape ``(len(sequences), num_terms)`` with only the counts that are not 0.

    Example::

        >>> bag_of_words(PackedSequences.from_lists([[1, 0, 1], [-1]]), 2).toarray()
        array([[1., 2.],
               [0., 0.]], dtype=float32)
    """
    known = (sequences.terms >= 0) & (sequences.terms < num_terms)
    before = offsets_of(known)  # how many known terms stand before each place
    terms = sequences.terms[known]
    ones = np.ones(len(terms), dtype=np.float32)
    counts = csr_array((ones, terms, before[sequences.offsets]), shape=(len(sequences), num_terms))
    counts.sum_duplicates()
    return counts


def count_corpus(
    corpus: Iterable[Mapping[str, Any]] | pd.DataFrame | ForwardIndex,
    *,
    min_count: int = 1,
    max_terms: int | None = None,
    fields: Sequence[str] = TEXT_FIELDS,
    desc: str = "counting terms",
    verbose: bool = True,
) -> tuple[Vocabulary, csr_array]:
    """Count the terms of a collection in one reading; only the counts are held in memory.

    Args:
        corpus: Documents with ``docno`` and at least one of the fields, a frame of them, or a forward index.
        min_count: Leave out terms that occur less often.
        max_terms: Keep only that many of the most frequent terms; None keeps all.
        fields: The fields to read, joined in this order; a forward index has settled them.
        desc: Words beside the progress bar.
        verbose: Show a progress bar.

    Returns:
        The vocabulary, and the float32 counts of shape ``(documents, terms)``.

    Raises:
        TypeError: If the corpus is none of these.
        ValueError: If there are no documents, if one lacks its docno or all fields, or if a docno occurs twice.

    Example::

        >>> vocabulary, counts = count_corpus([{"docno": "d1", "text": "A river, a city."}], verbose=False)
        >>> dict(zip(vocabulary.terms, counts.toarray()[0].tolist()))
        {'a': 2.0, 'city': 1.0, 'river': 1.0}
    """
    limits = {"min_count": min_count, "max_terms": max_terms}
    if isinstance(corpus, ForwardIndex):
        vocabulary = most_frequent(corpus.vocabulary, **limits)
        with pt.tqdm(total=len(corpus), desc=desc, unit="doc", disable=not verbose) as bar:
            return vocabulary, _counts(corpus.all(), len(vocabulary), bar)
    with TemporaryDirectory() as name, TermSpool(Path(name)) as spool:
        for _, document in pt.tqdm(read_documents(corpus), desc=desc, unit="doc", disable=not verbose):
            spool.append(tokenise(join_fields(document, fields)))
        vocabulary = spool.finish(**limits)
        return vocabulary, _counts(load_sequences(Path(name)), len(vocabulary))


def most_frequent(vocabulary: Vocabulary, *, min_count: int, max_terms: int | None) -> Vocabulary:
    """The beginning of a forward index's vocabulary, which is in order of falling frequency."""
    often = int((vocabulary.collection_frequency >= min_count).sum())
    kept = slice(often if max_terms is None else min(often, max_terms))
    frequencies = vocabulary.collection_frequency[kept], vocabulary.document_frequency[kept]
    return Vocabulary(vocabulary.terms[kept], *frequencies, vocabulary.num_documents)


def _counts(sequences: PackedSequences, num_terms: int, bar: Any = None) -> csr_array:
    blocks = []
    for start in range(0, len(sequences), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(sequences)))
        blocks.append(bag_of_words(sequences.take(rows), num_terms))
        if bar is not None:
            bar.update(len(rows))
    return vstack(blocks, format="csr")
