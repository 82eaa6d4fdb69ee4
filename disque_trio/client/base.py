"""What the asynchronous and the blocking client have in common: which nodes, and how to greet
them."""

from typing import Final

from disque_trio.client.greeting import Greeting
from disque_trio.client.nodes import Nodes
from disque_trio.client.settings import CONNECT_TIMEOUT_S, DEFAULT_URL, PATIENCE_S
from disque_trio.client.url import parse_url


class ClusterClient:
    """A client of a cluster, without its connections."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        discover: bool | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`url` names the nodes to begin with (`parse_url`). With `discover` the client also asks
        the nodes that these know, which it does by default unless it speaks TLS. A node that is
        silent for `patience_s`, besides the time that it was asked to wait, is given up."""
        seeds, password = parse_url(url)
        self.nodes: Final = Nodes(seeds, seeds[0].tls is None if discover is None else discover)
        self._greeting = Greeting(password)
        self._connect_timeout_s = connect_timeout_s
        self._patience_s = patience_s
