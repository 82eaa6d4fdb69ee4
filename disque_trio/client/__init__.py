"""Clients of a cluster: `Client` for Trio and asyncio, `BlockingClient` for threads.

Below them: connections to a node, TLS, and errors that say what to do. It imports the wire and
`system`. The command line and the pipeline import it. docs/client.md describes it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from disque_trio.client.blocking import BlockingClient as BlockingClient
    from disque_trio.client.client import Client as Client

_HOMES = {
    "BlockingClient": "disque_trio.client.blocking",
    "Client": "disque_trio.client.client",
}


def __getattr__(name: str) -> Any:
    """The command line imports this package, and starts more quickly without anyio."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
