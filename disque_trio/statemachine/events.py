"""Events of jobs in a node, for traces and checkers (docs/simulation.md)."""

import enum

import attrs

from disque_trio.statemachine.base import ClientId, JobId, NodeId


class Kind(enum.StrEnum):
    """The kind of an event."""

    HOLD = "hold"
    """A record of the job has been created."""
    DROP = "drop"
    """The record has been dropped."""
    QUEUE = "queue"
    UNQUEUE = "unqueue"
    SERVE = "serve"
    """It was delivered to a client."""
    GIVE = "give"
    """It was sent to another node that needs jobs."""
    ACKED = "acked"
    DEAD = "dead"
    REDRIVE = "redrive"
    """A dead job is alive again."""
    POSTPONE = "postpone"
    """A NACK or RELEASE delays its requeue."""
    UNTIE = "untie"
    """The connection to which its delivery was tied has ended."""


class Cause(enum.StrEnum):
    """The cause of an event, grouped by kind."""

    # hold
    ADD = "add"
    REPLJOB = "repljob"
    YOURJOBS = "yourjobs"
    DUMMY = "dummy"
    LOADED = "loaded"
    TRACED = "traced"
    """It was here before its trace began. Also a cause of queue, acked and dead."""
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
    """The tie or the lease of a held job has ended before the job began."""
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
    # dead: the cause of an enqueue that would exceed LIMIT, or
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
    # acked, drop
    SETACK = "setack"


@attrs.define
class Event:
    """One event of one job. `client` and `peer` name the client or node that took part, if any.

    `detail` is the job's record for a hold (`trace.hold`), the wait for a postpone, the state for
    dead and redrive (`trace.state`).
    """

    kind: Kind
    job: JobId
    queue: bytes
    cause: Cause
    client: ClientId = 0
    peer: NodeId = b""
    detail: str = ""
