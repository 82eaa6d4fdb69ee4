"""Connections between agents and nodes: requests there, replies back, and the rows of both.

A client is near its node: the way takes a fixed time and is never cut. It breaks when the node
crashes or closes it, or when the agent hangs up.
"""

from collections import deque
from typing import Final

import attrs

from disque_trio.sim.engines.events import NEVER, Engine
from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import Stamp, VectorClock
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.sim.workload.agents import Agent, Ask, Hang
from disque_trio.statemachine.base import Reply
from disque_trio.statemachine.client import Client
from disque_trio.tracing import client_rows
from disque_trio.tracing.client_rows import Note

DISTANCE: Final[Micros] = 150
"""How far agents are from nodes; each agent is a little further away than the one before."""


@attrs.define(eq=False)
class Operation:
    """One request; `ref` pairs the rows of its begin and its end."""

    words: list[bytes]
    ref: int
    stamp: Stamp


@attrs.define(eq=False)
class Actor:
    """An agent with what the run keeps for it."""

    agent: Agent
    vector: VectorClock
    distance: Micros
    lanes: "dict[int, Lane]" = attrs.Factory(dict)
    wake_at: Micros = NEVER


@attrs.define(eq=False)
class Lane:
    """One connection, seen from both sides."""

    actor: Actor
    number: int
    host: Host
    client: Client | None = None
    """What the machine made of it, once the first request is there."""
    backlog: deque[Operation] = attrs.Factory(deque)
    """Requests that the machine does not take yet."""
    unanswered: deque[Operation] = attrs.Factory(deque)
    is_dropped: bool = False
    """The agent has ended it, or knows that it has ended."""
    is_ended: bool = False
    """The node has ended it, or knows that it has ended."""


