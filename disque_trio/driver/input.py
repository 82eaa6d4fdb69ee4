"""Input: the clients whose requests are passed to the machine in a batch, and those that have to
wait.

A client's requests are passed to the machine while the machine accepts them. The rest stays in
`Session.backlog`, and meanwhile the event loop does not read from that client (backpressure).
Requests wait while the client is blocked or paused, while too much waits for the disk (reads
continue), and while the client is choked: more than `sessions.CHOKE` bytes of its replies are
unread, or wait for the journal. So the memory of a client that never reads, or outruns the disk, is
bounded.

Fairness: a client with recent large replies, such as 100 KB of QPEEK, has one request per batch,
and none after the batch's replies to such clients have reached `Knobs.reply_room` bytes. They take
turns, so a client with small requests waits for a few milliseconds at most. New clients that begin
with a command whose reply may be large take turns among themselves, because their load is unknown.
Shares are counted in bytes, not in time, so that simulations are deterministic.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from time import perf_counter_ns
from typing import Final

from disque_trio.driver.limits import is_unauthenticated
from disque_trio.driver.operator_log import OperatorLog
from disque_trio.driver.output import Output
from disque_trio.driver.pending_replies import weight
from disque_trio.driver.ready import Line, Ready
from disque_trio.driver.senders import Senders
from disque_trio.driver.sessions import MUCH, Session
from disque_trio.statemachine.base import Lengthy, Now, Reply
from disque_trio.statemachine.client import WAITS, Blocked, Client
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.statemachine.machine import Machine

_now_ns: Final = perf_counter_ns
"""Bound once, which is faster."""
_WIDE: Final = frozenset({row.name.upper().encode() for row in ROWS if row.is_wide} - {b"GETJOB"})
"""Commands that may take milliseconds."""
_LENGTHY: Final = _WIDE | {b"GETJOB", b"SHOW"}
"""Commands whose replies may be large. A new client that begins with another command does not
wait."""
_FEW_VALUES: Final = 64
_VALUE_WORK: Final = 256
"""The cost of each value of a list with more than `_FEW_VALUES`, in bytes of a reply with the same
cost."""
_FEW: Final = 8
"""After the first request of a pipeline whose replies may be large, one reply in this many is
measured."""
_LONG: Final = MUCH // _FEW
"""The size of a reply of which `_FEW` are `MUCH`."""
_SOME: Final = 32
"""How many other requests are passed to the machine at a time."""


class Input:
    """The requests of one node's clients."""

    def __init__(self, machine: Machine, output: Output, operator_log: OperatorLog) -> None:
        self.knobs = machine.state.knobs
        self.turn = self.knobs.client_turn
        """The maximum number of requests per client in this batch; 0 while too much waits for the
        disk."""
        self.may_look = True
        """Are reads served even if `turn` is 0?"""
        self.ready = Ready()
        """The clients whose backlog can be served in the next batch."""
        self._room = self._room_for_new = self.knobs.reply_room
        self._left = self.knobs.turn_of_all
        """How many requests of pipelines this batch may still serve."""
        self._machine = machine
        self._output = output
        self._operator_log = operator_log
        self.senders = Senders(machine.state, operator_log)
        output.freed = self.free

    def take(self, session: Session, requests: list[list[bytes]], now: Now) -> None:
        """Handle received requests: nearly always one, from a client that then waits for its
        reply."""
        machine = self._machine
        if (
            len(requests) == 1
            and not session.is_held
            and not session.weight
            and not session.is_choked
            and self.turn
            and machine.accepts(session.client)
            and (self._room > 0 or not _is_wide(requests[0]))
        ):
            # `Machine.requests` has a set-up cost, which pays for two requests or more.
            args = requests[0]
            started = _now_ns()
            row = machine.request(session.client, args, now)
            if row is not None:
                machine.timed(row, args, _now_ns() - started)
                if row.is_wide and (len(args) > 3 or row.name != "getjob"):
                    self._charge(session, MUCH, is_last=True)
            if session.fault is not None or session.is_held:
                self._after_turn(session, now)
        elif requests or session.is_held or session.fault is not None or session.parser.pending:
            session.backlog.extend(requests)
            self._serve(session, now, self.knobs.least_turn)

    def _serve(self, session: Session, now: Now, least: int = 0) -> None:
        """Pass the client's requests to the machine, as many as it accepts in this batch; up to
        `least` even if `Knobs.turn_of_all` is used up."""
        backlog = session.backlog
        turn, state = self.turn or self._looks(backlog), self._machine.state
        if self._room <= 0 and session.weight <= MUCH and backlog and _is_wide(backlog[0]):
            # The client takes its turn among those with large replies.
            session.weight = MUCH + 1
        if turn > self._left:
            turn = min(turn, max(self._left, least))
        if state.config.requirepass and is_unauthenticated(session.client, state.config):
            turn = min(turn, self.knobs.least_turn)
        if session.weight:
            turn = self._turn_by_weight(session, turn)
        begun_with = turn
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
            if self._charge(session, _LONG, is_last=not (turn and backlog)):
                break
            most = _FEW
        self._left -= begun_with - turn
        if backlog or session.parser.pending or session.fault is not None or session.is_held:
            self._after_turn(session, now)

    def _charge(self, session: Session, much: int, *, is_last: bool) -> bool:
        """Check the cost of the last reply, if it is to this client. If it exceeds `much`, the
        client counts as one with large replies, the room in this batch is reduced, and the result
        is True. Skips the client's last reply of a batch if it has few values, because `Output`
        measures that."""
        replies = self._machine.state.out.replies
        if not replies or replies[-1][0] is not session.client:
            return False
        reply = replies[-1][1]
        if is_last and type(reply) is list and len(reply) <= _FEW_VALUES:
            return False
        cost = _cost(reply)
        if cost <= much:
            return False
        charged = session.weight if session.weight > MUCH else 0
        session.weight = max(session.weight, MUCH + 1)
        self._room -= max(max(cost, MUCH) - charged, 0)
        return True

    def _looks(self, backlog: deque[list[bytes]]) -> int:
        """The number of leading reads in the backlog, which are served while too much waits for the
        disk."""
        if not self.may_look:
            return 0
        looks = takewhile(self._machine.is_read_only, islice(backlog, self.knobs.client_turn))
        return sum(1 for _ in looks)

    def _give(self, client: Client, requests: list[list[bytes]], now: Now) -> Sequence[list[bytes]]:
        """Pass these requests to the machine. Returns those that it does not accept, because the
        client has to wait."""
        machine = self._machine
        at = machine.requests(client, requests, now, _now_ns)
        while at < len(requests):
            # `Machine.requests` stopped before this one, which needs the slow path.
            args = requests[at]
            started = _now_ns()
            if machine.accepts(client):
                row = machine.request(client, args, now)
            elif machine.follows(client, args):
                row = machine.follow(client, args, now)
            else:
                break
            if row is not None:
                machine.timed(row, args, _now_ns() - started)
            at += 1
            if at < len(requests) and client.blocked is Blocked.NO:
                at += machine.requests(client, requests[at:], now, _now_ns)
        return requests[at:]

    def _turn_by_weight(self, session: Session, turn: int) -> int:
        """How many requests may be served of a client with large replies, or of a new one."""
        weight = session.weight
        if weight == MUCH:
            if turn and not session.backlog:
                self._refill(session, turn)
            if session.backlog and session.backlog[0][0].upper() not in _LENGTHY:
                return turn
            self._room_for_new -= weight
            return turn if self._room_for_new > -weight else 0
        self._room -= weight
        return min(turn, 1) if self._room > -weight else 0

    def serve_ready(self, now: Now) -> None:
        """At the beginning of a batch: serve clients whose requests had to wait."""
        self._room = self._room_for_new = self.knobs.reply_room
        self._left = self.knobs.turn_of_all
        if self.ready and self.turn:
            for line in self.ready.lines:
                self._serve_line(line, now)

    def _serve_line(self, line: Line, now: Now) -> None:
        """Serve the clients of a line while there is room. Clients that need another turn are added
        to it again."""
        for _ in range(len(line)):
            if not self._has_room_for(line):
                break
            session, _ = line.popitem(last=False)
            self._serve(session, now)
            self.senders.keeps(session, now)

    def _has_room_for(self, line: Line) -> bool:
        if line is self.ready.heavy and self._room <= 0:
            return False
        if line is self.ready.new and self._room_for_new <= 0:
            return False
        return self._left > 0

    def _queue_up(self, session: Session) -> None:
        backlog = session.backlog
        is_lengthy = bool(backlog) and backlog[0][0].upper() in _LENGTHY
        self.ready.add(session, is_lengthy=is_lengthy)

    def resume(self, clients: Iterable[Client]) -> None:
        """Add clients whose requests the machine accepts again to the ready ones.

        Clients without requests, such as workers after the reply to GETJOB, need no turn.
        """
        find = self._output.sessions.get
        for client in clients:
            session = find(client.id)
            if session is not None and (
                session.is_held or session.fault is not None or session.has_requests
            ):
                self._queue_up(session)

    def free(self, session: Session) -> None:
        """A client is no longer choked."""
        if session.fault is not None or session.has_requests:
            self._queue_up(session)
        elif session.is_held:
            _release(session)

    def forget(self, session: Session) -> None:
        """Drop a client that has disconnected."""
        self.ready.discard(session)
        self.senders.forget(session)

    def half_closed(self, session: Session) -> None:
        """A client whose input is held has closed its sending side: abort its connection if it
        waits."""
        blocked = session.client.blocked
        if blocked in WAITS or blocked in (Blocked.COPIES, Blocked.KEY):
            session.port.abort()

    def _after_turn(self, session: Session, now: Now) -> None:
        """After a turn: hold the input if requests are left, release it if none are."""
        if session.has_requests:
            self._output.hold(session)
            self.senders.keeps(session, now)
            if not session.is_choked and self._takes(session):
                self._queue_up(session)
            elif session.port.is_half_closed:
                self.half_closed(session)
        elif session.fault is not None:
            self._output.hold(session)
            if self._machine.accepts(session.client):
                fault, session.fault = session.fault, None
                self._operator_log.protocol_error(session.client, fault, now)
                self._machine.refuse(session.client, fault, now)
        elif not session.is_choked:
            _release(session)

    def _takes(self, session: Session) -> bool:
        """Would the machine accept the next request of this client?"""
        client, backlog = session.client, session.backlog
        if self._machine.accepts(client):
            return True
        if not backlog and not self._refill(session, self.knobs.least_turn):
            return client.blocked is Blocked.COPIES
        return self._machine.follows(client, backlog[0])

    def _refill(self, session: Session, turn: int) -> bool:
        """Parse pending bytes into requests, if the machine may accept them. Returns whether there
        are requests.

        For a client that waits for replicas, the next request must be parsed to decide whether it
        may be passed in.
        """
        client = session.client
        if session.parser.pending and (
            client.blocked is Blocked.COPIES or self._machine.accepts(client)
        ):
            session.refill(turn)
        return bool(session.backlog)


