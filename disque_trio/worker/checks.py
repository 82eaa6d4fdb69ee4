"""What a declaration may say: checks of single values, which answer with a sentence or with
nothing."""

import math
from collections.abc import Callable, Collection
from decimal import Decimal
from numbers import Real
from typing import Any, TypeGuard

import attrs


def is_number(value: object) -> TypeGuard[float]:
    """Is it a finite number? A bool is none."""
    if isinstance(value, bool):
        return False
    return isinstance(value, Real | Decimal) and math.isfinite(value)


def is_whole(value: object) -> TypeGuard[int]:
    """Is it an int? A bool is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def shown(value: object) -> str:
    """The value as it stands in a program, cut."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


Check = Callable[[Any, "attrs.Attribute[Any]", Any], None]
"""A validator of attrs."""


def number(least: float) -> Check:
    """A finite number, at least this."""

    def check(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if not is_number(value) or value < least:
            raise ValueError(f"{field.name}={shown(value)} must be a number, {least} or more")

    return check


def whole(least: int) -> Check:
    """A whole number, at least this."""

    def check(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if not is_whole(value) or value < least:
            raise ValueError(f"{field.name}={shown(value)} must be a whole number, {least} or more")

    return check


def one_of(known: Collection[str]) -> Check:
    """One of these words."""

    def check(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if not isinstance(value, str) or value not in known:
            names = ", ".join(map(repr, known))
            raise ValueError(f"{field.name}={shown(value)} must be one of {names}")

    return check


def errors(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
    """A tuple of classes of exceptions."""
    if not isinstance(value, tuple) or not all(
        isinstance(each, type) and issubclass(each, BaseException) for each in value
    ):
        raise ValueError(
            f"{field.name}={shown(value)} must be a tuple of exception classes, as (ValueError,)"
        )
