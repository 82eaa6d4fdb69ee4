"""Handlers start when nodes have been told so (BEGIN): what is to be written before is written."""

from collections.abc import Callable

import attrs

from disque_trio.worker.engine.records import Cancel, Start


@attrs.define(eq=False)
class Batch:
    """Jobs that start together, when so many writes are over."""

    starts: list[Start]
    writes: int = 0


@attrs.define(eq=False)
class Beginnings:
    """Those that wait for writes."""

    start: Callable[[list[Start]], object]
    _batches: list[Batch] = attrs.field(init=False, factory=list)

    def wait(self, batch: Batch) -> None:
        """Start these as soon as their writes are over."""
        if batch.writes:
            self._batches.append(batch)
        else:
            self.start(batch.starts)

    def written(self, batch: Batch) -> None:
        """One of its writes is over."""
        batch.writes -= 1
        if not batch.writes and batch in self._batches:
            self._batches.remove(batch)
            self.start(batch.starts)

    def cancel(self, cancel: Cancel) -> bool:
        """Do not start it. False: it does not wait here."""
        for batch in self._batches:
            for start in batch.starts:
                if start.id == cancel.id:
                    batch.starts.remove(start)
                    return True
        return False
