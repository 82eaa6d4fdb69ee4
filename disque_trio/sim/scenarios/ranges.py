"""Ranges and choices of a scenario, drawn for every seed."""

import math
import random

import attrs


@attrs.frozen
class Range:
    """A range from `low` to `high`, both included. A range of one value draws nothing from the
    stream."""

    low: float
    high: float
    is_log: bool = False
    """Is every order of magnitude equally likely, as opposed to every value?"""

    def draw(self, rng: random.Random) -> float:
        """Return a number; it is rounded, because the last bits of a power differ between C
        libraries."""
        if self.low == self.high:
            return self.low
        if self.is_log:
            return round(self.low * math.pow(self.high / self.low, rng.random()), 6)
        return round(self.low + (self.high - self.low) * rng.random(), 6)

    def draw_int(self, rng: random.Random) -> int:
        """Return a whole number."""
        if self.low == self.high:
            return int(self.low)
        if self.is_log:
            return int(self.draw(rng))
        return rng.randint(int(self.low), int(self.high))

    @property
    def span(self) -> tuple[int, int]:
        """The smallest and the largest value, for draws during the run."""
        return int(self.low), int(self.high)


@attrs.frozen
class Choice:
    """One of some ranges; None stands for the default of the option."""

    options: tuple[Range | None, ...]

    def draw_int(self, rng: random.Random) -> int | None:
        """Return a whole number, or None for the default."""
        option = self.options[0] if len(self.options) == 1 else rng.choice(self.options)
        return None if option is None else option.draw_int(rng)

    def draw(self, rng: random.Random) -> float | None:
        """Return a number, or None for the default."""
        option = self.options[0] if len(self.options) == 1 else rng.choice(self.options)
        return None if option is None else option.draw(rng)


DEFAULT = Choice((None,))


def fixed(value: float) -> Range:
    """Return a range of one value."""
    return Range(value, value)
