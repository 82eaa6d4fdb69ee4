"""Many clients of several nodes that want the same few keys, over links that are slow at random.

What is judged: jobs of one key do not live at the same time, and an ADDJOB is answered with the id
of a job that lived at some moment while it ran, or of one that had ended and kept its key.
"""

import itertools
import random

import attrs

from disque_trio.statemachine.base import ClientId, JobId, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.events import Cause, Event, Kind
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Message
from tests.cluster_rig import ClusterRig, End

NEVER = 1 << 60
SPREAD = 12
"""The longest time that a message takes, in milliseconds."""


@attrs.define
class Life:
    """A job with a key, from the moment when its ADDJOB had the key."""

    key: bytes
    born: int
    ended: int = NEVER


@attrs.define
class Added:
    """An ADDJOB: who asked for which key when, and what the answer was."""

    key: bytes
    name: str
    client: ClientId
    asked: int
    answered: int = NEVER
    id: JobId = b""


class Storm(ClusterRig):
    """Nodes with links that keep the order and take a random time for each message."""

    def __init__(self, seed: int, nodes: int = 4) -> None:
        self._rng = random.Random(f"storm/{seed}")
        self._arrivals: dict[End, int] = {}
        self.is_slow = False
        self.clock = 0
        """Counts events, which is finer than milliseconds."""
        self.lives: dict[JobId, Life] = {}
        self.adds: list[Added] = []
        names = [f"n{number}" for number in range(1, nodes + 1)]
        super().__init__(*names, config=Config(cluster_node_timeout=3000), seed=seed)
        self.form(60_000)
        self.run(2000)
        self.is_slow = True
        for name in names:
            self.node(name).trace = []

    def _send(self, end: End, message: Message) -> None:
        due = self.now.mono + (self._rng.randint(0, SPREAD) if self.is_slow else 1)
        due = self._arrivals[end] = max(due, self._arrivals.get(end, 0))
        self.latency = due - self.now.mono
        super()._send(end, message)
        self.latency = 1

    def _step(self, end: int) -> bool:
        went_on = super()._step(end)
        self.observe()
        return went_on

    def observe(self) -> None:
        """Note what has happened."""
        self.clock += 1
        for name in self.names():
            node = self.node(name)
            for event in node.trace or []:
                self._note(node.jobs, event)
            node.trace = []
        for add in self.adds:
            if add.answered == NEVER:
                self._note_answer(add)

    def _note(self, jobs: dict[JobId, Job], event: Event) -> None:
        kind, cause, id = event.kind, event.cause, event.job
        if kind is Kind.HOLD and cause is Cause.ADD:
            extensions = jobs[id].extensions
            assert extensions is not None
            assert extensions.key is not None
            self.lives[id] = Life(extensions.key, self.clock)
        is_end = kind is Kind.DROP and cause in (Cause.ADD_FAILED, Cause.EXPIRED)
        if id in self.lives and (is_end or kind is Kind.ACKED):
            self.end(id)

    def end(self, id: JobId) -> None:
        life = self.lives[id]
        life.ended = min(life.ended, self.clock)

    def _note_answer(self, add: Added) -> None:
        client = self.machine(add.name).state.clients[add.client]
        for reply in self.replies(add.name, client):
            assert isinstance(reply, Status), reply
            add.answered, add.id = self.clock, reply.text

    # What clients do.

    def add(self, key: bytes, *options: bytes | str | int) -> None:
        name = self._rng.choice(self.names())
        client = self.connect(name)
        self.adds.append(Added(key, name, client.id, self.clock))
        body = b"body %d" % len(self.adds)
        copies = self._rng.randint(1, 3)
        self.request(
            name,
            "ADDJOB",
            "q",
            body,
            0,
            "REPLICATE",
            copies,
            "UNIQUE",
            key,
            *options,
            client=client,
        )
        self.observe()

    def ack(self) -> None:
        """One of the jobs is acknowledged at any node."""
        live = [id for id, life in self.lives.items() if life.ended == NEVER]
        answered = {add.id for add in self.adds}
        live = [id for id in live if id in answered]
        if live:
            id = self._rng.choice(live)
            self.end(id)
            verb = self._rng.choice(["ACKJOB", "ACKJOB", "FASTACK"])
            name = self._rng.choice(self.names())
            self.request(name, verb, id, client=self.connect(name))
            self.observe()

    def storm(self, adds: int = 60, keys: int = 3) -> None:
        """Adds and acks in quick succession, then a while to settle."""
        for _ in range(adds):
            self.add(b"k%d" % self._rng.randrange(keys))
            if self._rng.random() < 0.4:
                self.ack()
            self.run(self._rng.choice([0, 0, 1, 3, 10]))
        self.run(3000)

    # What is judged.

    def judge(self) -> None:
        for key in {life.key for life in self.lives.values()}:
            of_key = [(life.born, life.ended) for life in self.lives.values() if life.key == key]
            of_key.sort()
            for (_, ended), (born, _) in itertools.pairwise(of_key):
                assert ended <= born, f"two jobs of {key!r} live at {born}"
        for add in self.adds:
            assert add.answered < NEVER, f"{add} is not answered"
            life = self.lives[add.id]
            assert life.key == add.key, add
            assert life.born <= add.answered, f"{add}: {life} was not born"
            assert life.ended >= add.asked, f"{add}: {life} had ended"
