"""Ranges and choices of a scenario, which are drawn for every seed."""

import math
import random

import attrs


@attrs.frozen
class Range:
    """From `low` to `high`, both included. A range of one value takes nothing from the stream."""

    low: float
    high: float
    is_log: bool = False
    """Every order of magnitude is equally likely, instead of every value."""

    def draw(self, rng: random.Random) -> float:
        """A number; rounded, since the last bits of a power differ between C libraries."""
        if self.low == self.high:
            return self.low
        if self.is_log:
            return round(self.low * math.pow(self.high / self.low, rng.random()), 6)
        return round(self.low + (self.high - self.low) * rng.random(), 6)

    def draw_int(self, rng: random.Random) -> int:
        """A whole number."""
        if self.low == self.high:
            return int(self.low)
        if self.is_log:
            return int(self.draw(rng))
        return rng.randint(int(self.low), int(self.high))

    @property
    def span(self) -> tuple[int, int]:
        """Least and most, for draws during the run."""
        return int(self.low), int(self.high)


@attrs.frozen
class Choice:
    """One of some ranges; None stands for the default of the option."""

    options: tuple[Range | None, ...]

    def draw_int(self, rng: random.Random) -> int | None:
        """A whole number, or None for the default."""
        option = self.options[0] if len(self.options) == 1 else rng.choice(self.options)
        return None if option is None else option.draw_int(rng)

    def draw(self, rng: random.Random) -> float | None:
        """A number, or None for the default."""
        option = self.options[0] if len(self.options) == 1 else rng.choice(self.options)
        return None if option is None else option.draw(rng)


DEFAULT = Choice((None,))


def fixed(value: float) -> Range:
    """A range of one value."""
    return Range(value, value)
