"""Results of the end of a run, besides violations."""

import attrs

from disque_trio.sim.scenarios.plan import Micros


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
    open: dict[str, int] = attrs.Factory(dict)
    """By property: the number of jobs or links whose bound is after the end of the run."""
    redelivery: list[Micros] = attrs.Factory(list)

    def leave_open(self, name: str) -> None:
        """Count a job or link for which the run was too short."""
        self.open[name] = self.open.get(name, 0) + 1
