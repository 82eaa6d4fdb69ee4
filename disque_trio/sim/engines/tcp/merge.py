"""Merges the traces of nodes, the frames of proxies, and the rows of agents and faults.

All have the clock of one machine, so they are sorted by time. The trace of a node contains neither
the fate of a message nor the agent of a client's address. This module derives both:

- The frames that the proxies saw pair each ``send`` with its ``recv``, or show that it was lost
  (`pairing`).
- Requests on one connection have the same order at both ends.

A node reads its clock before its sockets, so its row about an input may have an earlier time than
the input. Such a row, and those after it, get the time at which the input was sent to the node.
Then this module computes vector clocks, as the simulated engines do.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from disque_trio.sim.engines.events import NEVER
from disque_trio.sim.engines.tcp.clients import ClientAddress
from disque_trio.sim.engines.tcp.links import Flight
from disque_trio.sim.engines.tcp.pairing import GOSSIP, NodeTrace, Pairing
from disque_trio.sim.model.vector_clocks import Stamp, VectorClock
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.sim.traces.merge_live import translated
from disque_trio.tracing.rows import Row


@attrs.frozen(kw_only=True)
class Sources:
    """Everything that is merged."""

    epoch: Micros
    """The reading of the wall clock at time 0, in microseconds."""
    traces: Sequence[NodeTrace]
    ours: Sequence[Row]
    """Rows of agents and faults; their times already count from the epoch."""
    flights: Sequence[Flight]
    agents: dict[ClientAddress, str]
    """By connection: the name of its agent."""
    operations: dict[ClientAddress, list[int]]
    """By connection: the numbers of its requests that nodes trace."""


def merge(sources: Sources) -> list[Row]:
    """Return the merged history."""
    names = {short: trace.name for trace in sources.traces for short in trace.shorts}
    traces = [
        attrs.evolve(trace, rows=_translated(trace, names, sources)) for trace in sources.traces
    ]
    pairing = Pairing(traces, sources.flights)
    _put_after_causes(traces, sources)
    theirs = [trace.rows for trace in traces]
    rows = _in_order([*theirs, pairing.lost(), [*sources.ours], _of_gossip(sources.flights)])
    _compute_clocks(rows, [trace.name for trace in sources.traces])
    return [row for row in rows if not _is_view(row)]


def _put_after_causes(traces: Iterable[NodeTrace], sources: Sources) -> None:
    """Move rows of nodes so that none precedes the messages and requests that the node had read."""
    arrivals = {flight.ref: flight.received for flight in sources.flights}
    requests = {row.ref: row.time for row in sources.ours if row.kind.endswith(".invoke")}
    for trace in traces:
        earliest = -NEVER
        for row in trace.rows:
            if row.kind == "recv":
                earliest = max(earliest, arrivals.get(row.ref, earliest))
            elif row.kind.endswith(".invoke"):
                earliest = max(earliest, requests.get(row.ref, earliest))
            row.time = max(row.time, earliest)


def _in_order(parts: Iterable[list[Row]]) -> list[Row]:
    """Sort by time; within a microsecond, requests precede rows of nodes, which precede replies."""
    return sorted((row for part in parts for row in part), key=lambda row: (row.time, _rank(row)))


def _rank(row: Row) -> int:
    if "." not in row.kind or not row.client or _is_view(row):
        return 1
    return 0 if row.kind.endswith(".invoke") else 2


_VIEW: Final = "view:"
"""Prefix of the client in a node's row about a client. The agent's own row replaces this one."""


def _is_view(row: Row) -> bool:
    return row.client.startswith(_VIEW)


# Rows of nodes.


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
            # The first start of a node reads a nodes.conf that the engine wrote; it has no earlier
            # life.
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
    """Return the agent's number of a request, which the node numbers differently."""
    if row.ref not in asked:
        asked[row.ref] = numbers[len(asked)] if len(asked) < len(numbers) else 0
    return asked[row.ref]


# Messages.


def _of_gossip(flights: Iterable[Flight]) -> list[Row]:
    """Return rows of heartbeat messages, which nodes do not trace."""
    rows = []
    for flight in flights:
        if flight.wording.name not in GOSSIP:
            continue
        source, target, wording = f"n{flight.source}", f"n{flight.target}", flight.wording
        sent = Row(
            flight.sent, "send", source, peer=target, cause=wording.name, detail=wording.detail
        )
        sent.ref = flight.ref
        rows.append(sent)
        if flight.received < NEVER:
            rows.append(
                attrs.evolve(sent, time=flight.received, kind="recv", node=target, peer=source)
            )
        elif flight.lost < NEVER:
            rows.append(attrs.evolve(sent, time=flight.lost, kind="lost", detail=flight.why))
    return rows


# Vector clocks.


class _Clocks:
    """The clocks of a run: those of the nodes in order, then those of clients in order of
    appearance."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._clocks = {name: VectorClock(place) for place, name in enumerate(nodes)}

    def of(self, name: str) -> VectorClock:
        """Return the actor's clock."""
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
        key = _key_of(row, is_agents=is_agents)
        if key is not None:
            sent[key] = row.clock


def _learned_from(row: Row, *, is_agents: bool) -> object:
    """Return the key of the event at another actor that caused this one, if any."""
    if row.kind == "recv":
        return ("message", row.ref)
    if is_agents and row.kind == "get.deliver":
        return ("serve", row.client, row.job)
    if is_agents and not row.kind.endswith(".invoke"):
        return ("reply", row.ref)
    if _is_view(row) and row.kind.endswith(".invoke"):
        return ("request", row.ref)
    return None


def _key_of(row: Row, *, is_agents: bool) -> object:
    """Return the key under which other actors learn of the event, if any."""
    if row.kind == "send":
        return ("message", row.ref)
    if row.kind == "serve":
        return ("serve", row.client, row.job)
    if is_agents and row.kind.endswith(".invoke"):
        return ("request", row.ref)
    if _is_view(row) and not row.kind.endswith(".invoke"):
        return ("reply", row.ref)
    return None
