"""Judges deliveries: H1, H2, H3, H5, H6, H10 and H11."""

from collections.abc import Iterator, Sequence

from disque_trio.sim.histories.facts import (
    Add,
    Delivery,
    Facts,
    Job,
    number_of,
    queues_of,
)
from disque_trio.sim.histories.records import ENDLESS, Call, History, Seconds, Violation
from disque_trio.terminal.counting import counted

_WAIT_S = 1.0
"""Each node to which a job moves may add this to its life, because messages have TTLs in whole
seconds, rounded up. Jobs move to waiting clients, and away from lost nodes."""


def check_integrity(facts: Facts) -> Iterator[Violation]:
    """H1: a delivered job was added, with this queue and body. An ADDJOB without an outcome may
    have added one job."""
    unknown: dict[tuple[str, str], list[Add]] = {}
    for add in facts.adds:
        if add.is_unknown:
            unknown.setdefault((add.queue, add.body), []).append(add)
    unexplained: dict[tuple[str, str], list[Delivery]] = {}
    for job in facts.jobs.values():
        if not job.deliveries:
            continue
        yield from _changed(job)
        first = min(job.deliveries, key=lambda each: each.end)
        place = (first.queue, first.body)
        if place not in [(add.queue, add.body) for add in job.adds if add.begin <= first.end]:
            unexplained.setdefault(place, []).append(first)
    if facts.history.has_all_clients:
        for place, deliveries in unexplained.items():
            yield from _unexplained(facts, deliveries, unknown.get(place, ()))


def _changed(job: Job) -> Iterator[Violation]:
    first = job.deliveries[0]
    for other in job.deliveries:
        if other.queue != first.queue:
            text = f"was delivered from {first.queue}, and from {other.queue}"
        elif other.body != first.body:
            text = f"was delivered from {first.queue} with two bodies"
        else:
            continue
        yield _violation("H1", text, other, (first.call.line, other.call.line))


def _unexplained(
    facts: Facts, deliveries: list[Delivery], adds: Sequence[Add]
) -> Iterator[Violation]:
    """Report first deliveries without an ADDJOB: the first n deliveries need n ADDJOBs that began
    before."""
    begins = sorted(add.begin for add in adds)
    used = 0
    for delivery in sorted(deliveries, key=lambda each: each.end):
        if used < len(begins) and begins[used] <= delivery.end:
            used += 1
            continue
        job = facts.jobs[delivery.id]
        text = f"was delivered from {delivery.queue}, and no ADDJOB has added it"
        if job.adds:
            add = job.adds[0]
            text = f"was added to {add.queue} with another body or queue than it was delivered with"
            if (add.queue, add.body) == (delivery.queue, delivery.body):
                text = f"was delivered from {delivery.queue} before it was added"
        lines = (*(add.call.line for add in job.adds), delivery.call.line)
        yield _violation("H1", text, delivery, lines)


def check_ids(facts: Facts) -> Iterator[Violation]:
    """H2: an id belongs to one job, and its parity fits RETRY."""
    for job in facts.jobs.values():
        places = {(add.queue, add.key) for add in job.adds}
        if len(job.adds) > 1 and (len(places) > 1 or job.adds[0].key is None):
            text = f"was returned by {len(job.adds)} ADDJOBs that cannot mean one job"
            yield _of_adds("H2", text, job.adds)
        for add in job.adds:
            if add.key is None and (add.retry == 0) != job.is_at_most_once:
                text = f"has an id that does not fit RETRY {add.retry:g}"
                yield _of_adds("H2", text, [add])


def _of_adds(name: str, text: str, adds: Sequence[Add]) -> Violation:
    lines = tuple(add.call.line for add in adds[:4])
    return Violation(property=name, text=text, job=adds[0].id, at=adds[-1].end, lines=lines)


def check_at_most_once(facts: Facts) -> Iterator[Violation]:
    """H3: a job with RETRY 0 is delivered at most once."""
    for job in facts.jobs.values():
        if job.is_at_most_once and len(job.deliveries) > 1 and not facts.may_be_redriven(job):
            text = f"was delivered {counted(len(job.deliveries), 'time')} with RETRY 0"
            lines = tuple(each.call.line for each in job.deliveries)
            yield _violation("H3", text, job.deliveries[1], lines)


