"""A trace of a run in which a promise is broken, from nodes that are broken on purpose."""

from pathlib import Path

import pytest

from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.traces import files
from disque_trio.tracing.rows import Row
from tests.sim.ablations import brokencopies, conditions

PROPERTY = "L1"


def trace(path: Path, seed: int = 1) -> Path:
    """Copies that sleep for ever: a job whose origin is lost is never delivered (L1)."""
    plan, rows = conditions.orphans(seed), list[Row]()
    with pytest.MonkeyPatch.context() as patch:
        brokencopies.sleeping_copies(patch)
        simulate(plan, rows.append)
    writer = files.create(str(path), plan)
    try:
        writer.write(rows)
    finally:
        writer.close()
    return path
