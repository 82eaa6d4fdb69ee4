"""Job extensions: what a job has beyond the original's record (docs/bus.md, "Job extensions").

A plain job has none. The record is never changed, so that jobs, messages and journal records share
it.
"""

from operator import attrgetter
from typing import Final

import attrs

from disque_trio.statemachine.base import (
    BURIES,
    ERRORS,
    EXTENDS,
    LONG_WAITS,
    ORIGINAL_PERIOD_S,
    Millis,
)

EXTENSION_BYTES: Final = 200
"""What the record weighs, without the bytes in it."""
DEAD_BYTES: Final = 420
"""What the state of a job that is or was dead weighs besides, with its place among the dead."""
MAX_GROUP: Final = 256
"""Bytes of the name of a group."""
MAX_REASON: Final = 1024
"""Bytes of the reason why a job is dead."""
MAX_ERROR: Final = 4096
"""Bytes of the error that a NACK says."""
ERROR_BYTES: Final = 150
"""What an error weighs besides."""
MAX_REDRIVES: Final = 0xFFFF_FFFF
"""Messages and records count redrives in 32 bits."""
MAX_SNOOZES: Final = 0xFFFF_FFFF
"""And snoozes: beyond this they are not counted."""

_ORIGINAL_PERIOD: Final[Millis] = ORIGINAL_PERIOD_S * 1000

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
class LastError:
    """Why a worker has given the job back last. Of two the later holds."""

    at: Millis = 0
    """Unix milliseconds by the clock of the node of the NACK, but later than any error of the job
    that was known there; 0 if there is none."""
    text: bytes = b""

    @property
    def order(self) -> tuple[Millis, bytes]:
        """By this they are compared."""
        return self.at, self.text

    @property
    def kind(self) -> bytes:
        """The class of the error: what stands before the first colon of its first line."""
        return self.text.partition(b"\n")[0].partition(b":")[0]


NO_ERROR: Final = LastError()
"""Of every job that no NACK has said an error of."""


TEXT: Final = "s"


@attrs.frozen
class Field:
    """How one field of `Extensions` is written."""

    number: int
    name: str
    layout: str = ""
    """Of its number, as `struct` has it; `TEXT` for bytes or None; empty for other records."""

    @property
    def shown(self) -> bytes:
        """As SHOW has it."""
        return self.name.replace("_", "-").encode()


FIELDS: Final = (
    Field(1, "priority", "<i"),
    Field(2, "group", TEXT),
    Field(16, "key", TEXT),
    Field(17, "keep", "<Q"),
    Field(18, "follows", "<B"),
    Field(32, "limit", "<I"),
    Field(33, "dead"),
    Field(24, "backoff", "<Q"),
    Field(25, "max_backoff", "<Q"),
    Field(26, "snoozes", "<I"),
    Field(34, "error"),
)
"""In the order of SHOW."""
TEXTS: Final = [field for field in FIELDS if field.layout == TEXT]
_texts_of: Final = attrgetter(*[field.name for field in TEXTS])


@attrs.frozen
class Extensions:
    """The extensions of one job."""

    priority: int = 0
    """Jobs of a queue with a higher one are delivered first."""
    group: bytes | None = None
    """Within one priority the groups of a queue are served in turn; None for none."""
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
    snoozes: int = 0
    """How often RELEASE DELAY has let it wait, as far as is known here."""
    error: LastError = NO_ERROR
    """Of the last NACK that said one, as far as is known here."""
    unknown: tuple[tuple[int, bytes], ...] = ()
    """Fields of a later version, number and value: kept and passed on."""

    @property
    def needs(self) -> int:
        """The capabilities that a node must have to keep the job. One that has none of them keeps a
        job without its count of snoozes and its error."""
        long = LONG_WAITS if self.max_backoff > _ORIGINAL_PERIOD else 0
        if self.limit or self.dead != ALIVE:
            return EXTENDS | BURIES | long
        if long:
            return EXTENDS | long
        if self.snoozes or self.error.at:
            rest = attrs.evolve(self, snoozes=0, error=NO_ERROR)
            return 0 if rest == NO_EXTENSIONS else EXTENDS
        return EXTENDS

    def kept_by(self, capabilities: int) -> "Extensions | None":
        """What of them a node keeps that has what the job `needs`."""
        if not capabilities & EXTENDS:
            return None
        if not self.error.at or capabilities & ERRORS:
            return self
        rest = attrs.evolve(self, error=NO_ERROR)
        return None if rest == NO_EXTENSIONS else rest

    @property
    def weight(self) -> int:
        """What the record weighs in memory, in bytes."""
        size = EXTENSION_BYTES
        for text in _texts_of(self):
            if text is not None:
                size += 33 + len(text)
        if self.dead is not ALIVE and self.dead != ALIVE:
            size += DEAD_BYTES + len(self.dead.reason)
        if self.error.at:
            size += ERROR_BYTES + len(self.error.text)
        for _, value in self.unknown:
            size += 100 + len(value)
        return size

    @property
    def fields(self) -> list[tuple[bytes, int | bytes]]:
        """Names and values, as SHOW has them, without those that have their default."""
        found: list[tuple[bytes, int | bytes]] = []
        for field in FIELDS:
            named = [(field.shown, getattr(self, field.name))]
            if field.name == "dead":
                named = [(b"redriven", self.dead.epoch), (b"reason", self.dead.reason or None)]
            elif field.name == "error":
                named = [(b"failed-at", self.error.at), (b"error", self.error.text or None)]
            found += [(name, value) for name, value in named if value is not None and value != 0]
        found += [(b"extension-%d" % number, value) for number, value in self.unknown]
        return found


NO_EXTENSIONS: Final = Extensions()


def needs_of(delay: Millis, retry: Millis, extensions: Extensions | None) -> int:
    """The capabilities that a node must have to keep a job with these. An original node would
    misread long times, which every node that reads extensions can count."""
    own = 0 if extensions is None else extensions.needs
    return own | EXTENDS if delay > _ORIGINAL_PERIOD or retry > _ORIGINAL_PERIOD else own
