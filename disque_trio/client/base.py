"""The common part of the asynchronous and the blocking client: nodes, timeouts and greeting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from disque_trio.client.address import Address, Cluster
from disque_trio.client.command import Command
from disque_trio.client.greeting import Greeting
from disque_trio.client.naming import process_name
from disque_trio.client.nodes import SILENT_S, Attempts, Nodes
from disque_trio.client.settings import (
    CONNECT_TIMEOUT_S,
    DEFAULT_URL,
    LATE_ALONE_S,
    LATE_S,
    PATIENCE_S,
)
from disque_trio.client.url import parse_url

if TYPE_CHECKING:  # most users record nothing
    from disque_trio.client.recorder import Recorder


@attrs.define(eq=False, repr=False)
class ClusterClient:
    """A client of a cluster, without its connections."""

    url: str | Cluster = DEFAULT_URL
    """The nodes to connect to first (`parse_url`). Raises `ValueError` for an invalid URL."""
    discover: bool | None = attrs.field(default=None, kw_only=True)
    """Use nodes that other nodes report, too? None is yes, unless the client uses TLS."""
    connect_timeout_s: float = attrs.field(default=CONNECT_TIMEOUT_S, kw_only=True)
    patience_s: float = attrs.field(default=PATIENCE_S, kw_only=True)
    """A node counts as failed if it does not reply for this many seconds, in addition to the
    requested waiting time."""
    name: str | None = attrs.field(default=None, kw_only=True)
    """The name of its connections in CLIENT LIST. None is `program@host:pid`; empty is no name."""
    recorder: "Recorder | None" = attrs.field(default=None, kw_only=True)
    """Records requests and replies (docs/histories.md)."""
    nodes: Nodes = attrs.field(init=False)
    """The known nodes."""
    _cluster: Cluster = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._cluster = parse_url(self.url) if isinstance(self.url, str) else self.url
        seeds = self._cluster.seeds
        discovers = seeds[0].tls is None if self.discover is None else self.discover
        self.nodes = Nodes(seeds, discovers)

    @property
    def has_password(self) -> bool:
        """Does it have a password for nodes?"""
        return self._cluster.secret() is not None

    def _attempts(self, command: Command[Any], first: Address | None, now: float) -> Attempts:
        """The nodes on which to try a command, in order, beginning with `first`."""
        return self.nodes.attempts(
            now,
            is_repeatable=command.is_repeatable,
            is_sought=command.is_sought,
            first=first,
            giver=command.giver,
        )

    def _patience(self, address: Address, asked: Sequence[Command[Any]]) -> float:
        """How long replies of this node to these commands may take, in seconds; `math.inf` is no
        limit."""
        is_replaceable = self.nodes.is_replaceable(address)
        longest = 0.0
        for each in asked:
            patience_s = self.patience_s
            if each.patience_s and is_replaceable:
                patience_s = each.patience_s
            elif each.wait_s:
                patience_s = min(LATE_S if is_replaceable else LATE_ALONE_S, patience_s)
            longest = max(longest, each.wait_s + patience_s)
        return longest

    @property
    def _greeting_s(self) -> float:
        """How long a node may take to answer the greeting. This limits the wait for nodes that
        accept connections and do nothing else."""
        return min(self.connect_timeout_s or self.patience_s, self.patience_s)

    def _note_silence(
        self, address: Address, asked: Sequence[Command[Any]], began: float, now: float
    ) -> None:
        """Record that a node was unresponsive if a request that started at `began` has ended
        without a reply, possibly because it was cancelled."""
        if now - began >= max(each.wait_s for each in asked) + SILENT_S:
            self.nodes.was_silent(address, now)

    def _greeting(self) -> Greeting:
        name = process_name() if self.name is None else self.name
        return Greeting(self._cluster.secret(), name)
