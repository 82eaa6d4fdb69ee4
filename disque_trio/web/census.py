"""Sums over all queues and clients of a node, made in pieces: no turn of its loop gets long."""

from collections.abc import AsyncIterator, Collection
from typing import Final, TypeVar

import attrs
import trio

from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.client import WAITS
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState

T = TypeVar("T")
PIECE: Final = 500
"""Queues or clients that are looked at before other tasks have their turn: a quarter of a
millisecond."""
BEHIND: Final[Millis] = 60_000
"""A queue is behind if its next job has waited for so long, and no client waits for it."""


@attrs.define
class Census:
    """What was found. Numbers of queues, jobs and clients."""

    queued: int = 0
    paused: int = 0
    behind: int = 0
    head_age: Millis = 0
    """How long the job has waited that has waited longest at the head of its queue."""
    leased: int = 0
    delayed: int = 0
    dead: int = 0
    restored: int = 0
    unqueued: int = 0
    waiting: int = 0
    """Clients that wait for jobs."""

    def add(self, node: NodeState, queue: Queue) -> None:
        """Count one queue."""
        self.paused += bool(queue.paused)
        if not queue.length or (oldest := queue.oldest()) is None:
            return
        self.queued += queue.length
        age = max(node.wall - oldest.made - oldest.delay, 0)
        self.head_age = max(self.head_age, age)
        self.behind += age >= BEHIND and not queue.waiting


async def take(node: NodeState) -> Census:
    """Look at everything. What changes meanwhile is counted as it was or as it is."""
    found = Census()
    async for queue in _paced(node.queues.values()):
        found.add(node, queue)
    async for jobs in _paced(node.leased.values()):
        found.leased += jobs
    async for backlog in _paced(node.delayed.values()):
        found.delayed += backlog.number
    async for backlog in _paced(node.restored.values()):
        found.restored += backlog.number
    async for jobs in _paced(node.unqueued.values()):
        found.unqueued += jobs
    async for dead in _paced(node.dead.values()):
        found.dead += len(dead)
    async for client in _paced(node.clients.values()):
        found.waiting += client.blocked in WAITS
    return found


async def _paced(items: Collection[T]) -> AsyncIterator[T]:
    for number, item in enumerate(list(items)):
        if number % PIECE == PIECE - 1:
            await trio.lowlevel.checkpoint()
        yield item