def check_acknowledged(facts: Facts) -> Iterator[Violation]:
    """H5: in calm, no job is delivered after its ACKJOB. FASTACK and jobs with RETRY 0 have weaker
    promises."""
    history = facts.history
    for job in facts.jobs.values():
        acks = [report for report in job.reports_of("ACKJOB") if report.call.is_ok]
        if not acks or not job.deliveries or job.is_at_most_once:
            continue
        ack = min(acks, key=lambda report: report.call.end)
        since = min((add.begin for add in job.adds), default=job.deliveries[0].begin)
        for delivery in job.deliveries:
            late = delivery.begin - ack.call.end
            if late > history.limits.slack and history.is_calm(since, delivery.end):
                text = f"was delivered {late:.3f} s after its acknowledgement, in calm"
                yield _violation("H5", text, delivery, (ack.call.line, delivery.call.line))


def check_times(facts: Facts) -> Iterator[Violation]:
    """H6: a job is delivered after its DELAY and before the end of its TTL. This is not judged if a
    clock was ever wrong."""
    history = facts.history
    if history.has_wrong_clocks:
        return
    skew = history.limits.skew
    for job in facts.jobs.values():
        if not job.adds or any(job.reports_of("ENQUEUE")):
            continue
        earliest = min(add.begin + add.seconds("delay", 0) for add in job.adds) - skew
        ends = max(add.end + add.ttl for add in job.adds) + skew
        is_delayed = len(job.adds) == 1 and job.adds[0].seconds("delay", 0) > 0
        is_exact = is_delayed and not _may_have_creator(facts, job)
        for number, delivery in enumerate(sorted(job.deliveries, key=lambda each: each.end), 1):
            if delivery.end < earliest and is_exact:
                text = f"was delivered {earliest - delivery.end:.3f} s before its DELAY was over"
                yield _violation("H6", text, delivery, (job.adds[0].call.line, delivery.call.line))
            late = delivery.begin - ends - _WAIT_S * (number + _troubles(history, delivery.begin))
            if late > 0 and not facts.may_be_redriven(job):
                text = f"was delivered {late:.3f} s after its TTL"
                yield _violation("H6", text, delivery, (job.adds[0].call.line, delivery.call.line))


def _troubles(history: History, until: Seconds) -> int:
    """Return the number of faults before this time: each may have made nodes move the job."""
    return sum(fault.at < until for fault in history.faults)


def _may_have_creator(facts: Facts, job: Job) -> bool:
    """May an ADDJOB without an outcome have added the job, with other options?"""
    first = job.adds[0]
    return first.key is not None and any(
        add.is_unknown and add.queue == first.queue and add.key == first.key for add in facts.adds
    )


def check_limit(facts: Facts) -> Iterator[Violation]:
    """H10: in calm, a job is delivered at most LIMIT times. Jobs that were released or held are not
    judged, because such deliveries do not count."""
    for job in facts.jobs.values():
        if (
            len(job.adds) != 1
            or facts.may_be_redriven(job)
            or any(job.reports_of("RELEASE", "BEGIN"))
        ):
            continue
        add = job.adds[0]
        limit = int(add.seconds("limit", 0))
        if not limit or len(job.deliveries) <= limit or add.key is not None:
            continue
        last = job.deliveries[-1]
        is_held = any("HELD" in map(str.upper, each.call.request) for each in job.deliveries)
        if not is_held and facts.history.is_calm(add.begin, last.end):
            text = (
                f"was delivered {counted(len(job.deliveries), 'time')} with LIMIT {limit}, in calm"
            )
            lines = (add.call.line, *(each.call.line for each in job.deliveries))
            yield _violation("H10", text, last, lines)


def check_replies(facts: Facts) -> Iterator[Violation]:
    """H11: replies to GETJOB and ADDJOB agree with the options of the requests."""
    for call in facts.gets:
        if not call.is_ok or call.reply is None:
            continue
        queues, most = queues_of(call), number_of(call, "COUNT", 1)
        if len(call.reply) > most:
            yield _of_call(
                f"GETJOB returned {counted(len(call.reply), 'job')} with COUNT {most}", call
            )
        if not call.reply:
            yield _of_call("GETJOB returned no job, and not null", call)
        for queue, id, *_ in call.reply:
            if queues and queue not in queues:
                yield _of_call(f"GETJOB returned a job of {queue}, which it did not ask for", call,
                               id)  # fmt: skip
    for add in facts.adds:
        if add.named and add.if_exists != "reject":
            yield _of_call("ADDJOB was refused by -DUPLICATE without IFEXISTS reject", add.call,
                           add.named)  # fmt: skip


def _of_call(text: str, call: Call, job: str = "") -> Violation:
    at = call.end if call.end < ENDLESS else call.begin
    return Violation(property="H11", text=text, job=job, at=at, lines=(call.line,))


def _violation(name: str, text: str, delivery: Delivery, lines: Sequence[str]) -> Violation:
    return Violation(property=name, text=text, job=delivery.id, at=delivery.end, lines=tuple(lines))
