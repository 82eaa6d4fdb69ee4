"""What happens to jobs in a node, as events for traces and checkers (docs/simulation.md)."""

import enum

import attrs

from disque_trio.statemachine.base import ClientId, JobId, NodeId


class Kind(enum.StrEnum):
    """What happened to the job in this node."""

    HOLD = "hold"
    """A record of it has been created."""
    DROP = "drop"
    """The record is gone."""
    QUEUE = "queue"
    UNQUEUE = "unqueue"
    SERVE = "serve"
    """It was handed to a client."""
    GIVE = "give"
    """It was sent to another node that needs jobs."""
    ACKED = "acked"
    DEAD = "dead"
    REDRIVE = "redrive"
    """A dead job is alive again."""
    POSTPONE = "postpone"
    """A NACK or RELEASE lets it wait before it is queued again."""
    UNTIE = "untie"
    """The connection to which its delivery was tied has ended."""


class Cause(enum.StrEnum):
    """Why it happened."""

    # hold
    ADD = "add"
    REPLJOB = "repljob"
    YOURJOBS = "yourjobs"
    DUMMY = "dummy"
    LOADED = "loaded"
    TRACED = "traced"
    """It was here before its trace began; also of a queue, acked or dead."""
    # drop
    COLLECTED = "collected"
    DELJOB = "deljob"
    CLIENT_DELJOB = "client-deljob"
    FASTACK = "fastack"
    EXPIRED = "expired"
    MOVED = "moved"
    HANDED_OVER = "handed-over"
    ADD_FAILED = "add-failed"
    FLUSH = "flush"
    DISMISSED = "dummy-dismissed"
    EVICTED = "evicted"
    # queue
    FIRST = "first"
    DELAY_OVER = "delay-over"
    RETRY = "retry"
    UNTIED = "untied"
    UNBEGUN = "unbegun"
    """The tie or the lease of a job has ended that was held, and had not begun."""
    BACKED_OFF = "backed-off"
    NACK = "nack"
    RELEASE = "release"
    ENQUEUE = "enqueue"
    IMPORT = "import"
    ENQUEUE_MESSAGE = "enqueue-message"
    REDRIVEN = "redriven"
    FOLLOWED = "followed"
    # unqueue
    SERVED = "served"
    GIVEN = "given"
    YIELD = "yield"
    WORKING = "working"
    DEQUEUE = "dequeue"
    POSTPONED = "postponed"
    ACKED = "acked"
    DROPPED = "dropped"
    BURIED = "buried"
    # dead: the cause of a queueing that would exceed LIMIT, or
    NACK_DEAD = "nack-dead"
    # dead, redrive
    JOBSTATE = "jobstate"
    # acked
    ACKJOB = "ackjob"
    PURGE = "purge"
    CANCEL = "cancel"
    YIELDED = "yielded"
    REPLACED = "replaced"
    # untie
    DISCONNECTED = "disconnected"
    SETACK = "setack"


@attrs.define
class Event:
    """One event of one job. `client` and `peer` name the client or node that took part, if any.

    The `detail` of a hold has the job's record (`trace.hold`), that of a postpone the wait, that of
    dead and redrive the state (`trace.state`).
    """

    kind: Kind
    job: JobId
    queue: bytes
    cause: Cause
    client: ClientId = 0
    peer: NodeId = b""
    detail: str = ""
