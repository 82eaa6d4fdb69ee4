"""The vocabulary of plans and scenarios: the words that are allowed, and their meanings."""

from typing import Final

ENGINES: Final = {
    "heap": "the pure machines on one event heap: the fastest",
    "trio": "whole nodes with their tasks, in virtual time",
    "tcp": "real processes on loopback, in real time",
}

WAYS: Final = {
    "ackjob": "ACKJOB",
    "fastack": "FASTACK",
    "nack": "NACK",
    "none": "nothing: the job is forgotten",
    "die": "the connection is dropped with the job in hand; the worker comes back",
    "elsewhere": "ACKJOB at another node",
    "fastack-elsewhere": "FASTACK at another node",
    "working": "WORKING, as much work again, then ACKJOB",
    "deljob": "DELJOB, which deletes this node's copy alone",
    "dequeue": "DEQUEUE, and nothing more",
}
"""What a consumer does with a job it has worked on (`plan.Consumer`)."""

DUPLICATE_CAUSES: Final = (
    "D0", "D1", "D2", "D3a", "D3b", "D3c", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "D11", "D12",
    "D13",
)  # fmt: skip
"""From docs/guarantees.md; DX, the unexplained, can never be expected."""

LINK_FAMILIES: Final = ("loss", "duplication", "reordering", "slow-tail", "bandwidth")
CLOCK_FAMILIES: Final = ("drift", "wall-offset")
BUILT_IN_FAMILIES: Final = (*LINK_FAMILIES, *CLOCK_FAMILIES)
"""Families that every scenario has."""

MESSAGES: Final = (
    "ping", "pong", "meet", "fail", "repljob", "yourjobs", "gotjob", "enqueue", "queued", "setack",
    "willqueue", "gotack", "deljob", "working", "needjobs", "pause", "waiting", "havejobs",
    "holders",
)  # fmt: skip
EVENTS: Final = (
    "hold", "drop", "queue", "unqueue", "serve", "give", "acked",
    "add.invoke", "add.ok", "add.refused", "add.unknown", "get.deliver", "ack.invoke", "ack.ok",
    "fastack.invoke", "fastack.ok", "nack.invoke", "nack.ok", "working.invoke", "working.ok",
    "crash", "start",
    *(f"send.{message}" for message in MESSAGES),
    *(f"recv.{message}" for message in MESSAGES),
)  # fmt: skip
"""The events upon which a fault may happen."""

LINK_FAULTS: Final = {
    "partition": "links are cut: nothing arrives any more",
    "clog": "links keep all packets back until they are released",
    "swizzle": "half of the nodes are clogged one by one, and released in another order",
    "drop": "a share of the messages is lost (`amount`, `message`)",
    "delay": "messages take longer by `amount`",
    "half-open": "connections end at one end without the other end's knowledge: what that sends is "
    "lost, without a reset; new connections work",
}
"""Faults of links; `shape` selects the links."""
NODE_FAULTS: Final = {
    "crash": "the process is killed or stopped, or power fails (`mode`); it starts after `hold`",
    "restart": "the same, and it starts again at once",
    "remove": "the process is killed for ever",
    "wipe": "the node loses its id and all data, and joins as a new one",
    "pause": "the process stops, and goes on after `hold`",
    "slow": "each batch of work takes `amount` longer",
    "disk-full": "there is no space left on its disk",
    "disk-error": "writes and syncs fail",
    "disk-stall": "writes and syncs hang",
    "disk-flip": "one bit of its journal changes, which the next start finds",
    "clock-step": "the wall clock jumps by `amount`",
    "clock-rate": "both clocks run faster by `amount`",
    "wall-freeze": "the wall clock stands still",
    "leave": "CLUSTER LEAVING yes, and no after `hold`",
    "join": "a new node comes, which the first one meets",
    "forget": "all other nodes forget the node; they meet it again after `hold`",
    "memory": "CONFIG SET maxmemory, so that `amount` of it is used already",
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
    "ring": "each node is linked to a majority, and no two to the same",
    "bridge": "two halves that share one node",
    "pair": "one link, in one direction",
}
"""The links that a fault affects."""
MODES: Final = ("kill", "power", "stop", "in", "out", "all")
