"""A job that is snoozed is added again with what it has been through, and then acknowledged."""

import json
import time
from typing import Any

import pytest

from disque_trio.statemachine.base import Failure
from disque_trio.worker import App, Fixed, Snooze
from disque_trio.worker.engine import records
from disque_trio.worker.engine.records import Done, Why
from tests.client.fakenode import FakeNode
from tests.client.running import url
from tests.worker.runs import body, outcome
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
        when = again["headers"].pop("added")
        assert 0 < when - time.time() < 31
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
        assert outcome(snoozing(node), body("t", headers=headers), backend) == Done()

        assert added(node)[0][2] == {
            "REPLICATE": "2", "DELAY": "30", "RETRY": "60", "TTL": "930", "PRIORITY": "5",
            "UNIQUE": "t:a", "KEEP": "9", "IFEXISTS": "again",
        }  # fmt: skip


@pytest.mark.parametrize("headers", [{"lease": 1}, {"priority": "x"}, {"ttl": 1e300}])
def test_options_that_cannot_work_make_it_a_failure(backend: str, headers: Any) -> None:
    with node_that_adds() as node:
        found = outcome(snoozing(node), body("t", headers=headers), backend)

        assert found == records.Retry(30_000_000)
        assert added(node) == []


@pytest.mark.parametrize("answer", [None, [Failure(b"PAUSED no")]])
def test_if_no_node_takes_it_that_is_a_failure_and_nothing_is_lost(
    backend: str, answer: Any
) -> None:
    with node_that_adds(answer) as node:
        assert outcome(snoozing(node), body("t"), backend) == records.Retry(30_000_000)


def test_a_job_that_belongs_to_another_worker_now_is_left_alone(backend: str) -> None:
    with node_that_adds() as node:
        found = outcome(snoozing(node), body("t"), backend, why=Why.LEASE_OVER)

        assert found == records.Release()
        assert added(node) == []


def test_a_body_in_msgpack_stays_one(backend: str) -> None:
    with node_that_adds() as node:
        assert outcome(snoozing(node), b"\x81\xa4task\xa1t", backend) == Done()

        [request] = [each for each in node.requests if each[0] == b"ADDJOB"]
        assert request[2].startswith(b"\x83\xa4task\xa1t")
        with pytest.raises(ValueError, match="utf-8"):
            json.loads(request[2])
