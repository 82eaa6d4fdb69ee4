"""Asking all nodes about a key: which nodes are asked, and which are waited for (decision 70)."""

from collections.abc import Container, Iterable
from typing import Final

from disque_trio.statemachine.base import (
    CLAIMS,
    EXTENDS,
    FAIL,
    HANDSHAKE,
    MYSELF,
    NOADDR,
    PFAIL,
    POSTPONES,
    Failure,
    JobId,
    LinkId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState

ASK_EVERY: Final[Millis] = 100
TIMED_OUT: Final = b"NOREPL Timeout reached before all nodes have said whether the key is free"
_MUTE: Final = (
    b"NOREPL It cannot be known who has the key, because nodes of an earlier version cannot be"
    b" asked; upgrade them: "
)
NO_JOB: Final[JobId] = bytes(40)
AWAY: Final = HANDSHAKE | PFAIL | FAIL | NOADDR
"""Flags of a node that cannot be asked."""
_NOT_ASKED: Final = MYSELF | AWAY
_ANSWERS: Final = CLAIMS | POSTPONES
"""Of nodes that understand KEYCLAIM: the first ones with CLAIMS had another one, and no
POSTPONES."""


def awaited(
    node: NodeState, began: Millis, heard: dict[NodeId, Millis], answered: Container[NodeId]
) -> list[Peer]:
    """The nodes whose answers are needed: ours that can be reached, and those of which it is not
    known yet, on their present link, whether they are ours.

    A node that is not suspected and does not answer for long does not know this one. `began` is
    when this node began to ask, and `heard` when the others last answered. A node that has come, or
    returned, since then is silent from the beginning of its link. Those that have answered are not
    silent until they are asked anew.
    """
    silent_since = node.mono - 2 * node.config.cluster_node_timeout
    return [
        peer
        for peer in node.cluster.nodes.values()
        if not peer.flags & _NOT_ASKED
        and (not _is_heard(peer) or answers(peer) or _is_mute(peer))
        and (
            peer.id in answered
            or max(heard.get(peer.id, began), peer.link_created) >= silent_since
            or _is_mute(peer)
        )
    ]


def answers(peer: Peer) -> bool:
    """Does it understand KEYCLAIM?"""
    return peer.capabilities & _ANSWERS == _ANSWERS


def _is_mute(peer: Peer) -> bool:
    """May it have jobs with keys, and never answers?"""
    return bool(peer.capabilities & EXTENDS) and not answers(peer)


def links(peers: Iterable[Peer]) -> list[LinkId]:
    """The links of those that may answer."""
    return [peer.link for peer in peers if peer.link and not _is_mute(peer)]


def refusal(node: NodeState) -> Failure | None:
    """Why it cannot be known who has a key, as long as certain nodes can be reached; else None."""
    mute = [
        f"{peer.ip}:{peer.port}".encode()
        for peer in node.cluster.nodes.values()
        if not peer.flags & _NOT_ASKED and _is_mute(peer)
    ]
    return Failure(_MUTE + b", ".join(mute)) if mute else None


def _is_heard(peer: Peer) -> bool:
    return bool(peer.link) and peer.resent_on == peer.link


def timed_out(node: NodeState, job: Job) -> Failure:
    """The reply to an ADDJOB that has not learned in time whether its key is free. It names the
    nodes that have not answered, unless an earlier ADDJOB here is asking for the same key."""
    silent = [
        f"{peer.ip}:{peer.port}".encode()
        for claim in node.keys.asking.values()
        if claim.job is job
        for peer in awaited(node, claim.began, claim.heard, claim.answers)
        if peer.id not in claim.answers
    ]
    missing = b": no answer from " + b", ".join(silent) if silent else b""
    return Failure(TIMED_OUT + missing)
