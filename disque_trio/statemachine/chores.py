"""Chores: work of a command that the driver carries out, because it needs files, the process or
sockets.

A handler puts a chore into the outbox and returns PENDING. The driver carries it out and passes the
outcome to `Machine.done`, where the client's continuation makes the reply from it. So the machine
itself never calls out (decision 8).
"""

from collections.abc import Callable, Iterable

import attrs

from disque_trio.statemachine.base import ClientId, Millis
from disque_trio.statemachine.config import Config


@attrs.define
class SaveNodes:
    """Write nodes.conf and sync it. Outcome: None, or the system's error text."""


@attrs.define
class AwaitNodes:
    """Wait until the latest changes are written to nodes.conf. If writing fails, the changes still
    apply, and the error is logged. Outcome: not used."""


@attrs.define
class LookUp:
    """Look up the addresses of a host's name. Outcome: a `Lookup`."""

    name: str


@attrs.frozen
class Lookup:
    """The result of looking up a host name: its addresses, or why there are none."""

    addresses: tuple[str, ...] = ()
    """IPv4 and IPv6, in order of preference."""
    error: str = ""


@attrs.define
class RewriteConfig:
    """Write the configuration file. Outcome: None, or the system's error text."""


@attrs.define
class ChangeDirectory:
    """Make `path` the working directory. Outcome: None, or the system's error text."""

    path: str


@attrs.define
class RaiseFileLimit:
    """Raise the limit of open files for this many clients. Outcome: how many clients the limit
    allows, an int."""

    clients: int


@attrs.define
class ReloadTls:
    """Read the certificates that `config` names. Outcome: None, or an error text."""

    config: Config


@attrs.define
class ReadVitals:
    """Read figures of the process and its connections. Outcome: a `Vitals`."""


@attrs.define
class Sleep:
    """Block the whole node (DEBUG SLEEP). Outcome: None."""

    seconds: float


@attrs.define
class Shutdown:
    """End the process after `delay` ms, gracefully or not; a restart executes it again afterwards.

    Outcome: none when it succeeds, else an error text.
    """

    restart: bool = False
    graceful: bool = True
    delay: Millis = 0
    rewrite_journal: bool = False
    """Rewrite the journal first; if that fails, do not end."""


@attrs.define
class StartJournal:
    """Keep a journal from now on, and begin to write the existing jobs to it. Outcome: None, or an
    error text. It includes the records of the batches that follow."""


@attrs.define
class StopJournal:
    """Stop keeping a journal; the file remains. Outcome: None."""


@attrs.define
class RewriteJournal:
    """Begin to rewrite the journal from the jobs in memory, even if no journal is kept. Outcome:
    None, or an error text."""


@attrs.define
class ReadJournal:
    """Read the whole journal while the node is blocked (DEBUG LOADAOF). Outcome: its records, or an
    error text."""


JournalChore = StartJournal | StopJournal | RewriteJournal | ReadJournal
Chore = (
    SaveNodes | AwaitNodes | LookUp | RewriteConfig | ReloadTls | ChangeDirectory | RaiseFileLimit
    | ReadVitals | Sleep | Shutdown | JournalChore
)  # fmt: skip


@attrs.define
class Connection:
    """The state of a client connection in the driver, for CLIENT LIST and INFO: descriptor and
    bytes."""

    fd: int = -1
    input_bytes: int = 0
    """Received and not parsed yet."""
    input_free: int = 0
    """Free space of the input buffer."""
    output_bytes: int = 0
    """Sent to the client, but not yet accepted by its socket."""
    output_chunks: int = 0
    """The number of chunks of this output."""
    events: bytes = b"r"
    """The events that the driver waits for on its socket: r, w or both."""


def _unknown(_client: ClientId) -> Connection:
    return Connection()


@attrs.define
class JournalVitals:
    """The current state of the journal, as INFO shows it. Sizes are in bytes, times in seconds; -1
    is never or none."""

    state: str = "off"
    """`off`, `on`, or `wait-rewrite` until the first version of the file is complete."""
    is_rewriting: bool = False
    last_rewrite_s: int = -1
    current_rewrite_s: int = -1
    last_rewrite_ok: bool = True
    last_write_ok: bool = True
    file_status: str = "ok"
    """`removed`, `replaced` or `truncated` by another process, or `left unsynced` by one whose file
    this node could not sync when it started; until the file has been rewritten."""
    size: int = 0
    base_size: int = 0
    """`size` after the last load or rewrite."""
    unwritten: int = 0
    rewrite_unwritten: int = 0
    is_syncing: bool = False
    delayed_syncs: int = 0
    """How often a write had to wait for a sync that took over two seconds."""
    loading_since: int = 0
    """Unix seconds; 0 while nothing is loaded."""
    loading_bytes: int = 0
    loaded_bytes: int = 0
    loading_left_s: int = 0


@attrs.define
class Vitals:
    """Current figures of the process, in bytes and seconds.

    The traffic of clients is not included: the driver counts it in `Facts.traffic`.
    """

    rss_bytes: int = 0
    peak_rss_bytes: int = 0
    cpu_system: float = 0.0
    cpu_user: float = 0.0
    cpu_system_children: float = 0.0
    cpu_user_children: float = 0.0
    connection_of: Callable[[ClientId], Connection] = _unknown
    """Reads the connection of one client on demand, because few of 10,000 clients are queried."""
    history: Callable[[], Iterable[tuple[str, str]]] = tuple
    """The history of the node's last hour and day, as fields of INFO; none if it is not kept."""
    standstill: Millis = 0
    """The longest time that the node's loop was blocked in the last ten minutes."""
    standstill_ago: Millis = 0
    """The time since that ended."""
    busy_connections: Callable[[], Iterable[Connection]] = tuple
    """Reads the connections with unparsed input or unsent output."""
    journal: JournalVitals = attrs.Factory(JournalVitals)
