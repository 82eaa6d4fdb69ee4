"""Converts replies to records.

Each function raises TypeError, ValueError, KeyError or IndexError for an invalid reply; `Command`
converts these to `BadReplyError`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from disque_trio.client.records import (
    End,
    Item,
    Job,
    JobDetails,
    JobResult,
    KeyHolder,
    Meta,
    QueueInfo,
    QueueLimits,
    QueueStats,
    Scanned,
)
from disque_trio.client.refusals import RefusedError, refused
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status

Record = TypeVar("Record")
Facts = dict[str, Reply]
"""Names and values."""

_ENDS: Final[dict[str, End]] = {"acked": "acked", "dead": "dead", "expired": "expired"}
_DETAILS: Final = {
    "queue", "body", "state", "repl", "ttl", "ctime", "delay", "retry", "nacks",
    "additional-deliveries", "nodes-delivered", "nodes-confirmed", "next-requeue-within",
    "next-awake-within", "backing-off", "id",
}  # fmt: skip
"""The fields that SHOW returns for every job."""


def text(value: Reply) -> str:
    """A name as text; bytes that are not UTF-8 become surrogate escapes, which are sent as these
    bytes."""
    if isinstance(value, Status):
        value = value.text
    return blob(value).decode(errors="surrogateescape")


def blob(value: Reply) -> bytes:
    """A body."""
    if not isinstance(value, bytes):
        raise TypeError(value)
    return value


def number(reply: Reply) -> int:
    """A whole number."""
    if not isinstance(reply, int):
        raise TypeError(reply)
    return reply


def items(reply: Reply) -> list[Reply]:
    """An array."""
    if not isinstance(reply, list):
        raise TypeError(reply)
    return reply


def facts(reply: Reply) -> Facts:
    """An array of names and values."""
    flat = items(reply)
    return {text(name): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def is_null(reply: Reply) -> bool:
    """Is the reply null: does nothing have this name, or did nothing arrive in time?"""
    return reply is None or reply is NULL_ARRAY


def maybe(meaning: Callable[[Reply], Record]) -> Callable[[Reply], Record | None]:
    """The conversion of a reply that may be null, to None."""
    return lambda reply: None if is_null(reply) else meaning(reply)


def jobs(reply: Reply) -> list[Job]:
    """GETJOB and QPEEK."""
    return [] if is_null(reply) else [_job(items(each)) for each in items(reply)]


def _job(row: list[Reply]) -> Job:
    queue, job_id, body, *rest = row
    values: dict[Any, Reply] = dict(zip(rest[::2], rest[1::2], strict=True))  # faster than `facts`
    return Job(
        text(job_id),
        text(queue),
        blob(body),
        number(values.get(b"nacks", 0)),
        number(values.get(b"additional-deliveries", 0)),
        _meta(values) if b"token" in values else None,
    )


def _meta(values: dict[Any, Reply]) -> Meta:
    key, group = values.get(b"key"), values.get(b"group")
    return Meta(
        attempt=number(values[b"attempt"]),
        priority=number(values[b"priority"]),
        age=_seconds(values[b"age-ms"]),
        lease=_seconds(values[b"lease-ms"]),
        ttl=_seconds(values[b"ttl-ms"]),
        token=text(values[b"token"]),
        key=None if key is None else text(key),
        snoozes=number(values.get(b"snoozes", 0)),
        unbegun=b"unbegun" in values,
        created=_seconds(values[b"created-ms"]) if b"created-ms" in values else None,
        group=None if group is None else text(group),
    )


def queue_stats(reply: Reply) -> QueueStats:
    """QSTAT."""
    values = facts(reply)
    counts: dict[str, Any] = {
        name.replace("-", "_"): number(values[name]) for name in _QUEUE_COUNTS if name in values
    }  # fmt: skip
    counts |= {name.replace("-", "_"): number(values[name]) for name in _QUEUE_NUMBERS}
    return QueueStats(
        name=text(values["name"]),
        length=number(values["len"]),
        import_from=_texts(values["import-from"]),
        pause=text(values["pause"]),
        next_age=_seconds(values["age-ms"]) if "age-ms" in values else None,
        restored_due=_seconds_or_none(values.get("restored-due-ms")),
        delayed_due=_seconds_or_none(values.get("delayed-due-ms")),
        rate_per=_seconds_or_none(values.get("period-ms")),
        is_limited=bool(number(values.get("limited", 0))),
        is_loose=bool(number(values.get("loose", 0))),
        group_rate_per=_seconds_or_none(values.get("group-period-ms")),
        **counts,
    )


_QUEUE_COUNTS: Final = (
    "delayed", "leased", "dead", "deliveries", "acks", "unqueued", "restored",
    "concurrency", "rate", "burst", "group-concurrency", "group-rate", "group-burst",
)  # fmt: skip
"""The fields that an original node, or a queue without limits, lacks."""
_QUEUE_NUMBERS: Final = ("age", "idle", "blocked", "import-rate", "jobs-in", "jobs-out")


def _in_seconds(limits: Sequence[int]) -> tuple[int, int, float, int]:
    concurrency, rate, period, burst = limits
    return concurrency, rate, period / 1000, burst


def queue_info(reply: Reply) -> QueueInfo:
    """QUEUE INFO."""
    values = facts(reply)
    names = ("concurrency", "rate", "period-ms", "burst")
    counts = [number(values[name]) for name in names]
    of_group = [number(values.get(f"group-{name}", 0)) for name in names]
    name, moment = text(values["name"]), number(values["set-at-ms"])
    set_at = moment / 1000 if moment else None
    is_loose = bool(number(values.get("loose", 0)))
    limits = QueueLimits(*_in_seconds(counts), is_loose, *_in_seconds(of_group))
    if not limits.is_set:
        return QueueInfo(name=name, limits=None, set_at=set_at)
    return QueueInfo(
        name=name,
        limits=limits,
        set_at=set_at,
        keeper=text(values["keeper"]),
        leased=number(values["leased"]),
        may_deliver=number(values["may-deliver"]),
        is_limited=bool(number(values["waits"])),
        parts=number(values["parts"]),
        unlimited_nodes=_texts(values["unlimited-nodes"]),
    )


def job_details(reply: Reply) -> JobDetails:
    """SHOW."""
    values = facts(reply)
    numbers = {name: number(values[name]) for name in ("repl", "ttl", "ctime", "delay", "retry")}
    return JobDetails(
        id=text(values["id"]),
        queue=None if values["queue"] is None else text(values["queue"]),
        body=None if values["body"] is None else blob(values["body"]),
        state=text(values["state"]),
        nacks=number(values["nacks"]),
        additional_deliveries=number(values["additional-deliveries"]),
        nodes_delivered=_texts(values["nodes-delivered"]),
        nodes_confirmed=_texts(values["nodes-confirmed"]),
        next_requeue_within=_seconds_or_none(values["next-requeue-within"]),
        next_awake_within=_seconds_or_none(values["next-awake-within"]),
        backing_off=_seconds_or_none(values.get("backing-off")),
        more={name: value for name, value in values.items() if name not in _DETAILS},
        **numbers,
    )


def key_holder(reply: Reply) -> KeyHolder:
    """SHOW KEY."""
    values = facts(reply)
    return KeyHolder(
        id=text(values["id"]),
        state=text(values["state"]),
        nodes=_texts(values["nodes"]),
        queued_at=_texts(values["queued-at"]),
    )


def end(reply: Reply) -> End:
    """WAITJOB."""
    return _ENDS[text(reply)]


def job_result(reply: Reply) -> JobResult:
    """WAITJOB WITHRESULT."""
    how, value = items(reply)
    return JobResult(end(how), None if value is None else blob(value))


def scanned(meaning: Callable[[Reply], Item]) -> Callable[[Reply], Scanned[Item]]:
    """QSCAN and JSCAN."""

    def page(reply: Reply) -> Scanned[Item]:
        cursor, found = items(reply)
        return Scanned(int(text(cursor)), [meaning(each) for each in items(found)])

    return page


def worked(reply: Reply) -> list[int | RefusedError]:
    """WORKING of several jobs, or of one."""
    if isinstance(reply, Failure):
        error = refused(reply, "WORKING")
        if error.code not in _OF_JOBS:
            raise error
        return [error]
    if isinstance(reply, int):
        return [reply]
    return [refused(e, "WORKING") if isinstance(e, Failure) else number(e) for e in items(reply)]


_OF_JOBS: Final = ("NOJOB", "ACKED", "DEAD", "TOOLATE", "LOST")
"""Errors about a job, and not about the node or the client."""


def fields(reply: Reply) -> dict[str, str]:
    """INFO: the fields by name."""
    lines = (line.partition(":") for line in text(reply).splitlines() if line[:1] != "#")
    return {name: value for name, colon, value in lines if colon}


def micros(reply: Reply) -> int:
    """TIME: Unix microseconds."""
    seconds, rest = map(text, items(reply))
    return int(seconds) * 1_000_000 + int(rest)


def _texts(reply: Reply) -> tuple[str, ...]:
    return tuple(map(text, items(reply)))


def _seconds(reply: Reply) -> float:
    return number(reply) / 1000


def _seconds_or_none(reply: Reply) -> float | None:
    return None if reply is None else _seconds(reply)
