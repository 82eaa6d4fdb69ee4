"""Tasks by the clock: what a worker adds at each tick, as nodes are asked."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from disque_trio.worker import Adding, App
from tests.client.running import url
from tests.worker.runs import handler_of
from tests.worker.test_enqueue import added, node_that_adds

NOON = 1_795_348_800.0


def worked(app: App[None], until: Callable[[], bool], **options: Any) -> None:
    """The app's worker runs, at noon, until something is so."""

    async def held() -> None:
        with anyio.fail_after(60):
            async with handler_of(app, now=lambda: NOON + 0.5, **options):
                while not until():
                    await anyio.sleep(0.01)

    anyio.run(held, backend="trio")


def test_a_tick_is_a_job_with_a_key_of_its_own() -> None:
    with node_that_adds() as node:
        app = App(url(node))

        @app.cron(
            "0 13 * * *",
            tz="Europe/Berlin",
            missed="latest",
            within=600,
            partition=900,
            backfill=True,
        )
        @app.task(name="shop.report", queue="reports")
        async def report(*, scheduled: datetime) -> None: ...

        worked(app, lambda: len(added(node)) == 1)

        queue, body, options = added(node)[0]
        assert queue == "reports"
        assert body["kwargs"] == {"scheduled": "2026-11-22T12:00:00Z"}
        assert options["UNIQUE"] == "shop.report:cron/2026-11-22T12:00Z"
        assert (options["KEEP"], options["IFEXISTS"]) == ("1560", "return")


def test_a_task_without_the_argument_is_not_given_the_instant() -> None:
    with node_that_adds() as node:
        app = App(url(node))

        @app.cron(every=30, missed="all", within=65, backfill=True)
        @app.task(name="shop.poll")
        def poll(depth: int = 1) -> None: ...

        worked(app, lambda: len(added(node)) == 3)

        assert [body.get("kwargs", {}) for _, body, _ in added(node)] == [{}, {}, {}]


def test_a_worker_may_be_told_to_leave_the_clock_alone() -> None:
    with node_that_adds() as node:
        app = App(url(node))

        @app.cron(every=1, missed="all")
        @app.task(name="shop.poll")
        async def poll() -> None: ...

        looks = iter(range(20))
        worked(app, lambda: next(looks, None) is None, has_cron=False)

        assert node.requests == []


def test_a_tick_that_a_hook_refuses_ends_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    with node_that_adds() as node:
        app = App(url(node))

        @app.on_enqueue
        def refuse(adding: Adding) -> None:
            if adding.task == "shop.poll":
                raise PermissionError("no polls today")

        @app.cron(every=30, missed="all", within=65, backfill=True)
        @app.task(name="shop.poll")
        async def poll() -> None: ...

        @app.cron(every=30, missed="latest", within=65, backfill=True)
        @app.task(name="shop.report")
        async def report() -> None: ...

        worked(app, lambda: bool(added(node)) and "no polls today" in caplog.text)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ([], {}, "cron needs either five fields"),
        (["* * * * *"], {"every": 5}, "cron needs either five fields"),
        (["0 25 * * *"], {}, "Bad hour"),
        (["@daily"], {"tz": "America"}, "the time zone 'America' is unknown; names are as"),
        ([], {"every": 5, "tz": "Mars/Olympus"}, "the time zone 'Mars/Olympus' is unknown"),
    ],
)
def test_a_wrong_schedule_is_refused(arguments: list[Any], options: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        App().cron(*arguments, **options)


@pytest.mark.parametrize("options", [{}, {"every": 5}])
@pytest.mark.parametrize("tz", [None, 3, b"UTC", ["UTC"], UTC])
def test_a_time_zone_that_is_no_name_is_a_type_error(tz: Any, options: dict[str, Any]) -> None:
    arguments = [] if options else ["@daily"]

    with pytest.raises(TypeError, match=r'^tz=.*: give the name of a time zone, such as "Eur'):
        App().cron(*arguments, **options, tz=tz)


def test_a_schedule_that_is_no_text_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"^30 is not a schedule of cron: give text as"):
        App().cron(30)  # type: ignore[arg-type]


def test_a_task_whose_instant_would_not_arrive_is_refused() -> None:
    app = App()

    @app.task(name="bare")
    async def bare(*, scheduled) -> None: ...  # type: ignore[no-untyped-def]

    @app.task(name="number")
    async def number(*, scheduled: int) -> None: ...

    @app.task(name="text")
    async def text(*, scheduled: str) -> None: ...

    why = "^task bare: argument scheduled: datetime arrives as str; annotate the argument with"
    with pytest.raises(ValueError, match=why):
        app.cron("@daily")(bare)
    with pytest.raises(ValueError, match=r"^task number: argument scheduled: Expected `int`"):
        app.cron("@daily")(number)
    app.cron("@daily")(text)
    assert [each.name for each in app.declared_schedules] == ["text"]


def test_an_annotation_that_is_defined_later_is_no_reason_to_refuse_a_task() -> None:
    app = App()

    @app.cron("@daily")
    @app.task(name="later")
    async def later(*, scheduled: "Instant") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert [each.name for each in app.declared_schedules] == ["later"]


def test_a_task_that_takes_anything_by_name_is_not_given_the_instant() -> None:
    with node_that_adds() as node:
        app = App(url(node))

        @app.cron(every=30, missed="latest", backfill=True)
        @app.task(name="shop.poll")
        async def poll(**options: Any) -> None: ...

        worked(app, lambda: len(added(node)) == 1)

        assert "kwargs" not in added(node)[0][1]


def test_a_task_that_needs_other_arguments_is_refused() -> None:
    app = App()

    @app.task(name="mail.send")
    async def send(to: str) -> None: ...

    with pytest.raises(ValueError, match=r"mail\.send: cron gives it no argument but `scheduled`"):
        app.cron("0 0 * * *")(send)
