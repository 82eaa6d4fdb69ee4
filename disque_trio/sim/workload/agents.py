"""Producers and consumers: agents that react to replies and to time, independent of an engine
(`actions`)."""

import heapq
import random
from typing import Final

from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Add, Consumer, Micros, Plan
from disque_trio.sim.scenarios.vocabulary import DELAYING
from disque_trio.sim.workload.actions import (
    PATIENCE,
    RECONNECT,
    Action,
    Agent,
    Disconnect,
    SendRequest,
)
from disque_trio.sim.workload.engine_workers import EngineWorker
from disque_trio.sim.workload.repeats import Connection, Repeats
from disque_trio.sim.workload.requests import add_words, getjob_words, tokens_of, way_words
from disque_trio.sim.workload.visits import NEVER, Visits
from disque_trio.statemachine.base import Failure, Reply

ENDLESS: Final[Micros] = 60_000_000
"""How long an agent waits if the command has no timeout."""
_ELSEWHERE: Final = {
    "elsewhere": "ackjob",
    "fastack-elsewhere": "fastack",
    "result-elsewhere": "result",
    "nack-elsewhere": "nack",
    "working-elsewhere": "working",
}
_REPEATED: Final = ("ackjob", "together", "fastack", "result")
ACK_TRIES: Final = 3
"""The number of nodes at which a consumer tries an ack when connections break."""


def agents(plan: Plan) -> list[Agent]:
    """Return the plan's agents: producers in the order of their first jobs, then consumers."""
    by_producer: dict[str, list[Add]] = {}
    for add in sorted(plan.adds, key=lambda add: add.at):
        by_producer.setdefault(add.producer, []).append(add)
    producers = [Producer(name, adds, plan.nodes) for name, adds in by_producer.items()]
    consumers = [
        (EngineWorker if consumer.kind == "engine" else Worker)(
            consumer, plan.nodes, stream(plan.seed, "work", consumer.name)
        )
        for consumer in plan.consumers
    ]
    return [*producers, *consumers]


class Producer:
    """Adds jobs at their times without waiting for earlier ones: in a pipeline up to its limit,
    otherwise with one connection for each pending add. An add without a reply may be repeated."""

    def __init__(self, name: str, adds: list[Add], nodes: int) -> None:
        self.name = name
        self._repeats = Repeats(nodes)
        self.actions: list[Action] = []
        self._adds = adds
        self._next = 0
        self._last_connection = 0
        self._busy: dict[int, Connection] = {}
        self._free: dict[int, list[int]] = {}
        """By node: idle connections."""
        self._deaths: list[tuple[Micros, int]] = []
        """A heap of times and the connections that it then drops."""

    def deadline(self) -> Micros:
        """Return the time of the next job, or of the timeout of a reply."""
        due = self._adds[self._next].at if self._next < len(self._adds) else NEVER
        if self._deaths:
            due = min(due, self._deaths[0][0])
        due = min(due, self._repeats.deadline())
        return min([due, *(busy.dues[0][0] for busy in self._busy.values())])

    def wake(self, now: Micros) -> None:
        """Drop connections, give up on overdue replies, then send the adds that are due."""
        while self._deaths and self._deaths[0][0] <= now:
            _, number = heapq.heappop(self._deaths)
            if (busy := self._busy.pop(number, None)) is not None:
                self.actions.append(Disconnect(number, "quit"))
                self._repeats.note(now, busy.adds)
        for number in [n for n, busy in self._busy.items() if busy.dues[0][0] <= now]:
            self._repeats.note(now, self._busy.pop(number).adds)
            self.actions.append(Disconnect(number))
        for add in self._repeats.take(now):
            self._add(now, add)
        while self._next < len(self._adds) and self._adds[self._next].at <= now:
            self._add(now, self._adds[self._next])
            self._next += 1

    def _add(self, now: Micros, add: Add) -> None:
        number = self._connection_for(add)
        wait = _wait(add.timeout_ms)
        busy = self._busy.setdefault(number, Connection(add.node))
        busy.dues.append((now + wait, wait))
        busy.adds.append(add)
        self.actions.append(SendRequest(number, add.node, add_words(add)))
        if add.dies_after is not None:
            heapq.heappush(self._deaths, (now + add.dies_after, number))

    def _connection_for(self, add: Add) -> int:
        if add.pipeline > 1:
            for number, busy in self._busy.items():
                if busy.node == add.node and len(busy.dues) < add.pipeline:
                    return number
        idle = self._free.setdefault(add.node, [])
        if idle:
            return idle.pop()
        self._last_connection += 1
        return self._last_connection

    def answered(self, now: Micros, connection: int, reply: Reply) -> None:  # noqa: ARG002
        """The connection is free, or awaits one reply less, whatever the reply is."""
        busy = self._busy.get(connection)
        if busy is None:
            return
        busy.answered(now)
        if not busy.dues:
            del self._busy[connection]
            self._free[busy.node].append(connection)

    def lost(self, now: Micros, connection: int) -> None:
        """A connection is lost: its job may exist or not."""
        if (busy := self._busy.pop(connection, None)) is not None:
            self._repeats.note(now, busy.adds)
        for idle in self._free.values():
            if connection in idle:
                idle.remove(connection)

    def settle(self) -> None:
        """Do nothing: the end of the chaos does not affect a producer."""

    def is_idle(self) -> bool:
        """Is there no job left to add, and no reply to come?"""
        return not self._busy and not self._repeats and self._next == len(self._adds)


