"""Merges the traces of live nodes into one history, for checkers and pictures.

Each node writes its own view, with short ids as names and the wall clock as time. The history has
the names n1, n2 and so on, and a time that starts with the first row. Equal messages, sent and
received, are paired in order, which is correct while links lose none; after a loss a message may be
paired with a later equal one. Rows are sorted by time, so the clocks of several machines should
agree.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Expect, Plan
from disque_trio.sim.scenarios.vocabulary import DUPLICATE_CAUSES
from disque_trio.tracing.rows import Row

SCENARIO: Final = "live"
"""The scenario of a history without a plan."""
_MESSAGES: Final = ("send", "recv")


@attrs.frozen
class History:
    """One history of several nodes."""

    rows: list[Row]
    names: dict[str, str]
    """By short id of a node: its name in the history."""
    epoch: int
    """Its time 0, in microseconds since 1970."""


def history(files: Sequence[Iterable[Row]]) -> History:
    """Return one history of the rows of all files. A node may have written several of them."""
    traces = [list(rows) for rows in files]
    epoch = min((rows[0].time for rows in traces if rows), default=0)
    names = _names(traces)
    rows = merged(traces, names)
    return History([attrs.evolve(row, time=row.time - epoch) for row in rows], names, epoch)


def merged(traces: Sequence[Sequence[Row]], names: dict[str, str]) -> list[Row]:
    """Return the merged rows with their original times, and these names for nodes."""
    # Nodes number their clients' requests in the same way, and clients of two nodes may have one
    # address, so the numbers of two nodes must differ. The numbers of one node in several files, as
    # after a rotation, must not.
    nodes = [next((names.get(row.node, row.node) for row in trace), "") for trace in traces]
    numbers = {node: number for number, node in enumerate(dict.fromkeys(nodes))}
    rows = [
        attrs.evolve(
            translated(row, names), ref=row.ref * len(numbers) + numbers[node] if row.ref else 0
        )
        for node, trace in zip(nodes, traces, strict=True)
        for row in trace
    ]
    rows.sort(key=lambda row: row.time)
    _pair(rows)
    return rows


def plan_of(rows: Sequence[Row]) -> Plan:
    """Return the plan of a live cluster: its nodes and its duration. It allows all causes of
    duplicates, but not unexplained ones."""
    nodes = dict.fromkeys(row.node for row in rows)
    return Plan(
        scenario=SCENARIO,
        seed=0,
        nodes=max(1, len(nodes)),
        chaos=rows[-1].time if rows else 0,
        expect=Expect(duplicates=DUPLICATE_CAUSES),
    )


def _names(traces: Sequence[Sequence[Row]]) -> dict[str, str]:
    """Return the name in the history by short id. Files that share an id are of the same node."""
    names: dict[str, str] = {}
    count = 0
    for trace in traces:
        shorts = dict.fromkeys(row.node for row in trace)
        known = next((names[short] for short in shorts if short in names), None)
        if known is None:
            count += 1
            known = f"n{count}"
        names.update(dict.fromkeys(shorts, known))
    return names


def translated(row: Row, names: dict[str, str]) -> Row:
    """Return the row with the names in the history."""
    return attrs.evolve(
        row,
        node=names.get(row.node, row.node),
        peer=names.get(row.peer, row.peer),
        detail=_detail(row, names),
    )


def _detail(row: Row, names: dict[str, str]) -> str:
    """Return the detail with translated names: holders, or the subject of a FAIL."""
    if row.kind not in _MESSAGES:
        return row.detail
    if row.cause == "fail":
        return names.get(row.detail, "?")
    begin, mark, rest = row.detail.partition("holders=")
    if not mark or row.cause == "setack":
        return row.detail
    holders, space, tail = rest.partition(" ")
    copies = [copy.split(",") for copy in holders.split(";")]
    shown = ";".join(",".join(names.get(holder, "?") for holder in copy) for copy in copies)
    return begin + mark + shown + space + tail


def _pair(rows: Iterable[Row]) -> None:
    """Number each message at both of its ends."""
    waiting: dict[tuple[str, ...], deque[Row]] = defaultdict(deque)
    number = 0
    for row in rows:
        if row.kind == "send":
            number += 1
            row.ref = number
            waiting[row.node, row.peer, row.cause, row.job, row.detail].append(row)
        elif row.kind == "recv":
            sent = waiting[row.peer, row.node, row.cause, row.job, row.detail]
            row.ref = sent.popleft().ref if sent else 0
