"""Schedules that are added at run time: what three nodes keep of them."""

import json
from datetime import UTC, datetime
from typing import Any

import anyio
import attrs
import pytest

from disque_trio.client import commands
from disque_trio.client.records import JobDetails
from disque_trio.testing.server.kit import Server
from disque_trio.worker import (
    Adding,
    App,
    NotEncodableError,
    NotEnqueuedError,
    TooManySchedulesError,
    UnknownScheduleError,
    current_job,
)
from disque_trio.worker.codec import Form
from disque_trio.worker.runtime import runtime
from disque_trio.worker.timetable import records
from disque_trio.worker.timetable.records import QUEUE, Timetable


@pytest.fixture(scope="module")
def disque_nodes() -> int:
    """Of this module."""
    return 3


@pytest.fixture
def app(disque_server: Server) -> App[None]:
    app: App[None] = App(disque_server.url)

    @app.task(name="report", queue="reports", lease=40)
    async def report(to: str, copies: int = 1) -> None: ...

    @app.task(name="sweep")
    async def sweep(*, scheduled: datetime) -> None: ...

    return app


async def bodies(app: App[None], queue: str) -> list[dict[str, Any]]:
    jobs = (await app.client.jscan(queue=queue)).items
    return [json.loads(job.body or b"") for job in jobs if job.state != "acked"]


async def test_what_is_added_is_listed_by_any_app(app: App[None], disque_server: Server) -> None:
    async with app:
        call = app.tasks["report"].call("ann", copies=2)
        await app.schedules.add("nightly", call, "30 2 * * *", tz="Europe/Berlin", missed="latest")
        await app.schedules.add("sweeps", app.tasks["sweep"], every=60)

    other: App[None] = App(disque_server.url)
    async with other:
        nightly, sweeps = await other.schedules.list()
    assert (nightly.name, nightly.when, nightly.queue) == (
        "nightly",
        "30 2 * * * Europe/Berlin",
        "reports",
    )
    assert (nightly.args, nightly.kwargs, nightly.is_told) == (["ann", 2], {}, False)
    assert nightly.options == {"queue": "reports", "lease": 40}
    assert (sweeps.when, sweeps.is_told, sweeps.is_paused) == ("every 60 s", True, False)


async def test_a_name_has_one_record_and_keeps_its_pause_and_its_age(app: App[None]) -> None:
    async with app:
        sweep = app.tasks["sweep"]
        await app.schedules.add("s", sweep, every=60)
        timetable = Timetable(app.client)
        old = await timetable.get("s")
        await timetable.put(attrs.evolve(old, since=old.since - 500), [old])
        await app.schedules.pause("s")
        await app.schedules.add("s", sweep.using(priority=3), every=60)
        same = await timetable.get("s")
        await app.schedules.add("s", sweep, every=90)
        other = await timetable.get("s")

        assert (same.since, same.is_paused, same.options) == (
            old.since - 500,
            True,
            {"priority": 3},
        )
        assert other.since >= old.since
        assert len((await timetable.all()).items) == 1
        assert len([job for job in await jobs_of_records(app) if job.state != "acked"]) == 1


async def jobs_of_records(app: App[None]) -> list[JobDetails]:
    return list((await app.client.jscan(queue=QUEUE)).items)