def _wait(timeout_ms: int) -> Micros:
    return timeout_ms * 1000 + PATIENCE if timeout_ms else ENDLESS


class Worker:
    """Takes jobs, works on them one by one, and ends each in a way drawn from its mix."""

    def __init__(self, plan: Consumer, nodes: int, rng: random.Random) -> None:
        self.name = plan.name
        self.actions: list[Action] = []
        self._plan = plan
        self._nodes = nodes
        self._rng = rng
        self._home = plan.node
        self._connection = 1
        """The connection to its home node; a new number for each connection."""
        self._other: int = 0
        """The connection to another node during an ack there; 0 if there is none."""
        self._last_connection = 1
        self._due: Micros = plan.start
        self._jobs: list[bytes] = []
        self._tokens: dict[bytes, bytes] = {}
        self._is_asking = False
        self._is_working = False
        self._way = ""
        """The command about its job that has no reply yet; empty otherwise."""
        self._next_way = ""
        """The way to end the job after the work, if it is not drawn."""
        self._tries = 0
        self._is_settled = False
        self._must_return = False
        """The chaos ended while it was at another node than its own."""
        self._visits = Visits(plan, nodes, rng)
        self._patience_ends: Micros = NEVER
        """When it gives up on a GETJOB."""
        self._getjob = getjob_words(plan)

    def deadline(self) -> Micros:
        """Return the end of its work, of its rest, or of its timeout."""
        return self._due

    def is_idle(self) -> bool:
        """Does the worker have no job?"""
        return not self._jobs

    def settle(self) -> None:
        """Acknowledge every job from now on, and stay connected."""
        self._is_settled = True
        self._must_return = self._plan.roams and self._home != self._plan.node
        if self._is_asking:
            self._due = self._patience_ends

    def wake(self, now: Micros) -> None:
        """The work is done, the rest is over, or the reply is overdue."""
        if now < self._due:
            return
        if self._is_working:
            self._is_working = False
            self._finish(now)
        elif self._is_asking and now < self._patience_ends:
            self._leave(now)
        elif self._waits():
            self._hang_up(self._other or self._connection)
            self._on_lost(now)
        else:
            self._go_on(now)

    def _waits(self) -> bool:
        return self._is_asking or bool(self._way)

    def _go_on(self, now: Micros) -> None:
        """Work on the next job in hand, or request more."""
        if self._jobs and self._plan.held:
            self._send(now, "begin", self._home)
        elif self._jobs:
            self._work(now)
        elif self._plan.stop and now >= self._plan.stop:
            self._due = NEVER
            self._hang_up(self._connection)
        elif self._wants_to_leave(now):
            self._leave(now)
        else:
            self._is_asking = True
            self._patience_ends = now + self._plan.poll_ms * 1000 + PATIENCE
            visit_ends = NEVER if self._is_settled else self._visits.ask(now)
            self._due = min(self._patience_ends, visit_ends)
            self.actions.append(SendRequest(self._connection, self._home, self._getjob))

    def _hang_up(self, connection: int, cause: str = "timeout") -> None:
        self.actions.append(Disconnect(connection, cause, has_row=self._plan.tied))

    def _wants_to_leave(self, now: Micros) -> bool:
        if self._is_settled:
            return self._must_return
        return self._visits.is_over(now)

    def _leave(self, now: Micros) -> None:
        """Disconnect, whether or not a GETJOB waits, and reconnect later."""
        self._is_asking = False
        self._hang_up(self._connection, "quit")
        self._must_return = False
        away = self._visits.leave()
        self._rest(now)
        self._due = now + away
        self._home = self._plan.node if self._is_settled else self._visits.place(self._home)

    def _work(self, now: Micros) -> None:
        low, high = self._plan.work
        self._is_working = True
        self._due = now + low + int(self._rng.random() * (high - low))

    def _finish(self, now: Micros) -> None:
        """End the job whose work is done."""
        way = self._next_way or ("ackjob" if self._is_settled else self._draw())
        self._next_way = ""
        if way == "none":
            self._jobs.pop(0)
            self._go_on(now)
        elif way == "die":
            self._jobs.clear()
            self._hang_up(self._connection)
            self._rest(now)
        elif way in _ELSEWHERE:
            self._send(now, _ELSEWHERE[way], 1 + (self._home + self._elsewhere()) % self._nodes)
        else:
            self._send(now, way, self._home)

    def _draw(self) -> str:
        names = [name for name, _ in self._plan.mix]
        weights = [weight for _, weight in self._plan.mix]
        return self._rng.choices(names, weights)[0]

    def _elsewhere(self) -> int:
        """Return the offset of a random other node from the home node."""
        return int(self._rng.random() * (self._nodes - 1)) if self._nodes > 1 else 0

    def _send(self, now: Micros, way: str, node: int) -> None:
        self._way = way
        self._due = now + PATIENCE
        connection = self._connection
        if node != self._home:
            connection = self._other = self._new_connection()
        delay = self._rng.randint(*self._plan.delay_ms) if way in DELAYING else 0
        words = way_words(way, self._jobs, self._tokens, delay)
        self.actions.append(SendRequest(connection, node, words))

    def _new_connection(self) -> int:
        self._last_connection += 1
        return self._last_connection

    def _rest(self, now: Micros) -> None:
        self._connection = self._new_connection()
        self._due = now + RECONNECT

    def answered(self, now: Micros, connection: int, reply: Reply) -> None:
        """The reply to a GETJOB, or to a command about a job."""
        if self._is_asking and connection == self._connection:
            self._is_asking = False
            self._on_jobs(now, reply)
        elif self._way and connection == (self._other or self._connection):
            self._on_outcome(now, reply)

    def _on_jobs(self, now: Micros, reply: Reply) -> None:
        if isinstance(reply, list):
            self._jobs = [job[1] for job in reply if isinstance(job, list)]  # type: ignore[misc]
            self._tokens = tokens_of(reply) if self._plan.meta else {}
            self._go_on(now)
        elif isinstance(reply, Failure):
            self._hang_up(self._connection)
            if reply.text.startswith(b"LEAVING"):
                self._home = self._home % self._nodes + 1
            self._rest(now)
        elif self._plan.poll_ms:
            self._go_on(now)
        else:
            self._due = now + RECONNECT

    def _on_outcome(self, now: Micros, reply: Reply) -> None:
        way, self._way = self._way, ""
        self._tries = 0
        if self._other:
            self.actions.append(Disconnect(self._other))
            self._other = 0
        if way == "begin" and reply == 1:
            self._work(now)
            return
        if way == "working" and not (isinstance(reply, Failure) and reply.text[:4] == b"LOST"):
            self._next_way = "ackjob"
            self._work(now)
            return
        if way == "result":
            self._send(now, "look", self._home)
            return
        self._drop(way)
        self._go_on(now)

    def _drop(self, way: str) -> None:
        del self._jobs[: None if way == "together" else 1]

    def lost(self, now: Micros, connection: int) -> None:
        """A connection broke. Work continues without one."""
        if self._waits() and connection == (self._other or self._connection):
            self._on_lost(now)
        elif connection == self._connection:
            self._connection = self._new_connection()

    def _on_lost(self, now: Micros) -> None:
        """No reply will come: repeat an ack at the next node, but no other command."""
        way, self._way = self._way, ""
        self._is_asking = False
        if not self._other:
            self._connection = self._new_connection()
        self._other = 0
        self._tries += 1
        if way in _REPEATED and self._tries < ACK_TRIES:
            self._send(now, way, (self._home + self._tries - 1) % self._nodes + 1)
            return
        self._tries = 0
        if way:
            self._drop(way)
        self._due = now + RECONNECT
