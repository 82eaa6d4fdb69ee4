"""The cluster as seen by this node: the node table, links, failure reports, blacklist.

Fields are written by these modules: `links` (links, and a peer's link fields),
`nodetable` (nodes, reachable, size, places, is_crowded, blacklist, is_own_ip_learned, names,
addresses, zones, flags),
`failure` (reports), `resend` (resent_on), `gossip` (ping and pong times), `membership`
(capabilities, format, version), `identity` (processes, incarnation, duplicate, refusal,
own_addresses, probe_at), `hostnames` (hosts, announced_ip), `send` (messages sent).
Every module may read.
"""

from typing import Final

import attrs

from disque_trio.statemachine.address import BUS_OFFSET
from disque_trio.statemachine.base import (
    FAIL,
    HANDSHAKE,
    LEAVING,
    MEETS,
    NOADDR,
    PFAIL,
    Failure,
    LinkId,
    Millis,
    NodeId,
    id_start,
)

YIELDS: Final = 1 << 63
"""In an incarnation: the process yields its node ID to another one (`identity`)."""


@attrs.define(eq=False)
class Process:
    """A process that uses a peer's ID, with the address and time of its last frame."""

    incarnation: int
    ip: str = ""
    port: int = 0
    last_seen: Millis = 0


@attrs.define(eq=False)
class Duplicate:
    """Another process with this node's own ID."""

    ip: str
    port: int
    last_seen: Millis

    @property
    def address(self) -> bytes:
        """`ip:port`."""
        return b"%b:%d" % (self.ip.encode(), self.port)


@attrs.define(eq=False)
class Peer:
    """An entry of the node table, this node's own included."""

    id: NodeId
    ip: str = ""
    port: int = 0
    bus_port: int = attrs.field(default=0, kw_only=True)
    """The bus port that it announces; 0 means 10000 above its `port`."""
    zone: bytes = attrs.field(default=b"", kw_only=True)
    """The zone that it announces: the nodes of a zone may fail together; empty if it announces
    none."""
    name: bytes = attrs.field(default=b"", kw_only=True)
    """The `node-name` that it announces; empty if it announces none."""
    flags: int = 0
    created: Millis = 0
    is_asked_for: bool = attrs.field(default=False, kw_only=True)
    """An operator has added it with CLUSTER MEET: its handshake continues until it answers."""
    ping_sent: Millis = 0
    """When the unanswered ping was sent; 0 if there is none."""
    pong_received: Millis = 0
    link: LinkId = 0
    """Our outgoing link, connecting or up; 0 if there is none."""
    link_created: Millis = 0
    is_connected: bool = False
    """The outgoing link is up."""
    resent_on: LinkId = 0
    """The last link on which this node has resent acknowledgements that the peer had missed."""
    is_watched: bool = False
    """In a large cluster: does this node watch it?"""
    used_at: Millis = 0
    """In a large cluster: when this node last sent something to it."""
    reported_at: Millis = 0
    """When this node last reported to all others that the peer does not answer; reset to 0 by an
    answer."""
    doubted_at: Millis = 0
    """When another node first reported so to this node; reset to 0 by an answer here."""
    voted_at: Millis = 0
    """When this node last sent its suspicion to the peer's watchers; reset to 0 by an answer."""
    reports: dict[NodeId, Millis] = attrs.Factory(dict)
    """Nodes that report it as failing, and when each last did."""
    capabilities: int = 0
    """The capabilities beyond the original protocol that its frames announce."""
    format: int = 0
    """The format number that it announces; 0 if it announces none."""
    version: bytes = b""
    """The name of its version, in printable characters."""
    processes: tuple[Process, ...] = ()
    """The processes that have sent frames with this ID, the latest one last."""
    holding: tuple[NodeId, ...] = attrs.field(init=False)
    """This node as the only holder of a job; all such jobs share this tuple."""
    id_start: bytes = attrs.field(init=False)
    """The prefix of the ids of its jobs."""

    @property
    def place(self) -> tuple[str, int, int]:
        """Its address, client port and bus port."""
        return self.ip, self.port, self.bus_port

    @property
    def bus(self) -> int:
        """The port to dial."""
        return self.bus_port or self.port + BUS_OFFSET

    @property
    def is_ours(self) -> bool:
        """Does it send and understand WAITING and HAVEJOBS?"""
        return bool(self.capabilities & MEETS)

    @holding.default
    def _alone(self) -> tuple[NodeId, ...]:
        return (self.id,)

    @id_start.default
    def _start_of_ids(self) -> bytes:
        return id_start(self.id)


