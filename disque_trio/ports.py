"""What a node needs of its world, as small protocols (docs/design.md, "Ports").

`server` fills them with sockets, files and clocks, a simulation with its own: the very same `Node`
runs on both. Nothing here does anything.
"""

from typing import TYPE_CHECKING, Protocol

import trio

from disque_trio.statemachine.base import Millis, Now
from disque_trio.statemachine.chores import Connection, Shutdown, Vitals
from disque_trio.statemachine.config import Config

if TYPE_CHECKING:
    from disque_trio.node import Node
    from disque_trio.session import LinkSession


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


class Hub(Protocol):
    """Whatever carries bytes between a node, its clients and its peers."""

    def dial(self, session: "LinkSession", ip: str, port: int) -> LinkPort | None:
        """Open a bus connection; `Node.link_up` or `Node.link_lost` follows, never at once.

        None if it cannot even begin; then neither follows.
        """

    def stop_listening(self) -> None:
        """Take no new connections, read no further from those that stand."""

    def has_unsent(self) -> bool:
        """Is a client owed bytes that have not left?"""

    async def run(
        self, node: "Node", *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Carry until cancelled, and then close everything."""


class NodesStore(Protocol):
    """Where the node table outlives the process: nodes.conf."""

    def save(self, text: bytes) -> None:
        """Write the table, all or nothing. Raises OSError when it cannot."""


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
