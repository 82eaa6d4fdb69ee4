"""Commands on queues: GETJOB, QLEN, QPEEK, QSTAT, PURGE, REDRIVE, PAUSE (original 2.3, 2.7).

Sets `NodeState.begun`.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from disque_trio.statemachine import (
    counts,
    deadletters,
    delivery,
    federation,
    limiting,
    longcommands,
    pausing,
    pressure,
    purging,
    send,
    transfer,
    waiters,
)
from disque_trio.statemachine.backlog import Backlog
from disque_trio.statemachine.base import (
    NULL_ARRAY,
    PAUSE_IN,
    PAUSE_OUT,
    PENDING,
    SYNTAX_ERROR,
    Body,
    CommandError,
    Lengthy,
    Millis,
    Reply,
    Status,
)
from disque_trio.statemachine.client import COUNTERS, HELD, META, TIED, Client
from disque_trio.statemachine.commandoptions import COUNTED, GETJOB, PURGE, QSTAT
from disque_trio.statemachine.commands.parse import (
    Remembered,
    Words,
    integer,
    job_ids,
    once,
    read_options,
    read_value,
)
from disque_trio.statemachine.job import Job, is_well_formed
from disque_trio.statemachine.lengthy import STEP_WORK, JobsLeft
from disque_trio.statemachine.limit import Setting
from disque_trio.statemachine.messages import Pause
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import no_option, none_of

PAUSE_NAMES = (b"none", b"in", b"out", b"all")
_WANTS: Final = {b"WITHCOUNTERS": COUNTERS, b"WITHMETA": META, b"TIED": TIED, b"HELD": HELD}
_SUSPECT: Final = frozenset(
    each for word in GETJOB for each in (word, word.lower(), word.capitalize())
)
"""Option words in their usual spellings, for a quick check: few queues have such names."""
_PAUSE_BITS = {b"in": PAUSE_IN, b"out": PAUSE_OUT, b"all": PAUSE_IN | PAUSE_OUT}


@attrs.define
class GetOptions:
    """A parsed GETJOB. `wait` 0 is no limit."""

    queues: tuple[bytes, ...] = ()
    count: int = 1
    wait: Millis = 0
    no_hang: bool = False
    wants: int = 0


def getjob(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """GETJOB. The reply is an array of jobs, at once or when a job becomes available."""
    options, queues = _asked(args)
    if node.memory.held > node.memory.hard and (
        len(node.queues) + len(queues) > node.knobs.queues_in_want
    ):
        # If memory is short, only existing queues, because a client could create any number of
        # empty ones. A few more are allowed, so that a node full of replicas can still import jobs.
        known = tuple(name for name in queues if name in node.queues)
        if len(known) < len(queues) and not any(len(node.queues[name]) for name in known):
            raise CommandError(pressure.OUT_OF_MEMORY)
        queues = known
    node.begun = args
    most = node.knobs.ids_at_once
    if options.count > most or len(queues) > most:
        steps = _get_many(node, client, options, queues)
        return longcommands.run(node, client, steps, needs_client=True)
    jobs = delivery.take_rounds(node, client, queues, options.count)
    if jobs:
        return delivery.give(node, client, jobs, options.wants)
    return _wait(node, client, options, queues)


def _get_many(
    node: NodeState, client: Client, options: GetOptions, queues: Sequence[bytes]
) -> longcommands.Steps:
    """The steps of a long GETJOB. It ends early if the node begins to refuse commands; the reply
    then has the jobs that were taken."""
    delivered: list[Reply] = []

    def give(jobs: list[Job]) -> None:
        delivered.extend(delivery.give(node, client, jobs, options.wants))

    for _ in delivery.rounds(node, client, queues, options.count, give):
        yield
        if node.refusal is not None:
            break
    if delivered:
        return delivered
    return node.refusal or _wait(node, client, options, queues)


def _wait(node: NodeState, client: Client, options: GetOptions, queues: Sequence[bytes]) -> Reply:
    """No job is available: block the client, or reply null with NOHANG."""
    if options.no_hang:
        for name in queues:
            if (queue := node.queues.get(name)) is not None:
                federation.poll(node, queue)
        return NULL_ARRAY
    if node.cluster.is_leaving:
        return counts.failure(node, waiters.LEAVING_ERROR)
    deadline = node.mono + options.wait if options.wait else 0
    waiters.block_for_jobs(node, client, queues, deadline, options.wants)
    return PENDING


def _asked(args: list[bytes]) -> tuple[GetOptions, Sequence[bytes]]:
    """The options and the queues. Options are cached if FROM is in upper case."""
    if args[1] == b"FROM":
        if len(args) == 3:
            return _NO_OPTIONS, args[2:]
        at, options = 1, _NO_OPTIONS
    else:
        at = args.index(b"FROM") if b"FROM" in args else len(args)
        try:
            options = _OPTIONS[tuple(args[1:at])]
        except CommandError:
            at = len(args)
    if at >= len(args) - 1:
        options = parse_getjob(args)
        return options, options.queues
    queues = args[at + 1 :]
    if len(queues) > 1 and not _SUSPECT.isdisjoint(queues):
        options = parse_getjob(args)
        return options, options.queues
    return options, queues


def parse_getjob(args: Sequence[bytes]) -> GetOptions:
    """Parse options, then FROM and the queues, possibly with options among or after them. Raises
    CommandError."""
    options = GetOptions()
    words = Words(args[1:])
    for word in words:
        if word.upper() == b"FROM":
            options.queues = _queues(options, tuple(words))
            break
        if not _take_option(options, word.upper(), words):
            raise CommandError(SYNTAX_ERROR + _mistake(args, word))
    if not options.queues:
        raise CommandError(SYNTAX_ERROR + _mistake(args, b""))
    _check(options)
    return options


def _check(options: GetOptions) -> None:
    if options.wants & HELD and not options.wants & TIED:
        raise CommandError(SYNTAX_ERROR + b": HELD needs TIED")


def _queues(options: GetOptions, behind: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The queues among the words after FROM. Options among these words are applied to `options`
    (decision 21).

    The original parses every word as a queue, so it waits for jobs of a queue named TIMEOUT.
    """
    first = _first_possible_option(behind)
    queues, words = list(behind[:first]), behind[first:]
    at = 0
    while at < len(words):
        name = words[at].upper()
        width = 1 + _has_value(name)
        if _is_option(words, at):
            _take_option(options, name, Words(words[at + 1 : at + width]))
            at += width
        else:
            queues.append(words[at])
            at += 1
    return tuple(queues)


