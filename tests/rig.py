"""One machine with peers that exist only as names: its inputs, replies and messages."""

import random
from collections.abc import Sequence
from typing import ClassVar

import attrs

from disque_trio.statemachine.base import (
    CAPABILITIES,
    LEAVING,
    MYSELF,
    JobId,
    LinkId,
    NodeId,
    Now,
    Reply,
    Status,
)
from disque_trio.statemachine.chores import AwaitNodes
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import (
    Frame,
    GossipMessage,
    JobCopy,
    Message,
    ReplJob,
    singles,
)
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState

ME: NodeId = b"a" * 40
N2: NodeId = b"b" * 40
N3: NodeId = b"c" * 40
N4: NodeId = b"d" * 40
UNKNOWN: NodeId = b"e" * 40
IDS = (N2, N3, N4)
JOB: JobId = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
ONCE: JobId = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a0"
WALL = 1_800_000_000_000
UNTRACED = Config(trace_sample=0)
"""No job has the flag that says that it is traced."""
CALM = Config(cluster_node_timeout=1_000_000_000, trace_sample=0)
"""Peers may be silent for days without being suspected."""
CHECKED_AT_ONCE = 30
"""So many jobs are checked after each input; more, after so many inputs that it costs no more."""


class Checks:
    """Checks a machine's invariants after its inputs."""

    unfinished: ClassVar[dict["Checks", NodeState] | None] = None
    """Nodes with unchecked inputs. None where nobody checks them when a test ends: there each input
    is checked."""

    def __init__(self) -> None:
        self._unchecked = 0

    def after_input(self, node: NodeState) -> None:
        """Check, unless the node has many jobs and was checked lately."""
        self._unchecked += CHECKED_AT_ONCE
        unfinished = Checks.unfinished
        if unfinished is not None and self._unchecked < len(node.jobs):
            unfinished[self] = node
            return
        check(node)
        self._unchecked = 0
        if unfinished is not None:
            unfinished.pop(self, None)


