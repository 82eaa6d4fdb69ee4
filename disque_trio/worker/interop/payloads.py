"""Reads bodies of Sidekiq and Resque as jobs of tasks, and writes them.

The class is the name or an alias of the task. For Sidekiq, `jid` is the key, `retry` and
`retry_count` determine the allowed and the past attempts, and `at` is the due time. `activejob`
reads jobs that Rails has wrapped.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from disque_trio.terminal.counting import counted
from disque_trio.worker import codec
from disque_trio.worker.codec import Envelope
from disque_trio.worker.envelope import (
    MAX_ARGUMENTS,
    BadBodyError,
    NotEncodableError,
    TooLargeError,
    checked_form,
    read,
)
from disque_trio.worker.interop import System, activejob
from disque_trio.worker.runtime import runtime

SIDEKIQ_ATTEMPTS: Final = 26
"""The attempts of a job with `retry: true`: the first one and 25 retries."""
_OF_SIDEKIQ: Final = frozenset(("at", "created_at", "enqueued_at", "jid", "queue", "retry"))
"""Fields that Resque does not write."""


def read_payload(body: bytes, max_body: int, systems: Collection[System]) -> Envelope:
    """The envelope of a body of one of these systems, or of this library. Raises `BadBodyError` or
    `NewerBodyError`."""
    if checked_form(body, max_body) != "json":
        return read(body, max_body)
    try:
        fields: Any = codec.read_plain(body, "json")
    except codec.BAD_INPUT as error:
        raise BadBodyError(f"unreadable: {error}") from error
    if not isinstance(fields, dict) or "class" not in fields or "task" in fields:
        return read(body, max_body)
    is_sidekiq = bool(_OF_SIDEKIQ & fields.keys()) if "resque" in systems else True
    if is_sidekiq and "sidekiq" in systems:
        return _envelope(fields, _key(fields), {**_attempts(fields), **_due(fields)})
    if "resque" in systems and "jid" not in fields:
        return _envelope(fields, None, {})
    return read(body, max_body)


def _envelope(fields: dict[str, Any], key: str | None, headers: dict[str, Any]) -> Envelope:
    name, args, kwargs = fields["class"], fields.get("args"), {}
    if not isinstance(name, str) or not isinstance(args, list):
        raise BadBodyError("unreadable: `class` must be text, and `args` an array")
    if (wrapped := activejob.wrapped(fields)) is not None:
        name, args, kwargs = wrapped.name, wrapped.args, wrapped.kwargs
        key = key or wrapped.key
        if wrapped.executions > headers.get("tries", 0):
            headers = {**headers, "tries": wrapped.executions}
    if len(args) + len(kwargs) > MAX_ARGUMENTS:
        raise BadBodyError(f"unreadable: more than {MAX_ARGUMENTS} arguments")
    return codec.envelope(
        "json",
        task=name,
        args=[codec.part(each, "json") for each in args],
        kwargs={name: codec.part(each, "json") for name, each in kwargs.items()},
        key=key,
        headers=headers,
    )


def _key(fields: dict[str, Any]) -> str:
    jid = fields.get("jid")
    return str(jid) if isinstance(jid, str | int) and not isinstance(jid, bool) else ""


def _attempts(fields: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    match fields.get("retry"):
        case True:
            found["attempts"] = SIDEKIQ_ATTEMPTS
        case False:
            found["attempts"] = 1
        case int(retries) if retries >= 0:
            found["attempts"] = retries + 1
    match fields.get("retry_count"):
        case bool():
            pass
        case int(retried) if retried >= 0:  # 0 after the first failure
            found["tries"] = retried + 1
    return found


def _due(fields: dict[str, Any]) -> dict[str, float]:
    at = fields.get("at")
    return {"due": at} if isinstance(at, int | float) and not isinstance(at, bool) else {}


def write_payload(
    system: System, name: str, args: Sequence[Any], *, key: str, queue: str, max_body: int
) -> bytes:
    """The body for a worker of the system. Raises `NotEncodableError`."""
    fields: dict[str, Any] = {"class": name, "args": list(args)}
    if system == "sidekiq":
        now = round(runtime().now() * 1000)
        fields |= {"jid": key, "queue": queue, "retry": True}
        fields |= {"created_at": now, "enqueued_at": now}
    try:
        body = codec.write(fields, "json")
    except codec.BAD_INPUT as error:
        raise NotEncodableError(f"{name}: {error}") from error
    if len(body) > max_body:
        raise TooLargeError(
            f"{name}: the body has {counted(len(body), 'byte')}, and the limit is {max_body:,}"
        )
    return body
