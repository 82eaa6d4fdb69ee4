"""Commands that take job ids (original 2.4 to 2.6).

Sets `NodeState.begun` and `acker`.
"""

from collections.abc import Generator, Sequence
from typing import Final

from disque_trio.statemachine import (
    acks,
    counts,
    deadletters,
    enqueuing,
    journaling,
    lifecycle,
    longcommands,
    pressure,
    replication,
    requeue,
    results,
    tracked_deliveries,
    waiters,
)
from disque_trio.statemachine.base import (
    ACKED,
    ACTIVE,
    DEAD,
    JOB_ID_LENGTH,
    PENDING,
    STATE_NAMES,
    CommandError,
    Failure,
    JobId,
    Reply,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commandoptions import ACKJOB, COUNTED, KEEP_RESULT, WAITJOB
from disque_trio.statemachine.commands.parse import Words, job_ids, read_options, with_tokens
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job, check_id
from disque_trio.statemachine.postponing import is_backing_off, is_postponed, rest
from disque_trio.statemachine.state import NodeState

Named = tuple[JobId, bytes]
"""A job id, and the token of a delivery (empty if there is none)."""
BODY_AT: Final = 29
"""The index of the body in the result of `describe`."""
_ONE_ID: Final = 2
"""The index of the first option after one id."""


def ackjob(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """ACKJOB. The reply is the number of jobs that were known here and not acknowledged yet."""
    ids, jobs = args[1:], node.jobs
    if not (ids[0] in jobs if len(ids) == 1 else all(map(jobs.__contains__, ids))):
        # Otherwise the ids are well formed, because they are ids of jobs.
        at = _options_at(args)
        if at:
            return _ack_with_result(node, client, args, at)
        ids = job_ids(args)
    node.begun = args
    node.acker = client.name or client.address
    return longcommands.total(node, client, ids, acks.ack_all)


def _options_at(args: list[bytes]) -> int:
    """The index of the first option of ACKJOB; 0 if there is none."""
    for at, word in enumerate(args):
        if at > 1 and len(word) != JOB_ID_LENGTH:
            return at if word.upper() in ACKJOB else 0
    return 0


def _ack_with_result(node: NodeState, client: Client, args: list[bytes], at: int) -> Reply:
    options = read_options(args[at:], b"ACKJOB", ACKJOB)
    value = options.get("result")
    if value is None:
        raise CommandError(b"ERR KEEP is for results: it needs RESULT")
    if at > _ONE_ID:
        raise CommandError(b"ERR RESULT is for one job: ACKJOB names %d" % (at - 1))
    job_id, most = check_id(args[1]), node.config.result_max_bytes
    if len(value) > most:
        raise CommandError(
            b"ERR A result has at most %d bytes (result-max-bytes): this one has %d"
            % (most, len(value))
        )
    if pressure.level(node) == pressure.WANT:
        raise CommandError(pressure.refusal(node).text)
    node.begun = args
    node.acker = client.name or client.address
    return int(acks.ack_with_result(node, job_id, value, options.get("keep", KEEP_RESULT)))


def fastack(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """FASTACK. The reply is the number of jobs that were known here. Linked holders receive
    DELJOB."""
    ids = job_ids(args)
    node.begun = args
    node.acker = client.name or client.address
    return longcommands.total(node, client, ids, _fast_ack)


def _fast_ack(node: NodeState, ids: Sequence[JobId]) -> int:
    return sum([acks.fast_ack(node, job_id) for job_id in ids])


def deljob(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """DELJOB. The reply is the number of jobs that were dropped, with their results, at this node
    only."""
    ids = job_ids(args)
    node.begun = args
    node.acker = client.name or client.address
    return longcommands.total(node, client, ids, _delete)


def _delete(node: NodeState, ids: Sequence[JobId]) -> int:
    jobs = _known(node, ids)
    for job in jobs:
        replication.drop(node, job, Cause.CLIENT_DELJOB)
    for job_id in ids if node.results else ():
        results.delete(node, job_id)
    return len(jobs)


def _known(node: NodeState, ids: Sequence[JobId]) -> list[Job]:
    found = dict.fromkeys(job_id for job_id in ids if job_id in node.jobs)
    return [node.jobs[job_id] for job_id in found]


def enqueue(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """ENQUEUE id ..., or ENQUEUE QUEUE queue. The reply is the number of active jobs that were
    enqueued."""
    if len(args) > 1 and args[1].upper() == b"QUEUE":
        node.begun = args
        queue = Words(args[2:]).value(b"QUEUE")
        count = read_options(args[3:], b"ENQUEUE", COUNTED).get("count", 0)
        return enqueuing.begin(node, client, queue, count)
    ids = job_ids(args)
    node.begun = args
    return longcommands.total(node, client, ids, _enqueue)


def _enqueue(node: NodeState, ids: Sequence[JobId]) -> int:
    return sum([give_back(node, job, Cause.ENQUEUE) for job in _known(node, ids)])


def named(node: NodeState, words: Sequence[bytes]) -> Generator[None, None, list[Named]]:
    """Parse job ids with their tokens, in several steps. Raises CommandError for a malformed one,
    before any change."""
    found: list[Named] = []
    for number, some in enumerate(longcommands.parts(node, words)):
        if number:
            yield
        found += with_tokens(some)
    return found


def held(node: NodeState, deliveries: Sequence[Named], flags: int | None = None) -> list[Job]:
    """The jobs that are here and have one of these flags (None: any job), except those whose token
    is no longer valid."""
    found = [(node.jobs.get(job_id), token) for job_id, token in deliveries]
    return [
        job
        for job, token in found
        if job is not None
        and (flags is None or job.flags & flags)
        and not (token and tracked_deliveries.is_lost(node, job, token))
    ]


def end_deliveries(node: NodeState, deliveries: Sequence[Named]) -> None:
    """End the deliveries with these tokens: the workers have returned the jobs."""
    if node.tracked:
        for job_id, token in deliveries:
            tracked_deliveries.give_back(node, job_id, token)


def give_back(node: NodeState, job: Job, cause: Cause) -> bool:
    """Enqueue an active job. Returns False if it is not active, or may not be enqueued again."""
    waited = is_postponed(job)
    is_queued = job.state == ACTIVE and deadletters.queue_again(node, job, cause)
    if waited and is_queued:
        journaling.renew(node, job)
    return is_queued


def dequeue(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """DEQUEUE. The reply is the number of jobs removed from their queues. Their timers continue."""
    ids = job_ids(args)
    node.begun = args
    return longcommands.total(node, client, ids, _dequeue)


def _dequeue(node: NodeState, ids: Sequence[JobId]) -> int:
    return sum([lifecycle.dequeue(node, job, Cause.DEQUEUE) for job in _known(node, ids)])


def working(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """WORKING: postpone the next delivery by RETRY. The reply is RETRY in seconds; for several
    jobs, an array with a number or an error for each."""
    if len(args) == 2:
        [asked] = with_tokens(args[1:])
        node.begun = args
        return _work(node, client, *asked)
    return longcommands.run(node, client, _work_on_all(node, client, args))


def _work_on_all(node: NodeState, client: Client, args: list[bytes]) -> longcommands.Steps:
    asked = yield from named(node, args[1:])
    node.begun = args
    replies: list[Reply] = []
    for number, some in enumerate(longcommands.parts(node, asked)):
        if number:
            yield
        for job_id, token in some:
            try:
                replies.append(_work(node, client, job_id, token))
            except CommandError as error:
                replies.append(Failure(error.text))
    return replies


def _work(node: NodeState, client: Client, job_id: JobId, token: bytes) -> int:
    job = node.jobs.get(job_id)
    if job is None:
        raise CommandError(waiters.NO_JOB)
    if job.state == ACKED:
        raise CommandError(b"ACKED The job is already acknowledged, nobody has to work on it.")
    if job.state == DEAD:
        raise CommandError(
            b"DEAD The job is dead: it is not delivered until REDRIVE queues it again."
        )
    if token and tracked_deliveries.is_lost(node, job, token):
        raise CommandError(
            b"LOST The job was returned, or delivered to another worker, since: leave it alone."
        )
    left = job.expires - node.mono
    # REDRIVE restarts the TTL.
    life = job.dead_state.life or node.wall - job.ctime // 1_000_000 + left
    if life > 0 and life - left > life // 2:
        raise CommandError(
            b"TOOLATE Half of job TTL already elapsed, "
            b"you are no longer allowed to postpone the next delivery."
        )
    requeue.working(node, job, client)
    counts.postponed(node)
    if token:
        tracked_deliveries.adopt(node, job, token)
    return job.retry // 1000


def waitjob(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """WAITJOB. The reply is how the job ends: acked, dead or expired; or null after the timeout."""
    job_id = check_id(args[1])
    options = read_options(args[2:], b"WAITJOB", WAITJOB)
    job = node.jobs.get(job_id)
    with_result = "with_result" in options
    if (job is None and job_id in node.results) or (job is not None and job.state == ACKED):
        return waiters.end_reply(node, job_id, b"acked", with_result=with_result)
    if job is None:
        origin = b" It was added at the node whose ID begins with " + job_id[2:10]
        raise CommandError(waiters.NO_JOB + origin)
    if job.state == DEAD:
        return waiters.end_reply(node, job_id, b"dead", with_result=with_result)
    if "no_hang" in options:
        return None
    wait = options.get("wait", 0)
    until = node.mono + wait if wait else 0
    waiters.block_for_end(node, client, job_id, until, with_result=with_result)
    return PENDING


def show(node: NodeState, _client: Client, args: list[bytes]) -> Reply:
    """SHOW id: all fields of a job, or of its result if only that is kept; else null."""
    job_id = check_id(args[1])
    job = node.jobs.get(job_id)
    if job is not None:
        return describe(node, job)
    return left(node, job_id)


def describe(node: NodeState, job: Job) -> list[Reply]:
    """The thirty elements of SHOW, then extensions. A dummy ack shows zeros and nulls (original,
    defect 6)."""
    left = max(job.expires - node.mono, 0)
    reply: list[Reply] = [b"id", job.id, b"queue", job.queue]
    reply += [b"state", STATE_NAMES[job.state], b"repl", job.replicas, b"ttl", -(-left // 1000)]
    reply += [b"ctime", job.ctime, b"delay", job.delay_s, b"retry", job.retry // 1000]
    reply += [b"nacks", job.nacks, b"additional-deliveries", job.deliveries]
    reply += [b"nodes-delivered", list(job.holders), b"nodes-confirmed", list(job.confirmed or ())]
    reply += [b"next-requeue-within", _within(node, job.requeue_at)]
    reply += [b"next-awake-within", _within(node, job.due), b"body", job.body]
    if is_backing_off(job):
        reply += [b"backing-off", rest(node, job)]
    if tracked_deliveries.is_held(node, job):
        reply += [b"held", 1]
    if job.extensions is not None:
        for name, value in job.extensions.fields:
            reply += [name, value]
    return reply + result_of(node, job.id) if job.state == ACKED else reply


def left(node: NodeState, job_id: JobId) -> Reply:
    """SHOW for a job that is not here: if its result is kept, the fields of a dummy ack with the
    result; else null."""
    kept = node.results.get(job_id)
    if kept is None:
        return None
    nothing = Job(
        id=kept.id, queue=kept.queue or None, body=None, replicas=0, made=0, number=0,
        expires=node.mono, delay=0, retry=0, holders=(), state=ACKED,
    )  # fmt: skip
    return describe(node, nothing)


def result_of(node: NodeState, job_id: JobId) -> list[Reply]:
    """The elements of SHOW for the kept result of a job; empty if there is none."""
    kept = node.results.get(job_id)
    if kept is None:
        return []
    left = max(kept.until - node.mono, 0)
    return [b"result", kept.value, b"result-at", kept.at, b"result-kept-within", left]


def _within(node: NodeState, when: int) -> int | None:
    return max(when - node.mono, 0) if when else None
