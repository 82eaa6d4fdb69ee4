"""QSCAN and JSCAN: iterate over all queues or jobs, some per call (original 2.8).

An iteration covers the items that exist when it begins. An item that exists throughout is returned
once; one that is removed meanwhile is skipped. The node keeps `MAX_ITERATIONS` iterations and drops
the least recently used one, so active ones finish. An unknown cursor begins a new iteration. The
original's cursors walk its hash table.

An iteration over queues copies their names. Jobs are too many to copy: an iteration follows their
linked list, in one direction only, so a reused cursor begins a new iteration.

Owns `NodeState.scans`, `job_scans` and `last_scan`.
"""

from collections.abc import Generator
from typing import Final

import attrs

from disque_trio.statemachine import counts, limiting, transfer
from disque_trio.statemachine.base import (
    ACTIVE,
    DELAYED,
    DELIVERED_HERE,
    FOREVER,
    POSTPONED,
    RESTORED,
    STATE_NAMES,
    SYNTAX_ERROR,
    TAKEN,
    Body,
    CommandError,
    Lengthy,
    Millis,
    Opening,
    Reply,
    Status,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commandoptions import JSCAN, QSCAN, Table
from disque_trio.statemachine.commands import ended, prefilter
from disque_trio.statemachine.commands.jobs import BODY_AT, describe
from disque_trio.statemachine.commands.parse import integer
from disque_trio.statemachine.commands.prefilter import Prefilter
from disque_trio.statemachine.commands.queues import (
    PAUSE_NAMES,
    queue_of,
    waiting,
)
from disque_trio.statemachine.endings import NOTHING, Sheet
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.joboptions import Option
from disque_trio.statemachine.jobtable import Walk
from disque_trio.statemachine.lengthy import FEWER, SOME, STEP_WORK, JobsLeft, of_names
from disque_trio.statemachine.limit import Setting
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import did_you_mean, none_of, shown

DEFAULT_COUNT: Final = 100
PHASES: Final = {
    b"backing-off": POSTPONED,
    b"delayed": DELAYED,
    b"restored": RESTORED,
    b"leased": DELIVERED_HERE | TAKEN,
}
"""The states that JSCAN accepts in addition to those of SHOW, with the flags of an active job. The
first phase that matches applies (`phase_of`)."""
WORK_PER_ITEM: Final = 10
MAX_ITERATIONS: Final = 32
"""The limit for queues and for jobs each. Dropping a job checks every iteration over jobs."""
_ALL: Final = tuple(range(len(STATE_NAMES)))
_MAX_CURSOR: Final = (1 << 64) - 1
_OFFSET_BITS: Final = 40
_LAST_NUMBER: Final = (1 << 23) - 1
"""Iterations are numbered from 1 again after this many, so that cursors fit 63 bits."""


@attrs.define
class Options:
    """The options of both scans. In the filters of queues, -1 is none."""

    cursor: int | None = None
    count: int = DEFAULT_COUNT
    is_busy_loop: bool = False
    minlen: int = -1
    maxlen: int = -1
    import_rate: int = -1
    has_unqueued: bool = False
    """Include queues without queued jobs."""
    queue: bytes | None = None
    states: tuple[int, ...] = ()
    phases: tuple[bytes, ...] = ()
    """If there are states or phases, a job must be in one of them."""
    has_ended: bool = False
    """Include ended jobs, after all others."""
    group: bytes | None = None
    key: bytes | None = None
    error: bytes | None = None
    body: bytes | None = None
    older: int | None = None
    younger: int | None = None
    """The job's age in seconds: `older` is the minimum, `younger` the maximum."""
    reply: bytes = b""
    is_whole: bool = False
    """REPLY `stat`, `all` or `full`: return details, not only names or ids."""

    @property
    def wanted(self) -> int | None:
        """The number of items to return; None is all."""
        return None if self.is_busy_loop or self.count < 0 else max(self.count, 1)


_INVALID: Final = b"ERR invalid cursor or option name"
_WHOLE: Final = (b"stat", b"all", b"full")


def qscan(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """QSCAN. The reply is names of queues; with REPLY stat, each is followed by its figures."""
    options = _parse(args[1:], QSCAN)
    number, offset = divmod(options.cursor or 0, 1 << _OFFSET_BITS)
    names = node.scans.get(number)
    if names is None:
        names, offset = _names(node, options), 0
    if options.wanted is None and len(names) - offset > node.knobs.steps_at_once:
        node.scans.pop(number, None)
        return Lengthy(_all_queues(node, options, names, offset), len(names) * STEP_WORK)
    begun = offset
    end = min(len(names), offset + _steps(node, options.wanted))
    found: list[bytes] = []
    while offset < end and len(found) != options.wanted:
        if _shows_queue(node, options, names[offset]):
            found.append(names[offset])
        offset += 1
    cursor = b"%d" % _next_queue(node, number, names, offset)
    if len(found) <= node.knobs.peeked_at_once:
        return [cursor, [value for name in found for value in _show_queue(node, options, name)]]
    return _queues(node, options, found, cursor, offset - begun)


def _all_queues(
    node: NodeState, options: Options, names: list[bytes], offset: int
) -> Generator[list[Reply], None, None]:
    """BUSYLOOP: find all matching queues first, because the reply begins with their number."""
    found: list[bytes] = []
    while offset < len(names):
        some = names[offset : offset + node.knobs.steps_at_once]
        found += [name for name in some if _shows_queue(node, options, name)]
        offset += node.knobs.steps_at_once
        yield []
    yield from _queues(node, options, found, b"0", 0).parts


def _queues(
    node: NodeState, options: Options, names: list[bytes], cursor: bytes, steps: int
) -> Lengthy:
    head: list[Reply] = [Opening(2), cursor, Opening(len(names) << options.is_whole)]
    return of_names(names, lambda name: _show_queue(node, options, name), head, steps * STEP_WORK)


def _show_queue(node: NodeState, options: Options, name: bytes) -> list[Reply]:
    if not options.is_whole:
        return [name]
    return [name, _figures(node, options, name)]


def _names(node: NodeState, options: Options) -> list[bytes]:
    if not options.has_unqueued:
        return list(node.queues)
    limited = [each.name for each in limiting.limited(node)]
    return list({**node.queues, **node.unqueued, **node.dead, **dict.fromkeys(limited)})


def _figures(node: NodeState, options: Options, name: bytes) -> bytes:
    """The figures as one word, in the order of docs/commands.md. There may be 100,000 queues, so
    clients compare words, and parse only those that have changed."""
    # The queue may have been removed since it was found.
    queue = queue_of(node, name) or Queue(name, node.mono, node.mono)
    figures = _plain_figures(node, queue)
    if not options.has_unqueued:
        return figures
    restored, due = waiting(node, node.restored.get(name))
    _, delayed_due = waiting(node, node.delayed.get(name))
    figures = b"%b %d %d %d %d" % (
        figures,
        node.unqueued.get(name, 0),
        restored,
        _moment(node, due),
        _moment(node, delayed_due),
    )
    limit = node.limits.get(name)
    if limit is None or not limit.setting.is_set:
        return figures
    return b"%b %b" % (figures, _limits(node, queue, limit.setting))


def _limits(node: NodeState, queue: Queue, setting: Setting) -> bytes:
    limits = setting.concurrency, setting.rate, setting.period, setting.burst
    of_group = setting.of_group
    return b"%d %d %d %d %d %d %d %d %d %d" % (
        *limits,
        limiting.waits(node, queue),
        setting.is_loose,
        *(of_group.concurrency, of_group.rate, of_group.period, of_group.burst),
    )


def _moment(node: NodeState, due: Millis | None) -> int:
    """The due time in Unix seconds, because the remaining time would differ in each reply. 0 if
    there is none."""
    return 0 if due is None else (node.wall + due) // 1000


def _plain_figures(node: NodeState, queue: Queue) -> bytes:
    name, oldest = queue.name, queue.oldest()
    return b"%d %d %d %d %d %d %d %d %b" % (
        len(queue),
        len(queue.waiting),
        queue.jobs_in,
        queue.jobs_out,
        waiting(node, node.delayed.get(name))[0],
        node.leased.get(name, 0),
        len(node.dead.get(name, ())),
        0 if oldest is None else counts.due_since(node, oldest),
        PAUSE_NAMES[queue.paused],
    )


def _next_queue(node: NodeState, number: int, names: list[bytes], offset: int) -> int:
    """Keep the iteration. Returns the next cursor, or 0 at the end."""
    if offset >= len(names):
        node.scans.pop(number, None)
        return 0
    if node.scans.pop(number, None) is None:
        number = _new_number(node)
    node.scans[number] = names  # at the end: the first is the least recently used
    while len(node.scans) > MAX_ITERATIONS:
        del node.scans[next(iter(node.scans))]
    return (number << _OFFSET_BITS) + offset


def jscan(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """JSCAN. The reply is ids of jobs or, with REPLY all or full, their fields."""
    options = _parse(args[1:], JSCAN)
    number, offset = divmod(options.cursor or 0, 1 << _OFFSET_BITS)
    if not options.has_ended:
        return _jscan(node, options, number, offset)
    if options.wanted is None:
        raise CommandError(b"ERR BUSYLOOP shows no jobs that have ended: go on by the cursor")
    is_mixed = bool(options.states or options.phases)
    if number or (is_mixed and not offset):
        return _jscan(node, options, number, offset)
    return _scan_ended(node, options, offset or node.endings.end)


def _scan_ended(node: NodeState, options: Options, before: int) -> Reply:
    """Ended jobs before this number, which is also the cursor. Cursors of iterations are at least 2
    ** 40."""
    most = min(options.wanted or 1, max(node.knobs.peeked_at_once, 1))
    found, before = ended.look(
        node.endings,
        lambda sheet, at: _shows_ended(node, options, sheet, at),
        before,
        most,
        _steps(node, options.wanted),
    )
    show = ended.describe if options.is_whole else lambda record: Status(record.id)
    return [b"%d" % before, [show(record) for record in found]]


def _jscan(node: NodeState, options: Options, number: int, offset: int) -> Reply:
    walk, seen = node.job_scans.get(number, (None, 0))
    if options.wanted is None and len(node.jobs) > node.knobs.steps_at_once:
        return Lengthy(_all_jobs(node, options, number if seen == offset else 0))
    steps = _steps(node, options.wanted)
    checks = _prefilter(node, options)
    # If an iteration continues, the counts may include jobs that it has visited already.
    most = None if options.cursor else prefilter.most_of(node, checks, steps)
    few = None if options.cursor else _few(node, options, checks, most, steps)
    begun = offset
    if few is not None:
        found, cursor = [job for job in few if _shows_job(node, options, job)], b"0"
    else:
        if walk is None or seen != offset:
            walk, number, offset = node.table.walk(), 0, 0
            begun = 0
        found, passed = _look(node, options, walk, checks, steps, most)
        offset += passed
        cursor = b"%d" % _next_job(node, number, walk, offset)
    if options.has_ended and cursor == b"0":
        cursor = b"%d" % node.endings.end
    if len(found) <= node.knobs.peeked_at_once:
        return [cursor, [_show_job(node, options, job, job.body) for job in found]]
    left = JobsLeft(node, found)
    parts = _jobs(node, options, left, cursor)
    return Lengthy(parts, 2 * (offset - begun) * STEP_WORK, left.sizes)


def _few(
    node: NodeState, options: Options, checks: Prefilter, most: int | None, limit: int
) -> list[Job] | None:
    """All jobs that can match, if an index has them and they are few; otherwise None."""
    if options.key is not None and options.queue is not None:
        return list(node.keys.index.get((options.queue, options.key), ()))
    return prefilter.few(node, checks, most, limit)


def _look(
    node: NodeState, options: Options, walk: Walk, checks: Prefilter, steps: int, most: int | None
) -> tuple[list[Job], int]:
    def fits(job: Job) -> bool:
        return _shows_job(node, options, job)

    return prefilter.look(walk, checks, fits, options.wanted, steps, most)


def _all_jobs(node: NodeState, options: Options, number: int) -> Generator[list[Reply], None, None]:
    """BUSYLOOP, possibly from a cursor: find all matching jobs first, because the reply begins with
    their number."""
    left = JobsLeft(node)
    walk, _ = node.job_scans.get(number, (None, 0))
    walk = walk or node.table.walk()
    try:
        while not walk.is_over:
            checks = _prefilter(node, options)  # ages count from now
            left.add(_look(node, options, walk, checks, node.knobs.steps_at_once, None)[0])
            yield []
    finally:
        walk.end()
        node.job_scans.pop(number, None)
    yield from _jobs(node, options, left, b"0")


def _jobs(
    node: NodeState, options: Options, left: JobsLeft, cursor: bytes
) -> Generator[list[Reply], None, None]:
    def show(job: Job, body: Body | None) -> Reply:
        return _show_job(node, options, job, body)

    return left.parts([Opening(2), cursor], show, FEWER if options.is_whole else SOME)


def _show_job(node: NodeState, options: Options, job: Job, body: Body | None) -> Reply:
    if not options.is_whole:
        return Status(job.id)
    shown = describe(node, job)
    shown[BODY_AT] = body
    if options.reply == b"full" and (phase := phase_of(job)):
        shown += [b"phase", phase]
    return shown


def _next_job(node: NodeState, number: int, walk: Walk, offset: int) -> int:
    """Keep the iteration. Returns the next cursor, or 0 at the end."""
    node.job_scans.pop(number, None)
    if walk.is_over:
        return 0
    number = number or _new_number(node)
    node.job_scans[number] = walk, offset  # behind all others
    while len(node.job_scans) > MAX_ITERATIONS:
        unused, _ = node.job_scans.pop(next(iter(node.job_scans)))
        unused.end()
    return (number << _OFFSET_BITS) + offset


def _new_number(node: NodeState) -> int:
    node.last_scan = node.last_scan % _LAST_NUMBER + 1
    return node.last_scan


def _steps(node: NodeState, wanted: int | None) -> int:
    """The maximum number of queues or jobs that are checked for one reply."""
    knobs = node.knobs
    if wanted is None:
        return knobs.steps_at_once  # all of them, or else the reply is a `Lengthy`
    return min(wanted * WORK_PER_ITEM, knobs.scan_steps)


def _parse(words: list[bytes], known: Table) -> Options:
    """Parse words in any order. The last value of a repeated option applies. A word that is not an
    option must be the cursor. Raises CommandError."""
    options = Options()
    index = 0
    while index < len(words):
        option = known.get(words[index].upper())
        if option is not None and not option.usage:
            setattr(options, option.name, True)
        elif option is not None and index + 1 < len(words):
            index += 1
            _take_value(options, option, words[index])
        else:
            _take_cursor(options, words[index], known)
        index += 1
    return options


def _take_value(options: Options, option: Option, word: bytes) -> None:
    if option.is_repeatable:
        _take_state(options, word.lower())
    elif option.is_number:
        setattr(options, option.name, integer(word, name=option.word))
    elif "|" in option.usage:
        options.reply = _one_of(option, word)
        options.is_whole = options.reply in _WHOLE
    else:
        setattr(options, option.name, word)


def _take_cursor(options: Options, word: bytes, known: Table) -> None:
    error = _INVALID if options.cursor is None else SYNTAX_ERROR
    if word.upper() in known:
        raise CommandError(b"%b: %b has no value behind it" % (error, word.upper()))
    if not word.lstrip(b"+-").isdigit() and word:
        hint = did_you_mean(word, known) or b"; there are %b" % b", ".join(known)
        raise CommandError(b"%b: %b is neither%b" % (error, shown(word), hint))
    if options.cursor is not None:
        raise CommandError(b"%b: %b comes behind another cursor" % (error, shown(word)))
    options.cursor = integer(word, _INVALID, largest=_MAX_CURSOR)


def _take_state(options: Options, word: bytes) -> None:
    if word in PHASES:
        options.phases += (word,)
    elif word == ended.STATE:
        options.has_ended = True
    elif word in STATE_NAMES:
        options.states += (STATE_NAMES.index(word),)
    else:
        known = (*STATE_NAMES, *PHASES, ended.STATE)
        raise CommandError(b"ERR Invalid job state name: " + none_of(word, known))


def _one_of(option: Option, word: bytes) -> bytes:
    ways = option.usage.encode().split(b"|")
    if word.lower() not in ways:
        values = b" or ".join([way.upper() for way in ways]), shown(word)
        raise CommandError(b"ERR Invalid REPLY type, try %b: %b is neither" % values)
    return word.lower()


def _shows_queue(node: NodeState, options: Options, name: bytes) -> bool:
    queue = queue_of(node, name) if options.has_unqueued else node.queues.get(name)
    if queue is None or len(queue) < options.minlen:
        return False
    if 0 <= options.maxlen < len(queue):
        return False
    return options.import_rate <= 0 or transfer.import_rate(node, queue) >= options.import_rate


def phase_of(job: Job) -> bytes:
    """Why an active job is not queued here, according to this node; empty if there is no known
    reason."""
    if job.state == ACTIVE:
        for phase, flags in PHASES.items():
            if job.flags & flags:
                return phase
    return b""


def _prefilter(node: NodeState, options: Options) -> Prefilter:
    """The conditions of `_shows_job` that are cheap to check."""
    flags = 0
    for phase in options.phases:
        flags |= PHASES[phase]
    is_any = not (options.states or options.phases)
    older, younger = options.older, options.younger
    return Prefilter(
        queue=options.queue,
        states=_ALL if is_any else options.states,
        flags=flags,
        since=-FOREVER if younger is None else node.wall - 1000 * younger - 999,
        until=FOREVER if older is None else node.wall - 1000 * older,
        is_extended=(options.key, options.group, options.error) != (None, None, None),
        body=options.body,
    )


def _shows_job(node: NodeState, options: Options, job: Job) -> bool:
    """Does the job match? `_prefilter` has checked the queue already."""
    if job.is_dummy:
        return False
    if options.states or options.phases:
        is_in = job.state in options.states
        if not is_in and not (options.phases and phase_of(job) in options.phases):
            return False
    age = (node.wall - job.made) // 1000
    if options.older is not None and age < options.older:
        return False
    return (options.younger is None or age <= options.younger) and _matches(options, job)


def _matches(options: Options, job: Job) -> bool:
    """Does the job match the filters GROUP, KEY, ERROR and BODY? A body on disk never matches."""
    more = job.extensions
    if options.group is not None and job.group != options.group:
        return False
    if options.key is not None and (more is None or more.key != options.key):
        return False
    if options.error is not None and job.error.kind != options.error:
        return False
    body = job.body
    return options.body is None or (isinstance(body, bytes) and options.body in body)


def _shows_ended(node: NodeState, options: Options, sheet: Sheet, at: int) -> bool:
    if options.queue is not None and sheet.queues[at] != options.queue:
        return False
    if options.older is not None or options.younger is not None:
        age = (node.wall - sheet.made_at(at)) // 1000
        if options.older is not None and age < options.older:
            return False
        if options.younger is not None and age > options.younger:
            return False
    if (options.group, options.key, options.error) != (None, None, None):
        details = sheet.details.get(at, NOTHING)
        if options.group is not None and details.group != options.group:
            return False
        if options.key is not None and details.key != options.key:
            return False
        if options.error is not None and details.error.kind != options.error:
            return False
    return options.body is None or options.body in sheet.head(at)
