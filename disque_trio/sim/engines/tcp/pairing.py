"""Pairs the messages in the traces of nodes with the frames that the proxies carried.

At the receiver, times do not determine the frame of a row. Frames that a cut delays on an old
connection arrive after later ones on a new connection, and a node reads its clock before its
sockets, so its row may have an earlier time than the frame at the proxy. But the order on a
connection is reliable: a process reads it from the beginning and without gaps, until the connection
or the process ends. So a row belongs to the next equal frame of a connection to this process, and
every row has one.

At the sender, times are reliable: a row is written before its frame arrives at the proxy.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import attrs

from disque_trio.sim.engines.events import NEVER
from disque_trio.sim.engines.tcp.links import Flight
from disque_trio.sim.engines.tcp.proxies import ProcessLink
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

GOSSIP: Final = ("ping", "pong", "meet")
"""Heartbeat messages, which nodes do not trace."""
_AHEAD: Final = 20
"""The number of rows that are examined to choose between two connections."""
_NO_REF: Final = 1 << 40
"""The numbers of messages that no proxy has seen start here."""

Key = tuple[str, str, str, str]
"""Source, target, message, job."""


@attrs.frozen
class NodeTrace:
    """The trace of one node, with the ids that it had."""

    name: str
    shorts: tuple[str, ...]
    """The beginnings of its ids."""
    rows: list[Row]
    begins: Sequence[int] = (0,)
    """By process: the index of its first row."""

    def lives(self) -> list[list[Row]]:
        """Return the rows of each process."""
        ends = [*self.begins[1:], len(self.rows)]
        return [self.rows[begin:end] for begin, end in zip(self.begins, ends, strict=True)]


class Pairing:
    """Numbers the messages in the traces."""

    def __init__(self, traces: Sequence[NodeTrace], flights: Iterable[Flight]) -> None:
        self._traces = {trace.name: trace for trace in traces}
        self._flights = {flight.ref: flight for flight in flights}
        carried = [each for each in self._flights.values() if each.wording.name not in GOSSIP]
        carried.sort(key=lambda flight: flight.sent)
        self._read: dict[int, None] = {}
        """The numbers of messages that were received."""
        for trace in traces:
            self._number_receipts(trace, carried)
        self._number_sends(carried)

    # Receivers.

    def _number_receipts(self, trace: NodeTrace, carried: Sequence[Flight]) -> None:
        for life, rows in enumerate(trace.lives(), 1):
            streams = _streams([each for each in carried if f"n{each.target}" == trace.name], life)
            received: dict[str, list[Row]] = defaultdict(list)
            for row in rows:
                if row.kind == "recv":
                    received[row.peer].append(row)
            for peer, theirs in received.items():
                for at, row in enumerate(theirs):
                    flight = _next_like(theirs[at : at + _AHEAD], streams[peer])
                    if flight is not None:
                        row.ref = flight.ref
                        self._read[flight.ref] = None

    # Senders.

    def _number_sends(self, carried: Sequence[Flight]) -> None:
        """Give each frame the last equal row that was written before it and is not taken by a later
        frame: messages of earlier rows may not have left their node."""
        written: dict[Key, list[Row]] = defaultdict(list)
        for trace in self._traces.values():
            for row in trace.rows:
                if row.kind == "send":
                    written[row.node, row.peer, row.cause, row.job].append(row)
        for flight in reversed(carried):
            rows = written[_key(flight)]
            while rows and rows[-1].time > flight.sent:
                rows.pop()
            if rows:
                rows.pop().ref = flight.ref

    # Lost messages.

    def lost(self) -> list[Row]:
        """Return rows of messages that were lost."""
        rows = []
        number = _NO_REF
        for trace in self._traces.values():
            for row in trace.rows:
                if row.kind != "send" or row.ref in self._read:
                    continue
                if not row.ref:
                    # The link, or the node, had ended before a proxy saw the message.
                    number += 1
                    row.ref = number
                    rows.append(attrs.evolve(row, kind="lost", detail="never linked"))
                elif (loss := self._loss(self._flights[row.ref])) is not None:
                    time, why = loss
                    rows.append(attrs.evolve(row, time=time, kind="lost", detail=why))
        return rows

    def _loss(self, flight: Flight) -> tuple[Micros, str] | None:
        """Return when the frame was lost, and why; None if it was in transit when the run ended."""
        if flight.lost < NEVER:
            return flight.lost, flight.why
        link = flight.link
        if link is None:
            return None
        if 0 < link.life < len(self._traces[f"n{flight.target}"].begins):
            return flight.received, "crash"
        return (flight.received, "broken") if link.has_ended else None


def _streams(flights: Iterable[Flight], life: int) -> dict[str, list[deque[Flight]]]:
    """Return, by source, the frames that each connection brought to this process of the target."""
    found: dict[ProcessLink, deque[Flight]] = {}
    streams: dict[str, list[deque[Flight]]] = defaultdict(list)
    for flight in flights:
        link = flight.link
        if link is None or link.life != life:
            continue
        if link not in found:
            found[link] = deque()
            streams[f"n{flight.source}"].append(found[link])
        found[link].append(flight)
    return streams


def _next_like(rows: Sequence[Row], streams: Sequence[deque[Flight]]) -> Flight | None:
    """Take the frame of the first row from its stream. If the row matches the next frame of several
    streams, take the stream that the following rows continue best. A node refuses some frames
    without a row: if the row matches no next frame, skip frames of the stream that has a match
    first."""
    row = rows[0]
    heads = [stream for stream in streams if stream and _is_of(row, stream[0])]
    if heads:
        if len(heads) == 1:
            return heads[0].popleft()
        found = max(heads, key=lambda head: (_fitting(rows, streams, head), -head[0].received))
        return found.popleft()
    place, stream = min(
        ((_place_in(stream, row), stream) for stream in streams),
        key=lambda found: found[0],
        default=(NEVER, deque[Flight]()),
    )
    if place == NEVER:
        return None
    for _ in range(place):
        stream.popleft()
    return stream.popleft()


def _fitting(rows: Sequence[Row], streams: Sequence[deque[Flight]], head: deque[Flight]) -> int:
    """Return the number of rows that match a next frame if the first row belongs to this stream."""
    rest = [deque(islice(stream, stream is head, _AHEAD)) for stream in streams]
    for count, row in enumerate(rows[1:], 1):
        heads = [stream for stream in rest if stream and _is_of(row, stream[0])]
        if not heads:
            return count
        min(heads, key=lambda stream: stream[0].received).popleft()
    return len(rows)


def _place_in(stream: deque[Flight], row: Row) -> int:
    return next((place for place, flight in enumerate(stream) if _is_of(row, flight)), NEVER)


def _is_of(row: Row, flight: Flight) -> bool:
    return flight.wording.job == row.job and flight.wording.name == row.cause


def _key(flight: Flight) -> Key:
    return f"n{flight.source}", f"n{flight.target}", flight.wording.name, flight.wording.job
