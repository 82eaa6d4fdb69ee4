"""The commands of a node (docs/commands.md), without I/O.

Each function returns one `Command`. Both clients run them, so they behave the same. A job may be
given by its id; WORKING, NACK and RELEASE of a delivered job also send its token.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, Literal, TypeVar

import attrs

from disque_trio.client import replies
from disque_trio.client.checking import checked
from disque_trio.client.command import Command, LongWait, Text, milliseconds, span, word
from disque_trio.client.records import (
    End,
    Job,
    JobDetails,
    JobResult,
    KeyHolder,
    QueueInfo,
    QueueStats,
    Scanned,
)
from disque_trio.client.refusals import RefusedError, UnsupportedError
from disque_trio.client.settings import PART_S
from disque_trio.statemachine import commandoptions, joboptions
from disque_trio.statemachine.base import Reply, Status
from disque_trio.statemachine.commandoptions import (
    ACKJOB,
    COUNTED,
    GETJOB,
    JSCAN,
    LIMIT,
    NACK,
    PURGE,
    QSCAN,
    RELEASE,
    Table,
    behind_from,
)

Result = TypeVar("Result")

ADD_TIMEOUT_S: Final = 5.0
_KEY_WAIT_S: Final = 5.0
"""A node answers commands about keys within this time, even if another node does not answer."""
_RESULTS: Final = "results"
"""The feature of nodes that keep results."""
_NODE_DIGITS: Final = 8
"""A token begins with the first digits of the id of the node that created it."""


@checked
def call(*words: Text | float) -> Command[Reply]:
    """Run any command, and return the raw reply. It is never repeated."""
    return Command(tuple(map(word, words)), lambda reply: reply, is_repeatable=False)


@checked
def addjob(
    queue: Text,
    body: Text,
    *,
    timeout: float | None = ADD_TIMEOUT_S,
    replicate: int | None = None,
    sync: int | Literal["auto"] | None = None,
    delay: float = 0,
    retry: int | None = None,
    ttl: int | None = None,
    maxlen: int | None = None,
    is_async: bool = False,
    priority: int | None = None,
    group: Text | None = None,
    limit: int | None = None,
    backoff: float | None = None,
    max_backoff: float | None = None,
    unique: Text | None = None,
    keep: float | None = None,
    if_exists: Literal["return", "reject", "again", "replace"] | None = None,
) -> Command[str]:
    """ADDJOB: return the id of the new job. Times are in seconds; `timeout` limits the wait for
    replicas, None is no limit. With `sync` the reply waits for this many replicas, or ("auto") for
    a majority, if the node supports that. With a `unique` key the id may be that of an existing job
    with the key. `if_exists` changes that: "reject" raises `DuplicateJobError`; "again" adds a new
    job if a worker has the other one; "replace" does so if the other one was never delivered. The
    command is repeated after a lost reply only with a `unique` key, and if `if_exists` is None or
    "return"."""
    values = {
        "replicate": replicate, "sync": sync, "delay": delay or None, "retry": retry, "ttl": ttl,
        "maxlen": maxlen, "is_async": is_async, "priority": priority, "group": group,
        "limit": limit, "backoff": backoff, "max_backoff": max_backoff, "unique": unique,
        "keep": keep, "if_exists": if_exists,
    }  # fmt: skip
    options = map(word, joboptions.words(values))
    asked = (b"ADDJOB", word(queue), word(body), milliseconds(timeout), *options)
    plain = asked
    if sync is not None:
        at = asked.index(b"SYNC", 4)
        plain = (*asked[:at], *asked[at + 2 :])
    return Command(
        asked,
        replies.text,
        plain=plain,
        features=() if sync is None else ("sync-auto" if sync == "auto" else "sync",),
        is_repeatable=unique is not None and if_exists in (None, "return"),
        wait_s=span(timeout),
    )


@checked
def getjob(
    *queues: Text,
    count: int = 1,
    timeout: float | None = None,
    with_meta: bool = False,
    is_tied: bool = False,
    is_held: bool = False,
) -> Command[list[Job]]:
    """GETJOB: return up to `count` jobs.

    It waits up to `timeout` seconds for the first one; None is no limit, 0 does not wait. If the
    node fails meanwhile, the next one is asked for the rest of the wait. `with_meta` is WITHMETA:
    each job has its `meta` with a token. `is_tied` is TIED: the lease also ends when the client
    closes. `is_held` is HELD, and requires TIED: jobs start with `begin`. A node that does not
    support all requested options receives none of them. If the task of an asynchronous client is
    cancelled, jobs that arrive meanwhile are released.
    """
    if not queues:
        raise ValueError("getjob needs at least one queue")
    if is_held and not is_tied:
        raise ValueError("is_held needs is_tied: a job is held only while its connection is open")
    wait = None if timeout == 0 else milliseconds(timeout)
    asked, plain, features = _before_from(count, wait, with_meta, is_tied, is_held)
    behind = (b"FROM", *behind_from(map(word, queues)))
    command = Command(
        (*asked, *behind),
        replies.jobs,
        wait_s=span(timeout),
        features=features,
        plain=(*plain, *behind),
        for_wait=partial(_getjob_again, queues, count, with_meta, is_tied, is_held),
    )
    return command if command.wait_s <= PART_S else LongWait.of(command)


def _getjob_again(
    queues: Sequence[Text],
    count: int,
    with_meta: bool,
    is_tied: bool,
    is_held: bool,
    wait_s: float,
) -> Command[list[Job]]:
    options = {"with_meta": with_meta, "is_tied": is_tied, "is_held": is_held}
    return getjob(*queues, count=count, timeout=wait_s, **options)


@lru_cache(maxsize=1 << 8)
def _before_from(
    count: int, wait: bytes | None, with_meta: bool, is_tied: bool, is_held: bool
) -> tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[str, ...]]:
    """The words of GETJOB before the queues, the same for original nodes, and the required
    features. If `wait` is None, the command does not wait."""
    waits = {"no_hang": True} if wait is None else {"wait": wait}
    plain = {"with_counters": True, "count": count, **waits}
    ours = {"with_meta": with_meta, "is_tied": is_tied, "is_held": is_held}
    return (
        (b"GETJOB", *_words(GETJOB, plain | ours)),
        (b"GETJOB", *_words(GETJOB, plain)),
        tuple(each.feature for each in GETJOB.values() if ours.get(each.name)),
    )


@checked
def begin(*jobs: Job | str) -> Command[int]:
    """BEGIN: return how many held jobs start (`getjob` with `is_held`); 0 at a node without
    HELD."""
    command = _of_jobs(b"BEGIN", jobs)
    # ACKJOB without jobs does nothing, and every node supports it.
    return attrs.evolve(
        _with_tokens(command, jobs), plain=(b"ACKJOB",), features=("held", "tokens")
    )


@checked
def ackjob(*jobs: Job | str, result: Text | None = None, keep: float | None = None) -> Command[int]:
    """ACKJOB: return how many jobs the node held that were not acknowledged yet. With the `result`
    of one job, nodes keep it for `keep` seconds (default: an hour). Raises `UnsupportedError`, and
    acknowledges nothing, if no node keeps results."""
    plain = _of_jobs(b"ACKJOB", jobs)
    if result is None and keep is None:
        return plain
    if result is None or len(jobs) != 1:
        raise ValueError(f"ackjob: result needs exactly one job, not {len(jobs)}")
    options = _words(ACKJOB, {"result": word(result), "keep": keep})
    return _of_results(attrs.evolve(plain, words=(*plain.words, *options)))


def _of_results(command: Command[Result]) -> Command[Result]:
    """The command for nodes that keep results. Other nodes receive a PING, which does nothing."""

    def meaning(reply: Reply) -> Result:
        if reply == Status(b"PONG"):
            raise UnsupportedError(
                f"{command.name}: the node does not keep results (feature `results`)"
            )
        return command.meaning(reply)

    features = (*command.features, _RESULTS)
    return attrs.evolve(command, meaning=meaning, plain=(b"PING",), features=features)


@checked
def fastack(*jobs: Job | str) -> Command[int]:
    """FASTACK: return how many of the jobs the node held."""
    return _of_jobs(b"FASTACK", jobs)


@checked
def nack(
    *jobs: Job | str,
    delay: float | None = None,
    dead: Text | None = None,
    error: Text | None = None,
) -> Command[int]:
    """NACK: return how many jobs were requeued, immediately or after `delay` seconds. With `dead`,
    the reason, return how many became dead. Nodes keep the `error` with the job."""
    options = _words(NACK, {"delay": delay, "dead": dead, "error": error})
    command = _of_jobs(b"NACK", jobs, *options, is_repeatable=False)  # each counts
    return _with_tokens(command, jobs, *options)


@checked
def release(*jobs: Job | str, delay: float | None = None) -> Command[int]:
    """RELEASE: return how many jobs, which had not started, were requeued, immediately or after
    `delay` seconds. Without a delay an original node receives ENQUEUE, which counts as a
    delivery."""
    options = _words(RELEASE, {"delay": delay})
    if options:
        command = _of_jobs(b"RELEASE", jobs, *options, is_repeatable=False)  # each counts
        return _with_tokens(command, jobs, *options)
    enqueues, command = _of_jobs(b"ENQUEUE", jobs), _of_jobs(b"RELEASE", jobs)
    return attrs.evolve(
        _with_tokens(command, jobs), plain=enqueues.words, features=("release", "tokens")
    )


@checked
def redrive(*jobs: Job | str) -> Command[int]:
    """REDRIVE: return how many dead jobs were enqueued again."""
    return _of_jobs(b"REDRIVE", jobs, is_repeatable=False)  # it may be dead again


@checked
def redrive_queue(queue: Text, count: int | None = None) -> Command[int]:
    """REDRIVE of a queue: enqueue its dead jobs again, at most `count`, and return their number."""
    words = (b"REDRIVE", word(queue), *_words(COUNTED, {"count": count}))
    return Command(words, replies.number, is_repeatable=False)


@checked
def enqueue(*jobs: Job | str) -> Command[int]:
    """ENQUEUE: return how many jobs were enqueued."""
    return _of_jobs(b"ENQUEUE", jobs)


@checked
def enqueue_queue(queue: Text, count: int | None = None) -> Command[int]:
    """ENQUEUE QUEUE: enqueue jobs of the queue that wait for their RETRY, for example after a
    restart, at most `count`, and return their number."""
    words = (b"ENQUEUE", b"QUEUE", word(queue), *_words(COUNTED, {"count": count}))
    return Command(words, replies.number)


@checked
def dequeue(*jobs: Job | str) -> Command[int]:
    """DEQUEUE: return how many jobs were removed from their queue."""
    return _of_jobs(b"DEQUEUE", jobs)


@checked
def deljob(*jobs: Job | str) -> Command[int]:
    """DELJOB: return how many jobs the node has deleted."""
    return _of_jobs(b"DELJOB", jobs)


@checked
def working(job: Job | str) -> Command[int]:
    """WORKING: renew the lease, and return the number of seconds for which the job is not
    redelivered. If a node does not hold the job, others are asked. Raises `LeaseLostError` if
    another worker has received the job since."""
    plain = (b"WORKING", _id(job))
    return Command(
        (b"WORKING", _delivery(job)),
        replies.number,
        features=("tokens",),
        plain=plain,
        is_sought=True,
    )


@checked
def working_all(*jobs: Job | str) -> Command[list[int | RefusedError]]:
    """WORKING of several jobs of one node: return for each what `working` returns or raises. An
    original node accepts only one job."""
    command = _with_tokens(_of_jobs(b"WORKING", jobs), jobs)
    return Command(
        command.words,
        replies.worked,
        features=command.features,
        plain=command.plain,
        hears_failures=True,
    )


@checked
def waitjob(job: Job | str, *, timeout: float | None = None) -> Command[End | None]:
    """WAITJOB: return how the job ends; None if it has not ended within `timeout` seconds. None as
    `timeout` is no limit. If a node does not hold the job, others are asked. Raises
    `UnknownJobError` if none holds it: it may have ended."""
    waiting = (b"WAITJOB", _id(job), b"TIMEOUT", milliseconds(timeout))
    return Command(
        (*waiting[:2], b"NOHANG") if timeout == 0 else waiting,
        replies.maybe(replies.end),
        wait_s=span(timeout),
        features=("waitjob-nohang",) if timeout == 0 else (),
        plain=waiting,
        is_sought=True,
        for_wait=lambda wait_s: waitjob(job, timeout=wait_s),
    )


@checked
def waitresult(job: Job | str, *, timeout: float | None = None) -> Command[JobResult | None]:
    """WAITJOB WITHRESULT: as `waitjob`, with the result that `ackjob` has set, even after the job
    was deleted. Raises `UnsupportedError` if no node keeps results."""
    command = waitjob(job, timeout=timeout)
    return _of_results(
        Command(
            (*command.words, b"WITHRESULT"),
            replies.maybe(replies.job_result),
            wait_s=command.wait_s,
            is_sought=True,
            for_wait=lambda wait_s: waitresult(job, timeout=wait_s),
        )
    )


@checked
def show(job: Job | str, *, is_ended: bool = False) -> Command[JobDetails | None]:
    """SHOW: return the state of a job on the node; None if the node does not hold it. With
    `is_ended` it includes the node's record of the job's end (`JobDetails.ending`)."""
    plain = (b"SHOW", _id(job))
    return Command(
        (*plain, b"ENDED") if is_ended else plain,
        replies.maybe(replies.job_details),
        features=("ended-jobs",) if is_ended else (),
        plain=plain,
    )


@checked
def show_key(queue: Text, key: Text, *, is_local: bool = False) -> Command[KeyHolder | None]:
    """SHOW KEY: return the job with the key; None if no reachable node has one. With `is_local` the
    node does not ask other nodes, if it supports that."""
    plain = (b"SHOW", b"KEY", word(queue), word(key))
    return Command(
        (*plain, b"LOCAL") if is_local else plain,
        replies.maybe(replies.key_holder),
        wait_s=0.0 if is_local else _KEY_WAIT_S,
        features=("show-key-local",) if is_local else (),
        plain=plain,
    )


@checked
def cancel_key(queue: Text, key: Text) -> Command[int]:
    """CANCEL KEY: cancel the job with the key, and return 1; 0 if there is none."""
    words = (b"CANCEL", b"KEY", word(queue), word(key))
    return Command(words, replies.number, is_repeatable=False, wait_s=_KEY_WAIT_S)


@checked
def qstat(queue: Text) -> Command[QueueStats | None]:
    """QSTAT: return the figures of a queue on the node; None if the node has no such queue. A node
    without UNQUEUED also returns None if no job of the queue is enqueued."""
    plain, meaning = (b"QSTAT", word(queue)), replies.maybe(replies.queue_stats)
    return Command((*plain, b"UNQUEUED"), meaning, features=("qstat-unqueued",), plain=plain)


@checked
def qlen(queue: Text) -> Command[int]:
    """QLEN: return the number of jobs in the queue on the node."""
    return Command((b"QLEN", word(queue)), replies.number)


@checked
def qpeek(queue: Text, count: int = 1) -> Command[list[Job]]:
    """QPEEK: return the oldest enqueued jobs, or with a negative count the newest, without taking
    them."""
    return Command((b"QPEEK", word(queue), word(count)), replies.jobs)


@checked
def qscan(
    cursor: int = 0,
    *,
    count: int | None = None,
    minlen: int | None = None,
    maxlen: int | None = None,
    import_rate: int | None = None,
    has_unqueued: bool = False,
) -> Command[Scanned[str]]:
    """QSCAN: return names of queues on the node, and the next cursor. With `has_unqueued` it
    includes queues without enqueued jobs, if the node supports that."""
    options = {"count": count, "minlen": minlen, "maxlen": maxlen, "import_rate": import_rate}
    plain = (b"QSCAN", word(cursor), *_words(QSCAN, options))
    words = (*plain, *_words(QSCAN, {"has_unqueued": has_unqueued}))
    return Command(words, replies.scanned(replies.text), features=("unqueued",), plain=plain)


@checked
def jscan(
    cursor: int = 0,
    *,
    count: int | None = None,
    queue: Text | None = None,
    states: Sequence[str] = (),
    key: Text | None = None,
    error: Text | None = None,
    body: Text | None = None,
    older: int | None = None,
    younger: int | None = None,
    is_full: bool = False,
) -> Command[Scanned[JobDetails]]:
    """JSCAN: return jobs on the node, with the fields of `show`, and the next cursor. A job must
    match all filters: queue, one of the states, key, class of the last error, text in the body, age
    in seconds. With `is_full` active jobs have their `phase`. Jobs that have ended are included
    only if `states` contains "ended"; they come last, the latest first."""
    options = {
        "count": count, "queue": queue, "states": states, "key": key, "error": error, "body": body,
        "older": older, "younger": younger, "reply": "full" if is_full else "all",
    }  # fmt: skip
    asked = (b"JSCAN", word(cursor), *_words(JSCAN, options))
    return Command(asked, replies.scanned(replies.job_details))


@checked
def pause(queue: Text, *options: str) -> Command[str]:
    """PAUSE with `in`, `out`, `all`, `none`, `state` or `bcast`: return the resulting state."""
    return Command((b"PAUSE", word(queue), *map(word, options)), replies.text)


@checked
def limit_queue(
    queue: Text,
    *,
    concurrency: int | None = None,
    rate: int | None = None,
    per: float | None = None,
    burst: int | None = None,
    is_loose: bool = False,
    group_concurrency: int | None = None,
    group_rate: int | None = None,
    group_per: float | None = None,
    group_burst: int | None = None,
) -> Command[str]:
    """QUEUE LIMIT: limit the leases of a queue, and its deliveries in `per` seconds (default 1), in
    the whole cluster; the `group_` options limit each of its groups. Replaces earlier limits.
    Without limits it removes them."""
    limits = {
        "concurrency": concurrency, "rate": rate, "period": per, "burst": burst,
        "is_loose": is_loose, "group_concurrency": group_concurrency, "group_rate": group_rate,
        "group_period": group_per, "group_burst": group_burst,
    }  # fmt: skip
    words = map(word, commandoptions.words(LIMIT, limits))
    return Command((b"QUEUE", b"LIMIT", word(queue), *(tuple(words) or (b"NONE",))), replies.text)


@checked
def queue_info(queue: Text) -> Command[QueueInfo]:
    """QUEUE INFO: return the limits of the queue, and the share of them that the node may use."""
    return Command((b"QUEUE", b"INFO", word(queue)), replies.queue_info)


@checked
def purge(queue: Text, *, is_dead: bool = False, is_bcast: bool = False) -> Command[int]:
    """PURGE: acknowledge the enqueued jobs of the queue on the node, and return their number.
    `is_dead`: its dead jobs instead. `is_bcast`: on all nodes."""
    words = (b"PURGE", word(queue), *_words(PURGE, {"is_dead": is_dead, "is_bcast": is_bcast}))
    return Command(words, replies.number, is_repeatable=False)


@checked
def unblock(client_id: int) -> Command[int]:
    """CLIENT UNBLOCK: end the wait of that connection in GETJOB or WAITJOB, which then returns
    nothing. Returns 1, or 0 if the connection did not wait."""
    return Command((b"CLIENT", b"UNBLOCK", word(client_id)), replies.number)


@checked
def hello() -> Command[list[Reply]]:
    """HELLO: return the raw reply."""
    return Command((b"HELLO",), replies.items)


@checked
def ping() -> Command[str]:
    """PING: return PONG."""
    return Command((b"PING",), replies.text)


@checked
def time() -> Command[int]:
    """TIME: return the node's clock, in Unix microseconds."""
    return Command((b"TIME",), replies.micros)


