"""`disque-trio queues`: the queues of a cluster."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from disque_trio.cli.frame import NotDoneError, duration, run
from disque_trio.cli.operating.frame import (
    EPILOG,
    Options,
    operation,
    operations,
    warn_of,
)
from disque_trio.client.address import Address
from disque_trio.client.records import QueueInfo
from disque_trio.observe.operations.members import Names, members, names_of
from disque_trio.terminal.options import Family, argument, switch, text
from disque_trio.terminal.output import say_facts, say_json, say_table
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.notes import RESERVED
from disque_trio.worker.operating.queues import QueueTotals

NAME: Final = "queues"
_HEADS: Final = (
    "QUEUE",
    "JOBS",
    "OLDEST",
    "DELAYED",
    "LEASED",
    "DEAD",
    "RESTORED",
    "WAITERS",
    "PAUSED",
    "LIMITS",
)


@attrs.frozen(kw_only=True)
class List(Options):
    """`queues list`."""

    has_all: bool = switch("--all", f"also list queues of the library, {RESERVED}…")


@attrs.frozen(kw_only=True)
class Show(Options):
    """`queues show`."""

    queue: str = argument(text("QUEUE"), "name of the queue")


def main(argv: Sequence[str]) -> int:
    """Run a command. Return the exit status, as described in `--help`."""
    return run(NAME, PROGRAM, argv)


async def _list(admin: Admin, options: List) -> int:
    found = await admin.queues.all()
    status = await warn_of(admin.client, NAME, found.unreached)
    shown = [each for each in found.items if options.has_all or not each.name.startswith(RESERVED)]
    if options.is_json:
        say_json([attrs.asdict(each) for each in shown])
    else:
        names = await names_of(admin.client)
        say_table(_HEADS, [_row(each, names) for each in shown])
    return status


def _row(queue: QueueTotals, names: Names) -> list[object]:
    """In the order of the heads."""
    counts = (queue.delayed, queue.leased, queue.dead, queue.restored)
    delayed, dead = "≤" * queue.is_delayed_most, "≥" * queue.is_dead_least
    signs = (delayed, "", dead, "≥" * queue.is_restored_least)
    figures: list[object] = [
        "?" if each is None else f"{sign}{each}" for each, sign in zip(counts, signs, strict=True)
    ]
    for at, due_s in ((0, queue.delayed_due_s), (-1, queue.restored_due_s)):
        if due_s is not None:
            figures[at] = f"{figures[at]}, next in {duration(due_s)}"
    paused = ", ".join(f"{state} at {names(node)}" for node, state in queue.paused.items())
    oldest = duration(queue.next_age_s) if queue.length else "-"
    limits = "-" if queue.limits is None else str(queue.limits)
    limits += "; reached" if queue.is_limited else ""
    return [queue.name, queue.length, oldest, *figures, queue.blocked, paused or "-", limits]


async def _show(admin: Admin, options: Show) -> int:
    found, limits = await admin.queues.find(options.queue), await admin.queues.limits(options.queue)
    status = await warn_of(admin.client, NAME, found.unreached | limits.unreached)
    if not found.items:
        raise NotDoneError(f"no node that answers has a queue {options.queue}")
    [queue] = found.items
    known = [(node, info) for node, info in limits.items if info is not None and info.limits]
    _, latest = max(known, key=lambda pair: pair[1].set_at or 0, default=(None, None))
    if options.is_json:
        where = {str(node): info and attrs.asdict(info) for node, info in limits.items}
        say_json({**attrs.asdict(queue), "limits_at": where})
        return status
    names = await names_of(admin.client)
    facts: list[tuple[str, Any]] = [
        (head.lower(), each) for head, each in zip(_HEADS, _row(queue, names), strict=True)
    ]
    if latest is not None:
        facts += await _of_limits(admin, names, latest, limits.items)
    say_facts(facts)
    return status


async def _of_limits(
    admin: Admin,
    names: Names,
    latest: QueueInfo,
    infos: Sequence[tuple[Address, QueueInfo | None]],
) -> list[tuple[str, Any]]:
    """When they were set, who keeps them, and what each node may deliver."""
    by_id = {each.id: names(each.where) for each in await members(admin.client)}
    at = datetime.fromtimestamp(latest.set_at or 0, UTC).isoformat(timespec="seconds")
    facts = [("limits set", at), ("keeper", by_id.get(latest.keeper, latest.keeper))]
    for node, info in infos:
        if info is None:
            facts.append(
                (f"at {names(node)}", "does not support limits, and delivers without them")
            )
            continue
        waits = ", clients wait" if info.is_limited else ""
        other = f", other limits: {info.limits or 'none'}" if info.limits != latest.limits else ""
        may = f"{info.leased:,} leased, {info.may_deliver:,} may be delivered now"
        facts.append((f"at {names(node)}", f"{may}{waits}{other}"))
    return facts


PROGRAM: Final = Family(
    about="List, pause, limit and purge the queues of a cluster.",
    epilog=EPILOG,
    commands={
        "list": operation("List the queues, with totals over all nodes.", _list, List),
        "show": operation("Show totals and limits of a queue.", _show, Show),
        **operations(NAME),
    },
)
