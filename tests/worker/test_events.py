"""What hooks of an app are called with, and that they change nothing of its jobs."""

import logging
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from disque_trio import worker
from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import (
    App,
    Cancel,
    Dead,
    Event,
    Fixed,
    Job,
    JobCancelled,
    JobDead,
    JobEnqueued,
    JobReleased,
    JobRetried,
    JobStarted,
    JobSucceeded,
    RunEnded,
    RunEvent,
    Snooze,
    WorkerStarted,
    WorkerStopped,
    events,
    hook_runner,
)
from disque_trio.worker.engine import records
from disque_trio.worker.engine.records import Reason
from tests.worker.failing import ERRORS, fail
from tests.worker.runs import body, handler_of, outcome, run_of

BACKENDS = ["trio", "asyncio"]
PAGE = Path(__file__).parents[2] / "docs" / "worker.md"
KINDS = [each for each in vars(events).values() if isinstance(each, type)]
EVENTS = [each for each in KINDS if issubclass(each, Event) and not each.__subclasses__()]
"""Those that happen; the others are their bases."""


@pytest.mark.parametrize("event", EVENTS)
def test_each_event_is_public_and_explained(event: type[Event]) -> None:
    hooks = PAGE.read_text("utf-8").partition("\n## Hooks\n")[2].partition("\n## ")[0]

    assert getattr(worker, event.__name__, None) is event, "disque_trio/worker/__init__.py has it"
    assert f"`{event.__name__}`" in hooks, "docs/worker.md explains it"


def app_of(*kinds: type[Event]) -> tuple[App[None], list[Any]]:
    """An app with a task for each end, and what its hook has been called with."""
    app, seen = App(), list[Any]()

    @app.on(*kinds)
    def note(event: Event) -> None:
        seen.append(event)

    @app.task(name="t", queue="q", retry=Fixed([5, 10]))
    async def t(how: str) -> None:
        if how != "done":
            raise {
                "retried": ValueError("no answer"),
                "dead": Dead("stolen"),
                "cancelled": Cancel("has left"),
                "snoozed": Snooze(600),
            }[how]

    return app, seen


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("how", "kind", "told"),
    [
        ("done", JobSucceeded, {}),
        ("retried", JobRetried, {"after": 10.0}),
        ("dead", JobDead, {"reason": "stolen"}),
        ("cancelled", JobCancelled, {"reason": "has left"}),
        ("snoozed", JobReleased, {"why": "snoozed", "after": 600.0}),
    ],
)
def test_each_end_of_a_run_is_an_event(
    backend: str, how: str, kind: type[RunEnded], told: dict[str, Any]
) -> None:
    app, seen = app_of(RunEvent)

    outcome(app, body("t", how, key="k", headers={"shop": "a", "tries": 1}), backend, queue=b"q")

    started, ended = seen
    assert type(started) is JobStarted
    assert type(ended) is kind
    for event in seen:
        assert (event.task, event.queue, event.key, event.attempt) == ("t", "q", "k", 2)
        assert event.headers == {"shop": "a"}, "not those of the library"
        assert abs(event.at - time.time()) < 60
    assert ended.duration > 0
    assert {name: getattr(ended, name) for name in told} == told
    if isinstance(ended, JobRetried | JobDead):
        assert isinstance(ended.error, ValueError | Dead)


