"""`disque-trio jobs`: single jobs of a cluster, and dead ones."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from disque_trio.cli import frame
from disque_trio.cli.frame import FAILED, JOB_ID
from disque_trio.cli.operating import timeline
from disque_trio.cli.operating.frame import EPILOG, NotDoneError, Options, operation, warn_of
from disque_trio.observe.timeline import History
from disque_trio.terminal.options import COUNT, Family, UsageError, argument, option, switch, text
from disque_trio.terminal.output import say, say_facts, say_json, say_table
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.jobs import Jobs, WithWorkerError
from disque_trio.worker.operating.states import Copy


@attrs.frozen(kw_only=True)
class One(Options):
    """Commands about one job."""

    id: str = argument(JOB_ID)


@attrs.frozen(kw_only=True)
class Show(One):
    """`jobs show`."""

    is_timeline: bool = switch(
        "--timeline", "what has happened to it at all nodes, an event a line, by their TRACE GET"
    )


@attrs.frozen(kw_only=True)
class Several(Options):
    """Commands about jobs."""

    ids: tuple[str, ...] = argument(JOB_ID, "", "+")


@attrs.frozen(kw_only=True)
class Retry(Several):
    """`jobs retry`."""

    is_forced: bool = switch("--force", "also if a worker may have it; it may run twice then")


@attrs.frozen(kw_only=True)
class Dead(Options):
    """`jobs dead list`."""

    queue: str | None = option("--queue", text("QUEUE"), "of this queue only")
    reason: str = option("--reason", text("TEXT"), "with this in their reason", "")
    limit: int = option("--limit", COUNT, "this number at most", 1000)


@attrs.frozen(kw_only=True)
class Chosen(Dead):
    """Commands about some dead jobs."""

    ids: tuple[str, ...] = argument(JOB_ID, "", "*")


def main(argv: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    return frame.run("jobs", PROGRAM, argv)


# Any job.


async def _show_or_tell(admin: Admin, options: Show) -> int:
    return await (_tell if options.is_timeline else _show)(admin, options)


async def _tell(_admin: Admin, options: One) -> int:
    history, unreached = await timeline.ask(options.url, options.id)
    warn_of("jobs", unreached)
    if options.is_json:
        say_json(timeline.as_json(options.id, history))
    elif history.rows:
        for line in timeline.lines(options.id, history):
            say(line)
    if not history.rows:
        raise NotDoneError(_nothing(options.id, history))
    return 0


def _nothing(id: str, history: History) -> str:
    """Why there are no events."""
    if history.is_traced:
        return f"{id} is traced, but nothing has happened to it since that began"
    asking = f"TRACE JOB {id} at each node writes down what happens from then on"
    return f"no node traces {id}: {asking}"


async def _show(admin: Admin, options: One) -> int:
    copies = await _found(admin.jobs, options.id)
    if options.is_json:
        say_json([_told(copy) for copy in copies])
        return 0
    told = _told(copies[0])
    told["nodes"] = ", ".join(f"{copy.node} ({copy.job.state})" for copy in copies)
    say_facts((name, value) for name, value in told.items() if name not in ("node", "state"))
    return 0


async def _found(jobs: Jobs, id: str) -> list[Copy]:
    found = await jobs.find(id)
    warn_of("jobs", found.unreached)
    if not found.items:
        raise NotDoneError(f"no node has job {id}: it has ended, or was never added")
    return found.items


async def _cancel(admin: Admin, options: Several) -> int:
    return await _each(options, admin.jobs.cancel, "ended", "no node has it, or it has ended")


async def _retry(admin: Admin, options: Retry) -> int:
    async def retry(id: str) -> bool:
        try:
            return await admin.jobs.retry(id, is_forced=options.is_forced)
        except WithWorkerError as error:
            raise NotDoneError(f"{error}; --force queues it all the same") from error

    return await _each(options, retry, "queued", "no node has it, or it is queued already")


async def _each(
    options: Several, do: Callable[[str], Awaitable[bool]], done: str, not_done: str
) -> int:
    told = {}
    for id in options.ids:
        told[id] = await do(id)
        if not options.is_json:
            say(f"{id}: {done if told[id] else not_done}")
    if options.is_json:
        say_json([{"id": id, done: is_done} for id, is_done in told.items()])
    return 0 if all(told.values()) else FAILED


# Dead jobs.


async def _list_dead(admin: Admin, options: Dead) -> int:
    found = await admin.jobs.dead(options.queue, reason=options.reason, limit=options.limit)
    warn_of("jobs dead", found.unreached)
    if options.is_json:
        say_json([_told(copy) for copy in found.items])
        return 0
    rows = [
        (copy.job.id, copy.job.queue, copy.task, _time(copy.added), copy.reason)
        for copy in found.items
    ]
    say_table(("ID", "QUEUE", "TASK", "ADDED", "REASON"), rows)
    return 0


async def _chosen(jobs: Jobs, options: Chosen) -> Found[Copy]:
    """The dead jobs that a command is for."""
    if not options.ids and options.queue is None and not options.reason:
        raise UsageError("name ids, or give --queue or --reason")
    if not options.ids:
        return await jobs.dead(options.queue, reason=options.reason, limit=options.limit)
    chosen = []
    for id in options.ids:
        dead = [copy for copy in await _found(jobs, id) if copy.job.state == "dead"]
        if not dead:
            raise NotDoneError(f"{id} is not dead")
        chosen.append(dead[0])
    return Found(chosen, {})


async def _retry_dead(admin: Admin, options: Chosen) -> int:
    found = await _chosen(admin.jobs, options)
    return _counted(options, await admin.jobs.redrive(found.items), "queued", found)


async def _drop_dead(admin: Admin, options: Chosen) -> int:
    found = await _chosen(admin.jobs, options)
    return _counted(options, await admin.jobs.drop(found.items), "ended", found)


def _counted(options: Chosen, count: int, done: str, found: Found[Copy]) -> int:
    warn_of("jobs dead", found.unreached)
    if options.is_json:
        say_json({done: count})
    else:
        say(f"{frame.counted(count, 'dead job')} {done}")
    return FAILED if found.unreached else 0


# Output.


def _told(copy: Copy) -> dict[str, Any]:
    told = attrs.asdict(copy.job)
    told |= told.pop("more")
    body = told.pop("body")
    return {
        "id": told.pop("id"),
        "state": told.pop("state"),
        "node": str(copy.node),
        "task": copy.task,
        "added": _time(copy.added),
        "attempts": copy.job.nacks + copy.job.additional_deliveries,
        **{name: _plain(value) for name, value in told.items() if value is not None},
        "body": _plain(body),
    }


def _plain(value: Any) -> Any:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


PROGRAM: Final = Family(
    about="See and end jobs, wherever they are.",
    epilog=EPILOG,
    commands={
        "show": operation("jobs", "Show what the nodes know of a job.", _show_or_tell, Show),
        "cancel": operation("jobs", "End jobs, also while they run.", _cancel, Several),
        "retry": operation("jobs", "Queue jobs now that are dead or wait.", _retry, Retry),
        "dead": Family(
            about="See dead jobs, which nobody is given any more; let them run again, or end them.",
            epilog=EPILOG,
            commands={
                "list": operation(
                    "jobs dead",
                    "List dead jobs, the youngest first.",
                    _list_dead,
                    Dead,
                ),
                "show": operation(
                    "jobs dead", "Show a job, with its body and why it is dead.", _show, One
                ),
                "retry": operation(
                    "jobs dead", "Queue dead jobs again as if they were new.", _retry_dead, Chosen
                ),
                "drop": operation("jobs dead", "End dead jobs for good.", _drop_dead, Chosen),
            },
        ),
    },
)
