"""Leases of the jobs in hand. They are renewed until a node has the acknowledgement, or may have
the job back. Jobs that have lost their lease are given up.

A lease counts from the time at which the reply with it was read. After a pause of the process it
counts from the last turn before the pause, because the reply may have waited since then. After the
lease ends, another worker may have the job; then only an acknowledgement may be sent.
"""

from collections.abc import Sequence
from typing import Final

from disque_trio.statemachine.base import Reply
from disque_trio.worker.engine import connecting, words
from disque_trio.worker.engine.records import (
    HELD,
    MILLI,
    NEVER,
    RUNNING,
    SECOND,
    SETTLING,
    WAITING,
    Cancel,
    Done,
    Drop,
    Job,
    Link,
    Micros,
    Phase,
    Reason,
    Request,
    State,
    Verb,
)

STALL: Final[Micros] = 500 * MILLI
"""If the last turn was longer ago, the process may have been suspended in between."""
LONGEST_GAP: Final[Micros] = 250 * MILLI
"""The longest time between two turns while a reply with jobs may arrive."""
RENEWALS: Final = 3
"""The number of renewals within one lease, so that some may be lost."""
MARGIN: Final[Micros] = 300 * MILLI
"""A job does not start with less than this left of its lease."""
SOON: Final[Micros] = 20 * MILLI
"""The shortest time between two renewals of a job."""
BATCH: Final = 256
"""The maximum number of jobs in one command."""
SPARE: Final = 1_024
"""Timers of ended jobs are removed when there are more than this."""
_ENDS: Final = {b"LOST": Reason.LOST, b"ACKED": Reason.ACKED, b"DEAD": Reason.DEAD}


def base(state: State, now: Micros) -> Micros:
    """The earliest time at which data that is read now may have arrived, which is earlier for the
    first moments after a long pause."""
    return state.paused_at if now <= state.doubted_until else now


def note_pause(state: State, now: Micros) -> None:
    """If this process was suspended, unread replies may be waiting: no node counts as unresponsive
    until they are read."""
    if now - state.last_turn > STALL:
        state.paused_at, state.doubted_until = state.last_turn, now + LONGEST_GAP
        for link in state.links.values():
            if link.requests:
                link.requests[0].due = max(link.requests[0].due, now + LONGEST_GAP)


def watch(state: State, job: Job) -> None:
    """Set the timer of a job."""
    if job.due < job.armed:
        state.timers.watch(job)
        if state.timers.count > 2 * len(state.jobs) + SPARE:
            state.timers.clear()


