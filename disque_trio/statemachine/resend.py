"""SETACKs and JOBSTATEs that a node has missed are sent again as soon as it is back (docs/bus.md).

The collection of an acknowledged job asks its holders again and again, with pauses of up to three
minutes. A holder that was cut off would receive the acknowledgement after the next pause, and
deliver the job until then; if the node that knows of the acknowledgement ends meanwhile, it would
never receive it. So a node that answers on a new link, or after it was suspected, is sent the
SETACKs that it has not confirmed, once, and told which of its jobs are dead. The schedule of the
collection does not change.

The work is done in slices, and only over dead jobs and acknowledged ones that are still collected.
Dead jobs are listed a queue at a time, because any number of them may be kept.
Owns `Resend` and `Peer.resent_on`.
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
    """The node answers again: send the acks that it has missed, now and in later slices."""
    peer.resent_on = peer.link
    resend = node.resend
    if not node.memory.evictable and not node.memory.dummies and not node.dead:
        return
    resend.returned[peer.id] = None
    if not resend.ids and not resend.queues:
        _begin_pass(node)
        on_due(node, resend)


def _begin_pass(node: NodeState) -> None:
    """Begin a pass over the jobs that wait now, the one acknowledged first at the list's end. A
    node that returns meanwhile is served by the next pass."""
    resend, memory = node.resend, node.memory
    resend.to, resend.returned = tuple(resend.returned), {}
    # Of an OrderedDict itself the IDs are looked up one by one, which takes 17 times as long.
    resend.ids = [*dict.keys(memory.dummies), *reversed(dict.keys(memory.evictable))]
    resend.queues = list(node.dead)


def on_due(node: NodeState, resend: Resend) -> None:
    """One slice."""
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
