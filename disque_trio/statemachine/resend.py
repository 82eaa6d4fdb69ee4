"""Resending of SETACKs and JOBSTATEs that a node has missed, as soon as it returns (docs/bus.md).

The collection of an acknowledged job repeats SETACK with pauses of up to three minutes. A holder
that was unreachable would receive it after the next pause, and could deliver the job until then; if
the node with the acknowledgement stops meanwhile, it would never receive it. So a node that answers
on a new link, or after it was suspected, receives the SETACKs that it has not confirmed, once, and
JOBSTATE for its dead jobs. The schedule of the collection does not change.

The work is done in slices, and only for dead jobs and for acknowledged ones that are not collected
yet. Dead jobs are listed a queue at a time, because any number of them may be kept. Owns `Resend`
and `Peer.resent_on`.
"""

from typing import Final

from disque_trio.statemachine import acks
from disque_trio.statemachine.base import ACKED, DEAD, FAIL, PFAIL, JobId, Millis, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.copies import send_state
from disque_trio.statemachine.state import NodeState, Resend

RUN_EVERY: Final[Millis] = 20

_FAILING: Final = PFAIL | FAIL


def is_back(peer: Peer) -> bool:
    """Is this answer the first on its link, or the first after the node was suspected?"""
    return peer.resent_on != peer.link or bool(peer.flags & _FAILING)


def begin(node: NodeState, peer: Peer) -> None:
    """A node has returned: resend the SETACKs and JOBSTATEs that it has missed, in this and later
    slices."""
    peer.resent_on = peer.link
    resend = node.resend
    if not node.memory.evictable and not node.memory.dummies and not node.dead:
        return
    resend.returned[peer.id] = None
    if not resend.ids and not resend.queues:
        _begin_pass(node)
        on_due(node, resend)


def _begin_pass(node: NodeState) -> None:
    """Begin a pass over the current jobs. The list is processed from its end, the earliest
    acknowledgement first. The next pass serves nodes that return meanwhile."""
    resend, memory = node.resend, node.memory
    resend.to, resend.returned = tuple(resend.returned), {}
    # `dict.keys` of an OrderedDict takes 1/17 of the time of its own iterator.
    resend.ids = [*dict.keys(memory.dummies), *reversed(dict.keys(memory.evictable))]
    resend.queues = list(node.dead)


def on_due(node: NodeState, resend: Resend) -> None:
    """One slice of the pass."""
    linked = [id for id in resend.to if _is_linked(node, id)]
    if not linked:
        resend.ids.clear()
        resend.queues.clear()
    for job_id in _next(node, resend):
        job = node.jobs.get(job_id)
        if job is not None and job.state == ACKED:
            acks.ask_again(node, job, linked)
        elif job is not None and job.state == DEAD:
            send_state(node, job, [id for id in linked if id in job.holders])
    if not resend.ids and not resend.queues and resend.returned:
        _begin_pass(node)
    if resend.ids or resend.queues:
        node.timers.arm(resend, node.mono + RUN_EVERY)


def _next(node: NodeState, resend: Resend) -> list[JobId]:
    """The jobs of the next slice: acknowledged ones first, then dead ones, queue by queue."""
    if len(resend.ids) < node.knobs.resend_looks and resend.queues:
        dead: list[JobId] = []
        while resend.queues and len(dead) < node.knobs.resend_looks:
            dead += node.dead.get(resend.queues.pop(), ())
        resend.ids = dead + resend.ids
    ids = resend.ids[-node.knobs.resend_looks :]
    del resend.ids[-node.knobs.resend_looks :]
    ids.reverse()
    return ids


def _is_linked(node: NodeState, id: NodeId) -> bool:
    peer = node.cluster.nodes.get(id)
    return peer is not None and peer.is_connected