class Rig:
    """A single machine. Peers are members with links that are up, but they never answer.

    `node` is its state; `replies` and `sent` return the output since their last call. Gossip of the
    heartbeat is left out of `sent` by default.
    """

    def __init__(
        self,
        peers: int = 0,
        config: Config | None = None,
        seed: int = 0,
        kind: type[Machine] = Machine,
        *,
        ours: bool = False,
    ) -> None:
        """With `ours`, peers announce our extensions of the protocol; otherwise they are
        original."""
        self.now = Now(mono=10_000, wall=WALL)
        myself = Peer(ME, "127.0.0.1", 7711, MYSELF)
        nodes = [Peer(IDS[i], f"127.0.0.{i + 2}", 7711) for i in range(peers)]
        self.machine = kind(config or UNTRACED, myself, random.Random(seed), self.now, nodes=nodes)
        self.node = self.machine.state
        self.outboxes: list[Outbox] = []
        self._checks = Checks()
        self._replies: list[tuple[Client, Reply]] = []
        self._sent: list[tuple[LinkId, Message]] = []
        self.client = self.connect()
        self._incoming: dict[NodeId, LinkId] = {}
        if peers:
            self.advance(200)
            for peer in nodes:
                self.machine.linked(peer.link, "127.0.0.1", peer.ip, self.now)
                self._incoming[peer.id] = self.machine.accepted("127.0.0.1", peer.ip, self.now)
                peer.ping_sent = 0
                peer.pong_received = self.now.mono
                peer.capabilities = CAPABILITIES if ours else 0
        self.take()
        self._sent.clear()

    # What the world does.

    def turn(self, **knobs: int) -> None:
        """Give constants of the node these values."""
        self.node.knobs = attrs.evolve(self.node.knobs, **knobs)

    def connect(self) -> Client:
        """One more client."""
        client = self.machine.connect(b"127.0.0.1:50000", self.now)
        assert client is not None
        return client

    def request(self, *words: bytes | str | int, client: Client | None = None) -> None:
        """The client asks; words may be texts or numbers."""
        args = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.machine.request(client or self.client, args, self.now)
        self.take()

    def offer(self, *words: bytes | str | int, client: Client | None = None) -> bool:
        """The client sends a request in a pipeline. True if the machine takes it now."""
        asker = client or self.client
        args = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        if self.machine.accepts(asker):
            self.machine.request(asker, args, self.now)
        elif self.machine.follows(asker, args):
            self.machine.follow(asker, args, self.now)
        else:
            return False
        self.take()
        return True

    def ask(self, *words: bytes | str | int, client: Client | None = None) -> Reply:
        """The client asks and is answered at once, maybe by a timer that is due now."""
        self.replies(client)
        self.request(*words, client=client)
        found = self.replies(client)
        if found:
            [reply] = found
            return reply
        self.advance(0)
        return self.reply(client)

    def disconnect(self, client: Client) -> None:
        """The client's connection ends."""
        self.machine.disconnect(client, self.now)
        self.take()

    def lose_link(self, peer: NodeId) -> None:
        """Our link to a member breaks."""
        self.machine.unlinked(self.node.cluster.nodes[peer].link, self.now)
        self.take()

    def message(self, sender: NodeId, message: Message) -> None:
        """A member sends a message on the link that it opened."""
        self.messages(sender, message)

    def messages(self, sender: NodeId, *messages: Message) -> None:
        """They come in one batch."""
        flags = MYSELF | (self.node.cluster.nodes[sender].flags & LEAVING)
        link = self._incoming[sender]
        for each in messages:
            self.machine.message(link, Frame(sender, 7711, flags, each), self.now)
        self.take()

    def advance(self, duration: int) -> None:
        """Let time pass, and run the timers that become due."""
        end = self.now.mono + duration
        while (due := max(self.machine.deadline(), self.now.mono)) <= end:
            self._set_time(due)
            self.machine.tick(self.now)
            self.take()
        self._set_time(end)
        self.machine.tick(self.now)
        self.take()

    def _set_time(self, mono: int) -> None:
        self.now = Now(mono, self.now.wall + mono - self.now.mono)

    def take(self) -> Outbox:
        """Take the outbox, and check the machine's invariants."""
        out = self.machine.take()
        self._checks.after_input(self.node)
        self.outboxes.append(out)
        for client, chore in out.chores:
            if isinstance(chore, AwaitNodes):
                self.machine.done(client, None, self.now)
                self._replies += self.machine.take().replies
        self._replies += out.replies
        self._sent += [
            (link, single)
            for links, message in out.messages
            for single in singles(message)
            for link in links
        ]
        return out

    # Output.

    def reply(self, client: Client | None = None) -> Reply:
        """The only reply that the client got since the last call."""
        replies = self.replies(client)
        assert len(replies) == 1, f"one reply expected, not {replies}"
        return replies[0]

    def replies(self, client: Client | None = None) -> list[Reply]:
        """The client's replies since the last call."""
        wanted = client or self.client
        found = [reply for to, reply in self._replies if to is wanted]
        self._replies = [(to, reply) for to, reply in self._replies if to is not wanted]
        return found

    def closed(self) -> list[Client]:
        """All clients that were to be disconnected so far."""
        return [client for out in self.outboxes for client in out.closes]

    def sent(self, *, gossip: bool = False) -> list[tuple[NodeId, Message]]:
        """Receivers and messages since the last call."""
        names = {peer.link: id for id, peer in self.node.cluster.nodes.items() if peer.link}
        names |= {link: id for id, link in self._incoming.items()}
        found = [
            (names.get(link, b"link %d" % link), message)
            for link, message in self._sent
            if gossip or not isinstance(message, GossipMessage)
        ]
        self._sent.clear()
        return found

    def add(self, *options: bytes | str | int, queue: str = "q", body: str = "body") -> Job:
        """ADDJOB. Returns the new job."""
        reply = self.ask("ADDJOB", queue, body, 0, *options)
        assert isinstance(reply, Status), reply
        return self.node.jobs[reply.text]

    def hold(self, copy: JobCopy) -> Job:
        """A member sends a copy to hold. Returns the job."""
        self.message(N2, ReplJob((copy,), no_reply=True))
        return self.node.jobs[copy.id]

    def queue(self, name: bytes = b"q") -> Queue:
        """A queue that exists."""
        return self.node.queues[name]


def copy_of(
    job_id: JobId = JOB,
    *,
    holders: Sequence[NodeId] = (N2, ME),
    retry: int = 60,
    delay: int = 0,
    queue: bytes = b"q",
    ctime: int = WALL * 1_000_000,
    ttl: int = 86_400,
) -> JobCopy:
    """A job as another node would send it."""
    return JobCopy(
        id=job_id,
        state=0,
        gc_attempt=0,
        flags=0,
        replicas=2,
        etime=ttl + 1,
        ctime=ctime,
        delay=delay,
        retry=retry,
        nacks=0,
        deliveries=0,
        queue=queue,
        body=b"body",
        holders=tuple(holders),
    )
