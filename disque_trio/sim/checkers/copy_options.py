"""Options of copies (S16): every holder's record has the options of the ADDJOB.

The row ``hold`` has the options of the record (`statemachine.trace.hold`). The first record of a
job is compared with its ADDJOB, once that is known, and every other one with the first. The
remaining life and the time until a copy is queued depend on when the copy arrived, and on how long
it was in transit.
"""

from typing import Final

from disque_trio.sim.checkers import deadletters
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
"""The random part of the time until a copy is queued, plus or minus."""
_LONGEST: Final[Micros] = ((1 << 31) // 1000) * SECOND
"""Without an extension option, a longer RETRY is limited to this."""
_ROUNDED: Final[Millis] = 1010
"""Tolerance of the remaining life: messages and journals round it to seconds, and if a batch has
several copies, the one that the node kept is unknown."""
_LATE: Final[Millis] = 10
NO_GROUP: Final = -1


def after_hold(case: Case, row: Row, job: Job) -> None:
    """S16: compare the record that a node now has of the job."""
    fixed, has_more, more = row.detail.partition(" left=")
    copy = job.copies.get(row.node)
    if not has_more or copy is None:
        return
    left, _, due = more.partition(" due=")
    copy.left, copy.due = int(left), int(due)
    copy.wall_until = row.wall + copy.left
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
    """Return PRIORITY as in the first record."""
    return numbers(job.first_record).get("priority", 0) if "priority=" in job.first_record else 0


def group_of(job: Job) -> int:
    """Return the CRC-32 of GROUP as in the first record; `NO_GROUP` without one."""
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
    # A copy made by repair has the rest of the delay, and its creation stamp is later by the
    # difference.
    if current["delay"] > rounded(first["delay"]):
        _report(case, row, f"delay={current['delay']}, the first record {first['delay']}")
    job.moved_on[row.node] = current["made"]
    if _due_stamp(current) != _due_stamp(first):
        _report(case, row, f"made={current['made']}, the first record {first['made']}")


def _is_key_free(row: Row, job: Job) -> bool:
    """Was the job cancelled or replaced, or did it yield? Then its key is not kept, and the journal
    has the job without KEEP."""
    is_freed = not job.keep or row.node in job.key_freed
    return row.cause == "loaded" and job.key is not None and is_freed


def _due_stamp(record: dict[str, int]) -> int:
    """Return the end of the delay, as a creation stamp."""
    return record["made"] + rounded(record["delay"]) * 1_000_000


def rounded(delay: Millis) -> Millis:
    """Return the delay as messages and journals have it: in seconds, rounded up."""
    return -(-delay // 1000) * 1000


def _is_older(copy: Copy, record: dict[str, int]) -> bool:
    """Does the record on the disk precede the job's death or redrive? S15 judges that. The record's
    remaining life is then the earlier one."""
    before = copy.before
    return before is not None and (record.get("redriven", 0), "dead" in record) < before.state


def _judge_life(case: Case, row: Row, job: Job, copy: Copy) -> None:
    """Compare the remaining life with the one that follows from `base`, the creation time by the
    node's clock as far as its sender is known. Then set `base` from the record, which is exact."""
    if not job.life:
        return
    if copy.base is not None and not _is_from_before(case, row, job, copy):
        due = copy.base + job.life - row.mono
        late = (
            _ROUNDED + _stopped_before_sending(case, copy) if _is_prompt(case, copy) else job.life
        )
        least = due if copy.lowest_base is None else copy.lowest_base + job.life - row.mono
        if not least - _ROUNDED <= copy.left <= due + late:
            _report(case, row, f"{copy.left} ms of its TTL left, and {due} are")
    copy.base = row.mono + copy.left - job.life


def _is_from_before(case: Case, row: Row, job: Job, copy: Copy) -> bool:
    """Is the record from before its sender's job died, or from a journal that may count
    differently: by a clock that was set, or from before the job died, or before another node
    changed the life that a dead job has left?"""
    before = copy.before
    if row.cause != "loaded":
        sender = job.copies.get(copy.came_from)
        return sender is not None and deadletters.may_precede_state(case, sender, copy)
    return case.obligations.can_step or (
        before is not None
        and (
            copy.state < before.state
            or (copy.state[1] and case.may_be_forgotten(row.node, before.left_since))
        )
    )


def _stopped_before_sending(case: Case, copy: Copy) -> Millis:
    """Return how long the sender was stopped just before the message left: the copy may have been
    made before that."""
    pauses = case.world.pauses.get(copy.came_from, ())
    ends = [(each.start, each.end) for each in pauses if each.end is not None]
    sent = range(copy.first_sent_at, copy.sent_at + 1)
    return max([(end - start) // MILLI for start, end in ends if end in sent], default=0)


def _is_prompt(case: Case, copy: Copy) -> bool:
    """Was the copy sent, or loaded, at once? A faulty disk delays messages."""
    return not case.world.was_disk_faulty(copy.came_from or copy.node, copy.sent_at)


def _judge_due(case: Case, row: Row, copy: Copy, record: dict[str, int]) -> None:
    """A holder queues its copy after the rest of DELAY and a whole RETRY."""
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
    """S16: compare the first record with the ADDJOB of the job, once it is known."""
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
    """Return the value that a record has of the option."""
    value: int | None = getattr(options, option.name)
    if value is None or not option.is_number:
        return value
    return (value // MILLI if option.is_time else value) or None


def _knows_all(case: Case, add: Add) -> bool:
    """Did the node of the ADDJOB know the number of nodes, which `default-replicate` needs?"""
    return (
        not (case.world.is_changing or case.is_live)
        and not add.was_leaving
        and case.world.is_calm(add.invoked, case.now)
    )


def _report_first(case: Case, job: Job, what: str) -> None:
    case.violate("S16", f"its first record has {what}", job.id, job.origin)
