"""Jobs of Sidekiq and Resque are run, and written for their workers."""

import contextlib
import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import ORIGINAL_PERIOD_S
from disque_trio.worker import App, Cancel, Fixed, Job, NotEncodableError, TooLargeError
from disque_trio.worker.engine import records, words
from disque_trio.worker.engine.records import Done
from disque_trio.worker.envelope import BadBodyError, NewerBodyError
from disque_trio.worker.interop import System
from disque_trio.worker.interop.payloads import read_payload, write_payload
from tests.client.fakenode import FakeNode
from tests.client.running import url
from tests.worker.runs import ID, Driver, body, handler_of, outcome, run_of
from tests.worker.test_enqueue import added, node_that_adds

BOTH: tuple[System, ...] = ("sidekiq", "resque")
SIDEKIQ = {
    "class": "HardJob", "args": ["ada", 3], "jid": "b4a577edbccf1d805744efa9", "retry": True,
    "queue": "legacy", "created_at": 1_760_000_000_000,
}  # fmt: skip
NOW = 1_760_000_100.0


def payload(**changes: Any) -> bytes:
    return json.dumps({**SIDEKIQ, **changes}).encode()


def accepting(node: FakeNode | None = None, *systems: System) -> tuple[App[None], list[Any]]:
    app = App() if node is None else App(url(node))
    app.accept("legacy", *(systems or BOTH))
    seen: list[Any] = []

    @app.task(bind=True, name="hard_job", aliases=["HardJob"], retry=Fixed([10] * 30))
    async def hard_job(job: Job[None], to: str, n: int = 1) -> None:
        seen.append((job.key, job.attempt, to, n))
        if to == "fail":
            raise ValueError("no")
        if to == "obsolete":
            raise Cancel

    return app, seen


def run(app: App[None], what: bytes, **options: Any) -> records.Outcome:
    async def held() -> records.Outcome:
        async with handler_of(app, now=lambda: NOW) as handler:
            return await handler(run_of(what, queue=b"legacy", **options))

    return anyio.run(held, backend="trio")


def test_a_job_of_sidekiq_is_run_by_the_task_of_its_class() -> None:
    app, seen = accepting()

    assert run(app, payload()) == Done()
    assert seen == [("b4a577edbccf1d805744efa9", 1, "ada", 3)]


def test_a_job_of_resque_is_run_too() -> None:
    app, seen = accepting()

    assert run(app, b'{"class":"HardJob","args":["ada"]}') == Done()
    assert seen == [(None, 1, "ada", 1)]


def test_jobs_of_the_app_may_be_in_the_same_queue() -> None:
    app, seen = accepting()

    assert run(app, body("hard_job", "ada")) == Done()
    assert run(app, b"\x82\xa4task\xa8hard_job\xa4args\x91\xa3bob") == Done()
    assert seen == [(None, 1, "ada", 1), (None, 1, "bob", 1)]


@pytest.mark.parametrize(
    ("retry", "attempts"), [(True, 26), (False, 1), (0, 1), (3, 4), (None, 31), ("x", 31), (-1, 31)]
)
def test_it_is_tried_as_often_as_it_says(retry: Any, attempts: int) -> None:
    app, _ = accepting()
    what = payload(args=["fail"], retry=retry)

    assert isinstance(run(app, what, nacks=attempts - 1), records.Dead)
    if attempts > 1:
        assert isinstance(run(app, what, nacks=attempts - 2), records.Retry)


def test_it_is_not_run_before_it_is_due() -> None:
    with node_that_adds() as node:
        app, seen = accepting(node)

        assert run(app, payload(at=NOW + 50)) == Done()
        assert seen == []
        [(queue, again, options)] = added(node)
        assert (queue, options["DELAY"]) == ("legacy", "50.001")
        assert again == {
            "task": "hard_job",
            "args": ["ada", 3],
            "key": "b4a577edbccf1d805744efa9",
            "headers": {"attempts": 26, "tries": 0, "snoozes": 0},
        }
        assert run(app, json.dumps(again).encode()) == Done()
        assert run(app, payload(at=NOW - 50)) == Done()
        assert len(seen) == 2


def test_a_wait_that_is_too_long_for_a_node_is_made_of_several() -> None:
    driver = Driver(features=frozenset((words.RELEASE_DELAY,)))

    found = run(accepting()[0], payload(at=NOW + 3_000_000), driver=driver)
    assert found == records.Release(ORIGINAL_PERIOD_S * 1_000_000)


def test_other_queues_and_other_systems_do_not_read_it() -> None:
    app, _ = accepting(None, "resque")

    for found in (run(app, payload()), outcome(app, payload())):
        assert isinstance(found, records.Dead)
        assert found.reason.startswith(b"unreadable: Object missing required field `task`")


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (b"hello", b"unreadable: the body is neither"),
        (b'{"class":', b"unreadable: "),
        (b'{"class":7,"args":[]}', b"unreadable: "),
        (payload(args=[1] * 1001), b"unreadable: more than 1000 arguments"),
        (payload(args=[7]), b"invalid arguments: $.args[0]: Expected `str`, got `int`"),
        (payload(args=[json.loads("[" * 70 + "]" * 70)]), b"unreadable: more than 64 nested lists"),
    ],
)
def test_what_cannot_be_read_is_dead_with_the_reason(what: bytes, reason: bytes) -> None:
    app, _ = accepting()

    found = run(app, what)
    assert isinstance(found, records.Dead)
    assert found.reason.startswith(reason)


