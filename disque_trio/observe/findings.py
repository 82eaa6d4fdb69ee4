"""What is wrong in a cluster, in a sentence each, the worst first."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Final
from urllib.parse import quote

import attrs

from disque_trio.explain.zones import lacks
from disque_trio.observe.queue_counts import BEHIND_S, Part, QueueCounts, age_of, until_restored
from disque_trio.observe.survey import KnownNode
from disque_trio.observe.values import Json, name_fields, readable

SKEW_MS: Final = 500
_MOST_QUEUES: Final = 5
"""Of each kind of finding."""
_ORDER: Final = ("bad", "warn", "good")
_MEMORY: Final = {
    "1": ("warn", "is short of memory: new jobs are left to other nodes"),
    "2": ("bad", "has no memory for new jobs"),
}


@attrs.frozen
class Finding:
    """One of them."""

    level: str
    """`bad`, `warn` or `good`."""
    text: str
    link: str = ""


Nodes = Mapping[str, KnownNode]


def findings(nodes: Nodes, counts: QueueCounts) -> list[Json]:
    """All of them; if there are none, a good one."""
    found = [each for kind in _KINDS for each in kind(nodes)]
    found += [each for kind in _OF_QUEUES for each in kind(counts)]
    if not found:
        answer = f"all {len(nodes)} nodes answer" if len(nodes) > 1 else "the node answers"
        found = [Finding("good", f"{answer}; no queue is stuck")]
    found.sort(key=lambda each: _ORDER.index(each.level))
    return [attrs.asdict(each) for each in found]


def queue_link(name: str) -> str:
    """Where the console shows a queue."""
    fields = name_fields(name)
    if "name_b64" in fields:
        return f"#/queue?b64={quote(fields['name_b64'], safe='')}"
    return f"#/queue/{quote(name, safe='')}"


def _named(node: KnownNode) -> str:
    return f"{node.name} {node.where}"


# Of nodes.


def _silent(nodes: Nodes) -> Iterator[Finding]:
    for node in nodes.values():
        if node.state == "loading":
            yield Finding("warn", f"{_named(node)} loads its append-only file", "#/cluster")
        elif node.why:
            yield Finding("bad", f"{_named(node)} {node.why}", "#/cluster")


def _split(nodes: Nodes) -> Iterator[Finding]:
    """Nodes that others hold for failed though they answer here."""
    for node in nodes.values():
        against = [
            other.name
            for other in nodes.values()
            if not other.why and other.peers.get(node.id) == "failed"
        ]
        if against and not node.why:
            held = f"{', '.join(against)} {'hold' if len(against) > 1 else 'holds'} it for failed"
            yield Finding("bad", f"{_named(node)} answers here, but {held}", "#/cluster")


def _troubled(nodes: Nodes) -> Iterator[Finding]:
    for node in nodes.values():
        if node.why:
            continue
        if node.journal == "broken":
            yield Finding("bad", f"{_named(node)} cannot write its append-only file", "#/cluster")
        if told := _MEMORY.get(node.info.get("memory_level", "")):
            yield Finding(told[0], f"{_named(node)} {told[1]}", "#/cluster")
        if node.is_leaving:
            yield Finding("warn", f"{_named(node)} leaves the cluster", "#/cluster")
        if node.clock_ms is not None and abs(node.clock_ms) > SKEW_MS:
            way = "ahead" if node.clock_ms > 0 else "behind"
            skew = abs(node.clock_ms) / 1000
            text = f"the clock of {_named(node)} is {skew:.1f} s {way}"
            yield Finding("warn", text, "#/cluster")


def _lacking(nodes: Nodes) -> Iterator[Finding]:
    count = sum(
        node.view.under_replicated or 0 for node in nodes.values() if node.view and not node.why
    )
    if count:
        yield Finding("warn", f"{_jobs(count)} with fewer copies than asked for", "#/cluster")


def _zoned(nodes: Nodes) -> Iterator[Finding]:
    well = [node for node in nodes.values() if node.state in {"up", "leaving"}]
    ours = [node.place for node in well if "python_version" in node.info]
    for lack in lacks(ours, len(well)):
        yield Finding("warn", f"{lack.subject}: {lack.what}; {lack.advice}", "#/cluster")


_KINDS: Final[tuple[Callable[[Nodes], Iterator[Finding]], ...]] = (
    _silent, _split, _troubled, _lacking, _zoned,
)  # fmt: skip


# Of queues.


def _unattended(counts: QueueCounts) -> Iterator[Finding]:
    stuck, now_ms = [], time.time() * 1000
    for name in counts.behind.ranks:
        parts = counts.parts[name]
        each = parts.values()
        jobs, age = sum(one.stats.length for one in each), age_of(parts, now_ms)
        if jobs and age >= BEHIND_S and not any(one.stats.blocked for one in each):
            stuck.append((_why_stuck(each), jobs, age, name))
    for why, jobs, age, name in sorted(stuck, reverse=True)[:_MOST_QUEUES]:
        text = f'queue "{readable(name)}": {_jobs(jobs)}, the oldest {_minutes(age)}; {_WHY[why]}'
        yield Finding("warn", text, queue_link(name))


_SLOW, _STOPPED, _ALONE = range(3)
_WHY: Final = {
    _SLOW: "its workers do not keep up",
    _STOPPED: "nobody takes from it, for its deliveries are stopped",
    _ALONE: "nobody takes from it: no client waits for its jobs",
}


def _why_stuck(parts: Collection[Part]) -> int:
    if any(one.out_s for one in parts):
        return _SLOW
    return _STOPPED if any(one.stats.pause in ("out", "all") for one in parts) else _ALONE


def _paused(counts: QueueCounts) -> Iterator[Finding]:
    for name in islice(counts.paused, _MOST_QUEUES):
        parts = counts.parts[name].items()
        sides = {where: one.stats.pause for where, one in parts if one.stats.pause != "none"}
        told = ", ".join(f"{side} at {where}" for where, side in sides.items())
        yield Finding("warn", f'queue "{readable(name)}" is paused: {told}', queue_link(name))


def _restored(counts: QueueCounts) -> Iterator[Finding]:
    """Jobs that no worker is given for now, because one may have had them before a restart."""
    for name in islice(counts.restored, _MOST_QUEUES):
        each = counts.parts[name].values()
        jobs = sum(one.stats.restored or 0 for one in each)
        due = _minutes(until_restored(each) or 0.0)
        yield Finding(
            "warn",
            f'queue "{readable(name)}": {_jobs(jobs)} {"waits" if jobs == 1 else "wait"} for the '
            f"end of RETRY after a restart, the first for {due}; ENQUEUE QUEUE queues them now",
            queue_link(name),
        )


def _dead(counts: QueueCounts) -> Iterator[Finding]:
    if count := len(counts.with_dead):
        what = "1 queue" if count == 1 else f"{count:,} queues"
        yield Finding("warn", f"{_jobs(counts.totals()['dead'], 'dead ')} in {what}", "#/dead")


_OF_QUEUES: Final[tuple[Callable[[QueueCounts], Iterator[Finding]], ...]] = (
    _unattended, _restored, _paused, _dead,
)  # fmt: skip


def _jobs(count: int, kind: str = "") -> str:
    return f"1 {kind}job" if count == 1 else f"{count:,} {kind}jobs"


def _minutes(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
