"""The interfaces between a node and its environment, as small protocols (docs/design.md, "Ports").

`serving` implements them with sockets, files and clocks, the simulator with its own models: the
same `Node` runs on both. This module implements none.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import trio
from outcome import Outcome

from disque_trio.statemachine.base import LinkId, Millis, Now, Spilled
from disque_trio.statemachine.chores import Connection, Lookup, Shutdown, Vitals
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import Frame

Node_contra = TypeVar("Node_contra", contravariant=True)
Link_contra = TypeVar("Link_contra", contravariant=True)


class Clock(Protocol):
    """The clocks of the node, which a simulation may drift or set."""

    def now(self) -> Now:
        """Both clocks, read together."""

    def seconds_until(self, mono: Millis) -> float:
        """How long Trio must sleep until this node's monotonic clock shows `mono`."""


class ClientPort(Protocol):
    """One client's connection, as the node writes to it."""

    is_half_closed: bool
    """The client will not send any longer."""

    def write(self, data: bytes) -> int:
        """Send, now or when the client continues to read. Returns the number of unsent bytes."""

    def hold(self) -> None:
        """Stop reading: there is input that the machine cannot process yet."""

    def resume(self) -> None:
        """Resume reading."""

    def close(self) -> None:
        """Disconnect once all written bytes are sent; `Node.lost` follows."""

    def abort(self) -> None:
        """Disconnect immediately; `Node.lost` follows."""

    def facts(self) -> Connection:
        """Descriptor and sizes, for CLIENT LIST."""


class LinkPort(Protocol):
    """One bus connection, dialled or accepted."""

    def send(self, frames: list[bytes]) -> int:
        """Send whole frames in order, as far as the queue has room. Returns the number of dropped
        ones."""

    def hang_up(self) -> None:
        """Close immediately; no input follows from this link."""


Courier = Callable[[Sequence[LinkId], Frame], None]
"""Carries a frame on these links unencoded; `Node.link_passed` follows at their other ends."""


