"""Results of the end of a run, besides violations."""

from typing import Final

import attrs

from disque_trio.sim.scenarios.plan import Micros

TOO_SHORT: Final = "the bound lies beyond the end of the run"


@attrs.define
class Findings:
    """Results of the end of a run."""

    lost: list[str] = attrs.Factory(list)
    """Jobs that were added, never delivered and are on no node, with nothing that excuses the
    loss."""
    excused: list[str] = attrs.Factory(list)
    """Lost jobs of which faults destroyed as many copies as were required."""
    lost_once: list[str] = attrs.Factory(list)
    """Jobs with RETRY 0 that were never delivered, with a known cause."""
    open: dict[str, dict[str, int]] = attrs.Factory(dict)
    """By property and reason: the number of jobs or links that were not judged."""
    redelivery: list[Micros] = attrs.Factory(list)

    def leave_open(self, name: str, why: str = TOO_SHORT) -> None:
        """Count a job or link that is not judged."""
        counts = self.open.setdefault(name, {})
        counts[why] = counts.get(why, 0) + 1
