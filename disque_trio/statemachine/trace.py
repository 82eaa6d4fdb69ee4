"""Trace events of jobs. Owns `NodeState.trace` and `traces`; sets and clears TRACED in `Job.flags`.

A node with a trace file records the events of all jobs. Any node keeps rows of some jobs
(`jobtraces`). Traced jobs have the flag, so for others an event costs one check. Tracing does not
affect the code path.
"""

from collections.abc import Iterable, Sequence
from zlib import crc32

from disque_trio.statemachine.base import (
    ACKED,
    DEAD,
    FOREVER,
    QUEUED,
    TRACED,
    WAIT_REPL,
    ClientId,
    JobId,
    LinkId,
    Millis,
    NodeId,
)
from disque_trio.statemachine.events import Cause, Event, Kind
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.jobtraces import Entry, JobTrace, Reason
from disque_trio.statemachine.messages import JobMessage, JobsMessage, Many, Message, one_of
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.wording import names_in, short_name, wording

# The traced jobs.


def look_at(node: NodeState, job: Job) -> None:
    """Flag a new job if it is traced."""
    traces = node.traces
    if node.trace is not None:
        job.flags |= TRACED
    if traces.is_on and (traces.first[job.id[11]] or job.id in traces.jobs):
        _choose(node, job)


def _choose(node: NodeState, job: Job) -> None:
    traces = node.traces
    kept, why = traces.jobs.get(job.id), traces.choice(job.id, job.queue)
    if kept is None and why is None:
        return
    kept = traces.open(job.id, why or Reason.ASKED)
    if node.mono < kept.until:
        kept.begin(job.queue or b"")
        job.flags |= TRACED


def sample(node: NodeState) -> None:
    """Apply a new `trace-sample`, for jobs that arrive from now on."""
    node.traces.set_sample(node.config.trace_sample)


def ask(node: NodeState, job_id: JobId, seconds: int) -> bool:
    """TRACE JOB: trace a job for `seconds`; 0 ends its trace. Returns whether the job is here."""
    traces, job = node.traces, node.jobs.get(job_id)
    until = node.mono + seconds * 1000
    if not seconds:
        if job_id in traces.jobs:
            traces.jobs[job_id].end_at(until)
        if job is not None and node.trace is None:
            job.flags &= ~TRACED
        return job is not None
    is_new = job_id not in traces.jobs or node.mono >= traces.jobs[job_id].until
    kept = traces.open(job_id, Reason.ASKED)
    kept.end_at(until if is_new else max(until, kept.until))
    if job is None:
        traces.end(job_id)
    elif is_new:
        _join(node, job, kept, job.state)
    return job is not None


def trouble(node: NodeState, job: Job, state: int) -> None:
    """Begin to trace a job that was in `state` and is returned or requeued, unless many others are
    in trouble, too."""
    traces = node.traces
    if not traces.sample or _is_kept(node, job):
        return
    if traces.may_trouble(node.mono):
        kept = traces.open(job.id, Reason.TROUBLE)
        kept.end_at(FOREVER)
        _join(node, job, kept, state)


def _is_kept(node: NodeState, job: Job) -> bool:
    """Does the job have a trace of its own? With a trace file, every job has the flag."""
    if node.trace is None:
        return job.flags >= TRACED
    kept = node.traces.jobs.get(job.id)
    return kept is not None and node.mono < kept.until


def _join(node: NodeState, job: Job, kept: JobTrace, state: int) -> None:
    """Begin a trace during the job's life, with rows for its current state."""
    kept.begin(job.queue or b"")
    job.flags |= TRACED
    detail = "" if job.is_dummy else _state_of(node, job)
    cause = Cause.DUMMY if job.is_dummy else Cause.TRACED
    _keep(node, job, Event(Kind.HOLD, job.id, kept.queue, cause, detail=detail))
    kind = {QUEUED: Kind.QUEUE, ACKED: Kind.ACKED, DEAD: Kind.DEAD}.get(state)
    if kind is not None and not job.is_dummy:
        _keep(node, job, Event(kind, job.id, kept.queue, Cause.TRACED))


# Events.


def note(
    node: NodeState,
    kind: Kind,
    job: Job,
    cause: Cause,
    *,
    client: ClientId = 0,
    peer: NodeId = b"",
) -> None:
    """Record an event, if the job is traced."""
    if job.flags >= TRACED:
        _write(node, job, Event(kind, job.id, job.queue or b"", cause, client, peer))


def postpone(node: NodeState, job: Job, cause: Cause, wait: Millis) -> None:
    """Record that the job must not be enqueued for `wait` ms."""
    if job.flags >= TRACED:
        detail = f"wait={wait}" + (f" snoozes={job.snoozes}" if job.snoozes else "")
        _write(node, job, Event(Kind.POSTPONE, job.id, job.queue or b"", cause, detail=detail))


def hold(node: NodeState, job: Job, cause: Cause) -> None:
    """Record that the job is held, with its record as detail: the options of ADDJOB in
    milliseconds, the creation stamp, the body's CRC-32, the extensions; then the time until it
    expires and until it is enqueued (0 is never). For a dummy ack the detail is empty."""
    if job.flags >= TRACED:
        detail = "" if job.is_dummy else _state_of(node, job)
        _write(node, job, Event(Kind.HOLD, job.id, job.queue or b"", cause, detail=detail))
        if job.state == DEAD:
            state(node, job, cause)