async def test_a_pause_and_its_end_are_recorded_and_its_ticks_are_gone(app: App[None]) -> None:
    async with app:
        await app.schedules.add("s", app.tasks["sweep"], every=60, missed="all")

        assert [await app.schedules.pause("s"), await app.schedules.pause("s")] == [True, False]
        [entry] = await app.schedules.list()
        assert entry.is_paused
        assert entry.next(runtime().now()) is None
        assert [await app.schedules.resume("s"), await app.schedules.resume("s")] == [True, False]
        [entry] = await app.schedules.list()
        assert not entry.is_paused
        assert entry.next(0) == (entry.since // 60 + 1) * 60

        assert [await app.schedules.remove("s"), await app.schedules.remove("s")] == [True, False]
        assert await app.schedules.list() == []
        with pytest.raises(
            UnknownScheduleError, match="no schedule has the name s; there are none"
        ):
            await app.schedules.pause("s")


async def test_a_run_out_of_turn_has_the_arguments_and_options(app: App[None]) -> None:
    async with app:
        await app.schedules.add("n", app.tasks["report"].call("ann"), "@yearly")
        await app.schedules.add("s", app.tasks["sweep"], "@yearly")
        await app.schedules.pause("n")
        first = await app.schedules.run_now("n")
        second = await app.schedules.run_now("n")
        await app.schedules.run_now("s")

        assert first.id != second.id
        found = await bodies(app, "reports")
        assert [each["args"] for each in found] == [["ann"], ["ann"]]
        job = await app.client.show(first.id)
        assert job is not None
        assert job.retry == 40
        [swept] = await bodies(app, "default")
        told = datetime.fromisoformat(swept["kwargs"]["scheduled"])
        assert abs((datetime.now(UTC) - told).total_seconds()) < 60


@pytest.mark.parametrize(("by_place", "by_name"), [(("ann",), {}), ((), {"to": "ann"})])
async def test_a_call_lacks_the_instant_that_each_tick_brings(
    app: App[None], by_place: tuple[str, ...], by_name: dict[str, Any]
) -> None:
    @app.task(name="apart")
    async def apart(to: str, *, scheduled: datetime) -> None: ...

    @app.task(name="last")
    async def last(to: str, scheduled: datetime) -> None: ...

    @app.task(name="first")
    async def first(scheduled: datetime, to: str) -> None: ...

    async with app:
        for name in ("apart", "last", *(["first"] if by_name else [])):
            await app.schedules.add("s", app.tasks[name].call(*by_place, **by_name), "@yearly")
            id = (await app.schedules.run_now("s")).id
            job = await app.client.show(id)
            assert job is not None
            parts = json.loads(job.body or b"")
            assert [*parts.get("args", []), parts["kwargs"].get("to", "")][0] == "ann"
            assert datetime.fromisoformat(parts["kwargs"]["scheduled"])


async def test_its_jobs_have_the_hooks_the_headers_and_the_results_of_an_addition(
    app: App[None], disque_server: Server
) -> None:
    @app.on_enqueue
    def bill(adding: Adding) -> None:
        adding.headers["tenant"] = "acme"

    @app.task(name="sum", queue="sums", result_ttl=60)
    async def total(*numbers: int) -> set[int]:
        return {sum(numbers), *current_job().headers["more"]}

    async with app:
        call = total.using(headers={"more": (1, 2)}, repeat=False).call(3, 4)
        await app.schedules.add("s", call, "@yearly")
        [entry] = await app.schedules.list()
        assert (entry.options["repeat"], entry.options["result_ttl"]) == (False, 60)
        async with disque_server.worker(app):
            job = await app.schedules.run_now("s")
            assert await job.result(20) == {7, 1, 2}
            assert await app.result(job.id, 20) == {7, 1, 2}

        await app.schedules.keeper().add(entry, 0)
        [tick] = await bodies(app, "sums")
        assert tick["headers"]["tenant"] == "acme"
        assert tick["headers"]["result_ttl"] == 60


async def test_a_hook_refuses_a_run_and_a_tick(app: App[None]) -> None:
    @app.on_enqueue
    def refuse(adding: Adding) -> None:
        raise PermissionError(adding.task)

    async with app:
        await app.schedules.add("s", app.tasks["sweep"], "@yearly")
        with pytest.raises(PermissionError, match="sweep"):
            await app.schedules.run_now("s")
        [entry] = await app.schedules.list()
        with pytest.raises(NotEnqueuedError, match="sweep was not added: PermissionError: sweep"):
            await app.schedules.keeper().add(entry, 0)
        assert await bodies(app, "default") == []


@pytest.mark.parametrize(
    ("form", "headers", "why"),
    [
        ("msgpack", {"raw": b"x"}, r"its headers are kept as JSON: at \['raw'\]: bytes arrives as"),
        ("json", {"what": object()}, "its headers: a value of type object cannot be encoded"),
    ],
)
async def test_headers_that_no_record_keeps_are_refused(
    form: Form, headers: dict[str, Any], why: str, disque_server: Server
) -> None:
    app = App(disque_server.url, form=form)

    @app.task(name="sweep")
    async def sweep() -> None: ...

    async with app:
        with pytest.raises(NotEncodableError, match=f"^schedule s: {why}"):
            await app.schedules.add("s", sweep.using(headers=headers).call(), every=60)


async def test_one_schedule_too_many_is_refused_and_each_of_the_others_is_found(
    app: App[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MOST", 12)
    async with app:
        sweep = app.tasks["sweep"]
        for number in range(12):
            await app.schedules.add(f"s{number:02}", sweep, every=60)
        with pytest.raises(
            TooManySchedulesError, match="there are 12 schedules, and the limit is 12: rem"
        ):
            await app.schedules.add("t", sweep, every=60)

        await app.schedules.add("s11", sweep, every=90)
        assert await app.schedules.pause("s11")
        with pytest.raises(UnknownScheduleError, match=r"there are s00, .*, s09 and 2 more$"):
            await app.schedules.run_now("t")
        assert await app.schedules.remove("s00")
        await app.schedules.add("t", sweep, every=60)
        assert len(await app.schedules.list()) == 12


async def test_names_are_text_that_commands_no_terminal(app: App[None]) -> None:
    async with app:
        with pytest.raises(ValueError, match=r"the name of a schedule is text: .* surrogates"):
            await app.schedules.add("\ud800", app.tasks["sweep"], every=60)
        await app.schedules.add("\x1b[31m", app.tasks["sweep"], every=60)
        with pytest.raises(UnknownScheduleError) as raised:
            await app.schedules.pause("\x1b[32m")

        assert str(raised.value) == ("no schedule has the name \\x1b[32m; there are \\x1b[31m")


def test_threads_have_the_same_operations(app: App[None]) -> None:
    schedules = app.blocking.schedules
    schedules.add("s", app.tasks["sweep"], "@daily")
    assert schedules.pause("s")
    assert schedules.resume("s")
    assert [each.name for each in schedules.list()] == ["s"]
    assert schedules.run_now("s").task == "sweep"
    assert schedules.remove("s")
    assert schedules.list() == []
    app.blocking.client.close()


@pytest.mark.parametrize(
    ("name", "task", "options", "why"),
    [
        ("", "sweep", {"every": 60}, "the name of a schedule"),
        ("s", "sweep", {}, "cron needs either five fields"),
        ("s", "sweep", {"every": 60, "cron": "@daily"}, "cron needs either five fields"),
        ("s", "sweep", {"cron": "61 * * * *"}, "not a schedule of cron"),
        ("s", "sweep", {"every": 60, "missed": "some"}, "missed='some' must be one of"),
        ("s", "sweep", {"every": 60, "tz": "Mars"}, "time zone 'Mars' is unknown"),
        ("s", "report", {"every": 60}, "report needs arguments: give a call"),
    ],
)
async def test_what_cannot_be_due_is_refused(
    app: App[None], name: str, task: str, options: dict[str, Any], why: str
) -> None:
    async with app:
        with pytest.raises(ValueError, match=why):
            await app.schedules.add(name, app.tasks[task], **options)
        assert await app.schedules.list() == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"time_zone": "Europe/Berlin"}, "there is no option time_zone"),
        ({"backfil": True}, "there is no option backfil"),
        ({"withn": 5}, "there is no option withn; did you mean within?"),
    ],
)
def test_an_option_that_no_schedule_has_is_a_type_error(options: Any, why: str) -> None:
    app = App[None]()

    @app.task(name="sweep")
    async def sweep() -> None: ...

    with pytest.raises(TypeError, match=why.replace("?", r"\?")):
        app.blocking.schedules.add("s", sweep, every=60, **options)


