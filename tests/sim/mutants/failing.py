"""A trace of a run in which a promise is broken, because a mutant ran."""

from pathlib import Path

from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.traces import files
from disque_trio.tracing.rows import Row
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.plans.conditions import orphans
from tests.sim.mutants.swapping import applied

PROPERTY = "L1"


def trace(path: Path, seed: int = 1) -> Path:
    """Copies that sleep for ever: a job whose origin is lost is never delivered (L1)."""
    plan, rows = orphans(seed), list[Row]()
    with applied(all_mutants()["sleeping-copies"]):
        simulate(plan, rows.append)
    writer = files.create(str(path), plan)
    try:
        writer.write(rows)
    finally:
        writer.close()
    return path
