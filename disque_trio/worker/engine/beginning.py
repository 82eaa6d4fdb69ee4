"""Tells nodes which of the held jobs begin (BEGIN), so that the others pay nothing if this process
dies (decision 103).

Most jobs end before that matters, so BEGIN names those that still run after a moment. A job that
kills its process at once is not counted so, but its node tells so to the worker that gets it next
(decision 103). BEGIN for such a job, and for a suspect, is written before its handler starts; now
and then also for another one, because a node may have forgotten.
It goes on the connection on which no GETJOB waits.
"""

from collections.abc import Sequence
from typing import Final

from disque_trio.worker.engine import connecting, leases, words
from disque_trio.worker.engine.records import (
    MILLI,
    NEVER,
    RUNNING,
    Job,
    Micros,
    Node,
    Request,
    State,
    Verb,
)

LINGER: Final[Micros] = 20 * MILLI
"""After so long BEGIN names what has begun and still runs."""
SAMPLE: Final = 256
"""One of so many jobs is named at once in any case."""


def note(state: State, now: Micros, job: Job) -> None:
    """A job begins that its node takes for held."""
    job.is_unbegun = False
    state.begun_count += 1
    is_urgent = job.is_doubtful or not state.begun_count % SAMPLE
    due = now if is_urgent else now + LINGER
    state.begun.append((due, job))
    state.begin_at = min(state.begin_at, due)


def send(state: State, now: Micros) -> None:
    """Send BEGIN for those that have begun, if it is time. A node that rests is told later."""
    if now < state.begin_at:
        return
    groups: dict[str, list[Job]] = {}
    running = [(due, job) for due, job in state.begun if _runs(state, job)]
    state.begun = [(due, job) for due, job in running if due > now]
    state.begin_at = now + LINGER if state.begun else NEVER
    for due, job in running:
        if due <= now:
            groups.setdefault(job.node, []).append(job)
    for name, jobs in groups.items():
        node = state.nodes[name]
        if node.rests_until > now:
            state.begun += [(node.rests_until, job) for job in jobs]
            state.begin_at = min(state.begin_at, node.rests_until)
            continue
        for at in range(0, len(jobs), leases.BATCH):
            _send(state, now, node, jobs[at : at + leases.BATCH])


def _runs(state: State, job: Job) -> bool:
    is_here = state.jobs.get(job.id) is job and job.stage is RUNNING
    return is_here and job.lost is None


def _send(state: State, now: Micros, node: Node, jobs: Sequence[Job]) -> None:
    command = (b"BEGIN", *(words.named(node, job) for job in jobs))
    link = connecting.control_of(state, now, node)
    connecting.send(state, now, link, command, (Verb.BEGIN, tuple(jobs)), is_first=True)


def on_lost_link(state: State, request: Request) -> None:
    """Whether the node has heard is unknown: those that run are named again."""
    again = [(0, job) for job in request.jobs if _runs(state, job)]
    if again:
        state.begun += again
        state.begin_at = 0
