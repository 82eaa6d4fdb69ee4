"""What the clients return: jobs, queues, and the end of a job. Times are in seconds."""

from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

import attrs

from disque_trio.statemachine.base import Reply

Item = TypeVar("Item")
End = Literal["acked", "dead", "expired"]
"""How a job ended (WAITJOB)."""


@attrs.frozen
class Meta:
    """What GETJOB WITHMETA tells of a delivery, as it was when the node sent it."""

    attempt: int
    """The number of the delivery: nacks, additional deliveries, and one."""
    priority: int
    age: float
    """Since the job was added, by the clocks of two nodes."""
    lease: float
    """What is left of the lease until another holder may announce that it queues the job; 0 with
    RETRY 0, which has none."""
    ttl: float
    """What is left of the job's life."""
    token: str
    """Names the delivery. WORKING, NACK and RELEASE of a `Job` send it."""
    key: str | None = None
    """UNIQUE, if the job has a key."""
    snoozes: int = 0
    """How often RELEASE with a delay has let it wait."""
    unbegun: bool = False
    """A worker held it when its connection or lease ended. `begin` it before you run it, because it
    may have ended that worker."""


@attrs.frozen
class Job:
    """A job that was delivered."""

    id: str
    queue: str
    """A name that is not UTF-8 has surrogates for its other bytes, as file names have."""
    body: bytes
    nacks: int = 0
    """How often it was given back."""
    additional_deliveries: int = 0
    """How often it was delivered before without being given back: its workers may have died."""
    meta: Meta | None = None
    """With `with_meta`, unless the node is an original one, which has none."""


@attrs.frozen(kw_only=True)
class QueueStats:
    """QSTAT: the figures of a queue on one node. An original node lacks those with None."""

    name: str
    length: int
    age: int
    """Since the queue was created on the node."""
    idle: int
    """Since a job was last queued or taken."""
    blocked: int
    """Clients that wait for its jobs."""
    import_from: tuple[str, ...]
    """Ids of the nodes that gave jobs lately."""
    import_rate: int
    """Jobs that come from them, per second."""
    jobs_in: int
    jobs_out: int
    pause: str
    """`none`, `in`, `out` or `all`."""
    delayed: int | None = None
    leased: int | None = None
    dead: int | None = None
    next_age: float | None = None
    """Since the job that is delivered next was added; 0 without jobs."""
    deliveries: int | None = None
    acks: int | None = None
    unqueued: int | None = None
    """Jobs that the node holds and has not queued: delayed, leased and restored ones, and those
    that other nodes have queued or delivered."""
    restored: int | None = None
    """Jobs that wait for the end of their RETRY after a restart of the node."""
    restored_due: float | None = None
    """Until the first of those is queued; None without any."""
    delayed_due: float | None = None
    """Until the first of the delayed jobs is queued; None without any."""


@attrs.frozen(kw_only=True)
class JobDetails:
    """SHOW: what one node knows of a job."""

    id: str
    queue: str | None
    """None, as the body, for an acknowledgement whose job the node never held."""
    body: bytes | None
    state: str
    """`wait-repl`, `active`, `queued`, `acked` or `dead`."""
    repl: int
    """How many copies were asked for."""
    ttl: int
    ctime: int
    """Creation: Unix milliseconds times 1,000,000, and a counter; orders the queues."""
    delay: int
    retry: int
    nacks: int
    additional_deliveries: int
    nodes_delivered: tuple[str, ...]
    """Ids of nodes that may hold a copy."""
    nodes_confirmed: tuple[str, ...]
    next_requeue_within: float | None
    """Until the node queues it; None is never."""
    next_awake_within: float | None
    backing_off: float | None = None
    """What is left of its wait after a NACK or RELEASE."""
    more: Mapping[str, Reply] = attrs.field(factory=dict, hash=False)
    """Its options beyond the original's, by their names in SHOW: `priority`, `key`, `keep`,
    `limit`, `redriven`, `reason`, `backoff`, `max-backoff`, `follows`, and `snoozes`. Times are in
    milliseconds, text is bytes."""


@attrs.frozen(kw_only=True)
class KeyHolder:
    """SHOW KEY: the job that has a key."""

    id: str
    state: str
    """`waiting`, `queued`, `with-worker`, `backing-off`, `dead` or `done-kept`."""
    nodes: tuple[str, ...]
    """Ids of the nodes that hold it, or keep its key."""
    queued_at: tuple[str, ...]
    """Ids of the nodes that have it queued: one, but after a cut."""


@attrs.frozen
class Scanned(Generic[Item]):
    """One reply of QSCAN or JSCAN."""

    cursor: int
    """What to ask with next, at the same node; 0 is the end."""
    items: list[Item]
