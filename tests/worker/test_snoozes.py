"""A job that is snoozed is added again with what it has been through, and then acknowledged."""

import json
from typing import Any

import pytest

from disque_trio.statemachine.base import Failure, Status
from disque_trio.worker import App, Fixed, Snooze
from disque_trio.worker.engine import records, words
from disque_trio.worker.engine.records import Done, Reason
from tests.client.fakenode import FakeNode
from tests.client.running import url
from tests.worker.runs import ID, Driver, body, outcome
from tests.worker.test_enqueue import added, node_that_adds

pytestmark = pytest.mark.parametrize("backend", ["trio", "asyncio"])


def snoozing(node: FakeNode, **options: Any) -> App[None]:
    app = App(url(node))

    async def t(n: int = 0, *, to: str = "") -> None:
        raise Snooze(30, most=3)

    app.task(**{"name": "t", "retry": Fixed([10]), **options})(t)
    return app


def test_it_comes_again_as_another_job_and_no_attempt_is_counted(backend: str) -> None:
    with node_that_adds() as node:
        what = body("t", 7, kwargs={"to": "ada"}, key="mine", headers={"traceparent": "00-1"})
        found = outcome(snoozing(node), what, backend, queue=b"slow", nacks=1)

        assert found == Done()
        [(queue, again, options)] = added(node)
        assert queue == "slow"
        assert again == {
            "task": "t",
            "args": [7],
            "kwargs": {"to": "ada"},
            "key": "mine",
            "headers": {"traceparent": "00-1", "tries": 1, "snoozes": 1},
        }
        assert options == {"DELAY": "30", "RETRY": "300", "TTL": str(604_800 + 30)}


def test_its_second_life_has_the_attempts_of_the_first(backend: str) -> None:
    with node_that_adds() as node:
        headers = {"tries": 1, "snoozes": 2}
        outcome(snoozing(node), body("t", headers=headers), backend, nacks=2)

        counted = added(node)[0][1]["headers"]
        assert (counted["tries"], counted["snoozes"]) == (3, 3)


def test_after_too_many_snoozes_it_is_a_failure(backend: str) -> None:
    with node_that_adds() as node:
        found = outcome(snoozing(node), body("t", headers={"snoozes": 3}), backend)

        assert found == records.Retry(10_000_000)
        assert added(node) == []


def test_the_options_of_the_job_are_kept(backend: str) -> None:
    headers = {"priority": 5, "lease": 60, "ttl": 900, "replicate": 2, "unique": "t:a", "keep": 9}
    with node_that_adds() as node:
        node.answers[b"SHOW"] = lambda: [details(added_body(node))]
        assert outcome(snoozing(node), body("t", headers=headers), backend) == Done()

        assert added(node)[0][2] == {
            "REPLICATE": "2", "DELAY": "30", "RETRY": "60", "TTL": "930", "PRIORITY": "5",
            "UNIQUE": "t:a", "KEEP": "9", "IFEXISTS": "again",
        }  # fmt: skip


@pytest.mark.parametrize("kept", [b'{"task":"t","args":[8]}', None])
def test_the_job_of_another_producer_is_not_taken_for_its_own(backend: str, kept: Any) -> None:
    # Of several jobs that wait for a key a node keeps one, and names that one.
    with node_that_adds() as node:
        node.answers[b"SHOW"] = [kept and details(kept)]
        found = outcome(snoozing(node), body("t", 7, headers={"unique": "t:a"}), backend)

        assert found == records.Retry(30_000_000)


def added_body(node: FakeNode) -> bytes:
    return next(each[2] for each in node.requests if each[0] == b"ADDJOB")


