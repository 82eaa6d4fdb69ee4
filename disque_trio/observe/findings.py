"""What is wrong in a cluster, one sentence for each problem, the worst first: for the console and
the doctor.

Checks of nodes are in `node_checks`, those of queues and workers here. Queues with the same problem
are one finding, which names those with the highest stake and the number of the others.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import quote

import attrs

from disque_trio.observe import node_checks
from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.finding import Finding, Level, grouped, note, ordered, spelled, warning
from disque_trio.observe.queue_counts import (
    BEHIND_S,
    QueueCounts,
    age_of,
    until_restored,
    waits_for,
)
from disque_trio.observe.values import Json, name_fields, readable
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.admin import KnownWorker
from disque_trio.worker.operating.queues import restored_of

_NAMED: Final = 3
"""The maximum number of queues that a finding names."""
_STILL_S: Final = 1.0
"""An event loop with this delay blocks the renewal of the worker's leases."""
_BEGINNING_S: Final = 30.0
"""A worker that has run for a shorter time may have no answer of a node yet."""
_LEVELS: Final = {Level.PROBLEM: "bad", Level.WARNING: "warn", Level.NOTE: "note"}


def findings(
    nodes: Sequence[NodeFacts], counts: QueueCounts, workers: Sequence[KnownWorker] = ()
) -> list[Finding]:
    """Return all findings, the worst first; of the same level, refusals first, then by stake."""
    names = {each.where: each.name for each in nodes}
    of_nodes = node_checks.judge(list(nodes), _closed(counts))
    behind = [counts.clock_ms - each.skew_ms for each in nodes if each.info]
    slow_s = max(0.0, *behind, 0.0) / 1000
    return ordered([*of_nodes, *of_queues(counts, names, slow_s), *of_workers(workers)])


def as_rows(found: Sequence[Finding], nodes: int, *, is_counted: bool = True) -> list[Json]:
    """Return rows for the console; findings of several nodes are merged. Without warnings and
    problems a row says that all is well. `is_counted`: have all nodes reported their queues?"""
    rows: list[Json] = [
        {
            "level": _LEVELS[each.level],
            "kind": each.kind,
            "text": f"{each.where}: {each.what}",
            "advice": each.advice,
            "link": each.link or "#/cluster",
            "since": each.since,
            "operation": each.operation,
            "args": dict(each.args),
        }
        for each in grouped(found)
    ]
    if all(each.level is Level.NOTE for each in found):
        answer = f"all {nodes} nodes answer" if nodes > 1 else "the node answers"
        stuck = "no queue is stuck" if is_counted else "not all queues have been counted yet"
        rows.insert(0, {"level": "good", "text": f"{answer}; {stuck}", "link": ""})
    return rows


def queue_link(name: str) -> str:
    """Return the link to the console's page of a queue."""
    fields = name_fields(name)
    if "name_b64" in fields:
        return f"#/queue?b64={quote(fields['name_b64'], safe='')}"
    return f"#/queue/{quote(name, safe='')}"


# Queues.


@attrs.frozen
class _Queue:
    """A queue in a finding."""

    name: str
    jobs: int
    age_s: float
    """The age of its oldest job; for jobs that wait since a restart, the time until the first of
    them is queued."""
    more: str = ""
    delayed: int = 0
    """The number of delayed jobs, in findings that state it."""
    is_least: bool = False
    """May the queue have more jobs than `jobs`?"""

    @property
    def stake(self) -> float:
        """The number of jobs times their age."""
        return (self.jobs + self.delayed) * max(self.age_s, 1.0)


@attrs.frozen
class _Kind:
    """A kind of finding about queues."""

    name: str
    one: str
    many: str
    """The text for several queues. Both texts may contain `jobs`, `split`, `age` and `count`."""
    advice: str
    only: str
    """The filter of the console's list of these queues."""
    operation: str = ""
    """The operation that fits, if the finding is about one queue."""
    is_note: bool = False
    """Is it a state that somebody has configured?"""


