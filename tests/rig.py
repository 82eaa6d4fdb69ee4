"""One machine with peers that are only names: what it is told, what it answers, what it sends."""

import random
from collections.abc import Sequence

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
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Frame, GossipMessage, JobCopy, Message, ReplJob
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.queue import Queue

ME: NodeId = b"a" * 40
N2: NodeId = b"b" * 40
N3: NodeId = b"c" * 40
N4: NodeId = b"d" * 40
UNKNOWN: NodeId = b"e" * 40
IDS = (N2, N3, N4)
JOB: JobId = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
ONCE: JobId = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a0"
WALL = 1_800_000_000_000
CALM = Config(cluster_node_timeout=1_000_000_000)
"""Peers may be silent for days without being suspected."""


class Rig:
    """A machine in mid-air. Peers are members with links that are up; nothing answers by itself.

    `node` is its state; `replies` and `sent` what came out since they were last asked for. The
    heartbeat's own gossip is left out of `sent` unless it is asked for.
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
        """`ours` makes peers that speak our extensions of the protocol; else they are original."""
        self.now = Now(mono=10_000, wall=WALL)
        myself = Peer(ME, "127.0.0.1", 7711, MYSELF)
        nodes = [Peer(IDS[i], f"127.0.0.{i + 2}", 7711) for i in range(peers)]
        self.machine = kind(config or Config(), myself, random.Random(seed), self.now, nodes=nodes)
        self.node = self.machine.state
        self.outboxes: list[Outbox] = []
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
        """The client has sent this in a pipeline; does the machine take it now?"""
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
        """The client asks and is answered at once."""
        self.replies(client)
        self.request(*words, client=client)
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
        """A member says something on the link that it opened."""
        flags = MYSELF | (self.node.cluster.nodes[sender].flags & LEAVING)
        self.machine.message(self._incoming[sender], Frame(sender, 7711, flags, message), self.now)
        self.take()

    def advance(self, duration: int) -> None:
        """Time passes, and what comes due on the way is done."""
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
        """What came out; the machine's invariants hold whenever it is looked at."""
        out = self.machine.take()
        check(self.node)
        self.outboxes.append(out)
        self._replies += out.replies
        self._sent += [(link, message) for links, message in out.messages for link in links]
        return out

    # What came of it.

    def reply(self, client: Client | None = None) -> Reply:
        """The one reply that the client got since it was last asked for."""
        replies = self.replies(client)
        assert len(replies) == 1, f"one reply expected, not {replies}"
        return replies[0]

    def replies(self, client: Client | None = None) -> list[Reply]:
        """The client's replies since they were last asked for."""
        wanted = client or self.client
        found = [reply for to, reply in self._replies if to is wanted]
        self._replies = [(to, reply) for to, reply in self._replies if to is not wanted]
        return found

    def closed(self) -> list[Client]:
        """Everybody who was to be disconnected, ever."""
        return [client for out in self.outboxes for client in out.closes]

    def sent(self, *, gossip: bool = False) -> list[tuple[NodeId, Message]]:
        """Who was told what since it was last asked for."""
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
        """ADDJOB with the client's full attention; the job that came of it."""
        reply = self.ask("ADDJOB", queue, body, 0, *options)
        assert isinstance(reply, Status), reply
        return self.node.jobs[reply.text]

    def hold(self, copy: JobCopy) -> Job:
        """A member has this node hold a copy; the job that came of it."""
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
