"""Nodes that are broken in how jobs wait after a NACK; as in `broken`, each function breaks one
thing."""

from collections.abc import Iterable

import attrs

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Fault, Plan
from disque_trio.statemachine import journaling, lifecycle, postponing
from disque_trio.statemachine.base import Millis, NodeId
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState
from tests.sim.ablations.broken import Patch, nothing
from tests.sim.ablations.conditions import SCENARIOS, SECOND

_tell = postponing.tell


def waits_not_told(patch: Patch) -> None:
    """The other holders are not told that a job waits after a NACK."""

    def tell(
        node: NodeState, job: Job, ids: Iterable[NodeId], why: Cause = Cause.POSTPONED
    ) -> None:
        if why is Cause.POSTPONED:
            _tell(node, job, ids)

    patch.setattr(postponing, "tell", tell)


def waits_not_repeated(patch: Patch) -> None:
    """Nobody tells a holder that has not heard of a wait, and announces the job."""

    def tell(
        node: NodeState, job: Job, ids: Iterable[NodeId], why: Cause = Cause.POSTPONED
    ) -> None:
        if why is not Cause.POSTPONED:
            _tell(node, job, ids, why)

    patch.setattr(postponing, "tell", tell)


def waits_not_heard(patch: Patch) -> None:
    """A holder that is told of a wait does not obey."""
    patch.setattr(postponing, "obey", nothing)


def waits_cut_short(patch: Patch) -> None:
    """The node of a NACK queues the job after nine tenths of the wait."""
    intact = postponing.postpone

    def postpone(node: NodeState, job: Job, wait: Millis, cause: Cause) -> None:
        intact(node, job, wait, cause)
        lifecycle.requeue_in(node, job, wait * 9 // 10)

    patch.setattr(postponing, "postpone", postpone)


def waits_ended_by_old_news(patch: Patch) -> None:
    """WORKING of another node ends a wait, although it may be older than the NACK."""
    patch.setattr(postponing, "stands", lambda *_: False)


def nobody_takes_over(patch: Patch) -> None:
    """A holder that is told of a wait leaves the job to the node of the NACK for ever."""
    patch.setattr(postponing, "_margin", lambda *_: 10_000_000)


def waits_counted_twice(patch: Patch) -> None:
    """A job that is queued when the wait of a NACK is over counts as delivered once more."""
    patch.setattr(lifecycle, "NOT_COUNTED", (Cause.NACK, Cause.RELEASE, Cause.REDRIVEN))


def waits_not_recorded(patch: Patch) -> None:
    """The journal does not say until when a job waits."""
    patch.setattr(journaling, "_due", lambda *_: 0)


def recorded_waits(seed: int) -> Plan:
    """Nodes with journals are killed and start again while jobs wait of which no other has a
    copy."""
    plan = expand(load(SCENARIOS / "backoff.toml"), seed)
    kills = [
        Fault(kind="restart", at=at * SECOND, nodes=(1 + at % plan.nodes,), mode="kill")
        for at in range(5, 55, 3)
    ]
    config = (("appendonly", "yes"), ("appendfsync", "always"))
    lonely = [
        attrs.evolve(add, replicate=1, retry_s=1, delay_s=None)
        for add in plan.adds
        if add.retry_s != 0
    ]
    workers = [
        attrs.evolve(worker, delay_ms=(4000, 9000), mix=(("nack-delay", 1.0),))
        for worker in plan.consumers
    ]
    return attrs.evolve(
        plan,
        config=config,
        clocks=(),
        faults=tuple(kills),
        adds=tuple(lonely),
        consumers=tuple(workers),
    )


def waits_that_do_not_grow(patch: Patch) -> None:
    """Each NACK lets a job wait for BACKOFF, however many there were before."""

    def backoff(node: NodeState, job: Job) -> Millis:
        nacks, job.nacks = job.nacks, 0
        wait = intact(node, job)
        job.nacks = nacks
        return wait

    intact = postponing.backoff
    patch.setattr(postponing, "backoff", backoff)
