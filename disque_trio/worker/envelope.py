"""The envelope in a job's body: its task, its arguments and its key.

A body is JSON, or msgpack if its first byte begins a msgpack map. Other bodies are for consumers of
a queue. Limits apply both to writing and to reading.
"""

import os
import re
import time
import uuid
from collections.abc import Iterator
from typing import Any, Final

from disque_trio.client.errors import DisqueError
from disque_trio.terminal.counting import counted
from disque_trio.worker import codec
from disque_trio.worker.codec import Envelope, Form

MAX_BODY: Final = 1 << 20
"""The default of `max_body`, in bytes."""
MAX_DEPTH: Final = 64
"""The maximum nesting of lists and maps, including the body's own map."""
MAX_ARGUMENTS: Final = 1000
MAX_HEADERS: Final = 8192
"""Bytes."""
MAX_NAME: Final = 200
"""Bytes of a task's name."""
VERSION: Final = 1
CODED: Final = 2
"""The version of bodies that codecs have encoded."""

_MAPS: Final = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])
"""First bytes of a msgpack map."""
_NESTING: Final = {
    "json": b"[{",
    "msgpack": bytes([*range(0x80, 0xA0), *range(0xDC, 0xE0)]),
}
"""Bytes that begin a list or a map."""
_OTHERS: Final = {
    form: bytes(each for each in range(256) if each not in begins)
    for form, begins in _NESTING.items()
}


_JSON_TASK: Final = re.compile(rb'\s*\{\s*"task"\s*:\s*("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*")')
_PACKED_TASK: Final = re.compile(rb"[\x80-\x8f]\xa4task(?:([\xa0-\xbf])|\xd9(.))", re.DOTALL)
"""The beginnings of bodies that this library has written."""


class BadBodyError(DisqueError):
    """A body that no worker can read, or whose arguments do not fit the task. Its text is the
    reason of the dead job."""


class NewerBodyError(DisqueError):
    """A body that another worker may be able to read: it has a later version, or a codec that this
    app lacks."""


class NotEncodableError(DisqueError):
    """Arguments that do not fit the task's annotations, or that cannot be encoded."""


class TooLargeError(NotEncodableError):
    """A body, or headers, that exceed the limit."""


def form_of(body: bytes) -> Form | None:
    """The encoding of a body; None if it is no envelope."""
    first = body[:1] if body[:1] == b"{" else body.lstrip()[:1]
    if first == b"{":
        return "json"
    return "msgpack" if body and body[0] in _MAPS else None


def checked_form(body: bytes, max_body: int = MAX_BODY) -> Form:
    """The encoding of a body. Raises `BadBodyError` if it exceeds a limit or is no envelope."""
    form = form_of(body)
    if form is None:
        raise BadBodyError("unreadable: the body is neither a JSON object nor a msgpack map")
    if len(body) > max_body:
        raise BadBodyError(
            f"unreadable: the body has {counted(len(body), 'byte')}, and the limit is {max_body:,}"
        )
    try:
        _check_depth(body, form)
    except codec.BAD_INPUT as error:
        raise BadBodyError(f"unreadable: {error}") from error
    return form


def read(body: bytes, max_body: int = MAX_BODY) -> Envelope:
    """The envelope in a body. Raises `BadBodyError`, or `NewerBodyError`."""
    form = checked_form(body, max_body)
    try:
        found = codec.read(body, form)
    except codec.BAD_INPUT as error:
        raise BadBodyError(f"unreadable: {error}") from error
    if found.v != VERSION:
        raise NewerBodyError(f"version {found.v} of the envelope is unknown")
    if len(found.args) + len(found.kwargs) > MAX_ARGUMENTS:
        raise BadBodyError(f"unreadable: more than {MAX_ARGUMENTS} arguments")
    if found.headers and len(body) > MAX_HEADERS:
        try:
            _check_headers(found)
        except (TooLargeError, *codec.BAD_INPUT) as error:
            raise BadBodyError(f"unreadable: {error}") from error
    return found


