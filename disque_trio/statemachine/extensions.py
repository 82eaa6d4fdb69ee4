"""Job extensions: what a job has beyond the original's record (docs/bus.md, "Job extensions").

A plain job has none. The record is never changed, so that jobs, messages and journal records share
it.
"""

from typing import Final

import attrs

from disque_trio.statemachine.base import BURIES, EXTENDS, Millis

EXTENSION_BYTES: Final = 200
"""What the record weighs, without the bytes in it."""
DEAD_BYTES: Final = 420
"""What the state of a job that is or was dead weighs besides, with its place among the dead."""
MAX_REASON: Final = 1024
"""Bytes of the reason why a job is dead."""
MAX_REDRIVES: Final = 0xFFFF_FFFF
"""Messages and records count redrives in 32 bits."""

# Whether a job is held back until the earlier jobs with its key have ended.

FOLLOWS: Final = 1
"""It is."""
HAS_FOLLOWED: Final = 2
"""It was, and may be queued."""


@attrs.frozen
class DeadState:
    """Is the job dead, and how often has it been redriven? Of two the greater holds (`merged`)."""

    epoch: int = 0
    """How often it has been redriven."""
    is_dead: bool = False
    reason: bytes = b""
    life: Millis = 0
    """The TTL of its ADDJOB, which begins anew when it is redriven; 0 if it was never dead."""

    @property
    def order(self) -> tuple[int, bool, bytes, Millis]:
        """By this they are compared: redriven outweighs dead, and dead outweighs alive."""
        return self.epoch, self.is_dead, self.reason, self.life


ALIVE: Final = DeadState()
"""Of every job that was never dead."""


def merged(one: DeadState, other: DeadState) -> DeadState:
    """What two holders know of one job."""
    return one if one.order >= other.order else other


@attrs.frozen
class Extensions:
    """The extensions of one job."""

    priority: int = 0
    """Jobs of a queue with a higher one are delivered first."""
    key: bytes | None = None
    """UNIQUE: no other job of its queue may have it; None for none."""
    keep: int = 0
    """Milliseconds for which the key stays taken when the job has ended."""
    limit: int = 0
    """LIMIT: after so many deliveries without an acknowledgement it is dead; 0 is never."""
    dead: DeadState = ALIVE
    backoff: Millis = 0
    """What the first NACK without DELAY waits, in milliseconds; each further one twice as long."""
    max_backoff: Millis = 0
    """What it waits at most."""
    follows: int = 0
    """FOLLOWS or HAS_FOLLOWED; 0 for a job that was added when its key was free."""
    unknown: tuple[tuple[int, bytes], ...] = ()
    """Fields of a later version, number and value: kept and passed on."""

    @property
    def needs(self) -> int:
        """The capabilities that a node must have to keep the job."""
        return EXTENDS if not self.limit and self.dead == ALIVE else EXTENDS | BURIES

    @property
    def weight(self) -> int:
        """What the record weighs in memory, in bytes."""
        key = 0 if self.key is None else 33 + len(self.key)
        dead = 0 if self.dead == ALIVE else DEAD_BYTES + len(self.dead.reason)
        return EXTENSION_BYTES + key + dead + sum([100 + len(value) for _, value in self.unknown])

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
        if self.follows:
            found.append((b"follows", self.follows))
        if self.limit:
            found.append((b"limit", self.limit))
        if self.dead.epoch:
            found.append((b"redriven", self.dead.epoch))
        if self.dead.reason:
            found.append((b"reason", self.dead.reason))
        if self.backoff:
            found.append((b"backoff", self.backoff))
        if self.max_backoff:
            found.append((b"max-backoff", self.max_backoff))
        found += [(b"extension-%d" % number, value) for number, value in self.unknown]
        return found
