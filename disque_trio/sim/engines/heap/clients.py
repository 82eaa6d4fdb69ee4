"""Connections between agents and nodes: requests, replies, and the rows of both.

A client is near its node: the latency is constant, and no fault cuts the connection. It ends when
the node crashes or closes it, or when the agent disconnects. How a node receives requests depends
on the engine, which implements `Line`.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import attrs

from disque_trio.sim.engines.events import NEVER, Engine
from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.model.recorder import Recorder
from disque_trio.sim.model.vector_clocks import Stamp, VectorClock
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.sim.workload.actions import Agent, Disconnect, SendRequest, WriteRow
from disque_trio.statemachine.base import Reply
from disque_trio.tracing import client_rows, query_rows
from disque_trio.tracing.client_rows import Note
from disque_trio.tracing.details import fields

DISTANCE: Final[Micros] = 150
"""The latency between agents and nodes; that of each further agent differs a little."""
REFUSED: Final = "refused"
"""The cause of the loss of a request that no node has received."""
_ENDED: Final = "disconnect"


@attrs.define(eq=False)
class Operation:
    """One request; `ref` pairs the rows of its begin and its end."""

    words: list[bytes]
    ref: int
    stamp: Stamp


class Line(Protocol):
    """The node's end of a connection."""

    def ask(self, operation: Operation) -> None:
        """A request arrives."""

    def hang_up(self) -> None:
        """The agent has disconnected."""


class CallLog(Protocol):
    """A record of all calls of clients; `number` is that of the operation."""

    def begin(self, client: str, number: int, node: str, words: list[bytes]) -> None:
        """A client sends a request."""

    def reply(self, client: str, number: int, words: list[bytes], reply: Reply) -> None:
        """The client has received the reply."""

    def lost(self, client: str, number: int, words: list[bytes], cause: str) -> None:
        """The client will receive no reply. The cause is `REFUSED` if the node was down, so that it
        has not received the request."""


@attrs.define(eq=False)
class Actor:
    """An agent with its clock, connections and alarm."""

    agent: Agent
    vector: VectorClock
    distance: Micros
    connections: "dict[int, ClientConnection]" = attrs.Factory(dict)
    wake_at: Micros = NEVER


@attrs.define(eq=False)
class ClientConnection:
    """One connection, seen from both sides."""

    actor: Actor
    number: int
    host: Host
    unanswered: deque[Operation] = attrs.Factory(deque)
    is_dropped: bool = False
    """The agent has closed it, or knows that it has ended."""
    is_ended: bool = False
    """The node has closed it, or knows that it has ended."""
    line: Line | None = None
    """None before the first request arrives."""
    tied: dict[str, None] = attrs.Factory(dict)
    """Jobs that were delivered with TIED on this connection."""


