import time
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from disque_trio.pipeline import shipping
from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.fanout import Fanout
from tests.cluster.processes import SOON_S, eventually


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


def test_the_package_is_shipped_whole_with_its_native_modules_and_the_same_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shop"
    for name in ["__init__.py", "a/b.py", "a/b.cpython-311.so", "a/b.pyc", "../shop__mypyc.so"]:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(name)
    (tmp_path / "other.so").write_text("of another package")
    monkeypatch.setattr(shipping, "_PACKAGE", package)

    content = shipping.zipped()

    names = zipfile.ZipFile(BytesIO(content)).namelist()
    expected = ["shop/__init__.py", "shop/a/b.cpython-311.so", "shop/a/b.py", "shop__mypyc.so"]
    assert sorted(names) == expected
    assert content == shipping.zipped()