def _release(session: Session) -> None:
    session.is_held = False
    session.port.resume()


def _alike(backlog: deque[list[bytes]], few: int, some: int) -> list[list[bytes]]:
    """Remove the first requests of a backlog: up to `few` if the first one's reply may be large;
    otherwise up to `some`, and only those whose replies are small."""
    first = backlog.popleft()
    taken = [first]
    name, is_much = first[0], _may_be_much(first)
    most = few if is_much else some
    while backlog and len(taken) < most:
        request = backlog.popleft()
        if (
            not is_much
            and (request[0] != name or len(request[-1]) > _LONG)
            and _may_be_much(request)
        ):
            backlog.appendleft(request)
            break
        taken.append(request)
    return taken


def _may_be_much(request: list[bytes]) -> bool:
    """May the reply be large, because of the command or of the text that it repeats?"""
    return request[0].upper() in _LENGTHY or len(request[-1]) > _LONG


def _is_wide(request: list[bytes]) -> bool:
    """May the request take milliseconds, or begin a reply that does? GETJOB only with COUNT."""
    name = request[0].upper()
    return name in _WIDE or (name == b"GETJOB" and b"COUNT" in request)


def _cost(reply: Reply) -> int:
    """The cost of a reply, in bytes of a reply with the same cost. Only strings, lists and
    `Lengthy` replies can be costly."""
    if type(reply) is list:
        count = len(reply)
        return count * _VALUE_WORK if count > _FEW_VALUES else weight(reply)
    if type(reply) is bytes:
        return len(reply)
    if isinstance(reply, Lengthy):
        return MUCH + reply.work
    return 0
