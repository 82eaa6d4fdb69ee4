"""What a node needs of its world, as small protocols (docs/design.md, "Ports").

`serving` implements them with sockets, files and clocks, the simulator with its own: the same
`Node` runs on both. Nothing is implemented here.
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
    """The node's own time, which a simulation may bend."""

    def now(self) -> Now:
        """Both clocks, read together."""

    def seconds_until(self, mono: Millis) -> float:
        """How long Trio must sleep until this node's monotonic clock shows `mono`."""


class ClientPort(Protocol):
    """One client's connection, as the node writes to it."""

    is_half_closed: bool
    """The client will not send any more."""

    def write(self, data: bytes) -> int:
        """Send, now or when the client reads on. How many bytes are still unsent."""

    def hold(self) -> None:
        """Read no further: there is input that the machine cannot take yet."""

    def resume(self) -> None:
        """Read again."""

    def close(self) -> None:
        """Disconnect once everything written has left; `Node.lost` follows."""

    def abort(self) -> None:
        """Disconnect at once; `Node.lost` follows."""

    def facts(self) -> Connection:
        """Descriptor and sizes, for CLIENT LIST."""


class LinkPort(Protocol):
    """One bus connection, dialled or accepted."""

    def send(self, frames: list[bytes]) -> int:
        """Send whole frames in order, as far as the queue has room. How many were dropped."""

    def hang_up(self) -> None:
        """Close at once; no input follows from this link."""


Courier = Callable[[Sequence[LinkId], Frame], None]
"""Carries a frame on these links as it is; `Node.link_passed` follows at their other ends."""


class EventLoop(Protocol[Node_contra, Link_contra]):
    """Carries bytes between a node, its clients and its peers.

    The type variables stand for `disque_trio.node.Node` and for the link session that an event loop
    hands back with every event of the link: nothing here may import what is built on it.
    """

    def dial(self, session: Link_contra, ip: str, port: int) -> LinkPort | None:
        """Open a bus connection; `Node.link_up` or `Node.link_lost` follows, never at once.

        None if it cannot even begin; then neither follows.
        """

    def courier(self) -> Courier | None:
        """What carries the messages of this batch; None if they must be encoded for `LinkPort`, as
        over sockets."""

    def open_clients(self) -> None:
        """Begin to accept clients."""

    def open_bus(self) -> None:
        """Begin to listen for peers: the node has loaded its jobs."""

    def wake(self) -> None:
        """Begin a batch soon: something has happened that is not input."""

    def wake_from_thread(self) -> None:
        """The same, from any thread and at any time, even after the event loop has ended."""

    def stop_listening(self) -> None:
        """Accept no new connections, and read no further from open ones."""

    def has_unsent(self) -> bool:
        """Are there bytes for a client that have not been sent?"""

    async def run(
        self, node: Node_contra, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Start the node, give it batches until it is over, and close everything."""


class NodesStore(Protocol):
    """Where the node table is stored: nodes.conf."""

    @property
    def thread(self) -> "DiskThread":
        """Its own."""

    def save(self, text: bytes) -> None:
        """Write the table, all or nothing. May block; OSError if it cannot be written."""


class JournalError(Exception):
    """The node cannot start with this journal. The text says why, and what to do about it."""


class JournalFile(Protocol):
    """One file of a journal, as `Journal` uses it. Every method may block, and raise OSError."""

    size: int
    """Bytes that have been written to it completely, synced or not."""

    def read(self, offset: int, count: int) -> bytes:
        """Up to so many bytes; none at the end."""

    def append(self, data: bytes) -> None:
        """Write at the end, all or nothing."""

    def sync(self) -> None:
        """Return once everything written would survive a loss of power."""

    def rewind(self, size: int) -> None:
        """Go on writing after so many bytes: what follows them is written again, over itself."""

    def cut(self, size: int) -> None:
        """Keep so many bytes from the start."""

    def loss(self) -> str:
        """What another process has done to it, so that the next start would miss records:
        `removed`, `replaced` or `truncated`; empty if nothing. Asked of the journal only."""

    def close(self) -> None:
        """Close it, and release its lock; when a thread is in another method, once that returns."""


class DiskThread(Protocol):
    """Does what may block, while the node goes on."""

    wake: Callable[[], None]
    """Called, in any thread, when there is something to `collect`."""
    pending: int
    """How much has been started, or is under way beside it, and has not been collected."""

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[OSError | None], None],
        *,
        sync: Callable[[], object] | None = None,
        wait_s: float = 0.0,
    ) -> None:
        """Do something, after all that was started before, and `sync` unless that failed. `collect`
        calls `then` in the loop, with the OSError if there was one. If it ends within `wait_s`
        seconds, for which the loop stands still, `then` is called at once."""

    def beside(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[Outcome[Any]], None],
        *,
        sync: Callable[[], object] | None = None,
    ) -> None:
        """Do something, whatever was started before: that may hang. Then `sync`, unless it has
        failed. `collect` calls `then`, with what it returned or raised."""

    def collect(self) -> None:
        """In the loop: call `then` for what has finished."""

    def abandon(self) -> None:
        """Forget what was started. What is started from now on does not wait for it."""


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
        """Create an empty file that is to replace the journal."""

    def replace(self, new: JournalFile) -> None:
        """Replace the journal by it. A loss of power may undo that until `settle` has returned."""

    def set_aside(self) -> None:
        """Rename a file that another process has put in the journal's place.
        OSError or JournalError if that fails."""

    def settle(self) -> None:
        """Make renames durable against a loss of power."""

    def discard(self, new: JournalFile) -> None:
        """Remove the new file: it will not replace the journal."""

    def salt(self) -> int:
        """32 random bits."""

    def boot(self) -> str:
        """What tells this run of the system from others: what was written in it is there, whatever
        has become of the process. Empty if the system does not say."""


class Spill(Protocol):
    """Where bodies go when memory runs short. Nothing there outlives the process."""

    def write(self, bodies: Sequence[bytes]) -> list[Spilled]:
        """Store them; a reference to each. On OSError none has been moved."""


class Host(Protocol):
    """The process around the node, for chores."""

    def rewrite_config(self, config: Config) -> str | None:
        """Write the configuration file; an error text when that fails."""

    def change_directory(self, path: str) -> str | None:
        """Make `path` the working directory; an error text when that fails."""

    def raise_file_limit(self, clients: int) -> int:
        """Raise the limit of open files for so many clients; for how many it suffices."""

    def reload_tls(self, config: Config) -> str | None:
        """Read the certificates again; an error text when they cannot be used."""

    def vitals(self) -> Vitals:
        """Memory and processor time, without connections and bytes."""

    def has_room(self, size: int) -> bool:
        """Would the system give the process so many bytes more?"""

    def refuse_shutdown(self, shutdown: Shutdown) -> str | None:
        """Why the process cannot do this; None when it can."""


class Resolver(Protocol):
    """Looks up names of hosts."""

    def look_up(self, name: str, then: Callable[[Lookup], None]) -> None:
        """Begin to look a name up. `then` is called later, in the loop, whatever comes of it."""


class Log(Protocol):
    """Messages for the operator, in the original's four levels."""

    def debug(self, event: str, **facts: object) -> None:
        """For developers."""

    def verbose(self, event: str, **facts: object) -> None:
        """Rarely useful, but not noise."""

    def notice(self, event: str, **facts: object) -> None:
        """What an operator wants in production."""

    def warning(self, event: str, **facts: object) -> None:
        """What the operator should look at."""

    def set_level(self, level: str) -> None:
        """Log this level and those above from now on."""
