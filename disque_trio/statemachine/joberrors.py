"""The last error of a job: what the last NACK with ERROR said (docs/bus.md, "Errors of jobs").

It is in the job's extensions, so that copies and journals have it, until the job ends. The node of
the NACK tells the other holders; of two errors the later holds, wherever they come from.
"""

from typing import Final

import attrs

from disque_trio.statemachine import journaling, send
from disque_trio.statemachine.base import ERRORS, QUEUED
from disque_trio.statemachine.extensions import Extensions, LastError
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.memory import put_extensions
from disque_trio.statemachine.messages import JobError
from disque_trio.statemachine.state import NodeState

_NOTHING: Final = Extensions()


def note(node: NodeState, job: Job, text: bytes) -> None:
    """A worker says why it gives the job back. `announce` is to follow."""
    learn(node, job, LastError(max(node.wall, job.error.at + 1), text))


def announce(node: NodeState, job: Job) -> None:
    """Let the other holders know, and the journal, if the NACK has not recorded the job."""
    if job.state == QUEUED:
        journaling.renew(node, job)
    error = job.error
    found = [node.cluster.nodes.get(id) for id in job.holders]
    links = [peer.link for peer in found if peer and peer.link and peer.capabilities & ERRORS]
    send.broadcast(node, links, JobError(job.id, error.at, error.text))


def learn(node: NodeState, job: Job, error: LastError) -> bool:
    """Keep this error if it is later than the one that is known: is it?"""
    if error.order <= job.error.order:
        return False
    known = job.extensions or _NOTHING
    put_extensions(node.memory, job, attrs.evolve(known, error=error))
    return True
