"""Starts handlers after BEGIN, and whatever else precedes it, has been written to the nodes."""

from collections.abc import Callable

import attrs

from disque_trio.worker.engine.records import Cancel, Start


@attrs.define(eq=False)
class Batch:
    """Jobs that start together, when `writes` pending writes have ended."""

    starts: list[Start]
    writes: int = 0


@attrs.define(eq=False)
class Beginnings:
    """The batches that wait for writes."""

    start: Callable[[list[Start]], object]
    _batches: list[Batch] = attrs.field(init=False, factory=list)

    def wait(self, batch: Batch) -> None:
        """Start the batch when its writes have ended."""
        if batch.writes:
            self._batches.append(batch)
        else:
            self.start(batch.starts)

    def written(self, batch: Batch) -> None:
        """One write of the batch has ended."""
        batch.writes -= 1
        if not batch.writes and batch in self._batches:
            self._batches.remove(batch)
            self.start(batch.starts)

    def cancel(self, cancel: Cancel) -> bool:
        """Do not start this job. Returns False if it does not wait here."""
        for batch in self._batches:
            for start in batch.starts:
                if start.id == cancel.id:
                    batch.starts.remove(start)
                    return True
        return False
