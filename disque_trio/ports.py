"""What a node needs of its world, as small protocols (docs/design.md, "Ports").

`server` fills them with sockets, files and clocks, a simulation with its own: the very same `Node`
runs on both. Nothing here does anything.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, TypeVarTuple

import trio

from disque_trio.statemachine.base import Millis, Now, Spilled
from disque_trio.statemachine.chores import Connection, Shutdown, Vitals
from disque_trio.statemachine.config import Config

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
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
        """Disconnect without more ado; `Node.lost` follows."""

    def facts(self) -> Connection:
        """Descriptor and sizes, for CLIENT LIST."""


class LinkPort(Protocol):
    """One bus connection, dialled or accepted."""

    def send(self, frames: list[bytes]) -> int:
        """Send whole frames in order, as far as the queue has room. How many were dropped."""

    def hang_up(self) -> None:
        """Close at once; no input follows from this link."""


class Hub(Protocol[Node_contra, Link_contra]):
    """Whatever carries bytes between a node, its clients and its peers.

    A node is `disque_trio.node.Node`, a link's session what the node wants to be told of the link
    with. Both are type variables, since nothing here may import what is built on it.
    """

    def dial(self, session: Link_contra, ip: str, port: int) -> LinkPort | None:
        """Open a bus connection; `Node.link_up` or `Node.link_lost` follows, never at once.

        None if it cannot even begin; then neither follows.
        """

    def open_bus(self) -> None:
        """Begin to listen for peers: the node has loaded its jobs."""

    def wake(self) -> None:
        """Begin a batch soon: something has happened that is no input."""

    def wake_from_thread(self) -> None:
        """The same, called in any thread, at any time, also when it has ended."""

    def stop_listening(self) -> None:
        """Take no new connections, read no further from those that stand."""

    def has_unsent(self) -> bool:
        """Is a client owed bytes that have not left?"""

    async def run(
        self, node: Node_contra, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Carry until cancelled, and then close everything."""


class NodesStore(Protocol):
    """Where the node table outlives the process: nodes.conf."""

    def save(self, text: bytes) -> None:
        """Write the table, all or nothing. Raises OSError when it cannot."""


class JournalError(Exception):
    """The node cannot start with this journal: why, and what to do about it."""


class JournalFile(Protocol):
    """One file of a journal, as `Journal` uses it. Every method may block, and raise OSError."""

    size: int
    """Bytes that are in it for sure, synced or not."""

    def read(self, offset: int, count: int) -> bytes:
        """Up to so many bytes; none at the end."""

    def append(self, data: bytes) -> None:
        """Write at the end, all or nothing."""

    def sync(self) -> None:
        """Return once everything written will outlive a loss of power."""

    def rewind(self, size: int) -> None:
        """Go on writing after so many bytes: what follows them is written again, over itself."""

    def cut(self, size: int) -> None:
        """Keep so many bytes from the start."""

    def loss(self) -> str:
        """What somebody else has done to it, so that no start would find what it has: `removed`,
        `replaced` or `truncated`; empty if nothing. Asked of the journal only."""

    def close(self) -> None:
        """Let go of it."""


class JournalThread(Protocol):
    """What writes a journal's batches, in their order, while the node goes on."""

    wake: Callable[[], None]
    """Called, in any thread, when there is something to `collect`."""

    def start(
        self,
        act: Callable[..., object],
        args: tuple[Any, ...],
        then: Callable[[OSError | None], None],
        *,
        syncs: bool,
    ) -> None:
        """Do something, behind what it has been given before. `then` is called in the loop, with
        the OSError that it met. `syncs`: it includes a sync."""

    def collect(self) -> None:
        """In the loop: call `then` for what has been done."""

    def abandon(self) -> None:
        """Hear no more of what was started. What is started from now on does not wait for it."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Be there until cancelled. Nothing is started before or after."""


class JournalStore(Protocol):
    """Where journals lie."""

    name: str
    """What to call the file to an operator."""

    @property
    def thread(self) -> JournalThread:
        """The journal's own."""

    def open(self) -> JournalFile:
        """The journal, created if it is not there. JournalError if it cannot be had."""

    def exists(self) -> bool:
        """Is there a journal?"""

    def begin(self) -> JournalFile:
        """An empty file that is to take the journal's place."""

    def replace(self, new: JournalFile) -> None:
        """Let it do so, at once. After a loss of power it may not have happened, unless `settle`
        has returned."""

    def set_aside(self) -> None:
        """Give another name to a file that has come into the journal's place by another hand.
        OSError or JournalError if that cannot be."""

    def settle(self) -> None:
        """Make the files' names outlive a loss of power."""

    def discard(self, new: JournalFile) -> None:
        """It will not do so: remove it."""

    def salt(self) -> int:
        """32 random bits."""

    async def in_thread(self, act: Callable[[*Ts], T], *args: *Ts) -> T:
        """Do something that may block, while the node goes on. It is done to the end, even
        if who waits for it is cancelled."""


class Spill(Protocol):
    """Where bodies go for want of memory. Nothing there outlives the process."""

    def write(self, bodies: Sequence[bytes]) -> list[Spilled]:
        """What stands for each of them from now on. Raises OSError, and then none has moved."""


class Host(Protocol):
    """The process around the node, for chores."""

    def rewrite_config(self, config: Config) -> str | None:
        """Write the configuration file; an error text when that fails."""

    def change_directory(self, path: str) -> str | None:
        """Make `path` the working directory; an error text when that fails."""

    def raise_file_limit(self, clients: int) -> int:
        """Make room for so many clients; how many there is room for."""

    def reload_tls(self, config: Config) -> str | None:
        """Read the certificates anew; an error text when they do not do."""

    def vitals(self) -> Vitals:
        """Memory and processor time, without connections and bytes."""

    def refuse_shutdown(self, shutdown: Shutdown) -> str | None:
        """Why the process cannot do this; None when it can."""


class Log(Protocol):
    """Messages for the operator, in the original's four levels."""

    def debug(self, event: str, **facts: object) -> None:
        """For developers."""

    def verbose(self, event: str, **facts: object) -> None:
        """Rarely useful, but not noise."""

    def notice(self, event: str, **facts: object) -> None:
        """What an operator wants in production."""

    def warning(self, event: str, **facts: object) -> None:
        """What somebody should look at."""

    def set_level(self, level: str) -> None:
        """Log this level and those above from now on."""
