"""The outcomes of the operations on nodes: what holds afterwards."""

import pytest
import trio

from disque_trio.client.address import Address
from disque_trio.observe.operations import OPERATIONS
from disque_trio.worker.operating.plans import Outcome
from tests.observe.rig import Observed, observed


async def operate(seen: Observed, key: str, place: int) -> list[str]:
    """Carry out the operation on this node; return its lines without the node's name."""
    node = seen.nodes[place].state.cluster.myself.id.decode()
    plan, outcome = await OPERATIONS[key].planned(seen.client, {"node": node}), Outcome()
    await plan.run(outcome, lambda _: None)
    assert not outcome.failed
    return [line.removeprefix(f"{node[:8]}: ") for line in outcome.says]


@pytest.mark.parametrize(
    ("jobs", "left"),
    [
        (0, "no jobs left; it can be stopped"),
        (1, "1 job left; stop it when INFO jobs shows registered_jobs:0"),
    ],
)
async def test_a_node_that_leaves_reports_the_jobs_that_it_has_left(
    nursery: trio.Nursery, jobs: int, left: str
) -> None:
    seen = await observed(nursery, 2)
    for _ in range(jobs):
        await seen.client.addjob("mail", "x", replicate=2, delay=600)

    says = await operate(seen, "nodes leave", 0)

    assert says == ["accepts no new jobs", left]
    assert seen.nodes[0].state.cluster.is_leaving
    assert await operate(seen, "nodes stay", 0) == ["stays, and accepts new jobs"]
    assert not seen.nodes[0].state.cluster.is_leaving


async def test_a_node_without_info_leaves_without_a_number(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2, renamed=(("INFO", ""),))

    says = await operate(seen, "nodes leave", 1)

    assert says == ["accepts no new jobs", "stop it when INFO jobs shows registered_jobs:0"]


async def test_nodes_report_whom_they_forgot_and_whom_they_meet(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    other = str(Address(port=seen.nodes[1].state.config.port))

    [forgot] = await operate(seen, "nodes forget", 1)
    plan = await OPERATIONS["nodes meet"].planned(seen.client, {"address": other})
    await plan.run(outcome := Outcome(), lambda _: None)

    assert forgot.endswith(": forgot it")
    assert outcome.says[0].endswith(f": connects to {other}")
