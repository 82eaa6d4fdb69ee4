"""Merges the traces of nodes, the frames of proxies, and the rows of agents and faults.

All have the clock of one machine, so they are sorted by time. A node does not know what became of a
message, or to which agent a client's address belongs. This module finds out:

- The frames that our proxies saw pair each ``send`` with its ``recv``, or show that it was lost.
- Requests on one connection have the same order at both ends.

Then it computes vector clocks, as the simulated engines keep them.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from disque_trio.sim.engines.events import NEVER
from disque_trio.sim.engines.tcp.clients import ClientAddress
from disque_trio.sim.engines.tcp.links import Flight
from disque_trio.sim.model.vector_clocks import Stamp, VectorClock
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.sim.traces.merge_live import translated
from disque_trio.tracing.rows import Row

STALE: Final[Micros] = 2_000_000
"""A message that has not reached a proxy within this time is lost: its link had ended."""
_GOSSIP: Final = ("ping", "pong", "meet")
_NO_REF: Final = 1 << 40
"""The numbers of messages that no proxy has seen begin here."""

Key = tuple[str, str, str, str]
"""Source, target, message, job."""


@attrs.frozen
class NodeTrace:
    """The trace of one node, with the ids that it had."""

    name: str
    shorts: tuple[str, ...]
    """The beginnings of its ids."""
    rows: Sequence[Row]


@attrs.frozen(kw_only=True)
class Sources:
    """Everything that is merged."""

    epoch: Micros
    """What the wall clock showed at time 0, in microseconds."""
    traces: Sequence[NodeTrace]
    ours: Sequence[Row]
    """Rows of agents and faults; their times count from the epoch already."""
    flights: Sequence[Flight]
    agents: dict[ClientAddress, str]
    """The agent of each connection."""
    operations: dict[ClientAddress, list[int]]
    """The numbers of its requests that nodes trace."""


def merge(sources: Sources) -> list[Row]:
    """The history."""
    names = {short: trace.name for trace in sources.traces for short in trace.shorts}
    theirs = [_translated(trace, names, sources) for trace in sources.traces]
    _pair_messages(theirs, sources.flights)
    rows = _in_order([*theirs, [*sources.ours], _of_gossip(sources.flights)])
    _compute_clocks(rows, [trace.name for trace in sources.traces])
    return [row for row in rows if not _is_view(row)]


def _in_order(parts: Iterable[list[Row]]) -> list[Row]:
    """By time. Within a microsecond: requests, then rows of nodes, then replies."""
    return sorted((row for part in parts for row in part), key=lambda row: (row.time, _rank(row)))


def _rank(row: Row) -> int:
    if "." not in row.kind or not row.client or _is_view(row):
        return 1
    return 0 if row.kind.endswith(".invoke") else 2


_VIEW: Final = "view:"
"""Marks the client of a node's row about a client. The agent's own row is better."""


def _is_view(row: Row) -> bool:
    return row.client.startswith(_VIEW)


# What nodes wrote.


def _translated(trace: NodeTrace, names: dict[str, str], sources: Sources) -> list[Row]:
    rows = []
    named = ""
    asked: dict[str, dict[int, int]] = defaultdict(dict)
    for row in trace.rows:
        client, ref, cause = row.client, row.ref, row.cause
        address = trace.name, client
        if "." in row.kind:
            ref = _number_of(row, asked[client], sources.operations.get(address, []))
            client = _VIEW + client
        elif client:
            client = sources.agents.get(address, client)
        if row.kind == "start":
            # A node starts with a nodes.conf that we have written: that is no earlier life.
            cause, named = "empty" if row.node == named else "fresh", row.node
        rows.append(
            attrs.evolve(
                translated(row, names),
                time=row.time - sources.epoch,
                client=client,
                cause=cause,
                ref=ref,
            )
        )
    return rows


def _number_of(row: Row, asked: dict[int, int], numbers: list[int]) -> int:
    """The agent's number of a request, which the node numbers differently."""
    if row.ref not in asked:
        asked[row.ref] = numbers[len(asked)] if len(asked) < len(numbers) else 0
    return asked[row.ref]


# Messages.


def _of_gossip(flights: Iterable[Flight]) -> list[Row]:
    """Rows of heartbeat messages, which nodes do not trace."""
    rows = []
    for flight in flights:
        if flight.said.name not in _GOSSIP:
            continue
        source, target, said = f"n{flight.source}", f"n{flight.target}", flight.said
        sent = Row(flight.sent, "send", source, peer=target, cause=said.name, detail=said.detail)
        sent.ref = flight.ref
        rows.append(sent)
        if flight.received < NEVER:
            rows.append(
                attrs.evolve(sent, time=flight.received, kind="recv", node=target, peer=source)
            )
        elif flight.lost < NEVER:
            rows.append(attrs.evolve(sent, time=flight.lost, kind="lost", detail=flight.why))
    return rows


