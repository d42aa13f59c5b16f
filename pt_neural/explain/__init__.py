"""Why a document scored: one function explains every model.

The package itself can be called: ``pn.explain(model, query, text)`` is :func:`pt_neural.explain.door.explain`.
"""

import sys
from types import ModuleType
from typing import Any

from pt_neural.explain.comparison import ComparedExplanations
from pt_neural.explain.door import explain
from pt_neural.explain.explanation import Explanation, TextExplanation

__all__ = ["ComparedExplanations", "Explanation", "TextExplanation", "explain"]


class _CallableModule(ModuleType):
    """Lets ``pt_neural.explain`` be both the package and the function of that name."""

    def __call__(self, *args: Any, **options: Any) -> Explanation:
        return explain(*args, **options)


sys.modules[__name__].__class__ = _CallableModule