def test_a_body_that_cannot_be_read_is_dead_without_a_start() -> None:
    app, seen = app_of(RunEvent)

    outcome(app, b"{")

    [event] = seen
    assert isinstance(event, JobDead)
    assert (event.task, event.key) == ("", None)
    assert "unreadable" in event.reason


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("why", "told"), [(Reason.SHUTDOWN, "stopping"), (Reason.LEASE_OVER, "lost")]
)
def test_a_run_that_is_cancelled_is_released(backend: str, why: Reason, told: str) -> None:
    app, seen = App(), list[Any]()

    @app.task(name="t")
    async def t() -> None:
        run.why = why
        scopes[0].cancel()
        await anyio.sleep_forever()

    app.on(JobReleased)(seen.append)
    run = run_of(body("t"))
    scopes: list[anyio.CancelScope] = []

    async def held() -> None:
        async with handler_of(app) as handler:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                await handler(run)

    anyio.run(held, backend=backend)

    [event] = seen
    assert (event.why, event.reason) == (told, why.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_worker_reports_its_start_before_and_its_stop_after_its_jobs(backend: str) -> None:
    app, seen = app_of(Event)

    async def held() -> None:
        async with app.handler(worker="w1") as handler:
            await handler(run_of(body("t", "done")))

    anyio.run(held, backend=backend)

    assert [type(each) for each in seen] == [
        WorkerStarted, JobStarted, JobSucceeded, WorkerStopped,
    ]  # fmt: skip
    assert {each.worker for each in seen} == {"w1"}


def test_what_a_producer_adds_is_an_event_where_it_adds_it(disque_inline: Inline) -> None:
    app, seen = app_of(JobEnqueued)
    t = app.tasks["t"]

    added = t.using(headers={"shop": "a"}, result_ttl=60).blocking.enqueue("done")
    app.blocking.enqueue_many([t.call("done"), t.call("done")])

    one, two, three = seen
    assert (one.id, one.key, one.task, one.queue) == (added.id, added.key, "t", "q")
    assert one.headers == {"shop": "a"}
    assert len({one.id, two.id, three.id}) == 3


async def test_what_no_node_accepts_is_no_event(disque_inline: Inline) -> None:
    app, seen = app_of(JobEnqueued)
    async with app:
        t = app.tasks["t"].using(maxlen=1)
        results = await app.enqueue_many([t.call("done"), t.call("done")])

    assert len(seen) == 1
    assert seen[0].id == results[0].id  # type: ignore[union-attr]


def test_the_library_s_own_jobs_are_no_events(disque_inline: Inline) -> None:
    app, seen = app_of(JobEnqueued, RunEvent)
    t = app.tasks["t"]

    async def both() -> None:
        async with app:
            await app.batch([t.call("done")], then=t.call("done"))
        await disque_inline.run_all(app)

    anyio.run(both, backend="trio")

    assert {event.task for event in seen} == {"t"}
    assert sum(isinstance(event, JobSucceeded) for event in seen) == 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("what", ERRORS)
def test_what_a_hook_raises_is_logged_and_changes_nothing(
    backend: str, is_async: bool, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    app, seen = app_of(JobSucceeded)

    async def soon(event: JobSucceeded) -> None:
        fail(what)

    def now(event: JobSucceeded) -> None:
        fail(what)

    app.on(JobSucceeded)(soon if is_async else now)

    async def held() -> list[records.Outcome]:
        async with handler_of(app) as handler:
            return [await handler(run_of(body("t", "done"))) for _ in range(3)]

    assert anyio.run(held, backend=backend) == [records.Done()] * 3
    assert len(seen) == 3
    lines = [each for each in caplog.records if each.name == "disque_trio.worker.hooks"]
    assert len(lines) == 1, "once a minute"
    assert lines[0].levelno == logging.ERROR
    assert "failed for JobSucceeded" in lines[0].getMessage()


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_job_waits_for_a_hook(
    backend: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hook_runner, "LAST_S", 0.05)
    app, _ = app_of(JobSucceeded)

    @app.on(JobSucceeded)
    async def never(event: JobSucceeded) -> None:
        await anyio.sleep_forever()

    async def held() -> list[records.Outcome]:
        async with handler_of(app) as handler:
            return [await handler(run_of(body("t", "done"))) for _ in range(2)]

    assert anyio.run(held, backend=backend) == [records.Done()] * 2
    assert "2 events are abandoned" in caplog.text


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hook_that_takes_too_long_is_cancelled(
    backend: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hook_runner, "HOOK_S", 1.0)
    app, seen = app_of(JobStarted)

    @app.on(RunEvent)
    async def slow(event: RunEvent) -> None:
        if isinstance(event, JobStarted):
            await anyio.sleep_forever()
        seen.append(event)

    outcome(app, body("t", "done"), backend)

    assert [type(each) for each in seen] == [JobStarted, JobSucceeded]
    assert "was cancelled" in caplog.text


def test_a_hook_that_falls_behind_loses_events_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hook_runner, "MOST", 2)
    app, seen = App(), list[Any]()
    gates: list[anyio.Event] = []

    @app.on(JobSucceeded)
    async def slow(event: JobSucceeded) -> None:
        await gates[0].wait()
        seen.append(event)

    @app.task(name="t")
    async def t() -> None: ...

    async def held() -> None:
        gates.append(anyio.Event())
        async with handler_of(app) as handler:
            for _ in range(9):
                await handler(run_of(body("t")))
            gates[0].set()

    anyio.run(held, backend="trio")

    assert len(seen) < 9
    assert "events were dropped" in caplog.text


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", ["done", "retried", "dead"])
def test_a_middleware_learns_how_the_run_has_ended(backend: str, how: str) -> None:
    app, seen = App(), list[Any]()

    @app.middleware
    async def around(job: Job[Any], run: Any) -> object:
        job.on_end(lambda _: 1 / 0)
        job.on_end(seen.append)
        return await run()

    @app.task(name="t", retry=Fixed([10]))
    def t(how: str) -> None:
        if how != "done":
            raise Dead("stolen") if how == "dead" else ValueError("no answer")

    found = outcome(app, body("t", how), backend)

    kinds = {"done": JobSucceeded, "retried": JobRetried, "dead": JobDead}
    assert [type(each) for each in seen] == [kinds[how]]
    assert isinstance(
        found, {"done": records.Done, "retried": records.Retry}.get(how, records.Dead)
    )


def declare(kinds: Any, hook: Any) -> None:
    on: Any = App().on
    on(*kinds)(hook)


@pytest.mark.parametrize(
    ("kinds", "hook", "why"),
    [
        ((), print, "name classes of events"),
        ((int,), print, "name classes of events"),
        ((JobDead,), lambda: None, "a function of one argument"),
        ((JobDead,), 5, "a function of one argument"),
    ],
)
def test_what_cannot_be_a_hook_is_refused(kinds: Any, hook: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        declare(kinds, hook)


def test_a_coroutine_cannot_hear_of_jobs_that_threads_add() -> None:
    async def hook(event: Event) -> None: ...

    with pytest.raises(ValueError, match="must be a `def`"):
        App().on(Event)(hook)
    App().on(RunEvent, WorkerStarted)(hook)


@pytest.mark.parametrize("logs_done", [True, False])
def test_jobs_that_succeed_are_logged_if_wanted(
    logs_done: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app, _ = app_of(JobSucceeded)
    caplog.set_level(logging.INFO, "disque_trio.worker.jobs")

    async def held() -> None:
        async with app.handler(logs_done=logs_done) as handler:
            await handler(run_of(body("t", "done")))

    anyio.run(held, backend="trio")

    assert [vars(each)["task"] for each in caplog.records if "done in" in each.getMessage()] == (
        ["t"] if logs_done else []
    )


@pytest.mark.parametrize("is_async", [True, False])
def test_a_quick_hook_hears_of_every_job(is_async: bool) -> None:
    app, seen = App(), list[Any]()

    async def soon(event: RunEvent) -> None:
        seen.append(event)

    app.on(RunEvent)(soon if is_async else seen.append)
    app.task(name="t", executor="loop")(lambda: None)

    async def held() -> None:
        async with handler_of(app) as handler:
            for _ in range(2000):
                await handler(run_of(body("t")))

    anyio.run(held, backend="trio")

    assert len(seen) == 4000
