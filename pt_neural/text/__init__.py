"""Text: tokens, vocabulary, packed term sequences, and the forward index of a collection."""

from pt_neural.text.bigrams import Bigrams
from pt_neural.text.corpus import read_documents
from pt_neural.text.counts import TfIdf
from pt_neural.text.forward_index import ForwardIndex
from pt_neural.text.letter_ngrams import WordHashing
from pt_neural.text.packed import PackedSequences, with_boundaries
from pt_neural.text.tokens import (
    TEXT_FIELDS,
    frame_texts,
    join_fields,
    pack_fields,
    pack_texts,
    token_spans,
    tokenise,
    tokenise_packed,
)
from pt_neural.text.vocabulary import Vocabulary

__all__ = [
    "TEXT_FIELDS",
    "Bigrams",
    "ForwardIndex",
    "PackedSequences",
    "TfIdf",
    "Vocabulary",
    "WordHashing",
    "frame_texts",
    "join_fields",
    "pack_fields",
    "pack_texts",
    "read_documents",
    "token_spans",
    "tokenise",
    "tokenise_packed",
    "with_boundaries",
]
