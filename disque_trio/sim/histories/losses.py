"""Judges H4: an added job with RETRY is delivered until it is acknowledged.

A job is lost if it is due, the cluster is in calm, and a client has waited long enough for jobs of
its queue and received none. Any event that may have ended or hidden the job excuses it.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

import attrs

from disque_trio.sim.histories.facts import (
    ENDING,
    Add,
    Facts,
    Job,
    number_of,
    queues_of,
)
from disque_trio.sim.histories.records import ENDLESS, Call, History, Seconds, Violation
from disque_trio.statemachine.joboptions import MAX_BACKOFF
from disque_trio.terminal.counting import counted

SPREAD: float = 0.75
"""A job may be requeued this much later than RETRY."""
_MAX_BACKOFF_S = MAX_BACKOFF / 1000


@attrs.define(eq=False)
class Waits:
    """The waits of clients for jobs of one queue that ended without a job."""

    calls: dict[str, list[Call]] = attrs.Factory(dict)
    """By client, in order of time."""
    _sums: dict[str, tuple[list[Seconds], list[Seconds]]] = attrs.Factory(dict)

    def waited_for(self, since: Seconds, until: Seconds, wanted: Seconds) -> str:
        """Return the line of a call of a client that has waited this long; empty if there is
        none."""
        for client, calls in self.calls.items():
            begins, sums = self._sums.get(client) or self._sum(client)
            first = bisect_left(begins, since)
            last = bisect_left(begins, until)
            while last > first and calls[last - 1].end > until:
                last -= 1
            waited, line = (
                sums[max(last, first)] - sums[first],
                calls[min(first, len(calls) - 1)].line,
            )
            if first and calls[first - 1].end > since:  # it began to wait earlier
                before = calls[first - 1]
                waited, line = waited + min(before.end, until) - since, before.line
            if waited >= wanted:
                return line
        return ""

    def _sum(self, client: str) -> tuple[list[Seconds], list[Seconds]]:
        calls = self.calls[client]
        # Calls of one client may overlap: a second counts once.
        known = accumulate((call.end for call in calls), max, initial=-math.inf)
        durations = (
            max(call.end - max(call.begin, until), 0.0)
            for call, until in zip(calls, known, strict=False)
        )
        found = [call.begin for call in calls], list(accumulate(durations, initial=0.0))
        self._sums[client] = found
        return found


@attrs.define(eq=False)
class Losses:
    """The judge, with the numbers of judged and open jobs."""

    facts: Facts
    judged: int = 0
    """The number of jobs that were due in calm while a client waited, or that have ended."""
    open: int = 0
    """The number of jobs that have neither ended nor certainly been lost."""
    _waits: dict[str, Waits] = attrs.Factory(dict)
    _hidden: dict[str, list[tuple[Seconds, Seconds]]] = attrs.Factory(dict)
    """By queue: the intervals in which GETJOBs without an outcome may have received jobs."""

    def check(self) -> Iterator[Violation]:
        """H4: report lost jobs."""
        for call in self.facts.gets:
            self._see(call)
        keys = _keys(self.facts)
        for job in self.facts.jobs.values():
            if not job.adds or job.is_at_most_once or self._is_over(job):
                self.judged += 1
                continue
            line = "" if self._is_excused(job, keys) else self._lost(job)
            if not line:
                self.open += 1
                continue
            self.judged += 1
            yield _violation(job, line)

    def _see(self, call: Call) -> None:
        for queue in queues_of(call):
            if call.is_ok and call.reply is None:
                waits = self._waits.setdefault(queue, Waits())
                waits.calls.setdefault(call.client, []).append(call)
            elif not call.is_ok and call.error is None:
                self._hidden.setdefault(queue, []).append((call.begin, _hides_until(call)))

    def _is_over(self, job: Job) -> bool:
        return any(each.command in ENDING or each.is_dead for each in job.reports)

    def _is_excused(self, job: Job, keys: dict[tuple[str, str], list[Add]]) -> bool:
        facts, add = self.facts, job.adds[0]
        begin = min(each.begin for each in job.adds)
        is_purged = facts.has_call(job.queue, "PURGE", "CANCEL", since=begin)
        if is_purged or _is_paused(facts, job.queue):
            return True
        if not facts.history.has_all_clients:
            return True
        settle = facts.history.limits.settle
        destroyed = sum(until + settle >= begin for until in _destroyed(facts.history))
        if destroyed >= min(each.copies for each in job.adds):
            return True
        is_calm = facts.history.is_calm(begin, facts.history.end)
        if facts.history.has_wrong_clocks and not is_calm:
            return True  # a node that restarts counts the rest of a TTL by its wall clock
        if "limit" in add.options:
            nacks = sum(1 for _ in job.reports_of("NACK"))
            if not is_calm or len(job.deliveries) + nacks >= add.seconds("limit", 1):
                return True
        if add.key is None:
            return False
        same = keys[add.queue, add.key]
        ways = {each.if_exists for each in same}
        others = any(each.id != job.id and (each.id or each.is_unknown) for each in same)
        return bool(ways & {"again", "replace"}) or (others and not is_calm)

    def _lost(self, job: Job) -> str:
        """Return the line of a GETJOB that should have returned the job; empty if there is none."""
        waits = self._waits.get(job.queue)
        if waits is None:
            return ""
        due = self._due(job)
        gone = min(add.begin + add.ttl for add in job.adds)
        limits = self.facts.history.limits
        for begin, end in reversed(self.facts.history.calm_periods()):
            since = max(due + SPREAD + limits.slack, begin)
            for start, stop in self._seen(job, since, min(end, gone)):
                line = waits.waited_for(start, stop, limits.slack)
                if line:
                    return line
        return ""

    def _seen(self, job: Job, since: Seconds, until: Seconds) -> Iterator[tuple[Seconds, Seconds]]:
        """Yield the parts of a period in which no GETJOB without an outcome may have the job."""
        retry = self._retry(job) + SPREAD + self.facts.history.limits.slack
        for begin, end in self._hidden.get(job.queue, ()):
            if end + retry > since:
                if since < begin:
                    yield since, min(begin, until)
                since = end + retry
        if since < until:
            yield since, until

    def _retry(self, job: Job) -> Seconds:
        return max(add.retry for add in job.adds)

    def _due(self, job: Job) -> Seconds:
        """Return when the job is queued at the latest, as far as clients know."""
        retry = self._retry(job)
        due = max(add.end + add.seconds("delay", 0) for add in job.adds)
        due = max([due, *(each.end + retry for each in job.deliveries)])
        wait = 0.0
        if any("backoff" in add.options for add in job.adds):
            wait = 1.2 * max(add.seconds("maxbackoff", _MAX_BACKOFF_S) for add in job.adds)
        for each in job.reports:
            if each.command == "NACK":
                due = max(due, each.last + (each.delay or wait))
            elif each.command == "RELEASE":
                due = max(due, each.last + each.delay)
            elif each.command in ("WORKING", "BEGIN", "DEQUEUE"):
                due = max(due, each.last + retry)
        return due


def _destroyed(history: History) -> list[Seconds]:
    """Return the end of each loss of memory. Overlapping losses of one node count once, such as a
    crash of a node that is removed."""
    found: dict[str, list[Seconds]] = {}
    for fault in history.faults:
        ends = found.setdefault(fault.node, [])
        if not fault.has_lost_memory:
            continue
        if fault.node and ends and fault.at <= ends[-1]:
            ends[-1] = max(ends[-1], fault.until)
        else:
            ends.append(fault.until)
    return [until for ends in found.values() for until in ends]


def _keys(facts: Facts) -> dict[tuple[str, str], list[Add]]:
    found: dict[tuple[str, str], list[Add]] = {}
    for add in facts.adds:
        if add.key is not None:
            found.setdefault((add.queue, add.key), []).append(add)
    return found


def _hides_until(call: Call) -> Seconds:
    """Return until when a node may serve the client of a GETJOB without an outcome: it may not have
    detected that the client has gone."""
    timeout = number_of(call, "TIMEOUT", 0) / 1000
    given_up = call.lost_at if call.lost_at < ENDLESS else call.begin
    return max(given_up, call.begin + timeout) if math.isfinite(timeout) else ENDLESS


def _is_paused(facts: Facts, queue: str) -> bool:
    pauses = [call for call in facts.queue_calls.get(queue, ()) if call.command == "PAUSE"]
    return bool(pauses) and "none" not in [word.lower() for word in pauses[-1].request[2:]]


def _violation(job: Job, line: str) -> Violation:
    add = job.adds[0]
    count = len(job.deliveries)
    how = (
        f"delivered {counted(count, 'time')}, never acknowledged, and not again"
        if count
        else "never"
    )
    text = f"was added to {job.queue}, and {how}"
    if not count:
        text += " delivered"
    text += ", although a client has waited for jobs of this queue in calm"
    lines = (add.call.line, *(each.call.line for each in job.deliveries[-1:]), line)
    return Violation(property="H4", text=text, job=job.id, at=add.end, lines=lines)