class Lanes:
    """All agents of a run and their connections."""

    def __init__(self, engine: Engine, recorder: Recorder) -> None:
        self._engine = engine
        self._recorder = recorder
        self._hosts: dict[int, Host] = {}
        self._at: dict[Host, dict[Lane, None]] = {}
        self._clients: dict[Host, dict[int, Lane]] = {}
        self._operations = 0
        self.actors: list[Actor] = []

    def add_host(self, host: Host) -> None:
        """One more node that can be asked."""
        self._hosts[host.number] = host
        self._at[host] = {}
        self._clients[host] = {}

    def add_agent(self, agent: Agent, vector: VectorClock) -> Actor:
        """One more agent; its time begins now."""
        actor = Actor(agent, vector, DISTANCE + 7 * len(self.actors) % 100)
        self.actors.append(actor)
        self.settle(actor)
        return actor

    # The agent's side.

    def settle(self, actor: Actor) -> None:
        """Do what the agent wishes, and see when it wants to be woken."""
        wishes = actor.agent.wishes
        if wishes:
            actor.agent.wishes = []
            for wish in wishes:
                if isinstance(wish, Ask):
                    self._ask(actor, wish)
                else:
                    self._hang_up(actor, wish)
        deadline = actor.agent.deadline()
        if deadline < actor.wake_at:
            actor.wake_at = deadline
            self._engine.at(deadline, self._wake, actor)

    def _wake(self, actor: Actor) -> None:
        now = self._engine.now
        if now < actor.wake_at:
            return
        actor.wake_at = NEVER
        if actor.agent.deadline() <= now:
            actor.agent.wake(now)
        self.settle(actor)

    def _ask(self, actor: Actor, wish: Ask) -> None:
        host = self._hosts[wish.node]
        lane = actor.lanes.get(wish.lane)
        if lane is None:
            lane = actor.lanes[wish.lane] = Lane(actor, wish.lane, host)
        self._operations += 1
        operation = Operation(wish.words, self._operations, ())
        for note in client_rows.invoked(wish.words):
            self._note(lane, operation, note)
        operation.stamp = actor.vector.stamp()
        lane.unanswered.append(operation)
        self._engine.later(actor.distance, self._arrive, (lane, operation))

    def _hang_up(self, actor: Actor, wish: Hang) -> None:
        lane = actor.lanes.pop(wish.lane, None)
        if lane is None:
            return
        self._drop(lane, wish.cause)
        self._engine.later(actor.distance, self._depart, lane)

    def _drop(self, lane: Lane, cause: str) -> None:
        """No reply will be taken any more."""
        lane.is_dropped = True
        for operation in lane.unanswered:
            for note in client_rows.lost(operation.words, cause):
                self._note(lane, operation, note)
        lane.unanswered.clear()

    def _answered(self, answer: tuple[Lane, Reply, Stamp]) -> None:
        lane, reply, stamp = answer
        if lane.is_dropped or not lane.unanswered:
            return
        operation = lane.unanswered.popleft()
        lane.actor.vector.join(stamp)
        for note in client_rows.answered(operation.words, reply):
            self._note(lane, operation, note)
        lane.actor.agent.answered(self._engine.now, lane.number, reply)
        self.settle(lane.actor)

    def _lost(self, lane: Lane) -> None:
        if not lane.is_dropped:
            lane.actor.lanes.pop(lane.number, None)
            self._drop(lane, "disconnect")
            lane.actor.agent.lost(self._engine.now, lane.number)
            self.settle(lane.actor)

    def _note(self, lane: Lane, operation: Operation, note: Note) -> None:
        self._recorder.add(
            (
                self._engine.now, note.kind, lane.host.name, note.job, note.queue,
                lane.actor.agent.name, "", note.cause, note.detail, operation.ref, 0, 0,
                lane.actor.vector.tick(),
            )
        )  # fmt: skip

    # The node's side.

    def _arrive(self, asked: tuple[Lane, Operation]) -> None:
        lane, operation = asked
        if lane.is_ended:
            return
        if lane.host.machine is None:
            self._end(lane)
            return
        self._at[lane.host][lane] = None
        lane.backlog.append(operation)
        lane.host.give(self._feed, lane)

    def _feed(self, lane: Lane) -> None:
        """Give the machine what it takes."""
        host = lane.host
        machine = host.machine
        if machine is None or lane.is_ended:
            return
        if lane.client is None:
            address = b"10.255.0.%d:%d" % (1 + lane.actor.distance % 250, lane.number % 60_000)
            lane.client = machine.connect(address, host.now)
            if lane.client is None:
                self._end(lane)
                return
            self._clients[host][lane.client.id] = lane
        while lane.backlog:
            operation = lane.backlog[0]
            accepts = machine.accepts(lane.client)
            if not accepts and not machine.follows(lane.client, operation.words):
                break
            lane.backlog.popleft()
            host.vector.join(operation.stamp)
            (machine.request if accepts else machine.follow)(lane.client, operation.words, host.now)

    def feed(self, host: Host, client: Client) -> None:
        """The client's next requests may come."""
        lane = self._clients[host].get(client.id)
        if lane is not None:
            self._feed(lane)

    def reply(self, host: Host, client: Client, reply: Reply) -> None:
        """Send a reply on its way."""
        lane = self._clients[host].get(client.id)
        if lane is not None:
            answer = (lane, reply, host.vector.stamp())
            self._engine.later(lane.actor.distance, self._answered, answer)

    def close(self, host: Host, client: Client) -> None:
        """The node ends the connection, after the replies that are under way."""
        lane = self._clients[host].get(client.id)
        if lane is not None and host.machine is not None:
            host.machine.disconnect(client, host.now)
            self._end(lane)

    def _depart(self, lane: Lane) -> None:
        """Word that the agent has hung up."""
        if not lane.is_ended:
            lane.host.give(self._disconnect, lane)

    def _disconnect(self, lane: Lane) -> None:
        machine = lane.host.machine
        if lane.is_ended or machine is None:
            return
        self._forget(lane)
        if lane.client is not None:
            machine.disconnect(lane.client, lane.host.now)

    def _forget(self, lane: Lane) -> None:
        lane.is_ended = True
        self._at[lane.host].pop(lane, None)
        if lane.client is not None:
            self._clients[lane.host].pop(lane.client.id, None)

    def _end(self, lane: Lane) -> None:
        self._forget(lane)
        self._engine.later(lane.actor.distance, self._lost, lane)

    def crashed(self, host: Host) -> None:
        """All connections of the node break."""
        for lane in list(self._at[host]):
            self._end(lane)

    def client_name(self, host: Host, client: int) -> str:
        """Whose connection the machine's client is."""
        lane = self._clients[host].get(client)
        return lane.actor.agent.name if lane is not None else ""
