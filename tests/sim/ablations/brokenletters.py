"""Nodes that are broken in how they keep dead jobs, and the plans in which that shows.

As in `broken`, each function breaks one thing.
"""

from typing import Any

import attrs

from disque_trio.sim.scenarios.plan import Administrator, Consumer, Expect, Fault, Plan
from disque_trio.statemachine import (
    acks,
    copies,
    deadletters,
    introductions,
    journaling,
    lifecycle,
    purging,
    repair,
    replication,
    requeue,
    resend,
    transfer,
)
from disque_trio.statemachine.base import ACTIVE, Millis
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.extensions import DeadState
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import JobCopy
from disque_trio.statemachine.state import NodeState, Sweep
from tests.sim.ablations.broken import Patch, nothing
from tests.sim.ablations.conditions import SECOND, TROUBLED, jobs, plan, workers


def limits_ignored(patch: Patch) -> None:
    """A job is queued again however often it was delivered."""
    patch.setattr(deadletters, "queue_again", lifecycle.enqueue)


def limits_reached_early(patch: Patch) -> None:
    """A job dies one delivery before its LIMIT."""
    intact = deadletters.queue_again

    def queue_again(node: NodeState, job: Job, cause: Cause) -> bool:
        job.deliveries += 1
        done = intact(node, job, cause)
        job.deliveries = max(job.deliveries - 1, 0)
        return done

    patch.setattr(deadletters, "queue_again", queue_again)


def states_not_told(patch: Patch) -> None:
    """No holder is told that a job is dead, or redriven."""
    for module in (deadletters, introductions, requeue, resend):
        patch.setattr(module, "tell_state", nothing)


def deaths_not_told_on_return(patch: Patch) -> None:
    """A holder that comes back is not told which of its jobs are dead."""
    patch.setattr(resend, "tell_state", nothing)


def states_not_believed(patch: Patch) -> None:
    """A node that is told that a job is dead, or redriven, takes no note of it."""
    patch.setattr(deadletters, "_join", nothing)


def death_for_good(patch: Patch) -> None:
    """Who knows that a job is dead does not believe that it has been redriven."""

    def merged(one: DeadState, other: DeadState) -> DeadState:
        return max(one, other, key=lambda state: (state.is_dead, *state.order))

    patch.setattr(deadletters, "merged", merged)


def copies_live(patch: Patch) -> None:
    """A copy of a dead job is alive."""
    snapshot = copies.snapshot

    def alive(node: NodeState, job: Job) -> JobCopy:
        copy = snapshot(node, job)
        if copy.extensions is None:
            return copy
        return attrs.evolve(copy, extensions=attrs.evolve(copy.extensions, dead=DeadState()))

    for module in (copies, replication, repair, transfer):
        patch.setattr(module, "snapshot", alive)


def deaths_not_written(patch: Patch) -> None:
    """The journal has a dead job as it was before."""
    stored = journaling.stored

    def before(node: NodeState, job: Job) -> JobCopy:
        copy = stored(node, job)
        if copy.extensions is None:
            return copy
        extensions = attrs.evolve(copy.extensions, dead=DeadState())
        return attrs.evolve(copy, state=min(copy.state, ACTIVE), extensions=extensions)

    patch.setattr(journaling, "stored", before)


def deaths_that_expire_with_the_job(patch: Patch) -> None:
    """A dead job is kept for the rest of its TTL, and not for `dead-letter-ttl`."""
    become = deadletters._become

    def expiring(node: NodeState, job: Job, after: DeadState, cause: Cause, left: Millis) -> None:
        rest = job.expires - node.mono
        become(node, job, after, cause, rest if after.is_dead else left)

    patch.setattr(deadletters, "_become", expiring)


def buried_and_queued(patch: Patch) -> None:
    """A job that a worker buries is queued again."""

    def bury(node: NodeState, job: Job, _reason: bytes) -> bool:
        return lifecycle.enqueue(node, job, Cause.NACK)

    patch.setattr(deadletters, "nack", bury)


def counters_kept(patch: Patch) -> None:
    """A job that is redriven has the NACKs and deliveries that it had."""
    redrive = deadletters.redrive

    def counting(node: NodeState, job: Job) -> bool:
        before = job.nacks, job.deliveries
        done = redrive(node, job)
        job.nacks, job.deliveries = before
        return done

    patch.setattr(deadletters, "redrive", counting)


def living_purged(patch: Patch) -> None:
    """PURGE DEAD also ends jobs that have been redriven, or acknowledged, since it began."""

    def handle(node: NodeState, job: Job, sweep: Sweep) -> None:
        if sweep is Sweep.REDRIVE:
            deadletters.redrive(node, job)
        else:
            acks.ack(node, job.id, Cause.PURGE)

    def entries(node: NodeState, name: bytes, _count: int | None) -> list[Job]:
        return [job for job in node.jobs.values() if job.queue == name]

    patch.setattr(purging, "_handle", handle)
    patch.setattr(purging, "_dead_jobs", entries)


