"""What a worker says of itself, and whether it is healthy."""

import anyio
import pytest

from disque_trio.worker import driver, reporting
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import SECOND
from tests.worker.played import PlayedNode, id_of, job
from tests.worker.playing import KINDS, Doing, for_ever, play

pytestmark = pytest.mark.parametrize("kind", KINDS)


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The worker's clock is so much ahead from now on, for reports only."""
    real = reporting.make_report

    def make(signs, state, at_work, now):  # type: ignore[no-untyped-def]
        return real(signs, state, at_work, now + round(seconds * SECOND))

    monkeypatch.setattr(driver, "make_report", make)


def test_a_worker_that_was_answered_lately_is_healthy(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = PlayedNode()

    async def story(worker: Worker) -> None:
        before = worker.report()
        assert (before.state, before.healthy) == ("starting", False)
        assert before.why == "no node has answered yet"
        await node.is_told(b"GETJOB")
        told = worker.report()
        assert (told.state, told.healthy) == ("running", True)
        assert (told.node, told.queues, told.slots) == ("127.0.0.1:7711", ["q"], 10)
        later(monkeypatch, 20)
        told = worker.report()
        assert not told.healthy
        assert told.why.startswith("no node has answered for 20.")
        worker.quiet()
        assert worker.report().healthy
        worker.stop()

    play(kind, story, node, name="ada")


def test_a_worker_without_nodes_is_healthy_while_the_leases_of_its_jobs_last(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = PlayedNode()
    handler = Doing(for_ever)

    async def story(worker: Worker) -> None:
        node.give(job(1))
        await handler.begun()
        later(monkeypatch, 20)
        told = worker.report()
        assert told.healthy
        assert told.why.endswith("but 1 running job has a valid lease")
        later(monkeypatch, 70)
        assert not worker.report().healthy
        worker.stop()
        worker.stop()

    play(kind, story, node, handler=handler)


def test_the_running_jobs_are_told_with_age_and_lease(kind: str) -> None:
    node = PlayedNode()
    handler = Doing(for_ever)

    async def story(worker: Worker) -> None:
        node.give(*(job(number) for number in range(60)))
        await handler.begun(60)
        told = worker.report()
        assert (told.busy, told.held, len(told.jobs)) == (60, 0, reporting.MOST_JOBS)
        first = told.jobs[0]
        assert (first.id, first.queue) == (id_of(0).decode(), "q")
        assert first.age_s >= told.jobs[-1].age_s
        assert first.lease_s is not None
        assert 50 < first.lease_s < 60
        worker.stop()
        worker.stop()

    play(kind, story, node, handler=handler, concurrency=60)


def test_nodes_are_told_the_name_on_each_connection(kind: str) -> None:
    node = PlayedNode()

    async def story(worker: Worker) -> None:
        node.give(job(1))
        await node.is_told(b"ACKJOB")
        await anyio.lowlevel.checkpoint()
        names = [each for each in node.told(b"CLIENT") if each[1] == b"SETNAME"]
        assert names == [[b"CLIENT", b"SETNAME", b"ada"]] * len(node.streams)
        worker.stop()

    play(kind, story, node, name="ada")
