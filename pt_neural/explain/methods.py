"""Which explanations each kind of model has."""

from collections.abc import Callable, Mapping

import pyterrier as pt

from pt_neural.explain.clsm import explain_clsm
from pt_neural.explain.desm import explain_desm
from pt_neural.explain.drop_occurrences import explain_occurrences
from pt_neural.explain.drop_terms import explain_terms
from pt_neural.explain.explanation import Explanation
from pt_neural.explain.likelihood import explain_likelihood
from pt_neural.explain.match_tensor import explain_match_tensor
from pt_neural.explain.matches import explain_matches
from pt_neural.explain.word_pairs import explain_word_pairs
from pt_neural.models import CLSM, DESM, SSI, SSM, TFIDF, PhraseTranslation
from pt_neural.models.match_tensor_ranker import MatchTensorRanker
from pt_neural.rankers import TwoTower
from pt_neural.rankers.interaction import Interaction
from pt_neural.rankers.language_model import LanguageModelRanker
from pt_neural.text.fields import FIELD_END

Method = Callable[..., Explanation]

# The first kind that a model is; the first method is the default.
_EXPLAINERS: dict[type, dict[str, Method]] = {
    DESM: {"similarity": explain_desm, "drop": explain_terms},
    CLSM: {"max-pooling": explain_clsm, "drop": explain_terms},
    TwoTower: {"drop": explain_terms},
    SSI: {"word-pairs": explain_word_pairs, "drop": explain_terms},
    TFIDF: {"word-pairs": explain_word_pairs, "drop": explain_terms},
    PhraseTranslation: {"drop": explain_terms},
    LanguageModelRanker: {"likelihood": explain_likelihood, "drop": explain_terms},
    MatchTensorRanker: {
        "match-tensor": explain_match_tensor,
        "drop": explain_occurrences,
        "matches": explain_matches,
    },
    Interaction: {"drop": explain_occurrences, "matches": explain_matches},
}
OF_SEVERAL_TEXTS = ("matches",)
_OF_FIELDS = ("match-tensor",)

Document = str | Mapping[str, str]


def methods_of(model: pt.Transformer) -> dict[str, Method]:
    """The explanations that a model has, the usual one first; none for what is no ranker of texts."""
    if isinstance(model, SSM) and model.pooling == "attention":
        return {"drop": explain_occurrences}  # its documents have no vectors of their own
    return next((methods for kind, methods in _EXPLAINERS.items() if isinstance(model, kind)), {})


def query_text(value: object) -> str:
    """A query; anything but a string is an empty one."""
    return value if isinstance(value, str) else ""


def document_text(model: pt.Transformer, value: Document, method: str) -> str:
    """A document's text as a method for a model takes it; anything but a string or fields is an empty one."""
    text = model.document_text(value) if isinstance(value, Mapping) else query_text(value)
    return text if method in _OF_FIELDS else text.replace(FIELD_END, "\n")
