"""Gossip: the entries about other nodes in PING, PONG and MEET, and the pings themselves (original
5.6, 5.7).

Owns `Peer.ping_sent` and `Peer.pong_received`. Each message has entries about a few nodes, failing
ones first. They spread the members of the cluster, and suspicions.
"""

from typing import Final

from disque_trio.statemachine import send, watchers
from disque_trio.statemachine.base import FAIL, HANDSHAKE, MEET, NOADDR, PFAIL, Millis, NodeId
from disque_trio.statemachine.cluster import Peer, Process
from disque_trio.statemachine.failure import recover, report, withdraw
from disque_trio.statemachine.handshake import meet_by_gossip
from disque_trio.statemachine.identity import on_own_id_in_gossip
from disque_trio.statemachine.messages import Gossip, Meet, Ping
from disque_trio.statemachine.nodetable import is_banned
from disque_trio.statemachine.state import NodeState

MAX_ENTRIES: Final = 100
"""How many entries of a message are read: a tenth of the largest table (`handshake.MAX_NODES`)."""
_FEW: Final = 3
_NEWS: Final[Millis] = 60_000
"""How long a node counts as new. In this time, pings reach all nodes of a large cluster many
times."""
_NOT_LISTED: Final = HANDSHAKE | NOADDR
_FAILING: Final = PFAIL | FAIL


def ping(node: NodeState, peer: Peer) -> None:
    """Send a ping on our link. `ping_sent` remains the time of the first unanswered ping."""
    if peer.flags & MEET:
        send.to_node(node, peer, Meet(section(node)))
        return
    send.to_node(node, peer, Ping(section(node)))
    peer.ping_sent = peer.ping_sent or node.mono


def on_pong(node: NodeState, peer: Peer) -> None:
    """Handle an answer of the node."""
    peer.pong_received = node.mono
    peer.ping_sent = 0
    if node.cluster.ring or peer.doubted_at:
        watchers.settle(peer)
    recover(node, peer)


def expect_nothing(peer: Peer) -> None:
    """Cancel the unanswered ping, which did not reach the node. The timeout restarts with the next
    ping."""
    peer.ping_sent = 0


def section(node: NodeState) -> tuple[Gossip, ...]:
    """Entries about three random nodes and, in a large cluster, about three nodes that are new
    here.

    In a small cluster, the first draws accept only failing nodes, so that failures spread faster. A
    draw of a node that may not be listed is lost, as in the original.
    """
    nodes = list(node.cluster.nodes.values())
    entries: dict[bytes, Gossip] = {}
    if node.cluster.ring:
        new = [peer for peer in nodes if node.mono - peer.created < _NEWS]
        _draw(node, entries, new, _FEW)
        _draw(node, entries, nodes, len(entries) + _FEW)
    else:
        wanted = min(_FEW, len(nodes) - 2)
        _draw(node, entries, nodes, wanted, failing=wanted - 1)
    return tuple(entries.values())


def _draw(
    node: NodeState, entries: dict[bytes, Gossip], nodes: list[Peer], wanted: int, failing: int = 0
) -> None:
    """Add random entries until there are `wanted`, in a limited number of draws. The first
    `failing` draws accept only failing nodes."""
    draw_one, count = node.rng.random, len(nodes)
    for draw in range(wanted * 3 if nodes else 0):
        # randrange takes three times as long, and this is most of the work of an idle large
        # cluster.
        peer = nodes[int(draw_one() * count)]
        if draw < failing and not peer.flags & _FAILING:
            continue
        if peer.link and not peer.flags & _NOT_LISTED and peer.id not in entries:
            entries[peer.id] = _entry_of(node, peer)
            if len(entries) == wanted:
                break


def _entry_of(node: NodeState, peer: Peer) -> Gossip:
    return Gossip(
        peer.id,
        peer.ip.encode(),
        peer.port,
        peer.flags,
        wall_time(node, peer.ping_sent) & 0xFFFFFFFF,
        wall_time(node, peer.pong_received) & 0xFFFFFFFF,
        peer.bus_port,
    )


def entry_of_process(process: Process, id: NodeId) -> Gossip:
    """An entry with the address of another process with this node ID."""
    return Gossip(id, process.ip.encode(), process.port, 0)


def wall_time(node: NodeState, moment: Millis) -> Millis:
    """A monotonic time of this node as Unix milliseconds; 0 remains "never"."""
    return node.wall - (node.mono - moment) if moment else 0


def read_section(node: NodeState, teller: Peer, entries: tuple[Gossip, ...]) -> None:
    """Handle gossip entries from a known node."""
    for entry in entries[:MAX_ENTRIES]:
        peer = node.cluster.nodes.get(entry.id)
        if peer is None:
            if not entry.flags & NOADDR and not is_banned(node, entry.id):
                meet_by_gossip(node, *_place_of(entry))
        elif peer is node.cluster.myself:
            if not entry.flags & NOADDR:
                on_own_id_in_gossip(node, _ip_of(entry), entry.port)
        else:
            _compare(node, teller, peer, entry)


def _compare(node: NodeState, teller: Peer, peer: Peer, entry: Gossip) -> None:
    """Record whether `teller` suspects the node. If the node is failing here, it may have moved:
    dial the address in the entry."""
    if entry.flags & _FAILING:
        report(node, peer, teller.id)
    else:
        withdraw(peer, teller.id)
    if peer.flags & _FAILING and peer.place != _place_of(entry):
        meet_by_gossip(node, *_place_of(entry))


def _place_of(entry: Gossip) -> tuple[str, int, int]:
    return _ip_of(entry), entry.port, entry.bus_port


def _ip_of(entry: Gossip) -> str:
    return entry.ip.decode("ascii", "replace")
