"""Checks of what users give to constructors: errors that name the argument and what it must be."""

import numbers
from collections.abc import Collection, Iterable
from typing import Any


def checked_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
    """The value, or a ValueError that names the choices."""
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
    """The value as Python's own number, which JSON can hold, numpy's included.

    Args:
        name: What the argument is called.
        value: What was given.
        kind: Whether it must be an integer.
        least: Smallest value allowed.
        above: What it must be above.
        most: Largest value allowed.
        optional: Whether it may be None.

    Raises:
        TypeError: If it is no number, or none of that kind.
        ValueError: If it is out of range or infinite.

    Example::

        >>> checked_number("window", 3, int, least=1)
        3
    """
    if value is None and optional:
        return None
    if not isinstance(value, numbers.Integral if kind is int else numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be {'an integer' if kind is int else 'a number'}, not {value!r:.80}")
    if not value < float("inf"):
        raise ValueError(f"{name} must be finite, not {value!r}")
    if least is not None and not value >= least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")
    if above is not None and not value > above:
        raise ValueError(f"{name} must be above {above}, not {value!r}")
    if most is not None and not value <= most:
        raise ValueError(f"{name} must be at most {most}, not {value!r}")
    return kind(value)


def checked_integers(name: str, values: Any, *, least: int) -> tuple[int, ...]:
    """A sequence of one integer or more, as a tuple of Python's own.

    Raises:
        TypeError: If it is no sequence of integers.
        ValueError: If it is empty, or if one is too small.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of integers, such as ({max(least, 3)},), not {values!r:.80}")
    checked = tuple(checked_number(f"each number of {name}", value, int, least=least) for value in values)
    if not checked:
        raise ValueError(f"{name} must hold at least one integer")
    return checked
