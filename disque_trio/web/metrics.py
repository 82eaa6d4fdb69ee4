"""`/metrics`: the table of all metrics with their names, types, labels and descriptions, and their
text.

No label contains the name of a queue, job or client: there may be 100,000 of them, and a scrape
would take a minute (docs/metrics.md). Sums and text are computed in pieces of less than a
millisecond, between which the node's loop runs. A thread would hold the GIL while it renders the
text, and so block the loop. Concurrent scrapes share one text.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, TypeVar

import attrs
import trio
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from disque_trio.node import Node
from disque_trio.statemachine import counts, limiting, metrics, pressure
from disque_trio.statemachine.backlog import Backlog
from disque_trio.statemachine.base import FAIL, HANDSHAKE, PFAIL, Millis
from disque_trio.statemachine.chores import Vitals
from disque_trio.statemachine.client import WAITS
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.form import FORM
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.tally import Histogram
from disque_trio.web.health import is_ready

T = TypeVar("T")
COUNTED_AT_ONCE: Final = 500
"""The number of queues or clients that are processed in one turn of the loop: 0.25 milliseconds."""
BEHIND: Final[Millis] = 60_000
"""A queue is behind if its next job has waited for so long and no client waits for it."""


@attrs.define
class Sums:
    """Numbers of queues, jobs and clients."""

    queued: int = 0
    paused: int = 0
    behind: int = 0
    head_age: Millis = 0
    """The longest wait of any queue's next job."""
    leased: int = 0
    delayed: int = 0
    dead: int = 0
    restored: int = 0
    unqueued: int = 0
    waiting: int = 0
    """Clients that wait for jobs."""
    at_limits: int = 0
    """Queues for which clients wait only because of limits."""

    def add(self, node: NodeState, queue: Queue) -> None:
        """Add the figures of one queue."""
        self.paused += bool(queue.paused)
        if not queue.length or (oldest := queue.oldest()) is None:
            return
        self.at_limits += limiting.waits(node, queue)
        self.queued += queue.length
        age = counts.waited(node, oldest)
        self.head_age = max(self.head_age, age)
        self.behind += age >= BEHIND and not queue.waiting


async def sums_of(node: NodeState) -> Sums:
    """Sum up all queues, jobs and clients. A concurrent change may be included or not."""
    found = Sums()
    async for queue in _paced(node.queues.values()):
        found.add(node, queue)
    async for jobs in _paced(node.leased.values()):
        found.leased += jobs
    async for backlog in _paced(node.delayed.values()):
        found.delayed += backlog.number
    async for backlog in _paced(node.restored.values()):
        found.restored += backlog.number
    async for jobs in _paced(node.unqueued.values()):
        found.unqueued += jobs
    async for dead in _paced(node.dead.values()):
        found.dead += len(dead)
    async for client in _paced(node.clients.values()):
        found.waiting += client.blocked in WAITS
    return found


async def _paced(items: Collection[T]) -> AsyncIterator[T]:
    for number, item in enumerate(list(items)):
        if number % COUNTED_AT_ONCE == COUNTED_AT_ONCE - 1:
            await trio.lowlevel.checkpoint()
        yield item


Sample = tuple[tuple[str, ...], float]
"""The values of the labels, and the value of the sample."""
COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"
MOST_PEERS: Final = 100
"""The maximum number of other nodes in `disque_peer_up`."""


@attrs.frozen
class Facts:
    """The sources of the values."""

    node: NodeState
    vitals: Vitals
    sums: Sums
    is_ready: bool


Read = Callable[[Facts], float | Histogram | Iterable[Sample]]


@attrs.frozen
class Family:
    """One metric."""

    name: str
    """The name in Prometheus: that of a counter ends in _total, or in _seconds_total if its unit is
    seconds."""
    kind: str
    about: str
    read: Read
    labels: tuple[str, ...] = ()


def _counter(name: str, about: str, read: Read, *labels: str) -> Family:
    return Family(f"disque_{name}_total", COUNTER, about, read, labels)


def _gauge(name: str, about: str, read: Read, *labels: str) -> Family:
    return Family(f"disque_{name}", GAUGE, about, read, labels)


def _by(counts: Mapping[str, float] | Mapping[Cause, int]) -> list[Sample]:
    return [((str(label),), count) for label, count in counts.items()]


def _peers(facts: Facts) -> list[Sample]:
    states = dict.fromkeys(("up", "suspected", "failed", "meeting"), 0)
    for peer in _others(facts):
        states[_state_of(peer)] += 1
    return _by(states)


def _state_of(peer: Peer) -> str:
    if peer.flags & HANDSHAKE:
        return "meeting"
    if peer.flags & FAIL:
        return "failed"
    return "suspected" if peer.flags & PFAIL else "up"