def test_a_class_without_a_task_waits_for_a_worker_that_has_one() -> None:
    assert run(accepting()[0], payload(**{"class": "Other"})) == records.Retry(5_000_000)


@pytest.mark.parametrize(
    "what",
    [
        payload(jid=None),
        payload(jid=True),
        payload(jid={"a": 1}),
        b'{"class":"HardJob","args":["ada",3],"retry":true,"queue":"default"}',
        b'{"retry":false,"class":"HardJob","created_at":1.5,"args":["ada",3]}',
    ],
)
def test_without_a_jid_the_key_is_the_id_of_the_job(what: bytes) -> None:
    app, seen = accepting()

    assert run(app, what) == Done()
    assert run(app, what) == Done()
    assert seen == [(ID.decode(), 1, "ada", 3)] * 2


def test_sidekiq_alone_needs_class_and_args_only() -> None:
    app, seen = accepting(None, "sidekiq")

    assert run(app, b'{"class":"HardJob","args":["ada"]}') == Done()
    assert run(app, payload(jid=17)) == Done()
    assert [key for key, *_ in seen] == [ID.decode(), "17"]


@pytest.mark.parametrize(
    ("retry_count", "attempt"),
    [(None, 1), (0, 2), (23, 25), (24, 26), (-1, 1), ("3", 1), (True, 1), (1.5, 1)],
)
def test_attempts_at_sidekiq_count(retry_count: Any, attempt: int) -> None:
    app, seen = accepting()
    what = payload(args=["fail"], retry=25, retry_count=retry_count, failed_at=1_759_920_129.5)

    found = run(app, what)
    assert seen == [("b4a577edbccf1d805744efa9", attempt, "fail", 1)]
    assert isinstance(found, records.Dead if attempt == 26 else records.Retry)


@pytest.mark.parametrize("at", [None, "tomorrow", True, [1], -5])
def test_a_time_that_is_none_is_now(at: Any) -> None:
    app, seen = accepting()

    assert run(app, payload(at=at)) == Done()
    assert len(seen) == 1


@pytest.mark.parametrize("changes", [{"class": None}, {"class": []}, {"args": None}, {"args": {}}])
def test_fields_of_other_types_are_told(changes: Any) -> None:
    found = run(accepting()[0], payload(**changes))

    assert isinstance(found, records.Dead)
    assert found.reason == b"unreadable: `class` must be text, and `args` an array"


@given(st.binary(max_size=60).map(lambda rest: b'{"class":"A","args":[],' + rest) | st.binary())
def test_hostile_bytes_are_read_or_refused(what: bytes) -> None:
    with contextlib.suppress(BadBodyError, NewerBodyError):
        assert isinstance(read_payload(what, 1000, BOTH).task, str)


# Written.


@pytest.mark.parametrize("system", BOTH)
@given(st.lists(st.text() | st.integers(-(2**53), 2**53) | st.lists(st.booleans())))
def test_what_is_written_is_read(system: System, args: list[Any]) -> None:
    what = write_payload(system, "HardJob", args, key="k", queue="q", max_body=1 << 20)

    found = read_payload(what, 1 << 20, [system])

    assert found.task == "HardJob"
    assert json.loads(b"[" + b",".join(map(bytes, found.args)) + b"]") == args
    assert found.key == ("k" if system == "sidekiq" else None)


@pytest.mark.parametrize("kind", ["trio", "asyncio", "blocking"])
def test_a_job_is_written_for_workers_of_sidekiq(kind: str) -> None:
    async def held() -> None:
        sidekiq = app.producer("sidekiq")
        async with app:
            if kind == "blocking":
                job = sidekiq.using(queue="critical", delay=60).enqueue_blocking("HardJob", 1)
                app.blocking.client.close()
            else:
                job = await sidekiq.using(queue="critical", delay=60).enqueue("HardJob", 1)

        [(queue, what, options)] = added(node)
        assert (queue, job.queue, options["DELAY"]) == ("critical", "critical", "60")
        assert what.pop("created_at") == what.pop("enqueued_at") > 1_700_000_000_000
        assert what == {
            "class": "HardJob", "args": [1], "jid": job.key, "queue": "critical", "retry": True,
        }  # fmt: skip
        assert len(job.key) == 24

    with node_that_adds() as node:
        app = App(url(node))
        anyio.run(held, backend="asyncio" if kind == "asyncio" else "trio")


def test_what_such_a_body_cannot_say_is_refused() -> None:
    resque = App(max_body=100).producer("resque")

    with pytest.raises(ValueError, match="there is no system rescue; there are resque, sidekiq"):
        App().producer("rescue")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a job of resque has no unique"):
        resque.using(unique=True)
    with pytest.raises(
        NotEncodableError, match="HardJob: a value of type object cannot be encoded"
    ):
        resque.enqueue_blocking("HardJob", object())
    with pytest.raises(TooLargeError, match="the limit is 100"):
        resque.enqueue_blocking("HardJob", "x" * 100)
