"""Counters that INFO and CLUSTER INFO show, and facts of the process that never change.

The counters are written by `machine`, `metrics`, `pipelines`, `recovery`, `repair`, `sessions`,
`timing` and `commands.server`, the rates by `metrics`.
"""

from collections import deque

import attrs

from disque_trio.statemachine.base import CAPABILITIES, Millis
from disque_trio.statemachine.knobs import DEFAULTS, Knobs


@attrs.define
class Traffic:
    """Bytes of client connections. The driver counts them; the machine only reads the counts."""

    received: int = 0
    sent: int = 0
    unread: int = 0
    """Memory of pending input: incomplete requests, and requests that wait."""
    unsent: int = 0
    """Output that the clients' sockets have not accepted yet; counted once per second."""
    kept: int = 0
    """Memory that is used only by unfinished replies, to clients that do not read."""
    slow_readers_cut_off: int = 0
    """Clients that were disconnected because they left too much output unread."""
    senders_cut_off: int = 0
    """Clients that were disconnected because they had too much pending input."""
    delayed: int = 0
    """Output that waits for the journal."""
    journal: int = 0
    """Records that must be written, or written again if a sync fails."""


@attrs.define
class Facts:
    """Facts of the process from the driver, for INFO and HELLO."""

    port: int = 7711
    pid: int = 0
    executable: str = ""
    config_file: str = ""
    os: str = ""
    arch_bits: int = 64
    multiplexing: str = ""
    """How the driver waits for sockets, such as epoll."""
    allocator: str = "pymalloc"
    process_bytes: int = 0
    """The process's own memory at the start, without jobs and clients."""
    memory_limit: int = 0
    """The memory that the system allows to this process, or its share among `workers`, in bytes; 0
    is unknown."""
    memory_limit_of: str = ""
    """The source of `memory_limit`: the machine, a container or ulimit."""
    runtime: str = ""
    """The Python implementation and its version."""
    run_id: str = "0" * 40
    incarnation: int = 0
    """The number that distinguishes this process from others with the same node ID; 0 is none."""
    version: str = "0"
    traffic: Traffic = attrs.Factory(Traffic)
    knobs: Knobs = DEFAULTS
    """Constants of size and time; simulations use small ones."""
    capabilities: int = CAPABILITIES
    """The capabilities of its version; simulations reduce them to emulate earlier versions and the
    original."""


@attrs.define
class CommandStat:
    """One line of INFO commandstats."""

    calls: int = 0
    ns: int = 0

    @property
    def usec(self) -> int:
        """Microseconds for all calls together."""
        return self.ns // 1000


@attrs.define
class Sampler:
    """Commands, bytes received and bytes sent, as counted before and after each of the last sixteen
    tenths of a second (original 2.11).

    `last_time` is the beginning of the current tenth of a second.
    """

    samples: deque[tuple[int, int, int]] = attrs.Factory(lambda: deque([(0, 0, 0)] * 17, maxlen=17))
    last_time: Millis = 0


@attrs.define
class Stats:
    """Counters since the start, or since CONFIG RESETSTAT."""

    started: Millis = 0
    connections_received: int = 0
    connections_rejected: dict[str, int] = attrs.Factory(dict)
    """Clients that were not admitted, by reason."""
    commands_processed: int = 0
    commands: dict[str, CommandStat] = attrs.Factory(dict)
    frames_refused: dict[str, int] = attrs.Factory(dict)
    """Bus input that was dropped, by reason."""
    links_refused: dict[str, int] = attrs.Factory(dict)
    """Bus links, accepted or dialled, on which one side failed to authenticate; by reason."""
    frames_dropped: int = 0
    """Bus output that was dropped because a send queue was full; a batch counts as one."""
    protocol_errors: int = 0
    wrong_passwords: int = 0
    expired_while_down: int = 0
    """Jobs of the journal that had expired when it was read. `recovery` counts them."""
    copies_repaired: int = 0
    """Copies that this node has had re-created in place of lost ones."""
    received_before: int = 0
    sent_before: int = 0
    """The counts of `Facts.traffic` at the last reset."""
    sampler: Sampler = attrs.Factory(Sampler)


# LATENCY and SLOWLOG.


@attrs.define
class Samples:
    """The longest pause of each second of one event: up to 160 (Unix seconds, milliseconds) pairs,
    oldest first, and the maximum."""

    worst: int = 0
    series: deque[tuple[int, int]] = attrs.Factory(lambda: deque(maxlen=160))


@attrs.define
class LatencyMonitor:
    """The samples of LATENCY by event (original 2.14)."""

    events: dict[bytes, Samples] = attrs.Factory(dict)


@attrs.define
class SlowEntry:
    """One slow command: its time in Unix seconds, its duration in microseconds, its truncated
    arguments."""

    id: int
    time_s: int
    usec: int
    args: list[bytes]


@attrs.define
class Slowlog:
    """The entries of SLOWLOG, newest first. Written by `commands.slowlog`."""

    entries: deque[SlowEntry] = attrs.Factory(deque)
    next_id: int = 0
