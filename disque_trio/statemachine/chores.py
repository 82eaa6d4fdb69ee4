"""Work that a command leaves to the driver, because it needs files, the process or sockets.

A handler puts a chore into the outbox and answers PENDING; the driver carries it out and gives
the outcome to `Machine.done`, where the client's continuation turns it into the reply. So the
machine itself never calls out (decision 8).
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
    """Wait until nodes.conf has been written with the latest changes, or could not be: they are
    carried out all the same, and the log has the error. Outcome: not used."""


@attrs.define
class LookUp:
    """Look up the addresses of a host's name. Outcome: a `Lookup`."""

    name: str


@attrs.frozen
class Lookup:
    """What is known of a host's name: its addresses, or why there are none."""

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
    """Make room for this many clients. Outcome: how many the system can handle, an int."""

    clients: int


@attrs.define
class ReloadTls:
    """Read the certificates that `config` names. Outcome: None, or an error text."""

    config: Config


@attrs.define
class ReadVitals:
    """Look at the process and its connections. Outcome: a `Vitals`."""


@attrs.define
class Sleep:
    """Block the whole node (DEBUG SLEEP). Outcome: None."""

    seconds: float


@attrs.define
class Shutdown:
    """End the process: 0 exits at once and gracefully; a restart executes it anew afterwards.

    Outcome: none when it succeeds, else an error text.
    """

    restart: bool = False
    graceful: bool = True
    delay: Millis = 0
    rewrite_journal: bool = False
    """Write the journal anew first; if that fails, do not end."""


@attrs.define
class StartJournal:
    """Keep a journal from now on, and begin to write what there is. Outcome: None, or an error
    text. The records of the batches that follow belong to it."""


@attrs.define
class StopJournal:
    """Keep no journal any more; the file stays as it is. Outcome: None."""


@attrs.define
class RewriteJournal:
    """Begin to rewrite the journal from the jobs in memory. Outcome: None, or an error text. Done
    even if no journal is kept."""


@attrs.define
class ReadJournal:
    """Read the whole journal, while everything waits (DEBUG LOADAOF). Outcome: its records, or an
    error text."""


JournalChore = StartJournal | StopJournal | RewriteJournal | ReadJournal
Chore = (
    SaveNodes | AwaitNodes | LookUp | RewriteConfig | ReloadTls | ChangeDirectory | RaiseFileLimit
    | ReadVitals | Sleep | Shutdown | JournalChore
)  # fmt: skip


@attrs.define
class Connection:
    """What only the driver knows of a client, for CLIENT LIST and INFO: descriptor and bytes."""

    fd: int = -1
    input_bytes: int = 0
    """Received and not parsed yet."""
    input_free: int = 0
    """Reserved for more of that."""
    output_bytes: int = 0
    """Owed to the client, not taken by its socket yet."""
    output_chunks: int = 0
    """In how many pieces."""
    events: bytes = b"r"
    """What its socket is watched for: r, w or both."""


def _unknown(_client: ClientId) -> Connection:
    return Connection()


@attrs.define
class JournalVitals:
    """The journal at this moment, as INFO shows it. Bytes, seconds, -1 for never or none."""

    state: str = "off"
    """`off`, `on`, or `wait-rewrite` until the first version of the file is complete."""
    is_rewriting: bool = False
    last_rewrite_s: int = -1
    current_rewrite_s: int = -1
    last_rewrite_ok: bool = True
    last_write_ok: bool = True
    file_status: str = "ok"
    """`removed`, `replaced` or `truncated` by another process, until it has been rewritten."""
    size: int = 0
    base_size: int = 0
    """What it was after the last load or rewrite."""
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
    """The process at this moment. Bytes and seconds.

    What clients have sent and been sent is not here: the driver counts it in `Facts.traffic`.
    """

    rss_bytes: int = 0
    peak_rss_bytes: int = 0
    cpu_system: float = 0.0
    cpu_user: float = 0.0
    cpu_system_children: float = 0.0
    cpu_user_children: float = 0.0
    connection_of: Callable[[ClientId], Connection] = _unknown
    """Looks at the connection of one client: of 10,000 clients few are asked for."""
    history: Callable[[], Iterable[tuple[str, str]]] = tuple
    """The node's last hour and day, as fields of INFO; none if nobody keeps them."""
    standstill: Millis = 0
    """How long the node's loop stood still at the longest in the last ten minutes."""
    standstill_ago: Millis = 0
    """Since that ended."""
    busy_connections: Callable[[], Iterable[Connection]] = tuple
    """Looks at those that have input which is not parsed, or are owed output."""
    journal: JournalVitals = attrs.Factory(JournalVitals)
