"""Nodes short of memory in the simulator, and bodies that are put aside."""

import attrs

from disque_trio.sim.engines.heap.links import whole_bodies
from disque_trio.sim.engines.heap.ports import SpillInMemory
from disque_trio.sim.scenarios.plan import Fault
from disque_trio.statemachine.messages import ReplJob, YourJobs
from tests.rig import copy_of
from tests.sim.runs import SECOND, between, of, plan, play


def squeeze(second: int, hold: int, share: float, *nodes: int, mode: str = "") -> Fault:
    return Fault(
        kind="memory",
        at=second * SECOND,
        hold=hold * SECOND,
        nodes=nodes,
        amount=round(share * 1_000_000),
        mode=mode,
    )


def test_a_node_without_memory_refuses_jobs_until_it_has_some() -> None:
    rows = play(plan(squeeze(4, 4, 1.5, 1, 2, 3)))

    assert [row.detail == "0" for row in of(rows, "memory")] == [False] * 3 + [True] * 3
    refused = of(between(rows, 4, 8), "add.refused")
    assert {row.cause for row in refused} == {"OOM"}
    assert not of(between(rows, 4.1, 8), "add.ok")
    assert of(between(rows, 8.1, 20), "add.ok")


def test_a_process_that_is_too_large_refuses_jobs_though_its_account_has_room() -> None:
    rows = play(plan(squeeze(4, 4, 1.5, 1, 2, 3, mode="resident-size")))

    limits = [int(row.detail) for row in of(rows, "memory")]
    assert all(limits[:3])
    assert not any(limits[3:])
    assert {row.cause for row in of(between(rows, 4, 8), "add.refused")} == {"OOM"}
    assert of(between(rows, 8.1, 20), "add.ok")


def test_a_node_that_is_down_has_no_memory_to_take_away() -> None:
    crash = Fault(kind="crash", at=3 * SECOND, hold=10 * SECOND, nodes=(1,))

    rows = play(plan(crash, squeeze(4, 2, 1.5, 1)))

    assert not of(rows, "memory")


def test_bodies_arrive_whole_wherever_they_have_been() -> None:
    copy = copy_of()
    (aside,) = SpillInMemory().write([b"body"])
    spilled = attrs.evolve(copy, body=aside)

    assert whole_bodies(ReplJob((spilled,), no_reply=False)) == ReplJob((copy,), no_reply=False)
    assert whole_bodies(YourJobs((spilled, copy))) == YourJobs((copy, copy))
