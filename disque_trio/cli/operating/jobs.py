"""`disque-trio jobs`: single jobs of a cluster, and dead ones."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, repeat
from typing import Any, Final

import attrs

from disque_trio.cli import frame
from disque_trio.cli.frame import JOB_ID, NotDoneError
from disque_trio.cli.operating import timeline
from disque_trio.cli.operating.frame import (
    EPILOG,
    Options,
    client_of,
    operation,
    operations,
    warn_of,
    warn_of_more,
)
from disque_trio.observe.operations.members import Names, names_of
from disque_trio.observe.operations.operation import unanswered
from disque_trio.observe.timeline import History
from disque_trio.terminal.options import COUNT, Family, argument, one_of, option, switch, text
from disque_trio.terminal.output import say, say_facts, say_json, say_table
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.states import Copy

STATES: Final = ("waiting", "delayed", "leased", "backing-off", "dead")
"""Of `JobStatus`, without those of jobs that have ended."""


@attrs.frozen(kw_only=True)
class One(Options):
    """Commands about one job."""

    id: str = argument(JOB_ID)


@attrs.frozen(kw_only=True)
class Show(One):
    """`jobs show`."""

    is_timeline: bool = switch(
        "--timeline", "the events of the job at all nodes, one per line (TRACE GET)"
    )


@attrs.frozen(kw_only=True)
class Dead(Options):
    """`jobs dead`."""

    queue: str | None = option("--queue", text("QUEUE"), "only jobs of this queue")
    reason: str = option("--reason", text("TEXT"), "only jobs with this text in their reason", "")
    limit: int = option("--limit", COUNT, "at most this number of jobs", 1000)


@attrs.frozen(kw_only=True)
class Listed(Options):
    """`jobs list`."""

    queue: str | None = option("--queue", text("QUEUE"), "only jobs of this queue")
    state: str | None = option("--state", one_of(*STATES), "only jobs in this state")
    error: str | None = option(
        "--error", text("CLASS"), "only jobs whose last error has this class"
    )
    text: str | None = option("--text", text("TEXT"), "only jobs with this text in their body")
    limit: int = option("--limit", COUNT, "at most this number of jobs", 100)


@attrs.frozen(kw_only=True)
class Ended(Options):
    """`jobs ended`."""

    queue: str | None = option("--queue", text("QUEUE"), "only jobs of this queue")
    limit: int = option("--limit", COUNT, "at most this number of jobs", 100)


def main(argv: Sequence[str]) -> int:
    """Run a command. Return the exit status, as described in `--help`."""
    return frame.run("jobs", PROGRAM, argv)


# Any job.


async def _show(admin: Admin, options: Show) -> int:
    return await (_show_timeline(options) if options.is_timeline else _show_facts(admin, options))


async def _show_timeline(options: One) -> int:
    async with client_of(options.url) as client:
        history, unreached = await timeline.ask(client, options.id)
        status = await warn_of(client, "jobs", unreached)
    if options.is_json:
        say_json(timeline.as_json(options.id, history))
    elif history.rows:
        for line in timeline.lines(options.id, history):
            say(line)
    return status if history.rows else frame.fail("jobs", _nothing(options.id, history))


def _nothing(id: str, history: History) -> str:
    """Why there are no events."""
    if history.is_traced:
        return f"{id} is traced, but has no events since tracing was turned on"
    asking = f"send TRACE JOB {id} to each node to record its events from then on"
    return f"no node traces {id}: {asking}"


async def _show_facts(admin: Admin, options: One) -> int:
    (copies, status), names = await _found(admin, options.id), await names_of(admin.client)
    if options.is_json:
        say_json([_as_json(copy, names) for copy in copies])
    else:
        say_facts(pair for pair in _facts(copies, names) if pair[1] not in (None, ""))
    return status


def _facts(copies: list[Copy], names: Names) -> Iterator[tuple[str, Any]]:
    """What the node that comes first knows, in the words of the terminal; times in seconds."""
    first = copies[0]
    job, more = first.job, dict(first.job.more)
    limit, attempts = more.pop("limit", None), job.nacks + job.additional_deliveries
    yield "id", job.id
    yield "state", "backing off" if job.backing_off is not None else job.state
    if (ending := job.ending) is not None:
        yield from (("outcome", ending.outcome), ("ended", _time(ending.at)), ("by", ending.by))
    yield from (("queue", job.queue), ("task", first.task), ("key", _plain(more.pop("key", None))))
    yield "attempts", f"{attempts} of {limit!r}" if limit else attempts
    if (error := job.error) is not None:
        yield from (("error", str(error)), ("failed", _time(error.at)))
        heads = chain(("traceback",), repeat(" "))
        yield from zip(heads, error.traceback.splitlines(), strict=False)
    more = {name: value for name, value in more.items() if name not in _SHOWN_ABOVE}
    yield from ((name, _plain(value)) for name, value in more.items())
    yield "next attempt in", job.next_requeue_within
    yield "added", _time(first.added)
    if ending is None:
        yield from (("ttl", job.ttl), ("retry", job.retry))
        yield from (("delay", job.delay), ("replicas", job.repl))
    yield "nodes", ", ".join(f"{names(copy.node)} ({copy.job.state})" for copy in copies)
    yield "body", _plain(job.body)


_OF_ONE: Final = (
    "unreached", "outcome", "ended_at", "error", "worker", "since", "has_result",
)  # fmt: skip
"""Of a status: what a list does not ask for."""
_SHOWN_ABOVE: Final = ("error", "failed-at", "outcome", "ended-at", "by")


async def _found(admin: Admin, id: str) -> tuple[list[Copy], int]:
    """And the exit status."""
    found = await admin.jobs.find(id)
    status = await warn_of(admin.client, "jobs", found.unreached)
    if not found.items:
        found = await admin.jobs.ended(id)
    if not found.items:
        doubt = unanswered(found.unreached, await names_of(admin.client))
        raise NotDoneError(
            f"no node that answers has job {id}: it has ended, or was never added{doubt}"
        )
    return found.items, status


# Several jobs.


async def _list(admin: Admin, options: Listed) -> int:
    states: Any = () if options.state is None else (options.state,)
    found = await admin.jobs.listed(
        options.queue,
        states=states,
        error=options.error,
        text=options.text,
        limit=options.limit,
    )
    status = await warn_of(admin.client, "jobs list", found.unreached)
    warn_of_more("jobs list", found)
    if options.is_json:
        of_live = attrs.filters.exclude(*_OF_ONE)
        say_json([attrs.asdict(job, filter=of_live) for job in found.items])
        return status
    rows = [
        (job.id, job.queue, job.task, job.state, job.failures, _time(job.added_at or 0))
        for job in found.items
    ]
    say_table(("ID", "QUEUE", "TASK", "STATE", "FAILED", "ADDED"), rows)
    return status


async def _list_dead(admin: Admin, options: Dead) -> int:
    found = await admin.jobs.dead(options.queue, reason=options.reason, limit=options.limit)
    status = await warn_of(admin.client, "jobs dead", found.unreached)
    warn_of_more("jobs dead", found)
    if options.is_json:
        names = await names_of(admin.client)
        say_json([_as_json(copy, names) for copy in found.items])
        return status
    rows = [
        (copy.job.id, copy.job.queue, copy.task, _time(copy.added), copy.reason)
        for copy in found.items
    ]
    say_table(("ID", "QUEUE", "TASK", "ADDED", "REASON"), rows)
    return status


# Jobs that have ended.


async def _list_ended(admin: Admin, options: Ended) -> int:
    found = await admin.jobs.ended(queue=options.queue, limit=options.limit)
    status = await warn_of(admin.client, "jobs ended", found.unreached)
    warn_of_more("jobs ended", found)
    if options.is_json:
        names = await names_of(admin.client)
        say_json([_as_json(copy, names) for copy in found.items])
        return status
    say_table(("ID", "QUEUE", "TASK", "ENDED", "OUTCOME", "BY", "ERROR"), map(_row, found.items))
    return status


def _row(copy: Copy) -> tuple[Any, ...]:
    job, ending = copy.job, copy.job.ending
    cells = (_time(ending.at), ending.outcome, ending.by) if ending else ("", "", "")
    return (job.id, job.queue, copy.task, *cells, str(job.error or copy.reason))


# Output.


def _as_json(copy: Copy, names: Names) -> dict[str, Any]:
    fields = attrs.asdict(copy.job)
    fields |= fields.pop("more")
    body = fields.pop("body")
    return {
        "id": fields.pop("id"),
        "state": fields.pop("state"),
        "node": str(copy.node),
        "node_name": names(copy.node),
        "task": copy.task,
        "added": _time(copy.added),
        "attempts": copy.job.nacks + copy.job.additional_deliveries,
        **{name: _plain(value) for name, value in fields.items() if value is not None},
        "body": _plain(body),
    }


def _plain(value: Any) -> Any:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


PROGRAM: Final = Family(
    about="List, redrive and end jobs, whichever nodes hold them.",
    epilog=EPILOG,
    commands={
        "show": operation("Show what the nodes know of a job.", _show, Show),
        "list": operation("List jobs that have not ended, the youngest first.", _list, Listed),
        "ended": operation("List jobs that have ended, the latest first.", _list_ended, Ended),
        "dead": operation("List dead jobs, the youngest first.", _list_dead, Dead),
        **operations("jobs"),
    },
)