def _unlimited_nodes(facts: Facts) -> float:
    return len(limiting.unlimited_nodes(facts.node)) if limiting.limited(facts.node) else 0.0


def _peer_up(facts: Facts) -> Iterator[Sample]:
    for peer in _others(facts)[:MOST_PEERS]:
        yield (peer.id[:8].decode(),), _state_of(peer) == "up"


def _others(facts: Facts) -> list[Peer]:
    cluster = facts.node.cluster
    return [peer for peer in cluster.nodes.values() if peer is not cluster.myself]


def _memory(facts: Facts) -> list[Sample]:
    node = facts.node
    return _by(
        {
            "used": pressure.used(node),
            "peak": node.memory.peak,
            "jobs": node.memory.held,
            "limit": node.config.maxmemory,
        }
    )


def _loaded(facts: Facts) -> float:
    journal = facts.vitals.journal
    if not journal.loading_since:
        return 1.0
    return journal.loaded_bytes / max(journal.loading_bytes, 1)


def _commands(facts: Facts) -> list[Sample]:
    return _by({name: stat.calls for name, stat in facts.node.stats.commands.items()})


def _command_seconds(facts: Facts) -> list[Sample]:
    return _by({name: stat.ns / 1e9 for name, stat in facts.node.stats.commands.items()})


def _errors(facts: Facts) -> list[Sample]:
    return _by({code.decode(): count for code, count in facts.node.tally.errors.items()})


def _last_refusals(facts: Facts) -> list[Sample]:
    refused = facts.node.tally.refused
    return _by({code.decode(): streak.last / 1000 for code, streak in refused.items()})


def _copies(facts: Facts) -> list[Sample]:
    tally, stats = facts.node.tally, facts.node.stats
    return _by(
        {
            "taken": tally.copies_taken,
            "confirmed": tally.copies_confirmed,
            "repaired": stats.copies_repaired,
        }
    )


def _jobs(facts: Facts) -> list[Sample]:
    sums = facts.sums
    return _by(
        {
            "queued": sums.queued,
            "leased": sums.leased,
            "delayed": sums.delayed,
            "restored": sums.restored,
            "elsewhere": max(sums.unqueued - sums.leased - sums.delayed - sums.restored, 0),
            "dead": sums.dead,
        }
    )


def _first_due(node: NodeState, backlogs: Mapping[bytes, Backlog]) -> float:
    due = [each.first_due() for each in backlogs.values()]
    return max(min(due) - node.mono, 0) / 1000 if due else 0.0


def _clients(facts: Facts) -> list[Sample]:
    waiting = min(facts.sums.waiting, len(facts.node.clients))
    return _by({"waiting": waiting, "other": len(facts.node.clients) - waiting})


def _bus(facts: Facts) -> list[Sample]:
    cluster = facts.node.cluster
    return _by({"in": cluster.messages_received, "out": cluster.messages_sent})


def _network(facts: Facts) -> list[Sample]:
    return _by({"in": metrics.received(facts.node), "out": metrics.sent(facts.node)})


def _build(facts: Facts) -> list[Sample]:
    known = facts.node.facts
    return [((known.version, known.runtime, FORM), 1)]


def _started(facts: Facts) -> float:
    node = facts.node
    return (node.wall - (node.mono - node.stats.started)) / 1000


