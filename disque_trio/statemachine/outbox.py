"""The outputs of a batch of inputs, as data (docs/design.md, "The machine").

The driver carries them out in this order: records, as durable as `appendfsync` requires; then
dials, messages, replies, closes, hangups; then chores; then it resumes reading clients.
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
    """One batch of outputs. A message is stored once with all its links, so that it is encoded
    once."""

    records: list[Record]
    """Records that must be durable in the journal before the rest is carried out; empty without a
    journal."""
    dials: list[tuple[LinkId, str, int]]
    """Links to open, each with an address and bus port."""
    lookups: tuple[str, ...]
    """Host names to look up. The driver passes each result to `Machine.looked_up`."""
    messages: list[tuple[Sequence[LinkId], Message]]
    replies: list[tuple[Client, Reply]]
    closes: list[Client]
    """Clients to disconnect after their replies have been written."""
    expelled: list[tuple[Client, str, bytes]]
    """Clients among `closes` that use another protocol, with its name and a word of the request,
    for the log."""
    hangups: list[LinkId]
    chores: list[tuple[Client, Chore]]
    resumed: list[Client]
    """Clients whose further requests may be passed in again."""
    changing: dict[Client, None]
    """Clients whose requests may have changed jobs: their replies wait for the journal."""
    nodes_changed: bool
    """The node table differs from nodes.conf."""

    def __init__(self) -> None:
        # There is one per batch, and the method that attrs generates takes twice as long.
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
