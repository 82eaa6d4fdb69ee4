"""Judges a history: all properties, and what could not be judged."""

from collections import Counter
from collections.abc import Sequence

import attrs

from disque_trio.sim.histories import deliveries, ends, queues
from disque_trio.sim.histories.facts import Facts, facts_of
from disque_trio.sim.histories.keys import Keys
from disque_trio.sim.histories.losses import Losses
from disque_trio.sim.histories.records import History, Violation

_CHECKS = (
    deliveries.check_integrity,
    deliveries.check_ids,
    deliveries.check_at_most_once,
    deliveries.check_acknowledged,
    deliveries.check_times,
    deliveries.check_limit,
    deliveries.check_replies,
    ends.check_ends,
    queues.check_lengths,
    queues.check_order,
)


@attrs.frozen(kw_only=True)
class Verdict:
    """The result of judging a history."""

    violations: Sequence[Violation]
    calls: int
    clients: int
    seconds: float
    """The time from the first call to the last."""
    faults: int
    added: int
    """Jobs that an ADDJOB returned."""
    unknown: int
    """ADDJOBs whose outcome is unknown."""
    deliveries: int
    redelivered: int
    """The number of deliveries after the first one of their job."""
    after_ack: int
    """The number of deliveries requested after the job's acknowledgement."""
    open: int
    """The number of jobs with RETRY whose fate the history does not show."""
    keys: int
    """The number of keys whose calls were judged, counted per calm period."""
    unjudged_keys: int
    notes: Sequence[str] = ()
    """What was not judged, and what would help."""

    @property
    def is_ok(self) -> bool:
        """Was no property violated?"""
        return not self.violations


def judge(history: History) -> Verdict:
    """Judge a history."""
    facts = facts_of(history)
    losses, keys = Losses(facts), Keys(facts)
    found = [violation for check in _CHECKS for violation in check(facts)]
    found += losses.check()
    found += keys.check()
    found.sort(key=lambda each: (each.at, each.property, each.job))
    begin = history.calls[0].begin if history.calls else 0.0
    return Verdict(
        violations=found,
        calls=len(history.calls),
        clients=len({call.client for call in history.calls}),
        seconds=max(history.end - begin, 0.0),
        faults=len(history.faults),
        added=sum(bool(job.adds) for job in facts.jobs.values()),
        unknown=sum(add.is_unknown for add in facts.adds),
        deliveries=sum(len(job.deliveries) for job in facts.jobs.values()),
        redelivered=sum(max(len(job.deliveries) - 1, 0) for job in facts.jobs.values()),
        after_ack=_after_ack(facts),
        open=losses.open,
        keys=keys.judged,
        unjudged_keys=keys.unjudged,
        notes=_notes(history, losses, keys),
    )


def _after_ack(facts: Facts) -> int:
    count = 0
    for job in facts.jobs.values():
        acks = [
            report.call.end for report in job.reports_of("ACKJOB", "FASTACK") if report.call.is_ok
        ]
        count += sum(each.begin > min(acks) for each in job.deliveries) if acks else 0
    return count


def _notes(history: History, losses: Losses, keys: Keys) -> list[str]:
    notes = []
    if not history.has_all_faults:
        notes.append(
            "faults are not known, so losses, keys, order and deliveries after an acknowledgement "
            'were not judged: record them, and write {"history":1,"faults":"known"}, or give '
            "--faults known"
        )
    elif losses.open:
        notes.append(
            "some jobs may still be on their way: let the last client wait for jobs until all "
            "leases are over and GETJOB has returned none"
        )
    if not history.has_all_clients:
        notes.append("other clients used these queues, so their jobs were not judged")
    if keys.unjudged:
        notes.append(
            "keys were not judged that IFEXISTS again or replace, PURGE, CANCEL or DELJOB were "
            "used with, or of which too many ADDJOBs had no outcome"
        )
    return notes


def by_property(violations: Sequence[Violation]) -> dict[str, int]:
    """Return the number of violations, by property."""
    return dict(sorted(Counter(each.property for each in violations).items()))
