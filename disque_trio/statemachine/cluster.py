"""The other nodes as this one knows them: the node table, links, failure reports, blacklist.

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
    """A process that uses the ID of a peer, with the address and time of its last frame."""

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
        """As people write it."""
        return b"%b:%d" % (self.ip.encode(), self.port)


@attrs.define(eq=False)
class Peer:
    """An entry of the node table, this node's own included."""

    id: NodeId
    ip: str = ""
    port: int = 0
    bus_port: int = attrs.field(default=0, kw_only=True)
    """Where it announces that nodes reach it; 0: 10000 above its `port`."""
    zone: bytes = attrs.field(default=b"", kw_only=True)
    """What fails together with it, as it says; empty if it does not say."""
    name: bytes = attrs.field(default=b"", kw_only=True)
    """Its `node-name`, likewise."""
    flags: int = 0
    created: Millis = 0
    is_asked_for: bool = attrs.field(default=False, kw_only=True)
    """An operator has asked for it (CLUSTER MEET): its handshake goes on until it answers."""
    ping_sent: Millis = 0
    """When the ping that is still unanswered was sent; 0 when none is."""
    pong_received: Millis = 0
    link: LinkId = 0
    """Our outgoing link, dialling or up; 0 when there is none."""
    link_created: Millis = 0
    is_connected: bool = False
    """The outgoing link is up."""
    resent_on: LinkId = 0
    """The last link on which it was sent the acknowledgements that it had missed."""
    is_watched: bool = False
    """In a large cluster: does this node watch it?"""
    used_at: Millis = 0
    """In a large cluster: when something was last sent to it."""
    reported_at: Millis = 0
    """When this node last told all others that it does not answer; 0 since it has answered."""
    doubted_at: Millis = 0
    """When another node first told this one so; 0 since it has answered here."""
    voted_at: Millis = 0
    """When this node last told its watchers that it suspects it; 0 since it has answered."""
    reports: dict[NodeId, Millis] = attrs.Factory(dict)
    """Nodes that report it as failing, and when each last did."""
    capabilities: int = 0
    """What its frames announce beyond the original protocol."""
    format: int = 0
    """The number of its formats; 0 if it announces none."""
    version: bytes = b""
    """What its version is called, in printable characters."""
    processes: tuple[Process, ...] = ()
    """Those that have spoken under this ID, the last one last."""
    holding: tuple[NodeId, ...] = attrs.field(init=False)
    """The node alone, as a job's holders; one tuple shared by all its jobs."""
    id_start: bytes = attrs.field(init=False)
    """How the ids of its jobs begin."""

    @property
    def place(self) -> tuple[str, int, int]:
        """Its address, with both ports."""
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
    """A name that leads to nodes, which an operator or the configuration has given."""

    name: str
    port: int
    bus_port: int = 0
    """0: 10000 above `port`."""
    is_seed: bool = False
    """It is in `cluster-seeds`."""
    is_own: bool = False
    """It is `cluster-announce-ip`. Other names were given to CLUSTER MEET."""
    addresses: tuple[str, ...] = ()
    """Of the last lookup that found any."""
    error: str = ""
    """Why the last lookup found none."""
    since: Millis = 0
    """When it was given, or last looked up with a node at one of its addresses."""
    looked: Millis = 0
    """When it was last looked up."""
    is_looking: bool = False
    """A lookup is under way."""
    is_answered: bool = False
    """A node has answered at one of its addresses."""

    @property
    def place(self) -> tuple[str, int, int]:
        """As `Peer.place`, with the name."""
        return self.name, self.port, self.bus_port

    @property
    def bus(self) -> int:
        """The port for nodes."""
        return self.bus_port or self.port + BUS_OFFSET


@attrs.define(eq=False)
class Link:
    """A live bus connection. `peer` is the node that we dialled, None for accepted ones."""

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
    """Nodes that may be given copies (original 5.8)."""
    size: int = 1
    """Known nodes that are not in handshake, this one included (original 5.8)."""
    places: int = 1
    """How many copies may make sense: nodes, or where nodes are workers, addresses."""
    ring: list[NodeId] = attrs.Factory(list)
    """In a large cluster: the nodes that have not failed, in the order of their IDs; else none."""
    is_crowded: bool = False
    """Do some of the nodes that may hold a job share a zone or an address, and not all of them?"""
    blacklist: dict[NodeId, Millis] = attrs.Factory(dict)
    """Forgotten nodes, and until when gossip may not bring them back."""
    incarnation: int = 0
    """The number of this process, as it announces it; 0 announces none."""
    duplicate: Duplicate | None = None
    """Another process that uses this node's ID."""
    refusal: Failure | None = None
    """Why commands are refused while this process yields to it."""
    own_addresses: dict[tuple[str, int], None] = attrs.Factory(dict)
    """Where this very process answered itself."""
    probe_at: Millis = 0
    """No address is probed for this node's ID before this moment."""
    hosts: list[HostName] = attrs.Factory(list)
    """Names that lead to nodes."""
    is_own_ip_learned: bool = False
    """Has another node reached this process? Until then its address is that of an earlier one."""
    announced_ip: str = ""
    """What `cluster-announce-ip` stands for; empty if it is not set, or not known yet."""
    messages_sent: int = 0
    messages_received: int = 0

    @property
    def is_leaving(self) -> bool:
        """Is this node about to leave? It keeps no new jobs (original 6.9)."""
        return bool(self.myself.flags & LEAVING)


UNREACHABLE = HANDSHAKE | LEAVING | PFAIL | FAIL | NOADDR
"""Flags that keep a node out of `Cluster.reachable`; NOADDR is mended (original, defect 13)."""