@attrs.define(eq=False)
class HostName:
    """A host name that resolves to nodes, from an operator or the configuration."""

    name: str
    port: int
    bus_port: int = 0
    """0 means 10000 above `port`."""
    is_seed: bool = False
    """It is in `cluster-seeds`."""
    is_own: bool = False
    """It is from `cluster-announce-ip`. Names that are neither this nor a seed are from CLUSTER
    MEET."""
    addresses: tuple[str, ...] = ()
    """The addresses of the last lookup that found any."""
    error: str = ""
    """Why the last lookup found none."""
    since: Millis = 0
    """When it was added, or last looked up with a node at one of its addresses."""
    looked: Millis = 0
    """When it was last looked up."""
    is_looking: bool = False
    """A lookup is under way."""
    is_answered: bool = False
    """A node has answered at one of its addresses."""

    @property
    def place(self) -> tuple[str, int, int]:
        """As `Peer.place`, with the name in place of the address."""
        return self.name, self.port, self.bus_port

    @property
    def bus(self) -> int:
        """The bus port."""
        return self.bus_port or self.port + BUS_OFFSET


@attrs.define(eq=False)
class Link:
    """A live bus connection. `peer` is the node that we dialled, or None for an accepted
    connection."""

    id: LinkId
    peer: Peer | None
    local_ip: str = ""
    remote_ip: str = ""


@attrs.define(eq=False)
class Cluster:
    """The node table and what belongs to it."""

    myself: Peer
    nodes: dict[NodeId, Peer]
    """Every known node, `myself` included."""
    links: dict[LinkId, Link] = attrs.Factory(dict)
    last_link: LinkId = 0
    reachable: list[Peer] = attrs.Factory(list)
    """Nodes that may receive copies (original 5.8)."""
    size: int = 1
    """Known nodes that are not in handshake, this one included (original 5.8)."""
    places: int = 1
    """The greatest sensible number of replicas: the number of nodes or, where nodes are workers, of
    addresses."""
    ring: list[NodeId] = attrs.Factory(list)
    """In a large cluster: the nodes that have not failed, ordered by ID; otherwise empty."""
    is_crowded: bool = False
    """Do some of the nodes that may hold a job share a zone or an address, and not all of them?"""
    blacklist: dict[NodeId, Millis] = attrs.Factory(dict)
    """Forgotten nodes, each with the time until which gossip cannot add it again."""
    incarnation: int = 0
    """The number of this process that it announces; 0 announces none."""
    duplicate: Duplicate | None = None
    """Another process that uses this node's ID."""
    refusal: Failure | None = None
    """The error with which commands are refused while this process yields its node ID to
    `duplicate`."""
    own_addresses: dict[tuple[str, int], None] = attrs.Factory(dict)
    """Addresses at which this process has reached itself."""
    probe_at: Millis = 0
    """The earliest time at which an address may be probed for this node's ID."""
    hosts: list[HostName] = attrs.Factory(list)
    """Host names that resolve to nodes."""
    is_own_ip_learned: bool = False
    """Has another node reached this process? Until then, its address is from an earlier process."""
    announced_ip: str = ""
    """The address of `cluster-announce-ip`; empty if it is not set, or not resolved yet."""
    messages_sent: int = 0
    messages_received: int = 0

    @property
    def is_leaving(self) -> bool:
        """Is this node leaving the cluster? A leaving node keeps no new jobs (original 6.9)."""
        return bool(self.myself.flags & LEAVING)


UNREACHABLE = HANDSHAKE | LEAVING | PFAIL | FAIL | NOADDR
"""Flags that exclude a node from `Cluster.reachable`. The original tests NOADDR wrongly (original,
defect 13)."""