def death_taken_for_expiry(patch: Patch) -> None:
    """WAITJOB answers expired for a job that is dead."""
    intact = lifecycle.note_end

    def note_end(node: NodeState, job: Job, end: bytes) -> None:
        intact(node, job, b"expired" if end == b"dead" else end)

    patch.setattr(lifecycle, "note_end", note_end)


# Plans.

_KINDS = (("redrive", 2.0), ("purge-dead", 0.5), ("wait", 2.0))


def _administrators(every: int = SECOND) -> tuple[Administrator, ...]:
    return tuple(
        Administrator(name=f"a{number}", every=(every // 4, every), queues=("q",), mix=_KINDS)
        for number in (1, 2)
    )


def _burying(**rest: Any) -> tuple[Consumer, ...]:
    mix = (("bury", 1.0), ("nack", 2.0), ("none", 2.0), ("ackjob", 1.0))
    return workers((1, 2, 3, 4, 5), mix=mix, work=(5_000, 200_000), **rest)


def letters(seed: int) -> Plan:
    """Jobs with limits, workers that bury them or forget them, operators: nothing goes wrong."""
    return plan(
        "letters",
        seed,
        25,
        adds=jobs(60, limit=3, retry_s=2),
        consumers=_burying(),
        administrators=_administrators(),
        expect=Expect(duplicates=("D0", "D1", "D5")),
    )


def cut_letters(seed: int) -> Plan:
    """The same, and again and again a node is cut off."""
    cuts = tuple(
        Fault(
            kind="partition",
            at=(4 + 6 * number) * SECOND,
            hold=3 * SECOND,
            groups=((1 + number % 5,), tuple(n for n in range(1, 6) if n != 1 + number % 5)),
        )
        for number in range(4)
    )
    return attrs.evolve(
        letters(seed), scenario="cut-letters", faults=cuts, expect=Expect(duplicates=TROUBLED)
    )


def awaited_letters(seed: int) -> Plan:
    """Workers bury what they get, and clients wait for the ends of jobs."""
    waiting = tuple(
        Administrator(
            name=f"a{number}",
            every=(SECOND // 20, SECOND // 5),
            queues=("q",),
            mix=(("wait", 1.0),),
        )
        for number in range(1, 4)
    )
    return plan(
        "awaited-letters",
        seed,
        10,
        adds=jobs(60, every=SECOND // 10),
        consumers=workers((1, 2), mix=(("bury", 1.0),), work=(SECOND // 5, SECOND // 2)),
        administrators=waiting,
    )


def lost_letters(seed: int) -> Plan:
    """Nobody redrives. Nodes are lost for good, and their copies are made again."""
    gone = tuple(
        Fault(kind="remove", at=(3 * number - 2) * SECOND, nodes=(number,)) for number in (4, 5)
    )
    return plan(
        "lost-letters",
        seed,
        25,
        config=(("cluster-node-timeout", "1000"), ("replica-repair-after", "2")),
        adds=jobs(60, limit=1, retry_s=2, nodes=(1, 2, 3)),
        consumers=workers((1, 2, 3), mix=(("bury", 1.0),), work=(5_000, 50_000)),
        faults=gone,
        drain=60 * SECOND,
        expect=Expect(duplicates=TROUBLED),
    )


def written_letters(seed: int) -> Plan:
    """Nodes are killed, and come back with their journals."""
    kills = tuple(
        Fault(kind="crash", at=(8 + 3 * number) * SECOND, hold=SECOND, nodes=(number,), mode="kill")
        for number in range(1, 6)
    )
    return attrs.evolve(
        letters(seed),
        scenario="written-letters",
        config=(("cluster-node-timeout", "1000"), ("appendonly", "yes"), ("appendfsync", "always")),
        faults=kills,
        expect=Expect(duplicates=(*TROUBLED, "D8")),
    )


def cut_off(seed: int) -> Plan:
    """A node is cut off with the rest of its queue, and comes back when the jobs are dead."""
    cut = Fault(kind="partition", at=12 * SECOND, hold=13 * SECOND, groups=((5,), (1, 2, 3, 4)))
    mix = (("bury", 1.0), ("none", 3.0))
    return plan(
        "cut-off",
        seed,
        25,
        adds=jobs(60, limit=2, retry_s=3),
        consumers=workers((1, 2, 3, 4), mix=mix, work=(5_000, 20_000), stop=20 * SECOND),
        faults=(cut,),
        expect=Expect(duplicates=TROUBLED),
    )
