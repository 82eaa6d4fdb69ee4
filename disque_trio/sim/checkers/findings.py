"""What the end of a run has shown, beside what was violated."""

import attrs

from disque_trio.sim.scenarios.plan import Micros


@attrs.define
class Findings:
    """What the end of the run has shown."""

    lost: list[str] = attrs.Factory(list)
    """Jobs that were added, never came out and are nowhere, without an excuse."""
    excused: list[str] = attrs.Factory(list)
    """The same, though faults have destroyed as many copies as were promised."""
    lost_once: list[str] = attrs.Factory(list)
    """Jobs with RETRY 0 that never came out, of which something explains where they went."""
    open: dict[str, int] = attrs.Factory(dict)
    """By property: jobs or links whose bound lies beyond the end of the run."""
    redelivery: list[Micros] = attrs.Factory(list)

    def leave_open(self, name: str) -> None:
        """The run was too short for this one."""
        self.open[name] = self.open.get(name, 0) + 1
