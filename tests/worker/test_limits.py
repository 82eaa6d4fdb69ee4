"""Limits that an app declares."""

from typing import Any

import anyio
import attrs
import pytest

from disque_trio.client.replies import facts
from disque_trio.testing.server.kit import Server
from disque_trio.worker import App
from disque_trio.worker.limits import QueueLimit


async def told(app: App[None], queue: str) -> dict[str, object]:
    return dict(facts(await app.client.call("QUEUE", "INFO", queue)))


async def until_limited(app: App[None], queue: str) -> dict[str, object]:
    while not (await told(app, queue))["set-at-ms"]:
        await anyio.sleep(0.01)
    return await told(app, queue)


async def test_a_worker_sets_the_limits_when_it_starts(disque_server: Server) -> None:
    app: App[None] = App(disque_server.url)
    app.limit("mail", concurrency=20, rate=(100, 2.5), burst=7)

    async with app, app.handler(is_inline=True):
        found = await until_limited(app, "mail")

    expected = {"concurrency": 20, "rate": 100, "period-ms": 2500, "burst": 7}
    assert found == found | expected


async def test_a_worker_sets_the_limits_of_groups(disque_server: Server) -> None:
    app: App[None] = App(disque_server.url)
    app.limit("each", group_concurrency=2, group_rate=(5, 0.5), group_burst=3)

    async with app, app.handler(is_inline=True):
        found = await until_limited(app, "each")

    expected = {"group-concurrency": 2, "group-rate": 5, "group-period-ms": 500, "group-burst": 3}
    assert found == found | expected | {"concurrency": 0, "rate": 0}


async def test_limits_that_are_set_already_are_not_set_again(disque_server: Server) -> None:
    app: App[None] = App(disque_server.url)
    app.limit("again", concurrency=3)
    app.limit("later", concurrency=4)

    async with app:
        await app.client.limit_queue("again", concurrency=3)
        before = await told(app, "again")
        async with app.handler(is_inline=True):
            await until_limited(app, "later")
        assert (await told(app, "again"))["set-at-ms"] == before["set-at-ms"]


async def test_limits_that_a_node_refuses_are_logged(
    disque_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    app: App[None] = App(disque_server.url)
    with attrs.validators.disabled():
        app.limits["bad"] = QueueLimit("bad", concurrency=2_000_000_000)
    app.limit("good", concurrency=4)

    async with app, app.handler(is_inline=True):
        await until_limited(app, "good")

    assert "a node refuses the limit of queue bad" in caplog.text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, "give concurrency or rate"),
        ({"concurrency": 1, "burst": 2}, "burst needs rate"),
        ({"rate": (1, 1), "group_burst": 2}, "group_burst needs group_rate"),
        ({"group_rate": (1, 0)}, "group_rate=.1, 0. must be"),
        ({"concurrency": 0}, "concurrency=0 must be a whole number"),
        ({"rate": (1, 1), "burst": 0}, "burst=0 must be a whole number"),
        ({"rate": (1, 10**9)}, "rate=.1, 1000000000. must be a number of jobs, from 1 to"),
        ({"rate": (10**10, 1)}, "and of seconds, from 0.001 to 316224000, such as .100, 1."),
        ({"concurrency": 10**10}, "concurrency=10000000000 must be a whole number from 1 to"),
        ({"concurrency": 1, "loose": "no"}, "loose='no' must be True or False"),
        ({"rate": 100}, "rate=100 must be a number of jobs"),
        ({"rate": (0, 1)}, "rate=.0, 1. must be"),
        ({"rate": (1.5, 1)}, "rate=.1.5, 1. must be"),
        ({"rate": (1, 0)}, "rate=.1, 0. must be"),
    ],
)
def test_limits_without_a_meaning_are_refused(options: dict[str, Any], error: str) -> None:
    app: App[None] = App()

    with pytest.raises(ValueError, match=error):
        app.limit("mail", **options)


@pytest.mark.parametrize(
    ("queue", "error"), [("", "queue is empty"), ("disque-trio.timetable", "is reserved")]
)
def test_a_queue_that_no_task_can_have_has_no_limits(queue: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        App().limit(queue, concurrency=1)