def _first_possible_option(behind: tuple[bytes, ...]) -> int:
    """The index at which options may begin. The first word is always a queue, and so are option
    names before the first other word."""
    others = (at for at, word in enumerate(behind) if word.upper() not in GETJOB)
    other = next(others, 0)
    is_value = other > 1 and _is_option(behind, other - 1) and _has_value(behind[other - 1].upper())
    return 1 if is_value else max(other, 1)


def _is_option(words: tuple[bytes, ...], at: int) -> bool:
    """Is the word at `at` an option? One that takes a number must precede a number or be the last
    word."""
    name = words[at].upper()
    behind = words[at + 1 : at + 2]
    return name in GETJOB and (not _has_value(name) or not behind or _is_number(behind[0]))


def _has_value(name: bytes) -> bool:
    return name in GETJOB and GETJOB[name].usage != ""


def _is_number(word: bytes) -> bool:
    """Does it begin like a number, possibly with a unit?"""
    return word.lstrip(b"+-")[:1].isdigit()


def _mistake(args: Sequence[bytes], word: bytes) -> bytes:
    """The end of the error text of an invalid GETJOB: there is no queue, or a word is not an
    option."""
    if not any(each.upper() == b"FROM" for each in args):
        return b": FROM is missing before the queues: GETJOB [options] FROM queue [queue ...]"
    if not word:
        return b": FROM has no queue behind it"
    return b": " + no_option(word, b"GETJOB", (*GETJOB, b"FROM"))


def _take_option(options: GetOptions, name: bytes, words: Words) -> bool:
    """Apply an option with its value. Returns False if `name` is not an option."""
    option = GETJOB.get(name)
    if option is None:
        return False
    if name in _WANTS:
        if option.feature:  # the original accepts its own options twice
            once(options.wants & _WANTS[name] or None, name)
        options.wants |= _WANTS[name]
    else:
        setattr(options, option.name, read_value(option, words))
    return True


def _parse_options(words: tuple[bytes, ...]) -> GetOptions:
    options, left = GetOptions(), Words(words)
    for word in left:
        if not _take_option(options, word.upper(), left):
            raise CommandError(SYNTAX_ERROR)
    _check(options)
    return options


_OPTIONS: Final = Remembered(_parse_options)
_NO_OPTIONS: Final = GetOptions()