def state(node: NodeState, job: Job, cause: Cause) -> None:
    """Record that the job is dead, or no longer dead: how often it was redriven, in how many
    milliseconds it expires, and whether its ADDJOB still waits for replicas."""
    if job.flags >= TRACED:
        known = job.dead_state
        kind = Kind.DEAD if known.is_dead else Kind.REDRIVE
        detail = f"redriven={known.epoch} left={job.expires - node.mono}"
        detail += " wait-repl" if job.state == WAIT_REPL else ""
        _write(node, job, Event(kind, job.id, job.queue or b"", cause, detail=detail))


def begin(node: NodeState, job: Job) -> None:
    """Flag a new job of this node if it is traced, and record that it is held."""
    look_at(node, job)
    hold(node, job, Cause.ADD)


def begun(node: NodeState, job: Job) -> None:
    """`begin`, and record the enqueue, for the fast path, which records nothing itself."""
    begin(node, job)
    note(node, Kind.QUEUE, job, Cause.FIRST)


def served(node: NodeState, jobs: Sequence[Job], client: ClientId) -> None:
    """Record the deliveries of the traced jobs among these."""
    for job in jobs:
        if job.flags >= TRACED:
            note(node, Kind.UNQUEUE, job, Cause.SERVED)
            note(node, Kind.SERVE, job, Cause.SERVED, client=client)


def _write(node: NodeState, job: Job, event: Event) -> None:
    if node.trace is not None:
        node.trace.append(event)
    _keep(node, job, event)


def _keep(node: NodeState, job: Job, event: Event) -> None:
    """Add a row to the job's own trace, unless that has ended or was dropped."""
    traces = node.traces
    kept = traces.jobs.get(job.id)
    if kept is None or node.mono >= kept.until:
        if node.trace is None:
            job.flags &= ~TRACED
        return
    client = node.clients.get(event.client)
    who = "" if client is None else client.address.decode("utf-8", "replace")
    peer = short_name(event.peer)
    _put(node, kept, event.kind.value, who, peer, event.cause.value, event.detail)
    if event.kind is Kind.DROP:
        traces.end(job.id)


def _put(
    node: NodeState, kept: JobTrace, kind: str, client: str, peer: str, cause: str, detail: str
) -> None:
    time = node.wall * 1000 + node.micros
    row = Entry(kept.last + 1, time, node.mono, kind, client, peer, cause, detail)
    node.traces.put(kept, row)


# Messages.


def received(node: NodeState, sender: NodeId, message: Message) -> None:
    """Add rows for a received message to the traces of its jobs."""
    _say(node, "recv", short_name(sender), message)


def sent(node: NodeState, messages: Iterable[tuple[Sequence[LinkId], Message]]) -> None:
    """Add rows for the messages of a batch, which are about to be sent."""
    for links, message in messages:
        if _ids_in(node, message):
            for link in links:
                to = node.cluster.links.get(link)
                peer = None if to is None else to.peer
                _say(node, "send", "" if peer is None else short_name(peer.id), message)


def _say(node: NodeState, kind: str, peer: str, message: Message) -> None:
    for job_id in _ids_in(node, message):
        kept = _trace_of(node, job_id)
        if kept is not None:
            one = one_of(message, job_id)
            part = wording(one, names_in(one))
            _put(node, kept, kind, "", peer, part.name, part.detail)


def _ids_in(node: NodeState, message: Message) -> list[JobId]:
    """The jobs in the message that may be traced."""
    traces = node.traces
    first, jobs = traces.first, traces.jobs
    if isinstance(message, JobMessage):
        job_id = message.id
        return [job_id] if first[job_id[11]] or job_id in jobs else []
    if isinstance(message, Many):
        return [id for id in message.ids if first[id[11]] or id in jobs]
    if isinstance(message, JobsMessage):
        return [each.id for each in message.copies if first[each.id[11]] or each.id in jobs]
    other: JobId = getattr(message, "id", b"")
    return [other] if other and (first[other[11]] or other in jobs) else []


def _trace_of(node: NodeState, job_id: JobId) -> JobTrace | None:
    """The job's trace, or None. A message about a sampled job that is not here begins a trace. A
    job of a traced queue must be here first, because the message lacks the queue."""
    traces = node.traces
    kept = traces.jobs.get(job_id)
    if kept is not None:
        return kept if node.mono < kept.until else None
    if traces.choice(job_id, None) is None or job_id in node.jobs:
        return None
    kept = traces.open(job_id, Reason.SAMPLED)
    traces.end(job_id)
    return kept


# Details of records.


def _state_of(node: NodeState, job: Job) -> str:
    body = job.body
    check = crc32(body) if isinstance(body, bytes) else ""
    due = max(job.requeue_at - node.mono, 1) if job.requeue_at else 0
    more = "" if job.extensions is None else _words(job.extensions)
    more += " dead=1" if job.state == DEAD else ""
    return (
        f"replicate={job.replicas} retry={job.retry} delay={job.delay} made={job.ctime} "
        f"body={check}{more} left={job.expires - node.mono} due={due}"
    )


def _words(extensions: Extensions) -> str:
    """Each extension with its number, or the CRC-32 of its bytes."""
    return "".join(
        [
            f" {name.decode()}={crc32(value) if isinstance(value, bytes) else value}"
            for name, value in extensions.fields
        ]
    )
