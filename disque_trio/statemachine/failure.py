"""Failure detector: suspicion (PFAIL) on a timeout, a verdict (FAIL) by majority (original 5.7).

Owns `Peer.reports`. A node that does not answer a ping in time is suspected; one that a majority
suspects has failed, and all nodes are told. Both flags are cleared by its next PONG.
Failure decides only where new copies go and where clients connect: jobs never move because of it.
"""

from disque_trio.statemachine import send, watchers
from disque_trio.statemachine.base import FAIL, PFAIL, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Fail
from disque_trio.statemachine.nodetable import mark, unmark
from disque_trio.statemachine.state import NodeState


def suspect_if_silent(node: NodeState, peer: Peer) -> None:
    """Suspect the node once its ping has been unanswered for longer than the node timeout, or for
    half of it, and another node has had no answer for all of it."""
    if not peer.ping_sent or peer.flags & (PFAIL | FAIL):
        return
    silence, timeout = node.mono - peer.ping_sent, node.config.cluster_node_timeout
    if silence > timeout or (silence > timeout // 2 and watchers.is_doubted(node, peer)):
        mark(node, peer, PFAIL)
        if node.cluster.ring:  # the votes of others may have come before
            _decide(node, peer)


def report(node: NodeState, peer: Peer, reporter: NodeId) -> None:
    """Another node has it flagged as PFAIL or FAIL. A majority of such reports is a verdict."""
    peer.reports[reporter] = node.mono
    _decide(node, peer)


def _decide(node: NodeState, peer: Peer) -> None:
    if peer.flags & PFAIL and _votes(node, peer) > node.cluster.size // 2:
        mark_failed(node, peer)
        send.to_all(node, Fail(peer.id))


def withdraw(peer: Peer, reporter: NodeId) -> None:
    """Another node does not suspect it any more."""
    peer.reports.pop(reporter, None)


def _votes(node: NodeState, peer: Peer) -> int:
    """The reports that are not too old, and our own."""
    oldest = node.mono - 2 * node.config.cluster_node_timeout
    for reporter in [reporter for reporter, at in peer.reports.items() if at < oldest]:
        del peer.reports[reporter]
    return len(peer.reports) + 1


def mark_failed(node: NodeState, peer: Peer) -> None:
    """Apply a verdict."""
    mark(node, peer, FAIL)
    unmark(node, peer, PFAIL)


def recover(node: NodeState, peer: Peer) -> None:
    """The node answers: clear its failure flags."""
    unmark(node, peer, PFAIL | FAIL)
