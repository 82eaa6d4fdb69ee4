"""Reports to nodes which of the held jobs have started (BEGIN). If this process dies, nodes count a
delivery without an outcome only for these jobs (decision 103).

Most jobs end before that matters, so BEGIN names the jobs that still run after a moment. If a job
kills its process immediately, it is not named; its node then marks it for the next worker. For such
a job, and for a suspect, BEGIN is written before the handler starts; this also happens for a sample
of all jobs, because a node may have lost the state. BEGIN is sent on the connection without GETJOB.
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
"""BEGIN names a job if it still runs after this time."""
SAMPLE: Final = 256
"""One of this many jobs is named immediately."""


def note(state: State, now: Micros, job: Job) -> None:
    """A job starts that its node regards as held."""
    job.is_unbegun = False
    state.begun_count += 1
    is_urgent = job.is_doubtful or not state.begun_count % SAMPLE
    due = now if is_urgent else now + LINGER
    state.begun.append((due, job))
    state.begin_at = min(state.begin_at, due)


def send(state: State, now: Micros) -> None:
    """Send BEGIN for the jobs that have started, if it is time. A node that rests receives it
    later."""
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
    """It is unknown whether the node received BEGIN: name the jobs that still run again."""
    again = [(0, job) for job in request.jobs if _runs(state, job)]
    if again:
        state.begun += again
        state.begin_at = 0
