"""Samples of every format of ours: what nodes of that version sent and wrote (docs/versions.md).

A folder for each number of the formats. They are never edited: what a new version adds gets a new
number, and a new folder, recorded by `python -m tests.conformance.versions`.
"""

from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

_HERE: Final = Path(__file__).parent
JOURNALS: Final = ("framed.aof", "disque.aof")
NODES: Final = "nodes.conf"
FRAMES: Final = "frames.jsonl"
TRACE: Final = "trace.jsonl"
BODIES: Final = "bodies.jsonl"
"""Of jobs that the worker library adds."""
NUMBERS: Final = "numbers.json"
MEANING: Final = ".json"
"""Behind the name of a file: what a reader finds in it."""


def samples() -> list[Path]:
    """The folders, in the order of their numbers."""
    return sorted((each for each in _HERE.iterdir() if each.name.isdigit()), key=_number)


def _number(folder: Path) -> int:
    return int(folder.name)


def place(number: int) -> Path:
    """The folder of a format."""
    return _HERE / str(number)


def told(value: object) -> Any:
    """A record as JSON values, without fields that have their default: so a field that is added to
    its class later changes nothing."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("latin-1")
    if isinstance(value, list | tuple):
        return [told(each) for each in value]
    if isinstance(value, msgspec.Raw):
        return told(bytes(value))
    if isinstance(value, dict):
        return {str(name): told(each) for name, each in value.items()}
    if not fields_of(type(value)):
        return value
    found: dict[str, object] = {"is": type(value).__name__}
    for name, default in fields_of(type(value)).items():
        if (given := getattr(value, name)) != default:
            found[name] = told(given)
    return found


def fields_of(kind: Any) -> dict[str, object]:
    """The fields of a record that are written, with their defaults; none if it is no record."""
    if attrs.has(kind):
        return {field.name: _default(field) for field in attrs.fields(kind) if field.init}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {
            field.name: field.default_factory()
            if callable(field.default_factory)
            else field.default
            for field in msgspec.structs.fields(kind)
        }
    return {}


def _default(field: Any) -> object:
    makes = isinstance(field.default, attrs.Factory) and not field.default.takes_self  # type: ignore[arg-type]
    return field.default.factory() if makes else field.default
