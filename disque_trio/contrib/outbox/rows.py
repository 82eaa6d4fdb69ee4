"""Rows of an outbox: calls become rows in a transaction, and rows become ADDJOBs in the relay."""

from collections.abc import Iterable
from typing import Any, Final

import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.worker import codec
from disque_trio.worker.addjob import addjob
from disque_trio.worker.enqueue import Call, Enqueuer, check_call
from disque_trio.worker.options import Options, without_own
from disque_trio.worker.requests import Request
from disque_trio.worker.runtime import runtime

TABLE: Final = "disque_outbox"
LONGEST_KEY: Final = 255
LONGEST_QUEUE: Final = 255
_KEPT: Final = (
    "lease", "ttl", "priority", "group", "replicate", "sync", "maxlen", "on_conflict", "repeat",
)  # fmt: skip
"""The options that the ADDJOB of a job needs. The queue is a column."""


class BadRowError(DisqueError):
    """A row that was not written by an outbox."""


@attrs.frozen(kw_only=True)
class Row:
    """A job that waits for the relay."""

    id: int = 0
    """Set by the database; rows are relayed in this order."""
    key: str
    """The key of the job."""
    task: str
    queue: str
    body: bytes
    """The encoded body."""
    options: str
    """The options, as JSON."""
    created_at: float
    """When the row was created, in Unix seconds."""
    due_at: float
    """When the job is enqueued, in Unix seconds; 0 is immediately."""
    attempts: int = 0
    """The number of failed attempts to add it."""
    next_at: float = 0.0
    """When the relay tries again, in Unix seconds."""
    error: str = ""
    """Why no node accepted it at the last attempt."""


def rows_of(calls: Iterable[Call[Any]]) -> list[Row]:
    """The rows of these calls. Raises as `Task.enqueue` for invalid calls, and `ValueError` for
    long names. With `result_ttl` nodes keep results, but no client waits for them."""
    found = []
    for call in calls:
        check_call(call)
        enqueuer, options = call.enqueuer, call.options()
        last: Call[Any] = call.then[-1] if call.then else call
        result_ttl = last.definition.options.result_ttl
        kept = {} if result_ttl is None else enqueuer.kept(result_ttl)
        plain = attrs.evolve(options, result_ttl=None)
        then = tuple(_without_result(each) for each in call.then)
        definition = attrs.evolve(call.definition, options=plain)
        headers = {**call.headers, **kept}
        bare = attrs.evolve(call, definition=definition, then=then, headers=headers)
        asked = enqueuer.request(bare)
        [request] = enqueuer.encoded_blocking([asked])
        if isinstance(request, DisqueError):
            raise request
        found.append(_row(request, plain))
    return found


def _without_result(call: Call[Any]) -> Call[Any]:
    options = attrs.evolve(call.definition.options, result_ttl=None)
    return attrs.evolve(call, definition=attrs.evolve(call.definition, options=options))


def _row(request: Request[Any], options: Options) -> Row:
    for name, value, longest in (
        ("key", request.key, LONGEST_KEY),
        ("queue", request.queue, LONGEST_QUEUE),
    ):
        if len(value) > longest:
            raise ValueError(f"{request.task}: {name} has more than {longest} characters")
    now = runtime().now()
    delay, ttl = options.times(now)
    kept: dict[str, Any] = {name: getattr(options, name) for name in _KEPT}
    kept |= {"ttl": ttl, "headers": without_own(request.headers)}
    kept |= {name: request.headers[name] for name in ("unique", "keep") if name in request.headers}
    if options.key:  # other jobs may have the same one
        kept["once"] = runtime().new_key()
    chosen = {name: value for name, value in kept.items() if value is not None}
    return Row(
        key=request.key,
        task=request.task,
        queue=request.queue,
        body=request.command.words[2],
        options=codec.write(chosen, "json").decode(),
        created_at=now,
        due_at=now + delay if delay else 0.0,
    )


def request_of(enqueuer: Enqueuer, row: Row, keep: float) -> Request[Any] | DisqueError:
    """The ADDJOB of a row. If it is repeated within `keep` seconds after the job has ended, it
    returns the id of the first job. Returns `BadRowError` for an invalid row."""
    try:
        kept = codec.read_plain(row.options.encode(), "json")
        headers, unique = kept.pop("headers", {}), kept.pop("unique", None)
        kept_for, once = kept.pop("keep", None), kept.pop("once", row.key)
        delay = max(row.due_at - runtime().now(), 0.0)
        if unique is None:
            unique, kept_for, kept["on_conflict"] = f"outbox.{once}", keep, "return"
        options = Options(queue=row.queue, delay=delay, is_ttl_named=False, **kept)
        command = addjob(options, lambda _: bytes(row.body), unique, kept_for)
    except (AttributeError, *codec.BAD_INPUT) as error:
        return BadRowError(f"row {row.id} of the outbox cannot be read: {error}")
    return Request(
        # Only nodes that support the whole delay: the body cannot be changed any more.
        attrs.evolve(command, plain=None),
        row.key,
        row.task,
        row.queue,
        repeat=True,
        enqueuer=enqueuer,
        unique=(row.queue, unique),
        headers=headers,
        is_encoded=True,
    )
