"""Trace events of jobs. Owns `NodeState.trace`.

On a node that is not traced, an event costs one look at a field.
"""

from zlib import crc32

from disque_trio.statemachine.base import DEAD, WAIT_REPL, ClientId, Millis, NodeId
from disque_trio.statemachine.events import Cause, Event, Kind
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.state import NodeState


def note(
    node: NodeState,
    kind: Kind,
    job: Job,
    cause: Cause,
    *,
    client: ClientId = 0,
    peer: NodeId = b"",
) -> None:
    """Write it down, if the node is traced."""
    if node.trace is not None:
        node.trace.append(Event(kind, job.id, job.queue or b"", cause, client, peer))


def postpone(node: NodeState, job: Job, cause: Cause, wait: Millis) -> None:
    """Note that the job is not to be queued for so long."""
    if node.trace is not None:
        event = Event(Kind.POSTPONE, job.id, job.queue or b"", cause, detail=f"wait={wait}")
        node.trace.append(event)


def hold(node: NodeState, job: Job, cause: Cause) -> None:
    """Note that the job is held, with its record as detail: the options of ADDJOB in milliseconds,
    the creation stamp, the body's CRC-32, the extensions; then the time until it expires and until
    it is queued (0 is never). For a dummy ack the detail is empty."""
    if node.trace is not None:
        detail = "" if job.is_dummy else _state_of(node, job)
        event = Event(Kind.HOLD, job.id, job.queue or b"", cause, detail=detail)
        node.trace.append(event)
        if job.state == DEAD:
            state(node, job, cause)


def state(node: NodeState, job: Job, cause: Cause) -> None:
    """Note that the job is dead from now on, or is not any more: how often it was redriven, in how
    many milliseconds it expires, and whether its ADDJOB still waits for copies."""
    if node.trace is not None:
        known = job.dead_state
        kind = Kind.DEAD if known.is_dead else Kind.REDRIVE
        detail = f"redriven={known.epoch} left={job.expires - node.mono}"
        detail += " wait-repl" if job.state == WAIT_REPL else ""
        node.trace.append(Event(kind, job.id, job.queue or b"", cause, detail=detail))


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
    """Each with its number, or the CRC-32 of its bytes."""
    return "".join(
        [
            f" {name.decode()}={crc32(value) if isinstance(value, bytes) else value}"
            for name, value in extensions.fields
        ]
    )
