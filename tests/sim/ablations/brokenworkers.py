"""Nodes of which something is broken that workers and administrators rely on; as `broken`."""

from disque_trio.statemachine import acks, due, handouts, lifecycle, purging, requeue
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState, Purging
from tests.sim.ablations.broken import Patch


def tokens_not_checked(patch: Patch) -> None:
    """A token of an earlier delivery is taken for that of the last one."""
    patch.setattr(handouts, "is_lost", lambda *_: False)


def tokens_forgotten(patch: Patch) -> None:
    """A token holds only until the lease is over."""
    patch.setattr(handouts, "is_lost", lambda _node, job, _token: not job.flags & 32)


def ties_ignored(patch: Patch) -> None:
    """The end of a connection changes nothing for the jobs that are tied to it."""

    def end_soon(node: NodeState, client: Client) -> None:
        for job in handouts.orphan(node, client):
            handouts.untie(node, job)

    patch.setattr(requeue, "end_soon", end_soon)


def without_grace(patch: Patch) -> None:
    """A tied job is queued again as soon as its connection has ended."""
    intact = requeue.end_soon

    def end_soon(node: NodeState, client: Client) -> None:
        jobs = list((client.tied or {}).values())
        intact(node, client)
        for job in jobs:
            lifecycle.requeue_in(node, job, 0)

    patch.setattr(requeue, "end_soon", end_soon)


def releases_counted(patch: Patch) -> None:
    """A job that was given back unbegun counts as delivered once more."""
    intact = lifecycle.count_delivery

    def count(job: Job, *, nack: bool, redelivery: bool) -> None:
        intact(job, nack=nack, redelivery=redelivery or not nack)

    patch.setattr(lifecycle, "count_delivery", count)


def purging_what_has_left(patch: Patch) -> None:
    """A purge acknowledges also jobs that workers have taken since it began."""

    def on_due(node: NodeState, state: Purging) -> None:
        for name, jobs in list(state.jobs.items()):
            acks.ack(node, jobs.pop().id, Cause.PURGE)
            if not jobs:
                del state.jobs[name]
        if state.jobs:
            node.timers.arm(state, node.mono + 50)

    patch.setattr(purging, "on_due", on_due)
    patch.setitem(due.ON_TIMER, Purging, on_due)


def expiry_taken_for_an_ack(patch: Patch) -> None:
    """WAITJOB answers acked for a job that has expired."""
    intact = lifecycle.note_end

    def note_end(node: NodeState, job: Job, end: bytes) -> None:
        intact(node, job, b"acked" if end == b"expired" else end)

    patch.setattr(lifecycle, "note_end", note_end)
