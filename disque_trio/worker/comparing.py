"""Compares a value with the value that a handler would receive, when a job is added. So no handler
receives a changed value without an error."""

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from disque_trio.worker import codec

_BUILTINS = (str, bytes, bytearray, int, float, list, tuple, dict, set, frozenset)


def difference(
    sent: Any, arrives: Any, converts: codec.Form | None = None, path: str = ""
) -> str | None:
    """The first difference and its path; None if there is none. Values are equal by `==`; NaN
    equals NaN; times are equal if they are the same instant; objects without `==` are compared
    field by field.

    `converts` is the form of the body, if the annotation describes the type completely. Then a
    value of another type may be converted without loss, such as text to a date.
    """
    if is_equal(sent, arrives) or _is_nan(sent, arrives) or _is_same_instant(sent, arrives):
        return None
    for kind in (list, tuple):
        if isinstance(sent, kind) and isinstance(arrives, kind) and len(sent) == len(arrives):
            return _of_items(sent, arrives, converts, path)
    if isinstance(sent, dict) and isinstance(arrives, dict) and len(sent) == len(arrives):
        return _of_fields(sent, arrives, converts, path)
    if converts is not None and _is_converted(sent, arrives, converts):
        return None
    name = type(sent).__qualname__
    if type(sent) is not type(arrives) or isinstance(sent, _BUILTINS):
        return f"{_at(path)}{name} arrives as {_shown(arrives)}"
    try:
        fields, others = codec.plain(sent), codec.plain(arrives)
    except Exception:  # code of users
        fields = others = None
    if isinstance(fields, dict | list):
        return difference(fields, others, None, path)
    return f"{_at(path)}{name} arrives as another {name}"


def _is_converted(sent: Any, arrives: Any, form: codec.Form) -> bool:
    if isinstance(sent, type(arrives)):  # an object of a subclass would lose its class
        return False
    try:
        return codec.part(arrives, form) == codec.part(sent, form)
    except Exception:  # code of users
        return False


def _of_items(
    sent: Sequence[Any], arrives: Sequence[Any], converts: codec.Form | None, path: str
) -> str | None:
    for place, (one, other) in enumerate(zip(sent, arrives, strict=True)):
        if (found := difference(one, other, converts, f"{path}[{place}]")) is not None:
            return found
    return None


def _of_fields(
    sent: dict[Any, Any], arrives: dict[Any, Any], converts: codec.Form | None, path: str
) -> str | None:
    for key, value in sent.items():
        if key not in arrives:
            return f"{_at(path)}a key of type {type(key).__qualname__} arrives as another"
        if (found := difference(value, arrives[key], converts, f"{path}[{key!r:.40}]")) is not None:
            return found
    return None


def is_equal(sent: Any, arrives: Any) -> bool:
    """Are they equal by `==`? False if that raises."""
    try:
        return bool(sent == arrives)
    except Exception:  # code of users
        return False


def _is_nan(sent: Any, arrives: Any) -> bool:
    if isinstance(sent, Decimal) and isinstance(arrives, Decimal):
        return str(sent) == str(arrives)
    return (
        isinstance(sent, float)
        and isinstance(arrives, float)
        and math.isnan(sent)
        and math.isnan(arrives)
    )


def _is_same_instant(sent: Any, arrives: Any) -> bool:
    """Compare two times as instants: where clocks are set back, `==` of times in different zones is
    always False (PEP 495)."""
    if not (isinstance(sent, datetime.datetime) and isinstance(arrives, datetime.datetime)):
        return False
    if sent.tzinfo is None or arrives.tzinfo is None:
        return False
    try:
        return sent.astimezone(datetime.UTC) == arrives.astimezone(datetime.UTC)
    except OverflowError:  # in the year 1 or 9999
        return False


def _shown(value: Any) -> str:
    is_simple = value is None or isinstance(value, bool | int | float)
    return repr(value)[:40] if is_simple else type(value).__qualname__


def _at(path: str) -> str:
    return f"at {path}: " if path else ""
