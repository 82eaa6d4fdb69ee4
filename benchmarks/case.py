"""The parts of the comparison: cases, their figures, and the targets."""

import enum
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from benchmarks.contenders import DISQUE, Kind, Subject
from benchmarks.programs import Place


@attrs.frozen
class Figure:
    """A measured quantity."""

    name: str
    unit: str
    more_is_better: bool = False

    def ratio(self, ours: float, theirs: float) -> float | None:
        """How many times better ours is: above 1 is better, in either direction.

        None if one of them is 0.
        """
        over, under = (ours, theirs) if self.more_is_better else (theirs, ours)
        return over / under if under and over else None


SPEED: Final = Figure("speed", "ops/s", more_is_better=True)
CPU: Final = Figure("cpu", "CPU µs/op")
"""CPU time of all the server's processes, which other load on the machine hardly changes."""
RATE: Final = (SPEED, CPU)


ALONE: Final = Place("alone")
FRESH: Final = Place("fresh", is_fresh=True)
THREE: Final = Place("three", nodes=3)
SEVEN: Final = Place("seven", nodes=7)
EVERYSEC: Final = Place("everysec", journal="everysec")
ALWAYS: Final = Place("always", journal="always")
THREE_EVERYSEC: Final = Place("three-everysec", nodes=3, journal="everysec")
THREE_ALWAYS: Final = Place("three-always", nodes=3, journal="always")
NOWHERE: Final = Place("nowhere", nodes=0)
"""Without a server: code of ours is measured in this process."""

Sample = dict[str, float]
"""A value for each figure, by name."""
Measure = Callable[[Subject, float], Sample]
"""Takes a sample. The number is its size: 1 as in the table, less for a quick check."""


@attrs.frozen
class Case:
    """One row of the table, or a few of them, one for each figure."""

    name: str
    title: str
    measure: Measure
    place: Place = ALONE
    figures: Sequence[Figure] = RATE
    kinds: frozenset[Kind] = DISQUE
    rounds: int = 100
    """The limit for the number of rounds, for cases that take long."""
    is_by_server: bool = False
    """In a table with a row for each server, because it has many of them."""


class Demand(enum.Enum):
    """How a figure of ours is compared with its target."""

    RATIO = "so many times as good as another's, at least"
    EXCESS = "so much more than the original's, at most"
    GROWTH = "from one case to another it grows so many times, at most"
    VALUE = "at least that"
    LIMIT = "less than that"


@attrs.frozen
class Target:
    """A bound that a figure must meet."""

    case: str
    figure: str
    demand: Demand
    bound: float
    since: str = ""
    """The case that growth is relative to."""
    against: str = ""
    """The contender that a ratio is to; the original if empty."""
