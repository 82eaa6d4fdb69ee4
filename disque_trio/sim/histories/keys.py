"""Judges H7: in each calm period, the calls about a key have an order in which at most one job has
the key at a time, and each ADDJOB returns the job that has it.

During a cut each side may give the key to another job, so at the start of a period any of the
earlier jobs, or none, may have the key. A job has its key until it is acknowledged, and for its
KEEP after that.
"""

import math
from collections.abc import Iterator

import attrs

from disque_trio.sim.histories.facts import Add, Facts, Job, JobReport, ids_of
from disque_trio.sim.histories.orders import (
    NOBODY,
    UNKNOWN,
    GivenUpError,
    Operation,
    Problem,
    Stuck,
    search,
)
from disque_trio.sim.histories.records import ENDLESS, Seconds, Violation

MOST_NAMELESS: int = 4
"""A period with more earlier ADDJOBs without an outcome is not judged: they could explain any
reply."""
_EARLY_S = 1.0
"""A TTL may end this much early, because holders count it in whole seconds."""
_UNORDERED = ("again", "replace")


@attrs.define(eq=False)
class Keys:
    """The judge, with the numbers of judged keys."""

    facts: Facts
    judged: int = 0
    """The number of keys judged, counted per period in which they were used."""
    unjudged: int = 0
    """The number of keys not judged, counted in the same way: used with IFEXISTS again or replace,
    which let several jobs have a key, or with PURGE, CANCEL or DELJOB, or too often without an
    outcome."""

    def check(self) -> Iterator[Violation]:
        """H7: judge the calls about each key."""
        if not self.facts.history.has_all_clients:
            return
        by_key: dict[tuple[str, str], list[Add]] = {}
        for add in self.facts.adds:
            if add.key is not None:
                by_key.setdefault((add.queue, add.key), []).append(add)
        for (queue, key), adds in by_key.items():
            for period in self.facts.history.calm_periods():
                if any(period[0] <= add.begin < period[1] for add in adds):
                    stuck = self._judge(adds, period)
                    if stuck is not None:
                        yield self._violation(queue, key, adds, stuck)

    def _judge(self, adds: list[Add], period: tuple[Seconds, Seconds]) -> Stuck | None:
        ids = dict.fromkeys(add.id or add.named for add in adds)
        jobs = [self.facts.jobs[id] for id in ids if id]
        nameless = sum(add.is_unknown and add.begin < period[0] for add in adds)
        if (
            nameless > MOST_NAMELESS
            or any(add.if_exists in _UNORDERED for add in adds)
            or any(any(job.reports_of("DELJOB")) for job in jobs)
            or self.facts.has_call(adds[0].queue, "PURGE", "CANCEL")
        ):
            self.unjudged += 1
            return None
        try:
            stuck = search(self._problem(adds, jobs, period, nameless))
        except GivenUpError:
            self.unjudged += 1
            return None
        self.judged += 1
        return stuck

    def _problem(
        self, adds: list[Add], jobs: list[Job], period: tuple[Seconds, Seconds], nameless: int
    ) -> Problem:
        begin, end = period
        slack = self.facts.history.limits.slack
        earlier = {add.id or add.named for add in adds if add.begin < begin} - {""}
        in_period = [add for add in adds if begin <= add.begin < end and add.end < ENDLESS]
        operations = [_of_add(add, end) for add in in_period if add.id or add.named]
        returned = {add.id for add in in_period if add.end <= end}
        unknown = [add for add in adds if add.is_unknown]
        for job in jobs:
            # One of these ADDJOBs has added the job; its KEEP applies.
            makers = [*job.adds, *unknown] if job.adds else adds
            keeps = [add.seconds("keep", 0) for add in makers]
            freed = _freed(job, min(keeps), max(keeps), slack)
            if freed is not None and freed.end > begin and freed.begin < end:
                operations.append(_within(freed, begin, end))
        is_new = all(add.begin >= begin for add in adds)
        may_add = any(add.is_unknown and add.begin >= begin for add in adds)
        named = {job.id for job in jobs if may_add or job.id not in returned}
        return Problem(
            operations=operations,
            earlier=frozenset(earlier),
            nameless=nameless,
            late=frozenset(named - earlier),
            start=NOBODY if is_new else UNKNOWN,
        )

    def _violation(self, queue: str, key: str, adds: list[Add], stuck: Stuck) -> Violation:
        found = stuck.operation
        holders = [id for id in stuck.holders if id not in (NOBODY, UNKNOWN, found.id)]
        what = f"ADDJOB with key {key} to {queue} returned this job"
        if found.kind == "found":
            what = f"ADDJOB with key {key} to {queue} was refused because of this job"
        elif found.kind == "free":
            what = f"this job was acknowledged, and had key {key} of {queue}"
        why = f"when {' or '.join(holders)} had the key" if holders else "which had ended, or never"
        if not holders:
            why = "but it cannot have had the key then"
        lines = [add.call.line for add in adds if add.id in (found.id, *holders)][-4:]
        return Violation(
            property="H7", text=f"{what}, {why}: no order of the calls explains this",
            job=found.id, at=found.end, lines=tuple(dict.fromkeys([*lines, found.line])),
        )  # fmt: skip


def _of_add(add: Add, until: Seconds) -> Operation:
    return Operation(
        kind="add" if add.id else "found",
        id=add.id or add.named,
        begin=add.begin,
        end=min(add.end, until),
        must_happen=add.end <= until,
        line=add.call.line,
    )


def _within(freed: Operation, begin: Seconds, end: Seconds) -> Operation:
    return attrs.evolve(
        freed,
        begin=max(freed.begin, begin),
        end=min(freed.end, end),
        must_happen=freed.must_happen and freed.end <= end,
    )


def _freed(job: Job, least_keep: Seconds, most_keep: Seconds, slack: Seconds) -> Operation | None:
    """Return the operation that frees the job's key, or None. It must happen if a client knows that
    the job ended."""
    acks = list(job.reports_of("ACKJOB"))
    known = [report for report in acks if report.call.is_ok and _counts(job, report)]
    begins = [report.call.begin + least_keep - slack for report in acks]
    begins += [report.call.begin for report in job.reports_of("FASTACK")]
    begins += [add.begin + add.ttl - _EARLY_S for add in job.adds]
    if any(job.reports_of("NACK")) or any("limit" in add.options for add in job.adds):
        begins += [min((add.begin for add in job.adds), default=-math.inf)]  # the job may be dead
    if not begins:
        return None
    end = min((report.call.end for report in known), default=ENDLESS) + most_keep + slack
    line = known[0].call.line if known else ""
    return Operation(
        kind="free", id=job.id, begin=min(begins), end=end, must_happen=bool(known), line=line
    )


def _counts(job: Job, report: JobReport) -> bool:
    """Has the report certainly ended the job? A node ignores a job with RETRY 0 that it does not
    have."""
    return not job.is_at_most_once or (len(ids_of(report.call)) == 1 and report.call.reply == 1)
