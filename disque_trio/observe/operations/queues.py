"""Plans of the operations on queues."""

from collections.abc import AsyncIterator, Mapping
from typing import Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import QueueStats
from disque_trio.observe.operations.members import Names, names_of
from disque_trio.observe.operations.operation import (
    LATER,
    MANY,
    answering,
    of_jobs,
    one_by_one,
    silent,
    unanswered,
)
from disque_trio.observe.values import Json, given_name, readable, word
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.asking import Found, at_each, unwrap
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.plans import (
    MistakeError,
    Outcome,
    Plan,
    Report,
    SilentNodeError,
)
from disque_trio.worker.operating.queues import restored_of
from disque_trio.worker.operating.states import Copy

RATE: Final = 50
"""Redriven jobs per second, if no rate is given."""
_LOOKED_AT: Final = 1000
"""The maximum number of dead jobs that are read from each node, if no limit is given."""


async def stats_of(client: Client, queue: str) -> Found[tuple[Address, QueueStats | None]]:
    """Return the figures of a queue at each node that answers."""

    async def ask(node: Address) -> list[tuple[Address, QueueStats | None]]:
        return [(node, unwrap(*await client.ask(node, [commands.qstat(queue)])))]

    return await at_each(client, ask)


_STOPS: Final[Mapping[str, tuple[str, str]]] = {
    "in": ('new jobs of queue "{}" are refused', "new jobs are refused"),
    "out": ('deliveries of queue "{}" stop', "deliveries are paused"),
    "all": ('queue "{}" accepts no jobs and delivers none', "paused"),
    "none": ('queue "{}" accepts and delivers jobs again', "resumed"),
}


async def pause(client: Client, args: Json) -> Plan:
    """Plan PAUSE at each node."""
    name, side = given_name(args, "queue"), args.get("side") or "all"
    nodes, names = await answering(client), await names_of(client)
    asked, (effect, done) = commands.pause(name, side), _STOPS[side]
    unasked = silent(nodes.unreached, names)
    forgets = [] if side == "none" else ["the pause ends at a node that restarts"]
    return Plan(
        target=readable(name) + f" {side}" * (side != "none"),
        says=[
            f"{effect.format(readable(name))} at {counted(len(nodes.items), 'node')}",
            *forgets,
            *unasked,
        ],
        unasked=unasked,
        run=one_by_one(client, nodes.items, names, asked, lambda _: (done, 1)),
    )


async def resume(client: Client, args: Json) -> Plan:
    """Plan PAUSE none at each node."""
    return await pause(client, {**args, "side": "none"})


async def purge(client: Client, args: Json) -> Plan:
    """Plan PURGE at each node."""
    name = given_name(args, "queue")
    found, names = await stats_of(client, name), await names_of(client)
    jobs = sum(stats.length for _, stats in found.items if stats)
    which = f'queued in "{readable(name)}"'
    one, many = f"job {which} is purged, and is", f"jobs {which} are purged, and are"
    ends = f"{counted(jobs, one, many)} never delivered"
    unasked = silent(found.unreached, names)
    lines = [ends, "leased and delayed jobs stay", *unasked]
    nodes = [node for node, _ in found.items]
    run = one_by_one(client, nodes, names, commands.purge(name), of_jobs("purged"))
    return Plan(target=readable(name), says=lines, run=run, unasked=unasked, confirm=readable(name))


async def requeue(client: Client, args: Json) -> Plan:
    """Plan ENQUEUE QUEUE, for all jobs that wait only for their RETRY."""
    name, count = given_name(args, "queue"), args.get("count")
    found, names = await stats_of(client, name), await names_of(client)
    waiting, is_least = restored_of([stats for _, stats in found.items if stats])
    least = "at least " * is_least
    which = f'the jobs of "{readable(name)}" that wait for their RETRY'
    where = counted(len(found.items), "node") + (f", at most {count:,} at each" if count else "")
    unasked = silent(found.unreached, names)
    lines = [
        f"{which} are enqueued now, at {where}; restored: {least}{waiting or 0:,}",
        "delayed jobs, and jobs that a node counts as leased, stay",
        "a worker that had a job before a restart may still run it; the job then runs twice",
        *unasked,
    ]
    nodes = [node for node, _ in found.items]
    asked = commands.enqueue_queue(name, int(count) if count else None)
    return Plan(
        target=readable(name),
        says=lines,
        run=one_by_one(client, nodes, names, asked, of_jobs("enqueued")),
        unasked=unasked,
    )


async def cancel(client: Client, args: Json) -> Plan:
    """Plan CANCEL KEY at any node."""
    queue, key = given_name(args, "queue"), word(args, "key")
    which = f'the job of queue "{readable(queue)}" with the key "{readable(key)}"'
    nodes, names = await answering(client), await names_of(client)
    unasked = silent(nodes.unreached, names, LATER)

    async def run(outcome: Outcome, _report: Report) -> None:
        outcome.count = await client.run(commands.cancel_key(queue, key))
        (outcome.says if outcome.count else outcome.failed).append(
            "the job was cancelled"
            if outcome.count
            else "no job has this key" + unanswered(nodes.unreached, names)
        )

    lines = [
        f"{which} is cancelled in any state, and the key is freed",
        "a worker that runs it cancels its handler when it renews the lease",
        *unasked,
    ]
    target = f"{readable(queue)} {readable(key)}"
    return Plan(target=target, says=lines, run=run, unasked=unasked)


