"""Two processes with one node ID, for example because a node's directory was copied.

Each process announces its incarnation, a number of its own, in PING, PONG and MEET. A node that
receives frames with one node ID from two processes, at two addresses, sends each the other's
address in gossip. A process that receives another address for its own ID dials it: an answer with
the ID and another incarnation proves a second process. The process that was started later yields,
unless the other one yields already. It refuses commands that write, closes its links, and sends
nothing to other nodes until the other process has not answered for half a minute (docs/bus.md).

A process accepts another incarnation of its own ID only on a link that it has dialled. Original
nodes announce none, and are not checked. Owns `Cluster.duplicate`, `incarnation`, `refusal`,
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
"""After this time without an answer, the other process counts as stopped."""
MAX_ADDRESSES: Final = 16
"""How many addresses of this process itself are kept."""


def is_yielding(node: NodeState) -> bool:
    """Does this process yield its ID to another one?"""
    return bool(node.cluster.incarnation & YIELDS)


# Detection by a third node.


def note(node: NodeState, peer: Peer, frame: Frame, ip: str) -> None:
    """Record the process that sent a frame with a peer's ID. Up to three processes are kept."""
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
    """A process that has recently used this ID at another address than the latest one; None if
    there is none."""
    latest = peer.processes[-1]
    for each in peer.processes[:-1]:
        is_recent = node.mono - each.last_seen <= node.config.cluster_node_timeout
        if is_recent and (each.ip, each.port) != (latest.ip, latest.port):
            return each
    return None


# Detection by one of the two processes.


def on_own_id_in_gossip(node: NodeState, ip: str, port: int) -> None:
    """Gossip has this address for this node's ID: dial it if it is new."""
    cluster = node.cluster
    own = (cluster.myself.ip, cluster.myself.port)
    if cluster.incarnation and (ip, port) != own and (ip, port) not in cluster.own_addresses:
        _probe(node, ip, port)


def _probe(node: NodeState, ip: str, port: int) -> None:
    if node.mono >= node.cluster.probe_at:
        node.cluster.probe_at = node.mono + PROBE_EVERY
        meet_by_gossip(node, ip, port)


def on_own_id(node: NodeState, link: Link, frame: Frame) -> None:
    """Handle a frame with this node's own ID. Only a frame on a dialled link proves which process
    is at its address."""
    cluster = node.cluster
    if not frame.incarnation or not cluster.incarnation:
        return
    is_other = (frame.incarnation ^ cluster.incarnation) & ~YIELDS
    if link.peer is None:
        if is_other:
            # Even at this node's own address in nodes.conf, because the file may be a copy.
            _probe(node, link.remote_ip, frame.port)
    elif is_other:
        _meet_other(node, link.peer, frame.incarnation)
    elif len(cluster.own_addresses) < MAX_ADDRESSES:
        cluster.own_addresses[link.peer.ip, link.peer.port] = None
        cluster.probe_at = 0  # this address is not probed again, so another one may be


def _meet_other(node: NodeState, place: Peer, incarnation: int) -> None:
    """Record another process with this ID, and decide which of the two yields."""
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
    """Once per second: check whether the other process still answers."""
    other = node.cluster.duplicate
    if other is None:
        return
    if node.mono - other.last_seen > MEMORY:
        node.cluster.duplicate = None
        if is_yielding(node):
            _go_on(node)
    else:
        _probe(node, other.ip, other.port)
