"""Reads records from the tables of a scenario file, and checks every key and value.

A record is an attrs class whose fields are made by `key`. Problems are collected, so that all of a
file are reported at once.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import attrs

from disque_trio.sim.scenarios.toml_lines import Path

_Value = TypeVar("_Value")
_Record = TypeVar("_Record")

KIND: Final = "kind"
ABOUT: Final = "about"
NAME: Final = "name"
DEFAULT: Final = "default"
FORMER: Final = "former"


class WrongValueError(Exception):
    """There is a problem at this place or below; it has been recorded."""


@attrs.frozen
class Problem:
    """A problem, and its key."""

    path: Path
    text: str


@attrs.frozen
class Spot:
    """A place in the document at which problems can be recorded."""

    path: Path
    problems: list[Problem]

    def inside(self, key: str | int) -> "Spot":
        """Return the place of a key or item within this one."""
        return Spot((*self.path, key), self.problems)

    def wrong(self, text: str) -> None:
        """Record a problem."""
        self.problems.append(Problem(self.path, text))

    @property
    def name(self) -> str:
        """The last key, for messages; items of an array have the array's name."""
        return next((key for key in reversed(self.path) if isinstance(key, str)), "the file")


@attrs.frozen
class Kind(Generic[_Value]):
    """A kind of value: `description` describes valid values, `read` returns the value or raises
    ValueError."""

    description: str
    read: Callable[[Any, Spot], _Value]
    record: type | None = None
    """The record of a table, for the key reference."""
    is_array: bool = False

    def take(self, value: Any, spot: Spot) -> _Value:
        """Return the value as read. A problem is recorded, and raises `WrongValueError`."""
        try:
            return self.read(value, spot)
        except ValueError as error:
            reason = f" ({error})" if str(error) else ""
            spot.wrong(f"{spot.name} = {shown(value)} is not {self.description}{reason}")
            raise WrongValueError from None


def shown(value: Any) -> str:
    """Return a value as in a TOML file, shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        text = f"[{', '.join(shown(each) for each in value)}]"
    elif isinstance(value, dict):
        text = f"{{ {', '.join(f'{name} = {shown(each)}' for name, each in value.items())} }}"
    else:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


_REQUIRED: Final = object()


def key(
    kind: Kind[_Value], about: str, *, default: Any = _REQUIRED, name: str = "", former: str = ""
) -> Any:
    """Define a field of a record: the key `name` (or the field's own name) of its table.

    `default` is written as in a file; None is no value at all. Files of earlier releases may have
    the key under its `former` name.
    """
    metadata = {KIND: kind, ABOUT: about, NAME: name, DEFAULT: default, FORMER: former}
    if default is _REQUIRED:
        return attrs.field(metadata=metadata)
    value = None if default is None else kind.take(default, Spot((name,), []))
    return attrs.field(default=value, metadata=metadata)


@attrs.frozen
class Key:
    """A key, with its kind, meaning and default."""

    name: str
    field: str
    kind: Kind[Any]
    about: str
    default: Any
    former: str

    @property
    def is_required(self) -> bool:
        """Is the key required?"""
        return self.default is _REQUIRED

    @property
    def shown_default(self) -> str:
        """The default as in a file; empty if there is none."""
        if self.is_required:
            return "required"
        return "" if self.default in (None, "", [], {}) else shown(self.default)


def keys(record: type) -> list[Key]:
    """Return the keys of a record's table, in order."""
    return [
        Key(
            name=field.metadata[NAME] or field.name,
            field=field.name,
            kind=field.metadata[KIND],
            about=field.metadata[ABOUT],
            default=field.metadata[DEFAULT],
            former=field.metadata[FORMER],
        )
        for field in attrs.fields(record)
    ]


def read_record(record: type[_Record], value: Any, spot: Spot) -> _Record:
    """Return the record of a table. Raise `WrongValueError` after all problems are recorded."""
    if not isinstance(value, Mapping):
        spot.wrong(f"{spot.name} = {shown(value)} is not a table")
        raise WrongValueError
    known = {each.name: each for each in keys(record)}
    former = {each.former: each.name for each in known.values() if each.former}
    is_well = True
    for name in value:
        if former.get(name) in value:  # one of the two is from a base
            spot.inside(name).wrong(f"'{name}' is called '{former[name]}' now")
            is_well = False
        elif name not in known and name not in former:
            spot.inside(name).wrong(f"unknown key '{name}'{advice(name, list(known))}")
            is_well = False
    found: dict[str, Any] = {}
    for name, each in known.items():
        place = name if name in value else each.former
        if place in value:
            try:
                found[each.field] = each.kind.take(value[place], spot.inside(place))
            except WrongValueError:
                is_well = False
        elif each.is_required:
            spot.wrong(f"{name} is missing: {each.kind.description}")
            is_well = False
    if not is_well:
        raise WrongValueError
    return record(**found)


def advice(word: str, known: Sequence[str]) -> str:
    """Return a suggestion of the intended word, for the end of a message."""
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f", did you mean '{near[0]}'?"
    return f"; known are {', '.join(known)}" if len(known) <= 24 else ""


def table(record: type[_Record], check: Callable[[_Record, Spot], None] | None = None) -> Kind[Any]:
    """Return the kind of a table. `check` records problems of several keys together."""

    def read(value: Any, spot: Spot) -> _Record:
        result = read_record(record, value, spot)
        if check is not None:
            before = len(spot.problems)
            check(result, spot)
            if len(spot.problems) > before:
                raise WrongValueError
        return result

    return Kind("a table", read, record)


def array_of(kind: Kind[_Value], *, least: int = 0) -> Kind[tuple[_Value, ...]]:
    """Return the kind of an array with items of one kind."""

    def read(value: Any, spot: Spot) -> tuple[_Value, ...]:
        if not isinstance(value, list) or len(value) < least:
            raise ValueError
        items = [
            item
            for number, each in enumerate(value)
            if (item := _item(kind, each, spot.inside(number))) is not None
        ]
        if len(items) < len(value):
            raise WrongValueError
        return tuple(items)

    what = "tables" if kind.record else f"items, each {kind.description}"
    at_least = " (at least one)" if least else ""
    return Kind(f"an array of {what}{at_least}", read, kind.record, is_array=True)


def _item(kind: Kind[_Value], value: Any, spot: Spot) -> _Value | None:
    try:
        return kind.take(value, spot)
    except WrongValueError:
        return None