FAMILIES: Final = (
    # Jobs.
    _counter("jobs_added", "Jobs that clients added at this node and that have their replicas.",
             lambda f: f.node.tally.all_added()),
    _counter("jobs_queued", "How often jobs entered a queue of this node, by reason.",
             lambda f: _by(f.node.tally.all_queued()), "cause"),
    _counter("jobs_delivered", "Deliveries of jobs to clients.",
             lambda f: f.node.tally.delivered),
    _counter("jobs_postponed", "WORKING: renewals of leases.",
             lambda f: f.node.tally.postponed),
    _counter("jobs_nacked", "NACK: jobs that workers returned as failed.",
             lambda f: f.node.tally.nacked),
    _counter("jobs_acked", "Acknowledgements received, by message: from clients (ackjob), from"
             " other nodes (setack) and so on.",
             lambda f: _by(f.node.tally.acked), "by"),
    _counter("jobs_given", "Jobs moved to other nodes. Jobs moved here count in"
             " disque_jobs_queued_total with the cause import.",
             lambda f: f.node.tally.transferred),
    _counter("jobs_dropped", "Replicas dropped without an acknowledgement, by reason.",
             lambda f: _by(f.node.tally.dropped), "cause"),
    _counter("copies", "Replicas: sent here by other nodes (taken); of jobs added here, confirmed"
             " by other nodes (confirmed); re-created after a loss (repaired).", _copies, "kind"),
    _gauge("jobs_held", "Replicas at this node, including those of acknowledged jobs.",
           lambda f: len(f.node.jobs)),
    _gauge("jobs", "Jobs at this node, by state. restored: wait for RETRY after a restart."
           " elsewhere: queued or delivered by another node, delivered with RETRY 0, or waiting"
           " for their key. Each holder counts its own replica.",
           _jobs, "state"),
    _gauge("restored_first_due_seconds",
           "Seconds until the first restored job is enqueued; 0 without any.",
           lambda f: _first_due(f.node, f.node.restored)),
    _gauge("delayed_first_due_seconds",
           "Seconds until the first delayed job is enqueued; 0 without any.",
           lambda f: _first_due(f.node, f.node.delayed)),
    _gauge("jobs_expired_while_down", "Jobs in the append-only file that had expired when the node"
           " read it.", lambda f: f.node.stats.expired_while_down),
    _gauge("jobs_under_replicated", "Jobs with fewer replicas than requested; one of their"
           " holders counts each.",
           lambda f: f.node.repair.reported),
    # Queues.
    _gauge("queues", "Queues of this node.", lambda f: len(f.node.queues)),
    _gauge("queues_paused", "Queues that are paused.", lambda f: f.sums.paused),
    _gauge("queues_behind", "Queues whose next job has waited for a minute, and for which no client"
           " waits.", lambda f: f.sums.behind),
    _gauge("queues_limited", "Queues of the whole cluster that have limits.",
           lambda f: len(limiting.limited(f.node))),
    _gauge("queues_at_limits", "Queues of this node for which clients wait only because of the"
           " limits.", lambda f: f.sums.at_limits),
    _gauge("peers_without_limits", "Other nodes that do not support limits, and ignore them; 0 if"
           " no queue has limits.", _unlimited_nodes),
    _gauge("queue_head_age_max_seconds", "The longest time that the next job of any queue has"
           " waited.", lambda f: f.sums.head_age / 1000),
    Family("disque_queue_wait_seconds", HISTOGRAM, "Time from when a job is first due to each of"
           " its deliveries; a sample of one delivery in 16. Compares the clock of the node that"
           " added the job with that of this node.", lambda f: f.node.tally.wait),
    Family("disque_replication_seconds", HISTOGRAM, "How long an ADDJOB waits for its replicas.",
           lambda f: f.node.tally.copying),
    # Commands and clients.
    _counter("command_calls", "Commands executed.", _commands, "command"),
    _counter("command_seconds", "Time spent executing commands.", _command_seconds, "command"),
    _counter("error_replies", "Error replies, by code (the first word).", _errors, "code"),
    _gauge("last_refusal_timestamp_seconds", "When the last request was refused with this code, in"
           " Unix seconds: NOREPL, OOM, MISCONF, DUPLICATEID, LOADING, LEAVING, PAUSED, MAXLEN.",
           _last_refusals, "code"),
    _gauge("clients", "Connected clients: waiting in GETJOB or WAITJOB, or other.", _clients,
           "state"),
    _counter("clients_connected", "Clients that have connected.",
             lambda f: f.node.stats.connections_received),
    _counter("clients_refused", "Connections that were refused or cut off.",
             lambda f: _by(f.node.stats.connections_rejected), "reason"),
    _counter("wrong_passwords", "AUTH and HELLO requests with a wrong password.",
             lambda f: f.node.stats.wrong_passwords),
    _counter("protocol_errors", "Clients that broke the protocol.",
             lambda f: f.node.stats.protocol_errors),
    _counter("client_bytes", "Bytes received from clients and sent to them.", _network,
             "direction"),
    # Cluster.
    _gauge("peers", "Other nodes, by the state that this one assigns.", _peers, "state"),
    _gauge("peer_up", "1 if the other node is reachable; for at most 100 nodes, by the first 8"
           " digits of their IDs.", _peer_up, "peer"),
    _counter("bus_messages", "Messages received from other nodes and sent to them.", _bus,
             "direction"),
    _counter("bus_frames_dropped", "Frames dropped because another node does not keep up.",
             lambda f: f.node.stats.frames_dropped),
    _counter("bus_frames_refused", "Frames from other nodes that were rejected.",
             lambda f: _by(f.node.stats.frames_refused), "reason"),
    _counter("bus_links_refused", "Links on which one side failed to authenticate.",
             lambda f: _by(f.node.stats.links_refused), "reason"),
    # Memory and disk.
    _gauge("memory_bytes", "Memory: in use (used), the highest use (peak), jobs and queues (jobs),"
           " maxmemory (limit).", _memory, "kind"),
    _gauge("memory_level", "0: enough memory. 1: the node leaves new jobs to other nodes. 2: it"
           " refuses new jobs.", lambda f: pressure.level(f.node)),
    _counter("evicted_jobs", "Records evicted for lack of memory: acknowledgements, and delivered"
             " jobs with RETRY 0.",
             lambda f: f.node.memory.evicted),
    _gauge("journal_enabled", "1 if there is an append-only file.",
           lambda f: f.vitals.journal.state != "off"),
    _gauge("journal_healthy", "1 if the last write to the append-only file succeeded and the file"
           " is still in its place.", lambda f: f.vitals.journal.last_write_ok
           and f.vitals.journal.file_status == "ok"),
    _gauge("journal_bytes", "Size of the append-only file.", lambda f: f.vitals.journal.size),
    _gauge("journal_unwritten_bytes", "Bytes of records that wait to be written to the append-only"
           " file.",
           lambda f: f.vitals.journal.unwritten),
    _counter("journal_delayed_syncs", "Writes to the append-only file that waited for a sync"
             " longer than two seconds.",
             lambda f: f.vitals.journal.delayed_syncs),
    _gauge("loading_ratio", "Loaded part of the append-only file, from 0 to 1.", _loaded),
    # The process.
    _gauge("ready", "1 if /readyz returns 200.", lambda f: f.is_ready),
    _gauge("build_info", "Version, Python and form. The value is always 1.",
           _build, "version", "python", "form"),
    Family("process_cpu_seconds_total", COUNTER, "Processor time of the process.",
           lambda f: f.vitals.cpu_user + f.vitals.cpu_system),
    Family("process_resident_memory_bytes", GAUGE, "Resident size of the process.",
           lambda f: f.vitals.rss_bytes),
    Family("process_start_time_seconds", GAUGE, "When the node started, in Unix seconds.",
           _started),
)  # fmt: skip


CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
FRESH_S: Final = 0.5
"""A text that is not older is used again, so that scrapes take a limited part of the time."""
PIECE: Final = 25
"""The number of samples that are rendered in one turn of the loop: 0.5 milliseconds."""
_HEAD: Final = 2
"""The number of header lines before the samples of a family."""

Values = list[tuple[Family, Histogram | list[Sample]]]


@attrs.define(eq=False)
class Exposition:
    """The metrics of one node."""

    node: Node
    _text: bytes = b""
    _made_at: float = -FRESH_S
    _lock: trio.Lock = attrs.Factory(trio.Lock)

    async def text(self) -> bytes:
        """Return all metrics, at most half a second old."""
        async with self._lock:
            if trio.current_time() - self._made_at >= FRESH_S:
                values = await read(self.node)
                pieces = []
                for piece in _pieces(values):
                    pieces.append(piece)
                    await trio.lowlevel.checkpoint()
                self._text = b"".join(pieces)
                self._made_at = trio.current_time()
        return self._text


async def read(node: Node) -> Values:
    """Return the values of all families, as of the end of the summation."""
    sums = await sums_of(node.state)
    facts = Facts(node.state, node.chores.process_vitals(), sums, is_ready(node))
    return [(family, _values(family, facts)) for family in FAMILIES]


def _values(family: Family, facts: Facts) -> Histogram | list[Sample]:
    found = family.read(facts)
    if isinstance(found, Histogram):
        return attrs.evolve(found, buckets=list(found.buckets))
    return list(found) if isinstance(found, Iterable) else [((), float(found))]


def text_of(values: Values) -> bytes:
    """Return the text for Prometheus."""
    return b"".join(_pieces(values))


def _pieces(values: Values) -> Iterator[bytes]:
    for family, found in values:
        if isinstance(found, Histogram):
            yield _spelled(family, found)
            continue
        yield _spelled(family, found[:PIECE])
        for start in range(PIECE, len(found), PIECE):
            text = _spelled(family, found[start : start + PIECE])
            yield b"".join(text.splitlines(keepends=True)[_HEAD:])


def _spelled(family: Family, found: Histogram | list[Sample]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Constant([(family, found)]))
    text: bytes = generate_latest(registry)
    return text


@attrs.define(eq=False)
class _Constant(Collector):
    """A collector of values that were read before."""

    values: Values

    def collect(self) -> Iterator[Metric]:
        """Yield each family."""
        for family, found in self.values:
            yield (
                _histogram(family, found) if isinstance(found, Histogram) else _plain(family, found)
            )


def _plain(family: Family, samples: list[Sample]) -> Metric:
    kind = CounterMetricFamily if family.kind == COUNTER else GaugeMetricFamily
    metric = kind(family.name, family.about, labels=family.labels)
    for labels, value in samples:
        metric.add_metric(labels, value)
    return metric


def _histogram(family: Family, found: Histogram) -> Metric:
    buckets: list[tuple[str, float]] = []
    total = 0
    for number, count in enumerate(found.buckets):
        total += count
        is_last = number == len(found.buckets) - 1
        buckets.append(("+Inf" if is_last else repr((1 << number) / 1000), total))
    return HistogramMetricFamily(family.name, family.about, buckets, found.sum / 1000)
