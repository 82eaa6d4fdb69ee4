"""Tells nodes which of the held jobs begin (BEGIN), so that the others pay nothing if this process
dies (decision 103).

BEGIN is written before the handlers start, so a job that kills its process at once is counted, too.
It goes on the connection on which no GETJOB waits.
"""

from collections.abc import Sequence

from disque_trio.worker.engine import connecting, leases, words
from disque_trio.worker.engine.records import (
    NEVER,
    Job,
    Micros,
    Node,
    Request,
    Stage,
    State,
    Verb,
)


def note(state: State, job: Job) -> None:
    """It begins: its node is to be told, if that takes it for held."""
    if job.is_unbegun:
        job.is_unbegun = False
        state.begun.append(job)


def tell(state: State, now: Micros) -> None:
    """Send BEGIN for those that begin in this turn. A node that rests is told later."""
    if not state.begun:
        return
    groups: dict[str, list[Job]] = {}
    for job in state.begun:
        groups.setdefault(job.node, []).append(job)
    state.begun = []
    for name, jobs in groups.items():
        node = state.nodes[name]
        if node.rests_until > now:
            state.begun += [job for job in jobs if _runs(state, job)]
            continue
        for at in range(0, len(jobs), leases.BATCH):
            _send(state, now, node, jobs[at : at + leases.BATCH])


def deadline(state: State) -> Micros:
    """When a node that rests may be told."""
    return min((state.nodes[job.node].rests_until for job in state.begun), default=NEVER)


def _runs(state: State, job: Job) -> bool:
    is_here = state.jobs.get(job.id) is job and job.stage is Stage.RUNNING
    return is_here and job.lost is None


def _send(state: State, now: Micros, node: Node, jobs: Sequence[Job]) -> None:
    said = (b"BEGIN", *(words.named(node, job) for job in jobs))
    link = connecting.control_of(state, now, node)
    connecting.send(state, now, link, said, (Verb.BEGIN, tuple(jobs)), is_first=True)


def on_lost_link(state: State, request: Request) -> None:
    """Whether the node has heard is unknown: those that run are named again."""
    state.begun += [job for job in request.jobs if _runs(state, job)]
