"""Commands that take job ids (original 2.4 to 2.6)."""

from disque_trio.statemachine import acks, lifecycle, replication, requeue, waiters
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    PENDING,
    STATE_NAMES,
    SYNTAX_ERROR,
    CommandError,
    JobId,
    Reply,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.parse import Words, job_ids, timeout
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.hints import no_option
from disque_trio.statemachine.job import Job, check_id
from disque_trio.statemachine.state import NodeState


def ackjob(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """How many were known here and had not been acknowledged."""
    ids = args[1:]
    if not all(map(node.jobs.__contains__, ids)):
        # Names of jobs that are here are well formed.
        ids = job_ids(args)
    return acks.ack_all(node, ids)


def fastack(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """How many were known here; linked holders are told to drop their copies."""
    return sum(acks.fast_ack(node, job_id) for job_id in job_ids(args))


def deljob(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """How many were dropped here, and only here."""
    jobs = _known(node, job_ids(args))
    for job in jobs:
        replication.drop(node, job, Cause.CLIENT_DELJOB)
    return len(jobs)


def _known(node: NodeState, ids: list[JobId]) -> list[Job]:
    found = dict.fromkeys(job_id for job_id in ids if job_id in node.jobs)
    return [node.jobs[job_id] for job_id in found]


def enqueue(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """How many active jobs were queued (again)."""
    return _queue(node, args, Cause.ENQUEUE)


def nack(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """The same, counted as negative acknowledgements."""
    return _queue(node, args, Cause.NACK)


def _queue(node: NodeState, args: list[bytes], cause: Cause) -> int:
    ids = job_ids(args)
    found = [job for job in map(node.jobs.get, ids) if job is not None]
    return sum(job.state == ACTIVE and lifecycle.enqueue(node, job, cause) for job in found)


def dequeue(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """How many were taken out of their queues; their timers run on."""
    return sum(lifecycle.dequeue(node, job, Cause.DEQUEUE) for job in _known(node, job_ids(args)))


def working(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """Postpone the next delivery by a whole retry period, which is the reply in seconds."""
    job = node.jobs.get(check_id(args[1]))
    if job is None:
        raise CommandError(waiters.NO_JOB)
    if job.state == ACKED:
        raise CommandError(b"ACKED The job is already acknowledged, nobody has to work on it.")
    age = node.wall - job.ctime // 1_000_000
    left = job.expires - node.mono
    if age + left > 0 and age > (age + left) // 2:
        raise CommandError(
            b"TOOLATE Half of job TTL already elapsed, "
            b"you are no longer allowed to postpone the next delivery."
        )
    requeue.working(node, job)
    return job.retry // 1000


def waitjob(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """How the job ends: acked or expired; null if it has not ended in time."""
    job_id = check_id(args[1])
    wait, words = 0, Words(args[2:])
    has_timeout = False
    for word in words:
        if word.upper() != b"TIMEOUT":
            raise CommandError(SYNTAX_ERROR + b": " + no_option(word, b"WAITJOB", (b"TIMEOUT",)))
        if has_timeout:
            raise CommandError(SYNTAX_ERROR + b": TIMEOUT is given twice")
        wait, has_timeout = timeout(words.value(b"TIMEOUT"), b"TIMEOUT"), True
    job = node.jobs.get(job_id)
    if job is None:
        origin = b" It was added at the node whose ID begins with " + job_id[2:10]
        raise CommandError(waiters.NO_JOB + origin)
    if job.state == ACKED:
        return b"acked"
    waiters.block_for_end(node, client, job_id, node.mono + wait if wait else 0)
    return PENDING


def show(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """Everything about one job."""
    job = node.jobs.get(check_id(args[1]))
    return None if job is None else describe(node, job)


def describe(node: NodeState, job: Job) -> list[Reply]:
    """The thirty elements of SHOW. A dummy ack shows zeros and nulls (original, defect 6)."""
    left = max(job.expires - node.mono, 0)
    reply: list[Reply] = [b"id", job.id, b"queue", job.queue]
    reply += [b"state", STATE_NAMES[job.state], b"repl", job.replicas, b"ttl", -(-left // 1000)]
    reply += [b"ctime", job.ctime, b"delay", job.delay // 1000, b"retry", job.retry // 1000]
    reply += [b"nacks", job.nacks, b"additional-deliveries", job.deliveries]
    reply += [b"nodes-delivered", list(job.holders), b"nodes-confirmed", list(job.confirmed or ())]
    reply += [b"next-requeue-within", _within(node, job.requeue_at)]
    reply += [b"next-awake-within", _within(node, job.due), b"body", job.body]
    return reply


def _within(node: NodeState, when: int) -> int | None:
    return max(when - node.mono, 0) if when else None
