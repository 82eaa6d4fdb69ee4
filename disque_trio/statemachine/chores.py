"""Work that a command asks of the driver, because it needs the world: files, process, sockets.

A handler puts a chore into the outbox and answers PENDING; the driver carries it out and gives
the outcome to `Machine.done`, where the client's continuation turns it into the reply. So the
machine itself never calls out (docs/design.md).
"""

import attrs

from disque_trio.statemachine.base import ClientId, Millis


@attrs.define
class SaveNodes:
    """Write nodes.conf and sync it. Outcome: None, or the system's error text."""


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


Chore = SaveNodes | RewriteConfig | ChangeDirectory | RaiseFileLimit | ReadVitals | Sleep | Shutdown


@attrs.define
class Connection:
    """What only the driver knows of a client, for CLIENT LIST and INFO: descriptor and bytes."""

    fd: int = -1
    input_bytes: int = 0
    """Received and not parsed yet."""
    input_free: int = 0
    output_bytes: int = 0
    """Owed to the client, not taken by its socket yet."""
    output_chunks: int = 0
    """In how many pieces."""
    events: bytes = b"r"
    """What its socket is watched for: r, w or both."""


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
    connections: dict[ClientId, Connection] = attrs.Factory(dict)
