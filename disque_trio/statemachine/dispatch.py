"""What a member says about jobs and nodes: each message goes to the part of the protocol it is of.

Gossip, which strangers may send too, is `membership`'s.
"""

from collections.abc import Callable
from typing import Any, Final

from disque_trio.statemachine import (
    acks,
    delivery,
    failure,
    federation,
    introductions,
    offering,
    pausing,
    repair,
    replication,
    requeue,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import (
    DelJob,
    Enqueue,
    Fail,
    GotAck,
    GotJob,
    HaveJobs,
    Holders,
    Message,
    NeedJobs,
    Pause,
    Queued,
    ReplJob,
    SetAck,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.statemachine.state import NodeState

ON_MESSAGE: Final[dict[type, Callable[[NodeState, Peer, Any], None]]] = {
    Fail: failure.on_fail,
    ReplJob: replication.on_repljob,
    GotJob: repair.on_gotjob,
    Enqueue: requeue.on_enqueue,
    Queued: requeue.on_queued,
    Working: requeue.on_working,
    WillQueue: requeue.on_willqueue,
    SetAck: acks.on_setack,
    GotAck: acks.on_gotack,
    DelJob: acks.on_deljob,
    NeedJobs: offering.on_needjobs,
    YourJobs: federation.on_yourjobs,
    Waiting: offering.on_waiting,
    HaveJobs: federation.on_havejobs,
    Holders: introductions.on_holders,
    Pause: pausing.on_pause,
}

_MOVE_JOBS: Final = (ReplJob, YourJobs, NeedJobs)
"""Messages that make a node take or give jobs; without a journal to write it does neither."""


def receive(node: NodeState, sender: Peer, messages: tuple[Message, ...]) -> None:
    """A member says this, in this order. Clients who wait for jobs are served in between."""
    for message in messages:
        if node.refusal is not None and isinstance(message, _MOVE_JOBS):
            continue
        ON_MESSAGE[type(message)](node, sender, message)
        if node.ready:
            delivery.serve_ready(node)
