"""Job extensions: the data of a job beyond the original's record (docs/bus.md, "Job extensions").

A plain job has none. The record is immutable, so jobs, messages and journal records share it.
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
"""The memory of the record, without the bytes in it."""
DEAD_BYTES: Final = 420
"""The additional memory of the state of a job that is or was dead, with its place among the
dead."""
MAX_GROUP: Final = 256
"""The maximum length of the name of a group, in bytes."""
MAX_REASON: Final = 1024
"""The maximum length of the reason of a dead job, in bytes."""
MAX_ERROR: Final = 4096
"""The maximum length of the error of a NACK, in bytes."""
ERROR_BYTES: Final = 150
"""The additional memory of an error."""
MAX_REDRIVES: Final = 0xFFFF_FFFF
"""Messages and records count redrives in 32 bits."""
MAX_SNOOZES: Final = 0xFFFF_FFFF
"""The maximum count of snoozes."""

_ORIGINAL_PERIOD: Final[Millis] = ORIGINAL_PERIOD_S * 1000

# Whether a job waits until the earlier jobs with its key have ended.

FOLLOWS: Final = 1
"""It waits."""
HAS_FOLLOWED: Final = 2
"""It has waited, and may be enqueued."""


@attrs.frozen
class DeadState:
    """Is the job dead, and how often has it been redriven? The greater of two states applies
    (`merged`)."""

    epoch: int = 0
    """How often it has been redriven."""
    is_dead: bool = False
    reason: bytes = b""
    life: Millis = 0
    """The TTL of its ADDJOB, which restarts when it is redriven; 0 if it was never dead."""

    @property
    def order(self) -> tuple[int, bool, bytes, Millis]:
        """The order of states: redriven is greater than dead, and dead than alive."""
        return self.epoch, self.is_dead, self.reason, self.life


ALIVE: Final = DeadState()
"""The state of every job that was never dead."""


def merged(one: DeadState, other: DeadState) -> DeadState:
    """Merge the states of two holders."""
    return one if one.order >= other.order else other


@attrs.frozen
class LastError:
    """The last error with which a worker returned the job. The later of two applies."""

    at: Millis = 0
    """Unix milliseconds by the clock of the node of the NACK, but later than any error of the job
    that was known there; 0 if there is none."""
    text: bytes = b""

    @property
    def order(self) -> tuple[Millis, bytes]:
        """The order of errors."""
        return self.at, self.text

    @property
    def kind(self) -> bytes:
        """The class of the error: the text before the first colon of its first line."""
        return self.text.partition(b"\n")[0].partition(b":")[0]


NO_ERROR: Final = LastError()
"""The error of every job without one."""


TEXT: Final = "s"


@attrs.frozen
class Field:
    """The encoding of one field of `Extensions`."""

    number: int
    name: str
    layout: str = ""
    """The format of its number, as in `struct`; `TEXT` for bytes or None; empty for other
    records."""

    @property
    def shown(self) -> bytes:
        """The name in SHOW."""
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
"""The fields, in the order of SHOW."""
TEXTS: Final = [field for field in FIELDS if field.layout == TEXT]
_texts_of: Final = attrgetter(*[field.name for field in TEXTS])


@attrs.frozen
class Extensions:
    """The extensions of one job."""

    priority: int = 0
    """Jobs of a queue with a higher priority are delivered first."""
    group: bytes | None = None
    """Within one priority the groups of a queue are delivered in turn; None for none."""
    key: bytes | None = None
    """UNIQUE: no other job of its queue may have the key; None for none."""
    keep: int = 0
    """How long the key stays reserved after the end of the job, in milliseconds."""
    limit: int = 0
    """LIMIT: the number of deliveries without an acknowledgement after which it is dead; 0 is
    never."""
    dead: DeadState = ALIVE
    backoff: Millis = 0
    """The wait after the first NACK without DELAY, in milliseconds; each further one doubles it."""
    max_backoff: Millis = 0
    """The longest such wait."""
    follows: int = 0
    """FOLLOWS or HAS_FOLLOWED; 0 for a job that was added when its key was free."""
    snoozes: int = 0
    """How often RELEASE DELAY has postponed it, according to this node."""
    error: LastError = NO_ERROR
    """The error of the last NACK that had one, according to this node."""
    unknown: tuple[tuple[int, bytes], ...] = ()
    """Fields of a later version, number and value: kept and forwarded."""

    @property
    def needs(self) -> int:
        """The capabilities that a node must have to keep the job. A node without any of them can
        keep a job only without its count of snoozes and its error."""
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
        """The extensions that a node with these capabilities keeps; they must include those that
        the job `needs`."""
        if not capabilities & EXTENDS:
            return None
        if not self.error.at or capabilities & ERRORS:
            return self
        rest = attrs.evolve(self, error=NO_ERROR)
        return None if rest == NO_EXTENSIONS else rest

    @property
    def weight(self) -> int:
        """The size of the record in memory, in bytes."""
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
        """Names and values as in SHOW, without defaults."""
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
    """The capabilities that a node must have to keep a job with these periods and extensions. An
    original node misreads long periods; every node with EXTENDS supports them."""
    own = 0 if extensions is None else extensions.needs
    return own | EXTENDS if delay > _ORIGINAL_PERIOD or retry > _ORIGINAL_PERIOD else own
