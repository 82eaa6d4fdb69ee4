"""What a batch of inputs leads to, as data (docs/design.md, "The machine").

The driver carries it out in this order: records, as durable as `appendfsync` says; then dials,
messages, replies, closes, hangups; then chores, then the clients that may be read again.
"""

from collections.abc import Sequence

import attrs

from disque_trio.statemachine.base import LinkId, Reply
from disque_trio.statemachine.chores import Chore
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.messages import Message
from disque_trio.statemachine.records import Record


@attrs.define(eq=False, init=False)
class Outbox:
    """One batch of outputs. A message stands with all its links, so that it is encoded once."""

    records: list[Record]
    """For the journal: what must be durable before the rest is carried out. Empty without one."""
    dials: list[tuple[LinkId, str, int]]
    """Links to open, to this address and port for nodes."""
    lookups: tuple[str, ...]
    """Names of hosts to look up; `Machine.looked_up` is told the outcome of each."""
    messages: list[tuple[Sequence[LinkId], Message]]
    replies: list[tuple[Client, Reply]]
    closes: list[Client]
    """Clients to disconnect once what they are owed has been written."""
    expelled: list[tuple[Client, str, bytes]]
    """Those of them that speak another protocol, with a word of it: for the log."""
    hangups: list[LinkId]
    chores: list[tuple[Client, Chore]]
    resumed: list[Client]
    """Clients whose further requests may be passed in again."""
    changing: dict[Client, None]
    """Clients whose requests may have changed jobs: their answers wait for the journal."""
    nodes_changed: bool
    """The node table differs from what nodes.conf says."""

    def __init__(self) -> None:
        # There is one for every batch, and what attrs would write costs twice as much.
        self.records = []
        self.dials = []
        self.lookups = ()
        self.messages = []
        self.replies = []
        self.closes = []
        self.expelled = []
        self.hangups = []
        self.chores = []
        self.resumed = []
        self.changing = {}
        self.nodes_changed = False

    def __bool__(self) -> bool:
        return bool(
            self.replies
            or self.messages
            or self.records
            or self.closes
            or self.resumed
            or self.chores
            or self.dials
            or self.lookups
            or self.hangups
            or self.nodes_changed
        )