@pytest.mark.parametrize(
    ("name", "what", "why"),
    [
        (7, None, "the name of a schedule is text, not 7"),
        ("s", "sweep", "schedule s: 'sweep' is not a call: write task.call"),
    ],
)
def test_what_is_no_name_and_no_call_is_refused(name: Any, what: Any, why: str) -> None:
    app = App[None]()

    @app.task(name="sweep")
    async def sweep() -> None: ...

    with pytest.raises(ValueError, match=why):
        app.blocking.schedules.add(name, what or sweep, every=60)


@pytest.mark.parametrize("method", ["pause", "resume", "remove", "run_now"])
def test_a_schedule_is_named_by_text(method: str) -> None:
    with pytest.raises(ValueError, match="the name of a schedule is text, not 7"):
        getattr(App[None]().blocking.schedules, method)(7)


async def test_its_jobs_have_the_group_of_their_arguments(app: App[None]) -> None:
    @app.task(name="digest", queue="digests", group=lambda customer, **_: customer)
    async def digest(customer: str, *, scheduled: datetime) -> None: ...

    async with app:
        await app.schedules.add("s", app.tasks["digest"].call("acme"), "@weekly")
        [entry] = await app.schedules.list()
        assert entry.options["group"] == "acme"
        job = await app.client.show((await app.schedules.run_now("s")).id)
        assert job is not None
        assert job.more["group"] == b"acme"


