"""Text: tokens, vocabulary, packed term sequences, and the forward index of a collection.

Files are loaded when a name of theirs is used: a search needs none of those that import SciPy.
"""

from pt_neural._lazy import lazy

_FILES = {
    "TEXT_FIELDS": "tokens",
    "Bigrams": "bigrams",
    "ForwardIndex": "forward_index",
    "PackedSequences": "packed",
    "TfIdf": "counts",
    "Vocabulary": "vocabulary",
    "WordHashing": "letter_ngrams",
    "frame_texts": "tokens",
    "join_fields": "tokens",
    "pack_fields": "tokens",
    "pack_texts": "tokens",
    "token_spans": "tokens",
    "tokenise": "tokens",
    "tokenise_packed": "tokens",
    "with_boundaries": "packed",
}

__all__ = sorted(_FILES)

__getattr__ = lazy(__name__, _FILES)