class ClientConnections:
    """All agents of a run and their connections."""

    def __init__(
        self,
        engine: Engine,
        recorder: Recorder,
        connect: "Callable[[ClientConnections, ClientConnection], Line | None]",
    ) -> None:
        """`connect` connects to the node, and returns None if it is down."""
        self._connect = connect
        self._engine = engine
        self._recorder = recorder
        self._hosts: dict[int, Host] = {}
        self._open: dict[Host, dict[ClientConnection, None]] = {}
        self._operations = 0
        self.actors: list[Actor] = []
        self.log: CallLog | None = None
        """Receives all calls as well, if set."""

    def add_host(self, host: Host) -> None:
        """Add a node."""
        self._hosts[host.number] = host
        self._open[host] = {}

    def add_agent(self, agent: Agent, vector: VectorClock) -> Actor:
        """Add an agent, which starts at once."""
        actor = Actor(agent, vector, DISTANCE + 7 * len(self.actors) % 100)
        self.actors.append(actor)
        self.settle(actor)
        return actor

    # The agent's side.

    def settle(self, actor: Actor) -> None:
        """Carry out the agent's actions, and set its alarm."""
        actions = actor.agent.actions
        if actions:
            actor.agent.actions = []
            for action in actions:
                if isinstance(action, SendRequest):
                    self._ask(actor, action)
                elif isinstance(action, Disconnect):
                    self._hang_up(actor, action)
                else:
                    self._write_row(actor, action)
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

    def _ask(self, actor: Actor, action: SendRequest) -> None:
        host = self._hosts[action.node]
        connection = actor.connections.get(action.connection)
        if connection is None:
            connection = actor.connections[action.connection] = ClientConnection(
                actor, action.connection, host
            )
        self._operations += 1
        operation = Operation(action.words, self._operations, ())
        if self.log is not None:
            self.log.begin(actor.agent.name, operation.ref, host.name, action.words)
        for note in client_rows.invoked(action.words) or query_rows.invoked(action.words):
            self._note(connection, operation, note)
        operation.stamp = actor.vector.stamp()
        connection.unanswered.append(operation)
        self._engine.later(actor.distance, self._arrive, (connection, operation))

    def _hang_up(self, actor: Actor, action: Disconnect) -> None:
        connection = actor.connections.pop(action.connection, None)
        if connection is None:
            return
        if action.has_row:
            note = Note("hangup", cause=action.cause, detail=f"jobs={','.join(connection.tied)}")
            self._note(connection, Operation([], 0, ()), note)
        self._drop(connection, action.cause)
        self._engine.later(actor.distance, self._depart, connection)

    def _write_row(self, actor: Actor, action: WriteRow) -> None:
        self._recorder.add(
            (
                self._engine.now, action.kind, "", action.job, action.queue, actor.agent.name, "",
                action.cause, action.detail, 0, 0, 0, actor.vector.tick(),
            )
        )  # fmt: skip

    def _drop(self, connection: ClientConnection, cause: str) -> None:
        """Accept no further replies, and record pending requests as lost."""
        connection.is_dropped = True
        for operation in connection.unanswered:
            words = operation.words
            if self.log is not None:
                why = REFUSED if connection.line is None and cause == _ENDED else cause
                self.log.lost(connection.actor.agent.name, operation.ref, words, why)
            for note in client_rows.lost(words, cause) or query_rows.lost(words, cause):
                self._note(connection, operation, note)
        connection.unanswered.clear()

    def answered(self, connection: ClientConnection, reply: Reply, stamp: Stamp) -> None:
        """A reply has arrived at the agent."""
        if connection.is_dropped or not connection.unanswered:
            return
        operation = connection.unanswered.popleft()
        connection.actor.vector.join(stamp)
        words = operation.words
        if self.log is not None:
            self.log.reply(connection.actor.agent.name, operation.ref, words, reply)
        for note in client_rows.answered(words, reply) or query_rows.answered(words, reply):
            self._note(connection, operation, note)
        connection.actor.agent.answered(self._engine.now, connection.number, reply)
        self.settle(connection.actor)

    def _lost(self, connection: ClientConnection) -> None:
        if not connection.is_dropped:
            connection.actor.connections.pop(connection.number, None)
            self._drop(connection, _ENDED)
            connection.actor.agent.lost(self._engine.now, connection.number)
            self.settle(connection.actor)

    def _note(self, connection: ClientConnection, operation: Operation, note: Note) -> None:
        if note.kind == "get.deliver" and "tied" in fields(note.detail, "body"):
            connection.tied[note.job] = None
        self._recorder.add(
            (
                self._engine.now, note.kind, connection.host.name, note.job, note.queue,
                connection.actor.agent.name, "", note.cause, note.detail, operation.ref, 0, 0,
                connection.actor.vector.tick(),
            )
        )  # fmt: skip

    # The node's side.

    def _arrive(self, asked: tuple[ClientConnection, Operation]) -> None:
        connection, operation = asked
        if connection.is_ended:
            return
        if connection.line is None:
            self._open[connection.host][connection] = None
            connection.line = self._connect(self, connection)
            if connection.line is None:
                self.end(connection)
                return
        connection.line.ask(operation)

    def _depart(self, connection: ClientConnection) -> None:
        if connection.line is not None and not connection.is_ended:
            connection.line.hang_up()
        self._forget(connection)

    def _forget(self, connection: ClientConnection) -> None:
        connection.is_ended = True
        self._open[connection.host].pop(connection, None)

    def end(self, connection: ClientConnection) -> None:
        """End the connection at the node, once."""
        if not connection.is_ended:
            self._forget(connection)
            self._engine.later(connection.actor.distance, self._lost, connection)

    def crashed(self, host: Host) -> None:
        """End all connections of the node."""
        for connection in list(self._open[host]):
            self.end(connection)
