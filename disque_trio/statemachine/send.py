"""Sending: messages to links, and replies to clients.

Sending is best effort, as in the original: a message to a node without a link is dropped (original
5.1). Writes only `Cluster.messages_sent`, `Outbox.messages` and `Outbox.replies`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from disque_trio.statemachine.base import (
    HANDSHAKE,
    PENDING,
    SILENCE,
    JobId,
    LinkId,
    NodeId,
    Reply,
)
from disque_trio.statemachine.client import Client, ReplyMode
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import AboutJob, Many, Message
from disque_trio.statemachine.state import NodeState

_ON: Final = ReplyMode.ON
_REFUSED: Final = ReplyMode.REFUSED


def on_link(node: NodeState, link: LinkId, message: Message) -> None:
    """Send on one link, whichever side opened it."""
    node.cluster.messages_sent += 1
    node.out.messages.append(((link,), message))


def to_node(node: NodeState, peer: Peer, message: Message) -> bool:
    """Send on our outgoing link to `peer`. Returns False if there is none."""
    if not peer.link:
        return False
    on_link(node, peer.link, message)
    return True


def to_ids(node: NodeState, ids: Iterable[NodeId], message: Message) -> None:
    """Send to the linked nodes among `ids`, except this one."""
    find = node.cluster.nodes.get
    # This node has no link to itself.
    links = [peer.link for id in ids if (peer := find(id)) is not None and peer.link]
    broadcast(node, links, message)


def of_many(
    node: NodeState, ids: Iterable[NodeId], message: AboutJob, jobs: Sequence[JobId]
) -> None:
    """Send the same message about each of these jobs to the linked nodes among `ids`. `message` is
    the one about the first job."""
    find = node.cluster.nodes.get
    links = [peer.link for id in ids if (peer := find(id)) is not None and peer.link]
    broadcast_many(node, links, message, jobs)


def broadcast_many(
    node: NodeState, links: list[LinkId], message: AboutJob, jobs: Sequence[JobId]
) -> None:
    """Send the same message about each of these jobs on all of these links. `message` is the one
    about the first job."""
    if links:
        node.cluster.messages_sent += len(links) * len(jobs)
        node.out.messages.append((links, message if len(jobs) == 1 else Many(message, jobs)))


def to_holders(node: NodeState, job: Job, message: Message) -> None:
    """Send to the other nodes that may hold a copy of the job."""
    if len(job.holders) > 1 or job.holders != (node.cluster.myself.id,):
        to_ids(node, job.holders, message)


def to_all(node: NodeState, message: Message) -> None:
    """Send to every connected node that is not in handshake."""
    links = [
        peer.link
        for peer in node.cluster.nodes.values()
        if peer.link and not peer.flags & HANDSHAKE
    ]
    broadcast(node, links, message)


def broadcast(node: NodeState, links: list[LinkId], message: Message) -> None:
    """Send on all of these links."""
    if links:
        node.cluster.messages_sent += len(links)
        node.out.messages.append((links, message))


def answer(node: NodeState, client: Client, reply: Reply) -> None:
    """Send a reply to a client, unless CLIENT REPLY suppresses it."""
    if reply is not SILENCE and (client.reply_mode is _ON or client.reply_mode is _REFUSED):
        node.out.replies.append((client, reply))


def answer_if_any(node: NodeState, client: Client, reply: Reply) -> None:
    """Send a reply to a client, unless it is PENDING."""
    if reply is not PENDING:
        answer(node, client, reply)
