"""The faults of a run over time: cuts, clogs, outages, pauses, and the errors of clocks."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import attrs

from disque_trio.sim.model.clock import EPOCH_MS
from disque_trio.sim.picture import plan_words
from disque_trio.sim.scenarios import fault_kinds
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

Pair = tuple[str, str]

DAY_MS = 86_400_000
STEP_MS = 50
ROUNDING_MS = 1


@attrs.define
class Bar:
    """A fault from `start` to `end`, which are equal for a momentary one."""

    what: str
    start: Micros
    end: Micros
    label: str
    nodes: tuple[str, ...] = ()
    """The affected nodes; for links, both ends."""
    colour: str = "other"
    is_of_links: bool = False


@attrs.frozen(order=True)
class _Interval:
    """A fault of one node or one directed link. Sorting groups the parts of a fault."""

    start: Micros
    end: Micros
    what: str
    cause: str
    node: str
    peer: str


def bars(rows: Sequence[Row], nodes: Sequence[str], end: Micros) -> list[Bar]:
    """Return all bars, ordered by start."""
    found: list[Bar] = []
    intervals = sorted(_intervals(rows, end))
    for key, together in groupby(
        intervals, lambda interval: (interval.start, interval.end, interval.what, interval.cause)
    ):
        start, stop, what, cause = key
        found.append(_bar(what, start, stop, cause, list(together), nodes))
    return found


def _bar(
    what: str,
    start: Micros,
    end: Micros,
    cause: str,
    intervals: Sequence[_Interval],
    nodes: Sequence[str],
) -> Bar:
    if intervals[0].peer and end > start:
        pairs = [(interval.node, interval.peer) for interval in intervals]
        touched = tuple(dict.fromkeys(name for pair in pairs for name in pair))
        label = f"{shape(pairs, nodes)} {cause}".rstrip()
        return Bar(what, start, end, label, touched, *_looks(what))
    names = tuple(dict.fromkeys(interval.node for interval in intervals))
    peers = " ".join(dict.fromkeys(interval.peer for interval in intervals if interval.peer))
    label = " ".join(part for part in (plan_words.nodes(names), cause or what, peers) if part)
    return Bar(what, start, end, label, names, *_looks(what))


def _looks(what: str) -> tuple[str, bool]:
    return next(
        ((kind.colour, kind.is_of_links) for kind in fault_kinds.KINDS if kind.bar == what),
        ("other", False),
    )


def _intervals(rows: Sequence[Row], end: Micros) -> Iterator[_Interval]:
    """Yield all faults, of single nodes and links."""
    is_open: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        kind = fault_kinds.ROWS.get(row.kind)
        if kind is None:
            continue
        what = kind.bar
        key = (what, row.node, row.peer)
        if not (kind.end_row or kind.is_level) or _is_newcomer(row, is_open):
            yield _interval("join" if row.kind == "start" else row.kind, row, row.time)
        elif not kind.is_level and row.kind == kind.row:
            is_open.setdefault(key, row)
        else:
            for closed in [key] if row.node else [each for each in is_open if each[0] == what]:
                if closed in is_open:
                    yield _interval(what, is_open.pop(closed), row.time)
            if kind.is_level and not kind.is_ended_by(row.kind, row.detail):
                is_open[key] = row
    for (what, _, _), row in is_open.items():
        yield _interval(what, row, end)


def _is_newcomer(row: Row, is_open: dict[tuple[str, str, str], Row]) -> bool:
    return row.kind == "start" and row.time > 0 and ("crash", row.node, "") not in is_open


def _interval(what: str, row: Row, end: Micros) -> _Interval:
    amount = fault_kinds.ROWS[row.kind].detail.format(row.detail) if row.detail else ""
    name = row.kind if end == row.time or (amount and not row.peer) else ""
    label = " ".join(part for part in (name, row.cause, amount) if part)
    return _Interval(row.time, end, what, label, row.node, row.peer)


def shape(links: Sequence[Pair], nodes: Sequence[str]) -> str:
    """Return a short description of links: `n1 n2 | n3` for a partition into groups, else one by
    one."""
    cut = dict.fromkeys(links)
    groups = _groups(cut, nodes)
    crossing = sum(len(group) * (len(nodes) - len(group)) for group in groups)
    if len(groups) > 1 and crossing == len(cut):
        return " | ".join(plan_words.nodes(group) for group in groups)
    shown = [
        f"{node}↔{peer}" if (peer, node) in cut else f"{node}→{peer}"
        for node, peer in cut
        if (peer, node) not in cut or node < peer
    ]
    return (
        ", ".join(shown) if len(shown) <= 4 else f"{', '.join(shown[:3])} and {len(shown) - 3} more"
    )


def _groups(cut: dict[Pair, None], nodes: Sequence[str]) -> list[list[str]]:
    """Return groups of nodes that can still reach each other, directly or through others."""
    groups: list[list[str]] = []
    left = dict.fromkeys(nodes)
    while left:
        group = [next(iter(left))]
        del left[group[0]]
        for node in group:
            near = [peer for peer in left if (node, peer) not in cut or (peer, node) not in cut]
            group += near
            for peer in near:
                del left[peer]
        groups.append(sorted(group, key=plan_words.by_number))
    return groups


def clock_errors(
    rows: Sequence[Row], nodes: Sequence[str]
) -> dict[str, list[tuple[Micros, int, int]]]:
    """Return, for nodes with wrong clocks, the time, and by how many milliseconds the wall clock
    and the monotonic clock are ahead of true time."""
    errors: dict[str, list[tuple[Micros, int, int]]] = {node: [] for node in nodes}
    began: dict[str, int] = {}
    zero = _true_wall(rows)
    for row in rows:
        if row.wall and row.node in errors:
            true_ms = row.time // 1000
            mono = row.mono - true_ms - began.setdefault(row.node, row.mono - true_ms)
            _note(errors[row.node], (row.time, row.wall - true_ms - zero, mono))
    return {node: points for node, points in errors.items() if _is_off(points)}


def _true_wall(rows: Sequence[Row]) -> int:
    """Return a true wall clock's reading at time 0: in a simulation `EPOCH_MS`, else the median of
    the nodes' first readings."""
    first: dict[str, int] = {}
    for row in rows:
        if row.wall:
            first.setdefault(row.node, row.wall - row.time // 1000)
    middle = sorted(first.values())[len(first) // 2] if first else EPOCH_MS
    return EPOCH_MS if abs(middle - EPOCH_MS) < DAY_MS else middle


def _note(points: list[tuple[Micros, int, int]], point: tuple[Micros, int, int]) -> None:
    """Add a reading if the error changed; a large change is drawn as a step."""
    change = max(abs(point[1] - points[-1][1]), abs(point[2] - points[-1][2])) if points else 0
    if change > STEP_MS:
        points.append((point[0], *points[-1][1:]))
    if not points or change > ROUNDING_MS:
        points.append(point)


def _is_off(points: Sequence[tuple[Micros, int, int]]) -> bool:
    return any(max(abs(wall), abs(mono)) > ROUNDING_MS for _, wall, mono in points)
