"""Samples of every format of ours: what nodes of that version sent and wrote (docs/versions.md).

A folder for each number of the formats. They are never edited: what a new version adds gets a new
number, and a new folder, recorded by `python -m tests.conformance.versions`.
"""

from pathlib import Path
from typing import Any, Final

import attrs

_HERE: Final = Path(__file__).parent
JOURNALS: Final = ("framed.aof", "disque.aof")
NODES: Final = "nodes.conf"
FRAMES: Final = "frames.jsonl"
TRACE: Final = "trace.jsonl"
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
    kind: Any = type(value)
    if not attrs.has(kind):
        return value
    found: dict[str, object] = {"is": kind.__name__}
    for field in attrs.fields(kind):
        given = getattr(value, field.name)
        if field.init and given != field.default:
            found[field.name] = told(given)
    return found