@attrs.frozen
class _Dead:
    """The dead jobs of an operation: those of a queue, those with a reason, or both."""

    queue: str | None
    reason: str
    limit: int | None
    found: Found[Copy]
    nodes: list[Address]
    """The nodes that answer."""
    names: Names

    @property
    def which(self) -> str:
        """The selection in words."""
        of = f' of "{readable(self.queue)}"' if self.queue is not None else ""
        why = f' with "{self.reason}" in their reason' if self.reason else ""
        return f"{self.known} dead {'job' if len(self.found.items) == 1 else 'jobs'}{of}{why}"

    @property
    def known(self) -> str:
        """The number of jobs, in words."""
        is_all = self.limit is not None or not self.found.is_cut
        return f"{len(self.found.items):,}" + " or more" * (not is_all)

    @property
    def is_whole_queue(self) -> bool:
        """Are they all dead jobs of a queue?"""
        return self.queue is not None and not self.reason and self.limit is None

    @property
    def confirm(self) -> str | None:
        """What a person must type if there are more than `MANY`; else None."""
        word = readable(self.queue) if self.queue is not None else self.reason
        return word if len(self.found.items) > MANY else None


async def _dead(client: Client, args: Json) -> _Dead:
    has_queue = any(args.get(field) for field in ("queue", "queue_b64"))
    queue = given_name(args, "queue") if has_queue else None
    reason, limit = args.get("reason") or "", args.get("limit")
    if queue is None and not reason:
        raise MistakeError("name a queue, or a text of the reason")
    limit = int(limit) if limit else None
    found = await Jobs(client).dead(queue, reason=reason, limit=limit or _LOOKED_AT)
    nodes, names = await answering(client), await names_of(client)
    found = attrs.evolve(found, unreached={**nodes.unreached, **found.unreached})
    if not found.items:
        where = f'queue "{readable(queue)}"' if queue is not None else "the cluster"
        why = f' with "{reason}" in its reason' if reason else ""
        error = SilentNodeError if found.unreached else MistakeError
        raise error(f"{where} has no dead job{why}" + unanswered(found.unreached, names))
    return _Dead(queue, reason, limit, found, nodes.items, names)


async def redrive(client: Client, args: Json) -> Plan:
    """Plan REDRIVE at a limited rate."""
    dead, rate = await _dead(client, args), int(args.get("rate") or RATE)
    lines = [f"enqueued with all their attempts, {rate} per second: {dead.which}"]

    async def of_queue(queue: str, outcome: Outcome) -> AsyncIterator[int]:
        asked = commands.redrive_queue(queue, rate)
        for node in dead.nodes:
            some = rate
            while some == rate:
                try:
                    some = unwrap(*await client.ask(node, [asked]))
                except DisqueError as error:
                    outcome.failed.append(f"{dead.names(node)}: {error}")
                    break
                yield some

    async def of_found() -> AsyncIterator[int]:
        for start in range(0, len(dead.found.items), rate):
            yield await Jobs(client).of_each(
                dead.found.items[start : start + rate], commands.redrive
            )

    async def run(outcome: Outcome, report: Report) -> None:
        """Redrive in steps, and report the number of queued jobs after each."""
        is_whole = dead.is_whole_queue and dead.queue is not None
        async for some in of_queue(dead.queue or "", outcome) if is_whole else of_found():
            outcome.count += some
            outcome.says[:] = [f"redriven: {counted(outcome.count, 'job')}"]
            if some >= rate:
                report(f"redriven {outcome.count:,} of {dead.known}")
                await anyio.sleep(1.0)

    unasked = silent(dead.found.unreached, dead.names)
    return Plan(
        target=dead.which, says=lines + unasked, run=run, unasked=unasked, confirm=dead.confirm
    )


async def drop(client: Client, args: Json) -> Plan:
    """Plan the end of dead jobs: PURGE DEAD, or ACKJOB of each."""
    dead = await _dead(client, args)

    async def run(outcome: Outcome, report: Report) -> None:
        if dead.is_whole_queue and dead.queue is not None:
            asked = commands.purge(dead.queue, is_dead=True)
            counts: list[int] = []

            def describe(count: int) -> tuple[str, int]:
                counts.append(count)
                return f"dropped {counted(count, 'job')}", 0

            await one_by_one(client, dead.nodes, dead.names, asked, describe)(outcome, report)
            # Each holder of a dead job counts it, and not every node is a holder.
            known = 0 if dead.found.is_cut else len(dead.found.items)
            outcome.count = max(*counts, min(sum(counts), known), 0)
        else:
            outcome.count = await Jobs(client).of_each(dead.found.items, commands.ackjob)
            outcome.says.append(f"dropped: {counted(outcome.count, 'job')}")

    unasked = silent(dead.found.unreached, dead.names)
    lines = [f"dropped: {dead.which}", *unasked]
    return Plan(target=dead.which, says=lines, run=run, unasked=unasked, confirm=dead.confirm)
