"""Checks of arguments, with errors that name the argument and say what it must be."""

import numbers
from collections.abc import Collection, Iterable
from typing import Any


def checked_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
    """Return the value, or raise a ValueError that lists the choices."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {known}, not {value!r:.80}")
    return value


def checked_number(
    name: str,
    value: Any,
    kind: type[int] | type[float],
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    optional: bool = False,
) -> int | float | None:
    """Return an integer or any number (``kind``), which may be NumPy's, as a Python number, which JSON can hold.

    TypeError if it is not of that kind; ValueError if it is below ``least``, not above ``above``, over ``most``,
    infinite, or an integer that NumPy cannot hold. If it is ``optional``, None is fine.

    Example::

        >>> checked_number("window", 3, int, least=1)
        3
    """
    if value is None and optional:
        return None
    if not isinstance(value, numbers.Integral if kind is int else numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be {'an integer' if kind is int else 'a number'}, not {value!r:.80}")
    if not -float("inf") < value < float("inf"):
        raise ValueError(f"{name} must be finite, not {value!r}")
    if kind is int and not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} must be below 2**63, not {value!r:.40}")
    if least is not None and not value >= least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")
    if above is not None and not value > above:
        raise ValueError(f"{name} must be above {above}, not {value!r}")
    if most is not None and not value <= most:
        raise ValueError(f"{name} must be at most {most}, not {value!r}")
    return kind(value)


def checked_integers(name: str, values: Any, *, least: int) -> tuple[int, ...]:
    """Return a sequence of at least one integer, none below ``least``, as a tuple of Python integers."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of integers, such as ({max(least, 3)},), not {values!r:.80}")
    checked = tuple(checked_number(f"each number of {name}", value, int, least=least) for value in values)
    if not checked:
        raise ValueError(f"{name} must hold at least one integer")
    return checked
