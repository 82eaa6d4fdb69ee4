"""`disque-trio jobs`: single jobs of a cluster, and dead ones."""

import argparse
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from disque_trio.cli import frame
from disque_trio.cli.operating import timeline
from disque_trio.cli.operating.frame import (
    FAILED,
    Command,
    NotDoneError,
    run_family,
    url_of,
    warn_of,
)
from disque_trio.observe.timeline import History
from disque_trio.terminal.output import say, say_facts, say_json, say_table
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.asking import Found
from disque_trio.worker.operating.jobs import Jobs, WithWorkerError
from disque_trio.worker.operating.states import Copy


def main(argv: Sequence[str]) -> int:
    """Run a command. The exit status; `--help` says what it means."""
    if argv[:1] == ["dead"]:
        about = "See dead jobs, which nobody is given any more; let them run again, or end them."
        return run_family("jobs dead", about, DEAD, argv[1:])
    return run_family("jobs", "See and end jobs, wherever they are.", COMMANDS, argv)


def job_id(word: str) -> str:
    """The id of a job."""
    if not re.fullmatch(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}", word):
        raise argparse.ArgumentTypeError(f"{word} is no id of a job, such as D-8177b338-…-05a1")
    return word


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=job_id)


def _add_ids(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", type=job_id, nargs="+")


def _add_retry(parser: argparse.ArgumentParser) -> None:
    _add_ids(parser)
    about = "also if a worker may have it; it may run twice then"
    parser.add_argument("--force", dest="is_forced", action="store_true", help=about)


# Any job.


def _add_show(parser: argparse.ArgumentParser) -> None:
    _add_id(parser)
    about = "what has happened to it at all nodes, an event a line, of what their TRACE GET tells"
    parser.add_argument("--timeline", dest="is_timeline", action="store_true", help=about)


async def _show_or_tell(admin: Admin, given: argparse.Namespace) -> int:
    return await (_tell if given.is_timeline else _show)(admin, given)


async def _tell(_admin: Admin, given: argparse.Namespace) -> int:
    history, unreached = await timeline.ask(url_of(given), given.id)
    warn_of("jobs", unreached)
    if given.is_json:
        say_json(timeline.as_json(given.id, history))
    elif history.rows:
        for line in timeline.lines(given.id, history):
            say(line)
    if not history.rows:
        raise NotDoneError(_nothing(given.id, history))
    return 0


def _nothing(id: str, history: History) -> str:
    """Why there are no events."""
    if history.is_traced:
        return f"{id} is traced, but nothing has happened to it since that began"
    asking = f"TRACE JOB {id} at each node writes down what happens from then on"
    return f"no node traces {id}: {asking}"


async def _show(admin: Admin, given: argparse.Namespace) -> int:
    copies = await _found(admin.jobs, given.id)
    if given.is_json:
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


async def _cancel(admin: Admin, given: argparse.Namespace) -> int:
    return await _each(given, admin.jobs.cancel, "ended", "no node has it, or it has ended")


async def _retry(admin: Admin, given: argparse.Namespace) -> int:
    async def retry(id: str) -> bool:
        try:
            return await admin.jobs.retry(id, is_forced=given.is_forced)
        except WithWorkerError as error:
            raise NotDoneError(f"{error}; --force queues it all the same") from error

    return await _each(given, retry, "queued", "no node has it, or it is queued already")


async def _each(
    given: argparse.Namespace, do: Callable[[str], Awaitable[bool]], done: str, not_done: str
) -> int:
    told = {}
    for id in given.ids:
        told[id] = await do(id)
        if not given.is_json:
            say(f"{id}: {done if told[id] else not_done}")
    if given.is_json:
        say_json([{"id": id, done: is_done} for id, is_done in told.items()])
    return 0 if all(told.values()) else FAILED


# Dead jobs.


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queue", metavar="QUEUE", help="of this queue only")
    parser.add_argument("--reason", metavar="TEXT", default="", help="with this in their reason")
    parser.add_argument(
        "--limit", metavar="N", type=frame.count, default=1000, help="so many at most (1000)"
    )


def _add_chosen(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", type=job_id, nargs="*")
    _add_list(parser)


async def _list_dead(admin: Admin, given: argparse.Namespace) -> int:
    found = await admin.jobs.dead(given.queue, reason=given.reason, limit=given.limit)
    warn_of("jobs dead", found.unreached)
    if given.is_json:
        say_json([_told(copy) for copy in found.items])
        return 0
    rows = [
        (copy.job.id, copy.job.queue, copy.task, _time(copy.added), copy.reason)
        for copy in found.items
    ]
    say_table(("ID", "QUEUE", "TASK", "ADDED", "REASON"), rows)
    return 0


async def _chosen(jobs: Jobs, given: argparse.Namespace) -> Found[Copy]:
    """The dead jobs that a command is for."""
    if not given.ids and given.queue is None and not given.reason:
        raise frame.UsageError("name ids, or give --queue or --reason")
    if not given.ids:
        return await jobs.dead(given.queue, reason=given.reason, limit=given.limit)
    chosen = []
    for id in given.ids:
        dead = [copy for copy in await _found(jobs, id) if copy.job.state == "dead"]
        if not dead:
            raise NotDoneError(f"{id} is not dead")
        chosen.append(dead[0])
    return Found(chosen, {})


async def _retry_dead(admin: Admin, given: argparse.Namespace) -> int:
    found = await _chosen(admin.jobs, given)
    return _counted(given, await admin.jobs.redrive(found.items), "queued", found)


async def _drop_dead(admin: Admin, given: argparse.Namespace) -> int:
    found = await _chosen(admin.jobs, given)
    return _counted(given, await admin.jobs.drop(found.items), "ended", found)


def _counted(given: argparse.Namespace, count: int, done: str, found: Found[Copy]) -> int:
    warn_of("jobs dead", found.unreached)
    if given.is_json:
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


COMMANDS: Final = {
    "show": Command("Show what the nodes know of a job.", _show_or_tell, _add_show),
    "cancel": Command("End jobs, also while they run.", _cancel, _add_ids),
    "retry": Command("Queue jobs now that are dead or wait.", _retry, _add_retry),
    "dead": Command("See and look after dead jobs: list, show, retry, drop.", _list_dead),
}
DEAD: Final = {
    "list": Command("List dead jobs, those that were added last first.", _list_dead, _add_list),
    "show": Command("Show a job, with its body and why it is dead.", _show, _add_id),
    "retry": Command("Queue dead jobs again as if they were new.", _retry_dead, _add_chosen),
    "drop": Command("End dead jobs for good.", _drop_dead, _add_chosen),
}