def test_a_group_that_only_the_instant_decides_is_refused() -> None:
    app = App[None]()

    @app.task(name="sweep", group=lambda scheduled: str(scheduled.hour))
    async def sweep(*, scheduled: datetime) -> None: ...

    with pytest.raises(ValueError, match=r"s: cannot compute the group of sweep .* using\(group=…"):
        app.blocking.schedules.add("s", sweep, every=60)


def test_a_task_whose_instant_would_not_arrive_is_refused() -> None:
    app = App[None]()

    @app.task(name="bare")
    async def bare(to: str, *, scheduled) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(NotEncodableError, match="bare: argument scheduled: datetime arrives as"):
        app.blocking.schedules.add("s", app.tasks["bare"].call("ann"), every=60)


async def test_a_call_may_name_the_instant_itself_or_take_anything_by_name(app: App[None]) -> None:
    @app.task(name="any")
    async def anything(**options: Any) -> None: ...

    instant = datetime(2026, 1, 1, tzinfo=UTC)
    async with app:
        await app.schedules.add("a", anything, every=60)
        await app.schedules.add("s", app.tasks["sweep"].call(scheduled=instant), every=60)
        found = await app.schedules.list()

    assert [each.is_told for each in found] == [False, False]
    assert [each.kwargs for each in found] == [{}, {"scheduled": "2026-01-01T00:00:00Z"}]


async def test_a_chain_and_options_of_a_moment_are_refused(app: App[None]) -> None:
    report = app.tasks["report"]
    async with app:
        with pytest.raises(ValueError, match="it adds one job"):
            await app.schedules.add("s", report.call("ann") | report.partial(), every=60)
        for options in ({"delay": 9}, {"unique": "k"}, {"key": "k"}):
            with pytest.raises(ValueError, match="neither at, nor delay, nor unique, nor key"):
                await app.schedules.add("s", report.using(**options).call("ann"), every=60)


# Many changes.


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes whose records are read from now on."""
    found: list[str] = []
    peek = commands.qpeek

    def counted(queue: str, count: int) -> Any:
        found.append(queue)
        return peek(queue, count)

    monkeypatch.setattr(commands, "qpeek", counted)
    return found


async def test_many_changes_of_one_client_read_all_records_once(
    app: App[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reads(monkeypatch)
    async with app:
        for number in range(20):
            await app.schedules.add(f"s{number}", app.tasks["sweep"], every=60)
        for number in range(20):
            assert await app.schedules.pause(f"s{number}")
            assert await app.schedules.remove(f"s{number}")
        assert await app.schedules.list() == []
    assert len(read) <= 4 * 3, (
        "in calm once at each node; a node may learn of an end a little later"
    )


async def test_changes_at_the_same_time_do_so_too(
    app: App[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reads(monkeypatch)
    async with app, anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(
                lambda n: app.schedules.add(f"s{n}", app.tasks["sweep"], every=60), number
            )
    assert len(read) <= 2 * 3


def test_threads_read_them_once(app: App[None], monkeypatch: pytest.MonkeyPatch) -> None:
    read = reads(monkeypatch)
    schedules = app.blocking.schedules
    for number in range(10):
        schedules.add(f"s{number}", app.tasks["sweep"], every=60)
    assert len(schedules.list()) == 10
    assert len(read) <= 2 * 3
    app.blocking.client.close()


async def test_a_change_by_others_is_seen_at_once(app: App[None], disque_server: Server) -> None:
    other: App[None] = App(disque_server.url)
    other.task(name="sweep")(lambda: None)

    async def names() -> list[tuple[str, bool]]:
        return [(each.name, each.is_paused) for each in await app.schedules.list()]

    async with app, other:
        await app.schedules.add("ours", app.tasks["sweep"], every=60)
        await other.schedules.add("theirs", other.tasks["sweep"], every=60)
        assert await names() == [("ours", False), ("theirs", False)]
        await other.schedules.pause("ours")
        assert await names() == [("ours", True), ("theirs", False)]
        await app.schedules.add("ours", app.tasks["sweep"], every=90)
        await other.schedules.remove("theirs")
        assert await names() == [("ours", True)], "what replaces a paused one is paused"
