"""What real nodes keep of schedules, from one start of a worker to the next."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from disque_trio.client.records import JobDetails
from disque_trio.testing.server.kit import Server
from disque_trio.worker import App
from disque_trio.worker.cron.known import QUEUE, TTL_S, Known

NOON = 1_795_348_800
DAILY = "@daily UTC"


@pytest.fixture(scope="module")
def disque_nodes() -> int:
    """Of this module."""
    return 3


def app_at(server: Server, **defaults: Any) -> App[None]:
    app: App[None] = App(server.url, **defaults)
    app.task(name="report")(print)
    return app


def known_by(app: App[None]) -> Known:
    return Known(app._enqueuer, app.tasks)


async def records(app: App[None]) -> Sequence[JobDetails]:
    """Those that nobody has replaced, as one node knows them."""
    jobs = (await app.client.jscan(queue=QUEUE)).items
    return [job for job in jobs if job.state != "acked"]


async def test_a_schedule_is_known_since_its_first_start(disque_server: Server) -> None:
    async with app_at(disque_server) as app:
        first = await known_by(app).begin("report", [DAILY], NOON)
    async with app_at(disque_server) as app:
        again = await known_by(app).begin("report", [DAILY, "every 9 s"], NOON + 600)

    assert first == {DAILY: NOON}
    assert again == {DAILY: NOON, "every 9 s": NOON + 600}


async def test_a_schedule_that_was_gone_meanwhile_is_new(disque_server: Server) -> None:
    async with app_at(disque_server) as app:
        known = known_by(app)
        await known.begin("report", [DAILY], NOON)
        await known.begin("report", ["@hourly UTC"], NOON + 60)

        assert await known.begin("report", [DAILY], NOON + 120) == {DAILY: NOON + 120}
        assert len(await records(app)) == 1


async def test_the_record_has_the_copies_of_the_app_and_nobody_takes_it(
    disque_server: Server,
) -> None:
    async with app_at(disque_server, replicate=2) as app:
        await known_by(app).begin("report", [DAILY], NOON)

        (record,) = await records(app)
        assert (record.repl, record.ttl) == (2, TTL_S)
        assert QUEUE not in app.queues


async def test_a_renewed_record_lives_on_and_one_of_other_schedules_stays(
    disque_server: Server,
) -> None:
    async with app_at(disque_server) as app:
        known = known_by(app)
        since = await known.begin("report", [DAILY], NOON)
        (old,) = await records(app)
        await known.renew("report", since)
        (new,) = await records(app)
        assert (new.id != old.id, new.body) == (True, old.body)

        await known.begin("report", ["@hourly UTC"], NOON)
        await known.renew("report", since)
        assert await known.begin("report", ["@hourly UTC"], NOON + 60) == {"@hourly UTC": NOON}


def test_a_worker_adds_what_an_outage_missed_and_nothing_from_before_its_first_start(
    disque_server: Server,
) -> None:
    def added(app: App[None], now: int) -> list[Any]:
        """The keys of all jobs after a worker has added what is due then."""

        async def held() -> list[Any]:
            looped = anyio.Event()

            def draw() -> float:
                """Loops call it before they sleep: the one of the schedule, and of the record."""
                calls.append(None)
                if len(calls) == 2:
                    looped.set()
                return 0.0

            calls: list[None] = []
            with anyio.fail_after(60):
                async with app.handler(now=lambda: now + 0.5, draw=draw):
                    await looped.wait()
                    jobs = (await app.client.jscan(queue="default")).items
            return [job.more["key"] for job in jobs]

        return anyio.run(held, backend="trio")

    def deployed(schedule: str) -> App[None]:
        app = app_at(disque_server)
        app.cron(schedule, missed="latest")(app.tasks["report"])
        return app

    assert added(deployed("@hourly"), NOON + 60) == []
    assert added(deployed("30 * * * *"), NOON + 1860) == []
    assert added(deployed("30 * * * *"), NOON + 5460) == [b"report:cron/2026-11-22T13:30Z"]