@checked
def info(section: str = "all") -> Command[dict[str, str]]:
    """INFO: return the fields of a section by name."""
    return Command((b"INFO", section.encode()), replies.fields)


def _words(options: Table, values: Mapping[str, Any]) -> list[bytes]:
    return [word(each) for each in commandoptions.words(options, values)]


def _of_jobs(
    name: bytes, jobs: Sequence[Job | str], *options: bytes, is_repeatable: bool = True
) -> Command[int]:
    if not jobs:
        raise ValueError(f"{name.decode().lower()} needs at least one job")
    words = (name, *map(_id, jobs), *options)
    return Command(words, replies.number, is_repeatable=is_repeatable)


def _with_tokens(command: Command[int], jobs: Sequence[Job | str], *options: bytes) -> Command[int]:
    words = (command.words[0], *map(_delivery, jobs), *options)
    tokens = (_delivery(job).partition(b"@")[2].decode("ascii", "replace") for job in jobs)
    giver = next((token[:_NODE_DIGITS] for token in tokens if token), "")
    return attrs.evolve(
        command, words=words, plain=command.words, features=("tokens",), giver=giver
    )


def _id(job: Job | str) -> bytes:
    return job.id.encode() if isinstance(job, Job) else word(job.partition("@")[0])


def _delivery(job: Job | str) -> bytes:
    """The id, with the token of the delivery if there is one."""
    if isinstance(job, Job):
        return word(job.id if job.meta is None else f"{job.id}@{job.meta.token}")
    return word(job)
