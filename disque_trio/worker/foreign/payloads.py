"""What Sidekiq and Resque write into a queue, and how it is read as a job of a task.

The class is the task, or one of its aliases; `jid` is the key, `retry` says how often it is tried,
`at` when it is due.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, Literal

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
from disque_trio.worker.outside import outside

System = Literal["resque", "sidekiq"]
SIDEKIQ_ATTEMPTS: Final = 26
"""Of a job with `retry: true`: the first one and 25 more."""


def read_foreign(body: bytes, max_body: int, systems: Collection[System]) -> Envelope:
    """The envelope of a body of one of these systems, or of one of ours. Raises `BadBodyError` or
    `NewerBodyError`."""
    if checked_form(body, max_body) != "json":
        return read(body, max_body)
    try:
        fields: Any = codec.read_plain(body, "json")
    except codec.BAD_INPUT as error:
        raise BadBodyError(f"unreadable: {error}") from error
    match fields:
        case {"task": _}:
            return read(body, max_body)
        case {"class": str(), "args": list(), "jid": str()} if "sidekiq" in systems:
            return _envelope(fields, {**_attempts(fields), **_due(fields)})
        case {"class": str(), "args": list()} if "resque" in systems and "jid" not in fields:
            return _envelope(fields, {})
    return read(body, max_body)


def _envelope(fields: dict[str, Any], headers: dict[str, Any]) -> Envelope:
    args = fields["args"]
    if len(args) > MAX_ARGUMENTS:
        raise BadBodyError(f"unreadable: more than {MAX_ARGUMENTS} arguments")
    return codec.envelope(
        "json",
        task=fields["class"],
        args=[codec.part(each, "json") for each in args],
        key=fields.get("jid"),
        headers=headers,
    )


def _attempts(fields: dict[str, Any]) -> dict[str, int]:
    match fields.get("retry"):
        case True:
            return {"attempts": SIDEKIQ_ATTEMPTS}
        case False:
            return {"attempts": 1}
        case int(retries) if retries >= 0:
            return {"attempts": retries + 1}
    return {}


def _due(fields: dict[str, Any]) -> dict[str, float]:
    at = fields.get("at")
    return {"due": at} if isinstance(at, int | float) else {}


def write_foreign(
    system: System, name: str, args: Sequence[Any], *, key: str, queue: str, max_body: int
) -> bytes:
    """The body that a worker of the system reads. Raises `NotEncodableError`."""
    fields: dict[str, Any] = {"class": name, "args": list(args)}
    if system == "sidekiq":
        now = round(outside().now() * 1000)
        fields |= {"jid": key, "queue": queue, "retry": True}
        fields |= {"created_at": now, "enqueued_at": now}
    try:
        body = codec.write(fields, "json")
    except codec.BAD_INPUT as error:
        raise NotEncodableError(f"{name}: {error}") from error
    if len(body) > max_body:
        raise TooLargeError(f"{name}: the body has {len(body)} bytes, of {max_body} at most")
    return body
