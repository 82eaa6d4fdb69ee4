"""Feeding the machine: which client's requests it is given, and when a client has to wait.

A client's requests go to the machine as long as the machine takes them. What is left stands in
`Session.backlog`, and the hub reads no further from that client meanwhile. That happens while the
client is blocked or paused, while too much waits for the disk, and while the client is choked: it
owes us the reading of more than `session.CHOKE` bytes of replies, or so many wait for the journal.
So a client that never reads, or outruns the disk, holds a bounded amount of memory.
"""

from collections.abc import Iterable
from time import perf_counter_ns
from typing import Final

from disque_trio.carriage import Carriage
from disque_trio.session import Session
from disque_trio.statemachine.base import Now
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.machine import Machine
from disque_trio.watch import Watch

TURN: Final = 128
"""Requests of one client per batch, so that replies leave and other clients have their turn."""


class Feeder:
    """The clients of one node, as far as they have something to ask."""

    def __init__(self, machine: Machine, carriage: Carriage, watch: Watch) -> None:
        self.turn = TURN
        """Requests per client in this batch: none while too much waits for the disk."""
        self.hungry: dict[Session, None] = {}
        """Those whose backlog can go on in the next batch."""
        self._machine = machine
        self._carriage = carriage
        self._watch = watch
        carriage.freed = self.free

    def feed(self, session: Session, now: Now) -> None:
        """Give the machine every request of the client that it takes in this turn."""
        client, backlog, machine = session.client, session.backlog, self._machine
        accepts, request, timed = machine.accepts, machine.request, machine.timed
        turn = self.turn
        started = perf_counter_ns()
        while backlog and turn and not session.is_choked and accepts(client):
            args = backlog.popleft()
            row = request(client, args, now)
            ended = perf_counter_ns()
            if row is not None:
                timed(row, args, (ended - started) // 1000)
            started = ended
            turn -= 1
        if backlog or session.fault is not None or session.is_held:
            self._after_turn(session, now)

    def feed_hungry(self, now: Now) -> None:
        """A batch begins: those whose requests had to wait go on."""
        if self.hungry and self.turn:
            hungry, self.hungry = self.hungry, {}
            for session in hungry:
                self.feed(session, now)

    def resume(self, clients: Iterable[Client]) -> None:
        """The machine takes their requests again."""
        find = self._carriage.sessions.get
        sessions = [find(client.id) for client in clients]
        self.hungry.update((session, None) for session in sessions if session is not None)

    def free(self, session: Session) -> None:
        """A client is choked no longer."""
        if session.backlog or session.fault is not None:
            self.hungry[session] = None
        elif session.is_held:
            _release(session)

    def half_closed(self, session: Session) -> None:
        """A client whose input is held has said that it will not send any more."""
        if session.client.blocked is Blocked.JOBS or session.client.blocked is Blocked.COPIES:
            session.port.abort()

    def _after_turn(self, session: Session, now: Now) -> None:
        """Not everything could be fed, or now at last it has been."""
        if session.backlog:
            self._carriage.hold(session)
            if not session.is_choked and self._machine.accepts(session.client):
                self.hungry[session] = None
            elif session.port.is_half_closed:
                self.half_closed(session)
        elif session.fault is not None:
            self._carriage.hold(session)
            self._refuse(session, session.fault, now)
        elif not session.is_choked:
            _release(session)

    def _refuse(self, session: Session, fault: bytes, now: Now) -> None:
        if self._machine.accepts(session.client):
            session.fault = None
            self._watch.protocol_error(session.client, fault, now)
            self._machine.refuse(session.client, fault, now)


def _release(session: Session) -> None:
    session.is_held = False
    session.port.resume()