class EventLoop(Protocol[Node_contra, Link_contra]):
    """Carries bytes between a node, its clients and its peers.

    The type variables stand for `disque_trio.node.Node` and for the link session that an event loop
    hands back with every event of the link: nothing here may import what is built on it.
    """

    def dial(self, session: Link_contra, ip: str, port: int) -> LinkPort | None:
        """Open a bus connection; `Node.link_up` or `Node.link_lost` follows, never immediately.

        Returns None if it cannot begin; then neither follows.
        """

    def courier(self) -> Courier | None:
        """The carrier of the messages of this batch; None if they must be encoded for `LinkPort`,
        as for sockets."""

    def open_clients(self) -> None:
        """Begin to accept clients."""

    def open_bus(self) -> None:
        """Begin to listen for peers: the node has loaded its jobs."""

    def wake(self) -> None:
        """Begin a batch soon, because of an event that is no input."""

    def wake_from_thread(self) -> None:
        """The same, from any thread and at any time, even after the event loop has ended."""

    def stop_listening(self) -> None:
        """Accept no new connections, and stop reading from open ones."""

    def has_unsent(self) -> bool:
        """Are there unsent bytes for a client?"""

    async def run(
        self, node: Node_contra, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Start the node, run batches until it ends, and close everything."""


class NodesStore(Protocol):
    """Where the node table is stored: nodes.conf."""

    @property
    def thread(self) -> "DiskThread":
        """Its own."""

    def save(self, text: bytes) -> None:
        """Write the table, all or nothing. May block. Raises OSError."""


class JournalError(Exception):
    """The node cannot start with this journal. The text has the reason and a remedy."""


class JournalFile(Protocol):
    """One file of a journal. Every method may block, and raise OSError."""

    size: int
    """Bytes that have been written to it completely, synced or not."""

    def read(self, offset: int, count: int) -> bytes:
        """Read up to `count` bytes; none at the end."""

    def append(self, data: bytes) -> None:
        """Append, all or nothing."""

    def sync(self) -> None:
        """Return once all written bytes would survive a power failure."""

    def rewind(self, size: int) -> None:
        """Continue writing at this offset: the bytes after it are written again, with the same
        content."""

    def cut(self, size: int) -> None:
        """Truncate the file to this size."""

    def loss(self) -> str:
        """How another process has changed it so that the next start would miss records: `removed`,
        `replaced` or `truncated`; empty if it has not. Only called for the journal."""

    def close(self) -> None:
        """Close it, and release its lock; if a thread is in another method, once that returns."""


class DiskThread(Protocol):
    """Runs operations that may block, without blocking the node."""

    wake: Callable[[], None]
    """Called in any thread when there are results to `collect`."""
    pending: int
    """The number of operations that were started and not collected."""

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[OSError | None], None],
        *,
        sync: Callable[[], object] | None = None,
        wait_s: float = 0.0,
    ) -> None:
        """Run an operation after all that were started before, and `sync` unless it failed.
        `collect` calls `then` in the loop, with the OSError if there was one. If it ends within
        `wait_s` seconds, during which the loop is blocked, `then` is called immediately."""

    def beside(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[Outcome[Any]], None],
        *,
        sync: Callable[[], object] | None = None,
    ) -> None:
        """Run an operation without waiting for those that were started before, which may hang. Then
        `sync`, unless it failed. `collect` calls `then`, with its result or error."""

    def collect(self) -> None:
        """In the loop: call `then` for operations that have finished."""

    def abandon(self) -> None:
        """Forget all that were started. Later ones do not wait for them."""


class JournalStore(Protocol):
    """Where journals are stored."""

    name: str
    """The name of the file for operators."""

    @property
    def thread(self) -> DiskThread:
        """The journal's own."""

    def open(self) -> JournalFile:
        """The journal, created if it does not exist. JournalError if it cannot be opened."""

    def exists(self) -> bool:
        """Is there a journal?"""

    def begin(self) -> JournalFile:
        """Create an empty file that will replace the journal."""

    def replace(self, new: JournalFile) -> None:
        """Replace the journal by it. A power failure may undo that until `settle` has returned."""

    def set_aside(self) -> None:
        """Rename a file that another process has put in the journal's place.
        OSError or JournalError if that fails."""

    def settle(self) -> None:
        """Make renames durable."""

    def discard(self, new: JournalFile) -> None:
        """Remove the new file without replacing the journal."""

    def salt(self) -> int:
        """32 random bits."""

    def boot(self) -> str:
        """Identifies the current boot of the system: bytes that were written in it are there, even
        if the process was killed. Empty if unknown."""


class Spill(Protocol):
    """Stores bodies when memory is short. They do not outlive the process."""

    def write(self, bodies: Sequence[bytes]) -> list[Spilled]:
        """Store them. Returns a reference to each. If it raises OSError, none was moved."""


class Host(Protocol):
    """The process around the node, for chores."""

    def rewrite_config(self, config: Config) -> str | None:
        """Write the configuration file; an error text when that fails."""

    def change_directory(self, path: str) -> str | None:
        """Make `path` the working directory; an error text when that fails."""

    def raise_file_limit(self, clients: int) -> int:
        """Raise the limit of open files for this number of clients. Returns the number for which it
        suffices."""

    def reload_tls(self, config: Config) -> str | None:
        """Read the certificates again; an error text when they cannot be used."""

    def vitals(self) -> Vitals:
        """Memory and processor time, without connections and bytes."""

    def has_room(self, size: int) -> bool:
        """Can the process allocate this many more bytes?"""

    def refuse_shutdown(self, shutdown: Shutdown) -> str | None:
        """Why the process cannot do this; None when it can."""


class Resolver(Protocol):
    """Looks up names of hosts."""

    def look_up(self, name: str, then: Callable[[Lookup], None]) -> None:
        """Begin to look a name up. `then` is called later, in the loop, in any case."""


class Log(Protocol):
    """Messages for the operator, in the original's four levels."""

    def debug(self, event: str, **facts: object) -> None:
        """For developers."""

    def verbose(self, event: str, **facts: object) -> None:
        """Rarely useful, but not noise."""

    def notice(self, event: str, **facts: object) -> None:
        """The level for production."""

    def warning(self, event: str, **facts: object) -> None:
        """Problems that need attention."""

    def set_level(self, level: str) -> None:
        """Log this level and the more severe ones from now on."""
