"""PURGE: which jobs go, when, and who is told."""

import pytest

from disque_trio.statemachine.base import Failure
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.messages import DelJob, Purge
from tests.rig import JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.counting import counts

LOOKS = DEFAULTS.purging_looks


def test_all_jobs_of_a_queue_go() -> None:
    rig = Rig()
    rig.add()
    rig.add()
    delayed = rig.add("DELAY", 60)

    assert rig.ask("PURGE", "q") == 2

    assert list(rig.node.jobs) == [delayed.id]
    assert counts(rig) == (1, 0, 0, 2)
    assert rig.ask("PURGE", "q") == rig.ask("PURGE", "unknown") == 0


def test_what_a_worker_has_and_what_comes_later_stays() -> None:
    rig = Rig()
    jobs = [rig.add() for _ in range(3 * LOOKS)]

    assert rig.ask("PURGE", "q") == 3 * LOOKS
    assert rig.ask("QLEN", "q") == 2 * LOOKS
    [[_, taken, _]] = rig.ask("GETJOB", "FROM", "q")  # type: ignore[misc]
    late = rig.add()
    rig.advance(1000)

    assert taken == jobs[LOOKS].id
    assert list(rig.node.jobs) == [taken, late.id]


def test_a_job_that_another_node_has_acknowledged_meanwhile_is_passed_over() -> None:
    rig = Rig(peers=1)
    for _ in range(LOOKS):
        rig.add("REPLICATE", 1)
    rig.hold(copy_of(holders=(N2, ME)))
    rig.ask("ENQUEUE", JOB)

    rig.ask("PURGE", "q")
    rig.message(N2, DelJob(JOB))
    rig.advance(100)

    assert not rig.node.jobs


def test_two_queues_are_purged_one_after_the_other() -> None:
    rig = Rig()
    for queue in ("q", "r"):
        for _ in range(LOOKS + 1):
            rig.ask("ADDJOB", queue, "body", 0)

    assert rig.ask("PURGE", "q") == rig.ask("PURGE", "r") == LOOKS + 1
    rig.ask("PURGE", "r")
    rig.advance(100)

    assert not rig.node.jobs


def test_a_purge_of_all_nodes_is_told_to_those_that_understand() -> None:
    rig = Rig(peers=2, ours=True)
    rig.node.cluster.nodes[N3].capabilities = 0

    rig.ask("PURGE", "q", "bcast")

    assert rig.sent() == [(N2, Purge(b"q"))]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("BCSAT",), "'BCSAT' is not an option of PURGE (did you mean 'BCAST'?)"),
        (("BCAST", "bcast"), "BCAST is given twice"),
    ],
)
def test_a_bad_purge_changes_nothing(words: tuple[str, ...], error: str) -> None:
    rig = Rig(peers=1, ours=True)
    rig.add("REPLICATE", 1)

    assert rig.ask("PURGE", "q", *words) == Failure(f"ERR syntax error: {error}".encode())

    assert (rig.ask("QLEN", "q"), rig.sent()) == (1, [])
