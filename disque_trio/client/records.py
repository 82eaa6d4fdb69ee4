"""Results of the clients: jobs, queues, and the ends of jobs. Times are in seconds."""

from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

import attrs

from disque_trio.statemachine.base import Reply

Item = TypeVar("Item")
End = Literal["acked", "dead", "expired"]
"""How a job ended (WAITJOB)."""


@attrs.frozen
class Meta:
    """The WITHMETA of a delivery (GETJOB), as of when the node sent it."""

    attempt: int
    """The number of the delivery: nacks + additional deliveries + 1."""
    priority: int
    age: float
    """Time since the job was added, by the clocks of two nodes."""
    lease: float
    """Remaining time until another holder may announce a requeue; 0 with RETRY 0, which has no
    lease."""
    ttl: float
    """The remaining time to live."""
    token: str
    """Identifies the delivery. WORKING, NACK and RELEASE of a `Job` send it."""
    key: str | None = None
    """UNIQUE, if the job has a key."""
    snoozes: int = 0
    """The number of RELEASEs with a delay."""
    unbegun: bool = False
    """True if a worker held the job when its connection or lease ended. `begin` it before you run
    it, because it may have killed that worker."""
    created: float | None = None
    """When the job was added, in Unix seconds, by the clock of the node that added it; None from a
    node of release 0.1."""
    group: str | None = None
    """GROUP, if the job has one."""


@attrs.frozen
class Job:
    """A job that was delivered."""

    id: str
    queue: str
    """The name; bytes that are not UTF-8 are surrogate escapes, as in file names."""
    body: bytes
    nacks: int = 0
    """The number of NACKs."""
    additional_deliveries: int = 0
    """The number of earlier deliveries without a NACK; their workers may have died."""
    meta: Meta | None = None
    """None without `with_meta`, and from an original node."""


@attrs.frozen(kw_only=True)
class QueueStats:
    """QSTAT: the figures of a queue on one node. Fields that an original node lacks are None."""

    name: str
    length: int
    age: int
    """Time since the queue was created on the node."""
    idle: int
    """Time since a job was last enqueued or taken."""
    blocked: int
    """The number of clients that wait for its jobs."""
    import_from: tuple[str, ...]
    """Ids of the nodes that gave jobs recently."""
    import_rate: int
    """Jobs per second from other nodes."""
    jobs_in: int
    jobs_out: int
    pause: str
    """`none`, `in`, `out` or `all`."""
    delayed: int | None = None
    leased: int | None = None
    dead: int | None = None
    next_age: float | None = None
    """Time since the next job to be delivered was first due: added, and its DELAY over, or
    redriven; 0 without jobs."""
    deliveries: int | None = None
    acks: int | None = None
    unqueued: int | None = None
    """Jobs that the node holds and has not enqueued: delayed, leased and restored ones, and those
    that other nodes have enqueued or delivered."""
    restored: int | None = None
    """Restored jobs, which wait for their RETRY after a restart of the node."""
    restored_due: float | None = None
    """Time until the first of those is enqueued; None without any."""
    delayed_due: float | None = None
    """Time until the first delayed job is enqueued; None without any."""
    concurrency: int | None = None
    """The limits of the queue, in the whole cluster; None, or 0, without any."""
    rate: int | None = None
    rate_per: float | None = None
    burst: int | None = None
    is_loose: bool = False
    """Does each side of a partition use the whole limits?"""
    group_concurrency: int | None = None
    """The limits of each group."""
    group_rate: int | None = None
    group_rate_per: float | None = None
    group_burst: int | None = None
    is_limited: bool = False
    """Do clients wait at the node only because of the limits?"""

    @property
    def limits(self) -> "QueueLimits | None":
        """The limits as one record; None without any."""
        rate, per = self.rate or 0, self.rate_per or 0.0
        of_group = self.group_rate or 0, self.group_rate_per or 0.0, self.group_burst or 0
        limits = QueueLimits(
            *(self.concurrency or 0, rate, per, self.burst or 0, self.is_loose),
            *(self.group_concurrency or 0, *of_group),
        )
        return limits if limits.is_set else None


@attrs.frozen
class QueueLimits:
    """The limits of a queue in the whole cluster; 0 is no limit."""

    concurrency: int = 0
    """The number of its jobs that may be leased at the same time."""
    rate: int = 0
    """The number of its jobs that may be delivered in `rate_per` seconds."""
    rate_per: float = 0.0
    burst: int = 0
    """The number that may be delivered at once after a pause."""
    is_loose: bool = False
    """Does each side of a partition use the whole limits, instead of its share?"""
    group_concurrency: int = 0
    """The same limits for each group."""
    group_rate: int = 0
    group_rate_per: float = 0.0
    group_burst: int = 0

    @property
    def is_set(self) -> bool:
        """Is there a limit?"""
        return bool(self.concurrency or self.rate or self.group_concurrency or self.group_rate)

    def __str__(self) -> str:
        """The limits as text, such as `20 leased, 100 per 1 s, burst 20, loose, each group 2
        leased`; or `none`."""
        parts = _limits(self.concurrency, self.rate, self.rate_per, self.burst)
        parts += ["loose"] if self.is_loose else []
        of_group = self.group_rate, self.group_rate_per, self.group_burst
        parts += [f"each group {each}" for each in _limits(self.group_concurrency, *of_group)]
        return ", ".join(parts) or "none"


