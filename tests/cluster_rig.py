"""Several machines connected by simulated links, in virtual time.

Everything is exact: a dial, a frame and a broken link each take `latency`, frames on one link stay
in order, and all machines share one clock. Nothing is lost unless a test says so.
"""

import heapq
import itertools
import random
from collections.abc import Callable

import attrs

from disque_trio.statemachine import limiting
from disque_trio.statemachine.address import new_node_id
from disque_trio.statemachine.base import (
    CAPABILITIES,
    LEAVING,
    MYSELF,
    PENDING,
    LinkId,
    NodeId,
    Now,
    Reply,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Frame, GossipMessage, Message
from disque_trio.statemachine.nodesfile import nodes_text, parse_limits, parse_nodes
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.stats import Facts
from disque_trio.wire.frames import FrameParser, encode
from tests.rig import Checks

START = 10_000
WALL = 1_800_000_000_000
PORT = 7711


@attrs.define(eq=False)
class Host:
    """A place where a node runs, with what survives a crash."""

    name: str
    ip: str
    machine: Machine | None = None
    client: Client | None = None
    nodes_conf: bytes = b""
    replies: list[tuple[Client, Reply]] = attrs.Factory(list)
    checks: Checks = attrs.Factory(Checks)


@attrs.frozen
class End:
    """One end of a link, of one life of a node."""

    host: Host
    machine: Machine
    link: LinkId

    @property
    def is_alive(self) -> bool:
        return self.host.machine is self.machine


@attrs.define
class Sent:
    """One frame that came through a link, silenced or not."""

    at: int
    sender: str
    receiver: str
    message: Message


class ClusterRig:
    """Machines by name. `form` makes a cluster of them."""

    def __init__(
        self, *names: str, config: Config | None = None, seed: int = 0, latency: int = 1
    ) -> None:
        self.now = Now(START, WALL)
        self.trace: list[Sent] = []
        self.latency = latency
        self._config = config or Config(cluster_node_timeout=2000)
        self._seed = seed
        self._hosts: dict[str, Host] = {}
        self._ends: dict[End, End] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._incarnations = itertools.count(1)
        self._cut: dict[tuple[str, str], None] = {}
        self._silent: dict[tuple[str, str], None] = {}
        for number, name in enumerate(names, 1):
            self._hosts[name] = Host(name, f"10.0.0.{number}")
            self.start(name)

    # What there is.

    def machine(self, name: str) -> Machine:
        """The machine of a node that runs."""
        machine = self._hosts[name].machine
        assert machine is not None, f"{name} does not run"
        return machine

    def node(self, name: str) -> NodeState:
        """Its state."""
        return self.machine(name).state

    def id(self, name: str) -> NodeId:
        """Its node id."""
        return self.node(name).cluster.myself.id

    def ip(self, name: str) -> str:
        """Where it is."""
        return self._hosts[name].ip

    def sees(self, name: str, other: str) -> Peer | None:
        """The entry of another node in a node's table."""
        return self.node(name).cluster.nodes.get(self.id(other))

    def peer(self, name: str, other: str) -> Peer:
        """The same, when it must be there."""
        peer = self.sees(name, other)
        assert peer is not None, f"{name} does not know {other}"
        return peer

    def names(self) -> list[str]:
        """The nodes that run."""
        return [host.name for host in self._hosts.values() if host.machine]

    def sent(
        self, kind: type[Message] | None = None, sender: str = "", receiver: str = ""
    ) -> list[Sent]:
        """The frames sent so far, as far as they match."""
        return [
            sent
            for sent in self.trace
            if (kind is None or isinstance(sent.message, kind))
            and sender in ("", sent.sender)
            and receiver in ("", sent.receiver)
        ]

    # What nodes and their clients do.

    def start(self, name: str, ip: str = "", config: Config | None = None) -> None:
        """Run a node, with its nodes.conf if there is one, and at another address if one is
        given."""
        host = self._hosts[name]
        host.ip = ip or host.ip
        rng = random.Random(f"{self._seed}/{name}/{self.now.mono}")
        nodes: list[Peer] = []
        if host.nodes_conf:
            myself, nodes = parse_nodes(host.nodes_conf)
        else:
            myself = Peer(new_node_id(rng), "", PORT, MYSELF)
        facts = Facts(incarnation=next(self._incarnations))
        host.machine = Machine(config or self._config, myself, rng, self.now, facts, nodes)
        limiting.restore(host.machine.state, parse_limits(host.nodes_conf))
        host.nodes_conf = nodes_text(host.machine.state, handshakes=False)
        host.client = self.connect(name)

    def copy(self, name: str, of: str) -> None:
        """Start a node from a copy of another one's directory, at an address of its own."""
        ip = f"10.0.0.{len(self._hosts) + 1}"
        self._hosts[name] = Host(name, ip, nodes_conf=self._hosts[of].nodes_conf)
        self.start(name)

    def crash(self, name: str) -> None:
        """End a node; its links break."""
        host = self._hosts[name]
        host.machine = None
        for end in [end for end in self._ends if end.host is host]:
            self._break(end)

    def connect(self, name: str) -> Client:
        """One more client of a node."""
        client = self.machine(name).connect(b"127.0.0.1:50000", self.now)
        assert client is not None
        return client

    def request(self, name: str, *words: bytes | str | int, client: Client | None = None) -> Client:
        """A client asks a node; the answer may come later."""
        host = self._hosts[name]
        asking = client or host.client
        assert asking is not None
        args = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.machine(name).request(asking, args, self.now)
        self._take(host)
        return asking

    def replies(self, name: str, client: Client | None = None) -> list[Reply]:
        """The client's replies since the last call."""
        host = self._hosts[name]
        asking = client or host.client
        found = [reply for to, reply in host.replies if to is asking]
        host.replies = [(to, reply) for to, reply in host.replies if to is not asking]
        return found

    def ask(self, name: str, *words: bytes | str | int, within: int = 1000) -> Reply:
        """A client asks a node and is answered, within some virtual time."""
        self.replies(name)
        self.request(name, *words)
        self.run_until(lambda: bool(self._hosts[name].replies), within)
        replies = self.replies(name)
        assert len(replies) == 1, f"one reply expected, not {replies}"
        return replies[0]

    def meet(self, name: str, other: str) -> None:
        """CLUSTER MEET."""
        self.ask(name, "CLUSTER", "MEET", self.ip(other), PORT)

    def form(self, within: int = 10_000) -> None:
        """Make all nodes one cluster: the first meets the others, gossip does the rest."""
        first, *others = self.names()
        for other in others:
            self.meet(first, other)
        self.run_until(self.is_formed, within)

    def is_formed(self) -> bool:
        """Does every node have links to all the others, and no other node in its table?"""
        ids = sorted(self.id(name) for name in self.names())
        return all(
            sorted(nodes := self.node(name).cluster.nodes) == ids
            and all(nodes[id].is_connected for id in ids if id != self.id(name))
            for name in self.names()
        )

    # What the network does.

    def cut(self, one: str, other: str) -> None:
        """Break the links between two nodes, and let no new ones come up."""
        self._cut |= {(one, other): None, (other, one): None}
        for end, far in list(self._ends.items()):
            if (end.host.name, far.host.name) == (one, other):
                self._break(end)

    def silence(self, one: str, other: str) -> None:
        """Lose all that the one sends to the other from now on; links stay, dials hang."""
        self._silent[one, other] = None

    def heal(self) -> None:
        """End every cut and silence."""
        self._cut.clear()
        self._silent.clear()

    def say(self, name: str, link: LinkId, frame: Frame) -> None:
        """Give a node a frame that no other node has sent."""
        self.machine(name).message(link, frame, self.now)
        self._take(self._hosts[name])

    # Time.

    def run(self, duration: int) -> None:
        """Let time pass, with all events that become due."""
        end = self.now.mono + duration
        while self._step(end):
            pass
        self._set_time(end)

    def run_until(self, condition: Callable[[], bool], within: int) -> None:
        """Let time pass until the condition holds; it must within the limit."""
        end = self.now.mono + within
        while not condition():
            assert self._step(end), f"not within {within} ms"

    def _step(self, end: int) -> bool:
        """Run the next event. False if there is none before the end."""
        due, host = min(
            ((host.machine.deadline(), host) for host in self._hosts.values() if host.machine),
            key=lambda pair: pair[0],
        )
        if self._events and self._events[0][0] <= min(due, end):
            at, _, event = heapq.heappop(self._events)
            self._set_time(at)
            event()
            return True
        if due > end:
            return False
        self._set_time(max(due, self.now.mono))
        self.machine(host.name).tick(self.now)
        self._take(host)
        return True

    def _set_time(self, mono: int) -> None:
        self.now = Now(mono, self.now.wall + mono - self.now.mono)

    def _later(self, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now.mono + self.latency, next(self._order), event))

    # Carrying out.

    def _take(self, host: Host) -> None:
        """What a driver does after each input."""
        machine = self.machine(host.name)
        out = machine.take()
        host.checks.after_input(machine.state)
        if out.nodes_changed:
            host.nodes_conf = nodes_text(machine.state, handshakes=False)
        for link, ip, port in out.dials:
            self._dial(End(host, machine, link), ip, port)
        for links, message in out.messages:
            for link in links:
                self._send(End(host, machine, link), message)
        host.replies += [(client, reply) for client, reply in out.replies if reply is not PENDING]
        for link in out.hangups:
            self._end(End(host, machine, link))
        for client, _ in out.chores:
            machine.done(client, None, self.now)
        if out.chores:
            self._take(host)

    def _dial(self, end: End, ip: str, port: int) -> None:
        other = next((host for host in self._hosts.values() if host.ip == ip), None)
        if other is None or port != PORT + 10_000 or (end.host.name, other.name) in self._cut:
            self._later(lambda: self._unlinked(end))
        elif (end.host.name, other.name) not in self._silent:
            self._later(lambda: self._link(end, other))

    def _link(self, end: End, other: Host) -> None:
        """A dial arrives."""
        if not end.is_alive:
            return
        if other.machine is None:
            self._unlinked(end)
            return
        accepted = other.machine.accepted(other.ip, end.host.ip, self.now)
        far = End(other, other.machine, accepted)
        self._ends[end], self._ends[far] = far, end
        if end.link in end.machine.state.cluster.links:
            end.machine.linked(end.link, end.host.ip, other.ip, self.now)
            self._take(end.host)
        else:
            self._end(end)

    def _send(self, end: End, message: Message) -> None:
        """Send through the codec, so that nodes share no objects and every message can be
        encoded."""
        cluster = end.machine.state.cluster
        myself = cluster.myself
        flags = myself.flags & (MYSELF | LEAVING)
        said = (CAPABILITIES, cluster.incarnation) if isinstance(message, GossipMessage) else ()
        data = encode(myself.id, PORT, flags, message, *said)
        (frame,) = FrameParser().feed(data)
        assert frame.message == message
        self._later(lambda: self._arrive(end, frame))

    def _arrive(self, end: End, frame: Frame) -> None:
        far = self._ends.get(end)
        if far is None:
            return
        names = (end.host.name, far.host.name)
        self.trace.append(Sent(self.now.mono, *names, frame.message))
        if names not in self._silent:
            far.machine.message(far.link, frame, self.now)
            self._take(far.host)

    def _end(self, end: End) -> None:
        """One side hangs up: what it has sent still arrives, then the other side learns."""
        self._later(lambda: self._break(end))

    def _break(self, end: End) -> None:
        """A link is gone; each side that still runs is told."""
        far = self._ends.pop(end, None)
        if far is not None:
            del self._ends[far]
            self._unlinked(far)
            self._unlinked(end)

    def _unlinked(self, end: End) -> None:
        if end.is_alive:
            end.machine.unlinked(end.link, self.now)
            self._take(end.host)
