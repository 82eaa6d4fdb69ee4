"""What Rails wraps for Sidekiq and Resque is run by the task of the class inside."""

import json
from typing import Any

import pytest

from disque_trio.worker import App, Job
from disque_trio.worker.engine import records
from disque_trio.worker.engine.records import Done
from tests.worker.interop.test_payloads import BOTH, run

SIDEKIQ = "ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper"


def wrapped(*arguments: Any, wrapper: str = SIDEKIQ, job: Any = None, **fields: Any) -> bytes:
    inner = {
        "job_class": "HardJob",
        "job_id": "f8a11fa4-38ae-4e11-a78f-6b6a1e0a3b0c",
        "provider_job_id": None,
        "queue_name": "default",
        "priority": None,
        "arguments": list(arguments),
        "executions": 0,
        "exception_executions": {},
        "locale": "en",
        "timezone": "UTC",
        "enqueued_at": "2026-01-02T03:04:05.123456789Z",
        "scheduled_at": None,
        **(job or {}),
    }
    return json.dumps({
        "class": wrapper, "wrapped": "HardJob", "queue": "default", "args": [inner], "retry": True,
        "jid": "d020316e37c17bbcd5d360b1", "created_at": 1479409368.005358,
        "enqueued_at": 1479409368.0, **fields,
    }).encode()  # fmt: skip


def app() -> tuple[App[None], list[Any]]:
    found, seen = App[None](), list[Any]()
    found.accept("legacy", *BOTH)

    @found.task(bind=True, name="HardJob")
    async def hard_job(job: Job[None], *args: Any, **kwargs: Any) -> None:
        seen.append((job.key, job.attempt, args, kwargs))

    return found, seen


@pytest.mark.parametrize("wrapper", [SIDEKIQ, "Sidekiq::ActiveJob::Wrapper"])
def test_the_class_inside_is_the_task_and_jid_the_key(wrapper: str) -> None:
    tasks, seen = app()

    assert run(tasks, wrapped(7, "x", wrapper=wrapper)) == Done()
    assert seen == [("d020316e37c17bbcd5d360b1", 1, (7, "x"), {})]


def test_resque_wraps_it_too_and_without_jid_the_key_is_that_of_activejob() -> None:
    tasks, seen = app()
    fields = json.loads(wrapped(1))
    resque = {
        "class": "ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper",
        "args": fields["args"],
    }

    assert run(tasks, json.dumps(resque).encode()) == Done()
    assert run(tasks, wrapped(2, jid=None)) == Done()
    assert [key for key, *_ in seen] == ["f8a11fa4-38ae-4e11-a78f-6b6a1e0a3b0c"] * 2


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ({"_aj_globalid": "gid://shop/User/1"}, "gid://shop/User/1"),
        ({"_aj_serialized": "ActiveJob::Serializers::SymbolSerializer", "value": "red"}, "red"),
        (
            {"_aj_serialized": "ActiveJob::Serializers::DateSerializer", "value": "2026-01-02"},
            "2026-01-02",
        ),
        (
            {
                "_aj_serialized": "ActiveJob::Serializers::DurationSerializer",
                "value": 60,
                "parts": [[{"_aj_serialized": "S", "value": "minutes"}, 1]],
            },
            60,
        ),
        ({"a": [{"_aj_globalid": "gid://x"}], "_aj_symbol_keys": ["a"]}, {"a": ["gid://x"]}),
        ({"b": None, "_aj_hash_with_indifferent_access": True}, {"b": None}),
        ([[], {}, 1.5, None, True], [[], {}, 1.5, None, True]),
    ],
)
def test_arguments_are_read_as_activejob_writes_them(argument: Any, value: Any) -> None:
    tasks, seen = app()

    assert run(tasks, wrapped(argument, "last")) == Done()
    assert seen[0][2] == (value, "last")


def test_keywords_are_keywords() -> None:
    tasks, seen = app()
    last = {"to": {"_aj_globalid": "gid://x"}, "n": 2, "_aj_ruby2_keywords": ["to", "n"]}

    assert run(tasks, wrapped(1, last)) == Done()
    assert seen[0][2:] == ((1,), {"to": "gid://x", "n": 2})


@pytest.mark.parametrize(
    ("executions", "retried", "attempt"),
    [(0, None, 1), (3, None, 4), (1, 4, 6), ("x", None, 1), (-1, None, 1), (True, None, 1)],
)
def test_earlier_runs_count(executions: Any, retried: Any, attempt: int) -> None:
    tasks, seen = app()

    run(tasks, wrapped(job={"executions": executions}, retry_count=retried))
    assert seen[0][1] == attempt


def test_an_argument_without_a_value_is_dead_with_the_reason() -> None:
    found = run(app()[0], wrapped({"_aj_serialized": "Shop::MoneySerializer", "cents": 5}))

    assert isinstance(found, records.Dead)
    assert found.reason.startswith(b"unreadable: an argument that Shop::MoneySerializer")


@pytest.mark.parametrize("inner", [{}, {"job_class": 7}, {"arguments": None}])
def test_what_only_looks_like_a_wrapper_is_a_job_of_its_class(inner: Any) -> None:
    body = json.loads(wrapped())
    body["args"] = [inner]

    assert run(app()[0], json.dumps(body).encode()) == records.Retry(5_000_000)