def has_margin(job: Job, now: Micros) -> bool:
    """Is enough of the job's lease left to start it?"""
    return job.end - now >= min(job.lease // 5, MARGIN)


# Renewals.


def renew(state: State, now: Micros, jobs: Sequence[Job]) -> None:
    """Renew the leases of these jobs, in one request per node if the node supports it."""
    groups: dict[tuple[str, int], list[Job]] = {}
    for job in jobs:
        if job.is_asked:
            # The last request was not answered: another holder may be reachable.
            job.tries, job.is_asked = job.tries + 1, False
        way, not_before = _way(state, now, job)
        job.renew_at = max(now + job.lease // RENEWALS, now + SOON)
        if not_before > now:
            job.renew_at = min(job.renew_at, max(not_before, now + SOON))
        else:
            job.is_asked = True
            groups.setdefault(way, []).append(job)
        watch(state, job)
    for (name, number), group in groups.items():
        node = state.nodes[name]
        link = state.links.get(number) or connecting.control_of(state, now, node)
        size = BATCH if words.has(node, words.TOKENS) else 1
        for at in range(0, len(group), size):
            _ask(state, now, link, group[at : at + size])


def _way(state: State, now: Micros, job: Job) -> tuple[tuple[str, int], Micros]:
    """The node, and the connection to which the job is tied, while it works, so that the job
    remains tied. Also the time until which the node rests or must be greeted, because it may
    require tokens."""
    if job.link in state.links and not job.tries:
        return (job.node, job.link), 0
    node = connecting.whom(state, now, job)
    if node.rests_until <= now:
        connecting.control_of(state, now, node)
    greeted_at = now if node.features is not None else now + SOON
    return (node.name, 0), max(node.rests_until, greeted_at)


def _ask(state: State, now: Micros, link: Link, jobs: Sequence[Job]) -> None:
    node = state.nodes[link.node]
    command = (b"WORKING", *(words.named(node, job) for job in jobs))
    connecting.send(state, now, link, command, (Verb.RENEW, tuple(jobs)))


def on_answer(state: State, now: Micros, request: Request, reply: Reply) -> None:
    """The reply of a node to WORKING."""
    many = len(request.jobs) > 1 and isinstance(reply, list)
    replies = reply if many and isinstance(reply, list) else [reply] * len(request.jobs)
    again = [
        job
        for job, answer in zip(request.jobs, replies, strict=False)
        if state.jobs.get(job.id) is job and not _hear(state, request.sent, job, answer)
    ]
    if again:
        renew(state, now, again)


def _hear(state: State, sent: Micros, job: Job, reply: Reply) -> bool:
    """Process a reply for one job. Returns False if another node must be asked immediately."""
    job.is_asked = False
    if job.lost is not None or job.is_given_back:
        return True
    if isinstance(reply, int):
        extend(state, job, sent, words.lease_of(reply * SECOND))
        return True
    code = words.code(reply)
    if code in _ENDS:
        lose(state, job, _ENDS[code])
        return True
    if code == b"TOOLATE":
        job.renew_at = NEVER
        if not job.knows_lease:
            _let_run(job)
        watch(state, job)
        return True
    job.tries += 1
    return job.tries % len(connecting.candidates(state, job)) == 0


def extend(state: State, job: Job, since: Micros, lease: Micros) -> None:
    """The lease was renewed."""
    job.lease, job.knows_lease = lease, True
    job.end = max(job.end, since + lease)
    job.renew_at = since + lease // RENEWALS
    watch(state, job)


def _let_run(job: Job) -> None:
    """A node of the original no longer renews the lease, and never reported its length."""
    if job.stage is RUNNING:
        job.lost, job.end = Reason.LEASE_OVER, NEVER


# Loss.


def lose(state: State, job: Job, why: Reason) -> None:
    """The job no longer belongs to this worker. If its handler still succeeds, an acknowledgement
    is sent."""
    job.end = job.renew_at = NEVER
    if job.stage is RUNNING:
        job.lost = job.lost or why
        cancel(state, job, why)
    elif job.stage is SETTLING and isinstance(job.outcome, Done):
        job.lost = why
    else:
        forget(state, job, why)


def cancel(state: State, job: Job, why: Reason) -> None:
    """Cancel the handler, unless it was cancelled before."""
    if job.cancelled is None:
        job.cancelled = why
        state.out.cancels.append(Cancel(job.id, why))


def leave_slot(state: State, job: Job) -> None:
    """The handler has ended."""
    state.running[job.queue] -= 1
    if job.is_stuck:
        job.is_stuck = False
        state.stuck[job.queue] -= 1


def forget(state: State, job: Job, why: Reason | None = None) -> None:
    """Remove a job. With a reason, it never started, or its outcome is unknown."""
    if job.stage is RUNNING:
        state.in_hand[job.queue] -= 1
        leave_slot(state, job)
    elif job.stage is HELD:
        state.in_hand[job.queue] -= 1
        state.held.pop(job.id, None)
    job.armed = NEVER
    if state.jobs.get(job.id) is job:
        del state.jobs[job.id]
    if why is not None:
        state.out.drops.append(Drop(job.id, why))


def on_due(state: State, now: Micros, jobs: Sequence[Job]) -> list[Job]:
    """Process jobs that are due. Returns the jobs whose delay has ended."""
    renewed, over = [], []
    for job in jobs:
        if job.end <= now:
            lose(state, job, Reason.LEASE_OVER)
            continue
        if job.stage is RUNNING and job.limit_at <= now:
            cancel(state, job, Reason.TOO_LONG)
        if job.stage is WAITING and job.nack_at <= now:
            over.append(job)
        elif job.renew_at <= now:
            renewed.append(job)
        watch(state, job)
    renew(state, now, renewed)
    return over


def on_lost_link(state: State, now: Micros, request: Request) -> None:
    """WORKING will not be answered."""
    left = [job for job in request.jobs if state.jobs.get(job.id) is job]
    for job in left:
        job.is_asked = False
        if job.renew_at < NEVER:
            job.renew_at = now
            watch(state, job)


def untie(state: State, now: Micros, link: Link) -> None:
    """The node soon returns the jobs that are tied to this connection, unless their leases are
    renewed first."""
    for job in state.jobs.values():
        if job.link == link.number:
            job.link = 0
            if job.renew_at < NEVER and state.phase is not Phase.STOPPED:
                job.renew_at = now
                watch(state, job)
