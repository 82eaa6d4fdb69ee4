"""The weather of a run: when what was cut, clogged, down, paused, and how wrong the clocks were."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import attrs

from disque_trio.sim.model.clock import EPOCH_MS
from disque_trio.sim.picture import plan_words
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.tracing.rows import Row

Pair = tuple[str, str]

OPENS = {
    "cut": "cut",
    "clog": "clog",
    "crash": "crash",
    "pause": "pause",
    "rule": "drop",
    "half-open": "half-open",
    "wall.freeze": "frozen wall",
}
CLOSES = {
    "heal": "cut",
    "release": "clog",
    "unclog": "clog",
    "start": "crash",
    "resume": "pause",
    "unrule": "drop",
    "half-open.end": "half-open",
    "wall.thaw": "frozen wall",
}
LEVELS = frozenset({"delay", "slow", "leave", "memory", "pause-queue"})
"""Rows whose detail says how much from now on; `NOTHING` of it is the end."""
NOTHING = frozenset({"", "0", "no", "none"})
POINTS = frozenset({"wipe", "remove", "forget", "clock.step", "clock.rate"})
WORLD = frozenset({*OPENS, *CLOSES, *LEVELS, *POINTS})
"""Kinds of rows that the strip shows."""
UNITS = {
    "delay": "+{} ms",
    "slow": "{} ms for each batch",
    "clock.step": "{} ms",
    "clock.rate": "{} ppm",
}
DAY_MS = 86_400_000
STEP_MS = 50
ROUNDING_MS = 1


@attrs.define
class Bar:
    """Something was wrong from `start` to `end` (equal for what has no length)."""

    what: str
    start: Micros
    end: Micros
    label: str
    nodes: tuple[str, ...] = ()
    """Whose lanes it touches; of links, both ends."""


@attrs.frozen(order=True)
class _Spell:
    """One node or one directed link in trouble. The order puts together what is one fault."""

    start: Micros
    end: Micros
    what: str
    cause: str
    node: str
    peer: str


def bars(rows: Sequence[Row], nodes: Sequence[str], end: Micros) -> list[Bar]:
    """All bars of the fault strip, in order of their start."""
    found: list[Bar] = []
    spells = sorted(_spells(rows, end))
    for key, together in groupby(
        spells, lambda spell: (spell.start, spell.end, spell.what, spell.cause)
    ):
        start, stop, what, cause = key
        found.append(_bar(what, start, stop, cause, list(together), nodes))
    return found


def _bar(
    what: str,
    start: Micros,
    end: Micros,
    cause: str,
    spells: Sequence[_Spell],
    nodes: Sequence[str],
) -> Bar:
    if spells[0].peer and end > start:
        pairs = [(spell.node, spell.peer) for spell in spells]
        touched = tuple(dict.fromkeys(name for pair in pairs for name in pair))
        return Bar(what, start, end, f"{shape(pairs, nodes)} {cause}".rstrip(), touched)
    names = tuple(dict.fromkeys(spell.node for spell in spells))
    peers = " ".join(dict.fromkeys(spell.peer for spell in spells if spell.peer))
    label = " ".join(part for part in (plan_words.nodes(names), cause or what, peers) if part)
    return Bar(what, start, end, label, names)


def _spells(rows: Sequence[Row], end: Micros) -> Iterator[_Spell]:
    """Everything that began and ended, or happened at one moment."""
    is_open: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        if row.kind not in WORLD:
            continue
        what = OPENS.get(row.kind, CLOSES.get(row.kind, row.kind))
        key = (what, row.node, row.peer)
        if row.kind in POINTS or _is_newcomer(row, is_open):
            yield _spell("join" if row.kind == "start" else row.kind, row, row.time)
        elif row.kind in OPENS:
            is_open.setdefault(key, row)
        else:
            for closed in [key] if row.node else [each for each in is_open if each[0] == what]:
                if closed in is_open:
                    yield _spell(what, is_open.pop(closed), row.time)
            if row.kind in LEVELS and row.detail.rpartition(" ")[2] not in NOTHING:
                is_open[key] = row
    for (what, _, _), row in is_open.items():
        yield _spell(what, row, end)


def _is_newcomer(row: Row, is_open: dict[tuple[str, str, str], Row]) -> bool:
    return row.kind == "start" and row.time > 0 and ("crash", row.node, "") not in is_open


def _spell(what: str, row: Row, end: Micros) -> _Spell:
    amount = UNITS.get(row.kind, "{}").format(row.detail) if row.detail else ""
    name = row.kind if end == row.time or (amount and not row.peer) else ""
    said = " ".join(part for part in (name, row.cause, amount) if part)
    return _Spell(row.time, end, what, said, row.node, row.peer)


def shape(links: Sequence[Pair], nodes: Sequence[str]) -> str:
    """Links in few words: `n1 n2 | n3` where groups are parted, else one by one."""
    cut = dict.fromkeys(links)
    groups = _groups(cut, nodes)
    crossing = sum(len(group) * (len(nodes) - len(group)) for group in groups)
    if len(groups) > 1 and crossing == len(cut):
        return " | ".join(plan_words.nodes(group) for group in groups)
    told = [
        f"{node}↔{peer}" if (peer, node) in cut else f"{node}→{peer}"
        for node, peer in cut
        if (peer, node) not in cut or node < peer
    ]
    return ", ".join(told) if len(told) <= 4 else f"{', '.join(told[:3])} and {len(told) - 3} more"


def _groups(cut: dict[Pair, None], nodes: Sequence[str]) -> list[list[str]]:
    """Who can still talk, by whatever way."""
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
    """By node, of those whose clocks are off: time, and how far its wall and monotonic clocks are
    ahead of true time, in milliseconds."""
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
    """What a true wall clock shows at time 0: known in a simulation, else taken to be the middle
    of the nodes' first readings."""
    first: dict[str, int] = {}
    for row in rows:
        if row.wall:
            first.setdefault(row.node, row.wall - row.time // 1000)
    middle = sorted(first.values())[len(first) // 2] if first else EPOCH_MS
    return EPOCH_MS if abs(middle - EPOCH_MS) < DAY_MS else middle


def _note(points: list[tuple[Micros, int, int]], point: tuple[Micros, int, int]) -> None:
    """Keep a reading where the error changed; what changed much did so at once."""
    change = max(abs(point[1] - points[-1][1]), abs(point[2] - points[-1][2])) if points else 0
    if change > STEP_MS:
        points.append((point[0], *points[-1][1:]))
    if not points or change > ROUNDING_MS:
        points.append(point)


def _is_off(points: Sequence[tuple[Micros, int, int]]) -> bool:
    return any(max(abs(wall), abs(mono)) > ROUNDING_MS for _, wall, mono in points)