def details(body: bytes) -> list[Any]:
    """What SHOW says of a job with this body."""
    told: dict[bytes, Any] = {
        b"id": ID, b"queue": b"q", b"body": body, b"state": b"active", b"repl": 1, b"ttl": 900,
        b"ctime": 1, b"delay": 30, b"retry": 60, b"nacks": 0, b"additional-deliveries": 0,
        b"nodes-delivered": [], b"nodes-confirmed": [], b"next-requeue-within": 1,
        b"next-awake-within": 1,
    }  # fmt: skip
    return [each for pair in told.items() for each in pair]


# Nodes that can put a job off.


def test_a_job_with_lease_0_cannot_be_released_so_it_is_added_again(backend: str) -> None:
    driver = Driver(features=frozenset((words.RELEASE_DELAY,)))
    once = ID[:-1] + b"0"
    with node_that_adds() as node:
        found = outcome(snoozing(node, lease=0), body("t"), backend, driver=driver, id=once)

        assert found == Done()
        [(_, _, options)] = added(node)
        assert (options["RETRY"], options["DELAY"]) == ("0", "30")


@pytest.mark.parametrize("of", ["task", "consumer"])
def test_it_keeps_its_identity(backend: str, of: str) -> None:
    app = App("disque://127.0.0.1:1")  # nothing is added
    if of == "task":

        @app.task(name="t")
        async def t() -> None:
            raise Snooze(30, most=3)
    else:

        @app.consumer("default")
        async def take(_: bytes) -> None:
            raise Snooze(30, most=3)

    driver = Driver(features=frozenset((words.RELEASE_DELAY,)))
    found = outcome(app, body("t"), backend, driver=driver, snoozes=2)
    assert found == records.Release(30_000_000)
    # The node counts snoozes, so the next worker knows them.
    assert isinstance(outcome(app, body("t"), backend, driver=driver, snoozes=3), records.Retry)


def test_a_job_that_would_not_live_until_then_is_dead_and_not_forgotten(backend: str) -> None:
    app = App("disque://127.0.0.1:1")

    @app.task(name="t")
    async def t() -> None:
        raise Snooze(30)

    driver = Driver(features=frozenset((words.RELEASE_DELAY,)))
    found = outcome(app, body("t"), backend, driver=driver, expires=1)
    assert isinstance(found, records.Dead)
    assert found.reason.startswith(b"its life ends before it is due, in 30 s")


@pytest.mark.parametrize("headers", [{"lease": 1}, {"priority": "x"}, {"ttl": 1e300}])
def test_options_that_cannot_work_make_it_a_failure(backend: str, headers: Any) -> None:
    with node_that_adds() as node:
        found = outcome(snoozing(node), body("t", headers=headers), backend)

        assert found == records.Retry(30_000_000)
        assert added(node) == []


def test_a_job_that_the_answer_to_its_own_addition_names_is_not_acknowledged(backend: str) -> None:
    with node_that_adds([Status(ID)]) as node:
        assert outcome(snoozing(node), body("t"), backend) == records.Retry(30_000_000)


@pytest.mark.parametrize("answer", [None, [Failure(b"PAUSED no")]])
def test_if_no_node_takes_it_that_is_a_failure_and_nothing_is_lost(
    backend: str, answer: Any
) -> None:
    with node_that_adds(answer) as node:
        assert outcome(snoozing(node), body("t"), backend) == records.Retry(30_000_000)


def test_a_job_that_belongs_to_another_worker_now_is_left_alone(backend: str) -> None:
    with node_that_adds() as node:
        found = outcome(snoozing(node), body("t"), backend, why=Reason.LEASE_OVER)

        assert found == records.Release()
        assert added(node) == []


def test_a_body_in_msgpack_stays_one(backend: str) -> None:
    with node_that_adds() as node:
        assert outcome(snoozing(node), b"\x81\xa4task\xa1t", backend) == Done()

        [request] = [each for each in node.requests if each[0] == b"ADDJOB"]
        assert request[2].startswith(b"\x83\xa4task\xa1t")
        with pytest.raises(ValueError, match="utf-8"):
            json.loads(request[2])
