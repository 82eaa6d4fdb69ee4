import time
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from threading import Event
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
from disque_trio.sim.scenarios.scenario import Scenario
from tests.cluster.processes import SOON_S, eventually
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


def dawdle(mark: str) -> None:
    time.sleep(60)  # on an executor, which is to be ended meanwhile
    Path(mark).touch()


def test_who_ends_it_does_not_wait_for_pieces_under_way(spark: Any, tmp_path: Path) -> None:
    tracker = spark.sparkContext.statusTracker()

    def pieces() -> Iterator[str]:
        yield from (str(tmp_path / name) for name in "ab")
        eventually(lambda: len(tracker.getActiveJobsIds()) == 2, 50, "both are under way")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(Fanout(spark).run(dawdle, pieces()))

    assert not list(tmp_path.iterdir()), "no piece has come to its end"
    eventually(lambda: not tracker.getActiveJobsIds(), SOON_S, "Spark has no more of them")


class Sluggish:
    """A Spark that gets jobs a moment after all were cancelled."""

    defaultParallelism = 2  # noqa: N815

    def __init__(self) -> None:
        self.sparkContext = self
        self.looks = 0
        self._is_over = Event()

    def setJobGroup(self, *_: object, **__: object) -> None:  # noqa: N802
        """Nothing to do."""

    def cancelJobGroup(self, _group: str) -> None:  # noqa: N802
        self._is_over.set()

    def statusTracker(self) -> "Sluggish":  # noqa: N802
        return self

    def getJobIdsForGroup(self, _group: str) -> list[int]:  # noqa: N802
        """The first time there are none yet."""
        self.looks += 1
        return [7, 8] if self.looks > 1 else []

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802
        return [6, 7, 8]

    def parallelize(self, *_: object) -> "Sluggish":
        return self

    def map(self, _: object) -> "Sluggish":
        return self

    def collect(self) -> list[int]:
        """A piece, of which nothing comes before it is ended."""
        self._is_over.wait()
        raise RuntimeError("cancelled")


def test_a_piece_that_comes_to_spark_after_the_end_is_ended_too() -> None:
    spark = Sluggish()
    fanout = Fanout(spark)
    pieces = interrupted_after(2)

    with pytest.raises(KeyboardInterrupt):
        next(fanout.run(square, pieces))

    assert spark.looks >= 2
    assert not fanout._running


def interrupted_after(count: int) -> Iterator[int]:
    """Pieces, until Ctrl-C comes."""
    yield from range(count)
    raise KeyboardInterrupt


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
