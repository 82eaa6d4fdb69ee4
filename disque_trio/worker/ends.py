"""Asks nodes how jobs have ended, for ends that no worker reports (decision 106).

An operator may have cancelled the job, its TTL or LIMIT may have ended, or the key may belong to
another job.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

import anyio
import attrs

from disque_trio import client as clients
from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import Job, KeyHolder, QueueStats
from disque_trio.client.refusals import UnknownJobError
from disque_trio.worker.options import Place

PATIENCE_S: Final = 2.0
"""How long to wait for one node."""
SETTLED_S: Final = 65
"""The time after a node's start within which it enqueues replicas from before the start, for jobs
of this library that report something (their RETRY is a minute)."""
_KEEPS_IDS: Final = "release-delay"
"""The feature with which a snoozed job keeps its id, so that a job which is gone has ended."""
_AT_ONCE: Final = "waitjob-nohang"
Item = TypeVar("Item")

Ended = Literal["acked", "dead", "expired", "gone"]
"""How a job has ended. `gone`: no node has it any more, after one of the other ends."""
_End = Ended | Literal["lives"] | None
"""The answer of a node; None if it is inconclusive."""


@attrs.define(eq=False)
class Watched:
    """A job, and the later steps of its chain."""

    id: str
    steps: Sequence[Place] = ()
    """The steps that have not been found yet."""
    end: Ended | None = None


async def look(client: "clients.Client", watched: Iterable[Watched]) -> None:
    """Ask nodes once, and record the ends. A job has ended if a node says so, or if all nodes
    answer and none has it. If a node does not answer, the end remains unknown."""
    asked = [each for each in watched if each.end is None]
    nodes = client.nodes.order(anyio.current_time())
    if not asked or not nodes:
        return
    first, *others = nodes
    first_ends = await _ends(client, first, [each.id for each in asked])
    asked = [each for each, end in zip(asked, first_ends, strict=True) if end != "lives"]
    if not asked:
        return
    first_ends = [end for end in first_ends if end != "lives"]
    more = await at_all(others, lambda node: _ends(client, node, [each.id for each in asked]))
    for place, each in enumerate(asked):
        end = _verdict(
            [first_ends[place], *(None if ends is None else ends[place] for ends in more)]
        )
        if end in ("acked", "gone"):
            await _follow(client, nodes, each, end)
        else:
            each.end = end


async def at_all(
    nodes: Sequence[Address], ask: Callable[[Address], Awaitable[Item]]
) -> list[Item | None]:
    """The answer of each node, in their order; None for a node that does not answer."""
    answers: list[Item | None] = [None] * len(nodes)

    async def one(place: int, node: Address) -> None:
        with anyio.move_on_after(PATIENCE_S):
            try:
                answers[place] = await ask(node)
            except DisqueError:
                answers[place] = None

    async with anyio.create_task_group() as tasks:
        for place, node in enumerate(nodes):
            tasks.start_soon(one, place, node)
    return answers


@attrs.frozen
class Found:
    """The number of jobs in a queue, on all nodes."""

    count: int
    """Excludes the jobs in `peeked`."""
    up_s: float
    """The shortest uptime of a node, in seconds."""
    refused_at: float
    """When a node last rejected a job for lack of other nodes, in Unix seconds; 0 if never."""
    peeked: Sequence[Job] = ()

    def is_sure(self, age: float) -> bool:
        """Is the count complete for jobs added in the last `age` seconds? A node that has just
        started may still enqueue a replica that it had before."""
        return self.up_s >= min(age, SETTLED_S)


async def jobs_in(client: "clients.Client", queue: str, peek: int = 0) -> Found | None:
    """The jobs of a queue: enqueued, leased, or delayed. On each node, up to `peek` enqueued ones
    are peeked at. None if a node does not answer."""

    async def ask(node: Address) -> Found | None:
        asked: list[Command[Any]] = [
            *([commands.qpeek(queue, peek)] if peek else ()),  # first, so later jobs are counted
            commands.qstat(queue),
            commands.info("server"),
            commands.info("stats"),
        ]
        match await client.ask(node, asked):
            case [*_, None, dict(facts), dict(counts)]:
                return Found(0, _uptime(facts), _refused_at(counts))
            case [*peeks, QueueStats() as stats, dict(facts), dict(counts)]:
                peeked = [job for jobs in peeks if isinstance(jobs, list) for job in jobs]
                count = max(stats.length - len(peeked), 0)
                count += (stats.leased or 0) + (stats.delayed or 0)
                return Found(count, _uptime(facts), _refused_at(counts), peeked)
        return None

    answers = await at_all(client.nodes.order(anyio.current_time()), ask)
    found = [each for each in answers if each is not None]
    if len(found) < len(answers):
        return None
    up_s = min((each.up_s for each in found), default=0.0)
    refused_at = max((each.refused_at for each in found), default=0.0)
    peeked = [job for each in found for job in each.peeked]
    return Found(sum(each.count for each in found), up_s, refused_at, peeked)


def _uptime(facts: Mapping[str, str]) -> float:
    """The uptime of a node in seconds, from its INFO."""
    whole = facts.get("uptime_in_seconds", "0")
    return int(facts.get("uptime_in_milliseconds", f"{whole}000")) / 1000


def _refused_at(facts: Mapping[str, str]) -> float:
    causes = dict(
        each.split("=") for each in facts.get("last_refused_by_cause", "").split(",") if each
    )
    return float(causes.get("NOREPL", 0))


async def _ends(client: "clients.Client", node: Address, ids: Sequence[str]) -> list[_End]:
    nothing: list[_End] = [None] * len(ids)
    with anyio.move_on_after(PATIENCE_S):
        try:
            if not client.nodes.features(node):
                await client.ask(node, [commands.ping()])  # connecting reports the node's features
            if _AT_ONCE not in client.nodes.features(node):
                return nothing
            answers = await client.ask(node, [commands.waitjob(id, timeout=0) for id in ids])
        except DisqueError:
            return nothing
        keeps_ids = _KEEPS_IDS in client.nodes.features(node)
        return [_end_of(answer, keeps_ids=keeps_ids) for answer in answers]
    return nothing


def _end_of(answer: object, *, keeps_ids: bool) -> _End:
    match answer:
        case None:
            return "lives"
        case "dead" | "expired":
            return answer
        case "acked" if keeps_ids:
            return answer
        case UnknownJobError() if keeps_ids:
            return "gone"
    return None


def _verdict(ends: Sequence[_End]) -> Ended | None:
    for end in ("acked", "expired"):  # these are final, whatever other nodes report
        if end in ends:
            return end
    if "lives" in ends:
        return None
    if "dead" in ends:
        return "dead"
    return "gone" if all(each == "gone" for each in ends) else None


async def _follow(
    client: "clients.Client", nodes: Sequence[Address], watched: Watched, end: Ended
) -> None:
    """The job has ended: follow its chain. If there is a next step, it was added before."""
    while watched.steps:
        (queue, key), *others = watched.steps

        async def find(node: Address, place: Place = (queue, key)) -> list[KeyHolder]:
            (found,) = await client.ask(node, [commands.show_key(*place, is_local=True)])
            if isinstance(found, DisqueError):
                raise found
            return [] if found is None else [found]

        answers = await at_all(nodes, find)
        holders = [holder for answer in answers for holder in answer or ()]
        if not holders and None in answers:
            return
        if not holders:
            break
        watched.id, watched.steps, end = holders[0].id, others, "acked"
        if all(holder.state != "done-kept" for holder in holders):
            return
    watched.end = end
