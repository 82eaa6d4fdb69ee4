"""A lake of many small runs, made once: what is whole, and what is broken on purpose."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import pytest

from disque_trio.pipeline.lake import asking
from disque_trio.pipeline.lake.ingestion import ingest
from disque_trio.pipeline.lake.store import Lake
from disque_trio.sim.scenarios.plan import Plan
from tests.pipeline.lake.runs import TracedRun, traced
from tests.sim.mutants.plans import conditions

JOBS: Final = 8
"""Of each run: a lake of few rows is asked in little time."""


def once_for_fewer(seed: int) -> Plan:
    """A job that is given and kept is offered for ever."""
    plan = conditions.once(seed)
    return attrs.evolve(plan, adds=plan.adds[:3])


def drained_soon(made: Callable[[int], Plan]) -> Callable[[int], Plan]:
    """What never happens is not waited for."""
    return lambda seed: attrs.evolve(made(seed), drain=60 * conditions.SECOND)


_CASES: Final = {
    "calm": (conditions.calm, ""),
    "careless": (conditions.careless, ""),
    "once": (conditions.once, ""),
    "delays": (conditions.delays, ""),
    "pauses": (conditions.pauses, ""),
    "short-lives": (conditions.short_lives, ""),
    "refusals": (conditions.refusals, ""),
    "S3": (conditions.calm, "bodies-cut-short"),
    "S4": (conditions.once, "ids-told-wrong"),
    "S5": (once_for_fewer, "given-and-kept"),
    "S6": (conditions.delays, "without-delay"),
    "S6-in": (conditions.pauses, "paused-queues-take-back"),
    "S6-out": (conditions.pauses, "paused-queues-deliver"),
    "S7": (conditions.short_lives, "twice-the-ttl"),
    "L1": (drained_soon(conditions.orphans), "sleeping-copies"),
    "L3": (drained_soon(conditions.calm), "ignoring-gotack"),
    "duplicates": (conditions.queue_and_work, "without-lease"),
}


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TracedRun]:
    folder = tmp_path_factory.mktemp("traces")
    found = {}
    for name, (made, breaks) in _CASES.items():
        plan = made(0)
        few = attrs.evolve(plan, adds=plan.adds[:JOBS])
        found[name] = traced(name, few, folder, breaks)
    return found


@pytest.fixture(scope="session")
def runs(spark: Any, cases: dict[str, TracedRun], lake: Lake) -> dict[str, TracedRun]:
    """By the lake's name for the run."""
    names = {source.name: source.run for source in lake.sources()}
    return {names[case.path]: case for case in cases.values()}


@pytest.fixture(scope="session")
def lake(spark: Any, cases: dict[str, TracedRun], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    found = Lake.open(str(tmp_path_factory.mktemp("lake")), create=True)
    outcome = ingest(spark, found, [case.path for case in cases.values()])
    assert not outcome.bad
    return found


@pytest.fixture(scope="session")
def ask(spark: Any, lake: Lake) -> "Ask":
    return Ask(spark, lake)


class Ask:
    """Asks a lake, all of whose views are made once."""

    def __init__(self, spark: Any, lake: Lake) -> None:
        self._spark = spark.newSession()  # others have other views of these names
        asking.attach(self._spark, lake)

    def __call__(self, sql: str) -> Sequence[Any]:
        found: Sequence[Any] = self._spark.sql(sql).collect()
        return found

    def columns(self, view: str) -> list[str]:
        """Their names."""
        found: list[str] = self._spark.table(view).columns
        return found
