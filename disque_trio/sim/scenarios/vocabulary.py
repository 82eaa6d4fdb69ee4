"""The vocabulary of plans and scenarios: the valid words, and their meanings."""

from typing import Final

from disque_trio.statemachine import messages

ENGINES: Final = {
    "heap": "whole nodes on one event heap; the fastest",
    "trio": "whole nodes, each a task of its own, in virtual time",
    "tcp": "real processes on loopback, in real time",
}

WAYS: Final = {
    "ackjob": "ACKJOB",
    "together": "one ACKJOB of this job and all others in hand, which need no work then",
    "fastack": "FASTACK",
    "nack": "NACK",
    "nack-delay": "NACK with DELAY (`delay`)",
    "none": "nothing: the worker forgets the job",
    "die": "the worker drops its connection without an ack, and connects again",
    "result": "ACKJOB with RESULT, then WAITJOB WITHRESULT",
    "elsewhere": "ACKJOB at another node",
    "result-elsewhere": "ACKJOB with RESULT at another node, then WAITJOB WITHRESULT here",
    "fastack-elsewhere": "FASTACK at another node",
    "nack-elsewhere": "NACK at another node",
    "working-elsewhere": "WORKING at another node, the same work once more, then ACKJOB",
    "working": "WORKING, the same work once more, then ACKJOB",
    "deljob": "DELJOB, which deletes only this node's copy",
    "dequeue": "DEQUEUE, without an ack",
    "release": "RELEASE",
    "release-delay": "RELEASE with DELAY (`delay`)",
    "bury": "NACK with DEAD",
    "stall": "the process of the worker stops for `stall`, then ACKJOB",
}
"""The ways in which a consumer can end a job after its work (`plan.Consumer`)."""
DELAYING: Final = ("nack-delay", "release-delay")
"""The ways that delay the job."""
ENGINE_WAYS: Final = (
    "ackjob", "nack", "nack-delay", "none", "die", "release", "release-delay", "bury", "stall",
)  # fmt: skip
"""The ways of an engine of the worker library. `die` kills its process; `none` is a handler that
does not end by itself."""

ORDERS: Final = {
    "purge": "PURGE, at times with BCAST",
    "unblock": "CLIENT UNBLOCK of some connection",
    "wait": "WAITJOB for some job",
    "cancel": "ACKJOB of a job that is queued",
    "redrive": "REDRIVE of a queue",
    "enqueue": "ENQUEUE QUEUE, at times with COUNT",
    "purge-dead": "PURGE of the dead jobs of a queue, at times with BCAST",
}
"""The commands of an administrator (`plan.Administrator`)."""

DUPLICATE_CAUSES: Final = (
    "D0", "D1", "D2", "D3a", "D3b", "D3c", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "D11", "D12",
    "D13",
)  # fmt: skip
"""The causes in docs/guarantees.md; DX, the unexplained one, can never be expected."""

LINK_FAMILIES: Final = ("loss", "duplication", "reordering", "slow-tail", "bandwidth")
CLOCK_FAMILIES: Final = ("drift", "wall-offset")
BUILT_IN_FAMILIES: Final = (*LINK_FAMILIES, *CLOCK_FAMILIES)
"""Families that every scenario has."""

MESSAGES: Final = messages.MESSAGES
EVENTS: Final = (
    "hold", "drop", "queue", "unqueue", "serve", "give", "acked", "dead", "redrive", "untie",
    "postpone",
    "add.invoke", "add.ok", "add.refused", "add.unknown", "get.deliver", "ack.invoke", "ack.ok",
    "fastack.invoke", "fastack.ok", "nack.invoke", "nack.ok", "working.invoke", "working.ok",
    "crash", "start",
    *(f"send.{message}" for message in MESSAGES),
    *(f"recv.{message}" for message in MESSAGES),
)  # fmt: skip
"""The events that may trigger a fault."""

SHAPES: Final = {
    "halves": "two sides; the smaller has half of the nodes, rounded down",
    "isolate": "each victim is alone",
    "random": "two to four groups of any size",
    "all": "each node is alone",
    "one-way": "the victims receive nothing from the others, or the others nothing from them",
    "ring": "each node is linked to a majority, and no two nodes to the same one",
    "bridge": "two halves that share one node",
    "pair": "one link, in one direction",
}
"""The shapes that select the links of a fault."""
