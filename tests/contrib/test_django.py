"""Django's tasks: added by the backend, run by a worker, as Django defines them."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from disque_trio.client import NoNodeError
from disque_trio.testing.inline.kit import Inline
from disque_trio.testing.server.kit import Server

pytest.importorskip("django")
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import transaction

from disque_trio.contrib.django import Backend, api
from tests.contrib.djangosettings import worker as workers

TASKS = workers.app
seen: list[Any] = []


@api.home.task
def greet(name: str) -> None:
    seen.append(name)


@api.home.task(takes_context=True, queue_name="mail")
def report(context: Any, month: str) -> None:
    seen.append((context.attempt, context.task_result.id, month))
    if context.attempt == 1:
        raise ConnectionError("no answer")


@api.home.task(queue_name="mail")
async def wait() -> None:
    await asyncio.sleep(0)
    seen.append("awaited")


def no_task() -> None:
    raise AssertionError("it is not decorated")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    seen.clear()


def test_a_task_is_a_job_of_its_queue(disque_inline: Inline) -> None:
    result = greet.enqueue("ada")

    assert (result.status, result.args) == (api.base.TaskResultStatus.READY, ["ada"])
    disque_inline.assert_enqueued(TASKS.tasks["django.default.default"], queue="default")
    disque_inline.blocking.run_all(TASKS)
    assert seen == ["ada"]


def test_the_context_counts_the_attempts_and_names_the_job(disque_inline: Inline) -> None:
    result = report.enqueue("may")

    disque_inline.blocking.run_all(TASKS)

    assert seen == [(1, result.id, "may"), (2, result.id, "may")]


def test_priority_and_time_are_those_of_the_task(disque_inline: Inline) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    greet.using(run_after=later).enqueue("later")
    greet.enqueue("plain")
    greet.using(priority=50).enqueue("urgent")

    disque_inline.blocking.run_for(TASKS, 0)
    assert seen == ["urgent", "plain"]
    disque_inline.blocking.run_for(TASKS, 3700)
    assert seen[2:] == ["later"]


def test_a_coroutine_runs_in_the_event_loop_of_the_worker(disque_server: Server) -> None:
    wait.enqueue()
    greet.enqueue("ada")
    TASKS.blocking.client.close()

    asyncio.run(disque_server.run_all(TASKS))

    assert sorted(seen) == ["ada", "awaited"]


async def test_on_trio_it_is_dead_with_the_remedy(disque_inline: Inline) -> None:
    wait.enqueue()

    (ran,) = await disque_inline.run_all(TASKS, may_die=True)

    assert "start the worker with --loop asyncio" in str(ran.error)


def close() -> None:
    """The client of this thread."""
    TASKS.blocking.client.close()


def test_asynchronous_code_adds_tasks_too(disque_server: Server) -> None:
    async def story() -> None:
        await greet.aenqueue("ada")
        await sync_to_async(close)()
        await disque_server.run_all(TASKS)

    asyncio.run(story())

    assert seen == ["ada"]


def test_signals_tell_what_happens(disque_inline: Inline) -> None:
    told: list[tuple[str, str]] = []

    def hear(name: str, *, task_result: Any, **_: Any) -> None:
        told.append((name, task_result.status.value))

    hooks = {name: partial(hear, name) for name in ("enqueued", "started", "finished")}
    for name, hook in hooks.items():
        getattr(api.signals, f"task_{name}").connect(hook)
    report.enqueue("may")
    disque_inline.blocking.run_all(TASKS)
    for name, hook in hooks.items():
        getattr(api.signals, f"task_{name}").disconnect(hook)

    assert told == [
        ("enqueued", "READY"),
        ("started", "RUNNING"), ("finished", "FAILED"),
        ("started", "RUNNING"), ("finished", "SUCCESSFUL"),
    ]  # fmt: skip


def test_on_commit_adds_it_when_the_transaction_is_done(disque_inline: Inline) -> None:
    with transaction.atomic():
        transaction.on_commit(partial(greet.enqueue, "ada"))
        assert disque_inline.jobs(TASKS.tasks["django.default.default"]) == []
    with suppress(KeyError), transaction.atomic():
        transaction.on_commit(partial(greet.enqueue, "grace"))
        raise KeyError

    disque_inline.blocking.run_all(TASKS)
    assert seen == ["ada"]


def test_a_backend_without_a_list_of_queues_takes_every_queue(disque_inline: Inline) -> None:
    app = workers.any
    greet.using(backend="any", queue_name="anything").enqueue("ada")

    (job,) = disque_inline.jobs(app.tasks["django.any.default"])

    assert job.queue == "anything"


@pytest.mark.parametrize("path", ["tests.contrib.nowhere.task", f"{__name__}.no_task"])
def test_a_job_whose_task_is_gone_is_dead(path: str, disque_inline: Inline) -> None:
    TASKS.tasks["django.default.default"].blocking.enqueue(path, "default", [], {})

    (ran,) = disque_inline.blocking.run_all(TASKS, may_die=True)

    assert ran.end == "dead"
    assert path in str(ran.error)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"leese": 30}, "OPTIONS has leese; there are lease, max_crashes, maxlen"),
        ({"lease": 1}, "lease is 1 s"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=says):
        Backend("default", {"OPTIONS": options})


def test_what_is_no_json_is_refused(disque_inline: Inline) -> None:
    with pytest.raises(TypeError):
        greet.enqueue(object())


def test_without_a_node_enqueue_says_so() -> None:
    backend = Backend("default", {"OPTIONS": {"url": "disque://127.0.0.1:1"}})

    with pytest.raises(NoNodeError):
        backend.enqueue(greet, ("ada",), {})


def test_a_backend_of_another_kind_has_no_worker() -> None:
    with pytest.raises(AttributeError, match="TASKS\\['here'\\] is not a backend of disque_trio"):
        _ = workers.here
    with pytest.raises(AttributeError, match="TASKS has no backend nothing"):
        _ = workers.nothing


def test_the_command_of_manage_py_is_the_worker(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        call_command("disque_worker", "--", "--explain")

    assert stop.value.code == 0
    assert "default, mail" in capsys.readouterr().out


@pytest.mark.parametrize("is_logged", [True, False])
def test_the_traceback_of_a_failure_is_logged_once(
    disque_inline: Inline, caplog: pytest.LogCaptureFixture, is_logged: bool
) -> None:
    report.enqueue("may")
    api.LOGGER.setLevel("NOTSET" if is_logged else "CRITICAL")
    disque_inline.blocking.run_all(TASKS)
    api.LOGGER.setLevel("NOTSET")

    failed = [each for each in caplog.records if "failed, retry" in each.getMessage()]
    assert len(failed) == 1
    traced = [each.name for each in caplog.records if each.exc_info]
    assert traced == ([api.LOGGER.name] if is_logged else ["disque_trio.worker.jobs"])
