"""ADDJOBs of the library: long delays, and how safe what it adds for a job is."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from disque_trio.statemachine.base import ORIGINAL_PERIOD_S, Reply
from disque_trio.worker import App, Dead, Fixed, current_job
from disque_trio.worker.addjob import LONG
from disque_trio.worker.engine import records, words
from disque_trio.worker.engine.records import Done
from disque_trio.worker.exceptions import LONGEST_S
from tests.client.fakenode import FakeNode, fake_node
from tests.client.running import url
from tests.worker.runs import Driver, body, handler_of, outcome, run_of
from tests.worker.test_batches import given
from tests.worker.test_enqueue import ADDED, HELLO, added, node_that_adds

DAY_S = 86_400

# Delays.


def node_with(*features: bytes) -> Any:
    """It adds, and knows these."""
    return fake_node({b"HELLO": HELLO, b"ADDJOB": ADDED}, features=(b"priority", *features))


def app_at(node: FakeNode, **options: Any) -> tuple[App[None], Any]:
    app = App(url(node), **options)

    @app.task(name="t", queue="q", retry=Fixed([10]))
    async def t(n: int = 1) -> int:
        return n

    return app, t


@pytest.mark.parametrize("delay", [60 * DAY_S, timedelta(days=60)], ids=str)
async def test_a_long_delay_is_made_of_several_at_nodes_that_do_not_count_so_far(
    delay: Any,
) -> None:
    with node_with() as node:
        app, t = app_at(node)
        async with app:
            await t.using(delay=delay).enqueue()

    [(_, what, options)] = added(node)
    assert (options["DELAY"], options["TTL"]) == (f"{ORIGINAL_PERIOD_S}", f"{120 * DAY_S}")
    assert what["headers"]["hops"] == 2
    assert abs(what["headers"]["due"] - time.time() - 60 * DAY_S) < 60


async def test_nodes_that_count_so_far_are_given_all_of_it() -> None:
    with node_with(LONG.encode()) as node:
        app, t = app_at(node)
        async with app:
            await t.using(at=datetime.now(UTC) + timedelta(days=60), priority=1).enqueue()

    [(_, what, options)] = added(node)
    assert abs(int(options["DELAY"]) - 60 * DAY_S) < 60
    assert not {"due", "hops"} & what.get("headers", {}).keys()


def test_a_worker_puts_off_what_comes_too_early_and_counts_that_for_no_snooze() -> None:
    driver = Driver(features=frozenset((words.RELEASE_DELAY,)))
    app, seen = App(), []

    @app.task(name="t")
    async def t() -> None:
        seen.append(current_job().snoozes)

    early = body("t", headers={"due": time.time() + 2 * ORIGINAL_PERIOD_S, "hops": 2})
    due = body("t", headers={"due": time.time() - 1, "hops": 2})

    assert outcome(app, early, driver=driver) == records.Release(ORIGINAL_PERIOD_S * 1_000_000)
    assert not seen
    assert outcome(app, due, snoozes=2, driver=driver) == Done()
    assert outcome(app, due, snoozes=3, driver=driver) == Done()
    assert seen == [0, 1]


async def test_more_than_ten_years_are_refused() -> None:
    with node_with() as node:
        app, t = app_at(node)
        with pytest.raises(ValueError, match="ten years"):
            t.using(delay=LONGEST_S + 1)
        async with app:
            late = t.using(at=datetime.now(UTC) + timedelta(days=3700))
            with pytest.raises(ValueError, match="ten years"):
                await late.enqueue()
            await t.using(delay=LONGEST_S).enqueue()


# Safety.

SAFE = {"REPLICATE": "3", "SYNC": "2"}
BY_DEFAULT = {"SYNC": "auto"}


def safe_node(**answers: Any) -> Any:
    usual: dict[bytes, Any] = {b"HELLO": HELLO, b"ADDJOB": ADDED}
    more = {name.encode(): each for name, each in answers.items()}
    return fake_node({**usual, **more}, features=(b"priority", b"unique", b"sync", b"sync-auto"))


def safety(options: dict[str, str]) -> dict[str, str]:
    return {name: options[name] for name in SAFE if name in options}


async def test_jobs_wait_for_a_majority_of_their_copies_by_default() -> None:
    with safe_node() as node:
        app, t = app_at(node)
        async with app:
            await t.enqueue()
            await app.enqueue_many([t.using(replicate=5).call()])
            await t.using(sync=1).enqueue()
            await t.using(lease=0).enqueue()
            await app.producer("sidekiq").enqueue("Mail", 1)

    assert [safety(options) for _, _, options in added(node)] == [
        BY_DEFAULT,
        {"REPLICATE": "5", **BY_DEFAULT},
        {"SYNC": "1"},
        {"REPLICATE": "1"},
        BY_DEFAULT,
    ]


@pytest.mark.parametrize(("given", "safe"), [({"replicate": 3, "sync": 2}, SAFE), ({}, BY_DEFAULT)])
async def test_all_that_a_batch_adds_is_as_safe_as_jobs_of_the_app(
    given: dict[str, Any], safe: dict[str, str]
) -> None:
    with safe_node() as node:
        app, t = app_at(node, **given)
        async with app:
            await app.batch([t.call(1), t.call(2)], t.call())

        (_, collector, _), member, *_ = found = added(node)
        assert [safety(options) for _, _, options in found] == [safe] * 4
        assert given.items() <= collector["kwargs"].items()
        before = len(found)
        async with handler_of(app) as handler:
            assert await handler(run_of(body("t", headers=member[1]["headers"]))) == Done()
        [(queue, _, options)] = added(node)[before:]
        assert (queue.startswith("disque-trio.batch."), safety(options)) == (True, safe)


def test_so_is_all_that_a_collector_adds() -> None:
    token: list[list[Reply]] = [[given(0, json.dumps({"done": [0]}).encode())], []]
    answers: dict[str, Any] = {
        "GETJOB": lambda: [token.pop(0) if token else []],
        "ACKJOB": [1],
        "SHOW": [None],
        "QSTAT": [None],
    }
    with safe_node(**answers) as node:
        app, _ = app_at(node, replicate=3, sync=2)
        then = {"task": "t", "key": "k", "options": {"queue": "q", "replicate": 3, "sync": 2}}
        known = {"batch": "b", "size": 1, "then": then, "headers": {}, "until": time.time() + 60}
        what = body("disque-trio.collect", kwargs={**known, "replicate": 3, "sync": 2})
        outcome(app, what)

        found = added(node)
    assert len(found) == 2  # what follows, and the mark that the batch is over
    assert [safety(options) for _, _, options in found] == [SAFE] * 2


@pytest.mark.parametrize(
    ("headers", "expected"),
    [({}, SAFE), ({"replicate": 5, "sync": 4}, {"REPLICATE": "5", "SYNC": "4"})],
)
@pytest.mark.parametrize("is_dead", [False, True])
def test_a_result_is_as_safe_as_its_job(
    headers: dict[str, int], expected: dict[str, str], is_dead: bool
) -> None:
    with safe_node() as node:
        app = App(url(node), replicate=3, sync=2)

        @app.task(name="t")
        async def t() -> None:
            if is_dead:
                raise Dead("no")

        told = {"reply_to": "disque-trio.reply.me", "result_ttl": 30, **headers}
        outcome(app, body("t", headers=told))
        outcome(app, body("t", "does not fit", headers=told))

        found = added(node)
    assert [safety(options) for _, _, options in found] == [expected] * 2


def test_nodes_that_do_not_know_sync_are_not_asked_for_it() -> None:
    with node_that_adds() as node:
        app, _ = app_at(node, replicate=3, sync=2)
        outcome(app, body("t", headers={"reply_to": "disque-trio.reply.me", "result_ttl": 30}))

        [(_, _, options)] = added(node)
    assert safety(options) == {"REPLICATE": "3"}
