"""Results of the end of a run, besides violations."""

import attrs

from disque_trio.sim.scenarios.plan import Micros


@attrs.define
class Findings:
    """Results of the end of a run."""

    lost: list[str] = attrs.Factory(list)
    """Jobs that were added, never delivered and are on no node, without an excuse."""
    excused: list[str] = attrs.Factory(list)
    """The same, but faults have destroyed as many copies as there had to be."""
    lost_once: list[str] = attrs.Factory(list)
    """Jobs with RETRY 0 that were never delivered, with a known cause."""
    open: dict[str, int] = attrs.Factory(dict)
    """By property: jobs or links whose bound lies beyond the end of the run."""
    redelivery: list[Micros] = attrs.Factory(list)

    def leave_open(self, name: str) -> None:
        """Count a job or link for which the run was too short."""
        self.open[name] = self.open.get(name, 0) + 1
