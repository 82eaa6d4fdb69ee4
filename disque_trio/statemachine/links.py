"""Bus links: the connections between nodes (original 5.1).

Every node opens one link to every other node and sends its messages there; a PONG is sent on the
link of its PING. A link that another node opened belongs to no peer, because each frame names its
sender.

Owns `Cluster.links`, `Cluster.last_link`, the addresses of a `Link`, of a peer `link`,
`link_created`, `is_connected`, and `Outbox.dials` and `Outbox.hangups`. A link is in the table
from the dial, or from being accepted, until one side ends it.
"""

from disque_trio.statemachine.address import literal_ip
from disque_trio.statemachine.base import LinkId
from disque_trio.statemachine.cluster import Link, Peer
from disque_trio.statemachine.heartbeat import rouse
from disque_trio.statemachine.state import NodeState


def accepted(node: NodeState, local_ip: str, remote_ip: str) -> LinkId:
    """Register a link that another node has opened. Its frames name the node."""
    link = _number(node, None)
    link.local_ip = literal_ip(local_ip)
    link.remote_ip = literal_ip(remote_ip)
    return link.id


def dial(node: NodeState, peer: Peer) -> LinkId:
    """Open our link to the node. Messages may be sent at once: the driver buffers them until the
    link is up."""
    link = _number(node, peer)
    peer.link = link.id
    peer.link_created = node.mono
    peer.is_connected = False
    node.out.dials.append((link.id, peer.ip, peer.bus))
    return link.id


def _number(node: NodeState, peer: Peer | None) -> Link:
    cluster = node.cluster
    cluster.last_link += 1
    link = Link(cluster.last_link, peer)
    cluster.links[link.id] = link
    return link


def linked(node: NodeState, link_id: LinkId, local_ip: str, remote_ip: str) -> None:
    """A link that this node dialled is up."""
    link = node.cluster.links.get(link_id)
    if link is None or link.peer is None:
        return
    link.local_ip = literal_ip(local_ip)
    link.remote_ip = literal_ip(remote_ip)
    link.peer.is_connected = True


def unlinked(node: NodeState, link_id: LinkId) -> None:
    """A link was closed, or connecting failed. The heartbeat dials again."""
    link = node.cluster.links.pop(link_id, None)
    if link is not None and link.peer is not None:
        link.peer.link = 0
        link.peer.is_connected = False
        rouse(node)


def hang_up_all(node: NodeState) -> None:
    """Close every link, including those that other nodes opened."""
    for link_id in list(node.cluster.links):
        node.out.hangups.append(link_id)
        unlinked(node, link_id)


def hang_up(node: NodeState, peer: Peer) -> None:
    """Close our link to the node, connecting or up, and remove it from the table."""
    if peer.link:
        node.out.hangups.append(peer.link)
        unlinked(node, peer.link)
