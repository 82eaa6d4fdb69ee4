"""Nodes that work, and tell clients something else.

Like `broken`: each function breaks one thing, until the patch is undone.
"""

from typing import Any

from disque_trio.statemachine.commands import jobs
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState
from tests.sim.ablations.broken import Patch


def stale_entries_counted(patch: Patch) -> None:
    """QLEN counts entries of a queue whose jobs are not queued any more."""
    patch.setattr(Queue, "__len__", lambda queue: len(queue._in_order) + len(queue._late or ()))


def stale_entries_shown(patch: Patch) -> None:
    """QPEEK shows them."""

    def peek(self: Queue, count: int) -> list[Job]:
        found = sorted(
            [*self._in_order, *(entry[-1] for entry in self._late or ())],
            key=lambda job: (job.made, job.number, job.id),
            reverse=count < 0,
        )
        return found[: abs(count)]

    patch.setattr(Queue, "peek", peek)


def newest_first_shown(patch: Patch) -> None:
    """QPEEK with a positive count shows the youngest jobs."""
    intact = Queue.peek
    patch.setattr(Queue, "peek", lambda queue, count: intact(queue, -count))


def queued_shown_as_active(patch: Patch) -> None:
    """SHOW says of a queued job that it is active."""
    patch.setattr(jobs, "STATE_NAMES", (b"wait-repl", b"active", b"active", b"acked"))


def _with_holders(patch: Patch, holders: Any) -> None:
    intact = jobs.describe

    def describe(node: NodeState, job: Job) -> list[Any]:
        reply = intact(node, job)
        reply[reply.index(b"nodes-delivered") + 1] = list(holders(node, job))
        return reply

    patch.setattr(jobs, "describe", describe)


def everybody_shown_as_holder(patch: Patch) -> None:
    """SHOW names all nodes as holders."""
    _with_holders(patch, lambda node, _job: node.cluster.nodes)


def other_holders_not_shown(patch: Patch) -> None:
    """SHOW names none but the node itself."""
    _with_holders(patch, lambda node, _job: [node.cluster.myself.id])
