"""Feeding the machine: which client's requests it is given, and when a client has to wait.

A client's requests go to the machine as long as the machine takes them. What is left stands in
`Session.backlog`, and the hub reads no further from that client meanwhile. That happens while the
client is blocked or paused, while too much waits for the disk (though not for who only looks), and
while the client is choked: it owes us the reading of more than `session.CHOKE` bytes of replies, or
so many wait for the journal. So a client that never reads, or outruns the disk, holds a bounded
amount of memory.

Who has lately been answered much, such as 100 KB of QPEEK, is given one request per batch, and
none once this batch's answers to those like it have come to `ROOM`: they take turns, and whoever
asks for little waits for some milliseconds of them at most. New clients that begin with a command
like that take turns among themselves, for one cannot know yet. What counts is bytes and not time,
so that a simulated node does the same each time.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from time import perf_counter_ns
from typing import Final

from disque_trio.driver.limits import is_unauthenticated, weight
from disque_trio.driver.operator_log import OperatorLog
from disque_trio.driver.output import Output
from disque_trio.driver.sessions import MUCH, Session
from disque_trio.statemachine.base import Now, Reply
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.machine import Machine

TURN: Final = 128
"""Requests of one client per batch, so that replies leave and other clients have their turn."""
TURN_OF_ALL: Final = 2048
"""Requests of all pipelines per batch, some milliseconds of work: those who wait take turns."""
A_FEW: Final = 8
"""As many of who has just sent them are served though that is used up, so that a client who sends
little does not wait behind those who send much; of a stranger no more are served per batch."""
ROOM: Final = 1 << 20
"""Bytes of answers per batch for those who are answered much: some milliseconds of work."""
_LENGTHY: Final = frozenset({b"QPEEK", b"GETJOB", b"SHOW", b"JSCAN", b"QSCAN", b"CLIENT"})
"""Commands whose answers may be much; what else a new client begins with does not wait."""
_FEW: Final = 8
"""After the first such request, one in so many is looked at: a pipeline is found out by samples."""
_LONG: Final = MUCH // _FEW
"""Bytes of an answer of which so few are much."""
_SOME: Final = 32
"""As many of others are given to the machine at a time."""


class Input:
    """The clients of one node, as far as they have something to ask."""

    def __init__(self, machine: Machine, output: Output, operator_log: OperatorLog) -> None:
        self.turn = TURN
        """Requests per client in this batch: none while too much waits for the disk."""
        self.may_look = True
        """May who only looks be served even then?"""
        self.ready: dict[Session, None] = {}
        """Those whose backlog can go on in the next batch."""
        self._room = self._room_for_new = ROOM
        self._left = TURN_OF_ALL
        """Requests of pipelines that this batch still has time for."""
        self._machine = machine
        self._output = output
        self._operator_log = operator_log
        output.freed = self.free

    def take(self, session: Session, requests: list[list[bytes]], now: Now) -> None:
        """These have come. Nearly always a client that is heeded sends one request, and waits."""
        machine = self._machine
        if (
            len(requests) == 1
            and not session.is_held
            and not session.weight
            and not session.is_choked
            and self.turn
            and machine.accepts(session.client)
        ):
            # What `requests` begins with is worth its while for two at least.
            args = requests[0]
            started = perf_counter_ns()
            row = machine.request(session.client, args, now)
            if row is not None:
                machine.timed(row, args, perf_counter_ns() - started)
            if session.fault is not None or session.is_held:
                self._after_turn(session, now)
        elif requests or session.is_held or session.fault is not None or session.parser.pending:
            session.backlog.extend(requests)
            self._serve(session, now, A_FEW)

    def _serve(self, session: Session, now: Now, least: int = 0) -> None:
        """Give the machine every request of the client that it takes in this turn: as many as
        `least` though the turn of all has been used up."""
        backlog = session.backlog
        turn, state = self.turn or self._looks(backlog), self._machine.state
        if turn > self._left:
            turn = min(turn, max(self._left, least))
        if state.config.requirepass and is_unauthenticated(session.client, state.config):
            turn = min(turn, A_FEW)
        if session.weight:
            turn = self._turn_by_weight(session, turn)
        begun_with = turn
        replies = state.out.replies
        most = 1
        while turn and not session.is_choked:
            if not backlog and not self._refill(session, turn):
                break
            some = _alike(backlog, min(turn, most), min(turn, _SOME))
            left = self._give(session.client, some, now)
            turn -= len(some) - len(left)
            if left:
                backlog.extendleft(reversed(left))
                break
            if turn and backlog and replies and _is_much(replies[-1][1]):
                session.weight = MUCH + 1
                self._room -= MUCH
                break
            most = _FEW
        self._left -= begun_with - turn
        if backlog or session.parser.pending or session.fault is not None or session.is_held:
            self._after_turn(session, now)

    def _looks(self, backlog: deque[list[bytes]]) -> int:
        """Too much waits for the disk: how many of these, from the first on, only look?"""
        if not self.may_look:
            return 0
        looks = takewhile(self._machine.is_read_only, islice(backlog, TURN))
        return sum(1 for _ in looks)

    def _give(self, client: Client, requests: list[list[bytes]], now: Now) -> Sequence[list[bytes]]:
        """Those that the machine does not take, since the client has to wait."""
        machine = self._machine
        at = machine.requests(client, requests, now, perf_counter_ns)
        while at < len(requests):
            # It stopped before this one, which has to be looked at closely.
            args = requests[at]
            started = perf_counter_ns()
            if machine.accepts(client):
                row = machine.request(client, args, now)
            elif machine.follows(client, args):
                row = machine.follow(client, args, now)
            else:
                break
            if row is not None:
                machine.timed(row, args, perf_counter_ns() - started)
            at += 1
            if at < len(requests) and client.blocked is Blocked.NO:
                at += machine.requests(client, requests[at:], now, perf_counter_ns)
        return requests[at:]

    def _turn_by_weight(self, session: Session, turn: int) -> int:
        """How many requests are taken of a client who is answered much, or is new."""
        weight = session.weight
        if weight == MUCH:
            if turn and not session.backlog:
                self._refill(session, turn)
            if session.backlog and session.backlog[0][0].upper() not in _LENGTHY:
                return turn
            self._room_for_new -= weight
            return turn if self._room_for_new >= 0 else 0
        self._room -= weight
        return min(turn, 1) if self._room > -weight else 0

    def serve_ready(self, now: Now) -> None:
        """A batch begins: those whose requests had to wait go on."""
        self._room = self._room_for_new = ROOM
        self._left = TURN_OF_ALL
        if self.ready and self.turn:
            ready, self.ready = self.ready, {}
            late: dict[Session, None] = {}
            for session in ready:
                if self._left <= 0 or (session.weight > MUCH and self._room <= 0):
                    late[session] = None
                else:
                    self._serve(session, now)
                    self._output.keeps(session, now)
            if late:
                # Those who have had their turn stand behind those who have not.
                self.ready = late | self.ready

    def resume(self, clients: Iterable[Client]) -> None:
        """The machine takes their requests again.

        Those who have none, as workers that have been given what they waited for, need no turn.
        """
        find = self._output.sessions.get
        for client in clients:
            session = find(client.id)
            if session is not None and (
                session.is_held or session.fault is not None or session.has_requests
            ):
                self.ready[session] = None

    def free(self, session: Session) -> None:
        """A client is choked no longer."""
        if session.fault is not None or session.has_requests:
            self.ready[session] = None
        elif session.is_held:
            _release(session)

    def half_closed(self, session: Session) -> None:
        """A client whose input is held has said that it will not send any more."""
        if session.client.blocked is Blocked.JOBS or session.client.blocked is Blocked.COPIES:
            session.port.abort()

    def _after_turn(self, session: Session, now: Now) -> None:
        """Not everything could be fed, or now at last it has been."""
        if session.has_requests:
            self._output.hold(session)
            self._output.keeps(session, now)
            if not session.is_choked and self._takes(session):
                self.ready[session] = None
            elif session.port.is_half_closed:
                self.half_closed(session)
        elif session.fault is not None:
            self._output.hold(session)
            self._refuse(session, session.fault, now)
        elif not session.is_choked:
            _release(session)

    def _takes(self, session: Session) -> bool:
        """Would the machine be given the next request of this client?"""
        client, backlog = session.client, session.backlog
        if self._machine.accepts(client):
            return True
        if not backlog and not self._refill(session, A_FEW):
            return client.blocked is Blocked.COPIES
        return self._machine.follows(client, backlog[0])

    def _refill(self, session: Session, turn: int) -> bool:
        """Make requests of what is pending, if the machine may take them; are there any?

        Nobody knows the next request of a client that waits for copies before it has been made.
        """
        client = session.client
        if session.parser.pending and (
            client.blocked is Blocked.COPIES or self._machine.accepts(client)
        ):
            session.refill(turn)
        return bool(session.backlog)

    def _refuse(self, session: Session, fault: bytes, now: Now) -> None:
        if self._machine.accepts(session.client):
            session.fault = None
            self._operator_log.protocol_error(session.client, fault, now)
            self._machine.refuse(session.client, fault, now)


def _release(session: Session) -> None:
    session.is_held = False
    session.port.resume()


def _alike(backlog: deque[list[bytes]], few: int, some: int) -> list[list[bytes]]:
    """Up to a `few` of the oldest if the first's answer may be much; else up to `some`, as far as
    theirs may not."""
    first = backlog.popleft()
    taken = [first]
    name, is_much = first[0], _may_be_much(first)
    most = few if is_much else some
    while backlog and len(taken) < most:
        request = backlog[0]
        if (
            not is_much
            and (request[0] != name or len(request[-1]) > _LONG)
            and _may_be_much(request)
        ):
            break
        taken.append(backlog.popleft())
    return taken


def _may_be_much(request: list[bytes]) -> bool:
    """Might the answer be much: does the command tell much, or is there much to echo?"""
    return request[0].upper() in _LENGTHY or len(request[-1]) > _LONG


def _is_much(reply: Reply) -> bool:
    """Would eight of these be much? Strings and lists alone can be."""
    kind = reply.__class__
    return (kind is list or kind is bytes) and weight(reply) > _LONG
