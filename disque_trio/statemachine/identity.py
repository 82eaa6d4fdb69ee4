"""Two processes with one node ID: a copied directory, whose copy runs beside the original.

Each process announces a number of its own in PING, PONG and MEET, its incarnation. A node that
receives frames of two processes with one node ID, from two addresses, tells each of the other by
gossip. A process that finds its own ID at another address in gossip dials it: an answer with the ID
and another incarnation shows a second process. Of the two, the one that was started later yields,
unless the other does so already: it refuses commands that write, closes its links, and sends
nothing to other nodes until the other has not answered for half a minute (docs/bus.md).

Incarnations of other nodes are believed only from an address that was dialled. Original nodes
announce none, and are not checked. Owns `Cluster.duplicate`, `incarnation`, `refusal`,
`own_addresses` and `probe_at`, `Process`, `Peer.processes`, and `NodeState.refusal` while this
process yields.
"""

from typing import Final

from disque_trio.statemachine import offering, waiters
from disque_trio.statemachine.base import Failure, Millis
from disque_trio.statemachine.cluster import YIELDS, Duplicate, Link, Peer, Process
from disque_trio.statemachine.handshake import meet_by_gossip
from disque_trio.statemachine.links import hang_up_all
from disque_trio.statemachine.messages import Frame
from disque_trio.statemachine.state import NodeState

PROBE_EVERY: Final[Millis] = 5000
MEMORY: Final[Millis] = 30_000
"""After so long without an answer of the other process it is gone."""
MAX_ADDRESSES: Final = 16
"""So many addresses of this process itself are remembered."""


def is_yielding(node: NodeState) -> bool:
    """Does this process yield its ID to another one?"""
    return bool(node.cluster.incarnation & YIELDS)


# As a third node.


def note(node: NodeState, peer: Peer, frame: Frame, ip: str) -> None:
    """Note the process that sent a frame under the ID of a peer. The last two are remembered."""
    if not frame.incarnation or frame.incarnation & YIELDS:
        return
    processes = peer.processes
    if not processes or processes[-1].incarnation != frame.incarnation:
        peer.processes = processes = (
            *(each for each in processes[-2:] if each.incarnation != frame.incarnation),
            Process(frame.incarnation),
        )
    latest = processes[-1]
    latest.ip, latest.port, latest.last_seen = ip, frame.port, node.mono


def other_process(node: NodeState, peer: Peer) -> Process | None:
    """A process that used this ID lately from another address than the last one; None if none
    did."""
    latest = peer.processes[-1]
    for each in peer.processes[:-1]:
        is_recent = node.mono - each.last_seen <= node.config.cluster_node_timeout
        if is_recent and (each.ip, each.port) != (latest.ip, latest.port):
            return each
    return None


# As one of the two.


def on_own_id_in_gossip(node: NodeState, ip: str, port: int) -> None:
    """Gossip gives this address for this node's ID: dial it, if it is new, to see what answers."""
    cluster = node.cluster
    own = (cluster.myself.ip, cluster.myself.port)
    if cluster.incarnation and (ip, port) != own and (ip, port) not in cluster.own_addresses:
        _probe(node, ip, port)


def _probe(node: NodeState, ip: str, port: int) -> None:
    if node.mono >= node.cluster.probe_at:
        node.cluster.probe_at = node.mono + PROBE_EVERY
        meet_by_gossip(node, ip, port)


def on_own_id(node: NodeState, link: Link, frame: Frame) -> None:
    """A frame has this node's own ID. On a link that was dialled it shows which process is
    there."""
    cluster = node.cluster
    if not frame.incarnation or not cluster.incarnation:
        return
    is_other = (frame.incarnation ^ cluster.incarnation) & ~YIELDS
    if link.peer is None:
        if is_other:
            # Also if it is this node's address in nodes.conf: the file may be a copy.
            _probe(node, link.remote_ip, frame.port)
    elif is_other:
        _meet_other(node, link.peer, frame.incarnation)
    elif len(cluster.own_addresses) < MAX_ADDRESSES:
        cluster.own_addresses[link.peer.ip, link.peer.port] = None
        cluster.probe_at = 0  # it will not be asked again, so another may be


def _meet_other(node: NodeState, place: Peer, incarnation: int) -> None:
    """There is another process with this ID: note it, and decide which of the two goes on."""
    cluster = node.cluster
    cluster.duplicate = Duplicate(place.ip, place.port, node.mono)
    other_yields, is_older = bool(incarnation & YIELDS), incarnation & ~YIELDS < cluster.incarnation
    if not is_yielding(node):
        if is_older and not other_yields:
            _yield(node, cluster.duplicate)
    elif other_yields and cluster.incarnation & ~YIELDS < incarnation & ~YIELDS:
        _go_on(node)


def _yield(node: NodeState, other: Duplicate) -> None:
    node.cluster.incarnation |= YIELDS
    node.cluster.refusal = Failure(
        b"DUPLICATEID Another process with the node ID of this one runs at %b. Give this one a "
        b"directory of its own without a copied nodes.conf, or stop the other" % other.address
    )
    if node.refusal is None:
        node.refusal = node.cluster.refusal
        waiters.release_all_for_jobs(node, node.refusal)
    hang_up_all(node)


def _go_on(node: NodeState) -> None:
    cluster = node.cluster
    cluster.incarnation &= ~YIELDS
    refused, cluster.refusal = cluster.refusal, None
    if node.refusal is refused:
        node.refusal = None
        offering.offer_all_anew(node)


def watch(node: NodeState) -> None:
    """Once a second: check whether the other process still answers."""
    other = node.cluster.duplicate
    if other is None:
        return
    if node.mono - other.last_seen > MEMORY:
        node.cluster.duplicate = None
        if is_yielding(node):
            _go_on(node)
    else:
        _probe(node, other.ip, other.port)
