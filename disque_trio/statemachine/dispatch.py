"""Dispatch of messages of members to the module that handles each type.

`membership` handles PING, PONG and MEET, which unknown nodes may send too.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from disque_trio.statemachine import (
    acks,
    deadletters,
    delivery,
    federation,
    holder_exchange,
    keeping,
    key_cancel,
    key_claim,
    limiting,
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
    ALL_MESSAGES,
    GossipMessage,
    Many,
    Message,
    NeedJobs,
    ReplJob,
    YourJobs,
    name_of,
    singles,
)
from disque_trio.statemachine.state import NodeState

Handler = Callable[[NodeState, Peer, Any], None]

_HANDLERS: Final[tuple[Any, ...]] = (
    membership,
    replication,
    repair,
    requeue,
    acks,
    offering,
    federation,
    holder_exchange,
    deadletters,
    key_claim,
    key_cancel,
    pausing,
    limiting,
    keeping,
    purging,
)
"""The modules that handle messages: exactly one has the function `on_<name>` of each message."""


def _handler(name: str) -> Handler:
    [handler] = [getattr(each, name) for each in _HANDLERS if hasattr(each, name)]
    found: Handler = handler
    return found


ON_MESSAGE: Final[dict[type, Handler]] = {
    kind: _handler(f"on_{name_of(kind)}")
    for kind in ALL_MESSAGES
    if not issubclass(kind, GossipMessage)
}

_MOVE_JOBS: Final = (ReplJob, YourJobs, NeedJobs)
"""Messages that make a node accept or send jobs. A node that refuses commands, such as one that
cannot write its journal, ignores them."""


def _receive_many(node: NodeState, sender: Peer, message: Many) -> None:
    handle = many.ON_MANY.get(type(message.said))
    if handle is not None:
        handle(node, sender, message.said, message.ids)
        return
    for single in singles(message):
        ON_MESSAGE[type(single)](node, sender, single)


def receive(node: NodeState, sender: Peer, messages: Sequence[Message]) -> None:
    """Handle a member's messages in order. After each one, new jobs are delivered to waiting
    clients."""
    is_traced = node.traces.is_on
    for message in messages:
        if node.refusal is not None and isinstance(message, _MOVE_JOBS):
            continue
        if is_traced:
            trace.received(node, sender.id, message)
        if isinstance(message, Many):
            _receive_many(node, sender, message)
        else:
            ON_MESSAGE[type(message)](node, sender, message)
        if node.ready:
            delivery.serve_ready(node)
