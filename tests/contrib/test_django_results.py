"""`get_result` of Django's tasks: what nodes keep, in any process."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from disque_trio.testing.inline.kit import Inline
from disque_trio.testing.server.kit import Server

pytest.importorskip("django")
from django.core.exceptions import ImproperlyConfigured

from disque_trio.contrib.django import Backend, api
from tests.contrib.djangosettings import worker as workers

APP = workers.kept
MISSING = api.exceptions.TaskResultDoesNotExist


@api.home.task(backend="kept", queue_name="mail")
def count(text: str, *, times: int = 1) -> dict[str, Any]:
    if text == "fail":
        raise ConnectionError("no answer")
    return {"words": len(text.split()) * times, "tags": ("a", "b")}


@api.home.task(backend="kept")
async def awaited() -> str:
    await asyncio.sleep(0)
    return "awaited"


@api.home.task(backend="kept")
def no_json() -> object:
    return object()


def test_a_result_goes_from_ready_to_successful(disque_inline: Inline) -> None:
    added = count.enqueue("to be", times=2)

    ready = count.get_result(added.id)
    assert (ready.id, ready.status, ready.task) == (
        added.id,
        api.base.TaskResultStatus.READY,
        count,
    )
    assert (ready.args, ready.kwargs, ready.errors) == (["to be"], {"times": 2}, [])
    assert ready.started_at is None
    assert abs(ready.enqueued_at - datetime.now(UTC)).total_seconds() < 60
    with pytest.raises(ValueError, match="has not finished"):
        _ = ready.return_value

    disque_inline.blocking.run_all(APP)

    done = count.get_result(added.id)
    assert (done.status, done.return_value) == (
        api.base.TaskResultStatus.SUCCESSFUL,
        {"words": 4, "tags": ["a", "b"]},
    )
    assert (done.args, done.kwargs, done.task) == (["to be"], {"times": 2}, count)
    assert done.started_at <= done.finished_at
    assert len(done.worker_ids) == 1


def test_a_task_that_has_failed_for_good_has_the_error(disque_inline: Inline) -> None:
    added = count.enqueue("fail")
    disque_inline.blocking.run_for(APP, 0)
    waiting = count.get_result(added.id)
    assert (waiting.status, len(waiting.errors)) == (api.base.TaskResultStatus.READY, 1)

    disque_inline.blocking.run_for(APP, 700, may_die=True)

    failed = count.get_result(added.id)
    assert (failed.status, failed.args) == (api.base.TaskResultStatus.FAILED, ["fail"])
    [error] = failed.errors
    assert error.exception_class is ConnectionError
    assert "no answer" in error.traceback


def test_a_return_value_that_is_no_json_is_a_failure(disque_inline: Inline) -> None:
    added = no_json.enqueue()

    disque_inline.blocking.run_for(APP, 700, may_die=True)

    failed = no_json.get_result(added.id)
    assert failed.status == api.base.TaskResultStatus.FAILED
    assert failed.errors[0].exception_class is TypeError


def test_another_process_reads_it_when_producer_and_worker_are_gone(
    disque_server: Server,
) -> None:
    added = awaited.enqueue()
    APP.blocking.client.close()
    asyncio.run(disque_server.run_all(APP))

    while (found := awaited.get_result(added.id)).status != api.base.TaskResultStatus.SUCCESSFUL:
        time.sleep(0.01)
    other = Backend("kept", {"QUEUES": ["default", "mail"], "OPTIONS": {"result_ttl": 60}})
    again = other.get_result(added.id)
    other.app.blocking.client.close()
    APP.blocking.client.close()

    assert found.return_value == again.return_value == "awaited"


@pytest.mark.parametrize("id", ["", "nobody", "D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"])
def test_what_no_node_knows_does_not_exist(disque_inline: Inline, id: str) -> None:
    with pytest.raises(MISSING):
        count.get_result(id)


def test_an_acknowledgement_without_a_result_leaves_nothing_to_read(
    disque_inline: Inline,
) -> None:
    added = count.enqueue("to be")
    handle = APP.tasks["django.kept.mail"].blocking.find(added.id)
    assert handle is not None
    handle.cancel()

    with pytest.raises(MISSING):
        count.get_result(added.id)


def test_without_result_ttl_there_are_no_results() -> None:
    backend = Backend("default", {"QUEUES": ["default"], "OPTIONS": {}})

    assert not backend.supports_get_result
    with pytest.raises(NotImplementedError):
        backend.get_result("id")


def test_results_are_looked_for_in_queues_that_are_named() -> None:
    with pytest.raises(ImproperlyConfigured, match="result_ttl needs QUEUES"):
        Backend("any", {"QUEUES": [], "OPTIONS": {"result_ttl": 60}})