def _pair_messages(traces: list[list[Row]], flights: Sequence[Flight]) -> None:
    """Number the messages, and add rows for lost ones."""
    sends, receipts, starts = _queues(traces)
    by_name = {rows[0].node: rows for rows in traces if rows}
    for flight in sorted(flights, key=lambda flight: flight.sent):
        if flight.said.name in _GOSSIP:
            continue
        source, target = f"n{flight.source}", f"n{flight.target}"
        key = (source, target, flight.said.name, flight.said.job)
        row = _sender_of(flight, sends.get(key))
        if row is not None:
            row.ref = flight.ref
        receipt = _receipt_of(flight, receipts.get(key), starts.get(target, []))
        if receipt is not None:
            receipt.ref = flight.ref
        elif row is not None:
            lost = flight.lost if flight.lost < NEVER else flight.received
            why = flight.why or "crash"
            by_name[source].append(_lost(row, min(lost, max(row.time, lost)), why, flight.ref))
    _number_the_rest(by_name)


def _queues(
    traces: list[list[Row]],
) -> tuple[dict[Key, deque[Row]], dict[Key, deque[Row]], dict[str, list[Micros]]]:
    """Sent and received messages, in order, and the start times of nodes."""
    sends: dict[Key, deque[Row]] = defaultdict(deque)
    receipts: dict[Key, deque[Row]] = defaultdict(deque)
    starts: dict[str, list[Micros]] = defaultdict(list)
    for rows in traces:
        for row in rows:
            if row.kind == "send":
                sends[row.node, row.peer, row.cause, row.job].append(row)
            elif row.kind == "recv":
                receipts[row.peer, row.node, row.cause, row.job].append(row)
            elif row.kind == "start":
                starts[row.node].append(row.time)
    return sends, receipts, starts


def _sender_of(flight: Flight, queue: deque[Row] | None) -> Row | None:
    """The row of the sent frame: the oldest with its key, unless that is too old."""
    if not queue or queue[0].time > flight.sent:
        return None
    while len(queue) > 1 and queue[1].time <= flight.sent and flight.sent - queue[0].time > STALE:
        queue.popleft()
    return queue.popleft()


def _receipt_of(flight: Flight, queue: deque[Row] | None, starts: list[Micros]) -> Row | None:
    """The row of the frame's arrival; None if the process ended before it read the frame."""
    if flight.received == NEVER or not queue:
        return None
    while queue and queue[0].time < flight.received:
        queue.popleft()
    if not queue or any(flight.received < start <= queue[0].time for start in starts):
        return None
    return queue.popleft()


def _lost(row: Row, time: Micros, why: str, ref: int) -> Row:
    return attrs.evolve(row, time=time, kind="lost", detail=why, ref=ref)


def _number_the_rest(by_name: dict[str, list[Row]]) -> None:
    """Messages that no proxy has seen: the link, or the node, had ended before."""
    number = _NO_REF
    for rows in by_name.values():
        for row in [row for row in rows if row.kind == "send" and not row.ref]:
            number += 1
            row.ref = number
            rows.append(_lost(row, row.time, "never linked", number))


# Vector clocks.


class _Clocks:
    """The clocks of a run: the nodes in order, then the clients as they come."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._clocks = {name: VectorClock(place) for place, name in enumerate(nodes)}

    def of(self, name: str) -> VectorClock:
        """The actor's clock."""
        if name not in self._clocks:
            self._clocks[name] = VectorClock(len(self._clocks))
        return self._clocks[name]


def _compute_clocks(rows: list[Row], nodes: Sequence[str]) -> None:
    clocks = _Clocks(nodes)
    sent: dict[object, Stamp] = {}
    for row in rows:
        is_agents = "." in row.kind and not _is_view(row) and bool(row.client)
        if not (row.node or is_agents):
            continue
        clock = clocks.of(row.client if is_agents else row.node)
        learned = sent.get(_learned_from(row, is_agents=is_agents))
        if learned is not None:
            clock.join(learned)
        row.clock = clock.stamp() if row.kind == "lost" else clock.tick()
        told = _tells(row, is_agents=is_agents)
        if told is not None:
            sent[told] = row.clock


def _learned_from(row: Row, *, is_agents: bool) -> object:
    """The key of the event at another actor that caused this one, if any."""
    if row.kind == "recv":
        return ("message", row.ref)
    if is_agents and row.kind == "get.deliver":
        return ("serve", row.client, row.job)
    if is_agents and not row.kind.endswith(".invoke"):
        return ("reply", row.ref)
    if _is_view(row) and row.kind.endswith(".invoke"):
        return ("request", row.ref)
    return None


def _tells(row: Row, *, is_agents: bool) -> object:
    """The key under which other actors learn of the event, if any."""
    if row.kind == "send":
        return ("message", row.ref)
    if row.kind == "serve":
        return ("serve", row.client, row.job)
    if is_agents and row.kind.endswith(".invoke"):
        return ("request", row.ref)
    if _is_view(row) and not row.kind.endswith(".invoke"):
        return ("reply", row.ref)
    return None
