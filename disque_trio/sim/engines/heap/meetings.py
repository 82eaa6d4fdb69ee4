"""Finds queued jobs and waiting clients of different nodes that do not meet.

Rows of jobs and messages do not show waiting clients. So twice a simulated second this module looks
for jobs that are queued at one node while a client waits for them at another one, with links in
both directions between the two. If a pair of the same job and the same client lasts for longer than
`REPORTED_AFTER`, a row ``unmet`` is written: `node` has the job, the client waits at `peer`, and
`detail` is ``since=`` a time. It is written again each time the wait has doubled. The row ``pairs``
at the end has the number of all pairs in `detail`. `checkers.meetings` judges them.

For queues with limits in the plan it also writes rows ``demand``, at each look at which a client
could receive a job: one for each node at which such a client waits, whichever node has the job, and
one without a node for the cluster. ``since=`` is the first of the uninterrupted looks of this kind.
If groups have limits, one row is written for each group of such jobs: ``group=`` is the CRC-32 of
its name. `checkers.limits` judges them.
"""

from collections.abc import Iterator
from typing import Final
from zlib import crc32

import attrs

from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import PAUSE_OUT, ClientId, JobId
from disque_trio.statemachine.state import NodeState

EVERY: Final[Micros] = 500_000
REPORTED_AFTER: Final[Micros] = 1_000_000

_ANY: Final = -1
"""In place of a group: all jobs of the queue."""
_Place = tuple[int, int, bytes]
"""The node with the job, the node with the client, and the queue."""


@attrs.define(eq=False)
class _Pair:
    """A job and a client that have not met."""

    job: JobId
    client: ClientId
    lives: tuple[int, int]
    since: Micros
    report_after: Micros = REPORTED_AFTER
    """How long they must have waited for the next row."""


class Meetings:
    """The pairs of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._engine = world.engine
        self._recorder = world.recorder
        self._pairs: dict[_Place, _Pair] = {}
        self._count = 0
        self._demands: dict[tuple[bytes, str, int], Micros] = {}
        self._limited = list(dict.fromkeys(limit.queue.encode() for limit in world.plan.limits))
        self._of_groups = [
            limit.queue.encode()
            for limit in world.plan.limits
            if limit.group_concurrency or limit.group_rate
        ]

    def begin(self) -> None:
        """Start to look twice a second."""
        self._engine.later(EVERY, self._look, None)

    def finish(self) -> None:
        """Write the number of pairs."""
        self._say("pairs", "", "", "", "", str(self._count))

    def _look(self, _subject: object) -> None:
        now = self._engine.now
        pairs: dict[_Place, _Pair] = {}
        for giver, taker, name, found in self._apart(now):
            place = (giver.number, taker.number, name)
            before = self._pairs.get(place)
            if before is None or (before.job, before.client, before.lives) != (
                found.job,
                found.client,
                found.lives,
            ):
                self._count += 1
                pairs[place] = found
                continue
            pairs[place] = before
            if now - before.since >= before.report_after:
                before.report_after = 2 * (now - before.since)
                detail = f"since={before.since}"
                queue = name.decode("utf-8", "replace")
                self._say("unmet", giver.name, taker.name, queue, before.job.decode(), detail)
        self._pairs = pairs
        if self._limited:
            self._look_at_demands(now)
        self._engine.later(EVERY, self._look, None)

    def _apart(self, now: Micros) -> Iterator[tuple[Host, Host, bytes, _Pair]]:
        """Yield jobs at one node with clients that wait at another node."""
        nodes = [
            (host, host.machine.state)
            for host in self._world.hosts.values()
            if host.machine is not None and not host.is_paused
        ]
        for taker, there in nodes:
            for name, waiting in there.queues.items():
                if not waiting.waiting or waiting.paused & PAUSE_OUT:
                    continue
                client = next(iter(waiting.waiting))
                for giver, here in nodes:
                    job = _oldest(here, name) if giver is not taker else None
                    if job is not None and _are_linked(giver, taker):
                        lives = (giver.lives, taker.lives)
                        yield giver, taker, name, _Pair(job, client, lives, now)

    def _look_at_demands(self, now: Micros) -> None:
        demands: dict[tuple[bytes, str, int], Micros] = {}
        nodes = [
            (host, host.machine.state)
            for host in self._world.hosts.values()
            if host.machine is not None and not host.is_paused
        ]
        for name in self._limited:
            having: dict[str, dict[int, None]] = {host.name: {} for host, _ in nodes}
            numbers: dict[int, None] = {_ANY: None}
            if name in self._of_groups:
                having = {host.name: _groups(node, name) for host, node in nodes}
                numbers = dict.fromkeys(number for each in having.values() for number in each)
            for number in sorted(numbers):
                givers = [
                    host
                    for host, node in nodes
                    if (number == _ANY and _oldest(node, name) is not None)
                    or number in having[host.name]
                ]
                takers = [
                    host.name
                    for host, node in nodes
                    if _is_awaited(node, name)
                    and any(host is each or _are_linked(host, each) for each in givers)
                ]
                of_group = "" if number == _ANY else f" group={number}"
                for taker in ("", *takers) if takers else ():
                    key = name, taker, number
                    since = demands[key] = self._demands.get(key, now)
                    self._say("demand", taker, "", name.decode(), "", f"since={since}{of_group}")
        self._demands = demands

    def _say(self, kind: str, node: str, peer: str, queue: str, job: str, detail: str) -> None:
        self._recorder.add(
            (self._engine.now, kind, node, job, queue, "", peer, "", detail, 0, 0, 0, ())
        )


def _oldest(node: NodeState, name: bytes) -> JobId | None:
    """Return the job that the node would deliver next, if it may deliver any."""
    queue = node.queues.get(name)
    if queue is None or not queue.length or queue.paused & PAUSE_OUT or node.refusal is not None:
        return None
    return next((job.id for job in queue.peek(1) if job.expires > node.mono), None)


def _groups(node: NodeState, name: bytes) -> dict[int, None]:
    """Return the groups of the jobs that the node would deliver."""
    queue = node.queues.get(name)
    if queue is None or not queue.length or queue.paused & PAUSE_OUT or node.refusal is not None:
        return {}
    return dict.fromkeys(
        crc32(job.group)
        for job in queue.peek(queue.length)
        if job.expires > node.mono and job.group is not None
    )


def _is_awaited(node: NodeState, name: bytes) -> bool:
    """Does a client wait for jobs of the queue, and is the queue not paused?"""
    queue = node.queues.get(name)
    return queue is not None and bool(queue.waiting) and not queue.paused & PAUSE_OUT


def _are_linked(one: Host, other: Host) -> bool:
    """Does each node have a link to the other, and know its capabilities?"""
    return _knows(one, other) and _knows(other, one)


def _knows(one: Host, other: Host) -> bool:
    if one.machine is None:
        return False
    peer = one.machine.state.cluster.nodes.get(other.id)
    return peer is not None and peer.is_connected and peer.is_ours
