"""Failure detector: suspicion (PFAIL) on a timeout, a verdict (FAIL) by majority (original 5.7).

Owns `Peer.reports`. A node that does not answer a ping in time is suspected. If a majority suspects
it, it has failed, and FAIL is sent to all nodes. Its next PONG clears both flags. Failure only
affects where new copies are placed and where clients connect. It never moves jobs.
"""

from disque_trio.statemachine import send, watchers
from disque_trio.statemachine.base import FAIL, PFAIL, NodeId
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.messages import Fail
from disque_trio.statemachine.nodetable import mark, unmark
from disque_trio.statemachine.state import NodeState


def suspect_if_silent(node: NodeState, peer: Peer) -> None:
    """Suspect the node after the node timeout without an answer to its ping; after half of it if
    another node has reported the node as silent."""
    if not peer.ping_sent or peer.flags & (PFAIL | FAIL):
        return
    silence, timeout = node.mono - peer.ping_sent, node.config.cluster_node_timeout
    if silence > timeout or (silence > timeout // 2 and watchers.is_doubted(node, peer)):
        mark(node, peer, PFAIL)
        if node.cluster.ring:  # other nodes may have voted before
            _decide(node, peer)


def report(node: NodeState, peer: Peer, reporter: NodeId) -> None:
    """Record that another node has flagged `peer` as PFAIL or FAIL. With a majority of reports, and
    if suspected here, the node has failed."""
    peer.reports[reporter] = node.mono
    _decide(node, peer)


def _decide(node: NodeState, peer: Peer) -> None:
    if peer.flags & PFAIL and _votes(node, peer) > node.cluster.size // 2:
        mark_failed(node, peer)
        send.to_all(node, Fail(peer.id))


def withdraw(peer: Peer, reporter: NodeId) -> None:
    """Remove the report of a node that no longer suspects `peer`."""
    peer.reports.pop(reporter, None)


def _votes(node: NodeState, peer: Peer) -> int:
    """The number of current reports, including our own. Removes old ones."""
    oldest = node.mono - 2 * node.config.cluster_node_timeout
    for reporter in [reporter for reporter, at in peer.reports.items() if at < oldest]:
        del peer.reports[reporter]
    return len(peer.reports) + 1


def mark_failed(node: NodeState, peer: Peer) -> None:
    """Flag the node as failed."""
    mark(node, peer, FAIL)
    unmark(node, peer, PFAIL)


def recover(node: NodeState, peer: Peer) -> None:
    """Clear the failure flags of a node that has answered."""
    unmark(node, peer, PFAIL | FAIL)
