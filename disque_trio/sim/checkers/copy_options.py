"""Options of copies (S16): every holder's record has the options of the ADDJOB.

The row ``hold`` has the options of the record (`statemachine.trace.hold`). The first one of a job
is compared with its ADDJOB, once that is known, and every other one with the first. The remaining
life and the time until a copy is queued depend on when the copy came, and on how long it was under
way.
"""

from typing import Final

from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.obligations import MILLI, SECOND, Options
from disque_trio.sim.checkers.records import Add, Copy, Job
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.joboptions import CARRIED, Option
from disque_trio.tracing.bodies import checksum
from disque_trio.tracing.details import numbers
from disque_trio.tracing.rows import Row

SPREAD: Final[Millis] = 250
"""The random part of the time until a copy is queued, in either direction."""
_LONGEST: Final[Micros] = ((1 << 31) // 1000) * SECOND
"""A longer RETRY is limited to this without an option of ours."""
_ROUNDED: Final[Millis] = 1010
"""Tolerance of the remaining life: messages and journals have it in whole seconds, and of several
copies in a batch it is not known which one was taken."""
_LATE: Final[Millis] = 10
NO_GROUP: Final = -1


def after_hold(case: Case, row: Row, job: Job) -> None:
    """S16: a node has a record of the job."""
    fixed, has_more, more = row.detail.partition(" left=")
    copy = job.copies.get(row.node)
    if not has_more or copy is None:
        return
    left, _, due = more.partition(" due=")
    copy.left, copy.due = int(left), int(due)
    case.check("S16")
    if not job.first_record:
        job.first_record, job.life = fixed, copy.left
        if job.queue and row.cause != "add":
            job.life = 0
        return
    _compare(case, row, job, fixed)
    if row.queue != job.queue:
        _report(case, row, f"the queue {row.queue}, the first record {job.queue}")
    if _is_older(copy, numbers(fixed)):
        copy.base = None
    _judge_life(case, row, job, copy)
    if row.cause in {"repljob", "yourjobs"}:
        _judge_due(case, row, copy, numbers(fixed))


def priority_of(job: Job) -> int:
    """PRIORITY, as the first record has it."""
    return numbers(job.first_record).get("priority", 0) if "priority=" in job.first_record else 0


def group_of(job: Job) -> int:
    """The CRC-32 of its GROUP, as the first record has it; `NO_GROUP` without one."""
    return (
        numbers(job.first_record).get("group", NO_GROUP)
        if "group=" in job.first_record
        else NO_GROUP
    )


def _compare(case: Case, row: Row, job: Job, fixed: str) -> None:
    job.moved_on.pop(row.node, None)
    if fixed == job.first_record:
        return
    first, current = numbers(job.first_record), numbers(fixed)
    for name in ("replicate", "retry", *[each.shown for each in CARRIED]):
        is_freed = name == "keep" and name not in current and _is_key_free(row, job)
        if current.get(name) != first.get(name) and not is_freed:
            _report(case, row, f"{name}={current.get(name)}, the first record {first.get(name)}")
    if (
        "body" in first
        and "body" in current
        and row.cause != "loaded"
        and current["body"] != first["body"]
    ):
        _report(case, row, "another body than the first record")
    # What is left of a delay when repair makes a copy, and a creation stamp moved on by the rest.
    if current["delay"] > rounded(first["delay"]):
        _report(case, row, f"delay={current['delay']}, the first record {first['delay']}")
    job.moved_on[row.node] = current["made"]
    if _due_stamp(current) != _due_stamp(first):
        _report(case, row, f"made={current['made']}, the first record {first['made']}")


def _is_key_free(row: Row, job: Job) -> bool:
    """Was it cancelled or replaced, or did it yield? Then its key is not kept, and the journal has
    the job without KEEP."""
    return row.cause == "loaded" and job.key is not None and not job.keep


def _due_stamp(record: dict[str, int]) -> int:
    """When the delay is over, as a creation stamp."""
    return record["made"] + rounded(record["delay"]) * 1_000_000


def rounded(delay: Millis) -> Millis:
    """As messages and journals have it: in whole seconds, rounded up."""
    return -(-delay // 1000) * 1000


def _is_older(copy: Copy, record: dict[str, int]) -> bool:
    """Does the disk not know that the job has died, or has been redriven? S15 judges that. What the
    record says of its life was so before."""
    before = copy.before
    return before is not None and (record.get("redriven", 0), "dead" in record) < before.state


def _judge_life(case: Case, row: Row, job: Job, copy: Copy) -> None:
    """By its clock, the node should count from `base`, as far as is known from whom it has it. From
    now on it is known exactly."""
    if not job.life:
        return
    if copy.base is not None and not _is_from_before(case, row, copy):
        due = copy.base + job.life - row.mono
        late = (
            _ROUNDED + _stopped_before_sending(case, copy) if _is_prompt(case, copy) else job.life
        )
        least = due if copy.lowest_base is None else copy.lowest_base + job.life - row.mono
        if not least - _ROUNDED <= copy.left <= due + late:
            _report(case, row, f"{copy.left} ms of its TTL left, and {due} are")
    copy.base = row.mono + copy.left - job.life


def _is_from_before(case: Case, row: Row, copy: Copy) -> bool:
    """Does it come from a journal that may count otherwise: by a clock that was set, or from before
    the job died?"""
    if row.cause != "loaded":
        return False
    return case.obligations.can_step or (copy.before is not None and copy.state < copy.before.state)


def _stopped_before_sending(case: Case, copy: Copy) -> Millis:
    """For how long the sender was stopped just before the message left: it may have been made
    before."""
    pauses = case.world.pauses.get(copy.came_from, ())
    ends = [(each.start, each.end) for each in pauses if each.end is not None]
    sent = range(copy.first_sent_at, copy.sent_at + 1)
    return max([(end - start) // MILLI for start, end in ends if end in sent], default=0)


def _is_prompt(case: Case, copy: Copy) -> bool:
    """Was it sent, or loaded, at once? A faulty disk delays messages."""
    return not case.world.was_disk_faulty(copy.came_from or copy.node, copy.sent_at)


def _judge_due(case: Case, row: Row, copy: Copy, record: dict[str, int]) -> None:
    """A holder waits for the rest of DELAY and a whole RETRY."""
    if "dead" in record:
        if copy.due:
            _report(case, row, f"a time to be queued at ({copy.due} ms), and is dead")
        return
    if not record["retry"]:
        if copy.due:
            _report(case, row, f"a time to be queued at ({copy.due} ms) with RETRY 0")
        return
    wait = record["delay"] + record["retry"]
    if abs(copy.due - wait) > SPREAD + _LATE:
        _report(case, row, f"{copy.due} ms until it is queued, DELAY and RETRY are {wait}")


def _report(case: Case, row: Row, what: str) -> None:
    case.violate("S16", f"the record ({row.cause}) has {what}", row.job, row.node)


def compare_with_request(case: Case, job: Job) -> None:
    """S16: the ADDJOB of the job is known; does the first record have its options?"""
    add, record = job.add, job.first_record
    if add is None or not record:
        return
    options, recorded = add.options, numbers(record)
    case.check("S16")
    asked = {
        "retry": (options.retry if options.has_ours else min(options.retry, _LONGEST)) // MILLI,
        **{each.shown: _wanted(each, options) for each in CARRIED},
    }
    delay = options.delay // MILLI
    if recorded["delay"] not in {delay, rounded(delay)}:
        _report_first(case, job, f"delay={recorded['delay']}, ADDJOB said {delay}")
    if not options.is_default or _knows_all(case, add):
        asked["replicate"] = options.replicate
    for name, value in asked.items():
        if recorded.get(name) != value:
            _report_first(case, job, f"{name}={recorded.get(name)}, ADDJOB said {value}")
    if job.life and abs(job.life - options.ttl // MILLI) > _LATE:
        _report_first(case, job, f"a TTL of {job.life} ms, ADDJOB said {options.ttl // MILLI}")
    if job.queue and job.queue != add.queue:
        _report_first(case, job, f"the queue {job.queue}, ADDJOB said {add.queue}")
    body = options.body
    if (
        body is not None
        and not case.is_live
        and recorded.get("body", checksum(body)) != checksum(body)
    ):
        _report_first(case, job, "another body than ADDJOB")


def _wanted(option: Option, options: Options) -> int | None:
    """What a record has of it."""
    value: int | None = getattr(options, option.name)
    if value is None or not option.is_number:
        return value
    return (value // MILLI if option.is_time else value) or None


def _knows_all(case: Case, add: Add) -> bool:
    """Did the node of the ADDJOB know how many nodes there are, which `default-replicate` needs?"""
    return (
        not (case.world.is_changing or case.is_live)
        and not add.was_leaving
        and case.world.is_calm(add.invoked, case.now)
    )


def _report_first(case: Case, job: Job, what: str) -> None:
    case.violate("S16", f"its first record has {what}", job.id, job.origin)
