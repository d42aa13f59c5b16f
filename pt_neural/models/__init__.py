"""The rankers: a folder for each paper, a file for each model or network."""

from typing import Any

from pt_neural.rankers.registry import RANKERS

# Each is an attribute of this package, loaded on first use; the API page lists them from here.
_ROWS = {row.name: row for row in RANKERS}

__all__ = sorted(_ROWS)


def __getattr__(name: str) -> Any:
    if name not in _ROWS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = _ROWS[name].ranker()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
