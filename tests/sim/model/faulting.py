"""What the tests of faults begin with."""

from disque_trio.sim.scenarios.plan import Fault
from disque_trio.tracing.rows import Row
from tests.sim.runs import SECOND


def at(second: float, kind: str, hold: float = 0, **rest: object) -> Fault:
    times = {"at": int(second * SECOND), "hold": int(hold * SECOND)}
    return Fault(kind=kind, **times, **rest)  # type: ignore[arg-type]


def pairs(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.node, row.peer) for row in rows]