def as_coded(body: bytes) -> codec.Coded | None:
    """The content of a body that codecs have encoded; None for any other body."""
    if body and body[0] in _MAPS:
        try:
            found = codec.read_coded(body)
        except codec.BAD_INPUT:
            return None
        return found if found.v == CODED else None
    return None


def task_of(body: bytes, max_body: int = MAX_BODY) -> str:
    """The name of the task, even in a body that codecs have encoded; empty for a body that is not
    an envelope."""
    if (coded := as_coded(body)) is not None:
        return coded.task
    try:
        return read(body, max_body).task
    except DisqueError:
        return ""


def task_at_start(start: bytes) -> str:
    """The name of the task, from the beginning of a body; empty if it is not there."""
    if found := _JSON_TASK.match(start):
        try:
            return str(codec.read_plain(found[1], "json"))
        except codec.BAD_INPUT:
            return ""
    found = _PACKED_TASK.match(start)
    if found is None:
        return ""
    size = found[1][0] & 0x1F if found[1] else found[2][0]
    name = start[found.end() : found.end() + size]
    return name.decode(errors="replace") if len(name) == size else ""


def write(envelope: Envelope, max_body: int = MAX_BODY) -> bytes:
    """The encoded body. Raises `NotEncodableError`."""
    try:
        body = codec.write(envelope, envelope.form)
        _check_depth(body, envelope.form)
        _check_headers(envelope)
    except codec.BAD_INPUT as error:
        what = "".join(_unwritable(envelope))
        raise NotEncodableError(f"{envelope.task}: {what}{error}") from error
    if len(envelope.args) + len(envelope.kwargs) > MAX_ARGUMENTS:
        raise NotEncodableError(f"{envelope.task}: more than {MAX_ARGUMENTS} arguments")
    if len(body) > max_body:
        raise TooLargeError(
            f"{envelope.task}: the body has {counted(len(body), 'byte')}, and the limit is "
            f"{max_body:,}; store large data elsewhere and pass its address, or raise "
            "max_body of the app"
        )
    return body


def _unwritable(envelope: Envelope) -> Iterator[str]:
    """The first header that cannot be encoded; arguments are already encoded here."""
    for name, value in envelope.headers.items():
        try:
            codec.write({name: value}, envelope.form)
        except codec.BAD_INPUT:
            yield f"header {name!r}: "
            return


def _check_headers(envelope: Envelope) -> None:
    size = len(codec.write(envelope.headers, envelope.form))
    if size > MAX_HEADERS:
        raise TooLargeError(
            f"the headers have {counted(size, 'byte')}, and the limit is {MAX_HEADERS:,}"
        )


def _check_depth(body: bytes, form: Form) -> None:
    if len(body) <= MAX_DEPTH or len(body.translate(None, _OTHERS[form])) <= MAX_DEPTH:
        return  # too few bytes that begin a list or map: the usual case
    depth = 0
    level: list[Any] = [codec.read_plain(body, form)]
    while level := [each for each in level if isinstance(each, list | dict)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} nested lists and maps")
        level = [
            inner for each in level for inner in (each if isinstance(each, list) else each.values())
        ]


# Keys.


def new_key() -> str:
    """A UUID of version 7, which contains the time of its creation."""
    return key_of(time.time_ns() // 1_000_000, int.from_bytes(os.urandom(10)))


def key_of(millis: int, noise: int) -> str:
    """A UUID of version 7 from Unix milliseconds and 80 random bits."""
    number = (millis & (1 << 48) - 1) << 80 | noise
    number = number & ~(0xF << 76) | 7 << 76
    return str(uuid.UUID(int=number & ~(3 << 62) | 2 << 62))


def created_at(key: str | None) -> float | None:
    """When a key was created by `new_key`, in Unix seconds; None for any other key."""
    try:
        found = uuid.UUID(key or "")
    except ValueError:
        return None
    return (found.int >> 80) / 1000 if found.version == 7 else None