_ALONE: Final = _Kind(
    "unattended",
    "{jobs}, the oldest {age} old; the queue has no consumers",
    "{count} queues without consumers, {jobs}, the oldest {age} old",
    "start workers for these jobs, or remove the jobs with disque-trio queues purge",
    "stuck",
    "queues purge",
)
_STOPPED: Final = _Kind(
    "stopped",
    "{jobs}, the oldest {age} old; deliveries are paused: {more}",
    "{count} queues whose deliveries are paused, {jobs}, the oldest {age} old",
    "disque-trio queues resume ends the pause",
    "paused",
    "queues resume",
)
_CLOSED: Final = _Kind(
    "paused",
    "is paused: {more}; {jobs}, the oldest {age} old; the queue has no consumers",
    "{count} queues are paused and have no consumers; {jobs}, the oldest {age} old",
    "disque-trio queues resume ends the pause; start workers for the jobs of the queue",
    "paused",
    "queues resume",
)
_SLOW: Final = _Kind(
    "slow",
    "{jobs}, the oldest {age} old; its workers do not keep up",
    "{count} queues whose workers do not keep up, {jobs}, the oldest {age} old",
    "start more workers, or look for tasks that have become slow",
    "",
)
_PAUSED: Final = _Kind(
    "paused",
    "is paused: {more}; {split}",
    "{count} queues are paused; {split}",
    "disque-trio queues resume ends the pause",
    "paused",
    "queues resume",
)
_LIMITED: Final = _Kind(
    "limited",
    "{jobs} waiting because of its limits ({more}), the oldest for {age}",
    "{count} queues have {jobs} waiting because of their limits, the oldest for {age}",
    "disque-trio queues show reports what each node may deliver; queues limit changes the limits",
    "limited",
    is_note=True,
)
_RESTORED: Final = _Kind(
    "restored",
    "{jobs} restored after a restart and waiting for RETRY; the first is enqueued in {age}",
    "{count} queues have {jobs} restored after a restart and waiting for RETRY; the first is "
    "enqueued in {age}",
    "workers may still have these jobs. If not, disque-trio queues requeue enqueues them now; a "
    "job that a worker still has is then delivered twice",
    "",
    "queues requeue",
)
_DEAD: Final = _Kind(
    "dead",
    "{jobs} dead",
    "{count} queues have {jobs} that are dead",
    "disque-trio jobs dead shows the reasons; queues redrive enqueues the jobs again, queues drop "
    "removes them",
    "dead",
    "queues redrive",
)


def of_queues(
    counts: QueueCounts, names: Mapping[str, str], slow_s: float = 0.0
) -> Iterator[Finding]:
    """Yield the findings about counted queues. `names` has the nodes' names by address. `slow_s` is
    how far the slowest clock of a node may be behind: jobs that it stamps seem that much older."""
    behind = _behind(counts, names, slow_s)
    yield from _report(behind, counts.now_ms)
    reported = {
        each.name for kind, queues in behind if kind in (_STOPPED, _CLOSED) for each in queues
    }
    yield from _report(_others(counts, reported, names), counts.now_ms)
    more = len(counts.behind_names) - len(counts.behind.ranks)
    if more > 0:
        have = counted(more, "more queue has", "more queues have")
        what = f"{have} jobs that have waited for a minute or longer"
        advice = _alone(counts.answering()).advice
        yield warning("the cluster", what, advice, kind="unattended-more", link="#/queues?sort=age")


def _report(found: Iterable[tuple[_Kind, list[_Queue]]], now_ms: float) -> Iterator[Finding]:
    for kind, queues in found:
        if len(queues) > _NAMED:
            yield _of_many(kind, queues, now_ms)
        else:
            for each in queues:
                yield _finding(kind, kind.one, f'queue "{readable(each.name)}"', [each], now_ms)


def _of_many(kind: _Kind, queues: list[_Queue], now_ms: float) -> Finding:
    queues.sort(key=lambda each: -each.stake)
    names = ", ".join(f'"{readable(each.name)}"' for each in queues[:_NAMED])
    more = f" and {len(queues) - _NAMED:,} more"
    found = _finding(kind, kind.many, "the cluster", queues, now_ms)
    link = f"#/queues?only={kind.only}" if kind.only else "#/queues?sort=age"
    return attrs.evolve(found, what=f"{found.what}: {names}{more}", link=link)


def _finding(kind: _Kind, text: str, where: str, queues: list[_Queue], now_ms: float) -> Finding:
    jobs = sum(each.jobs for each in queues)
    ages = [each.age_s for each in queues]
    age = min(ages) if kind is _RESTORED else max(ages)
    what = text.format(
        jobs="at least " * any(each.is_least for each in queues) + counted(jobs, "job"),
        split=f"{counted(jobs, 'job')} waiting, {sum(each.delayed for each in queues):,} delayed",
        age=spelled(round(age)),
        count=f"{len(queues):,}",
        more=queues[0].more,
    )
    stake = sum(each.stake for each in queues)
    is_old = kind not in (_PAUSED, _RESTORED, _DEAD)
    is_one = len(queues) == 1 and kind.operation
    grade = note if kind.is_note else warning
    return grade(
        where,
        what,
        kind.advice,
        kind=kind.name,
        link=queue_link(queues[0].name),
        stake=stake,
        since=now_ms / 1000 - age if is_old else None,
        operation=kind.operation if is_one else "",
        args=name_fields(queues[0].name, "queue") if is_one else {},
    )


