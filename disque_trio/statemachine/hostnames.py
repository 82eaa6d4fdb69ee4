"""Host names: `cluster-seeds`, names of CLUSTER MEET, and `cluster-announce-ip`.

The driver looks names up (`Outbox.lookups`), so nothing here blocks. This node starts a handshake
with each address of a name at which no node is known. Names are looked up again every minute, and
every five seconds while a node is not connected, because it may have moved (decision 117).

Owns `Cluster.hosts` and `announced_ip`, `HostName`, and `Outbox.lookups`; sets `nodes_changed`.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from disque_trio.statemachine import handshake
from disque_trio.statemachine.address import literal_ip, parse_place
from disque_trio.statemachine.base import HANDSHAKE, Millis
from disque_trio.statemachine.chores import Lookup
from disque_trio.statemachine.cluster import HostName, Peer
from disque_trio.statemachine.heartbeat import rouse
from disque_trio.statemachine.nodetable import announce
from disque_trio.statemachine.state import NodeState

SOON: Final[Millis] = 5_000
"""The time between lookups while a node is not connected."""
LATER: Final[Millis] = 60_000
"""The time between lookups while all nodes are connected."""
MOST_ADDRESSES: Final = 32
"""How many addresses of one name are used."""


@attrs.frozen
class Unanswered:
    """An address of an operator's CLUSTER MEET, or of a seed, at which no node has answered for a
    second."""

    address: str
    """`host:port`."""
    bus: int
    """The bus port."""
    since: Millis
    error: str = ""
    """Why its name has no address; empty if it has one."""


# The names.


def configure(node: NodeState) -> None:
    """Apply the seeds and the announced address of the configuration."""
    cluster, config = node.cluster, node.config
    own = config.cluster_announce_ip
    seeds = [place for word in config.cluster_seeds if (place := parse_place(word))]
    cluster.hosts = kept = [
        host
        for host in cluster.hosts
        if (host.name == own if host.is_own else not host.is_seed or host.place in seeds)
    ]
    for name, port, bus_port in seeds:
        host = _add(node, HostName(name, port, bus_port))
        host.is_seed = True  # it may be from CLUSTER MEET
    literal = literal_ip(own)
    if literal or not own:
        cluster.announced_ip = literal
    elif not any(host.is_own for host in kept):
        cluster.announced_ip = ""
        _add(node, HostName(own, 0, is_own=True))
    announce(node)


def restore(node: NodeState, hosts: Iterable[HostName]) -> None:
    """Add the names of CLUSTER MEET that an earlier process has saved."""
    for host in hosts:
        _add(node, host)


def _add(node: NodeState, host: HostName) -> HostName:
    """The existing entry for this name, or a new one, which is looked up at the next heartbeat."""
    for known in node.cluster.hosts:
        if known.place == host.place:
            return known
    host.since = node.mono
    host.looked = node.mono - LATER
    node.cluster.hosts.append(host)
    rouse(node)
    return host


def meet(node: NodeState, place: tuple[str, int, int], lookup: Lookup) -> None:
    """CLUSTER MEET with a host name, which has been looked up: add the name and meet its
    addresses."""
    host = _add(node, HostName(*place))
    node.out.nodes_changed = True
    host.is_looking = True
    looked_up(node, host.name, lookup)


def forget(node: NodeState, peer: Peer) -> None:
    """CLUSTER FORGET of a node: drop names that resolve to it, except those of the
    configuration."""
    _keep(node, [each for each in node.cluster.hosts if peer.place not in _places(each)])


def forget_name(node: NodeState, text: str) -> bool:
    """CLUSTER FORGET of a name of CLUSTER MEET. Returns False if there is no such name."""
    place = parse_place(text)
    return _keep(node, [each for each in node.cluster.hosts if each.place != place])


def _keep(node: NodeState, kept: list[HostName]) -> bool:
    """Drop names that are neither in `kept` nor from the configuration. Returns whether any was
    dropped."""
    hosts = [each for each in node.cluster.hosts if each in kept or each.is_seed or each.is_own]
    is_changed = len(hosts) < len(node.cluster.hosts)
    if is_changed:
        node.cluster.hosts = hosts
        node.out.nodes_changed = True
    return is_changed


def reset(node: NodeState) -> None:
    """CLUSTER RESET: drop all names, except those of the configuration."""
    _keep(node, [])


# Lookups.


def watch(node: NodeState) -> None:
    """Once per second: look up the names that are due."""
    if not node.cluster.hosts:
        return
    due = node.mono - (SOON if _is_somebody_away(node) else LATER)
    for host in node.cluster.hosts:
        if host.is_looking or host.looked > (node.mono - SOON if host.error else due):
            continue
        host.is_looking = True
        literal = literal_ip(host.name)
        if literal:
            looked_up(node, host.name, Lookup((literal,)))
        elif host.name not in node.out.lookups:
            node.out.lookups += (host.name,)


def _is_somebody_away(node: NodeState) -> bool:
    """Is this node alone, or is another node not connected?"""
    others = [peer for peer in node.cluster.nodes.values() if peer is not node.cluster.myself]
    return not others or not all(peer.is_connected for peer in others)


def looked_up(node: NodeState, name: str, lookup: Lookup) -> None:
    """Handle the result of a lookup: start handshakes with new addresses of the name."""
    for host in [host for host in node.cluster.hosts if host.name == name and host.is_looking]:
        was_answered = not _is_unanswered(node, host)
        host.is_looking = False
        host.looked = node.mono
        host.error = lookup.error
        if lookup.addresses:
            host.addresses = lookup.addresses[:MOST_ADDRESSES]
        if host.is_own:
            # Other nodes reach this node there. It keeps its announced address while that is among
            # those of the name.
            if host.addresses and node.cluster.announced_ip not in host.addresses:
                node.cluster.announced_ip = host.addresses[0]
                announce(node)
            continue
        new = [place for place in _places(host) if not _is_known(node, place)]
        if new:
            host.is_answered = False
        for ip, port, bus_port in new:
            handshake.meet_by_name(node, ip, port, bus_port)
        if was_answered:
            host.since = node.mono


def _places(host: HostName) -> list[tuple[str, int, int]]:
    return [(ip, host.port, host.bus_port) for ip in host.addresses]


def _is_known(node: NodeState, place: tuple[str, int, int], ignored: int = 0) -> bool:
    cluster = node.cluster
    return place[:2] in cluster.own_addresses or any(
        peer.place == place and not peer.flags & ignored for peer in cluster.nodes.values()
    )


def answered(node: NodeState, peer: Peer) -> None:
    """A node has answered a handshake; it may announce another address."""
    for host in node.cluster.hosts:
        if peer.place in _places(host):
            host.is_answered = True


# For operators.


def unanswered(node: NodeState) -> Iterator[Unanswered]:
    """Addresses of CLUSTER MEET and of seeds at which no node has answered for a second."""
    for peer in handshake.unanswered(node):
        yield Unanswered(f"{peer.ip}:{peer.port}", peer.bus, peer.created)
    for host in node.cluster.hosts:
        if _is_unanswered(node, host) and node.mono - host.since >= handshake.MIN_PATIENCE:
            yield Unanswered(f"{host.name}:{host.port}", host.bus, host.since, host.error)


def _is_unanswered(node: NodeState, host: HostName) -> bool:
    if host.error or not host.addresses:
        return True
    if host.is_own or host.is_answered:
        return False
    return not any(_is_known(node, place, HANDSHAKE) for place in _places(host))
