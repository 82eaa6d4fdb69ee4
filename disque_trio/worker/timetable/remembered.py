"""What a client remembers of the records that it has read, so that many changes do not each read
them all.

Nodes count the records that they have queued, and those that are left. As long as these figures are
what the client's own changes make of them, nobody else has changed anything.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import anyio
import attrs

from disque_trio.client.records import QueueStats

Record = TypeVar("Record")
Figures = Mapping[str, tuple[int, int]]
"""By node: how many records it has queued since it began, and how many are left."""


def figures_of(stats: QueueStats | None) -> tuple[int, int]:
    """Those of one node, which tells nothing of a queue that never had jobs."""
    return (0, 0) if stats is None else (stats.jobs_in, stats.length)


@attrs.define(eq=False)
class Remembered(Generic[Record]):
    """The records that one client has read."""

    changing: anyio.Lock = attrs.field(factory=anyio.Lock)
    """Held during a change: of two at once, the figures would not show which record is whose."""
    _records: dict[str, Sequence[Record]] = attrs.field(init=False, factory=dict)
    """By name of the schedule."""
    _figures: Figures | None = attrs.field(init=False, default=None)
    """Before they were read; None if they are to be read again."""
    _added: int = attrs.field(init=False, default=0)
    _ended: int = attrs.field(init=False, default=0)
    """Records that this client has added and ended since."""

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
        """All records were read, after nodes had these figures."""
        self._records, self._figures = dict(records), figures
        self._added = self._ended = 0

    def change(self, name: str, before: Sequence[Record], after: Sequence[Record]) -> None:
        """This client has put records in place of others."""
        self._added += len(after)
        self._ended += len(before)
        self._records.pop(name, None)
        if after:
            self._records[name] = after


_BY_CLIENT: Final[WeakKeyDictionary[object, Remembered[object]]] = WeakKeyDictionary()


def remembered(client: object) -> Remembered[object]:
    """What this client remembers."""
    return _BY_CLIENT.setdefault(client, Remembered())
