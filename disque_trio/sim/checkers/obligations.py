"""Obligations of a plan: options of jobs, periods and bounds (docs/guarantees.md, "Terms").

All are in microseconds of true time. Each favours the node: the fastest clock measures a period
before whose end nothing may happen, and the slowest clock one by whose end something must have
happened.
"""

from typing import Any, Final

import attrs

from disque_trio.sim.scenarios.plan import Micros, Plan
from disque_trio.statemachine.base import CAPABILITIES
from disque_trio.statemachine.joboptions import CARRIED, MAX_BACKOFF, OPTIONS
from disque_trio.statemachine.values import SIZE

SECOND: Final[Micros] = 1_000_000
MILLI: Final[Micros] = 1_000

DESYNC: Final[Micros] = 250 * MILLI
"""Requeue times are spread by up to this much in either direction."""
GRAIN: Final[Micros] = 10 * MILLI
"""Timers are up to eight milliseconds late, and clocks are read in whole milliseconds."""
DISCOVERY: Final[Micros] = 35 * SECOND
"""The longest pause between two broadcasts of NEEDJOBS, and the time for which a node that has
imported jobs sends none."""
GOSSIP_ROUND: Final[Micros] = 1 * SECOND
"""The interval at which every node pings another one."""
RECONNECT_STEPS: Final = 6
GC_WAIT: Final[Micros] = 180 * SECOND
"""The longest pause between two attempts to collect an acknowledged job."""
BREAKS_AFTER: Final[Micros] = 16 * SECOND
"""How long a connection or a dial may take to detect a cut."""
TAKE_OVER: Final[Micros] = 15 * SECOND
"""How long a holder leaves the repair of copies to the previous holder in the order."""
REPAIR_PASS: Final[Micros] = 40 * SECOND
"""The longest time from one pass over all jobs to the end of the next."""
TRANSFER: Final[Micros] = 400 * MILLI
"""The longest time for each job to move to the consumers' node: five per request."""

WRITE: Final[Micros] = 200
"""The time of a write, and rounding."""
DEFAULT_TTL_S: Final = 86_400
MAX_DEFAULT_RETRY_S: Final = 300


@attrs.define
class Options:
    """The options of an ADDJOB, from the row of its invocation, with defaults filled in."""

    replicate: int
    """The default of a node that knows the whole cluster."""
    sync: int
    """The minimum number of copies at the reply to ADDJOB."""
    retry: Micros
    ttl: Micros
    delay: Micros = 0
    timeout: Micros = 0
    """0 is never."""
    is_async: bool = False
    maxlen: int | None = None
    priority: int = 0
    group: int | None = None
    """The CRC-32 of its name."""
    limit: int = 0
    unique: int | None = None
    """The CRC-32 of its key."""
    keep: Micros = 0
    if_exists: str = ""
    backoff: Micros = 0
    max_backoff: Micros = 0
    body: str | None = None
    """None if the trace has none."""
    is_default: bool = False
    """The ADDJOB had no REPLICATE."""
    has_ours: bool = False
    """The ADDJOB has an option that the original lacks."""


_OURS: Final = [each.text.lower() for each in OPTIONS if each.is_ours and not each.needs]
"""Options that allow a long RETRY."""


