"""Checks of single values of a declaration."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from numbers import Real
from typing import Any, TypeGuard, TypeVar

import attrs

Item = TypeVar("Item")


def is_number(value: object) -> TypeGuard[float]:
    """Is it a finite number? A bool is not a number."""
    if isinstance(value, bool):
        return False
    return isinstance(value, Real | Decimal) and math.isfinite(value)


def is_whole(value: object) -> TypeGuard[int]:
    """Is it an int? A bool does not count."""
    return isinstance(value, int) and not isinstance(value, bool)


def shown(value: object) -> str:
    """The `repr` of the value, cut after 100 characters."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def seconds_of(timeout: object) -> float:
    """The timeout in seconds: infinity for None, and 0 for a negative one. Raises `ValueError` if
    it is not a number."""
    if timeout is None or timeout == math.inf:
        return math.inf
    if not is_number(timeout):
        raise ValueError(f"timeout={shown(timeout)} must be a number of seconds, or None")
    return max(float(timeout), 0.0)


def listed(values: Iterable[Item], name: str) -> list[Item]:
    """A list of the values. Raises `TypeError` for an object that is not iterable."""
    return list(iterated(values, name))


def iterated(values: Iterable[Item], name: str) -> Iterator[Item]:
    """An iterator of the values. Raises `TypeError` for an object that is not iterable."""
    try:
        return iter(values)
    except TypeError as error:
        raise TypeError(f"{name}={shown(values)} must be a list, or another iterable") from error


Check = Callable[[Any, "attrs.Attribute[Any]", Any], None]
"""A validator of attrs."""


def number(least: float, most: float = math.inf) -> Check:
    """Accept finite numbers from `least` to `most`."""
    bounds = f", {least} or more" if most == math.inf else f" from {least} to {most}"

    def check(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if not is_number(value) or not least <= value <= most:
            raise ValueError(f"{field.name}={shown(value)} must be a number{bounds}")

    return check


def whole(least: int, most: int | None = None) -> Check:
    """Accept whole numbers from `least` to `most`."""

    def check(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if not is_whole(value) or value < least or (most is not None and value > most):
            bounds = f", {least} or more" if most is None else f" from {least} to {most}"
            raise ValueError(f"{field.name}={shown(value)} must be a whole number{bounds}")

    return check


def one_of(known: Collection[str]) -> Check:
    """Accept one of these strings."""

    def check(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if not isinstance(value, str) or value not in known:
            names = ", ".join(map(repr, known))
            raise ValueError(f"{field.name}={shown(value)} must be one of {names}")

    return check


def errors(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """Accept a tuple of exception classes."""
    if not isinstance(value, tuple) or not all(
        isinstance(each, type) and issubclass(each, BaseException) for each in value
    ):
        raise ValueError(
            f"{field.name}={shown(value)} must be a tuple of exception classes, as (ValueError,)"
        )
