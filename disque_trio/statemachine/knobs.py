"""A node's constants of size and time, in one table: meaning, default and minimum of each.

Real nodes use the defaults. The simulator draws small values per seed, so that behaviour at a
limit, at the end of a pass or with a full table also occurs in small clusters (docs/simulation.md,
"Constants of nodes").
"""

from typing import Any, Final

import attrs

from disque_trio.statemachine.base import Millis


def knob(default: int, least: int, unit: str, meaning: str) -> Any:
    """A field of `Knobs`."""
    return attrs.field(default=default, metadata={"least": least, "unit": unit, "meaning": meaning})


@attrs.frozen(kw_only=True)
class Knobs:
    """The values of one process."""

    due_per_tick: int = knob(2_000, 1, "timers", "handled in one tick")
    empty_slots: int = knob(1024, 1, "slots", "of the timer wheel that are not swept")
    stale_entries: int = knob(64, 0, "entries", "of jobs that have left a queue's middle, unswept")
    tombstones: int = knob(32_768, 150, "ids", "of finished jobs in a generation of tombstones")
    adds_of_client: int = knob(128, 1, "ADDJOBs", "of one client that wait for copies")
    adds_of_all: int = knob(1000, 1, "ADDJOBs", "of all clients that wait for copies")
    add_bytes_of_client: int = knob(1 << 20, 64, "bytes", "of bodies in `adds_of_client`")
    add_bytes_of_all: int = knob(4 << 20, 64, "bytes", "of bodies in `adds_of_all`")
    widen_every: Millis = knob(50, 5, "ms", "until one more node is asked to keep a copy")
    watch_all: int = knob(10, 1, "nodes", "of a cluster in which each pings all others")
    watchers: int = knob(8, 1, "nodes", "that ping a node of a larger cluster all the time")
    jobs_per_request: int = knob(100, 1, "jobs", "that another node is asked for, or given")
    request_least: int = knob(5, 1, "jobs", "that another node is asked for at least")
    demands: int = knob(100_000, 1, "queues", "for which waiting clients of others are known")
    credit: Millis = knob(50, 1, "ms", "for which a node that asked may be sent more jobs")
    queues_in_want: int = knob(
        1024, 16, "queues", "up to which GETJOB creates one though memory is short"
    )
    announced_queues: int = knob(500, 1, "queues", "named in one announcement")
    purging_looks: int = knob(500, 1, "jobs", "in one pass of PURGE, REDRIVE and others")
    enqueuing_looks: int = knob(2000, 8, "jobs", "in one pass of ENQUEUE QUEUE")
    repair_looks: int = knob(1000, 1, "jobs", "in one pass of repair")
    resend_looks: int = knob(1000, 1, "jobs", "in one pass of sending to a node that returns")
    meeting_looks: int = knob(2000, 1, "keys", "in one pass after a partition")
    meetings: int = knob(100, 1, "keys", "that are compared with other nodes at a time")
    spill_ahead: int = knob(32, 0, "jobs", "at the front of a queue whose bodies stay in memory")
    ids_at_once: int = knob(512, 1, "jobs", "in one step of a command about many")
    groups_in_use: int = knob(1000, 100, "groups", "whose limits are kept at a time")
    groups_asked: int = knob(64, 1, "groups", "of a queue that await their leases or tokens")
    peeked_at_once: int = knob(256, 0, "jobs", "or queues in a reply that is made at once")
    steps_at_once: int = knob(1000, 1, "jobs", "or queues in one step of a longer reply")
    scan_steps: int = knob(20_000, 1, "jobs", "or queues that one call of a SCAN passes")
    client_turn: int = knob(128, 1, "requests", "of a client in one batch")
    turn_of_all: int = knob(2048, 1, "requests", "of all clients in one batch")
    least_turn: int = knob(8, 1, "requests", "of a client in one batch though that is full")
    reply_room: int = knob(1 << 20, 1, "bytes", "of replies to heavy readers in one batch")
    feed_room: int = knob(1 << 19, 1, "bytes", "of long replies that are made in one batch")
    piece_bytes: int = knob(1 << 16, 1, "bytes", "in a piece of a long reply")
    loaded_per_turn: int = knob(1000, 1, "jobs", "that are restored in one batch after a start")
    waiting_bytes: int = knob(
        64 << 20, 1, "bytes", "that wait for the journal while all are served"
    )
    unsynced_bytes: int = knob(256 << 20, 1, "bytes", "in the journal before a sync is forced")
    rewritten_jobs: int = knob(256, 1, "jobs", "in a portion of a rewritten journal")
    rewritten_bytes: int = knob(256 << 10, 1, "bytes", "in a portion of a rewritten journal")


DEFAULTS: Final = Knobs()


@attrs.frozen
class Knob:
    """One row of the table."""

    name: str
    default: int
    least: int
    unit: str
    meaning: str


KNOBS: Final = tuple(
    [
        Knob(field.name, field.default, **field.metadata)  # type: ignore[arg-type]
        for field in attrs.fields(Knobs)
    ]
)
