"""Ten thousand ADDJOBs that want one of a thousand keys at the same moment, through five nodes."""

import pytest

from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Add, Latency, LinkPlan, Plan
from disque_trio.tracing.rows import Row

KEYS = 1_000
EACH = 10
NODES = 5
SECOND = 1_000_000


def crowd(seed: int, keys: int) -> Plan:
    """Each key is wanted ten times, twice at each node."""
    adds = [
        Add(
            at=SECOND,
            node=1 + number % NODES,
            producer=f"p{number % NODES}-{number // NODES % 200}",
            queue="q",
            body=f"job {number}",
            timeout_ms=30_000,
            replicate=3,
            retry_s=300,
            unique=f"k{number // EACH}",
            pipeline=10,
        )
        for number in range(keys * EACH)
    ]
    return Plan(
        scenario="crowd",
        seed=seed,
        nodes=NODES,
        link=LinkPlan(latency=Latency(fast=(500, 5_000))),
        adds=tuple(adds),
        chaos=30 * SECOND,
        drain=SECOND,
        vector_clocks=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_there_is_one_job_for_each_key_and_everybody_has_its_id(seed: int) -> None:
    plan = crowd(seed, KEYS)
    judging = judge(plan)
    born: list[str] = []
    told: dict[tuple[str, int], str] = {}

    def see(row: Row) -> None:
        judging.see(row)
        if row.kind == "hold" and row.cause == "add":
            born.append(row.job)
        elif row.kind == "add.ok":
            told[row.client, row.ref] = row.job

    simulate(plan, see)

    assert not judging.case.violations
    assert len(born) == KEYS
    assert len(told) == KEYS * EACH
    assert sorted(set(told.values())) == sorted(born)
