"""The last error of a job: the text of the last NACK with ERROR (docs/bus.md, "Errors of jobs").

It is part of the job's extensions, so copies and journals include it until the job ends. The node
that receives the NACK sends it to the other holders. The later of two errors applies.
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
    """Set the error with which a worker returns the job. The caller must call `announce` next."""
    learn(node, job, LastError(max(node.wall, job.error.at + 1), text))


def announce(node: NodeState, job: Job) -> None:
    """Send the error to the other holders, and write it to the journal if the job is queued."""
    if job.state == QUEUED:
        journaling.renew(node, job)
    error = job.error
    found = [node.cluster.nodes.get(id) for id in job.holders]
    links = [peer.link for peer in found if peer and peer.link and peer.capabilities & ERRORS]
    send.broadcast(node, links, JobError(job.id, error.at, error.text))


def learn(node: NodeState, job: Job, error: LastError) -> bool:
    """Keep this error if it is later than the current one. Returns whether it is."""
    if error.order <= job.error.order:
        return False
    known = job.extensions or _NOTHING
    put_extensions(node.memory, job, attrs.evolve(known, error=error))
    return True
