"""Dispatch of the messages that members send: each goes to the module that handles its type.

PING, PONG and MEET, which unknown nodes may send too, go to `membership`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from disque_trio.statemachine import (
    acks,
    claims,
    deadletters,
    delivery,
    federation,
    introductions,
    keyending,
    keysearch,
    many,
    membership,
    offering,
    pausing,
    purging,
    repair,
    replication,
    requeue,
    trace,
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
    JobState,
    KeyAnswer,
    KeyCancel,
    KeyClaim,
    Many,
    Message,
    NeedJobs,
    Pause,
    Postponed,
    Purge,
    Queued,
    ReplJob,
    SetAck,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
    singles,
)
from disque_trio.statemachine.state import NodeState

ON_MESSAGE: Final[dict[type, Callable[[NodeState, Peer, Any], None]]] = {
    Fail: membership.on_fail,
    ReplJob: replication.on_repljob,
    GotJob: repair.on_gotjob,
    Enqueue: requeue.on_enqueue,
    Queued: requeue.on_queued,
    Working: requeue.on_working,
    WillQueue: requeue.on_willqueue,
    Postponed: requeue.on_postponed,
    SetAck: acks.on_setack,
    GotAck: acks.on_gotack,
    DelJob: acks.on_deljob,
    NeedJobs: offering.on_needjobs,
    YourJobs: federation.on_yourjobs,
    Waiting: offering.on_waiting,
    HaveJobs: federation.on_havejobs,
    Holders: introductions.on_holders,
    JobState: deadletters.on_jobstate,
    KeyClaim: claims.on_keyclaim,
    KeyAnswer: keysearch.on_keyanswer,
    KeyCancel: keyending.on_keycancel,
    Pause: pausing.on_pause,
    Purge: purging.on_purge,
}

_MOVE_JOBS: Final = (ReplJob, YourJobs, NeedJobs)
"""Messages that make a node take or give jobs. It does neither while it cannot write its
journal."""


def _receive_many(node: NodeState, sender: Peer, message: Many) -> None:
    handle = many.ON_MANY.get(type(message.said))
    if handle is not None:
        handle(node, sender, message.said, message.ids)
        return
    for single in singles(message):
        ON_MESSAGE[type(single)](node, sender, single)


def receive(node: NodeState, sender: Peer, messages: Sequence[Message]) -> None:
    """Handle a member's messages in order. After each, waiting clients are given the new jobs."""
    is_traced = node.traces.is_on
    for message in messages:
        if node.refusal is not None and isinstance(message, _MOVE_JOBS):
            continue
        if is_traced:
            trace.heard(node, sender.id, message)
        if isinstance(message, Many):
            _receive_many(node, sender, message)
        else:
            ON_MESSAGE[type(message)](node, sender, message)
        if node.ready:
            delivery.serve_ready(node)
