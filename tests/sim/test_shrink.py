from functools import partial
from pathlib import Path

import attrs
import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.plan import Add, Consumer, Fault, Plan
from disque_trio.sim.shrink import Shrinker, operations
from disque_trio.statemachine import lifecycle
from disque_trio.statemachine.base import LinkId, Now
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Frame, Queued

SECOND = 1_000_000


def _add(number: int, at: int = 0) -> Add:
    return Add(at=at, node=1 + number % 5, producer="p1", queue="q", body=f"p1-{number}")


def _plan(adds: int, faults: int) -> Plan:
    return Plan(
        scenario="x",
        seed=1,
        nodes=5,
        adds=tuple(_add(number, number * SECOND + 123_456) for number in range(adds)),
        consumers=tuple(Consumer(name=f"c{n}", node=n, queues=("q",)) for n in range(1, 6)),
        faults=tuple(
            Fault(kind="crash" if n % 2 else "pause", at=n * 2 * SECOND + 1, nodes=(1 + n % 5, 4))
            for n in range(faults)
        ),
    )


def test_only_what_it_takes_is_left() -> None:
    plan = _plan(40, 20)
    wanted = {plan.adds[7].body, plan.adds[31].body}

    def fails(smaller: Plan) -> bool:
        has_crash = any(fault.kind == "crash" for fault in smaller.faults)
        return has_crash and wanted <= {add.body for add in smaller.adds}

    smallest = Shrinker(fails).shrink(plan)

    assert {add.body for add in smallest.adds} == wanted
    assert smallest.consumers == ()
    assert len(smallest.faults) == 1
    assert len(smallest.faults[0].nodes) == 1


def test_nodes_that_nobody_needs_go() -> None:
    smallest = Shrinker(lambda plan: plan.nodes >= 3).shrink(_plan(10, 4))

    assert smallest.nodes == 3
    assert operations(smallest) == 0


def test_all_nodes_become_of_this_version() -> None:
    plan = attrs.evolve(_plan(10, 4), versions=(("0", "3"),))

    assert Shrinker(lambda smaller: smaller.nodes >= 3).shrink(plan).versions == ()


def test_times_become_short_and_round() -> None:
    plan = _plan(12, 0)

    smallest = Shrinker(lambda smaller: len(smaller.adds) >= 3).shrink(plan)

    assert [add.at % SECOND for add in smallest.adds] == [0, 0, 0]
    assert smallest.chaos < plan.chaos


def test_the_time_before_anything_happens_goes() -> None:
    plan = attrs.evolve(_plan(0, 0), adds=(_add(1, 40 * SECOND),), chaos=50 * SECOND)

    smallest = Shrinker(lambda smaller: len(smaller.adds) == 1).shrink(plan)

    assert smallest.adds[0].at == 0
    assert smallest.chaos <= SECOND * 10


def test_a_node_that_goes_takes_its_part_of_every_fault_along() -> None:
    plan = attrs.evolve(
        _plan(0, 0),
        consumers=(),
        faults=(
            Fault(kind="partition", groups=((1, 2), (3, 4, 5))),
            Fault(kind="cut", links=((1, 5), (1, 2), (5, 1))),
            Fault(kind="pause", nodes=(5,)),
        ),
    )

    def fails(smaller: Plan) -> bool:
        kinds = [fault.kind for fault in smaller.faults]
        return "partition" in kinds and "cut" in kinds

    smallest = Shrinker(fails).shrink(plan)

    assert smallest.nodes == 3
    assert [fault.groups for fault in smallest.faults] == [((1, 2), (3,)), ()]


def test_a_budget_ends_the_search_with_the_best_so_far() -> None:
    shrinker = Shrinker(lambda plan: len(plan.adds) >= 2, budget=5)

    smallest = shrinker.shrink(_plan(40, 20))

    assert shrinker.runs == 5
    assert shrinker.is_spent
    assert 2 <= len(smallest.adds) <= 40


def test_a_plan_that_cannot_be_cut_stays_as_it_is() -> None:
    plan = _plan(3, 2)

    assert Shrinker(lambda smaller: smaller == plan).shrink(plan) == plan


class Forgetful(Machine):
    """Planted: "somebody else has queued it, so I do not need my copy any more"."""

    def message(self, link: LinkId, frame: Frame, now: Now) -> None:
        super().message(link, frame, now)
        if isinstance(frame.message, Queued):
            job = self.state.jobs.get(frame.message.id)
            if job is not None:
                lifecycle.unregister(self.state, job, Cause.DELJOB)


BUSY = """
schema = 1
name = "busy"
[cluster]
nodes = 4
[[producer]]
at = "all"
rate = 1
job = { replicate = 3, retry = "1s" }
[[consumer]]
at = "all"
work = "1s..2s"
[[fault]]
kind = "crash"
every = "2s..4s"
hold = "1s"
[[fault]]
kind = "pause"
every = "3s"
hold = "500ms"
[end]
chaos = "20s"
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 0])
def test_a_planted_bug_that_loses_jobs_shrinks_to_six_operations(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "busy.toml"
    path.write_text(BUSY)
    plan = expand(load(path), seed)
    forgetful = partial(simulate, machine_factory=Forgetful)

    def loses(smaller: Plan) -> bool:
        return execute(smaller, run=forgetful).result.lost > 0

    assert loses(plan)

    shrinker = Shrinker(loses)
    smallest = shrinker.shrink(plan)

    assert operations(plan) > 80
    assert operations(smallest) <= 6
    assert loses(smallest)
    assert execute(smallest).result.lost == 0