def read_options(detail: str, nodes: int, *, replicate: int = 3, sync: int = 0) -> Options:
    """Return the options of an ``add.invoke`` row: ``timeout=100 replicate=3 … async body=…``.

    A live node writes them as its client did: ``100 REPLICATE 3 … ASYNC``. `replicate` and `sync`
    are the nodes' `default-replicate` and `default-sync`.
    """
    words, has_body, body = detail.partition("body=")
    values = _pairs(words.lower().split())
    ttl = _whole(values, "ttl") or DEFAULT_TTL_S
    retry = _whole(values, "retry")
    if retry is None:
        retry = min(max(ttl // 10, 1), MAX_DEFAULT_RETRY_S)
    is_auto = values.get("sync") == "auto"
    asked = None if is_auto else _whole(values, "sync")
    copies = _whole(values, "replicate") or max(min(replicate, nodes), asked or 1)
    by_default = copies // 2 + 1 if is_auto else copies
    return Options(
        replicate=copies,
        sync=min(asked or sync or by_default, copies),
        retry=retry * SECOND,
        ttl=ttl * SECOND,
        delay=_micros(values, "delay"),
        timeout=(_whole(values, "timeout") or 0) * MILLI,
        is_async="async" in values,
        maxlen=_whole(values, "maxlen"),
        if_exists=values.get("ifexists", ""),
        **_carried(values),
        body=body if has_body else None,
        is_default="replicate" not in values,
        has_ours=any(each in values for each in _OURS),
    )


def _carried(values: dict[str, str]) -> dict[str, Any]:
    """Return the options that every copy has, with their defaults."""
    found: dict[str, Any] = {}
    for option in CARRIED:
        name = option.text.lower()
        value = _micros(values, name) if option.is_time else _whole(values, name)
        found[option.name] = value or 0 if option.is_number else value
    if found["backoff"]:
        longest = max(found["backoff"], MAX_BACKOFF * MILLI)
        found["max_backoff"] = found["max_backoff"] or longest
    return found


def _pairs(words: list[str]) -> dict[str, str]:
    """Return names and values, in either form."""
    values: dict[str, str] = {}
    name = "timeout"
    for word in words:
        key, is_pair, value = word.partition("=")
        if is_pair:
            values[key] = value
        elif _is_number(word):
            values[name] = word
        elif word == "async":
            values[word] = ""
        elif word == "auto":
            values[name] = word
        else:
            name = word
    return values


def _is_number(word: str) -> bool:
    return word.lstrip("-").replace(".", "", 1).isdigit()


def _whole(values: dict[str, str], name: str) -> int | None:
    """Return a whole number; 0 for any other word."""
    value = values.get(name)
    if value is None:
        return None
    return int(value) if value.lstrip("-").isdigit() else 0


def _micros(values: dict[str, str], name: str) -> Micros:
    """Return microseconds, from seconds with or without decimals; 0 for none."""
    value = values.get(name, "")
    return round(float(value) * SECOND) if _is_number(value) else 0


def life_of(job_id: str) -> Micros:
    """Return the longest TTL that an id allows: its last field has the minutes, made odd or
    even."""
    return (_minutes(job_id) + 2) * 60 * SECOND


def dummy_life(job_id: str) -> Micros:
    """Return how long a dummy ack for this job is kept."""
    return _minutes(job_id) * 60 * SECOND


def is_at_least_once(job_id: str) -> bool:
    """Does the id allow several deliveries: is its field of minutes odd? Ids of tests without that
    field count as odd."""
    return bool(_minutes(job_id) & 1) if job_id.startswith("D-") else True


def _minutes(job_id: str) -> int:
    try:
        return int(job_id[-4:], 16)
    except ValueError:
        return DEFAULT_TTL_S // 60 | 1


@attrs.frozen(kw_only=True)
class Obligations:
    """Periods and bounds for the whole run."""

    nodes: int
    is_stream: bool
    rho: float
    """The greatest deviation of a clock's rate from true time."""
    latency: Micros
    """The longest transit of a message without faults."""
    has_tail: bool
    """Some messages are so slow that nodes may close links."""
    node_timeout: Micros
    has_lease: bool
    repair_after: Micros
    """How long until a failing holder counts as lost permanently; 0 is never."""
    has_limit: bool
    """Nodes may be short of memory (`maxmemory`)."""
    memory: int
    """`maxmemory` in bytes; 0 is no limit in the plan."""
    may_evict: bool
    """`maxmemory-policy` is `acks`."""
    has_disk: bool
    fsync: str
    """`appendfsync`."""
    write: Micros
    """How long a journal may take to write a new change: one write and sync in progress, and its
    own write."""
    sync: Micros
    """The longest sync of a disk."""
    default_replicate: int
    default_sync: int
    can_step: bool
    """Wall clocks jump, or stand still."""
    differs: bool
    """Wall clocks differ, from the start or because they jump."""
    has_original_file: bool
    """There are journals in the original's format, which has only the creator's time, and no
    extensions of jobs."""
    has_queues: bool
    """The journals record queues (`aof-queues`)."""
    grace: Micros
    """`tied-grace`."""
    dead_life: Micros
    """`dead-letter-ttl`."""
    has_tokens: bool
    """Workers use WITHMETA; if the plan has no workers, those outside it may."""
    has_held: bool = False
    """Workers may use HELD."""
    no_processor: Micros = 0
    """How long a process may wait for the processor; only in real time."""
    capabilities: int = CAPABILITIES
    """The capabilities of all versions of nodes."""

    @property
    def send_delay(self) -> Micros:
        """How long after a row a node with a journal may report the event of the row."""
        return self.write + self.sync if self.has_disk else 0

    @property
    def spread_delay(self) -> Micros:
        """How long after a row, without faults, another node may not know the event of the row."""
        return self.latency + self.send_delay

    @property
    def reconnect(self) -> Micros:
        """How long after a cut, or a start, links may still be down: dead ones must be detected
        first, and dials to unreachable addresses time out."""
        return self.longest(self.node_timeout) + BREAKS_AFTER

    @property
    def reconnect_late(self) -> Micros:
        """How much longer that may take in real time, where each step may wait for a processor:
        heartbeat, dial, accept, PING, PONG and the check of the result. One answer may be too late,
        so that the node closes the link and dials again."""
        if not self.no_processor:
            return 0
        return self.node_timeout + 2 * RECONNECT_STEPS * self.no_processor

    @property
    def calm_after(self) -> Micros:
        """How long after the last fault the cluster counts as calm."""
        return self.reconnect + 2 * self.latency

    @property
    def introduction(self) -> Micros:
        """How long after a start under a new name some nodes may not know it yet, without faults:
        one round of gossip to learn it, one to dial, three messages of handshake. If links lose
        messages at random, or nodes close links because of slow messages, the handshake may have to
        be repeated."""
        again = 0 if self.is_stream and not self.has_tail else self.node_timeout
        return self.longest(2 * GOSSIP_ROUND + again) + 3 * self.latency

    @property
    def collection(self) -> Micros:
        """G: how long copies of an acknowledged job may remain."""
        return self.longest(GC_WAIT + DESYNC) + self.reconnect + 4 * self.latency

    @property
    def repair(self) -> Micros:
        """How long after the heal copies of permanently lost nodes may be missing."""
        passes = 2 * REPAIR_PASS + (self.nodes - 1) * TAKE_OVER
        return self.longest(self.repair_after + passes) + self.reconnect + 4 * self.latency

    def shortest(self, period: Micros) -> Micros:
        """Return how long a period lasts at least, by the fastest clock."""
        return int(period / (1 + self.rho)) - 2 * MILLI

    def longest(self, period: Micros) -> Micros:
        """Return how long a period lasts at most, by the slowest clock."""
        return int(period / (1 - self.rho)) + GRAIN

    def lease(self, retry: Micros) -> Micros:
        """The earliest time after a delivery at which the job may be requeued."""
        return self.shortest(retry - DESYNC)

    def delivery(self, retry: Micros) -> Micros:
        """B without delay, polls and backlog: how long a delivery or redelivery may take."""
        return (
            self.longest(retry + DESYNC)
            + self.longest(DISCOVERY)
            + self.reconnect
            + 4 * self.latency
            + 100 * MILLI
        )


def obligations_of(plan: Plan, no_processor: Micros = 0) -> Obligations:
    """Return the obligations of a plan."""
    config = dict(plan.config)
    drifts = [abs(clock.drift_ppm) for clock in plan.clocks]
    drifts += [abs(fault.amount) for fault in plan.faults if fault.kind == "clock-rate"]
    steps = [fault for fault in plan.faults if fault.kind in {"clock-step", "wall-freeze"}]
    link = plan.link
    slow = [fault.amount * MILLI for fault in plan.faults if fault.kind == "slow"]
    has_disk = config.get("appendonly", "no") == "yes"
    longest = link.latency.slow[1] if link.latency.p_slow else link.latency.fast[1]
    return Obligations(
        nodes=plan.nodes,
        is_stream=link.model == "stream",
        rho=max([0, *drifts]) / 1_000_000,
        latency=longest + (SECOND if link.bytes_per_second else 0) + GRAIN,
        has_tail=bool(link.latency.p_slow or link.bytes_per_second),
        node_timeout=int(config.get("cluster-node-timeout", "15000")) * MILLI,
        has_lease=config.get("delivery-lease", "yes") == "yes",
        repair_after=int(config.get("replica-repair-after", "600")) * SECOND,
        has_limit=config.get("maxmemory", "0") != "0",
        memory=SIZE.read([config.get("maxmemory", "0")]),
        may_evict=config.get("maxmemory-policy", "acks") == "acks",
        has_disk=has_disk,
        fsync=config.get("appendfsync", "everysec"),
        write=plan.sync[1] + 2 * WRITE + max(slow, default=0) + no_processor,
        sync=plan.sync[1],
        default_replicate=int(config.get("default-replicate", "3")),
        default_sync=int(config.get("default-sync", "0")),
        can_step=bool(steps),
        differs=bool(steps) or any(clock.wall_offset_ms for clock in plan.clocks),
        has_original_file=has_disk and config.get("aof-format", "framed") == "disque",
        has_queues=has_disk
        and config.get("aof-queues", "yes") == "yes"
        and config.get("aof-format", "framed") != "disque",
        no_processor=no_processor,
        capabilities=plan.shared_capabilities,
        grace=int(config.get("tied-grace", "2000")) * MILLI,
        dead_life=int(config.get("dead-letter-ttl", "604800")) * SECOND,
        has_held=any(consumer.held or consumer.kind == "engine" for consumer in plan.consumers),
        has_tokens=not plan.consumers or any(consumer.meta for consumer in plan.consumers),
    )


def backlog(jobs: int, work: Micros, workers: int) -> Micros:
    """Return how long `jobs` take if all of them wait for the same workers."""
    return jobs * (work + TRANSFER) // max(workers, 1)
