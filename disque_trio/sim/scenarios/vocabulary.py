"""The vocabulary of plans and scenarios: the words that are allowed, and their meanings."""

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
    "elsewhere": "ACKJOB at another node",
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
"""How a consumer can end a job after its work (`plan.Consumer`)."""
DELAYING: Final = ("nack-delay", "release-delay")
"""Those that let the job wait."""
ENGINE_WAYS: Final = (
    "ackjob", "nack", "nack-delay", "none", "die", "release", "release-delay", "bury", "stall",
)  # fmt: skip
"""Those of the engine of the worker library. `die` kills its process, `none` is a handler that does
not end by itself."""

ORDERS: Final = {
    "purge": "PURGE, at times with BCAST",
    "unblock": "CLIENT UNBLOCK of some connection",
    "wait": "WAITJOB for some job",
    "cancel": "ACKJOB of a job that is queued",
    "redrive": "REDRIVE of a queue",
    "enqueue": "ENQUEUE QUEUE, at times with COUNT",
    "purge-dead": "PURGE of the dead jobs of a queue, at times with BCAST",
}
"""What an administrator orders (`plan.Administrator`)."""

DUPLICATE_CAUSES: Final = (
    "D0", "D1", "D2", "D3a", "D3b", "D3c", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "D11", "D12",
    "D13",
)  # fmt: skip
"""From docs/guarantees.md; DX, the unexplained, can never be expected."""

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
"""The events upon which a fault may happen."""

LINK_FAULTS: Final = {
    "partition": "links are cut: no message arrives",
    "clog": "links hold all packets until they are released",
    "swizzle": "half of the nodes are clogged one by one, and released in another order",
    "drop": "a share of the messages is lost (`amount`, `message`)",
    "delay": "messages take longer by `amount`",
    "half-open": "connections are closed at one end, and the other end is not told: what it sends "
    "is lost, without a reset; new connections work",
}
"""Faults of links; `shape` selects the links."""
NODE_FAULTS: Final = {
    "crash": "the process is killed or stopped, or power fails (`mode`); it starts after `hold`",
    "restart": "the same, but it starts again at once",
    "remove": "the process is killed and never starts again",
    "wipe": "the node loses its id and all data, and joins as a new one",
    "pause": "the process is stopped, and continues after `hold`",
    "slow": "each batch of work takes `amount` longer",
    "disk-full": "its disk has no space left",
    "disk-error": "writes and syncs fail",
    "disk-stall": "writes and syncs hang",
    "disk-flip": "one bit of its journal changes; the next start finds it",
    "clock-step": "the wall clock jumps by `amount`",
    "clock-rate": "both clocks run faster by `amount`",
    "wall-freeze": "the wall clock stands still",
    "leave": "CLUSTER LEAVING yes; after `hold`, CLUSTER LEAVING no",
    "join": "a new node joins: the first node meets it",
    "forget": "all other nodes forget the node; they meet it again after `hold`",
    "memory": "CONFIG SET maxmemory to a value of which `amount` is already used; or, with `mode` "
    "resident-size, the process takes so much that no more may be used than with that value",
    "pause-queue": "PAUSE of `queue`, as `mode` says",
}
"""Faults of nodes; `nodes` and `victims` select the nodes."""
FAULTS: Final = (*LINK_FAULTS, *NODE_FAULTS)
"""All faults of scenarios. Plans have `cut` too, and clogs instead of a swizzle."""
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
"""The links that a fault affects."""
MODES_OF: Final = {
    "crash": ("kill", "power", "stop"),
    "restart": ("kill", "power", "stop"),
    "pause-queue": ("in", "out", "all", "bcast"),
    "memory": ("account", "resident-size"),
}
"""The values of `mode`, by kind of fault; other kinds have none."""
MODES: Final = tuple(dict.fromkeys(mode for modes in MODES_OF.values() for mode in modes))
