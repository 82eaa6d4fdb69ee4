"""Caches the records that a client has read, so that many changes do not each read all records.

Nodes count the records that they have enqueued, and those that remain. While these counts match the
client's own changes, no other client has changed a record.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import anyio
import attrs

from disque_trio.client.records import QueueStats

Record = TypeVar("Record")
Figures = Mapping[str, tuple[int, int]]
"""By node: the number of records that it has enqueued since its start, and the number that
remain."""


def figures_of(stats: QueueStats | None) -> tuple[int, int]:
    """The counts of one node, which reports nothing for a queue that never had jobs."""
    return (0, 0) if stats is None else (stats.jobs_in, stats.length)


@attrs.define(eq=False)
class Remembered(Generic[Record]):
    """The records that one client has read."""

    changing: anyio.Lock = attrs.field(factory=anyio.Lock)
    """Held during a change: with two concurrent changes the counts would not show whose record is
    whose."""
    _records: dict[str, Sequence[Record]] = attrs.field(init=False, factory=dict)
    """By name of the schedule."""
    _figures: Figures | None = attrs.field(init=False, default=None)
    """The counts before the records were read; None if they must be read again."""
    _added: int = attrs.field(init=False, default=0)
    _ended: int = attrs.field(init=False, default=0)
    """The number of records that this client has added (`_added`) and ended since."""

    def records(self, figures: Figures) -> Mapping[str, Sequence[Record]] | None:
        """The records by name; None if others may have changed them."""
        before = self._figures
        if before is None or before.keys() != figures.keys():
            return None
        queued = [count - before[node][0] for node, (count, _) in figures.items()]
        left = sum(length - before[node][1] for node, (_, length) in figures.items())
        is_ours = min(queued, default=0) >= 0 and sum(queued) == self._added
        return self._records if is_ours and left == self._added - self._ended else None

    def learn(self, figures: Figures, records: Mapping[str, Sequence[Record]]) -> None:
        """Store all records, which were read after nodes had these counts."""
        self._records, self._figures = dict(records), figures
        self._added = self._ended = 0

    def change(self, name: str, before: Sequence[Record], after: Sequence[Record]) -> None:
        """Record a change by this client."""
        self._added += len(after)
        self._ended += len(before)
        self._records.pop(name, None)
        if after:
            self._records[name] = after


_BY_CLIENT: Final[WeakKeyDictionary[object, Remembered[object]]] = WeakKeyDictionary()


def remembered(client: object) -> Remembered[object]:
    """The cache of this client."""
    return _BY_CLIENT.setdefault(client, Remembered())
