"""Random inputs for a node, each drawn from one number.

So Hypothesis can drop inputs one by one from a failing sequence, and a long sequence costs hardly
more than the machine itself.
"""

import hashlib
import random
import sys
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from disque_trio.statemachine.base import FAIL, LEAVING, MYSELF, NOADDR, PFAIL, JobId, NodeId, Now
from disque_trio.statemachine.chores import (
    Chore,
    RaiseFileLimit,
    ReadVitals,
    Shutdown,
    Sleep,
    Vitals,
)
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.statemachine.extensions import DeadState
from disque_trio.statemachine.foreign_protocols import protocol_of
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.key_facts import CANCELS, KEY_STATES, KEY_WORDS, KeyFact
from disque_trio.statemachine.messages import (
    DelJob,
    Enqueue,
    Fail,
    Frame,
    Gossip,
    GotAck,
    GotJob,
    HaveJobs,
    Holders,
    JobCopy,
    JobState,
    KeyAnswer,
    KeyCancel,
    KeyClaim,
    Meet,
    Message,
    NeedJobs,
    Pause,
    Ping,
    Pong,
    Postponed,
    Purge,
    Queued,
    ReplJob,
    SetAck,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.statemachine.outbox import Outbox
from tests.rig import JOB, ME, N2, N3, N4, ONCE, UNKNOWN, Rig

T = TypeVar("T")

OTHER: Final[JobId] = b"D-cccccccc-BBBBBBBBBBBBBBBBBBBBBBBB-0003"
NODE_IDS: Final = (ME, N2, N3, N4, UNKNOWN)
QUEUES: Final = (b"q", b"q", b"q", b"r", b"")
U32: Final = (1 << 32) - 1
WORDS: Final = b"""
    REPLICATE RETRY DELAY TTL MAXLEN ASYNC COUNT TIMEOUT NOHANG WITHCOUNTERS FROM BUSYLOOP MINLEN
    IMPORTRATE QUEUE STATE REPLY all id active in out none bcast state MEET NODES INFO FORGET RESET
    HARD LEAVING yes no GET SET REWRITE RESETSTAT timeout hz maxclients delivery-lease * LIST KILL
    ADDR SKIPME PAUSE ON OFF SKIP SETNAME LEN LATEST HISTORY GRAPH DOCTOR FLUSHALL SLEEP RESTART
    ERROR STRUCTSIZE 127.0.0.1 127.0.0.2 7711 0 1 2 -1 50 5000 9223372036854775807
""".split()
"""What commands and their options are made of."""
SUBCOMMANDS: Final = (
    "CLUSTER LEAVING yes", "CLUSTER LEAVING no", f"CLUSTER FORGET {N4.decode()}",
    "CLUSTER MEET 127.0.0.4 7711", "CLUSTER RESET", "CLUSTER RESET HARD",
    "CLUSTER SAVECONFIG", "CLUSTER NODES", "CLUSTER INFO", "DEBUG FLUSHALL", "CLIENT PAUSE 300",
    "CLIENT LIST", "CONFIG SET timeout 2", "CONFIG SET timeout 0", "CONFIG SET delivery-lease no",
    "CONFIG SET delivery-lease yes", "CONFIG SET maxclients 20000", "CONFIG RESETSTAT", "HELLO",
    "CONFIG SET maxmemory 25000", "CONFIG SET maxmemory 40000", "CONFIG SET maxmemory 1gb",
    "CONFIG SET maxmemory 1gb", "CONFIG SET maxmemory-policy noeviction",
    "CONFIG SET maxmemory-policy acks", "INFO all", "QSCAN COUNT 1", "JSCAN REPLY all BUSYLOOP",
    "MONITOR", "QSTAT q", "QPEEK q -3", "CLIENT UNBLOCK 1", "CLIENT UNBLOCK 2",
)  # fmt: skip


class Storm:
    """A node with three members that send any messages, and up to five clients."""

    def __init__(self) -> None:
        self.rig = Rig(peers=3)
        self.machine = self.rig.machine
        self.random = random.Random(0)
        self.requests: dict[Client, int] = {}
        self.replies: dict[Client, int] = {}
        self.odd: dict[Client, None] = {}
        """Clients in MONITOR or a CLIENT REPLY mode, or that speak HTTP and get no reply."""
        self.chores: list[tuple[Client, Chore]] = []
        self.see: Callable[[Outbox], None] = lambda _out: None
        """What else to do with all that comes out."""

    def step(self, number: int) -> None:
        """The input that the number stands for; then everything must be in order."""
        self.random = random.Random(number)
        act = self.random.choices(*zip(*self.kinds.items(), strict=True))[0]
        act(self)
        self.settle()

    def settle(self) -> None:
        """What comes out must fit, and so must what is left."""
        out = self.machine.take()
        self.see(out)
        check(self.rig.node)
        self.chores += out.chores
        for client, _ in out.replies:
            self.replies[client] = self.replies.get(client, 0) + 1
        known = self.rig.node.cluster.links
        for links, _ in out.messages:
            assert all(link in known or link in out.hangups for link in links)
        assert all(ip and (link in known or link in out.hangups) for link, ip, _ in out.dials)
        assert all(client.is_closing for client in out.closes)
        for client in self.rig.node.clients.values():
            if client not in self.odd:
                owed = self.requests.get(client, 0) - self.replies.get(client, 0)
                waits = client.blocked is not Blocked.NO
                assert owed == (len(client.pending_adds) or waits), client

    # Clients.

    def request(self) -> None:
        clients = list(self.rig.node.clients.values())
        if len(clients) < 5 and self.random.random() < 0.1:
            self.machine.connect(b"127.0.0.1:50000", self.rig.now)
        elif clients:
            client = self.pick(clients)
            args = self.sense() if self.random.random() < 0.8 else self.nonsense()
            if self.machine.accepts(client) or self.machine.follows(client, args):
                self.ask(client, args)

    def ask(self, client: Client, args: list[bytes]) -> None:
        if args[0].lower() in (b"monitor", b"client") or protocol_of(args):
            self.odd[client] = None
        self.requests[client] = self.requests.get(client, 0) + 1
        is_first = self.machine.accepts(client)
        (self.machine.request if is_first else self.machine.follow)(client, args, self.rig.now)

    def disconnect(self) -> None:
        clients = list(self.rig.node.clients.values())
        if clients:
            self.machine.disconnect(self.pick(clients), self.rig.now)

    def finish_a_chore(self) -> None:
        if self.chores:
            client, chore = self.chores.pop(0)
            self.machine.done(client, self.outcome_of(chore), self.rig.now)

    def outcome_of(self, chore: Chore) -> object:
        """What a driver would say of it."""
        is_well = self.random.random() < 0.5
        match chore:
            case RaiseFileLimit(clients):
                return clients if is_well else 1
            case ReadVitals():
                return Vitals()
            case Sleep():
                return None
            case Shutdown():
                return "it did not work"
            case _:
                return None if is_well else "it did not work"

    # The bus.

    def message(self) -> None:
        flags = self.pick((MYSELF, MYSELF, MYSELF, MYSELF | LEAVING, 0xFFFF))
        sender = self.pick((N2, N2, N3, N3, N4, UNKNOWN, ME))
        frame = Frame(sender, 7711, flags, self.any_message())
        self.machine.message(self.a_link(), frame, self.rig.now)

    def accept_a_link(self) -> None:
        self.machine.accepted("127.0.0.1", self.pick(("127.0.0.2", "127.0.0.9")), self.rig.now)

    def lose_a_link(self) -> None:
        self.machine.unlinked(self.a_link(), self.rig.now)

    def bring_a_link_up(self) -> None:
        self.machine.linked(self.a_link(), "127.0.0.1", "127.0.0.2", self.rig.now)

    def a_link(self) -> int:
        return self.pick((*self.rig.node.cluster.links, 9999))

    # Time.

    def pass_time(self) -> None:
        end = self.rig.now.mono + self.pick((0, 1, 8, 50, 100, 600, 2000))
        while (due := max(self.machine.deadline(), self.rig.now.mono)) <= end:
            self.tick(due)
            self.settle()
            assert self.machine.deadline() > due
        self.tick(end)

    def stall(self) -> None:
        self.tick(self.rig.now.mono + self.pick((30_000, 400_000, 90_000_000)))

    def set_the_wall_clock(self) -> None:
        self.rig.now.wall = max(self.rig.now.wall + self.pick((-100_000_000, -5, 100_000_000)), 0)

    def tick(self, mono: int) -> None:
        now = self.rig.now
        self.rig.now = Now(mono, now.wall + mono - now.mono)
        self.machine.tick(self.rig.now)

    kinds: dict[Callable[["Storm"], None], int] = {  # noqa: RUF012
        request: 40,
        message: 40,
        pass_time: 10,
        finish_a_chore: 4,
        disconnect: 1,
        accept_a_link: 1,
        lose_a_link: 1,
        bring_a_link_up: 2,
        stall: 1,
        set_the_wall_clock: 1,
    }
    """What happens how often."""

    # What is said.

    def pick(self, choices: Sequence[T]) -> T:
        return self.random.choice(choices)

    def any_of(self, make: Callable[[], T], most: int) -> list[T]:
        return [make() for _ in range(self.random.randint(0, most))]

    def a_job(self) -> JobId:
        """Often one that the node has, or one that comes up again and again."""
        mine = list(self.rig.node.jobs)
        if mine and self.random.random() < 0.7:
            return self.pick(mine)
        return self.pick((JOB, ONCE, OTHER, JOB[:11] + self.random.randbytes(24) + JOB[35:]))

    def a_number(self) -> int:
        return self.pick((0, 0, 1, 1, 2, 3, 5, 60, 1000, 0xFFFF, U32))

    def nonsense(self) -> list[bytes]:
        """Any command with any words."""
        name = self.pick([row.name.encode() for row in ROWS] + [self.random.randbytes(3)])
        return [name, *self.any_of(self.a_word, 6)]

    def a_word(self) -> bytes:
        kind = self.random.randrange(6)
        if kind < 3:
            return self.pick(WORDS)
        if kind == 3:
            return self.pick((*QUEUES, *NODE_IDS))
        return self.a_job() if kind == 4 else self.random.randbytes(self.random.randrange(5))

    def sense(self) -> list[bytes]:
        """Commands that get somewhere."""
        kind = self.random.randrange(10)
        if kind < 3:
            return self.addjob()
        if kind < 6:
            how = self.pick((b"", b"NOHANG", b"TIMEOUT 500", b"COUNT 3", b"WITHMETA", b"TIED"))
            return [
                b"GETJOB",
                *how.split(),
                b"FROM",
                self.pick(QUEUES),
                *self.any_of(self.a_queue, 2),
            ]
        if kind < 8:
            names = (b"ACKJOB", b"FASTACK", b"DELJOB", b"ENQUEUE", b"NACK", b"DEQUEUE", b"RELEASE")
            wait = self.pick((b"0", b"0.004", b"1", b"900"))
            jobs = self.any_of(self.a_job, 3)
            if self.random.random() < 0.2:
                return [b"NACK", *jobs, b"DELAY", wait]
            return [self.pick(names), *jobs]
        if kind == 8:
            return [self.pick((b"SHOW", b"WORKING", b"WORKING", b"WAITJOB")), self.a_job()]
        if self.random.random() < 0.3:
            how = self.pick((b"in", b"out", b"all", b"none", b"none", b"state"))
            if self.random.random() < 0.2:
                return [b"PURGE", self.a_queue()]
            return [b"PAUSE", self.a_queue(), how, b"bcast"]
        return self.pick(SUBCOMMANDS).encode().split()

    def addjob(self) -> list[bytes]:
        wait = self.pick((b"0", b"100", b"5000"))
        options = self.pick((
            "REPLICATE 1", "REPLICATE 1", "REPLICATE 1 RETRY 0", "REPLICATE 1 DELAY 1 RETRY 0",
            "REPLICATE 2", "REPLICATE 3 TTL 5", "ASYNC", "REPLICATE 2 RETRY 1", "RETRY 1 TTL 1000",
            "REPLICATE 1 RETRY 1 DELAY 1", "MAXLEN 2", "REPLICATE 1 TTL 2 ASYNC",
            "REPLICATE 1 BACKOFF 0.5", "REPLICATE 2 RETRY 1 BACKOFF 3 MAXBACKOFF 5",
        ))  # fmt: skip
        return [b"ADDJOB", self.a_queue(), b"body", wait, *options.encode().split()]

    def a_queue(self) -> bytes:
        return self.pick(QUEUES)

    def any_message(self) -> Message:
        job_id, number = self.a_job(), self.a_number()
        yes, no = self.random.random() < 0.5, self.random.random() < 0.5
        makers: tuple[Callable[[], Message], ...] = (
            lambda: ReplJob(tuple(self.any_of(self.a_copy, 2)), no_reply=yes),
            lambda: ReplJob((self.a_copy(),), no_reply=yes),
            lambda: YourJobs(tuple(self.any_of(self.a_copy, 3))),
            lambda: GotJob(job_id),
            lambda: Enqueue(job_id, number),
            lambda: Queued(job_id, nack=yes, redelivery=no),
            lambda: SetAck(job_id, self.random.randrange(5)),
            lambda: WillQueue(job_id),
            lambda: GotAck(job_id, known=yes),
            lambda: DelJob(job_id),
            lambda: Working(job_id),
            lambda: NeedJobs(self.a_queue(), number, waits=yes),
            lambda: Waiting(self.a_queue(), self.pick((0, 1, number))),
            lambda: HaveJobs(self.a_queue(), self.pick((0, 1, number))),
            lambda: Holders(job_id, tuple(self.any_of(lambda: self.pick(NODE_IDS), 4))),
            lambda: Postponed(job_id, self.pick((0, 10, number)), self.random.randrange(4), yes),
            lambda: Postponed(job_id, self.pick((0, 10)), 0, snoozes=number or 1, is_snooze=no),
            lambda: Pause(self.a_queue(), self.pick((0, 0, 1, 2, 3, number))),
            lambda: Purge(self.a_queue(), dead=yes),
            lambda: JobState(job_id, number, DeadState(self.random.randrange(3), yes, b"", number)),
            lambda: KeyClaim(number, 1, job_id, self.pick((0, 7)), bytes(40), self.a_queue(), b"k"),
            lambda: KeyAnswer(self.random.randrange(9), 1, tuple(self.any_of(self.a_fact, 2))),
            lambda: KeyCancel(job_id, self.a_queue(), b"k", self.pick(CANCELS)),
            lambda: Fail(self.pick(NODE_IDS)),
            lambda: Ping(self.gossip()),
            lambda: Pong(self.gossip()),
            lambda: Meet(self.gossip()),
        )
        return self.pick(makers)()

    def a_fact(self) -> KeyFact:
        word, state = self.pick(KEY_WORDS), self.random.randrange(len(KEY_STATES))
        return KeyFact(self.a_job(), self.a_number(), word, state, self.pick((0, 1000)))

    def a_copy(self) -> JobCopy:
        return JobCopy(
            id=self.a_job(),
            state=self.random.randrange(4),
            gc_attempt=self.random.randrange(16),
            flags=self.random.randrange(256),
            replicas=self.a_number() & 0xFFFF,
            etime=self.pick((0, 1, 2, 60, 1000, 100_000, U32)),
            ctime=self.pick((0, 1, 2, (1 << 64) - 1)),
            delay=self.pick((0, 0, 1, U32)),
            retry=self.pick((0, 1, 1, 5, U32)),
            nacks=self.pick((0, 0xFFFF)),
            deliveries=self.pick((0, 0xFFFF)),
            queue=self.a_queue(),
            body=b"body",
            holders=tuple(self.any_of(lambda: self.pick(NODE_IDS), 4)),
        )

    def gossip(self) -> tuple[Gossip, ...]:
        return tuple(self.any_of(self.a_rumour, 3))

    def a_rumour(self) -> Gossip:
        name: NodeId = self.pick((*NODE_IDS, b"%040x" % self.random.getrandbits(160)))
        return Gossip(
            name,
            self.pick((b"127.0.0.2", b"127.0.0.9", b"::1", b"", b"\xff", b"nowhere")),
            self.pick((0, 7711, 7712, 0xFFFF)),
            self.pick((0, 0, PFAIL, FAIL, NOADDR, LEAVING, 0xFFFF)),
        )


def fingerprint(inputs: int) -> str:
    """A digest of all output of a node after so many inputs."""
    storm = Storm()
    digest = hashlib.sha256()

    def see(out: Outbox) -> None:
        replies = [(client.id, reply) for client, reply in out.replies]
        resumed = [client.id for client in out.resumed]
        digest.update(repr((replies, resumed, out.messages, out.dials, out.hangups)).encode())

    storm.see = see
    for number in range(inputs):
        storm.step(number)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(fingerprint(int(sys.argv[1])))
