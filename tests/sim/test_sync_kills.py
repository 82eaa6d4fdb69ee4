"""ADDJOB REPLICATE 3 SYNC 2, with a node killed at every moment of it."""

from typing import Final

import attrs
import pytest

from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.scenarios.plan import Add, Consumer, Fault, Plan
from tests.sim.runs import SECOND, of, plan, play

ADDED: Final = SECOND
UNTIL: Final = 3 * SECOND
"""By then the third copy has been made again, too."""
ADD: Final = Add(
    at=ADDED,
    node=1,
    producer="p1",
    queue="q",
    body="b",
    timeout_ms=2000,
    replicate=3,
    sync=2,
    retry_s=1,
    ttl_s=3600,
)
CONSUMERS: Final = tuple(
    Consumer(name=f"c{node}", node=node, queues=("q",), start=5 * SECOND) for node in (1, 2, 3)
)


def adding(*faults: Fault, nodes: int = 3) -> Plan:
    """One job, and consumers long after."""
    return attrs.evolve(
        plan(*faults, nodes=nodes, jobs=0, seconds=10), adds=(ADD,), consumers=CONSUMERS
    )


def moments(nodes: int) -> list[int]:
    """When anything happens to the job, and the moments behind."""
    rows = [row for row in play(adding(nodes=nodes)) if ADDED <= row.time <= UNTIL]
    times = {row.time for row in rows if row.job or row.kind.startswith("add.")}
    return sorted({moment for time in times for moment in (time, time + 1)})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["crash", "remove"])
@pytest.mark.parametrize("nodes", [3, 4])
def test_no_job_is_lost_if_a_node_is_killed_at_any_moment_of_its_addjob(
    nodes: int, kind: str
) -> None:
    times = moments(nodes)
    answered = 0
    assert len(times) > 10

    for at in times:
        for victim in (1, 2, 3):
            hold = SECOND if kind == "crash" else 0
            killed = adding(Fault(kind=kind, at=at, hold=hold, nodes=(victim,)), nodes=nodes)
            rows, judged = play(killed), judge(killed)
            for row in rows:
                judged.see(row)

            verdict = judged.finish()
            assert verdict.violations == (), (at, victim)
            assert verdict.lost == 0
            if of(rows, "add.ok"):
                answered += 1
                assert of(rows, "get.deliver"), f"n{victim} killed at {at}, and nobody has the job"

    assert answered > len(times), "most ADDJOBs are answered"
