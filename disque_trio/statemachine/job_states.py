"""The life of a job in one node: its states and all transitions. Read this first.

A job is in a node's table in every state but ABSENT. Each holder has its own state of the job:
while one has it queued, the others have it active. The table is complete: the tests observe every
change of a state and of the job table, and check that it is listed and that every transition
occurs. docs/design.md, "The life of a job", shows this table.
"""

from typing import Final

import attrs

from disque_trio.statemachine.base import ACKED, ACTIVE, DEAD, QUEUED, WAIT_REPL

ABSENT: Final = -1
"""The node has no record of the job."""

MEANINGS: Final = {
    WAIT_REPL: "added by an ADDJOB that waits for replicas at other nodes",
    ACTIVE: "not in the queue of this node: delayed, delivered, or queued by another holder",
    QUEUED: "in the queue of this node",
    ACKED: "acknowledged: it is never delivered again, and kept until all holders know this",
    DEAD: "kept, and not delivered before it is redriven",
}


@attrs.frozen
class Transition:
    """A transition from one state to another."""

    before: int
    after: int
    by: str
    """The function that makes the change."""
    events: str
    """The events that cause it."""


TRANSITIONS: Final = (
    Transition(ABSENT, WAIT_REPL, "lifecycle.register", "ADDJOB that waits for replicas"),
    Transition(
        ABSENT, WAIT_REPL, "lifecycle.begin", "ADDJOB that waits for no replica; active at once"
    ),
    Transition(
        ABSENT,
        QUEUED,
        "shortcuts.begin_queued",
        "ADDJOB of a job without other replicas, delay and key",
    ),
    Transition(
        ABSENT, ACTIVE, "lifecycle.register", "REPLJOB, YOURJOBS, or a record of the journal"
    ),
    Transition(
        ABSENT,
        ACKED,
        "lifecycle.register",
        "ACKJOB or SETACK of a job that is not here, or a record of the journal",
    ),
    Transition(
        ABSENT, DEAD, "lifecycle.register", "a replica of a dead job, or a record of the journal"
    ),
    Transition(WAIT_REPL, ACTIVE, "lifecycle.begin", "enough replicas are confirmed"),
    Transition(WAIT_REPL, ACKED, "lifecycle.end", "SETACK: a client of another holder was faster"),
    Transition(
        WAIT_REPL,
        DEAD,
        "deadletters._die",
        "enough replicas are confirmed, after a JOBSTATE",
    ),
    Transition(
        WAIT_REPL,
        ABSENT,
        "lifecycle.unregister",
        "too few replicas in time; other nodes hold all replicas; DELJOB",
    ),
    Transition(
        ACTIVE,
        QUEUED,
        "lifecycle.enqueue",
        "no delay, or its end; the end of RETRY, of a backoff or of a tie; NACK, RELEASE, ENQUEUE,"
        " a redrive; an import; the end of the earlier job with its key; the start after a stop",
    ),
    Transition(ACTIVE, ACKED, "lifecycle.end", "ACKJOB, SETACK, PURGE, or the end of its key"),
    Transition(ACTIVE, ACKED, "lifecycle.finish", "the same, if no other node has a replica"),
    Transition(ACTIVE, DEAD, "deadletters._die", "NACK DEAD, LIMIT is reached, or JOBSTATE"),
    Transition(
        ACTIVE,
        ABSENT,
        "lifecycle.unregister",
        "its TTL is over; FASTACK, DELJOB, FLUSHALL; it moved to another node; it was evicted",
    ),
    Transition(QUEUED, ACTIVE, "shortcuts.deliver", "GETJOB takes it"),
    Transition(QUEUED, ACTIVE, "lifecycle.fetch", "a waiting client or another node takes it"),
    Transition(
        QUEUED,
        ACTIVE,
        "lifecycle.dequeue",
        "another holder queues it (QUEUED), has delivered it (WORKING) or lets it wait"
        " (POSTPONED); DEQUEUE; before it is acked, dead or removed",
    ),
    Transition(ACKED, ABSENT, "lifecycle.unregister", "all holders know, its TTL is over, DELJOB"),
    Transition(DEAD, ACTIVE, "deadletters._wait", "a redrive, here or elsewhere"),
    Transition(DEAD, ACKED, "lifecycle.end", "ACKJOB, SETACK, PURGE, or the end of its key"),
    Transition(DEAD, ACKED, "lifecycle.finish", "the same, if no other node has a replica"),
    Transition(DEAD, ABSENT, "lifecycle.unregister", "`dead-letter-ttl` is over; DELJOB, FLUSHALL"),
)
