"""The trio engine, and what it shares with the heap engine: whole nodes in virtual time."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Protocol

import pytest
import trio
from trio._core import _run

from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.engines.heap import run as heap_run
from disque_trio.sim.engines.heap.nodes import MachineError
from disque_trio.sim.engines.heap.run import Outcome, Run
from disque_trio.sim.engines.trio import run as trio_run
from disque_trio.sim.engines.trio import virtual_time
from disque_trio.sim.engines.trio.virtual_time import DeadlockError, seeded_scheduler
from disque_trio.sim.scenarios.plan import Expect, Fault, Plan
from disque_trio.sim.workload.operators import Operator, Pending
from disque_trio.statemachine.base import Now
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.rows import Command
from disque_trio.statemachine.machine import Machine
from disque_trio.tracing.rows import Row
from tests.sim.plans import DUPLICATES, SECOND, jepsen, jobs, workers


class Engine(Protocol):
    def __call__(self, plan: Plan, observer: Callable[[Row], None], /) -> Outcome: ...


NODES = {"heap": heap_run.simulate, "trio": trio_run.simulate}
ENGINES = pytest.mark.parametrize("engine", NODES.values(), ids=NODES)


def judged(plan: Plan, engine: Engine) -> tuple[Verdict, Counter[str], Outcome]:
    checkers, kinds = judge(plan), Counter[str]()

    def observe(row: Row) -> None:
        checkers.see(row)
        kinds[row.kind] += 1

    outcome = engine(plan, observe)
    return checkers.finish(), kinds, outcome


# Trio itself.


def test_trio_still_has_the_switch_and_the_source_of_its_scheduler() -> None:
    switch, state = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate()

    with seeded_scheduler("a seed"):
        assert _run._ALLOW_DETERMINISTIC_SCHEDULING

    assert switch == _run._ALLOW_DETERMINISTIC_SCHEDULING
    assert _run._r.getstate() == state


def interleaving(seed: str) -> str:
    order: list[str] = []

    async def work(name: str) -> None:
        for _ in range(5):
            order.append(name)
            await trio.sleep(1)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for name in "abcd":
                nursery.start_soon(work, name)

    virtual_time.run(seed, main)
    return "".join(order)


def test_the_seed_decides_which_task_goes_first() -> None:
    assert interleaving("1") == interleaving("1")
    assert len({interleaving(str(seed)) for seed in range(10)}) > 5


def test_time_jumps_from_deadline_to_deadline() -> None:
    async def main() -> float:
        await trio.sleep(1_000_000)
        return trio.current_time()

    assert virtual_time.run("", main) == 1_000_000


def test_tasks_that_only_wait_for_each_other_are_found_out() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever, name="sleeper")
            await trio.Event().wait()

    with pytest.raises(DeadlockError, match="sleeper"):
        virtual_time.run("", main)


# The engine.


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_jepsen_run_loses_nothing_in_either_engine(seed: int) -> None:
    plan = jepsen(seed)

    heap, heap_kinds, _ = judged(plan, heap_run.simulate)
    nodes, node_kinds, _ = judged(plan, trio_run.simulate)

    assert heap.violations == nodes.violations == ()
    assert heap.lost == nodes.lost == 0
    assert abs(heap_kinds["add.ok"] - node_kinds["add.ok"]) <= 10
    assert abs(heap.deliveries - nodes.deliveries) <= 10
    assert node_kinds["lost"] > 0


STORMS = [
    Fault(kind="crash", at=SECOND, hold=3 * SECOND, nodes=(2,)),
    Fault(kind="pause", at=2 * SECOND, hold=4 * SECOND, nodes=(3,)),
    Fault(kind="slow", at=0, hold=8 * SECOND, nodes=(1,), amount=20),
    Fault(kind="clog", at=2 * SECOND, hold=3 * SECOND, links=((1, 2), (2, 1))),
    Fault(kind="wipe", at=2 * SECOND, nodes=(3,)),
    Fault(kind="clock-step", at=2 * SECOND, nodes=(1,), amount=-3_600_000),
    Fault(kind="clock-rate", at=SECOND, hold=5 * SECOND, nodes=(2,), amount=400),
    Fault(kind="leave", at=SECOND, hold=5 * SECOND, nodes=(3,)),
    Fault(kind="join", at=SECOND, nodes=(4,)),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("fault", STORMS, ids=lambda fault: fault.kind)
def test_a_fault_has_the_same_effect_however_nodes_are_driven(fault: Fault) -> None:
    plan = Plan(
        scenario=fault.kind,
        seed=5,
        nodes=3,
        adds=jobs(40, 200_000, 3, replicate=2),
        consumers=workers(3),
        faults=(fault,),
        chaos=9 * SECOND,
        config=(("cluster-node-timeout", "1000"),),
        expect=Expect(duplicates=("D3a", *DUPLICATES)),
    )

    heap, heap_kinds, _ = judged(plan, heap_run.simulate)
    nodes, node_kinds, _ = judged(plan, trio_run.simulate)

    assert heap.violations == nodes.violations == ()
    assert nodes.lost == 0
    assert abs(heap.deliveries - nodes.deliveries) <= 4
    for kind in ("crash", "start", "pause", "resume", "clog", "wipe", "clock.step", "leave"):
        assert node_kinds[kind] == heap_kinds[kind], kind


# Orderly stops.


def stopped(*faults: Fault, hold: int = 2 * SECOND) -> Plan:
    """A node with forty jobs in its queue and a journal, which is told to end after a second."""
    stop = Fault(kind="crash", at=SECOND, hold=hold, mode="stop", nodes=(1,))
    return Plan(
        scenario="stop",
        seed=1,
        nodes=1,
        adds=jobs(40, 10_000, 1),
        faults=(stop, *faults),
        chaos=4 * SECOND,
        drain=SECOND // 2,
        config=(("appendonly", "yes"), ("aof-queues", "no")),
    )


def ends_and_queues(plan: Plan, engine: Engine) -> tuple[list[tuple[str, str]], int]:
    """How its processes ended, and how many jobs were queued again as they were."""
    rows: list[Row] = []
    checkers = judge(plan)

    def observe(row: Row) -> None:
        checkers.see(row)
        rows.append(row)

    engine(plan, observe)
    assert checkers.finish().violations == ()
    ends = [(row.cause, row.detail) for row in rows if row.kind == "crash"]
    return ends, sum((row.kind, row.cause) == ("queue", "loaded") for row in rows)


@ENGINES
@pytest.mark.parametrize("hold", [0, 2 * SECOND])
def test_a_node_that_is_stopped_in_order_has_its_queues_again(engine: Engine, hold: int) -> None:
    plan = stopped(hold=hold or SECOND // 50)  # It is to start before it has ended, or later.

    assert ends_and_queues(plan, engine) == ([("stop", "queues")], 40)


@ENGINES
def test_a_disk_without_room_keeps_no_queues(engine: Engine) -> None:
    full = Fault(kind="disk-full", at=SECOND // 2, hold=3 * SECOND, nodes=(1,))

    assert ends_and_queues(stopped(full), engine) == ([("stop", "")], 0)


@ENGINES
def test_a_paused_process_ends_when_it_goes_on(engine: Engine) -> None:
    pause = Fault(kind="pause", at=SECOND // 2, hold=SECOND, nodes=(1,))
    plan = stopped(pause)
    rows: list[Row] = []

    engine(plan, rows.append)

    [end] = [row for row in rows if row.kind == "crash"]
    assert (end.cause, end.detail) == ("stop", "queues")
    assert 3 * SECOND // 2 <= end.time < 5 * SECOND // 2


@ENGINES
def test_a_kill_in_the_middle_of_a_stop_keeps_no_queues(engine: Engine) -> None:
    kill = Fault(kind="crash", at=SECOND + SECOND // 100, hold=SECOND, nodes=(1,))

    assert ends_and_queues(stopped(kill), engine) == ([("kill", "")], 0)


class Fragile(Machine):
    """Raises at the third job."""

    def request(self, client: Client, args: list[bytes], now: Now) -> Command | None:
        if args[0] == b"ADDJOB" and len(self.state.jobs) == 2:
            raise ZeroDivisionError("of course")
        return super().request(client, args, now)


@pytest.mark.parametrize("engine", [heap_run, trio_run], ids=NODES)
def test_a_machine_that_raises_fails_the_run(engine: ModuleType) -> None:
    plan = Plan(scenario="", seed=1, nodes=1, adds=jobs(3, 1000, 1), chaos=SECOND)

    with pytest.raises(MachineError, match=r"n1 at .*of course"):
        engine.simulate(plan, machine_factory=Fragile)


def test_a_node_that_is_told_to_end_is_down() -> None:
    plan = Plan(scenario="", seed=1, nodes=2, chaos=SECOND, drain=SECOND)
    rows: list[Row] = []

    def look(run: Run) -> None:
        if run.engine.now == 0:
            run.world.command(run.world.hosts[1], "SHUTDOWN")

    trio_run.simulate(plan, rows.append, messages=False, look=look)

    assert [(row.node, row.cause) for row in rows if row.kind == "crash"] == [("n1", "stop")]


def test_a_node_that_is_told_to_end_is_down_on_the_heap_too() -> None:
    plan = Plan(scenario="", seed=1, nodes=2, chaos=SECOND, drain=SECOND)
    rows: list[Row] = []
    run = heap_run.run_on_heap(plan, rows.append, messages=False)

    for until in run.parts():
        if run.engine.now == 0:
            run.world.command(run.world.hosts[1], "SHUTDOWN")
        run.engine.run(until)

    assert run.world.hosts[1].machine is None
    run.recorder.flush()
    assert [(row.node, row.cause) for row in rows if row.kind == "crash"] == [("n1", "stop")]


def test_a_napping_node_on_the_heap_answers_when_it_wakes() -> None:
    plan = Plan(scenario="", seed=1, nodes=1, chaos=SECOND, drain=3 * SECOND)
    operator = Operator("someone")
    run = heap_run.run_on_heap(plan, messages=False)
    pending = None
    replied: list[int] = []

    for until in run.parts():
        if run.engine.now == 0:
            run.world.command(run.world.hosts[1], "DEBUG", "SLEEP", "2")
            pending = operator.ask(1, ["PING"])
            run.world.add_agent(operator)
        run.engine.run(until)
        if pending is not None and pending.is_done and not replied:
            replied.append(run.engine.now)

    assert replied
    assert 2 * SECOND <= replied[0] < 3 * SECOND


def test_a_napping_node_answers_when_it_wakes() -> None:
    plan = Plan(scenario="", seed=1, nodes=1, chaos=SECOND, drain=3 * SECOND)
    operator = Operator("someone")
    pending: list[Pending] = []
    replied: list[int] = []

    def look(run: Run) -> None:
        if run.engine.now == 0:
            run.world.command(run.world.hosts[1], "DEBUG", "SLEEP", "2")
            pending.append(operator.ask(1, ["PING"]))
            run.world.add_agent(operator)
        if any(each.is_done for each in pending):
            replied.append(run.engine.now)

    trio_run.simulate(plan, messages=False, look=look)

    assert replied
    assert 2 * SECOND <= replied[0] < 3 * SECOND


DIGEST = """
from disque_trio.sim.engines.{engine} import run
from tests.sim.plans import jepsen
print(run.simulate(jepsen(7, cycles=1)).digest)
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("engine", NODES)
def test_a_seed_has_one_digest_whatever_the_hashes(engine: str) -> None:
    def digest(hashes: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", DIGEST.format(engine=engine)],
            env={**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": os.getcwd()},
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout.strip()

    digests = {digest("1"), digest("2"), digest("random")}

    assert digests == {NODES[engine](jepsen(7, cycles=1)).digest}


@pytest.mark.slow
def test_another_seed_has_another_digest() -> None:
    digests = {trio_run.simulate(jepsen(seed, cycles=1)).digest for seed in range(3)}

    assert len(digests) == 3
