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
"""Option words in upper and lower case: a quick check, because few queues have such names."""
_PAUSE_BITS = {b"in": PAUSE_IN, b"out": PAUSE_OUT, b"all": PAUSE_IN | PAUSE_OUT}


@attrs.define
class GetOptions:
    """A parsed GETJOB. `wait` 0 is for ever."""

    queues: tuple[bytes, ...] = ()
    count: int = 1
    wait: Millis = 0
    no_hang: bool = False
    wants: int = 0


def getjob(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """Jobs from the queues, at once or when there are some."""
    options, queues = _asked(args)
    if node.memory.held > node.memory.hard and (
        len(node.queues) + len(queues) > node.knobs.queues_in_want
    ):
        # The queues that exist, if memory is short: a client could create any number of empty ones.
        # A few may be created, so that a node full of replicas asks for the jobs of other nodes.
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
    """It ends early if the node cannot give jobs any more: what it has given is delivered."""
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
    """There is no job now."""
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
    """The options, from the cache where FROM has its usual spelling, and the queues."""
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
    """Options, then FROM and the queues, possibly with options among or behind them."""
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
    """The queues of the words behind FROM; the options behind the queues are taken (decision 21).

    The original takes every word for a queue, and so waits for jobs of a queue named TIMEOUT.
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
    """Where options may begin: names of options that stand before the first other queue are queues,
    and the first word always is."""
    others = (at for at, word in enumerate(behind) if word.upper() not in GETJOB)
    other = next(others, 0)
    is_value = other > 1 and _is_option(behind, other - 1) and _has_value(behind[other - 1].upper())
    return 1 if is_value else max(other, 1)


def _is_option(words: tuple[bytes, ...], at: int) -> bool:
    """Is it the name of an option? Of one that takes a number, only before a number or nothing."""
    name = words[at].upper()
    behind = words[at + 1 : at + 2]
    return name in GETJOB and (not _has_value(name) or not behind or _is_number(behind[0]))


def _has_value(name: bytes) -> bool:
    return name in GETJOB and GETJOB[name].usage != ""


def _is_number(word: bytes) -> bool:
    """Is it meant as a number, possibly with a unit?"""
    return word.lstrip(b"+-")[:1].isdigit()


def _mistake(args: Sequence[bytes], word: bytes) -> bytes:
    """What is wrong with a GETJOB: there are no queues, or a word is not an option."""
    if not any(each.upper() == b"FROM" for each in args):
        return b": FROM is missing before the queues: GETJOB [options] FROM queue [queue ...]"
    if not word:
        return b": FROM has no queue behind it"
    return b": " + no_option(word, b"GETJOB", (*GETJOB, b"FROM"))


def _take_option(options: GetOptions, name: bytes, words: Words) -> bool:
    """Is it an option? Then it is taken with its value."""
    option = GETJOB.get(name)
    if option is None:
        return False
    if name in _WANTS:
        if option.feature:  # the original takes its own options twice
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
    """How many jobs the queue has here."""
    queue = node.queues.get(args[1])
    return 0 if queue is None else len(queue)


def qpeek(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """The oldest jobs, or with a negative count the newest, without taking them."""
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
    """The twenty elements about one queue, and what the original does not count."""
    read_options(args[2:], b"QSTAT", QSTAT)
    places = node.queues, node.dead, node.restored
    queue = queue_of(node, args[1])
    # As there, a queue with nothing but delayed jobs or copies has none unless they are asked for.
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
    reply += [b"age-ms", 0 if oldest is None else max(node.wall - oldest.made, 0)]
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
    """The queue; an empty one in its place if all its jobs here are dead, none is queued, or it has
    only limits."""
    if (queue := node.queues.get(name)) is not None:
        return queue
    limit = node.limits.get(name)
    is_limited = limit is not None and limit.setting.is_set
    if not is_limited and name not in node.dead and name not in node.unqueued:
        return None
    return Queue(name, node.mono, node.mono, limit=limit)


def waiting(node: NodeState, backlog: Backlog | None) -> tuple[int, Millis | None]:
    """How many jobs of a queue wait, and in how many milliseconds the first is queued, to the
    second."""
    if backlog is None:
        return 0, None
    return backlog.number, max(backlog.first_due() - node.mono, 0)


def purge(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """How many jobs, or dead jobs, the queue has here; they are acknowledged from now on, here or,
    with BCAST, on every node."""
    options = read_options(args[2:], b"PURGE", PURGE)
    dead = "is_dead" in options
    if "is_bcast" in options:
        purging.broadcast(node, args[1], dead=dead)
    return purging.purge(node, args[1], dead=dead)


def redrive(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """How many dead jobs are queued: of those with these ids, or of the queue, the one that died
    first first."""
    if is_well_formed(args[1]):
        return longcommands.total(node, client, job_ids(args), deadletters.redrive_all)
    count = read_options(args[2:], b"REDRIVE", COUNTED).get("count", 0)
    return purging.redrive(node, args[1], count)


def pause(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """Show or replace the queue's pause state, here or, with BCAST, on every node."""
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
