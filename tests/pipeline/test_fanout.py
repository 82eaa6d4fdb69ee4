import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from disque_trio.cli.sim import spark as sweeping
from disque_trio.cli.sim.execution import Result
from disque_trio.cli.sim.pool import Done, Task
from disque_trio.cli.sim.sources import scenario_from
from disque_trio.cli.sim.spark import Cutter, Outcome
from disque_trio.pipeline import shipping
from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.fanout import Fanout, told
from disque_trio.sim.scenario import Scenario
from tests.pipeline.test_sweep_on_cluster import scenario


def square(number: int) -> int:
    return number * number


def refuse(number: int) -> int:
    raise ValueError(f"nothing comes of {number}")


def test_each_outcome_comes_once(spark: Any) -> None:
    found = list(Fanout(spark).run(square, range(20)))

    assert sorted(found) == [number * number for number in range(20)]


def test_pieces_are_taken_only_when_they_can_be_run_soon(spark: Any) -> None:
    taken = []

    def pieces() -> Any:
        for number in range(1000):
            taken.append(number)
            yield number

    outcomes = Fanout(spark).run(square, pieces())
    next(outcomes)
    outcomes.close()

    assert len(taken) <= 4, "two run, one waits, one has come"


def test_a_piece_that_fails_for_good_ends_it_and_says_why(spark: Any) -> None:
    with pytest.raises(PipelineError, match="nothing comes of 7"):
        list(Fanout(spark).run(refuse, [7]))


def test_an_executor_that_lacks_a_package_is_told_apart() -> None:
    trace = "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'y'"

    said = told(Exception(f"Job aborted\n{trace}\n SQLSTATE: 38000\n\tat java"))

    assert "cannot import what it needs: ModuleNotFoundError: No module named 'y'." in said


def test_the_package_is_shipped_whole_and_the_same_every_time() -> None:
    content = shipping.zipped()

    names = zipfile.ZipFile(BytesIO(content)).namelist()
    assert "disque_trio/__init__.py" in names
    assert "disque_trio/cli/sim/spark.py" in names
    assert not any(name.endswith(".pyc") for name in names)
    assert content == shipping.zipped()


# Cutting.


@pytest.fixture
def calm(tmp_path: Path) -> Scenario:
    return scenario_from(scenario(tmp_path, "calm"))


def tasks(path: str, count: int, *, is_recheck: bool = False) -> list[Task]:
    return [Task(path, seed, "heap", 60, is_recheck) for seed in range(count)]


def outcome(piece: sweeping.Piece, seed_s: float) -> Outcome:
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
