"""One node's two clocks against true time.

The monotonic clock runs at its own rate and never goes back. The wall clock is the monotonic one
plus all steps, unless it is frozen. True time is integer microseconds and may be negative (in the
warm-up); all numbers here are integers, and none is rounded twice
(docs/simulation.md, "How links, nodes and clocks behave").
"""

from typing import Final

from disque_trio.sim.scenarios.plan import ClockPlan, Micros
from disque_trio.statemachine.base import Millis, Now

EPOCH_MS: Final[Millis] = 1_800_000_000_000
"""The reading of a true wall clock at true time 0."""
UPTIME: Final[Micros] = 1_000_000_000
"""The reading of a monotonic clock at true time 0, in microseconds: hosts have run for a while."""
_MILLION: Final = 1_000_000


class NodeClock:
    """Returns both clocks at a true time, and the true time at which the monotonic one has a
    value."""

    __slots__ = ("_base", "_frozen", "_rate", "_since", "_wall", "ppm")

    def __init__(self, plan: ClockPlan | None = None, now: Micros = 0) -> None:
        plan = plan or ClockPlan()
        self.ppm = plan.drift_ppm
        """How much faster than true time the clock runs, in parts per million."""
        self._rate = _MILLION + plan.drift_ppm
        self._since = now
        self._base = UPTIME + now
        """The monotonic clock at `_since`, in microseconds."""
        self._wall = (EPOCH_MS + plan.wall_offset_ms) * 1000 - UPTIME
        """How far the wall clock is ahead of the monotonic one."""
        self._frozen: Micros | None = None

    def now(self, true: Micros) -> Now:
        """Return both clocks."""
        now = Now(0, 0)
        self.show(now, true)
        return now

    def show(self, now: Now, true: Micros) -> None:
        """Write both clocks into an existing `Now`: a new object costs as much as the reading."""
        mono = self._base + (true - self._since) * self._rate // _MILLION
        wall = mono + self._wall if self._frozen is None else self._frozen
        now.mono = mono // 1000
        now.wall = wall // 1000
        now.micros = wall % 1000

    def when(self, mono: Millis) -> Micros:
        """Return the first true time at which the monotonic clock shows `mono`."""
        return self._since - (self._base - mono * 1000) * _MILLION // self._rate

    def set_rate(self, true: Micros, ppm: int) -> None:
        """Make the clocks run faster than true time by this rate from now on."""
        self._base += (true - self._since) * self._rate // _MILLION
        self._since = true
        self._rate = _MILLION + ppm
        self.ppm = ppm

    def step(self, ms: Millis) -> None:
        """Make the wall clock jump, even if it is frozen."""
        self._wall += ms * 1000
        if self._frozen is not None:
            self._frozen += ms * 1000

    def freeze(self, true: Micros) -> None:
        """Stop the wall clock."""
        if self._frozen is None:
            mono = self._base + (true - self._since) * self._rate // _MILLION
            self._frozen = mono + self._wall

    def thaw(self) -> None:
        """Let the wall clock run again, at the time that it would have reached."""
        self._frozen = None
