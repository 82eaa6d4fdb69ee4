import pytest

from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Consumer, Fault, Plan
from disque_trio.statemachine import offering
from disque_trio.tracing.rows import Row
from tests.sim.mutants.plans.conditions import SECOND, jobs, workers


def rows(*faults: Fault, consumers: tuple[Consumer, ...] | None = None) -> list[Row]:
    """A run of ten seconds in which jobs are added where no worker is."""
    plan = Plan(
        scenario="apart",
        seed=3,
        nodes=3,
        config=(("cluster-node-timeout", "1000"),),
        adds=jobs(6, nodes=(2,), replicate=1, every=SECOND),
        consumers=workers((1,)) if consumers is None else consumers,
        faults=faults,
        chaos=10 * SECOND,
    )
    found: list[Row] = []
    simulate(plan, found.append)
    return found


def unmet(found: list[Row]) -> list[Row]:
    return [row for row in found if row.kind == "unmet"]


def test_jobs_and_clients_that_meet_are_not_spoken_of() -> None:
    found = rows()

    assert unmet(found) == []
    assert [row.kind for row in found].count("pairs") == 1


@pytest.mark.pure
def test_a_job_and_a_client_that_do_not_meet_are_told_of_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offering, "offer", lambda *_: None)

    told = unmet(rows())

    first = told[0]
    since = int(first.detail.removeprefix("since="))
    same = [row.time - since for row in told if row.job == first.job]
    assert (first.node, first.peer, first.queue) == ("n2", "n1", "q")
    assert same[:3] == [SECOND, 2 * SECOND, 4 * SECOND]


@pytest.mark.pure
def test_without_links_between_them_nobody_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offering, "offer", lambda *_: None)
    crash = Fault(kind="crash", at=SECOND // 2, hold=9 * SECOND, nodes=(1,))

    assert [row for row in unmet(rows(crash)) if row.time < 9 * SECOND] == []


@pytest.mark.pure
def test_nor_where_the_queue_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offering, "offer", lambda *_: None)
    pause = Fault(
        kind="pause-queue", at=SECOND // 2, hold=9 * SECOND, nodes=(2,), queue="q", mode="out"
    )

    assert [row for row in unmet(rows(pause)) if row.time < 9 * SECOND] == []