def qlen(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """QLEN. The reply is the number of jobs in the queue at this node."""
    queue = node.queues.get(args[1])
    return 0 if queue is None else len(queue)


def qpeek(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """QPEEK. The reply is the oldest jobs or, with a negative count, the newest, which remain
    queued."""
    count = integer(args[2], name=b"the count of QPEEK")
    queue = node.queues.get(args[1])
    if queue is None or not count:
        return []
    jobs = queue.peek(count)
    if len(jobs) <= node.knobs.peeked_at_once:
        return [delivery.describe(job) for job in jobs]
    left = JobsLeft(node, jobs)
    return Lengthy(left.parts([], _peeked), len(jobs) * STEP_WORK, left.sizes)


def _peeked(job: Job, body: Body | None) -> Reply:
    return [job.queue, job.id, body]


def qstat(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """QSTAT. The reply is the twenty elements of the original, then ours."""
    read_options(args[2:], b"QSTAT", QSTAT)
    places = node.queues, node.dead, node.restored
    queue = queue_of(node, args[1])
    # As in the original, a queue with only delayed jobs or replicas of queued ones has no reply,
    # unless UNQUEUED is given.
    if queue is None or (len(args) == 2 and all(args[1] not in place for place in places)):
        return NULL_ARRAY
    dead = len(node.dead.get(args[1], ()))
    reply: list[Reply] = [b"name", queue.name, b"len", len(queue)]
    reply += [b"age", (node.mono - queue.created) // 1000]
    reply += [b"idle", (node.mono - queue.accessed) // 1000, b"blocked", len(queue.waiting)]
    reply += [b"import-from", list(queue.responders)]
    reply += [b"import-rate", transfer.import_rate(node, queue)]
    reply += [b"jobs-in", queue.jobs_in, b"jobs-out", queue.jobs_out]
    reply += [b"pause", PAUSE_NAMES[queue.paused]]
    delayed, delayed_due = waiting(node, node.delayed.get(queue.name))
    leased = node.leased.get(queue.name, 0)
    reply += [b"delayed", delayed, b"leased", leased, b"dead", dead]
    oldest = queue.oldest()
    reply += [b"age-ms", 0 if oldest is None else counts.waited(node, oldest)]
    reply += [b"deliveries", queue.jobs_out - queue.transferred, b"acks", queue.acks]
    reply += [b"unqueued", node.unqueued.get(queue.name, 0)]
    restored, due = waiting(node, node.restored.get(queue.name))
    reply += [b"restored", restored, b"restored-due-ms", due, b"delayed-due-ms", delayed_due]
    limit = node.limits.get(queue.name)
    if limit is not None and limit.setting.is_set:
        reply += _of_limit(node, queue, limit.setting)
    return reply


def _of_limit(node: NodeState, queue: Queue, setting: Setting) -> list[Reply]:
    reply: list[Reply] = [b"concurrency", setting.concurrency, b"rate", setting.rate]
    reply += [b"period-ms", setting.period, b"burst", setting.burst]
    reply += [b"limited", int(limiting.waits(node, queue))]
    reply += [b"loose", int(setting.is_loose)]
    reply += [b"group-concurrency", setting.group_concurrency, b"group-rate", setting.group_rate]
    return [*reply, b"group-period-ms", setting.group_period, b"group-burst", setting.group_burst]


def queue_of(node: NodeState, name: bytes) -> Queue | None:
    """The queue. If it does not exist, but has dead or unqueued jobs here, or limits: an empty one.
    Otherwise None."""
    if (queue := node.queues.get(name)) is not None:
        return queue
    limit = node.limits.get(name)
    is_limited = limit is not None and limit.setting.is_set
    if not is_limited and name not in node.dead and name not in node.unqueued:
        return None
    return Queue(name, node.mono, node.mono, limit=limit)


def waiting(node: NodeState, backlog: Backlog | None) -> tuple[int, Millis | None]:
    """The number of jobs in a backlog, and the milliseconds until the first is due, with a
    resolution of one second."""
    if backlog is None:
        return 0, None
    return backlog.number, max(backlog.first_due() - node.mono, 0)


def purge(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """PURGE: acknowledge the queued jobs, or the dead jobs, of a queue, here or, with BCAST, on
    every node. The reply is their number at this node."""
    options = read_options(args[2:], b"PURGE", PURGE)
    dead = "is_dead" in options
    if "is_bcast" in options:
        purging.broadcast(node, args[1], dead=dead)
    return purging.purge(node, args[1], dead=dead)


def redrive(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """REDRIVE: enqueue dead jobs with these ids, or of a queue in the order of their deaths. The
    reply is their number."""
    if is_well_formed(args[1]):
        return longcommands.total(node, client, job_ids(args), deadletters.redrive_all)
    count = read_options(args[2:], b"REDRIVE", COUNTED).get("count", 0)
    return purging.redrive(node, args[1], count)


def pause(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """PAUSE: show or set a queue's pause state, here or, with BCAST, on every node."""
    bits: int | None = None
    broadcast = False
    for word in args[2:]:
        option = word.lower()
        if option in _PAUSE_BITS:
            bits = (bits or 0) | _PAUSE_BITS[option]
        elif option == b"none":
            bits = 0
        elif option == b"bcast":
            broadcast = True
        elif option != b"state":
            words = (*_PAUSE_BITS, b"none", b"state", b"bcast")
            raise CommandError(SYNTAX_ERROR + b": " + none_of(word, words))
    if bits is not None:
        if bits and pressure.level(node) == pressure.WANT and args[1] not in node.queues:
            raise CommandError(pressure.OUT_OF_MEMORY)
        pausing.set_pause(node, args[1], bits)
    queue = node.queues.get(args[1])
    state = 0 if queue is None else queue.paused
    if broadcast:
        send.to_all(node, Pause(args[1], state))
    return Status(PAUSE_NAMES[state])
