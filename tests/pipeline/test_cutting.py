"""Pieces of a sweep: their sizes, their order, and how soon all processors are done."""

import heapq
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs
import pytest

from disque_trio.cli.sim import spark
from disque_trio.cli.sim.cutting import Cutter, Outcome, Piece
from disque_trio.cli.sim.execution import Result
from disque_trio.cli.sim.pool import Done, Task
from disque_trio.cli.sim.sources import scenario_from
from disque_trio.sim.scenarios.scenario import Scenario
from tests.pipeline.test_sweep_on_cluster import scenario

PROCESSORS: Final = 8


@pytest.fixture
def calm(tmp_path: Path) -> Scenario:
    return scenario_from(scenario(tmp_path, "calm"))


def tasks(path: str, count: int, *, is_recheck: bool = False) -> list[Task]:
    return [Task(path, seed, "heap", 60, is_recheck) for seed in range(count)]


def outcome(piece: Piece, seed_s: float) -> Outcome:
    """As if each seed had taken so long."""
    result = Result(scenario="calm", seed=0, engine="heap", is_ok=True)
    done = tuple(Done(task, result) for task in piece.tasks)
    return Outcome(piece.tasks[0].path, done, seed_s * len(done))


def test_while_nobody_knows_what_a_seed_costs_pieces_grow(calm: Scenario) -> None:
    cutter = Cutter(tasks("a", 1000), {"a": calm}, lambda: 2)

    assert [len(next(cutter).tasks) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 64, 64]


def test_a_piece_takes_ten_seconds_by_what_those_before_have_taken(calm: Scenario) -> None:
    cutter = Cutter(tasks("a", 100_000), {"a": calm}, lambda: 2)

    cutter.learn(outcome(next(cutter), 0.1))

    assert len(next(cutter).tasks) == 100


def test_towards_the_end_pieces_get_smaller_and_nothing_is_left_out(calm: Scenario) -> None:
    cutter = Cutter(tasks("a", 400), {"a": calm}, lambda: 2)
    pieces = [next(cutter)]
    cutter.learn(outcome(pieces[0], 0.1))

    pieces += list(cutter)

    sizes = [len(piece.tasks) for piece in pieces]
    assert sizes[1] == 100
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    assert min(sizes[1:-1]) == 10, "a second is the least that is worth a job"
    assert [task.seed for piece in pieces for task in piece.tasks] == list(range(400))
    assert len({piece.number for piece in pieces}) == len(pieces)


def test_a_piece_is_of_one_scenario_and_second_runs_come_last(calm: Scenario) -> None:
    mixed = [*tasks("a", 1), *tasks("a", 1, is_recheck=True), *tasks("b", 1)]

    found = list(Cutter(mixed, {"a": calm, "b": calm}, lambda: 2))

    assert [[(task.path, task.is_recheck) for task in piece.tasks] for piece in found] == [
        [("a", False)],
        [("b", False)],
        [("a", True)],
    ]


def test_seeds_that_take_longer_than_a_piece_are_run_one_by_one(calm: Scenario) -> None:
    cutter = Cutter(tasks("a", 100), {"a": calm}, lambda: 2)

    cutter.learn(outcome(next(cutter), 60.0))

    assert len(next(cutter).tasks) == 1


# Skewed costs, on processors that exist in virtual time only.

Cost = Callable[[Task], float]


def swept(cutter: Cutter, cost: Cost) -> tuple[float, list[Task]]:
    """When the last of some processors is done, and what was run in which order."""
    free = [0.0] * PROCESSORS
    under_way: list[tuple[float, int, Outcome]] = []
    order: list[Task] = []
    while True:
        while len(under_way) < PROCESSORS and (piece := next(cutter, None)) is not None:
            begun = heapq.heappop(free)
            took, done = spent(piece, cost)
            order += piece.tasks[:done]
            finished = outcome(attrs.evolve(piece, tasks=piece.tasks[:done]), took / done)
            left = attrs.evolve(finished, left=piece.tasks[done:])
            heapq.heappush(under_way, (begun + took, piece.number, left))
        if not under_way:
            return max(free), order
        now, _, finished = heapq.heappop(under_way)
        free = [max(time, now) for time in free]
        heapq.heappush(free, now)
        cutter.learn(finished)


def spent(piece: Piece, cost: Cost) -> tuple[float, int]:
    """How long a piece takes, and how many of its seeds it runs, as `run_seeds` does it."""
    took = 0.0
    for number, task in enumerate(piece.tasks, 1):
        took += cost(task)
        if took > spark.TOO_LONG_S:
            return took, number
    return took, len(piece.tasks)


def best(tasks: Sequence[Task], cost: Cost) -> float:
    """No schedule is faster."""
    costs = [cost(task) for task in tasks]
    return max(sum(costs) / PROCESSORS, *costs)


@pytest.mark.parametrize("place", [0, 1, 400, 798, 799])
def test_a_seed_a_hundred_times_as_long_holds_nobody_up_if_a_sweep_has_seen_it(
    calm: Scenario, place: int
) -> None:
    def cost(task: Task) -> float:
        return 100.0 if task.seed == place else 1.0

    known = [attrs.evolve(task, expected_s=cost(task)) for task in tasks("a", 800)]
    seconds, order = swept(Cutter(known, {"a": calm}, lambda: PROCESSORS), cost)

    assert seconds < 1.1 * best(known, cost)
    assert sorted(task.seed for task in order) == list(range(800))


@pytest.mark.parametrize("place", [0, 1, 200, 400, 799])
def test_if_nobody_has_seen_it_only_its_own_processor_waits_for_it(
    calm: Scenario, place: int
) -> None:
    def cost(task: Task) -> float:
        return 100.0 if task.seed == place else 1.0

    unknown = tasks("a", 800)
    seconds, order = swept(Cutter(unknown, {"a": calm}, lambda: PROCESSORS), cost)

    others = 799 / PROCESSORS
    assert seconds < 1.1 * max(best(unknown, cost), others * place / 800 + 100)
    assert sorted(task.seed for task in order) == list(range(800))


def test_a_scenario_of_long_seeds_does_not_come_last_however_late_it_is_named(
    calm: Scenario,
) -> None:
    def cost(task: Task) -> float:
        return 10.0 if task.path == "dear" else 0.1

    mixed = [*tasks("cheap", 800), *tasks("dear", PROCESSORS + 1)]
    cutter = Cutter(mixed, {"cheap": calm, "dear": calm}, lambda: PROCESSORS)
    seconds, _ = swept(cutter, cost)

    assert seconds < 1.1 * best(mixed, cost)


def test_what_waits_behind_a_long_seed_is_given_to_others(calm: Scenario) -> None:
    cutter = Cutter(tasks("a", 10), {"a": calm}, lambda: 1)
    cutter.learn(outcome(next(cutter), 1.0))
    piece = next(cutter)

    cutter.learn(attrs.evolve(outcome(piece, 1.0), left=piece.tasks[1:]))

    again = next(cutter)
    assert again.tasks[0] == piece.tasks[1]
    assert again.number != piece.number
