"""Rows as text: one JSON object per line, without fields that have their default.

Simulations and live nodes write the same lines. An unfinished last line, as a killed process leaves
it, is skipped; a damaged line anywhere else is an error with its number. Fields of a later version
are kept, and written again.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from disque_trio.tracing.rows import Row

_DEFAULTS: Final[dict[str, object]] = {
    field.name: field.default for field in attrs.fields(Row) if field.default is not attrs.NOTHING
}
_TYPES: Final[dict[str, type]] = {
    "time": int,
    "kind": str,
    **{name: type(default) for name, default in _DEFAULTS.items()},
    "clock": list,
}


class NewerRow(Row):
    """A row of a later version. `attrs` cannot add a field to `Row` where that is compiled."""

    __slots__ = ("more",)

    def __init__(self, more: dict[str, Any], **known: Any) -> None:
        super().__init__(**known)
        self.more = more
        """Its unknown fields."""


class RowError(ValueError):
    """A line is not a row; the text has the number of the line and the reason."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"line {number}: {reason}")
        self.number = number


def line_of(row: Row) -> bytes:
    """Return the row as a line, with its end."""
    facts: dict[str, object] = {"time": row.time, "kind": row.kind}
    for name, default in _DEFAULTS.items():
        value = getattr(row, name)
        if value != default:
            facts[name] = value
    if isinstance(row, NewerRow):
        facts.update(row.more)
    return json.dumps(facts, separators=(",", ":")).encode() + b"\n"


def rows_of(lines: Iterable[bytes]) -> Iterator[Row]:
    """Yield the rows in the lines of a file. Raise `RowError`."""
    for number, line in enumerate(lines, 1):
        if line.endswith(b"\n"):
            yield _row_of(line, number)


def _row_of(line: bytes, number: int) -> Row:
    try:
        facts = json.loads(line)
    except ValueError as error:
        raise RowError(number, f"no JSON: {error}") from None
    if not isinstance(facts, dict) or not {"time", "kind"} <= facts.keys():
        raise RowError(number, "a row is an object with a time and a kind at least")
    more = {name: facts.pop(name) for name in list(facts) if name not in _TYPES}
    known = _checked(facts, number)
    return NewerRow(more, **known) if more else Row(**known)


def _checked(facts: dict[str, Any], number: int) -> dict[str, Any]:
    for name, value in facts.items():
        if type(value) is not _TYPES[name]:
            raise RowError(number, f"'{name}' cannot be {value!r}")
    if "clock" in facts:
        facts["clock"] = tuple(facts["clock"])
    return facts
