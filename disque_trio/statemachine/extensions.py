"""Job extensions: what a job has beyond the original's record (docs/bus.md, "Job extensions").

A plain job has none. The record is never changed, so that jobs, messages and journal records share
it.
"""

from typing import Final

import attrs

PRIORITIES: Final = range(-100, 101)
"""What PRIORITY may be. 0 is the default."""
EXTENSION_BYTES: Final = 180
"""What the record weighs, without the bytes in it."""


@attrs.frozen
class Extensions:
    """The extensions of one job."""

    priority: int = 0
    """Jobs of a queue with a higher one are delivered first."""
    key: bytes | None = None
    """UNIQUE: no other job of its queue may have it; None for none."""
    keep: int = 0
    """Milliseconds for which the key stays taken when the job has ended."""
    unknown: tuple[tuple[int, bytes], ...] = ()
    """Fields of a later version, number and value: kept and passed on."""

    @property
    def weight(self) -> int:
        """What the record weighs in memory, in bytes."""
        key = 0 if self.key is None else 33 + len(self.key)
        return EXTENSION_BYTES + key + sum([100 + len(value) for _, value in self.unknown])

    @property
    def fields(self) -> list[tuple[bytes, int | bytes]]:
        """Names and values, as SHOW has them, without those that have their default."""
        found: list[tuple[bytes, int | bytes]] = []
        if self.priority:
            found.append((b"priority", self.priority))
        if self.key is not None:
            found.append((b"key", self.key))
        if self.keep:
            found.append((b"keep", self.keep))
        found += [(b"extension-%d" % number, value) for number, value in self.unknown]
        return found