def _behind(
    counts: QueueCounts, names: Mapping[str, str], slow_s: float
) -> list[tuple[_Kind, list[_Queue]]]:
    """Return queues whose jobs wait too long, by cause."""
    now_ms = counts.now_ms
    alone = _alone(counts.answering())
    found: dict[str, tuple[_Kind, list[_Queue]]] = {}
    for name in counts.behind.ranks:
        parts = counts.parts[name]
        each = parts.values()
        jobs, age = sum(one.stats.length for one in each), age_of(parts, now_ms) - slow_s
        if not jobs or age < BEHIND_S or any(one.stats.blocked for one in each):
            continue
        kind, more = alone, ""
        if any(one.stats.pause in ("out", "all") for one in each):
            kind, more = _STOPPED, _sides(counts, name, names)
        elif limits := waits_for(parts):
            kind, more = _LIMITED, str(limits)
        elif counts.has_takers(name):
            kind = _SLOW
        elif any(one.stats.pause == "in" for one in each):
            kind, more = _CLOSED, _sides(counts, name, names)
        found.setdefault(kind.name, (kind, []))[1].append(_Queue(name, jobs, age, more))
    return list(found.values())


def _alone(answering: str) -> _Kind:
    """Return the finding for queues without consumers. If some nodes do not answer, their clients
    may take the jobs, so the finding does not suggest a purge."""
    if not answering:
        return _ALONE
    known = f"according to {answering}"
    return attrs.evolve(
        _ALONE,
        one=f"{{jobs}}, the oldest {{age}} old; the queue has no consumers, {known}",
        many=f"{{count}} queues without consumers, {known}, {{jobs}}, the oldest {{age}} old",
        advice="find out why the other nodes do not answer, or start workers for these queues",
        operation="",
    )


def _closed(counts: QueueCounts) -> list[str]:
    """Return the queues that are paused in input at some node, which takes no copies of their
    jobs."""
    return [
        name
        for name in counts.paused
        if any(one.stats.pause in ("in", "all") for one in counts.parts[name].values())
    ]


def _sides(counts: QueueCounts, name: str, names: Mapping[str, str]) -> str:
    paused = {where: one.stats.pause for where, one in counts.parts[name].items()}
    stopped = ((names.get(where) or where, side) for where, side in paused.items())
    return ", ".join(f"{side} at {name}" for name, side in sorted(stopped) if side != "none")


def _others(
    counts: QueueCounts, reported: Collection[str], names: Mapping[str, str]
) -> Iterator[tuple[_Kind, list[_Queue]]]:
    """Yield queues with jobs that wait since a restart, that wait for limits, that are paused (and
    not in `reported`), and with dead jobs."""

    def queues(names: Sequence[str], jobs: Callable[[str], int]) -> list[_Queue]:
        return [_Queue(name, jobs(name), 0.0) for name in names]

    def total(field: str) -> Callable[[str], int]:
        return lambda name: sum(
            getattr(part.stats, field) or 0 for part in counts.parts[name].values()
        )

    yield (
        _RESTORED,
        [each for each in map(partial(_restored, counts), counts.restored) if each.jobs],
    )
    now_ms = counts.now_ms
    yield (
        _LIMITED,
        [
            attrs.evolve(
                each,
                age_s=age_of(counts.parts[each.name], now_ms),
                more=str(waits_for(counts.parts[each.name])),
            )
            for each in queues(list(counts.limited), total("length"))
        ],
    )
    yield (
        _PAUSED,
        [
            attrs.evolve(
                each,
                age_s=age_of(counts.parts[each.name], now_ms),
                more=_sides(counts, each.name, names),
                delayed=total("delayed")(each.name),
            )
            for each in queues(
                [name for name in counts.paused if name not in reported], total("length")
            )
        ],
    )

    def most(name: str) -> int:
        return max(part.stats.dead or 0 for part in counts.parts[name].values())

    dead = queues(list(counts.with_dead), most)
    yield _DEAD, [attrs.evolve(each, is_least=each.name in counts.dead_least) for each in dead]


def _restored(counts: QueueCounts, name: str) -> _Queue:
    parts = counts.parts[name].values()
    jobs, is_least = restored_of([one.stats for one in parts])
    age_s = until_restored(parts, counts.now_ms) or 0.0
    return _Queue(name, jobs or 0, age_s, is_least=is_least)


# Workers.


def _begins(worker: KnownWorker) -> bool:
    """Has the worker just been started, so that no node has answered it yet?"""
    up_s = worker.report.up_s + worker.age_s
    return worker.report.answered_s is None and up_s < _BEGINNING_S


def of_workers(workers: Sequence[KnownWorker]) -> Iterator[Finding]:
    """Yield findings about workers whose event loop is blocked, and about unhealthy ones."""
    for each in workers:
        report, where = each.report, f"worker {readable(each.report.name)}"
        if report.lag_s >= _STILL_S:
            yield warning(
                where,
                f"its event loop was blocked for {report.lag_s:.1f} s",
                "a handler blocks it: disque-trio workers dump shows where. Run that in a thread",
                kind="worker-lag",
                link="#/workers",
                operation="workers dump",
                args={"worker": each.control},
            )
        elif not report.healthy and not _begins(each):
            yield warning(
                where,
                f"is not healthy: {report.why}",
                "see its log",
                kind="worker-unhealthy",
                link="#/workers",
            )