def _limits(concurrency: int, rate: int, per: float, burst: int) -> list[str]:
    parts = [f"{concurrency:,} leased"] if concurrency else []
    parts += [f"{rate:,} per {per:g} s"] if rate else []
    return parts + ([f"burst {burst:,}"] if burst else [])


@attrs.frozen(kw_only=True)
class QueueInfo:
    """QUEUE INFO: the limits of a queue, and what the node may deliver."""

    name: str
    limits: QueueLimits | None
    """The limits; None without any, and then all fields below are empty."""
    set_at: float | None = None
    """When they were set or removed, in Unix seconds; None if they never were."""
    keeper: str = ""
    """The id of the node that this node regards as the keeper of the limits."""
    leased: int = 0
    """The number of current leases of jobs that the node has delivered."""
    may_deliver: int = 0
    """The number of jobs that the node may deliver now."""
    is_limited: bool = False
    """Do clients wait at the node only because of the limits?"""
    parts: int = 0
    """At the keeper: the number of nodes that leave their share of the limits to it."""
    unlimited_nodes: tuple[str, ...] = ()
    """Ids of the nodes that do not support limits, and deliver without them."""


@attrs.frozen(kw_only=True)
class JobDetails:
    """SHOW: the state of a job on one node."""

    id: str
    queue: str | None
    """None, like the body, for an acknowledgement of a job that the node never held."""
    body: bytes | None
    state: str
    """`wait-repl`, `active`, `queued`, `acked` or `dead`; or `ended`, with an `ending`: then most
    of the other fields are 0 or empty."""
    repl: int
    """REPLICATE."""
    ttl: int
    ctime: int
    """Creation: Unix milliseconds times 1,000,000, and a counter; orders the queues."""
    delay: int
    retry: int
    nacks: int
    additional_deliveries: int
    nodes_delivered: tuple[str, ...]
    """Ids of nodes that may hold a replica."""
    nodes_confirmed: tuple[str, ...]
    next_requeue_within: float | None
    """Time until the node enqueues it; None is never."""
    next_awake_within: float | None
    backing_off: float | None = None
    """The remaining wait after a NACK or RELEASE."""
    more: Mapping[str, Reply] = attrs.field(factory=dict, hash=False)
    """Its additional options, by their names in SHOW: `priority`, `key`, `keep`, `limit`,
    `redriven`, `reason`, `backoff`, `max-backoff`, `follows`, and `snoozes`; its `failed-at` and
    `error` (see the property); and for an acknowledged job with a result `result`, `result-at` and
    `result-kept-within`. Times are in milliseconds, text is bytes."""

    @property
    def error(self) -> "LastError | None":
        """The error of the last NACK with one; None if there was none, or the node keeps none."""
        error_text, at = self.more.get("error"), self.more.get("failed-at")
        if not isinstance(error_text, bytes) or not isinstance(at, int):
            return None
        head, place, trace = [*error_text.decode("utf-8", "replace").split("\n", 2), "", ""][:3]
        kind, _, message = head.partition(":")
        return LastError(kind, message.strip(), place, trace, at / 1000)

    @property
    def ending(self) -> "Ending | None":
        """How the job ended, if it has ended on the node."""
        outcome, at = self.more.get("outcome"), self.more.get("ended-at")
        if not isinstance(outcome, bytes) or not isinstance(at, int):
            return None
        by, start = self.more.get("by", b""), self.more.get("body-start", b"")
        return Ending(
            outcome.decode(errors="backslashreplace"),
            at / 1000,
            by.decode(errors="backslashreplace") if isinstance(by, bytes) else "",
            start if isinstance(start, bytes) else b"",
        )


@attrs.frozen
class Ending:
    """A node's record of the end of a job."""

    outcome: str
    """`acknowledged`, `expired`, `deleted`, `purged`, `cancelled`, `replaced` (by another job with
    its key), `dropped` (it was dead), or `evicted` (because of a lack of memory)."""
    at: float
    """The time of the end, in Unix seconds."""
    by: str
    """The name or the address of the client that acknowledged or deleted it on this node; empty if
    no client did."""
    body_start: bytes
    """The body, or the first 64 bytes of a longer one."""


@attrs.frozen
class LastError:
    """The error of a job's last NACK, parsed by the convention for the lines of NACK ERROR."""

    kind: str
    """The class of the error."""
    message: str
    place: str
    """Where it was raised, such as `load/tasks.py:22 in send`; empty if the worker did not report
    it."""
    traceback: str
    at: float
    """The time of the NACK in Unix seconds, by the clock of its node."""

    def __str__(self) -> str:
        text = f"{self.kind}: {self.message}" if self.message else self.kind
        return f"{text} ({self.place})" if self.place else text


@attrs.frozen
class JobResult:
    """WAITJOB WITHRESULT: how a job has ended, and the result that ACKJOB RESULT has set."""

    end: End
    result: bytes | None
    """The result; None if there is none, or the node does not keep it."""


@attrs.frozen(kw_only=True)
class KeyHolder:
    """SHOW KEY: the job with a key."""

    id: str
    state: str
    """`waiting`, `queued`, `with-worker`, `backing-off`, `dead` or `done-kept`."""
    nodes: tuple[str, ...]
    """Ids of the nodes that hold the job or keep its key."""
    queued_at: tuple[str, ...]
    """Ids of the nodes that have it enqueued: at most one, except after a partition."""


@attrs.frozen
class Scanned(Generic[Item]):
    """One reply of QSCAN or JSCAN."""

    cursor: int
    """The next cursor for the same node; 0 is the end."""
    items: list[Item]
